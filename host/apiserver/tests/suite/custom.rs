//! Custom resources: served at once, validated, defaulted, pruned; status, scale, versions, deletion.

use bytes::Bytes;
use capwasm_apiserver::{Identity, Server, ServerConfig, Store};
use http_body_util::Full;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tower::Service as _;

use crate::fixture::{both, crds, install_things, object, resource, status, thing, thing_crd, things, until};

#[tokio::test]
async fn a_custom_resource_is_served_from_the_moment_its_definition_is() {
    both(async |f| {
        let api: Api<DynamicObject> = Api::namespaced_with(f.client.clone(), "default", &things());
        assert_eq!(status(api.list(&ListParams::default()).await).code, 404);
        install_things(&f.client).await;
        let created =
            api.create(&PostParams::default(), &thing("a", json!({"size": 1, "unknown": true}))).await.unwrap();
        assert_eq!(created.data["spec"], json!({"size": 1, "colour": "red"}), "defaulted and pruned");
        assert_eq!(created.metadata.generation, Some(1));
        let discovered =
            kube::discovery::pinned_kind(&f.client, &kube::core::GroupVersionKind::gvk("example.org", "v1", "Thing"))
                .await
                .unwrap();
        assert_eq!(discovered.0.plural, "things");
    })
    .await;
}

#[tokio::test]
async fn a_definition_whose_client_goes_meanwhile_is_served_like_any_other() {
    // On a disk a commit takes long enough to go away meanwhile.
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("store.redb"), 1 << 20).unwrap();
    let server = Server::start(store, ServerConfig::new("test")).await.unwrap();
    let request = http::Request::post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(thing_crd().to_string())))
        .unwrap();
    let mut answer = server.service(Identity::admin("tester")).call(request);
    assert!(futures::poll!(&mut answer).is_pending());
    drop(answer);
    let api: Api<DynamicObject> = Api::namespaced_with(server.client(Identity::admin("tester")), "default", &things());
    until("the kind is served", async || api.list(&ListParams::default()).await.ok()).await;
}

#[tokio::test]
async fn the_schema_is_enforced_with_its_rules_over_time() {
    both(async |f| {
        let api = install_things(&f.client).await;
        let bad = status(api.create(&PostParams::default(), &thing("a", json!({"size": 11, "colour": "blue"}))).await);
        assert_eq!((bad.code, bad.reason.as_str()), (422, "Invalid"));
        let mut fields: Vec<String> = bad.details.unwrap().causes.into_iter().map(|cause| cause.field).collect();
        fields.sort();
        assert_eq!(fields, ["spec.colour", "spec.size"]);
        api.create(&PostParams::default(), &thing("a", json!({"size": 1, "fixed": "x"}))).await.unwrap();
        let patch = |value| Patch::Merge(json!({"spec": {"fixed": value}}));
        let refused = status(api.patch("a", &PatchParams::default(), &patch("y")).await);
        assert!(refused.message.contains("fixed is fixed"), "{}", refused.message);
        assert!(api.patch("a", &PatchParams::default(), &patch("x")).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn strict_field_validation_names_unknown_fields() {
    both(async |f| {
        install_things(&f.client).await;
        let request = |validation: &str| {
            let body = thing("a", json!({"size": 1, "oops": 1}));
            let uri = format!("/apis/example.org/v1/namespaces/default/things?dryRun=All&fieldValidation={validation}");
            http::Request::post(uri)
                .header("content-type", "application/json")
                .body(serde_json::to_vec(&body).unwrap())
                .unwrap()
        };
        let strict = status(f.client.request::<DynamicObject>(request("Strict")).await);
        assert_eq!((strict.code, strict.message.as_str()), (400, "strict decoding error: unknown field \"spec.oops\""));
        assert!(f.client.request::<DynamicObject>(request("Ignore")).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn status_and_spec_are_written_apart_and_only_the_spec_counts_generations() {
    both(async |f| {
        let api = install_things(&f.client).await;
        let mut with_status = thing("a", json!({"size": 1}));
        with_status.data["status"] = json!({"ready": true});
        let created = api.create(&PostParams::default(), &with_status).await.unwrap();
        assert!(created.data.get("status").is_none(), "status is not for creators");
        let both_parts = Patch::Merge(json!({"spec": {"size": 2}, "status": {"ready": true}}));
        let by_status = api.patch_status("a", &PatchParams::default(), &both_parts).await.unwrap();
        assert_eq!((&by_status.data["spec"]["size"], &by_status.data["status"]["ready"]), (&json!(1), &json!(true)));
        assert_eq!(by_status.metadata.generation, Some(1));
        let by_main = api
            .patch(
                "a",
                &PatchParams::default(),
                &Patch::Merge(json!({"spec": {"size": 2}, "status": {"ready": false}})),
            )
            .await
            .unwrap();
        assert_eq!((&by_main.data["spec"]["size"], &by_main.data["status"]["ready"]), (&json!(2), &json!(true)));
        assert_eq!(by_main.metadata.generation, Some(2));
    })
    .await;
}

#[tokio::test]
async fn a_replace_of_a_custom_resource_needs_its_revision() {
    both(async |f| {
        let api = install_things(&f.client).await;
        api.create(&PostParams::default(), &thing("a", json!({"size": 1}))).await.unwrap();
        let refused = status(api.replace("a", &PostParams::default(), &thing("a", json!({"size": 2}))).await);
        assert_eq!(refused.code, 422);
        assert!(refused.message.contains("must be specified for an update"), "{}", refused.message);
    })
    .await;
}

#[tokio::test]
async fn the_scale_subresource_reads_and_writes_replicas() {
    both(async |f| {
        let api = install_things(&f.client).await;
        api.create(&PostParams::default(), &thing("a", json!({"size": 1, "replicas": 2}))).await.unwrap();
        api.patch_status(
            "a",
            &PatchParams::default(),
            &Patch::Merge(json!({"status": {"replicas": 1, "selector": "x=y"}})),
        )
        .await
        .unwrap();
        let scale = api.get_scale("a").await.unwrap();
        assert_eq!(scale.spec.unwrap().replicas, Some(2));
        let status_ = scale.status.unwrap();
        assert_eq!((status_.replicas, status_.selector.as_deref()), (1, Some("x=y")));
        api.patch_scale("a", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 5}}))).await.unwrap();
        assert_eq!(api.get("a").await.unwrap().data["spec"]["replicas"], 5);
    })
    .await;
}

#[tokio::test]
async fn every_served_version_shows_the_same_object() {
    both(async |f| {
        let api = install_things(&f.client).await;
        let old: Api<DynamicObject> = Api::namespaced_with(f.client.clone(), "default", &resource("example.org", "v1beta1", "Thing", "things"));
        let body = object(json!({"apiVersion": "example.org/v1beta1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 3}}));
        let created = old.create(&PostParams::default(), &body).await.unwrap();
        assert_eq!(created.types.unwrap().api_version, "example.org/v1beta1");
        let shown = api.get("a").await.unwrap();
        assert_eq!(shown.types.unwrap().api_version, "example.org/v1");
        assert_eq!(shown.data["spec"]["size"], 3);
        assert_eq!(shown.metadata.resource_version, old.get("a").await.unwrap().metadata.resource_version);
    })
    .await;
}

#[tokio::test]
async fn field_selectors_know_the_declared_fields_only() {
    both(async |f| {
        let api = install_things(&f.client).await;
        for (name, colour) in [("a", "red"), ("b", "green")] {
            api.create(&PostParams::default(), &thing(name, json!({"size": 1, "colour": colour}))).await.unwrap();
        }
        let green = api.list(&ListParams::default().fields("spec.colour=green")).await.unwrap();
        assert_eq!(green.items.len(), 1);
        let refused = status(api.list(&ListParams::default().fields("spec.size=1")).await);
        assert_eq!((refused.code, refused.message.as_str()), (400, "field label not supported: spec.size"));
    })
    .await;
}

#[tokio::test]
async fn a_new_default_shows_in_objects_that_were_stored_before_it() {
    both(async |f| {
        let api = install_things(&f.client).await;
        api.create(&PostParams::default(), &thing("a", json!({"size": 1}))).await.unwrap();
        let crds: Api<DynamicObject> = Api::all_with(f.client, &crds());
        let mut crd = crds.get("things.example.org").await.unwrap();
        for version in crd.data["spec"]["versions"].as_array_mut().unwrap() {
            version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["shape"] =
                json!({"type": "string", "default": "round"});
        }
        crds.replace("things.example.org", &PostParams::default(), &crd).await.unwrap();
        assert_eq!(api.get("a").await.unwrap().data["spec"]["shape"], "round");
        assert_eq!(api.list(&ListParams::default()).await.unwrap().items[0].data["spec"]["shape"], "round");
    })
    .await;
}

#[tokio::test]
async fn a_deleted_definition_takes_its_resources_along() {
    both(async |f| {
        let api = install_things(&f.client).await;
        let mut held = thing("held", json!({"size": 1}));
        held.metadata.finalizers = Some(vec!["example.org/one".into()]);
        api.create(&PostParams::default(), &held).await.unwrap();
        api.create(&PostParams::default(), &thing("plain", json!({"size": 1}))).await.unwrap();
        let crds: Api<DynamicObject> = Api::all_with(f.client, &crds());
        crds.delete("things.example.org", &DeleteParams::default()).await.unwrap();
        until("the object without finalizer goes", async || {
            api.get_opt("plain").await.unwrap().is_none().then_some(())
        })
        .await;
        assert_eq!(status(api.create(&PostParams::default(), &thing("late", json!({"size": 1}))).await).code, 405);
        assert!(crds.get_opt("things.example.org").await.unwrap().is_some());
        api.patch("held", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"finalizers": null}})))
            .await
            .unwrap();
        until("the definition goes", async || {
            crds.get_opt("things.example.org").await.unwrap().is_none().then_some(())
        })
        .await;
        assert_eq!(status(api.list(&ListParams::default()).await).code, 404);
    })
    .await;
}

#[tokio::test]
async fn a_broken_definition_is_refused() {
    both(async |f| {
        let crds: Api<DynamicObject> = Api::all_with(f.client, &crds());
        let mut crd = thing_crd();
        crd["spec"]["versions"][0]["schema"] =
            json!({"openAPIV3Schema": {"type": "object", "properties": {"a": {"properties": {}}}}});
        assert_eq!(status(crds.create(&PostParams::default(), &object(crd)).await).reason, "Invalid");
    })
    .await;
}
