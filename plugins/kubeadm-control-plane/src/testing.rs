//! Short spellings of machines and members for the tables of tests.

use capwasm_api::names::condition;
use capwasm_sdk::EtcdMember;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::machine::Machine;
use crate::names;

/// `name@domain` plus flags: `d` deleting, `j` still joining, `x` its components are not well, `e` its etcd member is not
/// well, `m` marked by a person, `o` outdated, `u` unhealthy, `r` unhealthy and to be remediated, `h` with our hook,
/// `w` waits for hooks, `p` with another hook, `n` core has not recorded its Node yet. Age follows the order of names.
pub fn machine(text: &str) -> Machine {
    let (place, flags) = text.split_once(' ').unwrap_or((text, ""));
    let (name, domain) = place.split_once('@').unwrap_or((place, ""));
    let has = |flag: char| flags.contains(flag);
    let age = name.bytes().fold(0i64, |sum, byte| sum * 256 + i64::from(byte));
    let mut annotations = json!({});
    if has('m') {
        annotations["cluster.x-k8s.io/delete-machine"] = json!("");
    }
    if has('h') || has('w') {
        annotations[names::CLEANUP_HOOK] = json!("");
    }
    if has('p') {
        annotations["pre-terminate.delete.hook.machine.cluster.x-k8s.io/other"] = json!("");
    }
    let mut conditions = Vec::new();
    if has('w') {
        conditions.push(json!({"type": "Deleting", "status": "True", "reason": "WaitingForPreTerminateHook"}));
    }
    let mut machine = Machine::read(json!({
        "kind": "Machine",
        "metadata": {"name": name, "uid": format!("u-{name}"), "annotations": annotations},
        "status": {
            "conditions": conditions,
            "nodeRef": if has('j') || has('n') { json!(null) } else { json!({"name": name}) },
        },
    }));
    machine.created = at(age);
    machine.failure_domain = domain.to_owned();
    machine.deleting = (has('d') || has('w')).then(|| at(age));
    machine.node = (!has('j')).then(|| name.to_owned());
    machine.outdated = if has('o') { vec!["Version".to_owned()] } else { vec![] };
    let now = Timestamp::UNIX_EPOCH;
    if !has('j') {
        for condition in names::health_conditions(true) {
            let well = if condition == names::ETCD_MEMBER_HEALTHY { !has('e') } else { !has('x') };
            machine.set(now, condition, Some(well), "R", "");
        }
    }
    if has('u') || has('r') {
        machine.set(now, condition::HEALTH_CHECK_SUCCEEDED, Some(false), "R", "");
    }
    if has('r') {
        machine.set(now, condition::OWNER_REMEDIATED, Some(false), "R", "");
    }
    machine
}

pub fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

/// `name` plus flags, comma-separated: `x` not well, `l` learner, `*` leader, `a` alarm; `?` has no name. Ids count from 1.
pub fn members(list: &str) -> Vec<EtcdMember> {
    let names = list.split(',').filter(|text| !text.is_empty());
    names
        .zip(1..)
        .map(|(text, id)| {
            let leader = text.ends_with('*');
            let text = text.trim_end_matches('*').trim();
            let (name, flags) = text.split_once(' ').unwrap_or((text, ""));
            EtcdMember {
                id,
                name: if name == "?" { String::new() } else { name.to_owned() },
                leader,
                learner: flags.contains('l'),
                healthy: !flags.contains('x'),
                message: if flags.contains('x') { "no answer".to_owned() } else { String::new() },
                alarms: if flags.contains('a') { vec!["NOSPACE".to_owned()] } else { vec![] },
                ..EtcdMember::default()
            }
        })
        .collect()
}
