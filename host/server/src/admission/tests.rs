#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tracing_subscriber::prelude::*;

use super::*;
use crate::testing::{GROUP, object, pool, refusal, world};

/// A pool with instructions for the fixture's admission.
fn admitted(version: &str, name: &str, admit: &str, spec: Value) -> DynamicObject {
    let mut pool = pool(version, name, spec);
    pool.annotations_mut().insert("fixture.example/admit".into(), admit.into());
    pool
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_defaults_and_validates_its_kind_in_every_version_and_in_dry_runs() {
    let world = world().await.with_crds().await;
    world.conversions.serve(&world.provider);
    let (new, old) = (world.pools("v1beta2"), world.pools("v1beta1"));
    let created = new.create(&PostParams::default(), &admitted("v1beta2", "p", "zone", json!({}))).await.unwrap();
    assert_eq!(created.data["spec"], json!({"placement": {"zone": "z"}}), "defaulted");
    // Through the other version, and by server-side apply; what the provider defaults is what was stored.
    let seen = old.create(&PostParams::default(), &admitted("v1beta1", "q", "zone", json!({}))).await.unwrap();
    assert_eq!(seen.data["spec"], json!({"zone": "z"}));
    let merge = Patch::Merge(json!({"spec": {"zone": "other"}}));
    let (code, message) = refusal(old.patch("q", &PatchParams::default(), &merge).await);
    assert_eq!(code, 422, "{message}");
    assert!(message.contains("spec.placement.zone: may not change"), "{message}");
    assert!(message.contains("fixturepools.infrastructure.fixture.example"), "{message}");
    let apply = Patch::Apply(json!({"apiVersion": format!("{GROUP}/v1beta2"), "kind": "FixturePool",
        "metadata": {"name": "q"}, "spec": {"placement": {"zone": "other"}}}));
    assert_eq!(refusal(new.patch("q", &PatchParams::apply("t").force(), &apply).await).0, 422);

    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let shown = new.create(&dry, &admitted("v1beta2", "dry", "zone", json!({}))).await.unwrap();
    assert_eq!(shown.data["spec"]["placement"]["zone"], "z");
    assert_eq!(refusal(new.create(&dry, &admitted("v1beta2", "dry", "forbid", json!({}))).await).0, 403);
    assert_eq!(refusal(new.get("dry").await).0, 404);
}

#[tokio::test]
async fn refusals_have_the_shape_of_a_webhooks_and_failures_refuse() {
    let world = world().await.with_crds().await;
    world.conversions.serve(&world.provider);
    let pools = world.pools("v1beta2");
    for (admit, expected, text) in [
        ("forbid", 403, "denied the request: nobody may have this"),
        ("panic", 500, "trapped"),
        ("act", 500, "it used `outcome`"),
        ("relabel", 500, "another version or kind"),
        // The schema has the last word about what was defaulted.
        ("type", 422, "spec.placement.zone"),
    ] {
        let (code, message) =
            refusal(pools.create(&PostParams::default(), &admitted("v1beta2", "p", admit, json!({}))).await);
        assert!(code == expected && message.contains(text), "{admit}: {code} {message}");
    }
    let renamed = pools.create(&PostParams::default(), &admitted("v1beta2", "p", "rename", json!({}))).await.unwrap();
    assert_eq!(renamed.name_any(), "p", "identity is not the provider's");
    // Another kind of the same provider, whose descriptor does not say admission.
    let machine = json!({"apiVersion": format!("{GROUP}/v1beta2"), "kind": "FixtureMachine",
        "metadata": {"name": "m", "annotations": {"fixture.example/admit": "forbid"}}, "spec": {}});
    let machines = crate::testing::api(&world.client, GROUP, "v1beta2", "FixtureMachine", "default");
    machines.create(&PostParams::default(), &object(machine)).await.unwrap();
}

/// Whatever a provider makes of its objects, they belong to the Cluster that their author names.
#[tokio::test]
async fn neither_defaults_nor_conversions_choose_the_cluster_of_an_object() {
    let world = world().await.with_crds().await;
    world.conversions.serve(&world.provider);
    let (new, old) = (world.pools("v1beta2"), world.pools("v1beta1"));
    let label = "cluster.x-k8s.io/cluster-name";
    let mut pool = admitted("v1beta2", "mine", "steal", json!({"do": "steal"}));
    pool.labels_mut().insert(label.into(), "mine".into());
    new.create(&PostParams::default(), &pool).await.unwrap();
    new.create(&PostParams::default(), &admitted("v1beta2", "nobodys", "steal", json!({"do": "steal"}))).await.unwrap();
    for api in [&new, &old] {
        assert_eq!(api.get("mine").await.unwrap().labels()[label], "mine");
        assert_eq!(api.get("nobodys").await.unwrap().labels().get(label), None);
    }
}

#[tokio::test]
async fn a_status_and_an_object_that_is_being_deleted_are_left_alone() {
    let world = world().await.with_crds().await;
    let pools = world.pools("v1beta2");
    let mut held = admitted("v1beta2", "p", "forbid", json!({"placement": {"zone": "a"}}));
    held.metadata.finalizers = Some(vec!["fixture.example/held".into()]);
    pools.create(&PostParams::default(), &held).await.unwrap();
    world.conversions.serve(&world.provider);
    let label = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    assert_eq!(refusal(pools.patch("p", &PatchParams::default(), &label).await).0, 403);
    let status = Patch::Merge(json!({"status": {"replicas": 1}}));
    pools.patch_status("p", &PatchParams::default(), &status).await.unwrap();
    pools.delete("p", &DeleteParams::default()).await.unwrap();
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    pools.patch("p", &PatchParams::default(), &release).await.unwrap();
    assert_eq!(refusal(pools.get("p").await).0, 404);
}

/// Between the start of the server and of the provider, and while a new version of it does not load.
#[tokio::test]
async fn nothing_is_stored_while_the_provider_that_has_to_be_asked_is_not_loaded() {
    let world = world().await.with_crds().await;
    let pools = world.pools("v1beta2");
    let kinds = json!([{"group": GROUP, "kind": "FixturePool", "version": "v1beta2", "role": "x", "admission": "fixturepools"},
        {"group": GROUP, "kind": "FixtureMachine", "version": "v1beta2", "role": "x"}]);
    let admissions = world.conversions.admissions();
    let mut changes = admissions.changes();
    admissions.expect(&json!({"metadata": {"name": "fixture"}, "status": {"kinds": kinds}}));
    assert!(changes.has_changed().unwrap());
    let new = admitted("v1beta2", "p", "zone", json!({}));
    let (code, message) = refusal(pools.create(&PostParams::default(), &new).await);
    assert!(code == 503 && message.contains("provider \"fixture\""), "{code} {message}");
    let expected = admissions.kinds();
    assert_eq!(expected.iter().map(|kind| kind.plural.as_str()).collect::<Vec<_>>(), ["fixturepools"]);
    world.conversions.serve(&world.provider);
    assert_eq!(admissions.kinds(), expected);
    pools.create(&PostParams::default(), &new).await.unwrap();
    world.conversions.leave("fixture");
    changes.mark_unchanged();
    assert_eq!(admissions.kinds(), []);
    pools.create(&PostParams::default(), &admitted("v1beta2", "q", "forbid", json!({}))).await.unwrap();
}

/// What an API server asks of a provider is told like every other call: metrics by function and result, and a span.
#[tokio::test]
async fn admissions_and_conversions_are_counted_and_traced_like_all_calls() {
    let spans = Spans::of_this_process();
    let world = world().await.with_crds().await;
    world.conversions.serve(&world.provider);
    let (new, old) = (world.pools("v1beta2"), world.pools("v1beta1"));
    new.create(&PostParams::default(), &admitted("v1beta2", "p", "zone", json!({}))).await.unwrap();
    for admit in ["forbid", "panic", "act"] {
        refusal(new.create(&PostParams::default(), &admitted("v1beta2", "q", admit, json!({}))).await);
    }
    old.get("p").await.unwrap();

    let mut registry = prometheus_client::registry::Registry::default();
    world.conversions.calls().register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for line in [
        r#"capwasm_provider_calls_total{provider="fixture",function="admission.default",result="ok"} "#,
        r#"capwasm_provider_calls_total{provider="fixture",function="admission.default",result="ProviderTrapped"} 1"#,
        r#"capwasm_provider_calls_total{provider="fixture",function="admission.default",result="ProviderContractBroken"} 1"#,
        r#"capwasm_provider_calls_total{provider="fixture",function="admission.validate",result="ok"} 1"#,
        r#"capwasm_provider_calls_total{provider="fixture",function="admission.validate",result="problem"} 1"#,
        r#"capwasm_provider_calls_total{provider="fixture",function="conversion.convert",result="ok"} "#,
        r#"capwasm_provider_call_seconds_count{provider="fixture",function="conversion.convert"} "#,
        r#"capwasm_provider_call_seconds_count{provider="fixture",function="admission.validate"} 2"#,
        r#"capwasm_provider_call_memory_bytes_count{provider="fixture",function="admission.validate"} 2"#,
    ] {
        assert!(text.lines().any(|found| found.starts_with(line)), "{line} is not in\n{text}");
    }
    let seen = spans.0.lock().clone();
    for function in ["admission.default", "admission.validate", "conversion.convert"] {
        assert!(seen.iter().any(|fields| fields.contains(&format!("function={function:?}"))), "{function}: {seen:?}");
    }
}

/// Fields of the spans `call` of this process: conversions have a thread of their own.
#[derive(Clone, Default)]
struct Spans(Arc<parking_lot::Mutex<Vec<String>>>);

impl Spans {
    fn of_this_process() -> Spans {
        let spans = Spans::default();
        let layer = spans.clone().with_filter(tracing_subscriber::filter::LevelFilter::INFO);
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer)).unwrap();
        spans
    }
}

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Spans {
    fn on_new_span(
        &self,
        attributes: &tracing::span::Attributes<'_>,
        _: &tracing::Id,
        _: tracing_subscriber::layer::Context<'_, S>,
    ) {
        struct Text(String);
        impl tracing::field::Visit for Text {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0 += &format!("{field}={value:?} ");
            }
        }
        if attributes.metadata().name() == "call" {
            let mut text = Text(String::new());
            attributes.record(&mut text);
            self.0.lock().push(text.0);
        }
    }
}
