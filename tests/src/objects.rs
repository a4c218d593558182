//! The objects of one namespace, as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use serde_json::{Value, json};

use crate::management::client_of;
use crate::wait;

/// Kinds that the whole path makes, with their apiVersions.
pub const KINDS: [(&str, &str); 23] = [
    ("Cluster", "cluster.x-k8s.io/v1beta2"),
    ("Machine", "cluster.x-k8s.io/v1beta2"),
    ("MachineSet", "cluster.x-k8s.io/v1beta2"),
    ("MachineDeployment", "cluster.x-k8s.io/v1beta2"),
    ("MachinePool", "cluster.x-k8s.io/v1beta2"),
    ("MachineHealthCheck", "cluster.x-k8s.io/v1beta2"),
    ("DockerMachinePool", "infrastructure.cluster.x-k8s.io/v1beta2"),
    ("DockerCluster", "infrastructure.cluster.x-k8s.io/v1beta2"),
    ("DockerMachine", "infrastructure.cluster.x-k8s.io/v1beta2"),
    ("DockerMachineTemplate", "infrastructure.cluster.x-k8s.io/v1beta2"),
    ("OpenStackCluster", "infrastructure.cluster.x-k8s.io/v1beta1"),
    ("OpenStackMachine", "infrastructure.cluster.x-k8s.io/v1beta1"),
    ("OpenStackMachineTemplate", "infrastructure.cluster.x-k8s.io/v1beta1"),
    ("OpenStackServer", "infrastructure.cluster.x-k8s.io/v1alpha1"),
    ("OpenStackFloatingIPPool", "infrastructure.cluster.x-k8s.io/v1alpha1"),
    ("KubeadmConfig", "bootstrap.cluster.x-k8s.io/v1beta2"),
    ("KubeadmConfigTemplate", "bootstrap.cluster.x-k8s.io/v1beta2"),
    ("KubeadmControlPlane", "controlplane.cluster.x-k8s.io/v1beta2"),
    ("Secret", "v1"),
    ("ConfigMap", "v1"),
    ("Event", "v1"),
    ("Lease", "coordination.k8s.io/v1"),
    ("WasmProvider", "capwasm.dev/v1alpha1"),
];

/// Those that are in no namespace, and others that tests make.
const CLUSTER_SCOPED: [&str; 5] =
    ["WasmProvider", "OpenStackClusterIdentity", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"];
/// Kinds of the sample provider, which only its test installs.
const SAMPLES: [(&str, &str); 3] = [
    ("AddonCatalog", "addons.example.org/v1beta1"),
    ("AddonSet", "addons.example.org/v1beta1"),
    ("Addon", "addons.example.org/v1beta1"),
];

/// The objects of a namespace.
#[derive(Clone)]
pub struct Objects {
    client: kube::Client,
    namespace: String,
}

impl Objects {
    /// Of a namespace, which is made if it is not there.
    pub async fn in_new(client: kube::Client, namespace: &str) -> Objects {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let object = serde_json::from_value(json!({"metadata": {"name": namespace}})).expect("a Namespace");
        match namespaces.create(&PostParams::default(), &object).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            created => drop(created.expect("a Namespace can be made")),
        }
        Objects { client, namespace: namespace.to_owned() }
    }

    /// Name of the namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A client of the API server.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// The API of a kind in this namespace, in the version that tests use.
    pub fn api(&self, kind: &str) -> Api<DynamicObject> {
        let version = KINDS.iter().chain(&SAMPLES).find(|(name, _)| *name == kind).map(|(_, version)| *version);
        self.api_of(version.unwrap_or("infrastructure.fixture.example/v1beta2"), kind)
    }

    /// The API of a kind in this namespace, in an API version.
    pub fn api_of(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        if CLUSTER_SCOPED.contains(&kind) {
            return Api::all_with(self.client.clone(), &resource);
        }
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    /// An object, if it is there.
    pub async fn find(&self, kind: &str, name: &str) -> Option<Value> {
        self.api(kind).get_opt(name).await.expect("objects can be read").map(to_value)
    }

    /// An object that is there.
    pub async fn get(&self, kind: &str, name: &str) -> Value {
        self.find(kind, name).await.unwrap_or_else(|| panic!("there is no {kind} {name}"))
    }

    /// A cluster's kubeconfig.
    pub async fn kubeconfig(&self, cluster: &str) -> String {
        secret_text(&self.get("Secret", &format!("{cluster}-kubeconfig")).await, "value")
    }

    /// A client of a workload cluster, by its kubeconfig.
    pub async fn workload(&self, cluster: &str) -> kube::Client {
        client_of(&self.kubeconfig(cluster).await).await
    }

    /// All of a kind, sorted by name.
    pub async fn list(&self, kind: &str) -> Vec<Value> {
        let list = self.api(kind).list(&ListParams::default()).await.expect("objects can be listed");
        // Items of a list do not say what they are.
        let mut all: Vec<Value> = list.items.into_iter().map(to_value).collect();
        for object in &mut all {
            object["kind"] = kind.into();
        }
        all.sort_by_key(|object| name_of(object).to_owned());
        all
    }

    /// Names of all of a kind, sorted.
    pub async fn names(&self, kind: &str) -> Vec<String> {
        self.list(kind).await.iter().map(|object| name_of(object).to_owned()).collect()
    }

    /// An object of any kind at a version, if it is there.
    pub async fn find_at(&self, api_version: &str, kind: &str, name: &str) -> Option<Value> {
        self.api_of(api_version, kind).get_opt(name).await.expect("objects can be read").map(to_value)
    }

    /// All of any kind at a version.
    pub async fn list_at(&self, api_version: &str, kind: &str) -> Vec<Value> {
        let list = self.api_of(api_version, kind).list(&ListParams::default()).await.expect("objects can be listed");
        list.items.into_iter().map(to_value).collect()
    }

    /// Merges into an object of any kind at a version.
    pub async fn merge_at(&self, api_version: &str, kind: &str, name: &str, patch: Value) -> Value {
        let patched = self.api_of(api_version, kind).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        to_value(patched.unwrap_or_else(|error| panic!("unable to patch {kind} {name}: {error}")))
    }

    /// Creates an object, which must be accepted.
    pub async fn create(&self, object: &Value) -> Value {
        self.try_create(object).await.unwrap_or_else(|message| panic!("{object} is refused: {message}"))
    }

    /// Creates an object; the server's message when it is refused.
    pub async fn try_create(&self, object: &Value) -> Result<Value, String> {
        let text = |name: &str| object[name].as_str().expect("objects have apiVersion and kind").to_owned();
        let (api, parameters) = (self.api_of(&text("apiVersion"), &text("kind")), PostParams::default());
        let body = serde_json::from_value(object.clone()).expect("an object");
        match api.create(&parameters, &body).await {
            Ok(created) => Ok(to_value(created)),
            Err(kube::Error::Api(status)) => Err(status.message.clone()),
            Err(error) => panic!("the API server does not answer: {error}"),
        }
    }

    /// Applies a JSON merge patch to an object, and returns what became of it.
    pub async fn merge(&self, kind: &str, name: &str, patch: Value) -> Value {
        let patched = self.api(kind).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        to_value(patched.unwrap_or_else(|error| panic!("unable to patch {kind} {name}: {error}")))
    }

    /// The same with an object that may be gone meanwhile.
    pub async fn merge_if_there(&self, kind: &str, name: &str, patch: Value) -> Option<Value> {
        match self.api(kind).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await {
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => panic!("unable to patch {kind} {name}: {error}"),
            Ok(patched) => Some(to_value(patched)),
        }
    }

    /// Asks for the deletion of an object.
    pub async fn delete(&self, kind: &str, name: &str) {
        match self.api(kind).delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            deleted => drop(deleted.unwrap_or_else(|error| panic!("unable to delete {kind} {name}: {error}"))),
        }
    }

    /// Waits until an object is as wanted.
    pub async fn until(&self, kind: &str, name: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        wait::until(&format!("{kind} {}/{name}: {what}", self.namespace), async || match self.find(kind, name).await {
            Some(object) if is(&object) => Ok(object),
            Some(object) => Err(format!("{}", object["status"])),
            None => Err("it is not there".to_owned()),
        })
        .await
    }

    /// Waits until an object is not there any more.
    pub async fn gone(&self, kind: &str, name: &str) {
        wait::until(&format!("{kind} {}/{name} is gone", self.namespace), async || match self.find(kind, name).await {
            Some(object) => Err(object["status"].to_string()),
            None => Ok(()),
        })
        .await;
    }

    /// Every object of the namespace with its resourceVersion, Events and what each namespace has left out.
    pub async fn versions(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for (kind, _) in KINDS.iter().filter(|(kind, _)| !["Event", "WasmProvider"].contains(kind)) {
            for object in self.list(kind).await.iter().filter(|object| name_of(object) != "kube-root-ca.crt") {
                let version = text(object, "/metadata/resourceVersion").to_owned();
                all.push((format!("{kind}/{}", name_of(object)), version));
            }
        }
        all
    }

    /// Events about an object, as (reason, message, count).
    pub async fn events(&self, kind: &str, name: &str) -> Vec<(String, String, u64)> {
        let events = self.list("Event").await;
        let about = |event: &&Value| event["involvedObject"]["kind"] == kind && event["involvedObject"]["name"] == name;
        let told = |event: &Value| {
            let count = event["count"].as_u64().or(event["series"]["count"].as_u64()).unwrap_or(1);
            (text(event, "/reason").to_owned(), text(event, "/message").to_owned(), count)
        };
        events.iter().filter(about).map(told).collect()
    }
}

fn to_value(object: DynamicObject) -> Value {
    serde_json::to_value(object).expect("an object is JSON")
}

/// `metadata.name`.
pub fn name_of(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// A text, empty when it is not there.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// On Machines of a control plane.
pub const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";

/// Whether a Machine is one of a control plane.
pub fn is_control_plane(machine: &Value) -> bool {
    machine["metadata"]["labels"].get(CONTROL_PLANE_LABEL).is_some()
}

/// A flag, false when it is not there.
pub fn flag(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).and_then(Value::as_bool).unwrap_or(false)
}

/// A condition: status, reason and message.
pub fn condition<'a>(object: &'a Value, name: &str) -> (&'a str, &'a str, &'a str) {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let found = conditions.iter().find(|condition| condition["type"] == name);
    found.map_or(("", "", ""), |found| (text(found, "/status"), text(found, "/reason"), text(found, "/message")))
}

/// Whether a condition is True.
pub fn is(object: &Value, name: &str) -> bool {
    condition(object, name).0 == "True"
}

/// The owner reference of this kind.
pub fn owner<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object.pointer("/metadata/ownerReferences")?.as_array()?.iter().find(|owner| owner["kind"] == kind)
}

/// A key's text in a Secret.
pub fn secret_text(secret: &Value, key: &str) -> String {
    let bytes = STANDARD.decode(text(secret, &format!("/data/{key}"))).expect("base64");
    String::from_utf8(bytes).expect("a text")
}
