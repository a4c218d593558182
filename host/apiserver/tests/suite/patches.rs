//! JSON, merge, strategic merge and apply patches.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::fixture::{both, install_things, status, thing};

async fn config(api: &Api<ConfigMap>, data: Value) {
    let object = serde_json::from_value(json!({"metadata": {"name": "a"}, "data": data})).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

#[tokio::test]
async fn json_patches_test_before_they_write() {
    both(async |f| {
        let api: Api<ConfigMap> = Api::default_namespaced(f.client);
        config(&api, json!({"k": "1"})).await;
        let patch = |expected: &str| {
            let document = json!([{"op": "test", "path": "/data/k", "value": expected}, {"op": "replace", "path": "/data/k", "value": "2"}]);
            Patch::<ConfigMap>::Json(serde_json::from_value(document).unwrap())
        };
        assert_eq!(status(api.patch("a", &PatchParams::default(), &patch("x")).await).code, 422);
        let patched = api.patch("a", &PatchParams::default(), &patch("1")).await.unwrap();
        assert_eq!(patched.data.unwrap()["k"], "2");
    })
    .await;
}

#[tokio::test]
async fn json_patches_cannot_copy_without_end() {
    both(async |f| {
        let api: Api<ConfigMap> = Api::default_namespaced(f.client);
        config(&api, json!({"k": "x".repeat(1000)})).await;
        let doubling: Vec<Value> =
            (0..40).map(|n| json!({"op": "copy", "from": "/data", "path": format!("/data/c{n}")})).collect();
        let patch = Patch::<ConfigMap>::Json(serde_json::from_value(json!(doubling)).unwrap());
        assert_eq!(status(api.patch("a", &PatchParams::default(), &patch).await).code, 413);
    })
    .await;
}

#[tokio::test]
async fn nothing_is_nested_deeper_than_it_can_be_read_again() {
    both(async |f| {
        let api: Api<ConfigMap> = Api::default_namespaced(f.client.clone());
        config(&api, json!({"k": "1"})).await;
        let chain = |levels: usize| (0..levels).fold(json!([]), |inner, _| json!([inner]));
        let bottom = "/0".repeat(100);
        let add = |path: &str| json!({"op": "add", "path": path, "value": chain(100)});
        let rows = [
            (
                "copied into itself",
                vec![add("/x"), json!({"op": "copy", "from": "/x", "path": format!("/x{bottom}/0")})],
            ),
            (
                "moved into another",
                vec![add("/x"), add("/y"), json!({"op": "move", "from": "/x", "path": format!("/y{bottom}/0")})],
            ),
            ("added at the bottom", vec![add("/x"), add(&format!("/x{bottom}/0"))]),
        ];
        for (name, operations) in rows {
            let patch = Patch::<ConfigMap>::Json(serde_json::from_value(json!(operations)).unwrap());
            let refused = status(api.patch("a", &PatchParams::default(), &patch).await);
            assert!(refused.code == 400 && refused.message.contains("nested deeper"), "{name}: {refused:?}");
        }
        for levels in [200, 1_000] {
            let yaml = format!("metadata: {{name: b}}\nx: {}{}\n", "[".repeat(levels), "]".repeat(levels));
            let request =
                http::Request::post("/api/v1/namespaces/default/configmaps").header("content-type", "application/yaml");
            let refused = status(f.client.request_text(request.body(yaml.into_bytes()).unwrap()).await);
            assert_eq!(refused.code, 400, "{levels}: {}", refused.message);
        }
    })
    .await;
}

#[tokio::test]
async fn a_merge_patch_with_a_stale_revision_conflicts_and_without_one_never() {
    both(async |f| {
        let api: Api<ConfigMap> = Api::default_namespaced(f.client);
        config(&api, json!({"k": "1"})).await;
        let stale = api.get("a").await.unwrap().metadata.resource_version.unwrap();
        let writers = (0..8).map(|n| {
            let api = api.clone();
            async move {
                api.patch("a", &PatchParams::default(), &Patch::Merge(json!({"data": {format!("w{n}"): "x"}}))).await
            }
        });
        for written in futures::future::join_all(writers).await {
            written.unwrap();
        }
        assert_eq!(api.get("a").await.unwrap().data.unwrap().len(), 9, "no write was lost");
        let guarded = Patch::Merge(json!({"metadata": {"resourceVersion": stale}, "data": {"k": "2"}}));
        assert_eq!(status(api.patch("a", &PatchParams::default(), &guarded).await).code, 409);
    })
    .await;
}

#[tokio::test]
async fn strategic_merge_joins_lists_of_built_ins_and_is_refused_for_custom_resources() {
    both(async |f| {
        let api: Api<Deployment> = Api::default_namespaced(f.client.clone());
        let deployment = json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "one", "image": "i:1"}, {"name": "two", "image": "j:1"}]}}}});
        api.create(&PostParams::default(), &serde_json::from_value(deployment).unwrap()).await.unwrap();
        let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "two", "image": "j:2"}]}}}});
        let patched = api.patch("d", &PatchParams::default(), &Patch::Strategic(patch.clone())).await.unwrap();
        let images: Vec<_> = patched.spec.template.spec.unwrap().containers.into_iter().filter_map(|c| c.image).collect();
        assert_eq!(images, ["i:1", "j:2"]);
        let things = install_things(&f.client).await;
        things.create(&PostParams::default(), &thing("a", json!({"size": 1}))).await.unwrap();
        assert_eq!(status(things.patch("a", &PatchParams::default(), &Patch::Strategic(patch)).await).code, 415);
    })
    .await;
}

fn applied(spec: Value) -> Patch<Value> {
    Patch::Apply(json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec}))
}

#[tokio::test]
async fn apply_creates_shares_conflicts_and_takes_over() {
    both(async |f| {
        let api: Api<DynamicObject> = install_things(&f.client).await;
        let manager = |name: &str| PatchParams::apply(name);
        let created = api
            .patch("a", &manager("one"), &applied(json!({"size": 1, "ports": [{"name": "x", "port": 1}]})))
            .await
            .unwrap();
        assert_eq!(created.metadata.generation, Some(1));
        let again = api
            .patch("a", &manager("one"), &applied(json!({"size": 1, "ports": [{"name": "x", "port": 1}]})))
            .await
            .unwrap();
        assert_eq!(
            again.metadata.resource_version, created.metadata.resource_version,
            "nothing differs, nothing is written"
        );
        let conflict = status(
            api.patch("a", &manager("two"), &applied(json!({"size": 2, "ports": [{"name": "y", "port": 2}]}))).await,
        );
        assert_eq!((conflict.code, conflict.reason.as_str()), (409, "Conflict"));
        assert_eq!(conflict.message, "Apply failed with 1 conflict: conflict with \"one\": .spec.size");
        let cause = &conflict.details.unwrap().causes[0];
        let told = (cause.reason.as_str(), cause.message.as_str(), cause.field.as_str());
        assert_eq!(told, ("FieldManagerConflict", "conflict with \"one\"", ".spec.size"));
        let edit = PatchParams { field_manager: Some("three".to_owned()), ..PatchParams::default() };
        api.patch("a", &edit, &Patch::Merge(json!({"spec": {"replicas": 3}}))).await.unwrap();
        let conflict = status(api.patch("a", &manager("two"), &applied(json!({"replicas": 4}))).await);
        assert_eq!(
            conflict.message,
            "Apply failed with 1 conflict: conflict with \"three\" using example.org/v1: .spec.replicas"
        );
        let forced = api
            .patch("a", &manager("two").force(), &applied(json!({"size": 2, "ports": [{"name": "y", "port": 2}]})))
            .await
            .unwrap();
        assert_eq!(forced.data["spec"]["size"], 2);
        assert_eq!(forced.data["spec"]["ports"].as_array().unwrap().len(), 2, "list items have owners of their own");
        let left = api.patch("a", &manager("two").force(), &applied(json!({"size": 2}))).await.unwrap();
        assert_eq!(
            left.data["spec"]["ports"],
            json!([{"name": "x", "port": 1}]),
            "what its only owner leaves out goes"
        );
    })
    .await;
}
