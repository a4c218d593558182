//! Create, read, update and delete of built-in kinds.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Secret};
use kube::api::{
    Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy,
};
use kube::core::response::StatusSummary;
use serde_json::json;

use crate::fixture::{Way, both, fixture, status, until};

fn map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.into()), ..Default::default() },
        data: Some([("k".into(), value.into())].into()),
        ..Default::default()
    }
}

#[tokio::test]
async fn an_object_is_created_read_replaced_and_deleted() {
    both(async |f| {
        let api: Api<ConfigMap> = Api::default_namespaced(f.client);
        let created = api.create(&PostParams::default(), &map("a", "1")).await.unwrap();
        assert!(created.metadata.uid.is_some() && created.metadata.creation_timestamp.is_some());
        assert_eq!(created.metadata.namespace.as_deref(), Some("default"));
        let mut changed = api.get("a").await.unwrap();
        changed.data = Some([("k".into(), "2".into())].into());
        let replaced = api.replace("a", &PostParams::default(), &changed).await.unwrap();
        assert_ne!(created.metadata.resource_version, replaced.metadata.resource_version);
        assert_eq!(created.metadata.uid, replaced.metadata.uid);
        let deleted = api.delete("a", &DeleteParams::default()).await.unwrap();
        assert_eq!(deleted.right().unwrap().status, Some(StatusSummary::Success));
        assert_eq!(status(api.get("a").await).reason, "NotFound");
    })
    .await;
}

#[tokio::test]
async fn a_spec_that_is_no_object_is_refused_where_the_server_itself_writes_into_it() {
    both(async |f| {
        let csrs = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
        for (path, kind, version) in
            [("/api/v1/namespaces", "Namespace", "v1"), (csrs, "CertificateSigningRequest", "certificates.k8s.io/v1")]
        {
            for spec in [json!("text"), json!([1]), json!(1)] {
                let body = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": spec});
                let request = http::Request::post(path).header("content-type", "application/json");
                let request = request.body(body.to_string().into_bytes()).unwrap();
                assert_eq!(status(f.client.request_text(request).await).code, 422, "{kind} {spec}");
            }
        }
        let patch = Patch::Merge(json!({"spec": "text"}));
        let namespaces: Api<Namespace> = Api::all(f.client.clone());
        assert_eq!(status(namespaces.patch("default", &PatchParams::default(), &patch).await).code, 422);
    })
    .await;
}

#[tokio::test]
async fn errors_carry_the_reasons_of_kubernetes() {
    both(async |f| {
        let api: Api<ConfigMap> = Api::default_namespaced(f.client.clone());
        api.create(&PostParams::default(), &map("a", "1")).await.unwrap();
        let twice = status(api.create(&PostParams::default(), &map("a", "1")).await);
        assert_eq!((twice.code, twice.reason.as_str()), (409, "AlreadyExists"));
        assert_eq!(twice.message, "configmaps \"a\" already exists");
        let missing = status(api.get("b").await);
        assert_eq!((missing.code, missing.message.as_str()), (404, "configmaps \"b\" not found"));
        let bad = status(api.create(&PostParams::default(), &map("Not_A_Name", "1")).await);
        assert_eq!((bad.code, bad.reason.as_str()), (422, "Invalid"));
        let elsewhere: Api<ConfigMap> = Api::namespaced(f.client, "nowhere");
        let nowhere = status(elsewhere.create(&PostParams::default(), &map("a", "1")).await);
        assert_eq!((nowhere.code, nowhere.message.as_str()), (404, "namespaces \"nowhere\" not found"));
    })
    .await;
}

#[tokio::test]
async fn a_stale_replace_conflicts_and_a_replace_without_change_keeps_the_revision() {
    both(async |f| {
        let api: Api<ConfigMap> = Api::default_namespaced(f.client);
        let first = api.create(&PostParams::default(), &map("a", "1")).await.unwrap();
        let mut second = first.clone();
        second.data = Some([("k".into(), "2".into())].into());
        let second = api.replace("a", &PostParams::default(), &second).await.unwrap();
        let stale = status(api.replace("a", &PostParams::default(), &first).await);
        assert_eq!((stale.code, stale.reason.as_str()), (409, "Conflict"));
        let same = api.replace("a", &PostParams::default(), &second).await.unwrap();
        assert_eq!(same.metadata.resource_version, second.metadata.resource_version);
        assert_eq!(same.metadata.managed_fields, second.metadata.managed_fields);
    })
    .await;
}

#[tokio::test]
async fn generated_names_dry_runs_and_secrets_follow_the_rules() {
    both(async |f| {
        let api: Api<Secret> = Api::default_namespaced(f.client);
        let secret = Secret {
            metadata: ObjectMeta { generate_name: Some("s-".into()), ..Default::default() },
            string_data: Some([("k".into(), "plain".into())].into()),
            ..Default::default()
        };
        let dry = api.create(&PostParams { dry_run: true, ..Default::default() }, &secret).await.unwrap();
        assert!(dry.metadata.uid.is_some(), "a dry run answers as the real one");
        assert_eq!(api.list(&ListParams::default()).await.unwrap().items.len(), 0, "and leaves nothing");
        let created = api.create(&PostParams::default(), &secret).await.unwrap();
        assert!(created.metadata.name.as_deref().unwrap().starts_with("s-"));
        assert_eq!(created.type_.as_deref(), Some("Opaque"));
        assert_eq!(created.data.unwrap()["k"].0, b"plain");
        assert!(created.string_data.is_none(), "stringData is write-only");
    })
    .await;
}

#[tokio::test]
async fn finalizers_hold_a_deleted_object_until_the_last_is_gone() {
    both(async |f| {
        let api: Api<ConfigMap> = Api::default_namespaced(f.client);
        let mut held = map("a", "1");
        held.metadata.finalizers = Some(vec!["example.org/one".into()]);
        api.create(&PostParams::default(), &held).await.unwrap();
        let pending = api.delete("a", &DeleteParams::default()).await.unwrap().left().unwrap();
        assert!(pending.metadata.deletion_timestamp.is_some());
        let again = api.delete("a", &DeleteParams::default()).await.unwrap().left().unwrap();
        assert_eq!(
            again.metadata.resource_version, pending.metadata.resource_version,
            "a second delete changes nothing"
        );
        let more = json!({"metadata": {"finalizers": ["example.org/one", "example.org/two"]}});
        assert_eq!(status(api.patch("a", &PatchParams::default(), &Patch::Merge(&more)).await).code, 422);
        let none = json!({"metadata": {"finalizers": null}});
        api.patch("a", &PatchParams::default(), &Patch::Merge(&none)).await.unwrap();
        assert_eq!(status(api.get("a").await).code, 404);
    })
    .await;
}

#[tokio::test]
async fn preconditions_protect_a_successor_of_the_same_name() {
    both(async |f| {
        let api: Api<ConfigMap> = Api::default_namespaced(f.client.clone());
        let first = api.create(&PostParams::default(), &map("a", "1")).await.unwrap();
        api.delete("a", &DeleteParams::default()).await.unwrap();
        let second = api.create(&PostParams::default(), &map("a", "2")).await.unwrap();
        let meant_for =
            |uid: &Option<String>| Patch::Merge(json!({"metadata": {"uid": uid}, "data": {"patched": "yes"}}));
        let none = PatchParams::default();
        assert_eq!(status(api.patch("a", &none, &meant_for(&first.metadata.uid)).await).code, 409);
        api.patch("a", &none, &meant_for(&second.metadata.uid)).await.unwrap();
        // A status has the metadata of the live object, but the write says which one it is meant for.
        let nodes: Api<Node> = Api::all(f.client);
        let node = Node { metadata: ObjectMeta { name: Some("n".into()), ..Default::default() }, ..Default::default() };
        let first_node = nodes.create(&PostParams::default(), &node).await.unwrap();
        nodes.delete("n", &DeleteParams::default()).await.unwrap();
        let second_node = nodes.create(&PostParams::default(), &node).await.unwrap();
        let meant_for =
            |uid: &Option<String>| Patch::Merge(json!({"metadata": {"uid": uid}, "status": {"phase": "Running"}}));
        assert_eq!(status(nodes.patch_status("n", &none, &meant_for(&first_node.metadata.uid)).await).code, 409);
        nodes.patch_status("n", &none, &meant_for(&second_node.metadata.uid)).await.unwrap();
        let only = DeleteParams {
            preconditions: Some(Preconditions { uid: first.metadata.uid, resource_version: None }),
            ..Default::default()
        };
        assert_eq!(status(api.delete("a", &only).await).code, 409);
        assert!(api.get("a").await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn a_deleted_namespace_is_emptied_and_then_goes() {
    both(async |f| {
        let namespaces: Api<Namespace> = Api::all(f.client.clone());
        let system: Vec<_> = namespaces
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .into_iter()
            .filter_map(|n| n.metadata.name)
            .collect();
        assert_eq!(system, ["default", "kube-node-lease", "kube-public", "kube-system"]);
        assert_eq!(status(namespaces.delete("default", &DeleteParams::default()).await).code, 403);
        let work = Namespace {
            metadata: ObjectMeta { name: Some("work".into()), ..Default::default() },
            ..Default::default()
        };
        let work = namespaces.create(&PostParams::default(), &work).await.unwrap();
        assert_eq!(work.metadata.labels.unwrap()["kubernetes.io/metadata.name"], "work");
        let api: Api<ConfigMap> = Api::namespaced(f.client, "work");
        api.create(&PostParams::default(), &map("plain", "1")).await.unwrap();
        let mut held = map("held", "1");
        held.metadata.finalizers = Some(vec!["example.org/one".into()]);
        api.create(&PostParams::default(), &held).await.unwrap();
        namespaces.delete("work", &DeleteParams::default()).await.unwrap();
        until("the object without finalizer goes", async || {
            api.get_opt("plain").await.unwrap().is_none().then_some(())
        })
        .await;
        let refused = status(api.create(&PostParams::default(), &map("late", "1")).await);
        assert_eq!((refused.code, refused.details.unwrap().causes[0].reason.as_str()), (403, "NamespaceTerminating"));
        let terminating = namespaces.get("work").await.unwrap();
        assert_eq!(terminating.status.unwrap().phase.as_deref(), Some("Terminating"));
        api.patch("held", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"finalizers": null}})))
            .await
            .unwrap();
        until("the namespace goes", async || namespaces.get_opt("work").await.unwrap().is_none().then_some(())).await;
    })
    .await;
}

#[tokio::test]
async fn nothing_survives_its_namespace_however_late_it_arrives() {
    let f = fixture(Way::InProcess).await;
    let namespaces: Api<Namespace> = Api::all(f.client.clone());
    for round in 0..10 {
        let name = format!("work{round}");
        let work =
            Namespace { metadata: ObjectMeta { name: Some(name.clone()), ..Default::default() }, ..Default::default() };
        namespaces.create(&PostParams::default(), &work).await.unwrap();
        let api: Api<ConfigMap> = Api::namespaced(f.client.clone(), &name);
        let creators = (0..8).map(|creator| {
            let api = api.clone();
            async move {
                let mut n = 0;
                while api.create(&PostParams::default(), &map(&format!("o{creator}-{n}"), "1")).await.is_ok() {
                    n += 1;
                }
            }
        });
        let delete = async {
            tokio::task::yield_now().await;
            namespaces.delete(&name, &DeleteParams::default()).await.unwrap();
        };
        futures::future::join(futures::future::join_all(creators), delete).await;
        until("the namespace goes", async || namespaces.get_opt(&name).await.unwrap().is_none().then_some(())).await;
        until("nothing is left", async || {
            api.list(&ListParams::default()).await.unwrap().items.is_empty().then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn collections_are_deleted_by_selector() {
    both(async |f| {
        let api: Api<ConfigMap> = Api::default_namespaced(f.client);
        for (name, colour) in [("a", "red"), ("b", "green"), ("c", "red")] {
            let mut object = map(name, "1");
            object.metadata.labels = Some([("colour".into(), colour.into())].into());
            api.create(&PostParams::default(), &object).await.unwrap();
        }
        let red = ListParams::default().labels("colour in (red)");
        assert_eq!(api.list(&red).await.unwrap().items.len(), 2);
        api.delete_collection(
            &DeleteParams { propagation_policy: Some(PropagationPolicy::Background), ..Default::default() },
            &red,
        )
        .await
        .unwrap();
        let left: Vec<_> =
            api.list(&ListParams::default()).await.unwrap().items.into_iter().filter_map(|o| o.metadata.name).collect();
        assert_eq!(left, ["b"]);
    })
    .await;
}
