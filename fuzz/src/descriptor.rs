//! What `describe()` returns. What passes is safe to install and to write by, and each grant that it wants is asked for.
//!
//! Input: a descriptor as JSON text, or choices that change a good one.

use arbitrary::{Result, Unstructured};
use capwasm_contract::descriptor::{Descriptor, Role};
use capwasm_runtime::fuzzing::descriptor;
use capwasm_runtime::{Grants, LoadError};
use serde_json::{Value, json};

use crate::json::mutate;

const ROLES: [Role; 3] = [Role::InfrastructureMachine, Role::Controller, Role::Bootstrap];

/// Words that mean something in a descriptor.
const WORDS: [&str; 40] = [
    "0.1",
    "*",
    "",
    "Secret",
    "spec.a",
    "spec..a",
    "metadata.labels",
    "metadata.labels.x",
    "metadata.finalizers",
    "status.x",
    "spec",
    "controller",
    "template",
    "bootstrap",
    "infrastructure-machine",
    "Example",
    "Other",
    "capwasm.dev",
    "rbac.authorization.k8s.io",
    "apiextensions.k8s.io",
    "infrastructure.example.org",
    "https://*.example.org",
    "http://10.0.0.0/8:*",
    "example/finalizer",
    "a.b",
    "own",
    "finalizers",
    "wants",
    "reads",
    "writes",
    "kind",
    "group",
    "served",
    "storage",
    "versions",
    "name",
    "admission",
    "workloadReads",
    "workloadWatches",
    "None",
];

pub fn run(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        check(text);
    }
    if let Ok(changed) = changed(&mut Unstructured::new(data)) {
        check(&changed.to_string());
    }
}

fn changed(u: &mut Unstructured<'_>) -> Result<Value> {
    let mut document = good();
    for _ in 0..u.int_in_range(1..=4)? {
        mutate(u, &mut document, &WORDS)?;
    }
    Ok(document)
}

/// A descriptor without a defect.
pub fn good() -> Value {
    json!({
        "name": "example", "version": "0.1.0", "contract": "0.1",
        "wants": {"endpoints": ["docker"], "origins": ["https://api.example.org"], "reads": [{"group": "", "kind": "ConfigMap"}],
            "workloadReads": [{"group": "", "kind": "Pod"}], "workloadWatches": [{"group": "", "kind": "Pod"}], "secrets": ["*-ca"]},
        "kinds": [{
            "role": "infrastructure-machine", "group": "infrastructure.example.org", "kind": "Example", "version": "v1",
            "finalizers": ["example.infrastructure.example.org"], "own": ["spec.providerID", "metadata.labels"],
            "crd": {
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "examples.infrastructure.example.org"},
                "spec": {"group": "infrastructure.example.org", "names": {"kind": "Example", "plural": "examples"},
                    "versions": [{"name": "v1", "served": true, "storage": true}]}
            }
        }]
    })
}

fn check(text: &str) {
    let descriptor = match descriptor(text, &ROLES, false, false) {
        Ok(descriptor) => descriptor,
        Err(LoadError::Descriptor { problems }) => {
            assert!(
                !problems.is_empty() && problems.iter().all(|problem| !problem.is_empty()),
                "{text}: refused without a reason"
            );
            return;
        }
        Err(error) => {
            assert!(matches!(error, LoadError::Version { .. }), "{text}: {error}");
            return;
        }
    };
    let label =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    assert!(!descriptor.name.is_empty() && label(&descriptor.name), "{text}");
    for kind in &descriptor.kinds {
        assert!(kind.role == Role::Template || ROLES.contains(&kind.role), "{text}: its role is not exported");
        assert!(kind.group.contains('.') && kind.group != "capwasm.dev", "{text}: the group is not its own");
        assert_eq!(kind.crd["spec"]["group"], *kind.group, "{text}: the CRD is of another group");
        for own in &kind.own {
            let parts: Vec<&str> = own.split('.').collect();
            let below = parts[0] == "spec" && parts.len() > 1
                || matches!(parts[..], ["metadata", "labels" | "annotations", ..]);
            assert!(below && !parts.contains(&""), "{text}: {own} would be its own");
        }
    }
    wants(&descriptor);
}

/// With nothing granted all is missing, and with all of it granted nothing is.
fn wants(descriptor: &Descriptor) {
    let wants = &descriptor.wants;
    let kinds = [&wants.reads, &wants.writes, &wants.workload_reads, &wants.workload_writes];
    let count = wants.endpoints.len()
        + wants.origins.len()
        + wants.secrets.len()
        + usize::from(wants.pki)
        + usize::from(wants.etcd)
        + kinds.iter().map(|kinds| kinds.len()).sum::<usize>();
    assert_eq!(Grants::default().missing(wants).len(), count, "{wants:?}: something is had without a grant");
    let granted = Grants {
        endpoints: wants
            .endpoints
            .iter()
            .map(|name| (name.clone(), capwasm_runtime::NamedEndpoint::unix("/x")))
            .collect(),
        origins: wants.origins.iter().map(|origin| origin.parse().unwrap()).collect(),
        reads: wants.reads.clone(),
        writes: wants.writes.clone(),
        workload_reads: wants.workload_reads.clone(),
        workload_writes: wants.workload_writes.clone(),
        secrets: wants.secrets.clone(),
        pki: wants.pki,
        etcd: wants.etcd,
        ..Grants::default()
    };
    assert_eq!(granted.missing(wants), Vec::<String>::new(), "{wants:?}");
}
