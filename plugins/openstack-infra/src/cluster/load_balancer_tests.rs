#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
use super::*;
use crate::cluster::status::{BastionStatus, RouterStatus, SubnetStatus};

const USUAL: MonitorSpec = MonitorSpec { delay: 10, timeout: 5, max_retries: 5, max_retries_down: 3 };

fn view(parts: usize) -> View {
    let id = |name: &str| name.to_owned();
    let monitor =
        Monitor { id: id("m"), delay: 10, timeout: 5, max_retries: 5, max_retries_down: 3, ..Monitor::default() };
    View {
        listener: (parts > 0).then(|| Listener { id: id("l"), ..Listener::default() }),
        pool: (parts > 1).then(|| Pool { id: id("p"), ..Pool::default() }),
        monitor: (parts > 2).then_some(monitor),
        is_unwatched: false,
    }
}

#[test]
fn one_thing_is_made_after_the_other_and_then_kept_as_wanted() {
    let none: &[String] = &[];
    let some = ["10.0.0.0/8".to_owned()];
    let slow = MonitorSpec { delay: 30, ..USUAL };
    let unwatched = View { is_unwatched: true, ..view(2) };
    let mut open = view(3);
    open.listener.as_mut().unwrap().allowed_cidrs = some.to_vec();
    let pool = Step::CreatePool { listener: "l".to_owned() };
    let change = Step::ChangeMonitor { id: "m".to_owned(), fields: monitor_fields(&slow) };
    let cidrs = Step::ChangeCidrs { listener: "l".to_owned() };
    let table = [
        ("nothing", view(0), USUAL, Some(none), Step::CreateListener),
        ("a listener", view(1), USUAL, Some(none), pool),
        ("a pool", view(2), USUAL, Some(none), Step::CreateMonitor { pool: "p".to_owned() }),
        ("everything", view(3), USUAL, Some(none), Step::Done),
        ("no monitors here", unwatched, USUAL, Some(none), Step::Done),
        ("another monitor", view(3), slow, Some(none), change),
        ("more is allowed than should be", open.clone(), USUAL, Some(none), cidrs.clone()),
        ("less is allowed than should be", view(3), USUAL, Some(&some), cidrs),
        ("as it should be", open.clone(), USUAL, Some(&some), Step::Done),
        ("no allowed CIDRs here", open, USUAL, None, Step::Done),
    ];
    for (what, view, monitor, cidrs, expected) in table {
        assert_eq!(next(&view, &monitor, cidrs), expected, "{what}");
    }
}

#[test]
fn who_is_allowed_includes_the_cluster_itself() {
    let status = Status {
        network: Some(NetworkStatus {
            subnets: vec![SubnetStatus { cidr: "10.6.0.0/24".to_owned(), ..SubnetStatus::default() }],
            ..NetworkStatus::default()
        }),
        router: Some(RouterStatus { ips: vec!["203.0.113.7".to_owned()], ..RouterStatus::default() }),
        bastion: Some(BastionStatus {
            floating_ip: Some("203.0.113.9".to_owned()),
            ip: Some("10.6.0.9".to_owned()),
            ..BastionStatus::default()
        }),
        ..Status::default()
    };
    let spec = |cidrs: &[&str]| LoadBalancerSpec {
        allowed_cidrs: cidrs.iter().map(|&cidr| cidr.to_owned()).collect(),
        ..LoadBalancerSpec::default()
    };
    assert_eq!(canonical_cidrs(&spec(&[]), &status), (vec![], vec![]), "everybody");
    let (cidrs, refused) = canonical_cidrs(&spec(&["192.0.2.5", "192.0.2.5/32", "x", "fd00::/64"]), &status);
    assert_eq!(cidrs, ["10.6.0.0/24", "10.6.0.9/32", "192.0.2.5/32", "203.0.113.7/32", "203.0.113.9/32"]);
    assert_eq!(refused, ["x", "fd00::/64"]);
}
