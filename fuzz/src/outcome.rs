//! The capability `outcome`: whatever a guest asks for, nothing is collected that its grants do not cover, and what it did ask for is
//! there in its order.

use arbitrary::{Result, Unstructured};
use capwasm_contract::descriptor::KindPattern;
use capwasm_contract::{ObjectRef, Operation, Outcome, Place};
use capwasm_runtime::Grants;
use capwasm_runtime::fuzzing::{Call, collect};
use serde_json::Value;

use crate::json::{list, text, value};

const GROUPS: [&str; 7] = [
    "",
    "apps",
    "capwasm.dev",
    "rbac.authorization.k8s.io",
    "apiextensions.k8s.io",
    "cluster.x-k8s.io",
    "infrastructure.example",
];
const KINDS: [&str; 8] = ["*", "Secret", "ConfigMap", "ServiceAccount", "Role", "WasmProvider", "Machine", "Thing"];
const VERSIONS: [&str; 9] = [
    "v1",
    "/v1",
    "apps/v1",
    "capwasm.dev/v1alpha1",
    "rbac.authorization.k8s.io/v1",
    "apiextensions.k8s.io/v1",
    "cluster.x-k8s.io/",
    "infrastructure.example/v1/x",
    "",
];
const NAMES: [&str; 8] = ["x", "mine", "other", "kube-system", "..", "a/b", "a?b=c", ""];
const WORDS: [&str; 20] = [
    "apiVersion",
    "kind",
    "metadata",
    "name",
    "namespace",
    "spec",
    "status",
    "conditions",
    "initialization",
    "provisioned",
    "ready",
    "finalizers",
    "ownerReferences",
    "resourceVersion",
    "v1",
    "Secret",
    "x",
    "mine",
    "other",
    "size",
];

pub fn run(data: &[u8]) {
    let _ = Case::new(&mut Unstructured::new(data)).map(|case| case.check());
}

struct Case {
    object: String,
    grants: Grants,
    limit: u64,
    calls: Vec<Call>,
}

pub fn calls(u: &mut Unstructured<'_>) -> Result<Vec<Call>> {
    list(u, 6, call)
}

impl Case {
    fn new(u: &mut Unstructured<'_>) -> Result<Self> {
        let namespace =
            if u.ratio(1, 4)? { String::new() } else { format!("\"namespace\":{}", Value::from(text(u, &NAMES)?)) };
        let pattern = |u: &mut Unstructured<'_>| Ok(KindPattern { group: text(u, &GROUPS)?, kind: text(u, &KINDS)? });
        let grants = Grants {
            writes: list(u, 3, pattern)?,
            workload_writes: list(u, 3, pattern)?,
            namespaces: list(u, 2, |u| text(u, &["*", "other", "kube-system", ""]))?,
            ..Grants::default()
        };
        let limit = if u.ratio(1, 8)? { u.int_in_range(0..=2_000)? } else { 1 << 20 };
        Ok(Case { object: format!("{{\"metadata\":{{{namespace}}}}}"), grants, limit, calls: calls(u)? })
    }

    fn check(&self) {
        let Case { object, grants, limit, calls } = self;
        let (outcome, finished) = collect(object, grants, *limit, calls);
        let asked: Vec<Asked<'_>> = calls.iter().filter_map(asked).collect();
        assert!(outcome.operations.len() <= asked.len(), "{outcome:?}: more than was asked for");
        assert!(!finished || outcome.operations.len() == asked.len(), "{outcome:?}: something was lost");
        let size: usize = serde_json::to_string(&outcome).unwrap().len();
        assert!((size as u64) < 8 * limit + 4_096, "{size} bytes pass a limit of {limit}");
        let parsed: Value = serde_json::from_str(object).unwrap();
        let own = parsed["metadata"]["namespace"].as_str();
        for (operation, asked) in outcome.operations.iter().zip(asked) {
            assert_eq!(operation.key(), asked.key, "out of order");
            let Some((place, target)) = written(operation) else { continue };
            assert_eq!(place, asked.place, "{operation:?}: another cluster");
            assert!(granted(grants, own, place, &target), "{operation:?} is collected with {grants:?} for {object}");
        }
        round_trip(&outcome);
    }
}

/// What stands in a recording is what was collected.
fn round_trip(outcome: &Outcome) {
    let text = serde_json::to_string(outcome).unwrap();
    assert_eq!(serde_json::from_str::<Outcome>(&text).unwrap(), *outcome);
}

struct Asked<'a> {
    key: &'a str,
    place: Place,
}

fn asked(call: &Call) -> Option<Asked<'_>> {
    match call {
        Call::Create { key, place, .. }
        | Call::Apply { key, place, .. }
        | Call::Patch { key, place, .. }
        | Call::Delete { key, place, .. } => Some(Asked { key, place: *place }),
        Call::SetConditionOf { key, .. } => Some(Asked { key, place: Place::Management }),
        _ => None,
    }
}

/// What an operation writes to; none when it was refused.
pub fn written(operation: &Operation) -> Option<(Place, ObjectRef)> {
    let of_object = |object: &Value| {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        ObjectRef {
            api_version: text("/apiVersion").unwrap_or_default(),
            kind: text("/kind").unwrap_or_default(),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name").unwrap_or_default(),
        }
    };
    match operation {
        Operation::Create { place, object, .. } | Operation::Apply { place, object, .. } => {
            Some((*place, of_object(object)))
        }
        Operation::Patch { place, target, .. } | Operation::Delete { place, target, .. } => {
            Some((*place, target.clone()))
        }
        Operation::SetConditionOf { target, .. } => Some((Place::Management, target.clone())),
        Operation::Refused { .. } => None,
    }
}

/// The rules of `docs/security.md`, said once more.
fn granted(grants: &Grants, own: Option<&str>, place: Place, target: &ObjectRef) -> bool {
    let group =
        target.api_version.rsplit_once('/').map_or("", |(group, _)| group.split('/').next().unwrap_or_default());
    let dangerous = ["capwasm.dev", "rbac.authorization.k8s.io", "apiextensions.k8s.io"].contains(&group);
    let dangerous = dangerous || group.is_empty() && ["Secret", "ServiceAccount"].contains(&target.kind.as_str());
    let covers = |patterns: &[KindPattern]| {
        let by_name = patterns.iter().any(|pattern| pattern.group == group && pattern.kind == target.kind);
        let by_star = patterns.iter().any(|pattern| pattern.group == group && pattern.kind == "*");
        target.kind != "*" && (by_name || by_star && !dangerous)
    };
    let segment = |text: &str| !["", ".", ".."].contains(&text) && !text.contains(['/', '?', '#', '%', '\\', ' ']);
    let namespace = target.namespace.as_deref().filter(|namespace| !namespace.is_empty());
    if !segment(&target.name) || !namespace.is_none_or(segment) {
        return false;
    }
    match place {
        Place::Workload => covers(&grants.workload_writes),
        Place::Management => {
            let reach = |namespace| {
                own == Some(namespace) || grants.namespaces.iter().any(|granted| granted == "*" || granted == namespace)
            };
            covers(&grants.writes) && namespace.is_none_or(reach)
        }
    }
}

fn call(u: &mut Unstructured<'_>) -> Result<Call> {
    let key = text(u, &["a", "b", "c"])?;
    let place = if u.arbitrary()? { Place::Management } else { Place::Workload };
    Ok(match u.int_in_range(0..=10)? {
        0 => Call::SetStatus(fields(u)?),
        1 => Call::SetOwn(fields(u)?),
        2 => Call::SetCondition {
            name: text(u, &["Ready", "Paused", "Available", "Booted", ""])?,
            status: u.arbitrary()?,
            reason: text(u, &["Good", ""])?,
            message: text(u, &["", "well"])?,
        },
        3 => Call::EmitEvent { warning: u.arbitrary()?, reason: key, message: String::new() },
        4 => Call::WakeAfter(u.arbitrary()?),
        5 => Call::WakeWhenApplied,
        6 => Call::Create { key, place, object: object(u)? },
        7 => Call::Apply { key, place, object: object(u)? },
        8 => Call::Patch { key, place, target: target(u)?, merge: fields(u)? },
        9 => Call::SetConditionOf { key, target: target(u)?, name: text(u, &["Ready"])?, status: u.arbitrary()? },
        _ => Call::Delete { key, place, target: target(u)?, uid: u.arbitrary()? },
    })
}

fn target(u: &mut Unstructured<'_>) -> Result<ObjectRef> {
    Ok(ObjectRef {
        api_version: text(u, &VERSIONS)?,
        kind: text(u, &KINDS)?,
        namespace: if u.arbitrary()? { Some(text(u, &NAMES)?) } else { None },
        name: text(u, &NAMES)?,
    })
}

/// Fields that may be below spec, status or metadata; now and then no JSON.
fn fields(u: &mut Unstructured<'_>) -> Result<String> {
    if u.ratio(1, 16)? {
        return text(u, &["[]", "{", "null", "{}"]);
    }
    let below = text(u, &["spec", "status", "metadata"])?;
    let fields = crate::json::object(u, &WORDS, 3)?;
    Ok(if u.arbitrary()? { Value::Object(fields) } else { serde_json::json!({(below): fields}) }.to_string())
}

fn object(u: &mut Unstructured<'_>) -> Result<String> {
    let ObjectRef { api_version, kind, namespace, name } = target(u)?;
    let mut object = serde_json::json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}});
    if u.ratio(1, 4)? {
        crate::json::mutate(u, &mut object, &WORDS)?;
    }
    if let Some(object) = object.as_object_mut() {
        object.insert("spec".to_owned(), value(u, &WORDS, 2)?);
    }
    Ok(object.to_string())
}
