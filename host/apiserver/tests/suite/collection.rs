//! Garbage collection by owner references.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::{Value, json};

use crate::fixture::{both, until};

async fn owned(api: &Api<ConfigMap>, name: &str, owners: &[&ConfigMap]) -> ConfigMap {
    let owners: Vec<Value> = owners
        .iter()
        .map(|owner| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner.metadata.name, "uid": owner.metadata.uid, "blockOwnerDeletion": true}))
        .collect();
    let object = json!({"metadata": {"name": name, "ownerReferences": owners}});
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap()
}

async fn gone(api: &Api<ConfigMap>, name: &str) {
    until(&format!("{name} goes"), async || api.get_opt(name).await.unwrap().is_none().then_some(())).await;
}

#[tokio::test]
async fn dependents_follow_their_last_owner_through_generations() {
    both(async |f| {
        let api: Api<ConfigMap> = Api::default_namespaced(f.client);
        let a = owned(&api, "a", &[]).await;
        let b = owned(&api, "b", &[]).await;
        let child = owned(&api, "child", &[&a, &b]).await;
        owned(&api, "grandchild", &[&child]).await;
        api.delete("a", &DeleteParams::default()).await.unwrap();
        let left = until("the reference to the first owner goes", async || {
            let owners = api.get("child").await.unwrap().metadata.owner_references.unwrap();
            (owners.len() == 1).then_some(owners)
        })
        .await;
        assert_eq!(left[0].name, "b");
        api.delete("b", &DeleteParams::default()).await.unwrap();
        gone(&api, "child").await;
        gone(&api, "grandchild").await;
    })
    .await;
}

#[tokio::test]
async fn an_object_whose_owner_never_was_is_collected() {
    both(async |f| {
        let api: Api<ConfigMap> = Api::default_namespaced(f.client);
        let mut ghost = owned(&api, "ghost", &[]).await;
        ghost.metadata.uid = Some("00000000-0000-4000-8000-000000000000".into());
        owned(&api, "orphan", &[&ghost]).await;
        gone(&api, "orphan").await;
        assert!(api.get("ghost").await.is_ok(), "the namesake is another object");
    })
    .await;
}

#[tokio::test]
async fn a_foreground_deletion_waits_for_the_dependents() {
    both(async |f| {
        let api: Api<ConfigMap> = Api::default_namespaced(f.client);
        let owner = owned(&api, "owner", &[]).await;
        let mut child: ConfigMap = owned(&api, "child", &[&owner]).await;
        child.metadata.finalizers = Some(vec!["example.org/one".into()]);
        child.metadata.resource_version = None;
        api.replace("child", &PostParams::default(), &child).await.unwrap();
        api.delete("owner", &DeleteParams::foreground()).await.unwrap();
        let child = until("the child is being deleted", async || {
            let child = api.get("child").await.unwrap();
            child.metadata.deletion_timestamp.is_some().then_some(child)
        })
        .await;
        assert!(api.get("owner").await.unwrap().metadata.deletion_timestamp.is_some(), "the owner waits");
        let mut free = child;
        free.metadata.finalizers.as_mut().unwrap().retain(|finalizer| finalizer != "example.org/one");
        free.metadata.resource_version = None;
        api.replace("child", &PostParams::default(), &free).await.unwrap();
        gone(&api, "child").await;
        gone(&api, "owner").await;
    })
    .await;
}

#[tokio::test]
async fn orphaned_dependents_lose_the_reference_and_stay() {
    both(async |f| {
        let api: Api<ConfigMap> = Api::default_namespaced(f.client);
        let owner = owned(&api, "owner", &[]).await;
        owned(&api, "child", &[&owner]).await;
        api.delete("owner", &DeleteParams::orphan()).await.unwrap();
        gone(&api, "owner").await;
        assert_eq!(api.get("child").await.unwrap().metadata.owner_references, None);
    })
    .await;
}
