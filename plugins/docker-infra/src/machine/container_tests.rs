#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
use super::*;
use crate::config::Configuration;
use crate::family::Families;
use crate::kinds::{CONTROL_PLANE_LABEL, Mount, OBJECT_LABEL, UID_LABEL};
use capwasm_sdk::Fault;

fn container(state: &str, uid: &str) -> Container {
    serde_json::from_value(json!({
        "Id": "id", "State": {"Status": state, "ExitCode": 3}, "Config": {"Labels": {UID_LABEL: uid, OBJECT_LABEL: "DockerMachine/ns/m"}},
    }))
    .unwrap()
}

fn subject<'a>(object: &'a Value, machine: Value, privileged: bool) -> Subject<'a> {
    Subject {
        object,
        spec: object::spec(object).unwrap(),
        machine,
        cluster: "quick".to_owned(),
        name: "quick-1".to_owned(),
        families: Families::default(),
        timeout: 300,
        configuration: Configuration { privileged, ..Configuration::default() },
    }
}

#[test]
fn the_next_act_follows_from_what_the_engine_shows() {
    let fresh = json!({"metadata": {"uid": "u"}});
    let begun = json!({"metadata": {"uid": "u"}, "status": {"bootstrap": {"startedAt": "x"}}});
    let provisioned = json!({"metadata": {"uid": "u"}, "status": {"initialization": {"provisioned": true}}});
    let moved = json!({"kind": "DockerMachine", "metadata": {"uid": "new", "namespace": "ns", "name": "m"}, "spec": {"providerID": "docker:////quick-1"}});
    let claimed = json!({"kind": "DockerMachine", "metadata": {"uid": "new", "namespace": "other", "name": "m"}, "spec": {"providerID": "docker:////quick-1"}});
    let refused = |reason: &str| Err(reason.to_owned());
    let table = [
        ("none", &fresh, None, Ok(Act::Create)),
        ("gone while it booted", &begun, None, refused("ContainerLost")),
        ("gone after it was a node", &provisioned, None, refused("ContainerLost")),
        ("gone after a move", &moved, None, refused("ContainerLost")),
        ("never ran", &fresh, Some(container("created", "u")), Ok(Act::Start("id".to_owned()))),
        ("runs", &fresh, Some(container("running", "u")), Ok(Act::Use)),
        ("ended", &fresh, Some(container("exited", "u")), Ok(Act::Restart { id: "id".to_owned(), exit_code: 3 })),
        ("restarts by itself", &fresh, Some(container("restarting", "u")), Ok(Act::Wait("restarting".to_owned()))),
        ("paused", &fresh, Some(container("paused", "u")), refused("ContainerNotRunning")),
        ("another's", &fresh, Some(container("running", "v")), refused("ContainerNameTaken")),
        (
            "of the name that another object claims",
            &claimed,
            Some(container("running", "u")),
            refused("ContainerNameTaken"),
        ),
        ("moved with its object", &moved, Some(container("running", "u")), Ok(Act::Use)),
    ];
    for (what, object, found, expected) in table {
        let act = match decide(&subject(object, json!({}), true), found.as_ref()) {
            Act::Refuse(problem) => {
                let expected = if what == "paused" { Fault::Transient } else { Fault::Terminal };
                assert_eq!(problem.fault, expected, "{what}");
                Err(problem.reason)
            }
            act => Ok(act),
        };
        assert_eq!(act, expected, "{what}");
    }
}

#[test]
fn a_real_node_gets_what_systemd_needs_and_a_plain_one_does_not() {
    let object = json!({"metadata": {"uid": "u"}});
    let machine = json!({"metadata": {"labels": {CONTROL_PLANE_LABEL: ""}}, "spec": {"failureDomain": "fd1"}});
    let real = body(&subject(&object, machine.clone(), true), "image");
    assert_eq!(real["HostConfig"]["Privileged"], true);
    assert_eq!(real["HostConfig"]["Tmpfs"], json!({"/tmp": "", "/run": ""}));
    assert_eq!(real["HostConfig"]["Mounts"][0]["Target"], "/lib/modules");
    assert_eq!(real["Volumes"], json!({"/var": {}}));
    assert_eq!(
        real["Labels"],
        json!({CLUSTER_LABEL: "quick", ROLE_LABEL: "control-plane", UID_LABEL: "u", OBJECT_LABEL: "//", FAILURE_DOMAIN_LABEL: "fd1"})
    );
    assert_eq!(real["HostConfig"]["PortBindings"]["6443/tcp"][0]["HostIp"], "127.0.0.1");
    let plain = body(&subject(&object, json!({}), false), "image");
    for absent in [
        "/HostConfig/PortBindings",
        "/HostConfig/Privileged",
        "/HostConfig/Tmpfs",
        "/Volumes",
        "/Labels/capwasm.dev~1failure-domain",
    ] {
        assert_eq!(plain.pointer(absent), None, "{absent}");
    }
    assert_eq!(plain["Labels"][ROLE_LABEL], "worker");
    assert_eq!(plain["HostConfig"]["Mounts"], json!([]));
}

#[test]
fn what_a_simulated_node_should_do_wrong_is_passed_on() {
    let object = json!({"metadata": {"uid": "u", "annotations": {SIMULATE: "never-join"}}});
    let body = body(&subject(&object, json!({}), false), "image");
    assert_eq!(body["Labels"][SIMULATE], "never-join");
    assert_eq!(body["Env"][1], "CAPWASM_SIMULATE=never-join");
}

#[test]
fn a_pools_machine_is_of_the_version_and_in_the_domain_that_it_was_made_for() {
    let object = json!({"metadata": {"uid": "u", "annotations": {crate::kinds::VERSION: "v1.35.0", FAILURE_DOMAIN_LABEL: "fd2"}}});
    let subject = subject(&object, json!({"spec": {"version": "v1.36.0"}}), true);
    assert_eq!(image(&subject).unwrap(), "kindest/node:v1.35.0");
    assert_eq!(body(&subject, "image")["Labels"][FAILURE_DOMAIN_LABEL], "fd2");
}

#[test]
fn mounts_are_passed_as_paths_that_cannot_carry_options() {
    let object = json!({"metadata": {"uid": "u"}});
    let mut subject = subject(&object, json!({}), false);
    subject.spec.extra_mounts =
        vec![Mount { container_path: "/c:rw".to_owned(), host_path: "/h".to_owned(), read_only: true }];
    assert_eq!(
        body(&subject, "image")["HostConfig"]["Mounts"],
        json!([{"Type": "bind", "Source": "/h", "Target": "/c:rw", "ReadOnly": true}])
    );
}

#[test]
fn the_image_is_the_objects_own_or_follows_the_version() {
    let object = json!({});
    let versioned = json!({"spec": {"version": "v1.36.0"}});
    assert_eq!(image(&subject(&object, versioned.clone(), true)).unwrap(), "kindest/node:v1.36.0");
    assert_eq!(image(&subject(&object, json!({}), true)).unwrap_err().fault, Fault::Invalid);
    let custom = json!({"spec": {"customImage": "mine:1"}});
    assert_eq!(image(&subject(&custom, versioned, true)).unwrap(), "mine:1");
}
