//! What the configuration adds: admission, conversion, furnished namespaces; and Events in both of their groups.

use std::sync::Arc;

use capwasm_apiserver::{AdmissionError, ConversionError, ConvertedKind, Converter, GroupKind, ServerConfig};
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
    fn convert(&self, kind: &ConvertedKind, objects: Vec<Value>, to: &str) -> Result<Vec<Value>, ConversionError> {
        assert_eq!((kind.group.as_str(), kind.kind.as_str()), ("example.org", "Thing"));
        let (from, onto) = if to == "example.org/v1" { ("magnitude", "size") } else { ("size", "magnitude") };
        let convert = |mut object: Value| {
            if let Some(value) = object["spec"].as_object_mut().and_then(|spec| spec.remove(from)) {
                if value == 9 {
                    return Err(ConversionError::Failed("nine has no other name".to_owned()));
                }
                object["spec"][onto] = value;
            }
            object["apiVersion"] = json!(to);
            // None of its business.
            object["metadata"]["uid"] = json!("forged");
            // What a client may have kept for it in an annotation.
            if let Some(kept) = object.pointer("/metadata/annotations/kept").and_then(Value::as_str) {
                let kept: Value = serde_json::from_str(kept).map_err(|e| ConversionError::Failed(e.to_string()))?;
                object["spec"].as_object_mut().unwrap().extend(kept.as_object().cloned().unwrap());
            }
            object["metadata"]["labels"]["converted"] = json!("yes");
            Ok(object)
        };
        objects.into_iter().map(convert).collect()
    }
}

/// Thing with `spec.magnitude` in v1beta1, and with a webhook that does not run.
fn renamed_crd() -> Value {
    let mut crd = thing_crd();
    let old_spec = &mut crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let size = old_spec["properties"].as_object_mut().unwrap().remove("size").unwrap();
    old_spec["properties"]["magnitude"] = size;
    old_spec["required"] = json!(["magnitude"]);
    let service = json!({"namespace": "capwasm-system", "name": "capwasm", "path": "/convert"});
    crd["spec"]["conversion"] = json!({"strategy": "Webhook",
        "webhook": {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}});
    crd
}

fn older() -> kube::api::ApiResource {
    resource("example.org", "v1beta1", "Thing", "things")
}

#[tokio::test]
async fn converters_translate_between_versions_in_reads_writes_lists_and_watches() {
    let config = ServerConfig {
        converter: Some(Arc::new(Rename)),
        // What is admitted is in the storage version, whatever the client speaks.
        admission: vec![(
            GroupKind::new("example.org", "Thing"),
            Arc::new(|new: &Value, old: Option<&Value>| {
                for object in [Some(new), old].into_iter().flatten() {
                    assert_eq!(object["apiVersion"], "example.org/v1");
                    assert!(object["spec"]["magnitude"].is_null());
                }
                Ok(new.clone())
            }),
        )],
        ..ServerConfig::new("test")
    };
    let f = fixture_with(Way::InProcess, config).await;
    let definitions: Api<DynamicObject> = Api::all_with(f.client.clone(), &crds());
    definitions.create(&PostParams::default(), &object(renamed_crd())).await.unwrap();
    let new: Api<DynamicObject> = Api::namespaced_with(f.client.clone(), "default", &things());
    let old: Api<DynamicObject> = Api::namespaced_with(f.client.clone(), "default", &older());
    let body = object(
        json!({"apiVersion": "example.org/v1beta1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"magnitude": 4}}),
    );
    let created = old.create(&PostParams::default(), &body).await.unwrap();
    assert_eq!(created.data["spec"]["magnitude"], 4);
    let stored = new.get("a").await.unwrap();
    assert_ne!(stored.metadata.uid.as_deref(), Some("forged"), "identity is not the converter's");
    assert_eq!(stored.metadata.labels.as_ref().unwrap()["converted"], "yes");
    assert_eq!((&stored.data["spec"]["size"], &stored.data["spec"]["magnitude"]), (&json!(4), &Value::Null));
    assert_eq!(old.list(&ListParams::default()).await.unwrap().items[0].data["spec"]["magnitude"], 4);
    let patch = kube::api::Patch::Merge(json!({"spec": {"magnitude": 5}}));
    old.patch("a", &kube::api::PatchParams::default(), &patch).await.unwrap();
    assert_eq!(new.get("a").await.unwrap().data["spec"]["size"], 5);
    let apply = kube::api::Patch::Apply(json!({"apiVersion": "example.org/v1beta1", "kind": "Thing",
        "metadata": {"name": "a"}, "spec": {"magnitude": 6}}));
    let applied = old.patch("a", &kube::api::PatchParams::apply("tester").force(), &apply).await.unwrap();
    assert_eq!((&applied.data["spec"]["magnitude"], &applied.data["spec"]["size"]), (&json!(6), &Value::Null));
    assert_eq!(new.get("a").await.unwrap().data["spec"]["size"], 6);
    let status_patch = kube::api::Patch::Merge(json!({"status": {"ready": true}}));
    old.patch_status("a", &kube::api::PatchParams::default(), &status_patch).await.unwrap();
    let grown = new.get("a").await.unwrap();
    assert_eq!((&grown.data["status"]["ready"], &grown.data["spec"]["size"]), (&json!(true), &json!(6)));
    let mistyped = kube::api::Patch::Merge(json!({"spec": {"magnitude": "large"}}));
    let refused = status(old.patch("a", &kube::api::PatchParams::default(), &mistyped).await);
    assert_eq!(refused.code, 422);
    assert!(refused.message.contains("spec.magnitude"), "in the client's own words: {}", refused.message);
    let unsayable = kube::api::Patch::Merge(json!({"spec": {"magnitude": 9}}));
    let refused = status(old.patch("a", &kube::api::PatchParams::default(), &unsayable).await);
    assert_eq!(refused.code, 500);
    assert!(refused.message.contains("nine has no other name"), "{}", refused.message);
    let mut watch = std::pin::pin!(old.watch(&Default::default(), "0").await.unwrap());
    let kube::api::WatchEvent::Added(seen) = futures::TryStreamExt::try_next(&mut watch).await.unwrap().unwrap() else {
        panic!("expected the object")
    };
    assert_eq!(seen.data["spec"]["magnitude"], 6);
}

/// What a client lets a converter put into an object passes the schema of the stored version.
#[tokio::test]
async fn a_converter_brings_nothing_past_the_schema_of_the_stored_version() {
    let f =
        fixture_with(Way::InProcess, ServerConfig { converter: Some(Arc::new(Rename)), ..ServerConfig::new("test") })
            .await;
    let definitions: Api<DynamicObject> = Api::all_with(f.client.clone(), &crds());
    definitions.create(&PostParams::default(), &object(renamed_crd())).await.unwrap();
    let new: Api<DynamicObject> = Api::namespaced_with(f.client.clone(), "default", &things());
    let old: Api<DynamicObject> = Api::namespaced_with(f.client.clone(), "default", &older());
    let body = |name: &str, kept: Value| {
        object(json!({"apiVersion": "example.org/v1beta1", "kind": "Thing",
            "metadata": {"name": name, "annotations": {"kept": kept.to_string()}}, "spec": {"magnitude": 4}}))
    };
    let smuggled = json!({"smuggled": {"deep": true}});
    old.create(&PostParams::default(), &body("a", smuggled.clone())).await.unwrap();
    let spec = async || new.get("a").await.unwrap().data["spec"].clone();
    assert_eq!((&spec().await["size"], &spec().await["smuggled"]), (&json!(4), &Value::Null));
    let patch = kube::api::Patch::Apply(body("a", smuggled));
    old.patch("a", &kube::api::PatchParams::apply("tester").force(), &patch).await.unwrap();
    assert_eq!(spec().await["smuggled"], Value::Null);
    let refused = status(old.create(&PostParams::default(), &body("b", json!({"size": "large"}))).await);
    assert_eq!(refused.code, 422, "{}", refused.message);
    assert!(refused.message.contains("spec.size"), "{}", refused.message);
}

/// Nothing is ever relabelled that the CRD leaves to a converter.
#[tokio::test]
async fn without_a_converter_the_other_versions_are_refused_and_the_stored_one_is_served() {
    let f = fixture(Way::InProcess).await;
    let definitions: Api<DynamicObject> = Api::all_with(f.client.clone(), &crds());
    definitions.create(&PostParams::default(), &object(renamed_crd())).await.unwrap();
    let new: Api<DynamicObject> = Api::namespaced_with(f.client.clone(), "default", &things());
    let old: Api<DynamicObject> = Api::namespaced_with(f.client.clone(), "default", &older());
    new.create(&PostParams::default(), &thing("a", json!({"size": 1}))).await.unwrap();
    let body = object(
        json!({"apiVersion": "example.org/v1beta1", "kind": "Thing", "metadata": {"name": "b"}, "spec": {"magnitude": 4}}),
    );
    let refusals = [
        status(old.get("a").await),
        status(old.list(&ListParams::default()).await),
        status(old.create(&PostParams::default(), &body).await),
    ];
    for refused in refusals {
        assert_eq!((refused.code, refused.reason.as_str()), (503, "ServiceUnavailable"));
        assert!(refused.message.contains("no converter for Thing.example.org"), "{}", refused.message);
    }
    assert_eq!(new.list(&ListParams::default()).await.unwrap().items.len(), 1);
    // An owner is looked up as it is stored, whatever version the reference names.
    let owner = new.get("a").await.unwrap();
    let reference =
        json!([{"apiVersion": "example.org/v1beta1", "kind": "Thing", "name": "a", "uid": owner.metadata.uid}]);
    let owned =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "ownerReferences": reference}});
    let maps: Api<ConfigMap> = Api::default_namespaced(f.client.clone());
    maps.create(&PostParams::default(), &serde_json::from_value(owned).unwrap()).await.unwrap();
    new.delete("a", &Default::default()).await.unwrap();
    until("what it owns goes with it", async || maps.get_opt("m").await.unwrap().is_none().then_some(())).await;
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
