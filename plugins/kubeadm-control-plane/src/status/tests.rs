#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
use super::*;
use crate::observe::{Reach, Workload};
use crate::plane::ControlPlane;
use crate::testing::{at, machine, members};
use capwasm_sdk::object;

fn observed(machines: &[&str], list: &str) -> Observed {
    let certificates = json!({"type": "CertificatesAvailable", "status": "True", "reason": "Available"});
    Observed {
        plane: ControlPlane {
            object: json!({"status": {"conditions": [certificates]}}),
            replicas: 3,
            ..ControlPlane::default()
        },
        initialized: true,
        // Long after what the machines say.
        now: at(1_000_000),
        machines: machines.iter().map(|text| machine(text)).collect(),
        workload: Workload { reach: Reach::Up, members: Some(Ok(members(list))), ..Workload::default() },
        template: Some(json!({})),
        ..Observed::default()
    }
}

fn published(observed: &Observed, findings: &Findings, report: &Report) -> Outcome {
    let mut out = Outcome::default();
    publish(&mut out, observed, findings, report);
    out
}

fn findings() -> Findings {
    Findings { members_match: true, ..Findings::default() }
}

#[test]
fn the_control_plane_is_available_with_certificates_a_quorum_and_one_machine_that_works() {
    for (what, machines, list, expected, message) in [
        ("all is well", &["a", "b", "c"][..], "a*,b,c", Some(true), ""),
        ("one of one", &["a"], "a*", Some(true), ""),
        ("one of one while another joins", &["a", "b j"], "a*", Some(true), ""),
        (
            "one of three is broken",
            &["a", "b", "c xe"],
            "a*,b,c x",
            Some(true),
            "* 2 of 3 etcd members are healthy, at least 2 healthy member required for etcd quorum\n* 2 of 3 Machines have healthy control plane components, at least 1 required",
        ),
        (
            "two members of three are broken",
            &["a", "b e", "c e"],
            "a*,b x,c x",
            Some(false),
            "* 1 of 3 etcd members is healthy, at least 2 healthy member required for etcd quorum",
        ),
        (
            "no components",
            &["a x", "b x", "c x"],
            "a*,b,c",
            Some(false),
            "* There are no Machines with healthy control plane components, at least 1 required",
        ),
        ("a learner does not count", &["a", "b"], "a*,b l", Some(true), ""),
    ] {
        let out = published(&observed(machines, list), &findings(), &Report::default());
        let condition = out.condition_named("Available").unwrap();
        assert_eq!((condition.status, condition.message.as_str()), (expected, message), "{what}");
    }
}

#[test]
fn availability_needs_more_than_machines() {
    let case = |change: &dyn Fn(&mut Observed, &mut Findings)| {
        let (mut observed, mut findings) = (observed(&["a"], "a*"), findings());
        change(&mut observed, &mut findings);
        let out = published(&observed, &findings, &Report::default());
        out.condition_named("Available").map(|one| (one.status, one.reason.clone()))
    };
    let not = Some((Some(false), "NotAvailable".to_owned()));
    assert_eq!(case(&|_, _| {}), Some((Some(true), "Available".into())));
    assert_eq!(case(&|observed, _| observed.initialized = false), not);
    assert_eq!(case(&|observed, _| observed.plane.object = json!({})), not, "no certificates");
    assert_eq!(case(&|_, findings| findings.members_match = false), not);
    let silent = |observed: &mut Observed| observed.workload.members = Some(Err("x".into()));
    assert_eq!(case(&|observed, _| silent(observed)), not, "just initialized: etcd is given time");
    let long_ago = |observed: &mut Observed| {
        silent(observed);
        observed.plane.object = json!({"status": {"conditions": [
            {"type": "Initialized", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z"}]}});
    };
    assert_eq!(case(&|observed, _| long_ago(observed)), Some((None, "InspectionFailed".into())));
    let flicker = |observed: &mut Observed| {
        observed.plane.object = json!({"status": {"conditions": [{"type": "Available", "status": "True"}]}});
        observed.workload.reach = Reach::Settling(None);
    };
    assert_eq!(case(&|observed, _| flicker(observed)), None, "what was last seen stands");
    let external = |observed: &mut Observed| {
        observed.external_etcd = true;
        observed.workload.members = None;
    };
    assert_eq!(case(&|observed, _| external(observed)), Some((Some(true), "Available".into())));
}

#[test]
fn versions_are_those_of_kubelets_the_lowest_first() {
    for (versions, expected) in [
        (vec![], None),
        (vec!["v1.36.0", "v1.9.3", ""], Some("v1.9.3")),
        (vec!["v1.36.0", "v1.36.0-rc.1"], Some("v1.36.0-rc.1")),
        (vec!["v1.36.0+build.1", "v1.37.0"], Some("v1.36.0+build.1")),
    ] {
        let machines = versions
            .iter()
            .map(|version| Machine { kubelet_version: (*version).into(), ..Machine::default() })
            .collect();
        assert_eq!(answer(&Observed { machines, ..Observed::default() }).version.as_deref(), expected);
    }
}

#[test]
fn scaling_and_rolling_out_say_what_blocks_them() {
    let says = |observed: &Observed, report: &Report, name: &str| {
        let out = published(observed, &findings(), report);
        let found = out.condition_named(name).unwrap().clone();
        (found.status, found.message)
    };
    let blocked =
        Report { preflight: Some(Preflight { etcd: Some("a".into()), ..Preflight::default() }), ..Report::default() };
    assert_eq!(
        says(&observed(&["a"], "a*"), &blocked, "ScalingUp"),
        (
            Some(true),
            "Scaling up from 1 to 3 replicas is blocked because:\n* waiting for etcd cluster to become healthy: a"
                .into()
        )
    );
    let four = observed(&["a", "b", "c", "d o"], "a*");
    assert_eq!(
        says(&four, &Report::default(), "ScalingDown"),
        (Some(true), "Scaling down from 4 to 3 replicas".into())
    );
    assert_eq!(
        says(&four, &Report::default(), "RollingOut"),
        (Some(true), "Rolling out 1 not up-to-date replicas\n* Version".into())
    );
    let held = Report { holds: vec!["it waits".into()], ..Report::default() };
    assert_eq!(says(&observed(&["a", "b", "c"], "a*"), &held, "ScalingDown"), (Some(false), "* it waits".into()));
    let unhealthy = observed(&["a u", "b", "c"], "a*");
    assert_eq!(
        says(&unhealthy, &Report::default(), "Remediating").1,
        "Machine a is not healthy (not to be remediated by KubeadmControlPlane)"
    );
    assert_eq!(says(&observed(&["a r", "b", "c"], "a*"), &Report::default(), "Remediating").0, Some(true));
}

#[test]
fn readers_of_v1beta1_find_conditions_with_severity_whose_times_stand_still() {
    let mut observed = observed(&["a o", "b"], "a*,b");
    let first = published(&observed, &findings(), &Report::default()).merged_status();
    let old = &first["deprecated"]["v1beta1"];
    assert_eq!(
        (&old["updatedReplicas"], &old["readyReplicas"], &old["unavailableReplicas"]),
        (&json!(1), &json!(0), &json!(2))
    );
    let find = |status: &Value, name: &str| {
        let list = status["deprecated"]["v1beta1"]["conditions"].as_array().unwrap();
        list.iter().find(|one| one["type"] == name).cloned().unwrap_or_default()
    };
    assert_eq!(find(&first, "Resized")["severity"], "Warning");
    assert_eq!(find(&first, "MachinesSpecUpToDate")["reason"], "RollingUpdateInProgress");
    assert_eq!(find(&first, "Ready")["reason"], "RollingUpdateInProgress");
    let available = find(&first, "Available");
    assert_eq!((available.get("reason"), &available["status"]), (None, &json!("True")));
    object::merge(&mut observed.plane.object, &json!({"status": first}));
    observed.now = at(2_000_000);
    let second = published(&observed, &findings(), &Report::default()).merged_status();
    assert_eq!(second["deprecated"], first["deprecated"], "nothing changed");
}

#[test]
fn the_last_remediation_is_told() {
    let mut observed = observed(&["a", "b"], "a*,b");
    let record =
        |machine: &str, time: &str| json!(format!(r#"{{"machine":"{machine}","timestamp":"{time}","retryCount":1}}"#));
    for (index, time) in ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"].into_iter().enumerate() {
        observed.machines[index].stored["metadata"]["annotations"][names::REMEDIATION_FOR] =
            record(&format!("m{index}"), time);
    }
    let told = |observed: &Observed| {
        published(observed, &findings(), &Report::default()).merged_status()["lastRemediation"].clone()
    };
    assert_eq!(told(&observed), json!({"machine": "m1", "time": "2026-01-02T00:00:00Z", "retryCount": 1}));
    observed.plane.remediating = Some(record("m9", "2026-01-03T00:00:00Z").as_str().unwrap().to_owned());
    assert_eq!(told(&observed)["machine"], "m9");
}
