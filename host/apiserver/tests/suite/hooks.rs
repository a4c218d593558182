//! What the configuration adds: admission, conversion, furnished namespaces; and Events in both of their groups.

use std::sync::Arc;

use capwasm_apiserver::{AdmissionError, Converter, GroupKind, ServerConfig};
use k8s_openapi::api::core::v1::{ConfigMap, Event, ServiceAccount};
use kube::Resource as _;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::runtime::events::{EventType, Recorder, Reporter};
use serde_json::{Value, json};

use crate::fixture::{Way, crds, fixture, fixture_with, object, resource, status, thing, thing_crd, things, until};

#[tokio::test]
async fn admission_hooks_default_and_refuse() {
    let hook = |new: &Value, old: Option<&Value>| {
        let mut object = new.clone();
        if old.is_none() && object["spec"]["replicas"].is_null() {
            object["spec"]["replicas"] = json!(3);
        }
        if object["spec"]["size"] == 7 {
            return Err(AdmissionError { message: "seven is taken".to_owned() });
        }
        Ok(object)
    };
    let config = ServerConfig {
        admission: vec![(GroupKind::new("example.org", "Thing"), Arc::new(hook))],
        ..ServerConfig::new("test")
    };
    let f = fixture_with(Way::InProcess, config).await;
    let api = crate::fixture::install_things(&f.client).await;
    let created = api.create(&PostParams::default(), &thing("a", json!({"size": 1}))).await.unwrap();
    assert_eq!(created.data["spec"]["replicas"], 3);
    let refused = status(api.create(&PostParams::default(), &thing("b", json!({"size": 7}))).await);
    assert_eq!(refused.code, 403);
    assert!(refused.message.contains("seven is taken"), "{}", refused.message);
}

/// `spec.size` was `spec.magnitude` in v1beta1.
struct Rename;

impl Converter for Rename {
    fn convert(&self, mut object: Value, to: &str) -> Result<Value, String> {
        let (from, onto) = if to == "example.org/v1" { ("magnitude", "size") } else { ("size", "magnitude") };
        let spec = object["spec"].as_object_mut().ok_or("spec is missing")?;
        if let Some(value) = spec.remove(from) {
            spec.insert(onto.to_owned(), value);
        }
        object["apiVersion"] = json!(to);
        Ok(object)
    }
}

#[tokio::test]
async fn converters_translate_between_versions_in_reads_writes_lists_and_watches() {
    let config = ServerConfig {
        converters: vec![(GroupKind::new("example.org", "Thing"), Arc::new(Rename))],
        ..ServerConfig::new("test")
    };
    let f = fixture_with(Way::InProcess, config).await;
    let mut crd = thing_crd();
    let old_spec = &mut crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let size = old_spec["properties"].as_object_mut().unwrap().remove("size").unwrap();
    old_spec["properties"]["magnitude"] = size;
    old_spec["required"] = json!(["magnitude"]);
    let definitions: Api<DynamicObject> = Api::all_with(f.client.clone(), &crds());
    definitions.create(&PostParams::default(), &object(crd)).await.unwrap();
    let new: Api<DynamicObject> = Api::namespaced_with(f.client.clone(), "default", &things());
    let old: Api<DynamicObject> =
        Api::namespaced_with(f.client.clone(), "default", &resource("example.org", "v1beta1", "Thing", "things"));
    let body = object(
        json!({"apiVersion": "example.org/v1beta1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"magnitude": 4}}),
    );
    let created = old.create(&PostParams::default(), &body).await.unwrap();
    assert_eq!(created.data["spec"]["magnitude"], 4);
    let stored = new.get("a").await.unwrap();
    assert_eq!((&stored.data["spec"]["size"], &stored.data["spec"]["magnitude"]), (&json!(4), &Value::Null));
    assert_eq!(old.list(&ListParams::default()).await.unwrap().items[0].data["spec"]["magnitude"], 4);
    let patch = kube::api::Patch::Merge(json!({"spec": {"magnitude": 5}}));
    old.patch("a", &kube::api::PatchParams::default(), &patch).await.unwrap();
    assert_eq!(new.get("a").await.unwrap().data["spec"]["size"], 5);
    let mut watch = std::pin::pin!(old.watch(&Default::default(), "0").await.unwrap());
    let kube::api::WatchEvent::Added(seen) = futures::TryStreamExt::try_next(&mut watch).await.unwrap().unwrap() else {
        panic!("expected the object")
    };
    assert_eq!(seen.data["spec"]["magnitude"], 5);
}

#[tokio::test]
async fn namespaces_are_furnished_when_the_configuration_asks() {
    let config = ServerConfig { service_account_root_ca: Some("PEM".to_owned()), ..ServerConfig::new("test") };
    let f = fixture_with(Way::InProcess, config).await;
    let accounts: Api<ServiceAccount> = Api::namespaced(f.client.clone(), "kube-system");
    let maps: Api<ConfigMap> = Api::namespaced(f.client, "kube-system");
    until("the account is there", async || accounts.get_opt("default").await.unwrap()).await;
    let ca = until("the bundle is there", async || maps.get_opt("kube-root-ca.crt").await.unwrap()).await;
    assert_eq!(ca.data.unwrap()["ca.crt"], "PEM");
}

#[tokio::test]
async fn recorded_events_show_in_both_groups() {
    let f = fixture(Way::InProcess).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(f.client.clone());
    let subject = serde_json::from_value(json!({"metadata": {"name": "subject"}})).unwrap();
    let subject: ConfigMap = maps.create(&PostParams::default(), &subject).await.unwrap();
    let recorder = Recorder::new(f.client.clone(), Reporter { controller: "tester".into(), instance: None });
    let event = kube::runtime::events::Event {
        type_: EventType::Warning,
        reason: "Tested".into(),
        note: Some("it was".into()),
        action: "Test".into(),
        secondary: None,
    };
    recorder.publish(&event, &subject.object_ref(&())).await.unwrap();
    recorder.publish(&event, &subject.object_ref(&())).await.unwrap();
    let events: Api<Event> = Api::default_namespaced(f.client);
    let found = events.list(&ListParams::default().fields("involvedObject.name=subject")).await.unwrap();
    assert_eq!(found.items.len(), 1, "the second is a repetition of the first");
    assert_eq!(found.items[0].message.as_deref(), Some("it was"));
}

#[tokio::test]
async fn old_events_are_deleted() {
    let now = Arc::new(std::sync::atomic::AtomicI64::new(1_700_000_000));
    let clock = {
        let now = Arc::clone(&now);
        capwasm_apiserver::Clock::new(move || {
            jiff::Timestamp::from_second(now.load(std::sync::atomic::Ordering::Relaxed)).unwrap()
        })
    };
    let f = fixture_with(Way::InProcess, ServerConfig { clock, ..ServerConfig::new("test") }).await;
    let events: Api<Event> = Api::default_namespaced(f.client);
    let body = json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "X", "name": "x", "namespace": "default"}});
    events.create(&PostParams::default(), &serde_json::from_value(body).unwrap()).await.unwrap();
    now.fetch_add(4000, std::sync::atomic::Ordering::Relaxed);
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(61)).await;
    tokio::time::resume();
    until("the event goes", async || events.get_opt("e").await.unwrap().is_none().then_some(())).await;
}
