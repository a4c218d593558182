#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code, reason = "tests")]
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::*;

const GROUP: &str = "infrastructure.cluster.x-k8s.io";

/// What it should be.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    /// How big.
    size: Size,
    other_size: Option<Size>,
    count: Option<u32>,
    port: u16,
    zones: Vec<Zone>,
    tags: BTreeMap<String, String>,
    anything: Value,
    source: Option<Source>,
    disk: Option<Disk>,
    listen: Option<IntOrString>,
    open: Open,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum IntOrString {
    Int(u16),
    String(String),
}

/// With room for what nobody foresaw.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
struct Open {
    #[serde(default)]
    known: String,
    #[serde(flatten)]
    unknown: BTreeMap<String, Value>,
}

#[derive(Default, Serialize, Deserialize, JsonSchema)]
struct Tree {
    branches: Vec<Tree>,
}

#[derive(Default, Serialize, Deserialize, JsonSchema)]
enum Size {
    /// Fits anywhere.
    #[default]
    Small,
    /// Needs room.
    Large,
}

#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Zone {
    name: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Source {
    Image(Zone),
    Snapshot { id: String },
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
enum Disk {
    Local { gigabytes: u32 },
    Network { gigabytes: u32, pool: String },
}

fn machine() -> CustomResource {
    CustomResource::new(Role::InfrastructureMachine, GROUP, "BoxMachine").version::<Spec>("v1beta2")
}

fn spec_of(crd: &Value) -> Value {
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].clone()
}

#[test]
fn types_become_structural_schemas() {
    let spec = spec_of(&machine().build());
    let sizes = json!({"type": "string", "enum": ["Small", "Large"]});
    assert_eq!(spec["size"], overlaid(sizes.clone(), &json!({"description": "How big.", "default": "Small"})));
    assert_eq!(spec["otherSize"], overlaid(sizes, &json!({"nullable": true})));
    assert_eq!(spec["count"], json!({"type": "integer", "format": "int64", "minimum": 0, "nullable": true}));
    assert_eq!(spec["port"], json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 65535}));
    let zone = json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}});
    assert_eq!(spec["zones"], json!({"type": "array", "items": zone}), "the API server drops unknown fields by itself");
    assert_eq!(spec["tags"], json!({"type": "object", "additionalProperties": {"type": "string"}}));
    assert_eq!(spec["anything"], json!({"x-kubernetes-preserve-unknown-fields": true}));
    assert_eq!(spec["listen"], json!({"x-kubernetes-int-or-string": true, "nullable": true}));
    assert_eq!(spec["open"]["properties"], json!({"known": {"type": "string"}}));
    assert_eq!(spec["open"]["x-kubernetes-preserve-unknown-fields"], true);
    assert!(spec["open"].get("additionalProperties").is_none());
}

#[test]
fn an_enum_with_fields_declares_them_together_and_says_which_belong_together() {
    let spec = spec_of(&machine().build());
    assert_eq!(spec["source"]["type"], "object");
    let declared: Vec<&String> = spec["source"]["properties"].as_object().unwrap().keys().collect();
    assert_eq!(declared, ["image", "snapshot"]);
    assert_eq!(spec["source"]["oneOf"], json!([{"required": ["image"]}, {"required": ["snapshot"]}]));
    assert_eq!(spec["disk"]["properties"]["type"]["enum"], json!(["Local", "Network"]));
    assert_eq!(spec["disk"]["oneOf"][1]["properties"], json!({"type": {"enum": ["Network"]}}));
    assert_eq!(spec["disk"]["oneOf"][0]["required"], json!(["type", "gigabytes"]));
}

#[test]
fn what_a_crd_cannot_say_is_refused() {
    let mixed = json!({"oneOf": [{"type": "string", "enum": ["none"]}, {"type": "object", "properties": {"a": {}}}]});
    assert_eq!(structural::rewrite(&mut mixed.clone()), Err(NotStructural::MixedEnum));
    let tree = std::panic::catch_unwind(|| machine().version::<Tree>("v1"));
    assert!(tree.is_err(), "a tree has no end");
    let variant = |of_type: &str| json!({"type": "object", "properties": {"a": {"type": of_type}}});
    let ambiguous = json!({"oneOf": [variant("string"), variant("integer")]});
    assert_eq!(structural::rewrite(&mut ambiguous.clone()), Err(NotStructural::Ambiguous("a".to_owned())));
}

#[test]
fn a_role_has_the_fields_that_the_host_writes() {
    let table = [
        (Role::InfrastructureCluster, "controlPlaneEndpoint", "failureDomains"),
        (Role::InfrastructureMachine, "providerID", "addresses"),
        (Role::InfrastructureMachinePool, "providerIDList", "replicas"),
        (Role::Bootstrap, "size", "dataSecretName"),
        (Role::ControlPlane, "version", "upToDateReplicas"),
        (Role::Controller, "size", "conditions"),
    ];
    for (role, in_spec, in_status) in table {
        let crd = CustomResource::new(role, GROUP, "Box").version::<Spec>("v1").build();
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        assert!(schema["spec"]["properties"][in_spec].is_object(), "{role:?}");
        assert!(schema["status"]["properties"][in_status].is_object(), "{role:?}");
        assert!(schema["status"]["properties"]["conditions"].is_object(), "{role:?}");
    }
}

#[test]
fn an_own_status_is_laid_over_the_contracts() {
    #[derive(JsonSchema)]
    struct Status {
        /// Where it is.
        rack: Option<String>,
        height: u32,
    }
    let crd = machine().status::<Status>().column("Rack", "string", ".status.rack").build();
    let version = &crd["spec"]["versions"][0];
    let status = &version["schema"]["openAPIV3Schema"]["properties"]["status"];
    assert!(status.get("required").is_none(), "the host writes its own part first");
    let status = &status["properties"];
    assert_eq!(status["rack"]["description"], "Where it is.");
    assert!(status["initialization"].is_object());
    let columns: Vec<_> = version["additionalPrinterColumns"].as_array().unwrap().iter().map(|c| &c["name"]).collect();
    assert_eq!(columns, ["Rack", "Ready", "Age"]);
}

#[test]
fn a_template_has_the_machines_spec_and_no_status() {
    let crd = machine().template().build();
    assert_eq!(crd["metadata"]["name"], format!("boxmachinetemplates.{GROUP}"));
    let spec = spec_of(&crd);
    let inner = &spec["template"]["properties"]["spec"]["properties"];
    assert!(inner["size"].is_object() && inner["providerID"].is_object());
    assert!(crd["spec"]["versions"][0].get("subresources").is_none());
}

#[test]
fn the_first_version_is_stored_and_resources_are_named_as_kubernetes_guesses() {
    let crd = machine().version::<Spec>("v1beta1").short_name("box").build();
    let stored: Vec<bool> =
        crd["spec"]["versions"].as_array().unwrap().iter().map(|version| version["storage"] == true).collect();
    assert_eq!(stored, [true, false]);
    assert_eq!(crd["spec"]["names"]["shortNames"], json!(["box"]));
    for (singular, expected) in [("machine", "machines"), ("policy", "policies"), ("class", "classes")] {
        assert_eq!(plural(singular), expected);
    }
}

#[test]
fn files_are_written_on_demand_and_compared_otherwise() {
    let folder = std::env::temp_dir().join(format!("capwasm-crds-{}", std::process::id()));
    assert!(file::file(&folder, &machine(), false).is_err(), "there is no file yet");
    file::file(&folder, &machine(), true).unwrap();
    assert_eq!(file::file(&folder, &machine(), false), Ok(()));
    let changed = machine().short_name("box");
    let problem = file::file(&folder, &changed, false).unwrap_err();
    assert!(problem.contains("UPDATE_CRDS=1 cargo test"), "{problem}");
    std::fs::remove_dir_all(&folder).unwrap();
}
