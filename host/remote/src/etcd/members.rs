//! Merges the members' reports into one list. Pure.

use std::collections::BTreeMap;

use capwasm_contract::EtcdMember;
use capwasm_etcd::message::{self, AlarmMember, AlarmType, ResponseHeader, StatusResponse};

/// What came of asking a node's member.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) node: String,
    pub(crate) answer: Result<Report, String>,
}

/// Report of a member.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) status: StatusResponse,
    pub(crate) members: Vec<message::Member>,
    /// An error without a majority.
    pub(crate) alarms: Result<Vec<AlarmMember>, String>,
}

impl Report {
    fn header(&self) -> ResponseHeader {
        self.status.header.unwrap_or_default()
    }

    /// Ids of its members, and whether each is a learner.
    fn known(&self) -> BTreeMap<u64, bool> {
        self.members.iter().map(|member| (member.id, member.is_learner)).collect()
    }
}

impl Asked {
    /// Id of the member, if it has answered.
    pub(crate) fn id(&self) -> Option<u64> {
        self.answer.as_ref().ok().map(|report| report.header().member_id)
    }
}

/// Whether two reports have different members.
pub(crate) fn disagree<'a>(asked: impl Iterator<Item = &'a Asked>) -> bool {
    let mut known = asked.filter_map(|asked| asked.answer.as_ref().ok()).map(Report::known);
    known.next().is_some_and(|first| known.any(|other| other != first))
}

/// The members that most who answer agree on, with what is wrong with each; `None` when nobody answers.
pub(crate) fn merge(asked: &[&Asked]) -> Option<Vec<EtcdMember>> {
    let reports: Vec<&Report> = asked.iter().filter_map(|asked| asked.answer.as_ref().ok()).collect();
    let cluster = most(reports.iter().map(|report| (report.header().cluster_id, *report)))?;
    let reports: Vec<&Report> = reports.into_iter().filter(|report| report.header().cluster_id == cluster).collect();
    let known = most(reports.iter().map(|report| (report.known(), *report)))?;
    let list = reports.iter().find(|report| report.known() == known)?;
    // Terms only grow, so that the highest one's leader is the last that was elected.
    let leading = reports.iter().filter(|report| report.status.leader != 0);
    let leader = leading.max_by_key(|report| report.status.raft_term).map(|report| report.status.leader);
    let agreed = Agreed { cluster, known: &known, leader };
    let mut members: Vec<EtcdMember> =
        list.members.iter().map(|member| agreed.judge(member, asked, &reports)).collect();
    members.sort_by(|one, other| (&one.name, one.id).cmp(&(&other.name, other.id)));
    Some(members)
}

/// The most common value; of equally common ones that of a report with a leader, then with the latest term.
fn most<'a, T: Ord + Clone>(said: impl Iterator<Item = (T, &'a Report)>) -> Option<T> {
    let mut weights: BTreeMap<T, (usize, bool, u64)> = BTreeMap::new();
    for (what, report) in said {
        let weight = weights.entry(what).or_default();
        weight.0 += 1;
        weight.1 |= report.status.leader != 0;
        weight.2 = weight.2.max(report.status.raft_term);
    }
    weights.into_iter().max_by_key(|(_, weight)| *weight).map(|(what, _)| what)
}

struct Agreed<'a> {
    cluster: u64,
    known: &'a BTreeMap<u64, bool>,
    leader: Option<u64>,
}

impl Agreed<'_> {
    fn judge(&self, member: &message::Member, asked: &[&Asked], reports: &[&Report]) -> EtcdMember {
        let asked = asked
            .iter()
            .find(|asked| asked.id() == Some(member.id))
            .or_else(|| asked.iter().find(|asked| !member.name.is_empty() && asked.node == member.name));
        let alarms = alarms(member.id, reports);
        let problems = match asked {
            None if member.name.is_empty() => vec!["it has not started yet".to_owned()],
            None => vec![format!("there is no pod of it: etcd-{} is not in kube-system", member.name)],
            Some(Asked { answer: Err(message), .. }) => vec![format!("it does not answer: {message}")],
            Some(Asked { answer: Ok(report), .. }) => self.problems(member, report, &alarms),
        };
        EtcdMember {
            id: member.id,
            name: asked.map_or_else(|| member.name.clone(), |asked| asked.node.clone()),
            peer_urls: member.peer_urls.clone(),
            learner: member.is_learner,
            leader: self.leader == Some(member.id),
            healthy: problems.is_empty(),
            message: problems.join("; "),
            alarms,
        }
    }

    fn problems(&self, member: &message::Member, report: &Report, alarms: &[String]) -> Vec<String> {
        let header = report.header();
        if header.cluster_id != self.cluster {
            return vec![format!(
                "it belongs to another cluster than the others: {:x}, not {:x}",
                header.cluster_id, self.cluster
            )];
        }
        let mut problems = Vec::new();
        if header.member_id != member.id {
            problems.push(format!("its pod runs another member: {:x}", header.member_id));
        }
        if report.known() != *self.known {
            let ids = |members: &BTreeMap<u64, bool>| {
                let shown =
                    |(id, learner): (&u64, &bool)| format!("{id:x}{}", if *learner { " (a learner)" } else { "" });
                members.iter().map(shown).collect::<Vec<_>>().join(", ")
            };
            problems.push(format!(
                "it knows other members than the others: {}, not {}",
                ids(&report.known()),
                ids(self.known)
            ));
        }
        if report.status.leader == 0 {
            problems.push("it knows no leader".to_owned());
        }
        if !alarms.is_empty() {
            problems.push(format!("it raises an alarm: {}", alarms.join(", ")));
        }
        if let Err(message) = &report.alarms {
            problems.push(format!("its alarms cannot be read: {message}"));
        }
        problems
    }
}

/// Alarms of a member, by any report.
fn alarms(id: u64, reports: &[&Report]) -> Vec<String> {
    let all = reports.iter().filter_map(|report| report.alarms.as_ref().ok()).flatten();
    let of_it = all.filter(|alarm| alarm.member_id == id && alarm.alarm != i32::from(AlarmType::None));
    let mut names: Vec<String> = of_it
        .map(|alarm| AlarmType::try_from(alarm.alarm).map_or_else(|_| alarm.alarm.to_string(), |a| a.name().to_owned()))
        .collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    const CLUSTER: u64 = 0xc;

    fn known(id: u64) -> message::Member {
        let name = ["", "a", "b", "c", "d"][usize::try_from(id).unwrap()].to_owned();
        message::Member { id, name, peer_urls: vec![format!("https://10.0.0.{id}:2380")], ..Default::default() }
    }

    /// Report of member `id` on the node of its name: it knows `members` and takes 1 for the leader.
    fn says(id: u64, members: &[u64]) -> Asked {
        let header = ResponseHeader { cluster_id: CLUSTER, member_id: id, revision: 1, raft_term: 2 };
        let status = StatusResponse { header: Some(header), leader: 1, raft_term: 2, ..Default::default() };
        let members = members.iter().map(|id| known(*id)).collect();
        Asked { node: known(id).name, answer: Ok(Report { status, members, alarms: Ok(Vec::new()) }) }
    }

    fn changed(mut asked: Asked, change: impl FnOnce(&mut Report)) -> Asked {
        change(asked.answer.as_mut().unwrap());
        asked
    }

    fn silent(node: &str) -> Asked {
        Asked { node: node.to_owned(), answer: Err("connection refused".to_owned()) }
    }

    /// Name, leader and problem of each member, one per line.
    fn lines(asked: &[Asked]) -> Vec<String> {
        let members = merge(&asked.iter().collect::<Vec<_>>()).unwrap();
        let line = |member: EtcdMember| {
            assert_eq!(member.healthy, member.message.is_empty(), "{member:?}");
            let role = if member.leader { "*" } else { "" };
            let text = format!("{}{role} {}", member.name, member.message);
            text.trim_end().to_owned()
        };
        members.into_iter().map(line).collect()
    }

    #[test]
    fn each_member_is_judged_by_what_it_says_itself() {
        let alarm = |asked: Asked| {
            let alarm = AlarmMember { member_id: 2, alarm: AlarmType::Nospace.into() };
            changed(asked, |report| report.alarms = Ok(vec![alarm]))
        };
        let rows: Vec<(&str, Vec<Asked>, Vec<&str>)> = vec![
            ("all is well", vec![says(1, &[1, 2, 3]), says(2, &[1, 2, 3]), says(3, &[1, 2, 3])], vec!["a*", "b", "c"]),
            (
                "one does not answer",
                vec![says(1, &[1, 2, 3]), says(2, &[1, 2, 3]), silent("c")],
                vec!["a*", "b", "c it does not answer: connection refused"],
            ),
            (
                "one is gone with its node",
                vec![says(1, &[1, 2, 3]), says(2, &[1, 2, 3])],
                vec!["a*", "b", "c there is no pod of it: etcd-c is not in kube-system"],
            ),
            (
                "one has not heard of the third",
                vec![says(1, &[1, 2, 3]), says(2, &[1, 2]), says(3, &[1, 2, 3])],
                vec!["a*", "b it knows other members than the others: 1, 2, not 1, 2, 3", "c"],
            ),
            (
                "one takes another for a learner",
                vec![
                    says(1, &[1, 2, 3]),
                    says(2, &[1, 2, 3]),
                    changed(says(3, &[1, 2, 3]), |report| report.members[2].is_learner = true),
                ],
                vec!["a*", "b", "c it knows other members than the others: 1, 2, 3 (a learner), not 1, 2, 3"],
            ),
            (
                "one was removed and does not know",
                vec![says(1, &[1, 2]), says(2, &[1, 2]), says(3, &[1, 2, 3])],
                vec!["a*", "b"],
            ),
            (
                "an alarm counts whoever tells it",
                vec![alarm(says(1, &[1, 2])), says(2, &[1, 2])],
                vec!["a*", "b it raises an alarm: NOSPACE"],
            ),
            (
                "one was set up as a cluster of its own",
                vec![
                    says(1, &[1, 2, 3]),
                    says(2, &[1, 2, 3]),
                    changed(says(3, &[4]), |report| {
                        report.status.header.as_mut().unwrap().cluster_id = 0xd;
                        report.status.header.as_mut().unwrap().member_id = 4;
                    }),
                ],
                vec!["a*", "b", "c it belongs to another cluster than the others: d, not c"],
            ),
            (
                "no majority: no leader, and alarms that nobody can read",
                vec![
                    changed(says(1, &[1, 2, 3]), |report| {
                        report.status.leader = 0;
                        report.alarms = Err("timed out".to_owned());
                    }),
                    silent("b"),
                    silent("c"),
                ],
                vec![
                    "a it knows no leader; its alarms cannot be read: timed out",
                    "b it does not answer: connection refused",
                    "c it does not answer: connection refused",
                ],
            ),
            (
                "the latest term's leader leads",
                vec![
                    changed(says(1, &[1, 2]), |report| report.status.raft_term = 1),
                    changed(says(2, &[1, 2]), |report| report.status.leader = 2),
                ],
                vec!["a", "b*"],
            ),
        ];
        for (name, asked, expected) in rows {
            assert_eq!(lines(&asked), expected, "{name}");
        }
    }

    #[test]
    fn a_learner_that_has_not_started_has_no_name() {
        let added = message::Member { id: 4, is_learner: true, ..Default::default() };
        let asked = changed(says(1, &[1]), |report| report.members.push(added));
        assert_eq!(lines(std::slice::from_ref(&asked)), [" it has not started yet", "a*"]);
        let members = merge(&[&asked]).unwrap();
        assert_eq!(members.iter().map(|member| member.learner).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn only_those_who_answer_can_disagree() {
        let learns = |asked: Asked| changed(asked, |report| report.members[1].is_learner = true);
        for (name, asked, expected) in [
            ("nobody", vec![], false),
            ("one alone", vec![says(1, &[1, 2]), silent("b")], false),
            ("two of one mind", vec![says(1, &[1, 2]), says(2, &[1, 2])], false),
            ("another number", vec![says(1, &[1, 2]), says(2, &[2])], true),
            ("one without a vote", vec![says(1, &[1, 2]), silent("c"), learns(says(2, &[1, 2]))], true),
        ] {
            assert_eq!(disagree(asked.iter()), expected, "{name}");
        }
    }

    #[test]
    fn nobody_answering_is_no_list() {
        assert_eq!(merge(&[&silent("a")]), None);
        assert_eq!(merge(&[]), None);
    }
}
