//! Checks a descriptor against `wit/descriptor.schema.json` and the component's exports.

use std::collections::BTreeSet;

use capwasm_contract::descriptor::{Descriptor, KindDescriptor, Role, Wants};
use capwasm_contract::host_keys;
use serde_json::Value;

use crate::grants::{Origin, is_guarded};
use crate::untrusted;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pure {
    pub(crate) conversion: bool,
    pub(crate) admission: bool,
}

/// Longest version in bytes.
const VERSION: usize = 128;

/// All problems, as text for the provider's author.
pub(super) fn problems(descriptor: &Descriptor, exported: &[Role], pure: Pure) -> Vec<String> {
    let mut problems = Vec::new();
    if !dns_label(&descriptor.name) {
        problems.push(format!("name {:?} is no DNS label", untrusted::shortened(&descriptor.name, 64)));
    }
    if descriptor.version.is_empty() {
        problems.push("version is empty".to_owned());
    }
    // It stands in statuses, annotations, and on terminals.
    if descriptor.version.len() > VERSION || descriptor.version.chars().any(char::is_control) {
        problems.push(format!("version is longer than {VERSION} bytes, or has control characters"));
    }
    if descriptor.kinds.is_empty() {
        problems.push("it serves no kind".to_owned());
    }
    let mut seen = BTreeSet::new();
    for kind in &descriptor.kinds {
        let name = format!("{}.{}", kind.kind, kind.group);
        if !seen.insert(name.clone()) {
            problems.push(format!("kind {name} is served twice"));
        }
        let found = kind_problems(kind, exported).into_iter().chain(conversion_problem(kind, pure.conversion));
        let unasked = (kind.admission && !pure.admission)
            .then(|| "it says admission, and the component does not export admission".to_owned());
        problems.extend(found.chain(unasked).map(|problem| format!("kind {name}: {problem}")));
    }
    if pure.admission && !descriptor.kinds.iter().any(|kind| kind.admission) {
        // Its author believes that it is asked.
        problems.push("it exports admission, and none of its kinds says so; set `admission` of a kind".to_owned());
    }
    problems.extend(wants_problems(&descriptor.wants));
    problems
}

fn kind_problems(kind: &KindDescriptor, exported: &[Role]) -> Vec<String> {
    let mut problems = Vec::new();
    if kind.role == Role::Template {
        if !kind.finalizers.is_empty() {
            problems.push("a template is never reconciled and has no finalizers".to_owned());
        }
    } else if !exported.contains(&kind.role) {
        problems.push(format!("its role {} is not exported", role_name(kind.role)));
    }
    if !dns_name(&kind.group) || !kind.group.contains('.') || is_guarded(&kind.group) {
        problems.push(format!("group {:?} is no DNS name of the provider's own", kind.group));
    }
    if !kind.kind.starts_with(|c: char| c.is_ascii_uppercase()) || !kind.kind.chars().all(|c| c.is_ascii_alphanumeric())
    {
        problems.push("a kind is CamelCase".to_owned());
    }
    for finalizer in &kind.finalizers {
        if !qualified(finalizer) {
            problems.push(format!("finalizer {finalizer:?} is neither domain.example/name nor a name with dots"));
        }
    }
    for path in &kind.own {
        // Finalizers and owner references are the host's: a provider must not be able to take those of others away.
        let ownable = ["metadata.labels", "metadata.annotations"].iter().any(|own| within(path, own));
        if !(path.starts_with("spec.") || ownable) || path.split('.').any(str::is_empty) {
            problems.push(format!("own path {path:?} is not below spec, metadata.labels or metadata.annotations"));
        }
        // A whole map may be its own: what is the host's in it stays as it is.
        let key = ["metadata.labels.", "metadata.annotations."].iter().find_map(|map| path.strip_prefix(map));
        if let Some(key) = key.filter(|key| host_keys::is_hosts(key, &kind.group)) {
            problems.push(format!("own path {path:?}: {key} is the host's"));
        }
    }
    if let Some(path) = &kind.bootstrap_data {
        if kind.role != Role::Controller {
            problems.push("bootstrapData is for a controller; the other roles have their Machine's".to_owned());
        }
        if !path.starts_with("spec.") || path.split('.').any(str::is_empty) {
            problems.push(format!("bootstrapData {path:?} is not a path below spec"));
        }
        // Otherwise it would say itself which Secret it gets.
        if kind.own.iter().any(|own| within(path, own) || within(own, path)) {
            problems.push(format!("bootstrapData {path:?} is one of its own paths; whoever writes the object says it"));
        }
    }
    problems.extend(crd_problems(kind));
    problems
}

/// Whether a dotted path is equal to or below another.
fn within(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Kinds with several served versions need a converter, unless the CRD says that versions do not differ.
fn conversion_problem(kind: &KindDescriptor, converts: bool) -> Option<String> {
    let versions = kind.crd.pointer("/spec/versions").and_then(Value::as_array)?;
    let served = versions.iter().filter(|version| version["served"] == true).count();
    let same = kind.crd.pointer("/spec/conversion/strategy").and_then(Value::as_str) == Some("None");
    (served > 1 && !same && !converts).then(|| {
        "its CRD serves several versions, and the component does not export conversion (say spec.conversion.strategy \
         None if they differ in nothing but their name)"
            .to_owned()
    })
}

fn crd_problems(kind: &KindDescriptor) -> Vec<String> {
    let text = |pointer: &str| kind.crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let mut problems = Vec::new();
    let mut expect = |pointer: &str, expected: &str| {
        if text(pointer) != expected {
            problems.push(format!(
                "{} of its CRD is {:?}, expected {expected:?}",
                pointer[1..].replace('/', "."),
                text(pointer)
            ));
        }
    };
    expect("/apiVersion", "apiextensions.k8s.io/v1");
    expect("/kind", "CustomResourceDefinition");
    expect("/spec/group", &kind.group);
    expect("/spec/names/kind", &kind.kind);
    let plural = text("/spec/names/plural");
    expect("/metadata/name", &format!("{plural}.{}", kind.group));
    if !dns_label(plural) || plural != plural.to_ascii_lowercase() {
        problems.push(format!("plural {plural:?} of its CRD is no DNS label"));
    }
    let versions = kind.crd.pointer("/spec/versions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let spoken = versions.iter().find(|version| version["name"] == kind.version.as_str());
    match spoken {
        None => problems.push(format!("its CRD has no version {:?}", kind.version)),
        Some(version) if version["served"] != true => {
            problems.push(format!("its CRD does not serve version {:?}", kind.version));
        }
        Some(_) => {}
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        problems.push("its CRD has not exactly one storage version".to_owned());
    }
    problems
}

fn wants_problems(wants: &Wants) -> Vec<String> {
    let mut problems = Vec::new();
    let endpoints = wants.endpoints.iter().filter(|name| !dns_label(name));
    problems.extend(endpoints.map(|name| format!("wanted endpoint {name:?} is no DNS label")));
    for watched in &wants.workload_watches {
        let name = format!("{}.{}", watched.kind, watched.group);
        // Their objects are never kept whole in memory.
        let kept =
            !watched.matches("", "Secret") && !watched.matches("apiextensions.k8s.io", "CustomResourceDefinition");
        if watched.kind == "*" || !kept {
            problems
                .push(format!("workloadWatches: {name} cannot be watched; name a kind that is neither Secret nor CRD"));
        } else if !wants.workload_reads.contains(watched) {
            problems.push(format!("workloadWatches: {name} is not among workloadReads"));
        }
    }
    let origins = wants.origins.iter().filter_map(|origin| origin.parse::<Origin>().err());
    problems.extend(origins.map(|error| format!("wanted {error}")));
    let kinds = [&wants.reads, &wants.writes, &wants.workload_reads, &wants.workload_writes].into_iter().flatten();
    problems.extend(kinds.filter(|kind| kind.kind.is_empty()).map(|_| "a wanted kind is empty".to_owned()));
    if wants.secrets.iter().any(String::is_empty) {
        problems.push("a wanted secret is empty".to_owned());
    }
    problems
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::InfrastructureCluster => "infrastructure-cluster",
        Role::InfrastructureMachine => "infrastructure-machine",
        Role::InfrastructureMachinePool => "infrastructure-machine-pool",
        Role::Bootstrap => "bootstrap",
        Role::ControlPlane => "control-plane",
        Role::Controller => "controller",
        Role::Template => "template",
    }
}

fn dns_label(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(allowed) && !text.starts_with('-') && !text.ends_with('-')
}

fn dns_name(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(dns_label)
}

/// `domain.example/name` as Kubernetes wants finalizers, or a dotted name as upstream's providers use.
fn qualified(text: &str) -> bool {
    let name = |text: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let ends = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
        text.len() <= 63 && text.bytes().all(allowed) && ends(text.bytes().next()) && ends(text.bytes().last())
    };
    match text.split_once('/') {
        Some((domain, rest)) => dns_name(domain) && name(rest),
        None => text.contains('.') && name(text),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use serde_json::json;

    fn good() -> Value {
        json!({
            "name": "example", "version": "0.1.0", "contract": "0.1",
            "kinds": [{
                "role": "infrastructure-machine", "group": "infrastructure.example.org", "kind": "ExampleMachine",
                "version": "v1beta2", "finalizers": ["examplemachine.infrastructure.example.org"], "own": ["spec.providerID"],
                "crd": {
                    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                    "metadata": {"name": "examplemachines.infrastructure.example.org"},
                    "spec": {
                        "group": "infrastructure.example.org",
                        "names": {"kind": "ExampleMachine", "plural": "examplemachines"},
                        "versions": [{"name": "v1beta2", "served": true, "storage": true}]
                    }
                }
            }]
        })
    }

    fn found(change: impl FnOnce(&mut Value)) -> Vec<String> {
        let mut document = good();
        document["kinds"][0]["finalizers"] =
            json!(["infrastructure.example.org/machine", "examplemachine.infrastructure.example.org"]);
        change(&mut document);
        problems(&serde_json::from_value(document).unwrap(), &[Role::InfrastructureMachine], Pure::default())
    }

    #[test]
    fn a_good_descriptor_has_no_problems() {
        assert_eq!(found(|_| {}), Vec::<String>::new());
        let own =
            json!(["metadata.labels", "metadata.annotations.infrastructure.example.org/zone", "metadata.labels.zone"]);
        assert_eq!(found(|document| document["kinds"][0]["own"] = own), Vec::<String>::new());
    }

    #[test]
    fn each_defect_is_named() {
        type Change = fn(&mut Value);
        let rows: [(&str, Change); 31] = [
            ("Pod. is not among workloadReads", |d| {
                d["wants"] = json!({"workloadWatches": [{"group": "", "kind": "Pod"}]});
            }),
            ("Secret. cannot be watched", |d| {
                let secret = json!([{"group": "", "kind": "Secret"}]);
                d["wants"] = json!({"workloadReads": secret, "workloadWatches": secret});
            }),
            ("does not export admission", |d| d["kinds"][0]["admission"] = json!(true)),
            ("does not export conversion", |d| {
                let mut older = d["kinds"][0]["crd"]["spec"]["versions"][0].clone();
                older["name"] = json!("v1beta1");
                older["storage"] = json!(false);
                d["kinds"][0]["crd"]["spec"]["versions"].as_array_mut().unwrap().push(older);
            }),
            ("name \"Example\" is no DNS label", |d| d["name"] = json!("Example")),
            ("version is empty", |d| d["version"] = json!("")),
            ("control characters", |d| d["version"] = json!("1.0\u{1b}[2J")),
            ("it serves no kind", |d| d["kinds"] = json!([])),
            ("is served twice", |d| {
                let kind = d["kinds"][0].clone();
                d["kinds"].as_array_mut().unwrap().push(kind);
            }),
            ("its role bootstrap is not exported", |d| d["kinds"][0]["role"] = json!("bootstrap")),
            ("finalizer \"machine\" is neither", |d| d["kinds"][0]["finalizers"] = json!(["machine"])),
            ("its role controller is not exported", |d| d["kinds"][0]["role"] = json!("controller")),
            ("bootstrapData is for a controller", |d| d["kinds"][0]["bootstrapData"] = json!("spec.userDataRef.name")),
            ("bootstrapData \"status.x\" is not a path", |d| d["kinds"][0]["bootstrapData"] = json!("status.x")),
            ("own path \"status.x\" is not below", |d| d["kinds"][0]["own"] = json!(["status.x"])),
            ("own path \"metadata.finalizers\"", |d| d["kinds"][0]["own"] = json!(["metadata.finalizers"])),
            ("own path \"metadata.ownerReferences\"", |d| d["kinds"][0]["own"] = json!(["metadata.ownerReferences"])),
            ("own path \"metadata.labelsx\"", |d| d["kinds"][0]["own"] = json!(["metadata.labelsx"])),
            ("cluster.x-k8s.io/cluster-name is the host's", |d| {
                d["kinds"][0]["own"] = json!(["metadata.labels.cluster.x-k8s.io/cluster-name"]);
            }),
            ("capwasm.dev/provider is the host's", |d| {
                d["kinds"][0]["own"] = json!(["metadata.annotations.capwasm.dev/provider"]);
            }),
            ("own path \"metadata\"", |d| d["kinds"][0]["own"] = json!(["metadata"])),
            ("own path \"spec..x\"", |d| d["kinds"][0]["own"] = json!(["spec..x"])),
            ("bootstrapData \"spec.data.name\" is one of its own paths", |d| {
                d["kinds"][0]["bootstrapData"] = json!("spec.data.name");
                d["kinds"][0]["own"] = json!(["spec.data"]);
            }),
            ("bootstrapData \"spec.data\" is one of its own paths", |d| {
                d["kinds"][0]["bootstrapData"] = json!("spec.data");
                d["kinds"][0]["own"] = json!(["spec.data.name"]);
            }),
            ("has no version \"v1\"", |d| d["kinds"][0]["version"] = json!("v1")),
            ("does not serve version", |d| d["kinds"][0]["crd"]["spec"]["versions"][0]["served"] = json!(false)),
            ("metadata.name of its CRD is \"x\"", |d| d["kinds"][0]["crd"]["metadata"]["name"] = json!("x")),
            ("spec.names.kind of its CRD is \"Other\"", |d| {
                d["kinds"][0]["crd"]["spec"]["names"]["kind"] = json!("Other")
            }),
            ("group \"rbac.authorization.k8s.io\" is no DNS name", |d| {
                d["kinds"][0]["group"] = json!("rbac.authorization.k8s.io");
            }),
            ("group \"capwasm.dev\" is no DNS name", |d| d["kinds"][0]["group"] = json!("capwasm.dev")),
            ("wanted origin \"example.org\"", |d| d["wants"] = json!({"origins": ["example.org"]})),
        ];
        for (expected, change) in rows {
            let problems = found(change);
            assert!(problems.iter().any(|problem| problem.contains(expected)), "{expected}: {problems:?}");
        }
    }

    #[test]
    fn admission_that_nobody_is_asked_for_is_a_mistake() {
        let roles = [Role::InfrastructureMachine];
        let of = |document: Value| {
            let pure = Pure { admission: true, ..Pure::default() };
            problems(&serde_json::from_value(document).unwrap(), &roles, pure)
        };
        assert_eq!(of(good()), ["it exports admission, and none of its kinds says so; set `admission` of a kind"]);
        let mut asked = good();
        asked["kinds"][0]["admission"] = json!(true);
        assert_eq!(of(asked), Vec::<String>::new());
    }

    #[test]
    fn a_template_has_no_role_to_export_and_no_finalizers() {
        let problems = found(|document| document["kinds"][0]["role"] = json!("template"));
        assert_eq!(
            problems,
            ["kind ExampleMachine.infrastructure.example.org: a template is never reconciled and has no finalizers"]
        );
    }
}
