#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
use super::*;
use crate::observe::Workload;
use crate::plane::{Cluster, ControlPlane};
use crate::testing::{at, machine, members};
use serde_json::json;

fn observed(machines: &[&str], list: &str) -> Observed {
    Observed {
        machines: machines.iter().map(|text| machine(text)).collect(),
        initialized: true,
        now: at(100_000),
        workload: Workload { reach: Reach::Up, members: Some(Ok(members(list))), ..Workload::default() },
        ..Observed::default()
    }
}

fn text(step: Step) -> String {
    match step {
        Step::Nothing => "nothing".into(),
        Step::Hold { machine, reason, .. } => format!("{machine}: {reason}"),
        Step::Delete { machine, successor, record } => {
            let leads = successor.map_or(String::new(), |id| format!(", {id} leads"));
            format!("delete {machine} (retry {}){leads}", record.retry_count)
        }
    }
}

/// Quorum and components are kept, one machine at a time.
#[test]
fn an_unhealthy_machine_is_deleted_only_where_that_is_safe() {
    for (what, machines, list, expected) in [
        ("nobody is unhealthy", &["a", "b", "c"][..], "a*,b,c", "nothing"),
        ("unhealthy, but nobody asks us", &["a", "b", "c u"], "a*,b,c", "nothing"),
        ("one of three", &["a", "b", "c rxe"], "a*,b,c x", "delete c (retry 0)"),
        ("one of three that leads", &["a", "b", "c rx"], "a,b,c*", "delete c (retry 0), 2 leads"),
        ("one of three, another one broken", &["a", "b xe", "c rxe"], "a*,b x,c x", "c: CannotBeRemediated"),
        ("two of three", &["a", "b rxe", "c rxe"], "a*,b x,c x", "b: CannotBeRemediated"),
        ("two of five", &["a", "b", "c", "d rxe", "e rxe"], "a*,b,c,d x,e x", "delete d (retry 0)"),
        ("the only one", &["a r"], "a*", "a: CannotBeRemediated"),
        ("another one joins", &["a", "b j", "c r"], "a*,c", "c: RemediationDeferred"),
        ("another one that joins is unhealthy, too", &["a", "b jr", "c r"], "a*,c", "delete b (retry 0)"),
        ("another one is going", &["a", "b d", "c r"], "a*,b,c", "c: RemediationDeferred"),
        ("it is going", &["a", "b", "c rd"], "a*,b,c", "nothing"),
        ("it never got a Node", &["a", "b", "c jr"], "a*,b", "delete c (retry 0)"),
        ("no Node, its member votes, another one is broken", &["a", "b", "c jr"], "a*,b x,c", "c: CannotBeRemediated"),
        ("no components would be left", &["a x", "b x", "c r"], "a*,b,c", "c: CannotBeRemediated"),
        ("nobody else could lead", &["a u", "b u", "c r"], "a,b,c*", "c: CannotBeRemediated"),
    ] {
        assert_eq!(text(decide(&observed(machines, list))), expected, "{what}");
    }
}

#[test]
fn the_most_broken_goes_first() {
    let first = |machines: &[&str]| text(decide(&observed(machines, "a*,b,c,d,e")));
    assert_eq!(first(&["a", "b", "c", "d r", "e rj"]), "delete e (retry 0)", "no Node");
    assert_eq!(first(&["a", "b", "c", "d rx", "e re"]), "delete e (retry 0)", "etcd");
    assert_eq!(first(&["a", "b", "c", "d r", "e rx"]), "delete e (retry 0)", "components");
    assert_eq!(first(&["a", "b", "c", "d r", "e r"]), "delete d (retry 0)", "age");
    let mut marked = observed(&["a", "b", "c", "d rxe", "e r"], "a*,b,c,d,e");
    marked.machines[4].stored["metadata"]["annotations"][names::REMEDIATE_MACHINE] = json!("");
    assert_eq!(text(decide(&marked)), "delete e (retry 0)", "what a person marked");
}

#[test]
fn before_initialization_the_sole_machine_is_replaced() {
    let uninitialized = Observed { initialized: false, ..observed(&["a jr"], "") };
    assert_eq!(text(decide(&uninitialized)), "delete a (retry 0)");
}

#[test]
fn without_etcd_of_our_own_only_components_count() {
    let external = |machines: &[&str]| {
        let mut observed = Observed { external_etcd: true, ..observed(machines, "") };
        observed.workload.members = None;
        text(decide(&observed))
    };
    assert_eq!(external(&["a", "b r"]), "delete b (retry 0)");
    assert_eq!(external(&["a x", "b r"]), "b: CannotBeRemediated");
}

#[test]
fn a_topology_on_its_way_defers_and_an_unknown_membership_forbids() {
    let mut topology = observed(&["a", "b", "c r"], "a*,b,c");
    topology.cluster = Cluster { topology_version: Some("v9.0.0".into()), ..Cluster::default() };
    assert_eq!(text(decide(&topology)), "c: RemediationDeferred");
    let mut unknown = observed(&["a", "b", "c r"], "");
    unknown.workload.members = Some(Err("no answer".into()));
    assert_eq!(text(decide(&unknown)), "c: CannotBeRemediated");
    let mut down = observed(&["a", "b", "c r"], "a*,b,c");
    down.workload.reach = Reach::Down(String::new());
    assert_eq!(text(decide(&down)), "c: CannotBeRemediated");
}

#[test]
fn retries_are_counted_and_limited() {
    let limits = |max_retry, retry_period| Remediation {
        max_retry,
        retry_period: Duration::from_secs(retry_period),
        min_healthy_period: Duration::from_secs(3600),
    };
    let none = limits(None, 0);
    for (what, limits, ago, count, expected) in [
        ("the first replacement", none, 60, 0, "delete c (retry 1)"),
        ("no limit", none, 60, 100, "delete c (retry 101)"),
        ("somebody wrote nonsense", none, 60, i64::MAX, "delete c (retry 9223372036854775807)"),
        ("it was well for an hour", limits(Some(1), 600), 3600, 5, "delete c (retry 0)"),
        ("the limit", limits(Some(3), 0), 60, 3, "c: CannotBeRemediated"),
        ("below the limit", limits(Some(3), 0), 60, 2, "delete c (retry 3)"),
        ("too soon", limits(None, 600), 599, 0, "c: RemediationDeferred"),
        ("soon enough", limits(None, 600), 600, 0, "delete c (retry 1)"),
    ] {
        let mut observed = observed(&["a", "b", "c r"], "a*,b,c");
        observed.plane = ControlPlane { remediation: limits, ..ControlPlane::default() };
        let last = Record { machine: "m0".into(), timestamp: format!("{}", at(100_000 - ago)), retry_count: count };
        observed.machines[2].stored["metadata"]["annotations"][names::REMEDIATION_FOR] = json!(last.write());
        let step = decide(&observed);
        if let Step::Hold { retry, .. } = &step {
            assert!(retry.is_some(), "{what}: time will tell");
        }
        assert_eq!(text(step), expected, "{what}");
    }
}

#[test]
fn one_remediation_waits_for_the_replacement_of_another() {
    let record =
        |machine: &str, when| Record { machine: machine.into(), timestamp: format!("{}", at(when)), retry_count: 2 };
    for (what, replicas, record, expected) in [
        ("another one is under way", 4, record("gone", 99_000), "nothing"),
        ("its replacement is there", 4, record("gone", 1), "delete c (retry 0)"),
        ("its own deletion was lost", 4, record("c", 99_000), "delete c (retry 2)"),
        ("its own deletion was lost, nobody is missed", 3, record("c", 99_000), "delete c (retry 2)"),
        ("no replacement will come", 3, record("gone", 99_000), "delete c (retry 0)"),
        ("it is well again", 3, record("b", 99_000), "delete c (retry 0)"),
    ] {
        let mut observed = observed(&["a", "b", "c r"], "a*,b,c");
        observed.plane.replicas = replicas;
        observed.plane.remediating = Some(record.write());
        assert_eq!(text(decide(&observed)), expected, "{what}");
    }
}

#[test]
fn records_have_upstreams_shape() {
    let text = r#"{"machine":"m1","timestamp":"2026-01-01T00:00:00Z","retryCount":3}"#;
    let record = Record::read(text).unwrap();
    assert_eq!(record, Record { machine: "m1".into(), timestamp: "2026-01-01T00:00:00Z".into(), retry_count: 3 });
    assert_eq!(record.write(), text);
    assert_eq!(Record::read("nonsense"), None);
}
