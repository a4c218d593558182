use std::time::Duration;

use super::{Trouble, World, troubles};
use capwasm_sdk::test::{TestHost, deprovision_cluster, provision_cluster};
use capwasm_sdk::{ClusterAnswer, Endpoint, Fault, Problem, object};
use serde_json::{Value, json};

use crate::Docker;

pub fn docker_cluster(name: &str, uid: &str) -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DockerCluster",
        "metadata": {"name": name, "namespace": "default", "uid": uid},
        "spec": {"failureDomains": [{"name": "fd1", "controlPlane": true}, {"name": "fd4", "controlPlane": false}]},
    })
}

pub fn host(cluster: &str) -> TestHost {
    TestHost::new().related("cluster", json!({"metadata": {"name": cluster}}))
}

pub fn world() -> World {
    World::new(host("quick"), docker_cluster("quick", "u1"))
}

pub fn pass(world: &mut World) -> Option<Result<ClusterAnswer, Problem>> {
    Some(world.pass(|host, object| provision_cluster::<Docker>(host, object))?.0)
}

pub fn settle(world: &mut World) -> ClusterAnswer {
    for _ in 0..10 {
        if let Some(Ok(answer)) = pass(world)
            && answer.provisioned
        {
            return answer;
        }
    }
    panic!("not provisioned: {:#?}", world.requests());
}

fn set_machines(world: &mut World, machines: &[(&str, &str)]) {
    let machine = |name: &str| json!({"metadata": {"name": name, "labels": {"cluster.x-k8s.io/control-plane": ""}}, "spec": {"infrastructureRef": {"name": name}}});
    let docker_machine = |name: &str, ip: &str| json!({"metadata": {"name": name}, "status": {"addresses": [{"type": "InternalIP", "address": ip}]}});
    world.host.set_related("machines", machines.iter().map(|(name, _)| machine(name)).collect());
    world
        .host
        .set_related("infrastructure-machines", machines.iter().map(|(name, ip)| docker_machine(name, ip)).collect());
}

fn file(world: &World) -> String {
    let engine = world.engine.borrow();
    String::from_utf8(engine.containers["quick-lb"].files["usr/local/etc/haproxy/haproxy.cfg"].clone()).unwrap()
}

/// R1, C11, C12: network and load balancer are there before the cluster is said to be provisioned, with its endpoint.
#[test]
fn a_cluster_gets_a_network_a_load_balancer_and_its_address_as_endpoint() {
    let mut world = world();
    let answer = settle(&mut world);
    assert_eq!(answer.endpoint, Some(Endpoint { host: "172.18.0.2".to_owned(), port: 6443 }));
    let domains: Vec<(&str, bool)> =
        answer.failure_domains.iter().map(|domain| (domain.name.as_str(), domain.control_plane)).collect();
    assert_eq!(domains, [("fd1", true), ("fd4", false)]);
    assert!(object::is_true(&world.object, "LoadBalancerAvailable"));
    assert!(world.engine.borrow().networks.contains_key("kind"));
    assert!(file(&world).contains("bind *:6443"));
    let requests = world.requests().len();
    assert!(requests <= 17, "{:#?}", world.requests());
    settle(&mut world);
    assert_eq!(world.requests().len(), requests + 1, "a cluster that is as wanted costs one request");
}

#[test]
fn the_configuration_follows_the_control_plane_machines() {
    let mut world = world();
    settle(&mut world);
    set_machines(&mut world, &[("quick-a", "172.18.0.5"), ("quick-b", "172.18.0.6")]);
    settle(&mut world);
    assert!(file(&world).contains("server quick-a 172.18.0.5:6443 weight 100 check"), "{}", file(&world));
    assert_eq!(world.engine.borrow().containers["quick-lb"].signals, ["HUP"]);
    let requests = world.requests().len();
    set_machines(&mut world, &[("quick-b", "172.18.0.6"), ("quick-a", "172.18.0.5")]);
    settle(&mut world);
    assert_eq!(world.requests().len(), requests + 1, "not written again when equal");
    set_machines(&mut world, &[("quick-b", "172.18.0.6")]);
    settle(&mut world);
    assert!(!file(&world).contains("quick-a"));
    assert_eq!(world.engine.borrow().containers["quick-lb"].signals, ["HUP", "HUP"]);
}

#[test]
fn a_machine_is_behind_the_load_balancer_before_it_tells_its_address() {
    let mut machine = super::machine::world_of(false);
    let mut world = World::behind(host("quick"), docker_cluster("quick", "c1"), std::rc::Rc::clone(&machine.engine));
    settle(&mut world);
    super::machine::pass(&mut machine);
    assert!(!object::text(&machine.object, "/spec/providerID").is_empty());
    assert_eq!(machine.object.pointer("/status/addresses"), None);
    let ip = machine.engine.borrow().containers["quick-cp-1"].ip.clone();
    let owner = json!({
        "metadata": {"name": "quick-cp-1", "namespace": "default", "labels": {"cluster.x-k8s.io/control-plane": ""}},
        "spec": {"infrastructureRef": {"name": "cp-1"}},
    });
    world.host.set_related("machines", vec![owner]);
    for (what, uid, name, is_there) in
        [("a stranger's container", "u2", "other", false), ("its own", "u1", "quick-cp-1", true)]
    {
        let identity = json!({"metadata": {"uid": uid}, "spec": {"providerID": format!("docker:////{name}")}});
        object::merge(&mut machine.object, &identity);
        world.host.set_related("infrastructure-machines", vec![machine.object.clone()]);
        settle(&mut world);
        assert_eq!(file(&world).contains(&format!("server quick-cp-1 {ip}:6443")), is_there, "{what}");
    }
}

/// C10: a crash after each external call and a rerun yield one set of resources.
#[test]
fn a_crash_after_any_request_leads_to_one_running_load_balancer_with_the_wanted_file() {
    for at in 1.. {
        let mut world = world();
        world.trouble(at, Trouble::Crash);
        settle(&mut world);
        set_machines(&mut world, &[("quick-a", "172.18.0.5")]);
        settle(&mut world);
        let engine = world.engine.borrow();
        assert_eq!((engine.containers.len(), engine.containers["quick-lb"].state), (1, "running"), "crash after {at}");
        assert!(!engine.containers["quick-lb"].signals.is_empty(), "crash after {at}: told of the new file");
        drop(engine);
        assert!(file(&world).contains("server quick-a"), "crash after {at}");
        if !world.is_over() {
            assert!(at > 14);
            break;
        }
    }
}

#[test]
fn no_answer_of_the_engine_does_more_than_delay() {
    for trouble in troubles() {
        for at in 1..=12 {
            let mut world = world();
            world.trouble(at, trouble.clone());
            let first = pass(&mut world).unwrap();
            if let Err(problem) = &first {
                assert_eq!(problem.fault, Fault::Transient, "{trouble:?} at {at}: {problem}");
                assert!(!object::is_true(&world.object, "LoadBalancerAvailable"), "{trouble:?} at {at}");
            }
            settle(&mut world);
            assert_eq!(world.engine.borrow().containers.len(), 1, "{trouble:?} at {at}");
        }
    }
}

#[test]
fn a_load_balancer_that_died_is_started_and_one_that_is_gone_is_made_again() {
    let mut world = world();
    settle(&mut world);
    world.engine.borrow_mut().containers.get_mut("quick-lb").unwrap().state = "exited";
    let requests = world.requests().len();
    settle(&mut world);
    assert_eq!(
        world.requests()[requests..],
        ["GET /containers/quick-lb/json", "POST /containers/c1/start", "GET /containers/quick-lb/json"]
    );
    world.engine.borrow_mut().containers.clear();
    settle(&mut world);
    assert_eq!(world.engine.borrow().containers["quick-lb"].state, "running");
    assert!(file(&world).contains("bind *:6443"));
}

#[test]
fn failure_domains_do_not_come_and_go_with_the_load_balancer() {
    let mut world = world();
    settle(&mut world);
    world.engine.borrow_mut().containers.get_mut("quick-lb").unwrap().state = "restarting";
    let (answer, outcome) = world.pass(|host, object| provision_cluster::<Docker>(host, object)).unwrap();
    assert_eq!(answer.unwrap().failure_domains.len(), 2);
    assert!(outcome.wake_after.is_some());
    let said =
        object::condition(&world.object, "LoadBalancerAvailable").unwrap()["message"].as_str().unwrap().to_owned();
    assert!(said.contains("last words"), "{said}");
    assert!(!object::is_true(&world.object, "LoadBalancerAvailable"));
}

#[test]
fn an_endpoint_that_can_no_longer_be_right_is_reported() {
    let mut world = world();
    let endpoint = settle(&mut world).endpoint.unwrap();
    object::merge(
        &mut world.object,
        &json!({"spec": {"controlPlaneEndpoint": {"host": endpoint.host, "port": endpoint.port}}}),
    );
    world.engine.borrow_mut().containers.clear();
    for _ in 0..3 {
        let problem = pass(&mut world).unwrap().unwrap_err();
        assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Terminal, "LoadBalancerMoved"));
    }
}

#[test]
fn an_endpoint_given_from_outside_is_respected() {
    let mut world = world();
    object::merge(
        &mut world.object,
        &json!({"spec": {"controlPlaneEndpoint": {"host": "api.example.org", "port": 443}}}),
    );
    assert_eq!(settle(&mut world).endpoint, Some(Endpoint { host: "api.example.org".to_owned(), port: 443 }));
}

#[test]
fn after_a_lost_status_the_load_balancer_is_told_again() {
    let mut world = world();
    settle(&mut world);
    object::merge(&mut world.object, &json!({"status": null}));
    let requests = world.requests().len();
    settle(&mut world);
    assert_eq!(world.requests().len(), requests + 4);
    assert_eq!(world.engine.borrow().containers["quick-lb"].signals, ["HUP"]);
}

#[test]
fn a_machine_that_leaves_is_drained_before_it_goes() {
    let mut world = world();
    settle(&mut world);
    set_machines(&mut world, &[("quick-a", "172.18.0.5"), ("quick-b", "172.18.0.6")]);
    settle(&mut world);
    let mut machines = capwasm_sdk::Host::related(&world.host, "machines");
    object::merge(&mut machines[0], &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    world.host.set_related("machines", machines);
    settle(&mut world);
    assert!(file(&world).contains("server quick-a 172.18.0.5:6443 weight 0 check"), "{}", file(&world));
    assert!(file(&world).contains("server quick-b 172.18.0.6:6443 weight 100 check"), "{}", file(&world));
    assert_eq!(world.object["status"]["loadBalancer"]["backends"], json!(["quick-a", "quick-b"]));
}

#[test]
fn a_cluster_of_ipv6_has_its_endpoint_and_backends_there() {
    let ipv6 = json!({"metadata": {"name": "quick"}, "spec": {"clusterNetwork": {"services": {"cidrBlocks": ["fd00:1::/108", "10.0.0.0/16"]}}}});
    let mut world = World::new(TestHost::new().related("cluster", ipv6.clone()), docker_cluster("quick", "u1"));
    world.engine.borrow_mut().has_ipv6 = true;
    let endpoint = settle(&mut world).endpoint.unwrap();
    assert_eq!(endpoint.host, "fd00::2");
    assert!(file(&world).contains("bind :::6443 v6only"));
    let body = world.engine.borrow().containers["quick-lb"].body.clone();
    assert_eq!(body["HostConfig"]["PortBindings"]["6443/tcp"][0]["HostIp"], "::1");
    assert_eq!(body["HostConfig"]["Sysctls"]["net.ipv6.conf.all.disable_ipv6"], "0");
    let mut without = World::new(TestHost::new().related("cluster", ipv6.clone()), docker_cluster("quick", "u1"));
    without.engine.borrow_mut().networks.insert("kind".to_owned(), json!({}));
    let problem = pass(&mut without).unwrap().unwrap_err();
    assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Invalid, "NetworkWithoutIPv6"));
    let mut unable = World::new(TestHost::new().related("cluster", ipv6), docker_cluster("quick", "u1"));
    assert_eq!(pass(&mut unable).unwrap().unwrap_err().reason, "EngineRejected", "the engine has none to give");
}

#[test]
fn a_template_of_the_clusters_own_is_waited_for_used_and_followed() {
    let mut world = world();
    let template = json!({"spec": {"controlPlaneEndpoint": {"port": 443}, "loadBalancer": {"customHAProxyConfigTemplateRef": {"name": "x"}}}});
    object::merge(&mut world.object, &template);
    let problem = pass(&mut world).unwrap().unwrap_err();
    assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Waiting, "WaitingForTemplate"));
    let put = |world: &World, text: &str| {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}, "data": {"value": text}});
        world.host.put(capwasm_sdk::Place::Management, map);
    };
    put(&world, "one {{ .Nothing }}");
    let problem = pass(&mut world).unwrap().unwrap_err();
    assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Invalid, "BadTemplate"));
    put(&world, "bind *:{{ .FrontendControlPlanePort }}\n");
    assert_eq!(settle(&mut world).endpoint.unwrap().port, 443);
    assert_eq!(file(&world), "bind *:443\n");
    put(&world, "other\n");
    settle(&mut world);
    assert_eq!(file(&world), "other\n");
    assert_eq!(world.engine.borrow().containers["quick-lb"].signals, ["HUP"]);
}

#[test]
fn old_conditions_are_told_beside_the_new_ones() {
    let mut world = world();
    world.trouble(1, Trouble::Unreachable);
    pass(&mut world);
    let old = |world: &World, at: &str| {
        world.object.pointer(&format!("/status/deprecated/v1beta1/conditions/{at}")).cloned().unwrap_or_default()
    };
    assert_eq!((old(&world, "0/type"), old(&world, "0/severity")), (json!("Ready"), json!("Warning")));
    assert_eq!(old(&world, "1/reason"), "LoadBalancerProvisioningFailed");
    settle(&mut world);
    assert_eq!((old(&world, "0/status"), old(&world, "1/status")), (json!("True"), json!("True")));
}

#[test]
fn a_load_balancer_whose_network_is_gone_gets_it_again() {
    let mut world = world();
    settle(&mut world);
    world.engine.borrow_mut().containers.get_mut("quick-lb").unwrap().state = "exited";
    world.engine.borrow_mut().networks.clear();
    settle(&mut world);
    assert!(world.engine.borrow().networks.contains_key("kind"));
}

#[test]
fn what_this_provider_cannot_do_is_said() {
    let mut orphan = World::new(TestHost::new(), docker_cluster("quick", "u1"));
    assert_eq!(pass(&mut orphan).unwrap().unwrap_err().fault, Fault::Waiting);
    let mut mistyped = World::new(
        TestHost::new().configuration(json!({"image": 1})).related("cluster", json!({"metadata": {"name": "quick"}})),
        docker_cluster("quick", "u1"),
    );
    assert_eq!(pass(&mut mistyped).unwrap().unwrap_err().reason, "BadConfiguration");
}

#[test]
fn anothers_load_balancer_is_not_touched() {
    let mut world = world();
    settle(&mut world);
    object::merge(&mut world.object, &json!({"metadata": {"uid": "u2"}, "status": null}));
    assert_eq!(pass(&mut world).unwrap().unwrap_err().reason, "ContainerNameTaken");
    let (gone, _) = world.pass(|host, object| deprovision_cluster::<Docker>(host, object)).unwrap();
    assert!(gone.unwrap());
    assert_eq!(world.engine.borrow().containers.len(), 1);
}

#[test]
fn a_deletion_leaves_nothing_but_the_shared_network() {
    for at in 1..16 {
        let mut world = world();
        world.trouble(at, Trouble::Crash);
        pass(&mut world);
        let gone = (0..5).any(|_| {
            let pass = world.pass(|host, object| deprovision_cluster::<Docker>(host, object));
            pass.is_some_and(|(result, _)| result.unwrap())
        });
        assert!(gone && world.engine.borrow().containers.is_empty(), "crash after request {at}");
        assert_eq!(object::condition(&world.object, "LoadBalancerAvailable").unwrap()["reason"], "Deleting");
    }
}

/// A pass ends with the first answer that does not come, a deletion's too, and the condition says who did not answer.
#[test]
fn an_engine_that_never_answers_holds_up_a_pass_for_one_deadline() {
    let mut world = world();
    settle(&mut world);
    world.engine.borrow_mut().is_silent = true;
    let problems = [
        pass(&mut world).unwrap().unwrap_err(),
        world.pass(|host, object| deprovision_cluster::<Docker>(host, object)).unwrap().0.unwrap_err(),
    ];
    for problem in problems {
        assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Transient, "EngineTimeout"));
        assert!(problem.message.ends_with("the engine did not answer within 30 s"), "{}", problem.message);
    }
    assert_eq!(world.engine.borrow().waited, [Duration::from_secs(30); 2]);
    world.engine.borrow_mut().is_silent = false;
    assert!((0..5).any(|_| {
        world.pass(|host, object| deprovision_cluster::<Docker>(host, object)).is_some_and(|(gone, _)| gone.unwrap())
    }));
}
