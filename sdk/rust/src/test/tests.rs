#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
use std::time::Duration;

use capwasm_contract::{Algorithm, Optional, Problem, Refusal, Selection, Subject};

use super::*;
use crate::host::Host;

fn secret(name: &str, namespace: &str, app: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace, "labels": {"app": app}}})
}

fn names(objects: Vec<Value>) -> Vec<String> {
    objects.iter().map(|object| object::name(object).to_owned()).collect()
}

#[test]
fn reads_see_the_objects_own_namespace_unless_another_is_named_and_are_recorded() {
    let host = TestHost::new()
        .object(Place::Management, secret("a", "default", "x"))
        .object(Place::Management, secret("b", "default", "y"))
        .object(Place::Management, secret("c", "other", "x"))
        .object(Place::Workload, secret("d", "kube-system", "x"));
    let secrets = Selection::of("v1", "Secret");
    assert_eq!(names(host.lookup_list(&secrets).unwrap()), ["a", "b"]);
    assert_eq!(names(host.lookup_list(&secrets.clone().labelled("app=x")).unwrap()), ["a"]);
    assert_eq!(names(host.lookup_list(&secrets.clone().in_namespace("other")).unwrap()), ["c"]);
    assert_eq!(names(host.workload_list(&secrets).unwrap()), ["d"]);
    assert_eq!(names(host.lookup_list(&secrets.clone().labelled("app in (x)")).unwrap()), ["a"]);
    assert_eq!(host.lookup_list(&secrets.labelled("app in (x")).unwrap_err().refusal, Refusal::Invalid);
    let far = ObjectRef::new("v1", "Secret", "c");
    assert_eq!(host.lookup(&far).optional(), Ok(None));
    assert!(host.lookup(&far.in_namespace("other")).is_ok());
    assert_eq!(host.reads().last().unwrap().what, "get v1/Secret other/c");
}

#[test]
fn a_version_that_is_left_out_is_any_version_of_the_group() {
    let machine = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {"name": "m", "namespace": "default"}});
    let host = TestHost::new().object(Place::Management, machine);
    assert!(host.lookup(&ObjectRef::new("cluster.x-k8s.io/", "Machine", "m")).is_ok());
    assert!(host.lookup(&ObjectRef::new("cluster.x-k8s.io/v1beta1", "Machine", "m")).is_err());
}

#[test]
fn what_was_not_set_up_is_refused_as_the_host_would() {
    let mut host =
        TestHost::new().object(Place::Workload, json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}));
    let node = ObjectRef::new("v1", "Node", "n");
    assert!(host.workload(&node).is_ok());
    host.set_workload_down(true);
    assert_eq!(host.workload(&node).unwrap_err().refusal, Refusal::Unavailable);
    assert_eq!(Host::http(&host, &HttpRequest::new("GET", "http://x/")).unwrap_err().refusal, Refusal::Denied);
    assert!(Host::secret(&host, "s", "k").unwrap_err().is_not_found());
    assert!(Host::bootstrap_data(&host, "value").unwrap_err().is_not_found());
}

#[test]
fn fake_keys_are_unique_and_know_when_they_end() {
    let host = TestHost::new().now_ms(1_000);
    let authority = host.new_authority("kubernetes", Algorithm::EcdsaP256, 2).unwrap();
    let client = host.issue_client(&authority, &Subject::default(), Algorithm::EcdsaP256, 1).unwrap();
    assert_ne!(authority.key_pem, client.key_pem);
    assert_eq!(host.not_after_ms(&authority.certificate_pem), Ok(1_000 + 2 * 86_400_000));
    assert_eq!(host.public_key_hash(&authority.certificate_pem).unwrap().len(), "sha256:".len() + 64);
    let tokens = [host.random_token("ab", 16), host.random_token("ab", 16)];
    assert_ne!(tokens[0], tokens[1]);
    assert!(tokens[0].len() == 16 && tokens[0].chars().all(|letter| "ab".contains(letter)));
    for bad in [host.public_key_hash("x").err(), host.not_after_ms("x").err()] {
        assert_eq!(bad.unwrap().refusal, Refusal::Invalid);
    }
}

#[test]
fn an_outcome_survives_a_problem() {
    let (result, outcome) = run(&TestHost::new(), |cx| {
        cx.out.event("Seen", "before").wake_after(std::time::Duration::from_secs(9));
        cx.out.wake_after(std::time::Duration::from_secs(3));
        cx.out.condition("A", Some(false), "First", "").condition("A", Some(true), "Second", "");
        Err::<(), _>(Problem::waiting("Later", "not yet"))
    });
    assert_eq!(result.unwrap_err().reason, "Later");
    assert_eq!(outcome.events.len(), 1);
    assert_eq!(outcome.wake_after, Some(std::time::Duration::from_secs(3)), "the shortest counts");
    assert_eq!((outcome.conditions.len(), outcome.conditions[0].reason.as_str()), (1, "Second"), "the last counts");
}

#[test]
fn several_keys_of_a_secret_are_there_or_not_each() {
    let host = TestHost::new().secret("c-ca", "tls.crt", "cert");
    let found = host.secret_keys("c-ca", &["tls.crt", "tls.key"]).unwrap();
    assert_eq!(found, [Some(b"cert".to_vec()), None]);
    assert_eq!(host.secret_keys("other", &["tls.crt"]).unwrap_err().refusal, Refusal::NotFound);
}

#[test]
fn a_recent_answer_does_for_the_very_same_request_while_it_is_young_and_only_when_it_was_a_success() {
    let sent = std::rc::Rc::new(std::cell::Cell::new(0_u16));
    let count = sent.clone();
    let mut host = TestHost::new().now_ms(0).http(move |request| {
        count.set(count.get() + 1);
        let status = if request.url.ends_with("/wrong") { 401 } else { 201 };
        Ok(HttpResponse { status, body: count.get().to_string().into_bytes(), ..HttpResponse::default() })
    });
    let token = HttpRequest::new("POST", "https://cloud/v3").max_age(Duration::from_millis(10));
    let first = Host::http(&host, &token).unwrap();
    host.set_now_ms(10);
    assert_eq!(Host::http(&host, &token).unwrap(), first, "young enough");
    assert_ne!(Host::http(&host, &token.clone().body("text/plain", b"other".to_vec())).unwrap(), first, "another body");
    assert_ne!(Host::http(&host, &token.clone().trust("another CA")).unwrap(), first, "another trust");
    assert_ne!(Host::http(&host, &HttpRequest::new("POST", "https://cloud/v3")).unwrap(), first, "a send is a send");
    host.set_now_ms(11);
    let second = Host::http(&host, &token).unwrap();
    assert_ne!(second, first, "too old");
    let third = Host::http(&host, &token.clone().max_age(Duration::ZERO)).unwrap();
    assert_ne!(third, second, "asked anew");
    assert_eq!(Host::http(&host, &token).unwrap(), third, "the latest is kept");
    let before = sent.get();
    let wrong = HttpRequest::new("POST", "https://cloud/wrong").max_age(Duration::from_secs(1));
    for _ in 0..2 {
        assert_eq!(Host::http(&host, &wrong).unwrap().status, 401);
    }
    assert_eq!((sent.get(), usize::from(sent.get())), (before + 2, host.requests().len()), "a refusal is not kept");
}

#[test]
fn a_secret_elsewhere_and_insecure_tls_need_their_grant() {
    let host = TestHost::new().secret("mine", "k", "1").secret_in("shared", "clouds", "k", "2");
    assert_eq!(Host::secret_in(&host, "shared", "clouds", "k").unwrap(), b"2");
    assert_eq!(Host::secret_in(&host, "default", "mine", "k").unwrap(), b"1", "the object's own namespace");
    assert!(Host::secret_in(&host, "shared", "mine", "k").unwrap_err().is_not_found());
    assert_eq!(Host::secret_in(&host, "other", "clouds", "k").unwrap_err().refusal, Refusal::Denied);
    let request = HttpRequest { insecure: true, ..HttpRequest::new("GET", "https://cloud/") };
    assert_eq!(Host::http(&host, &request).unwrap_err().refusal, Refusal::Denied);
    assert!(host.requests().is_empty());
    let granted = TestHost::new().insecure_tls().http(|_| Ok(HttpResponse { status: 200, ..HttpResponse::default() }));
    assert_eq!(Host::http(&granted, &request).unwrap().status, 200);
}
