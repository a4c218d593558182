use super::{MOST_PASSES, Trouble, World, troubles};
use capwasm_sdk::test::{TestHost, deprovision_machine, provision_machine};
use capwasm_sdk::{AddressKind, Fault, MachineAnswer, ObjectRef, Place, Problem, Refusal, Refused, object};
use serde_json::{Value, json};

use crate::Docker;

const DATA: &str = "#cloud-config\nwrite_files:\n- {path: /run/kubeadm/kubeadm.yaml, content: x}\nruncmd:\n- echo before\n- kubeadm init --config /run/kubeadm/kubeadm.yaml  && echo success > /run/cluster-api/bootstrap-success.complete\n";
const COMMANDS: [&str; 4] = [
    "cp -a /capwasm/files/. /",
    "echo before",
    "kubeadm init --config /run/kubeadm/kubeadm.yaml  && echo success > /run/cluster-api/bootstrap-success.complete",
    "test -f /run/cluster-api/bootstrap-success.complete",
];

fn docker_machine() -> Value {
    json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DockerMachine", "metadata": {"name": "cp-1", "namespace": "default", "uid": "u1"}, "spec": {}})
}

fn host(privileged: bool) -> TestHost {
    let machine = json!({
        "metadata": {"name": "quick-cp-1", "labels": {"cluster.x-k8s.io/control-plane": ""}},
        "spec": {"clusterName": "quick", "version": "v1.36.0", "failureDomain": "fd1"},
    });
    TestHost::new().configuration(json!({"privileged": privileged})).related("machine", machine)
}

/// In the network that the cluster's load balancer needs as well.
fn in_network(host: TestHost) -> World {
    let world = World::new(host, docker_machine());
    world.engine.borrow_mut().networks.insert("kind".to_owned(), json!({}));
    world
}

pub fn world_of(privileged: bool) -> World {
    in_network(host(privileged).bootstrap_data("value", DATA))
}

fn world() -> World {
    world_of(false)
}

/// One pass and the host's write-back of its answer; none when the caller crashed.
pub fn pass(world: &mut World) -> Option<Result<MachineAnswer, Problem>> {
    let (result, _) = world.pass(|host, object| provision_machine::<Docker>(host, object))?;
    if let Ok(answer) = &result {
        if let Some(id) = &answer.provider_id {
            object::merge(&mut world.object, &json!({"spec": {"providerID": id}}));
        }
        if answer.provisioned {
            object::merge(&mut world.object, &json!({"status": {"initialization": {"provisioned": true}}}));
        }
    }
    world.engine.borrow_mut().tick();
    for name in world.engine.borrow_mut().nodes.drain(..) {
        world.host.put(Place::Workload, json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}));
    }
    Some(result)
}

fn settle(world: &mut World) -> MachineAnswer {
    for _ in 0..MOST_PASSES {
        if let Some(Ok(answer)) = pass(world)
            && answer.provisioned
        {
            return answer;
        }
    }
    panic!("not provisioned after {MOST_PASSES} passes: {:#?}\n{}", world.requests(), world.object);
}

fn assert_provisioned_once(world: &World, what: &str) {
    let engine = world.engine.borrow();
    assert_eq!(engine.ran, COMMANDS, "{what}: every command once, in order");
    assert_eq!(engine.containers.len(), 1, "{what}: one container");
    let node = world.host.objects(Place::Workload).remove(0);
    assert_eq!(node["spec"]["providerID"], "docker:////quick-cp-1", "{what}");
}

/// R4b: one server per machine, provisioned only once it is up.
#[test]
fn a_machine_becomes_a_node_with_few_requests() {
    let mut world = world();
    let answer = settle(&mut world);
    assert_provisioned_once(&world, "no trouble");
    assert_eq!(answer.provider_id.as_deref(), Some("docker:////quick-cp-1"));
    assert_eq!(answer.failure_domain.as_deref(), Some("fd1"));
    let internal = answer.addresses.iter().find(|address| address.kind == AddressKind::InternalIp).unwrap();
    assert_eq!(internal.value, "172.18.0.2");
    assert!(
        object::is_true(&world.object, "ContainerProvisioned")
            && object::is_true(&world.object, "BootstrapExecSucceeded")
    );
    assert_eq!(world.object["status"].get("bootstrap"), None, "hints are gone");
    assert!(world.requests().len() <= 40, "{:#?}", world.requests());
    let before = world.requests().len();
    assert!(pass(&mut world).unwrap().unwrap().provisioned);
    assert_eq!(world.requests()[before..], ["GET /containers/quick-cp-1/json"], "a finished machine costs one request");
}

#[test]
fn identity_and_address_are_told_as_soon_as_the_container_runs() {
    let mut world = world();
    let first = pass(&mut world).unwrap().unwrap();
    assert!(!first.provisioned);
    assert_eq!(first.provider_id.as_deref(), Some("docker:////quick-cp-1"));
    assert!(first.addresses.iter().any(|address| address.value == "172.18.0.2"));
}

#[test]
fn a_shell_that_a_person_leaves_open_delays_the_bootstrap_and_does_not_stop_it() {
    let mut world = world();
    pass(&mut world);
    let begun = world.engine.borrow().ran.len();
    world.engine.borrow_mut().open_shell("quick-cp-1");
    pass(&mut world);
    assert_eq!(world.engine.borrow().ran.len(), begun, "it may be the next step's");
    world.host.set_now_ms(1_700_000_000_000 + 6_000);
    settle(&mut world);
    assert_provisioned_once(&world, "a shell is open");
}

#[test]
fn bootstrap_data_that_changes_on_the_way_mixes_no_steps() {
    let mut world = world();
    pass(&mut world);
    pass(&mut world);
    let ran = world.engine.borrow().ran.clone();
    let changed = DATA.replace("- echo before\n", "- echo new\n- echo before\n");
    world.host = std::mem::take(&mut world.host).bootstrap_data("value", changed.as_str());
    let problem = pass(&mut world).unwrap().unwrap_err();
    assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Terminal, "BootstrapDataChanged"));
    assert_eq!(world.engine.borrow().ran, ran);
    world.host = std::mem::take(&mut world.host).bootstrap_data("value", DATA);
    settle(&mut world);
    assert_provisioned_once(&world, "it is what it was");
}

/// C10, for machines: a crash after each external call and a rerun yield one set of resources.
#[test]
fn a_crash_after_any_request_leads_to_one_container_and_no_command_twice() {
    for at in 1.. {
        let mut world = world();
        world.trouble(at, Trouble::Crash);
        settle(&mut world);
        if !world.is_over() {
            assert!(at > 20, "the crashes reached the end");
            break;
        }
        assert_provisioned_once(&world, &format!("crash after request {at}"));
    }
}

#[test]
fn two_crashes_are_as_good_as_one() {
    for (first, second) in (1..20).flat_map(|first| [1, 2, 4, 7].map(|second| (first, second))) {
        let mut world = world();
        world.trouble(first, Trouble::Crash);
        while !world.is_over() {
            pass(&mut world);
        }
        world.trouble(second, Trouble::Crash);
        settle(&mut world);
        assert_provisioned_once(&world, &format!("crashes after requests {first} and {second}"));
    }
}

#[test]
fn no_answer_of_the_engine_does_more_than_delay() {
    for trouble in troubles() {
        for at in 1..24 {
            let mut world = world();
            world.trouble(at, trouble.clone());
            // That there is no container, or no process, is believed for as long as it is said.
            let is_lie = matches!(trouble, Trouble::Answer(404, _));
            let mut problems = 0;
            for _ in 0..MOST_PASSES {
                match pass(&mut world).unwrap() {
                    Ok(answer) if answer.provisioned => break,
                    Ok(_) => {}
                    Err(problem)
                        if is_lie && ["ContainerLost", "BootstrapInterrupted"].contains(&problem.reason.as_str()) => {}
                    Err(problem) => {
                        assert!(
                            matches!(problem.fault, Fault::Transient | Fault::Waiting),
                            "{trouble:?} at {at}: {problem}"
                        );
                        problems += usize::from(problem.fault == Fault::Transient);
                    }
                }
            }
            assert!(problems <= 1, "{trouble:?} at {at}");
            assert_provisioned_once(&world, &format!("{trouble:?} at {at}"));
        }
    }
}

#[test]
fn a_lost_status_is_rebuilt() {
    let mut world = world();
    for _ in 0..MOST_PASSES {
        object::merge(&mut world.object, &json!({"status": null}));
        if pass(&mut world).unwrap().is_ok_and(|answer| answer.provisioned) {
            assert_provisioned_once(&world, "status lost before every pass");
            return;
        }
    }
    panic!("not provisioned");
}

#[test]
fn a_real_node_is_asked_whether_it_has_booted_before_anything_runs() {
    let mut world = in_network(host(true).bootstrap_data("value", DATA));
    world.engine.borrow_mut().boots_after = 3;
    for _ in 0..3 {
        assert!(!pass(&mut world).unwrap().unwrap().provisioned);
        assert!(world.engine.borrow().ran.is_empty());
    }
    settle(&mut world);
    let engine = world.engine.borrow();
    assert_eq!(engine.ran.len(), COMMANDS.len());
    assert!(engine.ran[2].contains("--ignore-preflight-errors=SystemVerification"));
    assert_eq!(engine.containers["quick-cp-1"].body["HostConfig"]["Privileged"], true);
    assert!(engine.images.contains("kindest/node:v1.36.0"));
}

/// R4a: no data Secret, no server.
#[test]
fn nothing_is_made_without_bootstrap_data() {
    let mut world = in_network(host(false));
    let problem = pass(&mut world).unwrap().unwrap_err();
    assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Waiting, "WaitingForBootstrapData"));
    assert_eq!(world.requests(), ["GET /containers/quick-cp-1/json"]);
    assert_eq!(object::condition(&world.object, "ContainerProvisioned").unwrap()["reason"], "WaitingForBootstrapData");
}

#[test]
fn nothing_is_made_from_bootstrap_data_that_makes_no_sense() {
    for (what, host) in [
        ("malformed", host(false).bootstrap_data("value", "runcmd: {")),
        ("traversal", host(false).bootstrap_data("value", "write_files: [{path: /../x}]")),
        ("ignition", host(false).bootstrap_data("value", "{}").bootstrap_data("format", "ignition")),
    ] {
        let mut world = in_network(host);
        assert_eq!(pass(&mut world).unwrap().unwrap_err().fault, Fault::Invalid, "{what}");
        assert!(world.engine.borrow().containers.is_empty(), "{what}");
    }
}

#[test]
fn a_failed_command_ends_the_bootstrap_and_shows_its_log() {
    let mut world = world();
    world.engine.borrow_mut().fails = Some("kubeadm");
    let problem = (0..MOST_PASSES).find_map(|_| pass(&mut world).unwrap().err()).unwrap();
    assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Terminal, "BootstrapFailed"));
    assert!(problem.message.contains("step 3 of 4") && problem.message.contains("output of kubeadm init"), "{problem}");
    pass(&mut world);
    assert_eq!(world.engine.borrow().ran.len(), 3, "neither repeated nor continued");
    let condition = object::condition(&world.object, "BootstrapExecSucceeded").unwrap();
    assert_eq!((&condition["status"], &condition["reason"]), (&json!("False"), &json!("BootstrapFailed")));
}

#[test]
fn a_command_that_takes_too_long_is_reported_and_may_still_succeed() {
    let mut world = world();
    world.engine.borrow_mut().hangs = Some("kubeadm");
    for _ in 0..8 {
        assert!(!pass(&mut world).unwrap().unwrap().provisioned);
    }
    world.host.set_now_ms(1_700_000_000_000 + 301_000);
    let (result, outcome) = world.pass(|host, object| provision_machine::<Docker>(host, object)).unwrap();
    assert_eq!(result.unwrap_err().reason, "BootstrapTimedOut");
    assert!(outcome.wake_after.is_some());
    world.engine.borrow_mut().hangs = None;
    settle(&mut world);
    assert_provisioned_once(&world, "late");
}

#[test]
fn a_shell_that_is_slow_to_begin_is_not_taken_for_dead() {
    for (what, keeps_hints) in [("hints kept", true), ("hints lost", false)] {
        let mut world = world();
        world.engine.borrow_mut().slow_shells = 2;
        world.engine.borrow_mut().hangs = Some("echo before");
        for _ in 0..8 {
            if !keeps_hints {
                object::merge(&mut world.object, &json!({"status": null}));
            }
            assert!(!pass(&mut world).unwrap().unwrap().provisioned, "{what}");
        }
        world.engine.borrow_mut().hangs = None;
        settle(&mut world);
        assert_provisioned_once(&world, what);
    }
}

#[test]
fn a_step_whose_process_is_no_more_was_interrupted() {
    let mut world = world();
    world.engine.borrow_mut().hangs = Some("kubeadm");
    for _ in 0..4 {
        pass(&mut world);
    }
    world.engine.borrow_mut().kill_execs();
    let problem = pass(&mut world).unwrap().unwrap_err();
    assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Terminal, "BootstrapInterrupted"));
    assert_eq!(world.engine.borrow().ran.len(), 3, "not repeated");
}

#[test]
fn a_container_that_is_gone_is_missed_and_not_replaced() {
    let mut finished = world();
    settle(&mut finished);
    let mut booting = world();
    for _ in 0..3 {
        pass(&mut booting);
    }
    for (what, mut world) in [("a node", finished), ("a machine that boots", booting)] {
        world.engine.borrow_mut().containers.clear();
        for _ in 0..3 {
            let problem = pass(&mut world).unwrap().unwrap_err();
            assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Terminal, "ContainerLost"), "{what}");
        }
        assert!(world.engine.borrow().containers.is_empty(), "{what}");
        assert!(!object::is_true(&world.object, "ContainerProvisioned"), "{what}");
    }
}

#[test]
fn a_container_that_ended_is_started_again_and_reported() {
    let mut world = world();
    settle(&mut world);
    world.engine.borrow_mut().containers.get_mut("quick-cp-1").unwrap().state = "exited";
    let problem = pass(&mut world).unwrap().unwrap_err();
    assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Transient, "ContainerExited"));
    assert!(problem.message.contains("137") && problem.message.contains("last words"), "{problem}");
    assert!(pass(&mut world).unwrap().unwrap().provisioned);
}

#[test]
fn anothers_container_of_the_same_name_is_not_touched() {
    let mut first = world();
    settle(&mut first);
    object::merge(&mut first.object, &json!({"metadata": {"uid": "u2"}, "spec": {"providerID": null}, "status": null}));
    assert_eq!(pass(&mut first).unwrap().unwrap_err().reason, "ContainerNameTaken");
    let (gone, _) = first.pass(|host, object| deprovision_machine::<Docker>(host, object)).unwrap();
    assert!(gone.unwrap());
    assert_eq!(first.engine.borrow().containers.len(), 1);
}

#[test]
fn from_every_state_nothing_is_left_after_a_deletion_however_often_it_crashes() {
    for passes in 0..10 {
        for crash in 1..4 {
            let mut world = world();
            for _ in 0..passes {
                pass(&mut world);
            }
            world.trouble(crash, Trouble::Crash);
            let gone = (0..5).any(|_| {
                let pass = world.pass(|host, object| deprovision_machine::<Docker>(host, object));
                pass.is_some_and(|(result, _)| result.unwrap())
            });
            assert!(gone && world.engine.borrow().containers.is_empty(), "after {passes} passes, crash {crash}");
        }
    }
}

#[test]
fn a_moved_machine_is_found_by_its_identity() {
    let mut world = world();
    settle(&mut world);
    object::merge(&mut world.object, &json!({"metadata": {"uid": "moved"}, "status": null}));
    assert!(pass(&mut world).unwrap().unwrap().provisioned);
    assert_provisioned_once(&world, "moved");
    let (gone, _) = world.pass(|host, object| deprovision_machine::<Docker>(host, object)).unwrap();
    assert!(gone.unwrap() && world.engine.borrow().containers.is_empty());
}

#[test]
fn a_node_that_lost_its_status_is_one_whatever_becomes_of_its_bootstrap_data() {
    let mut world = world();
    settle(&mut world);
    let mut machine = capwasm_sdk::Host::related(&world.host, "machine").remove(0);
    object::merge(&mut machine, &json!({"spec": {"providerID": "docker:////quick-cp-1"}}));
    world.host.set_related("machine", vec![machine]);
    world.host = std::mem::take(&mut world.host).bootstrap_data("value", "#cloud-config\nruncmd: [reboot]\n");
    object::merge(&mut world.object, &json!({"metadata": {"uid": "moved"}, "status": null}));
    assert!(pass(&mut world).unwrap().unwrap().provisioned);
    assert_provisioned_once(&world, "its status was lost");
}

#[test]
fn a_machine_that_lost_its_status_on_the_way_goes_on() {
    let mut world = world();
    pass(&mut world);
    object::merge(&mut world.object, &json!({"status": null}));
    assert!(!pass(&mut world).unwrap().unwrap().provisioned, "a provider ID makes no node");
    settle(&mut world);
    assert_provisioned_once(&world, "its status was lost");
}

#[test]
fn a_node_of_another_machine_is_not_taken() {
    let mut world = world();
    world.host.put(
        Place::Workload,
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "quick-cp-1"}, "spec": {"providerID": "aws:///x"}}),
    );
    world.engine.borrow_mut().nodes.clear();
    let problem = (0..MOST_PASSES)
        .find_map(|_| {
            let (result, _) = world.pass(|host, object| provision_machine::<Docker>(host, object)).unwrap();
            world.engine.borrow_mut().tick();
            result.err()
        })
        .unwrap();
    assert_eq!(problem.reason, "ForeignNode");
    let node = world.host.objects(Place::Workload).remove(0);
    assert_eq!(node["spec"]["providerID"], "aws:///x");
}

#[test]
fn a_machine_waits_for_its_node_while_the_cluster_cannot_be_reached() {
    let mut world = world();
    world.host.set_workload_down(true);
    let problem = (0..MOST_PASSES).find_map(|_| pass(&mut world).unwrap().err()).unwrap();
    assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Waiting, "WaitingForNode"));
    assert!(object::is_true(&world.object, "BootstrapExecSucceeded"), "its own part is done");
    world.host.set_workload_down(false);
    settle(&mut world);
    let target = ObjectRef::new("v1", "Node", "quick-cp-1");
    assert!(world.host.reads().iter().any(|read| read.what.ends_with(&target.name)));
}

#[test]
fn what_has_no_effect_is_told_once() {
    let data = DATA.replace("#cloud-config", "#cloud-config\nmounts: [[a, b]]\nntp: {}");
    let mut world = in_network(host(false).bootstrap_data("value", data));
    let mut warnings = Vec::new();
    for _ in 0..10 {
        let (_, outcome) = world.pass(|host, object| provision_machine::<Docker>(host, object)).unwrap();
        world.engine.borrow_mut().tick();
        warnings.extend(outcome.events.into_iter().filter(|event| event.warning).map(|event| event.message));
    }
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("mounts, ntp"), "{warnings:?}");
}

#[test]
fn images_of_the_engine_are_loaded_before_anything_else_runs() {
    let mut world = world();
    object::merge(&mut world.object, &json!({"spec": {"preLoadImages": ["a:1", "huge:1", "unknown:1", "slow:1"]}}));
    let limit = Refused::new(Refusal::Limit, "TooLarge", "the response is larger than 8388608 bytes");
    world.engine.borrow_mut().saved.insert("a:1".to_owned(), Ok(b"image".to_vec()));
    world.engine.borrow_mut().saved.insert("huge:1".to_owned(), Err(limit));
    let late = Refused::new(Refusal::Limit, "RequestTimeout", "it did not answer within 600s");
    world.engine.borrow_mut().saved.insert("slow:1".to_owned(), Err(late));
    let (_, outcome) = world.pass(|host, object| provision_machine::<Docker>(host, object)).unwrap();
    let warnings: Vec<&str> =
        outcome.events.iter().filter(|event| event.warning).map(|event| event.message.as_str()).collect();
    assert_eq!(warnings.len(), 3);
    assert!(warnings[0].contains("huge:1") && warnings[0].contains("8388608"), "{warnings:?}");
    assert!(warnings[2].contains("slow:1") && warnings[2].contains("did not answer within 600 s"), "{warnings:?}");
    settle(&mut world);
    let engine = world.engine.borrow();
    assert_eq!(engine.containers["quick-cp-1"].files["capwasm/images/0.tar"], b"image");
    assert!(!engine.containers["quick-cp-1"].files.contains_key("capwasm/images/1.tar"));
    assert!(engine.ran[0].contains("images import /capwasm/images/0.tar"));
    assert_eq!(engine.ran[4..], COMMANDS, "the numbers of steps do not depend on what could be had");
}

#[test]
fn a_long_output_is_neither_read_while_it_grows_nor_shown_whole() {
    let mut world = world();
    world.engine.borrow_mut().fails = Some("kubeadm");
    world.engine.borrow_mut().output = 9 << 20;
    let problem = (0..MOST_PASSES).find_map(|_| pass(&mut world).unwrap().err()).unwrap();
    assert_eq!(problem.reason, "BootstrapFailed");
    assert!(problem.message.contains("too many to be read; they are in /capwasm/log/2"), "{problem}");
    assert!(world.engine.borrow().largest_answer < 16 << 10, "what is read of a machine that goes well stays small");
}

#[test]
fn the_status_is_written_twice_while_all_goes_well() {
    let mut world = world();
    let mut written: Vec<Value> = Vec::new();
    for _ in 0..MOST_PASSES {
        let provisioned = pass(&mut world).unwrap().unwrap().provisioned;
        let status = world.object["status"].clone();
        if written.last() != Some(&status) {
            written.push(status);
        }
        if provisioned {
            break;
        }
    }
    assert_eq!(written.len(), 2, "{written:#?}");
    assert_eq!(written[0]["bootstrap"]["startedAt"], "2023-11-14T22:13:20Z");
}

#[test]
fn a_control_plane_machine_says_when_the_load_balancer_has_it() {
    let mut world = world();
    settle(&mut world);
    assert_eq!(world.object["status"].get("loadBalancerConfigured"), None);
    let cluster = json!({"status": {"loadBalancer": {"backends": ["quick-cp-1"]}}});
    world.host.set_related("infrastructure-cluster", vec![cluster]);
    pass(&mut world);
    assert_eq!(world.object["status"]["loadBalancerConfigured"], true);
}

#[test]
fn an_api_server_is_a_node_once_it_is_behind_the_load_balancer() {
    let with = |names: &[&str]| vec![json!({"status": {"loadBalancer": {"backends": names}}})];
    let mut world = world();
    world.host.set_related("infrastructure-cluster", with(&["quick-cp-0"]));
    let problem = (0..MOST_PASSES).find_map(|_| pass(&mut world).unwrap().err()).unwrap();
    assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Waiting, "WaitingForLoadBalancer"));
    assert_ne!(world.object.pointer("/status/initialization/provisioned"), Some(&json!(true)));
    assert!(object::is_true(&world.object, "BootstrapExecSucceeded"));
    world.host.set_related("infrastructure-cluster", with(&["quick-cp-0", "quick-cp-1"]));
    assert!(pass(&mut world).unwrap().unwrap().provisioned);
    assert_eq!(world.object["status"]["loadBalancerConfigured"], true);
    world.host.set_related("infrastructure-cluster", with(&[]));
    assert!(pass(&mut world).unwrap().unwrap().provisioned, "it stays one");
}

#[test]
fn a_node_of_an_earlier_machine_of_that_name_is_not_taken_for_this_ones() {
    let mut world = world();
    let old = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "quick-cp-1", "creationTimestamp": "2020-01-01T00:00:00Z"}, "spec": {"providerID": "docker:////quick-cp-1"}});
    world.host.put(Place::Workload, old);
    let problem = (0..MOST_PASSES)
        .find_map(|_| {
            let (result, _) = world.pass(|host, object| provision_machine::<Docker>(host, object)).unwrap();
            world.engine.borrow_mut().tick();
            result.err()
        })
        .unwrap();
    assert_eq!(problem.reason, "WaitingForNode");
    assert!(problem.message.contains("older than the machine"), "{problem}");
}

#[test]
fn ignition_is_run_as_well() {
    let data = r#"{"ignition": {"version": "2.3.0"}, "systemd": {"units": [{"name": "kubeadm.service", "enabled": true, "contents": "[Service]\nType=oneshot\nExecStart=/usr/bin/kubeadm init\n"}]}}"#;
    let mut world = in_network(host(false).bootstrap_data("value", data).bootstrap_data("format", "ignition"));
    (0..MOST_PASSES).find_map(|_| pass(&mut world).unwrap().err()).unwrap();
    assert_eq!(world.engine.borrow().ran[..2], ["cp -a /capwasm/files/. /", "/usr/bin/kubeadm init"]);
}

#[test]
fn a_duration_that_is_none_is_refused_before_anything_is_made() {
    let mut world = world();
    object::merge(&mut world.object, &json!({"spec": {"bootstrapTimeout": "soon"}}));
    assert_eq!(pass(&mut world).unwrap().unwrap_err().reason, "BadBootstrapTimeout");
    assert!(world.requests().is_empty());
}
