//! A provider of a third party that owns three kinds (`samples/addons`): controller, conversion and admission, on the embedded
//! API server and a cluster of simulated machines.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use capwasm_tests::binary;
use capwasm_tests::folder::Folder;
use capwasm_tests::guests;
use capwasm_tests::management::Management;
use capwasm_tests::objects::{Objects, condition, flag, is, text};
use capwasm_tests::sample::Sample;
use capwasm_tests::wait;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

const GROUP: &str = "addons.example.org";
const V1BETA1: &str = "addons.example.org/v1beta1";

/// A management cluster with the bundled providers, and the sample granted what it wants.
async fn management() -> (Management, Folder) {
    let folder = Folder::new();
    let plugins = folder.join("plugins");
    std::fs::create_dir(&plugins).unwrap();
    for name in binary::PLUGINS {
        let file = format!("{name}.wasm");
        std::fs::copy(binary::provider_dir().join(&file), plugins.join(&file)).unwrap();
    }
    std::fs::copy(guests::sample("addons"), plugins.join("addons.wasm")).unwrap();
    let management = Management::start_with(plugins);
    let objects = management.objects("default").await;
    let kind = |group: &str, kind: &str| json!({"group": group, "kind": kind});
    let installed = [kind("", "ConfigMap"), kind("apps", "DaemonSet"), kind("apps", "Deployment")];
    let read: Vec<Value> = installed.iter().cloned().chain([kind("", "Node")]).collect();
    objects
        .create(&json!({
            "apiVersion": "capwasm.dev/v1alpha1", "kind": "WasmProvider", "metadata": {"name": "addons"},
            "spec": {
                "source": {"file": "addons.wasm"},
                "crdGroups": [GROUP],
                "grants": {
                    "reads": [kind("cluster.x-k8s.io", "Cluster"), kind(GROUP, "*")], "writes": [kind(GROUP, "Addon")],
                    "workloadReads": read, "workloadWrites": installed,
                },
            },
        }))
        .await;
    objects.until("WasmProvider", "addons", "it serves", |provider| is(provider, "Ready")).await;
    management.keep_compiled();
    (management, folder)
}

fn manifest(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "kube-public"}, "data": {"a": "b"}})
}

fn catalog(manifests: &[Value]) -> Value {
    json!({
        "apiVersion": V1BETA1, "kind": "AddonCatalog", "metadata": {"name": "standard"},
        "spec": {"addons": [{"name": "banner", "minimumNodes": 2, "manifests": manifests}]},
    })
}

fn addon(name: &str, cluster: &str) -> Value {
    json!({
        "apiVersion": V1BETA1, "kind": "Addon",
        "metadata": {"name": name, "labels": {"cluster.x-k8s.io/cluster-name": cluster}},
        "spec": {"clusterName": cluster, "catalog": "standard", "addon": "banner"},
    })
}

/// What the sample has installed in the workload cluster.
async fn installed(api: &Api<ConfigMap>) -> Vec<String> {
    let labelled = kube::api::ListParams::default().labels(&format!("{GROUP}/addon"));
    let found = api.list(&labelled).await.unwrap();
    found.items.into_iter().filter_map(|found| found.metadata.name).collect()
}

async fn until_installed(api: &Api<ConfigMap>, expected: &[&str]) {
    wait::until(&format!("installed: {expected:?}"), async || {
        let found = installed(api).await;
        if found == expected { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_with_kinds_of_its_own_installs_follows_adopts_and_takes_back() {
    let (management, _folder) = management().await;
    let objects = management.objects("addons").await;
    rules_are_kept(&objects).await;

    let mut sample = Sample::new("addons", 1, 0);
    sample.document("Cluster")["metadata"]["labels"] = json!({"environment": "demo"});
    sample.create(&objects).await;

    // By hand, before there is a catalog or a set: the default of admission names the Cluster of its label.
    let mut by_hand = addon("addons-banner", "addons");
    by_hand["spec"].as_object_mut().unwrap().remove("clusterName");
    let by_hand = objects.create(&by_hand).await;
    assert_eq!(by_hand["spec"]["clusterName"], "addons");
    waits(&objects, "CatalogNotFound").await;
    objects.create(&catalog(&[manifest("one")])).await;

    // As users of the older version write it.
    objects
        .create(&json!({
            "apiVersion": "addons.example.org/v1alpha1", "kind": "AddonSet", "metadata": {"name": "demo"},
            "spec": {"selector": "environment=demo", "catalog": "standard", "addons": ["banner"]},
        }))
        .await;
    let set = objects.get("AddonSet", "demo").await;
    assert_eq!(set["spec"]["clusterSelector"]["matchLabels"], json!({"environment": "demo"}), "converted");
    let adopted = |addon: &Value| addon["metadata"]["ownerReferences"][0]["uid"] == set["metadata"]["uid"];
    objects.until("Addon", "addons-banner", "the set adopts it", adopted).await;

    // One machine is not enough for it; the second Node wakes it.
    sample.provisioned(&objects).await;
    waits(&objects, "TooFewNodes").await;
    objects.merge("MachineDeployment", "addons-md-0", json!({"spec": {"replicas": 1}})).await;
    objects.until("Addon", "addons-banner", "it is installed", |addon| is(addon, "Ready")).await;
    let ready = |set: &Value| is(set, "Ready") && set["status"]["ready"] == 1;
    objects.until("AddonSet", "demo", "its Addon is ready", ready).await;
    let api: Api<ConfigMap> = Api::namespaced(objects.workload("addons").await, "kube-public");
    until_installed(&api, &["one"]).await;

    // What the catalog says is followed.
    objects.merge("AddonCatalog", "standard", json!({"spec": catalog(&[manifest("two")])["spec"]})).await;
    until_installed(&api, &["two"]).await;

    // What somebody deletes in the workload cluster is put back: having read it there wakes the Addon.
    let first = api.get("two").await.unwrap().metadata.uid;
    api.delete("two", &DeleteParams::default()).await.unwrap();
    wait::until("it is put back", async || match api.get_opt("two").await.unwrap() {
        Some(found) if found.metadata.uid != first => Ok(()),
        found => Err(format!("{found:?}")),
    })
    .await;

    // Whatever a user of v1alpha1 does keeps what only v1beta1 can say.
    objects.merge("AddonSet", "demo", json!({"spec": {"deletionPolicy": "Orphan"}})).await;
    let older: Api<DynamicObject> = objects.api_of("addons.example.org/v1alpha1", "AddonSet");
    let labelled = Patch::Merge(json!({"metadata": {"labels": {"seen": "yes"}}}));
    older.patch("demo", &PatchParams::default(), &labelled).await.unwrap();
    let kept = objects.get("AddonSet", "demo").await;
    assert_eq!((text(&kept, "/spec/deletionPolicy"), text(&kept, "/metadata/labels/seen")), ("Orphan", "yes"));
    objects.merge("AddonSet", "demo", json!({"spec": {"deletionPolicy": "Delete"}})).await;
    let follows = |addon: &Value| text(addon, "/spec/deletionPolicy") == "Delete";
    objects.until("Addon", "addons-banner", "the policy is the set's", follows).await;

    // A catalog in use stays; it goes when the set, and with it the Addon and what was installed, has gone.
    objects.delete("AddonCatalog", "standard").await;
    objects
        .until("AddonCatalog", "standard", "it waits for its user", |catalog| condition(catalog, "Ready").1 == "InUse")
        .await;
    objects.delete("AddonSet", "demo").await;
    for (kind, name) in [("AddonSet", "demo"), ("Addon", "addons-banner"), ("AddonCatalog", "standard")] {
        objects.gone(kind, name).await;
    }
    assert_eq!(installed(&api).await, Vec::<String>::new(), "taken back before the Addon went");
    sample.delete(&objects).await;
}

/// Waits until the Addon says for what it waits.
async fn waits(objects: &Objects, reason: &str) {
    let what = format!("it waits: {reason}");
    objects.until("Addon", "addons-banner", &what, |addon| condition(addon, "Ready").1 == reason).await;
}

/// What the provider's `validate` refuses is refused by the API server, and leaves nothing behind.
async fn rules_are_kept(objects: &Objects) {
    let mut twice = catalog(&[]);
    let entry = twice["spec"]["addons"][0].clone();
    twice["spec"]["addons"] = json!([entry, entry]);
    let refusal = objects.try_create(&twice).await.unwrap_err();
    assert!(refusal.contains("spec.addons: banner is there twice"), "{refusal}");
    assert!(objects.find("AddonCatalog", "standard").await.is_none());

    objects.create(&addon("fixed", "elsewhere")).await;
    let moved = Patch::Merge(json!({
        "metadata": {"labels": {"cluster.x-k8s.io/cluster-name": "other"}}, "spec": {"clusterName": "other"},
    }));
    let refused = objects.api("Addon").patch("fixed", &PatchParams::default(), &moved).await;
    match refused {
        Err(kube::Error::Api(status)) => {
            assert_eq!(status.code, 422, "{status:?}");
            assert!(status.message.contains("spec.clusterName: may not change"), "{}", status.message);
        }
        other => panic!("it is refused: {other:?}"),
    }
    objects.api("Addon").delete("fixed", &DeleteParams::default()).await.unwrap();
    objects.gone("Addon", "fixed").await;
    let providers = objects.list("WasmProvider").await;
    let sample = providers.iter().find(|provider| text(provider, "/metadata/name") == "addons").unwrap();
    assert!(flag(sample, "/status/converts"), "{sample}");
}
