//! What holds for any etcd.

use std::collections::BTreeSet;

use capwasm_etcd::message::{AlarmAction, AlarmMember, AlarmType, MemberListResponse};
use capwasm_etcd::{Client, Code, Error};

use crate::NAMES;
use crate::cluster::{Cluster, Keys, connect, handshake, member, until};

/// Id and client of each member, when all take the same one for the leader: that one first.
async fn led(cluster: &dyn Cluster, names: &[&'static str]) -> Vec<(&'static str, u64, Client)> {
    until("all members know the leader", async || {
        let mut members = Vec::new();
        let mut leaders = BTreeSet::new();
        for name in names {
            let client = connect(cluster, name).await?;
            let status = client.status().await.ok()?;
            leaders.insert(status.leader);
            members.push((*name, status.header?.member_id, client));
        }
        let leader = *leaders.first()?;
        let at = members.iter().position(|(_, id, _)| *id == leader)?;
        members.swap(0, at);
        (leaders.len() == 1).then_some(members)
    })
    .await
}

/// Changes are refused until members have been connected for some time, and while somebody is being elected.
async fn agreed<T>(change: impl AsyncFn() -> Result<T, Error>) -> T {
    until("members agree to a change", async || match change().await {
        Ok(done) => Some(done),
        Err(error) if !error.is_answer() => None,
        Err(error) => panic!("{error}"),
    })
    .await
}

fn names(list: &MemberListResponse) -> BTreeSet<&str> {
    list.members.iter().map(|member| member.name.as_str()).collect()
}

pub async fn members_agree_and_are_told_apart(cluster: &dyn Cluster) {
    let members = led(cluster, &NAMES).await;
    let ids: BTreeSet<u64> = members.iter().map(|(_, id, _)| *id).collect();
    assert_eq!(ids.len(), 3);
    let mut clusters = BTreeSet::new();
    for (name, id, client) in &members {
        let status = client.status().await.unwrap();
        assert!(!status.version.is_empty() && !status.is_learner && status.errors.is_empty(), "{status:?}");
        for linearizable in [false, true] {
            let list = client.member_list(linearizable).await.unwrap();
            clusters.insert(list.header.unwrap().cluster_id);
            assert_eq!(names(&list), NAMES.into());
            assert_eq!(list.members.iter().map(|member| member.id).collect::<BTreeSet<_>>(), ids);
            let own = list.members.iter().find(|member| member.id == *id).unwrap();
            assert_eq!((own.name.as_str(), own.is_learner), (*name, false));
            assert!(own.peer_urls.len() == 1 && own.client_urls.len() == 1, "{own:?}");
        }
        assert_eq!(client.alarms().await.unwrap().alarms, []);
    }
    let (raised, by) = (&members[2], &members[1].2);
    let alarm = AlarmMember { member_id: raised.1, alarm: AlarmType::Nospace.into() };
    by.alarm(AlarmAction::Activate, alarm).await.unwrap();
    assert_eq!(members[0].2.alarms().await.unwrap().alarms, [alarm]);
    let told = until("the alarm is a part of the status", async || {
        let errors = raised.2.status().await.unwrap().errors;
        (!errors.is_empty()).then_some(errors)
    });
    assert_eq!(told.await, [format!("memberID:{} alarm:NOSPACE ", raised.1)]);
    by.alarm(AlarmAction::Deactivate, alarm).await.unwrap();
    assert_eq!(members[0].2.alarms().await.unwrap().alarms, []);
    assert_eq!(clusters.len(), 1, "one cluster");
}

pub async fn the_leader_moves(cluster: &dyn Cluster) {
    let members = led(cluster, &NAMES).await;
    let [(_, leader, first), (_, second, other), _] = members.as_slice() else { panic!("three members") };
    let refused = other.move_leader(*second).await.unwrap_err();
    assert!(refused.code() == Code::FailedPrecondition && refused.is_answer(), "a follower: {refused}");
    let refused = first.move_leader(7).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "to nobody: {refused}");
    first.move_leader(*second).await.unwrap();
    let members = led(cluster, &NAMES).await;
    assert_eq!(members[0].1, *second, "not {leader:x}");
}

pub async fn learners_come_and_go(cluster: &dyn Cluster) {
    let members = led(cluster, &NAMES).await;
    let url = "https://127.0.0.1:9".to_owned();
    let added = agreed(async || members[0].2.member_add(vec![url.clone()], true).await).await;
    let learner = added.member.unwrap();
    assert!(learner.is_learner && learner.name.is_empty() && added.members.len() == 4, "{learner:?}");
    for refused in [
        members[0].2.member_add(vec![url], true).await.map(drop).unwrap_err(),
        members[0].2.member_add(vec!["https://127.0.0.1:8".to_owned()], true).await.map(drop).unwrap_err(),
        members[0].2.member_promote(learner.id).await.map(drop).unwrap_err(),
        members[0].2.member_promote(members[1].1).await.map(drop).unwrap_err(),
    ] {
        assert!(refused.code() == Code::FailedPrecondition && refused.is_answer(), "{refused}");
    }
    let left = members[1].2.member_remove(learner.id).await.unwrap();
    assert_eq!(left.members.len(), 3);
    let gone = members[1].2.member_remove(learner.id).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound, "{gone}");
}

pub async fn members_die(cluster: &dyn Cluster) {
    let members = led(cluster, &NAMES).await;
    let dead = members[2].0;
    cluster.kill(dead).await;
    assert!(connect(cluster, dead).await.is_none(), "a dead member does not answer");
    // The connection that there was breaks, and says so as such.
    let broken = until("the connection breaks", async || members[2].2.status().await.err()).await;
    assert!(!broken.is_answer(), "{broken}");
    let members = led(cluster, &[members[0].0, members[1].0]).await;
    let list = members[1].2.member_list(false).await.unwrap();
    assert_eq!(names(&list), NAMES.into(), "it is still a member");
    let dead_id = list.members.iter().find(|member| member.name == dead).unwrap().id;

    // Two of three answer: one that does must stay, and the dead one may go.
    let kept = members[0].2.member_remove(members[1].1).await.expect_err("a member that the majority needs stays");
    assert!(!kept.is_answer(), "another one might know better: {kept}");
    agreed(async || members[0].2.member_remove(dead_id).await).await;
    let list = members[0].2.member_list(true).await.unwrap();
    assert_eq!(list.members.len(), 2);

    // One of two answers: nothing is decided any more.
    let (last, follower) = (&members[0], &members[1]);
    cluster.kill(follower.0).await;
    until("there is no leader without a majority", async || {
        let status = last.2.status().await.ok()?;
        (status.leader == 0).then_some(status.errors).filter(|errors| !errors.is_empty())
    })
    .await;
    assert_eq!(last.2.member_list(false).await.unwrap().members.len(), 2, "what it knows it still says");
    let (alarms, removal) = tokio::join!(last.2.alarms(), last.2.member_remove(follower.1));
    assert!(!alarms.unwrap_err().is_answer());
    assert!(!removal.unwrap_err().is_answer());
}

pub async fn the_leader_is_removed(cluster: &dyn Cluster) {
    let members = led(cluster, &NAMES).await;
    // Through a follower, which passes it on.
    let (leader, id) = (members[0].0, members[0].1);
    agreed(async || members[1].2.member_remove(id).await).await;
    let left = led(cluster, &[members[1].0, members[2].0]).await;
    assert!(left.iter().all(|(_, other, _)| *other != id));
    until("who was taken out does not answer", async || connect(cluster, leader).await.is_none().then_some(())).await;
    assert_eq!(left[0].2.member_list(true).await.unwrap().members.len(), 2);
    let gone = left[0].2.member_remove(id).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
}

pub async fn strangers_are_refused(cluster: &dyn Cluster) {
    let address = cluster.address(NAMES[0]);
    member(cluster, NAMES[0]).await.status().await.unwrap();
    let stranger = Keys::new();
    // A member of another authority, a member of another name, and a client of another authority. With TLS 1.3 the last
    // is told after its own handshake, at its first request.
    handshake(address, NAMES[0], &stranger.client()).await.expect_err("who is that?");
    handshake(address, "node-x", &cluster.keys().client()).await.expect_err("not whom we wanted");
    let credentials = stranger.trusting(&cluster.keys().0.certificate);
    if let Ok(client) = handshake(address, NAMES[0], &credentials).await {
        let refused = client.status().await.expect_err("who are we?");
        assert!(!refused.is_answer(), "{refused}");
    }
}
