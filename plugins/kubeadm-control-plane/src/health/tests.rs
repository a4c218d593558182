#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
use super::*;
use crate::machine::Conditions;
use crate::observe::Workload;
use crate::plane::{Cluster, ControlPlane};
use crate::testing::{at, machine, members};
use serde_json::{Value, json};

fn node(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"node-role.kubernetes.io/control-plane": ""}},
        "spec": {"taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn pods(node: &str) -> Vec<Value> {
    let pod = |(_, component): (&str, &str)| json!({"metadata": {"name": format!("{component}-{node}")}, "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    names::PODS.into_iter().map(pod).collect()
}

/// A cluster whose machines have healthy Nodes and pods.
fn observed(machines: &[&str], list: &str) -> Observed {
    let machines: Vec<_> = machines.iter().map(|text| machine(text)).collect();
    let nodes: Vec<String> = machines.iter().filter_map(|machine| machine.node.clone()).collect();
    Observed {
        plane: ControlPlane { initialized: true, ..ControlPlane::default() },
        cluster: Cluster {
            infrastructure_provisioned: true,
            server: Some("https://h:6443".into()),
            ..Cluster::default()
        },
        initialized: true,
        now: at(1_000_000),
        machines,
        workload: Workload {
            reach: Reach::Up,
            nodes: nodes.iter().map(|name| node(name)).collect(),
            pods: nodes.iter().flat_map(|name| pods(name)).collect(),
            members: Some(Ok(members(list))),
        },
        ..Observed::default()
    }
}

fn says(observed: &Observed, machine: usize, name: &str) -> (String, String, String) {
    let found = observed.machines[machine].conditions.get(name).unwrap();
    (found.status.as_str().to_owned(), found.reason.clone(), found.message.clone())
}

fn short(observed: &Observed, name: &str) -> String {
    let (status, reason, _) = says(observed, 0, name);
    format!("{status} {reason}")
}

#[test]
fn a_static_pod_is_judged_by_phase_conditions_and_containers() {
    let container =
        |field: &str, what: &str, last: Value| json!({"state": {field: {"reason": what}}, "lastState": last});
    let ready = |status: &str| json!([{"type": "Ready", "status": status}]);
    for (what, status, expected) in [
        ("running and ready", json!({"phase": "Running", "conditions": ready("True")}), "True Running"),
        ("running, probes go on", json!({"phase": "Running", "conditions": ready("False")}), "False Provisioning"),
        (
            "starting",
            json!({"phase": "Running", "containerStatuses": [container("waiting", "ContainerCreating", Value::Null)]}),
            "False Provisioning",
        ),
        (
            "crashing",
            json!({"phase": "Running", "containerStatuses": [container("waiting", "CrashLoopBackOff", json!({"terminated": {"exitCode": 1}}))]}),
            "False Failed",
        ),
        (
            "ended",
            json!({"phase": "Running", "containerStatuses": [container("terminated", "Error", Value::Null)]}),
            "False Failed",
        ),
        ("pending", json!({"phase": "Pending"}), "False Provisioning"),
        ("failed", json!({"phase": "Failed"}), "False Failed"),
        ("succeeded", json!({"phase": "Succeeded"}), "False Failed"),
        ("unknown", json!({"phase": "Unknown"}), "Unknown InspectionFailed"),
    ] {
        let mut observed = observed(&["a"], "a*");
        observed.workload.pods[0]["status"] = status;
        judge(&mut observed);
        assert_eq!(short(&observed, names::API_SERVER_POD_HEALTHY), expected, "{what}");
        assert_eq!(short(&observed, names::SCHEDULER_POD_HEALTHY), "True Running", "{what}");
    }
    let mut gone = observed(&["a"], "a*");
    gone.workload.pods.clear();
    judge(&mut gone);
    assert_eq!(short(&gone, names::ETCD_POD_HEALTHY), "False DoesNotExist");
}

#[test]
fn pods_are_not_believed_where_their_node_is_silent() {
    for (what, patch, pods, labels) in [
        ("fine", json!({}), "True Running", "True Set"),
        (
            "Ready is unknown",
            json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}),
            "Unknown InspectionFailed",
            "True Set",
        ),
        (
            "unreachable",
            json!({"spec": {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]}}),
            "Unknown InspectionFailed",
            "Unknown InspectionFailed",
        ),
        ("no label", json!({"metadata": {"labels": null}}), "True Running", "False NotSet"),
        ("no taint", json!({"spec": null}), "True Running", "False NotSet"),
    ] {
        let mut observed = observed(&["a"], "a*");
        object::merge(&mut observed.workload.nodes[0], &patch);
        judge(&mut observed);
        assert_eq!(short(&observed, names::API_SERVER_POD_HEALTHY), pods, "{what}");
        assert_eq!(short(&observed, names::NODE_LABELS_AND_TAINTS_SET), labels, "{what}");
    }
    let mut untainted = observed(&["a"], "a*");
    untainted.workload.nodes[0]["spec"] = json!({});
    untainted.machines[0].config = Some(json!({"spec": {"initConfiguration": {"nodeRegistration": {"taints": []}}}}));
    judge(&mut untainted);
    assert_eq!(short(&untainted, names::NODE_LABELS_AND_TAINTS_SET), "True Set", "no taints were asked for");
    let mut gone = observed(&["a"], "a*");
    gone.workload.nodes.clear();
    judge(&mut gone);
    assert_eq!(says(&gone, 0, names::SCHEDULER_POD_HEALTHY).2, "Node a does not exist");
    for (flags, expected) in [("a j", "Unknown InspectionFailed"), ("a d", "False Deleting")] {
        let mut observed = observed(&[flags], "a*");
        judge(&mut observed);
        for name in names::health_conditions(true) {
            assert_eq!(short(&observed, name), expected, "{flags} {name}");
        }
    }
}

#[test]
fn a_member_is_judged_by_what_etcd_says_of_it() {
    for (what, list, expected) in [
        ("fine", "a*,b", ("True", "Healthy", "")),
        ("no answer", "a x,b*", ("False", "NotHealthy", "no answer")),
        ("an alarm", "a a,b*", ("False", "NotHealthy", "etcd reports alarms: NOSPACE")),
        ("a learner", "a l,b*", ("False", "NotHealthy", "The member is a learner and does not vote yet")),
        (
            "none",
            "b*,?",
            ("False", "NotHealthy", "etcd has the members b, 2 (without a name yet), and none of this Machine's Node"),
        ),
    ] {
        let mut observed = observed(&["a", "b"], list);
        judge(&mut observed);
        let (status, reason, message) = says(&observed, 0, names::ETCD_MEMBER_HEALTHY);
        assert_eq!((status.as_str(), reason.as_str(), message.as_str()), expected, "{what}");
    }
    let mut silent = observed(&["a"], "");
    silent.workload.members = Some(Err("timed out".into()));
    judge(&mut silent);
    assert_eq!(says(&silent, 0, names::ETCD_MEMBER_HEALTHY).2, "Failed to connect to etcd: timed out");
}

#[test]
fn the_control_plane_tells_what_is_wrong_with_whom() {
    let verdict = |observed: &mut Observed| {
        let findings = judge(observed);
        (findings.etcd, findings.components, findings.members_match)
    };
    let healthy = Some((Some(true), "Healthy", String::new()));
    assert_eq!(verdict(&mut observed(&["a", "b"], "a*,b")), (healthy.clone(), healthy.clone(), true));

    let mut broken = observed(&["a", "b", "c"], "a*,b x,c x");
    broken.workload.pods.retain(|pod| object::name(pod) != "kube-scheduler-a");
    let (etcd, components, _) = verdict(&mut broken);
    assert_eq!(etcd, Some((Some(false), "NotHealthy", "* Machines b, c:\n  * EtcdMemberHealthy: no answer".into())));
    assert_eq!(
        components,
        Some((Some(false), "NotHealthy", "* Machine a:\n  * SchedulerPodHealthy: Pod does not exist".into()))
    );

    let mut stray = observed(&["a"], "a*,z");
    let (etcd, _, matching) = verdict(&mut stray);
    assert_eq!(etcd, Some((Some(false), "NotHealthy", "* etcd member z does not have a corresponding Machine".into())));
    assert!(!matching);
    let mut joining = observed(&["a", "b j"], "a*,z");
    assert!(verdict(&mut joining).2, "it may be the joining machine's");

    let mut stranger = observed(&["a"], "a*");
    stranger.workload.nodes.push(node("z"));
    let (_, components, _) = verdict(&mut stranger);
    assert_eq!(components.unwrap().2, "* Control plane Node z does not have a corresponding Machine");

    let mut external = Observed { external_etcd: true, ..observed(&["a"], "") };
    external.workload.members = None;
    assert_eq!(verdict(&mut external), (None, healthy, true));
    assert!(
        external.machines[0].conditions.get(names::ETCD_MEMBER_HEALTHY).is_some_and(|one| one.reason == "R"),
        "left as it was"
    );
}

#[test]
fn what_cannot_be_seen_is_unknown_but_not_at_once() {
    let cases = [
        ("not initialized", Reach::NotInitialized, false, "InspectionFailed"),
        ("never seen", Reach::Settling(None), false, "ConnectionDown"),
        ("seen before", Reach::Settling(None), true, ""),
        ("down for long", Reach::Down("down".into()), true, "ConnectionDown"),
        ("it answers nonsense", Reach::Failed("denied".into()), true, "InspectionFailed"),
    ];
    for (what, reach, before, expected) in cases {
        let mut observed = observed(&["a"], "a*");
        observed.workload = Workload { reach, ..Workload::default() };
        if before {
            observed.plane.object = json!({"status": {"conditions": [
                {"type": "EtcdClusterHealthy", "status": "True", "reason": "Healthy"},
                {"type": "ControlPlaneComponentsHealthy", "status": "True", "reason": "Healthy"},
            ]}});
        } else {
            observed.machines[0].conditions = Conditions::default();
        }
        let findings = judge(&mut observed);
        let reason = findings.etcd.as_ref().map_or("", |verdict| verdict.1);
        assert_eq!(reason, expected, "{what}");
        let machine = says(&observed, 0, names::API_SERVER_POD_HEALTHY).1;
        assert_eq!(machine, if expected.is_empty() { "R" } else { expected }, "{what}");
    }
}

#[test]
fn what_a_workload_cluster_says_is_told_in_part_when_it_is_long() {
    let mut list = members("a*,b x");
    list[1].message = "\u{fc}".repeat(100_000);
    list.extend((0..5_000).map(|id| capwasm_sdk::EtcdMember { id: 10 + id, ..capwasm_sdk::EtcdMember::default() }));
    let mut observed = Observed {
        initialized: true,
        machines: vec![machine("a"), machine("b")],
        workload: Workload { reach: Reach::Up, members: Some(Ok(list)), ..Workload::default() },
        ..Observed::default()
    };
    let findings = judge(&mut observed);
    let (_, _, message) = findings.etcd.unwrap();
    assert!(message.len() <= LONGEST_OF_ALL, "{}", message.len());
    for machine in &observed.machines {
        let said = &machine.conditions.get(names::ETCD_MEMBER_HEALTHY).unwrap().message;
        assert!(said.len() <= LONGEST, "{}", said.len());
    }
}
