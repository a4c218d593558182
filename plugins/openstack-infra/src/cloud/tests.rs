//! A cloud as its caller sees it, against an OpenStack in memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::time::Duration;

use capwasm_sdk::test::TestHost;
use capwasm_sdk::{Fault, Place};
use serde_json::json;

use super::*;
use crate::testing::{Fault as Trouble, OpenStack, PROJECT, REGION};

fn identity(fields: Value) -> IdentityRef {
    let mut identity = OpenStack::identity();
    capwasm_sdk::object::merge(&mut identity, &fields);
    IdentityRef::read(&json!({"identityRef": identity})).unwrap()
}

fn connect(host: &TestHost) -> Cloud<'_> {
    Cloud::connect(host, "default", &identity(json!({}))).unwrap()
}

fn refused(host: &TestHost, fields: Value) -> Problem {
    Cloud::connect(host, "default", &identity(fields)).err().expect("no connection")
}

#[test]
fn a_token_serves_all_calls_for_half_of_its_life() {
    let openstack = OpenStack::new();
    let mut host = openstack.host();
    for _ in 0..3 {
        let cloud = connect(&host);
        assert_eq!((cloud.region.as_str(), cloud.project_id().as_str()), (REGION, PROJECT));
        cloud.get(Service::Network, "/networks").unwrap();
    }
    assert_eq!(openstack.tokens(), 1);
    host.set_now_ms(1_700_000_000_000 + 1_799_000);
    connect(&host);
    assert_eq!(openstack.tokens(), 1, "nearly half of its life");
    host.set_now_ms(1_700_000_000_000 + 1_800_000);
    openstack.set_now(1_700_000_000 + 1_800);
    connect(&host);
    connect(&host);
    assert_eq!(openstack.tokens(), 2, "renewed once");
}

#[test]
fn a_refused_token_is_replaced_once_and_the_request_is_repeated() {
    let openstack = OpenStack::new();
    let host = openstack.host();
    let cloud = connect(&host);
    openstack.revoke_tokens();
    let made = cloud.post(Service::Network, "/networks", &json!({"network": {"name": "n"}})).unwrap();
    assert_eq!(made["network"]["name"], "n");
    assert_eq!((openstack.tokens(), openstack.all("networks").len()), (2, 2));
    openstack.revoke_tokens();
    let failure = cloud.get(Service::Network, "/networks").unwrap_err();
    assert_eq!((failure.status, failure.fault), (Some(401), Fault::Invalid), "no storm of tokens");
    assert_eq!(openstack.tokens(), 2);
    drop(cloud);
    // The next call finds the old token refused, too, and gets a new one.
    assert!(connect(&host).get(Service::Network, "/networks").is_ok());
    assert!(connect(&host).get(Service::Network, "/networks").is_ok());
    assert_eq!(openstack.tokens(), 3, "which serves the calls after it");
}

#[test]
fn credentials_that_are_missing_wrong_or_of_no_use_are_told_apart() {
    let openstack = OpenStack::new();
    let nothing = refused(&openstack.behind(TestHost::new()), json!({}));
    assert_eq!(nothing.fault, Fault::Waiting);
    assert!(nothing.message.contains("cloud-config"), "{nothing}");
    let with = |clouds: &str| openstack.behind(TestHost::new().secret("cloud-config", "clouds.yaml", clouds));
    let wrong = refused(
        &with(&OpenStack::clouds().replace("credential_secret: secret", "credential_secret: hunter2")),
        json!({}),
    );
    assert_eq!((wrong.fault, wrong.reason.as_str()), (Fault::Invalid, "OpenStackAuthenticationFailed"));
    assert!(!wrong.message.contains("hunter2"), "{wrong}");
    let nowhere = refused(&with(&OpenStack::clouds().replace("/identity", "/elsewhere")), json!({}));
    assert_eq!(nowhere.fault, Fault::Invalid, "{nowhere}");
    let other = refused(&with(&OpenStack::clouds().replace("https://cloud.test", "https://other.test")), json!({}));
    assert_eq!((other.fault, other.reason.as_str()), (Fault::Terminal, "RequestDenied"));
    assert_eq!(refused(&with(OpenStack::clouds()), json!({"cloudName": "another"})).fault, Fault::Invalid);
}

#[test]
fn a_cluster_identity_serves_the_namespaces_that_it_selects() {
    let openstack = OpenStack::new();
    let shared = |selector: Value| {
        let host =
            openstack.behind(TestHost::new().secret_in("shared", "credentials", "clouds.yaml", OpenStack::clouds()));
        let spec = json!({"secretRef": {"namespace": "shared", "name": "credentials"}, "namespaceSelector": selector});
        let kind = ("infrastructure.cluster.x-k8s.io/v1alpha1", "OpenStackClusterIdentity");
        let identity =
            json!({"apiVersion": kind.0, "kind": kind.1, "metadata": {"name": "cloud-config"}, "spec": spec});
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "a"}}});
        host.object(Place::Management, identity).object(Place::Management, namespace)
    };
    let by_identity = || json!({"type": "ClusterIdentity"});
    for (selector, allowed) in [
        (Value::Null, true),
        (json!({}), true),
        (json!({"matchLabels": {"team": "a"}}), true),
        (json!({"matchExpressions": [{"key": "team", "operator": "In", "values": ["b"]}]}), false),
        (json!({"matchLabels": {"team": "b"}}), false),
    ] {
        let host = shared(selector.clone());
        let connected = Cloud::connect(&host, "default", &identity(by_identity()));
        match connected {
            Ok(_) => assert!(allowed, "{selector}"),
            Err(problem) => {
                assert!(
                    !allowed && problem.fault == Fault::Invalid && problem.reason == "IdentityNotAllowed",
                    "{selector}: {problem}"
                );
            }
        }
    }
    let none = refused(&openstack.behind(TestHost::new()), by_identity());
    assert_eq!(none.fault, Fault::Waiting);
    assert!(none.message.contains("OpenStackClusterIdentity cloud-config"), "{none}");
}

#[test]
fn tls_is_verified_with_the_secrets_ca_unless_the_entry_says_not_to() {
    let openstack = OpenStack::new();
    let host = openstack.host().secret("cloud-config", "cacert", "PEM");
    connect(&host).get(Service::Compute, "/flavors").unwrap();
    assert!(host.requests().iter().all(|request| request.trust.as_deref() == Some("PEM") && !request.insecure));
    let clouds = format!("{}    verify: false\n", OpenStack::clouds());
    let host = openstack.behind(TestHost::new().secret("cloud-config", "clouds.yaml", clouds.clone()));
    assert_eq!(refused(&host, json!({})).fault, Fault::Terminal, "not granted");
    let host = openstack.behind(TestHost::new().insecure_tls().secret("cloud-config", "clouds.yaml", clouds));
    connect(&host).get(Service::Compute, "/flavors").unwrap();
    assert!(host.requests().iter().all(|request| request.insecure));
}

#[test]
fn the_catalog_says_what_there_is_and_the_region_has_to_be_known() {
    let openstack = OpenStack::new();
    openstack.without("load-balancer");
    let host = openstack.host();
    let cloud = connect(&host);
    assert!(cloud.offers(Service::Compute) && cloud.offers(Service::Volume) && !cloud.offers(Service::LoadBalancer));
    let failure = cloud.get(Service::LoadBalancer, "/lbaas/loadbalancers").unwrap_err();
    assert_eq!((failure.fault, failure.status), (Fault::Invalid, None));
    let elsewhere = Cloud::connect(&host, "default", &identity(json!({"region": "Elsewhere"}))).unwrap();
    assert!(elsewhere.region == "Elsewhere" && !elsewhere.offers(Service::Compute));
    let clouds = OpenStack::clouds().replace("    region_name: RegionOne\n", "");
    let host = openstack.behind(TestHost::new().secret("cloud-config", "clouds.yaml", clouds));
    assert_eq!(connect(&host).region, REGION, "the only one");
}

#[test]
fn lists_have_all_pages_and_their_links_are_followed_by_query_alone() {
    let openstack = OpenStack::new();
    for number in 0..7 {
        openstack.add("ports", json!({"name": "a b", "number": number}));
        openstack.add("servers", json!({"name": "s", "number": number}));
        openstack.add("images", json!({"name": "i", "tags": ["x"]}));
    }
    openstack.add("ports", json!({"name": "other"}));
    openstack.set_page(3);
    let host = openstack.host();
    let cloud = connect(&host);
    let ports = cloud.list(Service::Network, "/ports", "ports", &Query::new().with("name", "a b")).unwrap();
    let numbers: Vec<u64> = ports.iter().filter_map(|port| port["number"].as_u64()).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(cloud.list(Service::Compute, "/servers/detail", "servers", &Query::new()).unwrap().len(), 7);
    assert_eq!(cloud.list(Service::Image, "/images", "images", &Query::new().with("tag", "x")).unwrap().len(), 7);
    let failure = cloud.list(Service::Network, "/networks", "wrong", &Query::new()).unwrap_err();
    assert_eq!((failure.reason.as_str(), failure.fault), ("AnswerGarbled", Fault::Transient), "never an empty list");
}

#[test]
fn nova_is_asked_for_the_version_that_is_needed_and_no_more() {
    let openstack = OpenStack::new();
    let host = openstack.host();
    let cloud = connect(&host);
    let asked = |openstack: &OpenStack| {
        let headers = openstack.calls().pop().unwrap().headers;
        headers.into_iter().find(|(name, _)| name == "openstack-api-version").map(|(_, value)| value)
    };
    cloud.get(Service::Compute, "/flavors").unwrap();
    assert_eq!(asked(&openstack).as_deref(), Some("compute 2.38"));
    cloud.with_compute_microversion("2.53").unwrap();
    cloud.with_compute_microversion("2.38").unwrap();
    cloud.get(Service::Compute, "/flavors").unwrap();
    assert_eq!(asked(&openstack).as_deref(), Some("compute 2.53"), "raised, and not lowered again");
    let failure = cloud.with_compute_microversion("2.200").unwrap_err();
    assert!(failure.fault == Fault::Invalid && failure.message.contains("2.103"), "{failure}");
    cloud.get(Service::Network, "/networks").unwrap();
    assert_eq!(asked(&openstack), None);
    assert!(cloud.load_balancer_api_at_least("2.12").unwrap() && !cloud.load_balancer_api_at_least("2.31").unwrap());
}

#[test]
fn what_seldom_changes_is_asked_for_once() {
    let openstack = OpenStack::new();
    let host = openstack.host();
    for _ in 0..2 {
        let cloud = connect(&host);
        assert!(cloud.network_extension("trunk").unwrap() && !cloud.network_extension("bgp").unwrap());
        cloud.with_compute_microversion("2.60").unwrap();
        cloud.get_recent(Service::Compute, "/os-availability-zone", Duration::from_secs(600)).unwrap();
        assert_eq!(cloud.find_recent(Service::Compute, "/servers/none", Duration::from_secs(600)).unwrap(), None);
    }
    let asked: Vec<String> = openstack.calls().into_iter().map(|call| call.path).collect();
    assert_eq!(asked, ["/extensions", "/", "/os-availability-zone", "/servers/none", "/servers/none"]);
}

#[test]
fn an_answer_that_makes_no_sense_is_not_believed_for_long() {
    let openstack = OpenStack::new();
    let host = openstack.host();
    openstack.fail(0, Trouble::Answer(200, "]["));
    assert!(connect(&host).network_extension("trunk").unwrap());
    let garbled = TestHost::new().secret("cloud-config", "clouds.yaml", OpenStack::clouds()).http(|_| {
        Ok(HttpResponse { status: 201, body: b"]".to_vec(), headers: vec![("x-subject-token".into(), "t".into())] })
    });
    let problem = refused(&garbled, json!({}));
    assert_eq!((problem.fault, garbled.requests().len()), (Fault::Transient, 2), "asked once more, and no more");
}

#[test]
fn lost_and_refused_requests_say_so() {
    let openstack = OpenStack::new();
    let host = openstack.host();
    let cloud = connect(&host);
    openstack.fail(0, Trouble::LostAfter);
    let lost = cloud.post(Service::Network, "/networks", &json!({"network": {"name": "n"}})).unwrap_err();
    assert!(lost.is_unanswered() && lost.fault == Fault::Transient && openstack.all("networks").len() == 2);
    openstack.fail(1, Trouble::Answer(503, "<h1>Busy</h1>"));
    let id = openstack.named("networks", "n")["id"].as_str().unwrap().to_owned();
    assert_eq!(cloud.delete(Service::Network, &format!("/networks/{id}")).unwrap(), Gone::Now);
    let busy = cloud.delete(Service::Network, &format!("/networks/{id}")).unwrap_err();
    assert!(busy.status == Some(503) && busy.message.ends_with("Busy"), "{busy}");
    assert_eq!(cloud.delete(Service::Network, &format!("/networks/{id}")).unwrap(), Gone::Already);
    assert_eq!(cloud.find(Service::Network, &format!("/networks/{id}")).unwrap(), None);
    openstack.fail(0, Trouble::Answer(200, "]["));
    assert_eq!(cloud.get(Service::Network, "/networks").unwrap_err().reason, "AnswerGarbled");
}
