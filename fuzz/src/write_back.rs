//! From a guest's reply to a plan: outside of status only the provider's own paths and what its role answers change, what latched stays,
//! and nothing is written elsewhere that the outcome did not hold.

use arbitrary::{Result, Unstructured};
use capwasm_api::contract::Contract;
use capwasm_contract::descriptor::{ExclusiveBy, KindDescriptor, KindPattern, Role};
use capwasm_contract::{
    Address, Answer, BootstrapData, ClusterAnswer, ControlPlaneAnswer, Endpoint, FailureDomain, Fault, MachineAnswer,
    Outcome, PoolAnswer, Problem,
};
use capwasm_providers::fuzzing::{Belongings, Ending, ServedKind, Subject, Waiting, plan};
use capwasm_reconcile::{Action, ClusterId, Plan};
use capwasm_runtime::{Grants, fuzzing};
use serde_json::{Value, json};

use crate::json::{list, mutate, one_of, text, value};
use crate::outcome::{calls, written};

const OWN: [&str; 7] = [
    "spec.size",
    "spec.a.b",
    "spec.controlPlaneEndpoint",
    "spec.providerID",
    "metadata.labels.x",
    "metadata.annotations.example.org/x",
    "metadata.labels",
];
const WORDS: [&str; 25] = [
    "spec",
    "status",
    "metadata",
    "size",
    "a",
    "b",
    "a.b",
    "size.x",
    "labels",
    "annotations",
    "x",
    "x.y",
    "example.org/x",
    "providerID",
    "controlPlaneEndpoint",
    "host",
    "port",
    "initialization",
    "provisioned",
    "ready",
    "initialized",
    "conditions",
    "dataSecretName",
    "finalizers",
    "cluster.x-k8s.io/cluster-name",
];

pub fn run(data: &[u8]) {
    let _ = Case::new(&mut Unstructured::new(data)).map(|case| case.check());
}

struct Case {
    object: Value,
    kind: KindDescriptor,
    contract: Contract,
    cluster: Option<ClusterId>,
    of_pool: bool,
    answer: std::result::Result<Answer, Problem>,
    outcome: Outcome,
}

impl Case {
    fn new(u: &mut Unstructured<'_>) -> Result<Self> {
        let role = *u.choose(&[
            Role::InfrastructureCluster,
            Role::InfrastructureMachine,
            Role::InfrastructureMachinePool,
            Role::Bootstrap,
            Role::ControlPlane,
            Role::Controller,
        ])?;
        let contract = if u.arbitrary()? { Contract::V1Beta2 } else { Contract::V1Beta1 };
        let object = object(u)?;
        // What it may write elsewhere is another target's question.
        let all = |group: &str| KindPattern { group: group.to_owned(), kind: "*".to_owned() };
        let patterns = vec![all(""), all("cluster.x-k8s.io"), all("infrastructure.example")];
        let grants = Grants { writes: patterns.clone(), workload_writes: patterns, ..Grants::default() };
        let mut outcome = fuzzing::collect(&object.to_string(), &grants, 1 << 20, &calls(u)?).0;
        outcome.own.extend(list(u, 2, |u| fields(u, "spec"))?);
        outcome.status.extend(list(u, 2, |u| Ok(fields(u, "status")?["status"].take()))?);
        outcome.status.retain(Value::is_object);
        Ok(Case {
            kind: kind(u, role)?,
            contract,
            cluster: if u.arbitrary()? { Some(ClusterId::new("ns", "c")) } else { None },
            of_pool: u.arbitrary()?,
            answer: answer(u, role)?,
            outcome,
            object,
        })
    }

    fn check(&self) {
        let belongings = Belongings {
            pool: self.of_pool.then(|| std::sync::Arc::new(json!({}))),
            cluster_id: self.cluster.clone(),
            ..Belongings::default()
        };
        let subject = Subject {
            kind: &ServedKind::new(self.kind.clone(), self.contract).unwrap(),
            object: &self.object,
            belongings: &belongings,
            now: jiff::Timestamp::from_second(1_900_000_000).unwrap(),
        };
        let plan_of = |ending| plan(&subject, ending);
        let plan = plan_of(Ending::Replied(&self.answer, &self.outcome));
        for desired in plan.desired.iter().chain(&plan.fallback) {
            self.changes_its_own(desired);
            self.keeps_what_latched(desired);
        }
        self.announces(&plan);
        self.writes_what_was_collected(&plan);
        let gone = matches!(self.answer, Ok(Answer::Gone(true)));
        assert!(plan.release.is_empty() || gone, "{}: finalizers are released, and not all is gone", self.told());
        let (reason, message) = ("Reason", "message");
        let called_for_nothing =
            [Ending::Failed { reason, message }, Ending::Waiting(Waiting { reason, message }), Ending::Paused];
        for other in called_for_nothing.map(plan_of) {
            let desired = other.desired.unwrap();
            assert!(other.operations.is_empty() && other.release.is_empty(), "{}", self.told());
            self.keeps_what_latched(&desired);
            assert_eq!(differences(&self.object, &desired), Vec::<Vec<String>>::new(), "{}", self.told());
        }
    }

    fn told(&self) -> String {
        let Case { object, kind, contract, answer, outcome, .. } = self;
        format!("{object} of {:?} {contract:?}, own {:?}, answered {answer:?} with {outcome:?}", kind.role, kind.own)
    }

    /// Besides the status, only the fields of the answer and the paths of the provider's own change.
    fn changes_its_own(&self, desired: &Value) {
        let answers: &[&[&str]] = match self.kind.role {
            Role::InfrastructureCluster | Role::ControlPlane => &[&["spec", "controlPlaneEndpoint"]],
            Role::InfrastructureMachine => &[&["spec", "providerID"]],
            Role::InfrastructureMachinePool => &[&["spec", "providerIDList"]],
            _ => &[],
        };
        for path in differences(&self.object, desired) {
            let answer = answers.iter().any(|answer| path.iter().take(answer.len()).eq(answer.iter()));
            assert!(answer || self.owns(&path), "{path:?} is changed\n{}\nto {desired}", self.told());
            let hosts =
                matches!(path.as_slice(), [at, _, key, ..] if at == "metadata" && key.starts_with("cluster.x-k8s.io/"));
            assert!(!hosts, "{path:?} is the host's\n{}\nto {desired}", self.told());
        }
    }

    /// Labels and annotations have dots in their names; fields have not.
    fn owns(&self, path: &[String]) -> bool {
        self.kind.own.iter().any(|own| {
            let parts: Vec<&str> = match own.split_once("labels.").or_else(|| own.split_once("annotations.")) {
                Some((before, name)) => vec!["metadata", own[before.len()..].split('.').next().unwrap(), name],
                None => own.split('.').collect(),
            };
            path.len() >= parts.len() && path.iter().zip(&parts).all(|(key, part)| key == part)
        })
    }

    fn keeps_what_latched(&self, desired: &Value) {
        let endpoint = ["/spec/controlPlaneEndpoint/host", "/spec/controlPlaneEndpoint/port"];
        let old = self.contract == Contract::V1Beta1;
        let latches: &[&str] = match self.kind.role {
            Role::InfrastructureCluster => &[endpoint[0], endpoint[1], "/status/initialization/provisioned"],
            Role::InfrastructureMachine => &["/spec/providerID", "/status/initialization/provisioned"],
            Role::InfrastructureMachinePool => &["/status/ready", "/status/initialization/provisioned"],
            Role::Bootstrap if old => &["/status/dataSecretName", "/status/ready"],
            Role::Bootstrap => &["/status/dataSecretName", "/status/initialization/dataSecretCreated"],
            Role::ControlPlane if old => &[endpoint[0], endpoint[1], "/status/initialized"],
            Role::ControlPlane => &[endpoint[0], endpoint[1], "/status/initialization/controlPlaneInitialized"],
            _ => &[],
        };
        for latch in latches {
            let empty = [json!(null), json!(false), json!(""), json!(0)];
            let Some(held) = self.object.pointer(latch).filter(|held| !empty.contains(held)) else { continue };
            // What somebody else wrote there becomes the name of the Secret that there is.
            let healed =
                *latch == "/status/dataSecretName" && desired.pointer(latch) == Some(&self.object["metadata"]["name"]);
            if healed {
                continue;
            }
            assert_eq!(desired.pointer(latch), Some(held), "{latch} goes back\n{}\nto {desired}", self.told());
        }
    }

    /// An endpoint is one thing: a host is never announced with a port of another.
    fn announces(&self, plan: &Plan) {
        let (Some(desired), Ok(Answer::Cluster(ClusterAnswer { endpoint: Some(endpoint), .. }))) =
            (&plan.desired, &self.answer)
        else {
            return;
        };
        let at = "/spec/controlPlaneEndpoint";
        let known = self.object.pointer(at).is_some_and(|at| at["host"] != Value::Null || at["port"] != Value::Null);
        let zero = self.object.pointer(at).is_some_and(|at| at["host"] == "" && at["port"] == 0);
        let own = self.kind.own.iter().any(|own| own.starts_with("spec.controlPlaneEndpoint"));
        let refused = self.outcome.operations.iter().any(|operation| written(operation).is_none());
        let workload = self.cluster.is_none();
        if (!known || zero) && !own && !refused && !workload && !endpoint.host.is_empty() {
            let announced = json!({"host": endpoint.host, "port": endpoint.port});
            assert_eq!(desired.pointer(at), Some(&announced), "{}", self.told());
        }
    }

    fn writes_what_was_collected(&self, plan: &Plan) {
        let mut collected: Vec<_> = self.outcome.operations.iter().map_while(written).collect();
        collected.reverse();
        let mut last = None;
        for operation in &plan.operations {
            if operation.key == "bootstrap-data"
                && matches!(self.answer, Ok(Answer::Bootstrap(Some(_))))
                && collected.is_empty()
            {
                let (Action::Create(secret) | Action::Apply { object: secret, .. }) = &operation.action else {
                    panic!("{operation:?}: bootstrap data are created or applied")
                };
                assert_eq!((&secret["kind"], &secret["apiVersion"]), (&json!("Secret"), &json!("v1")));
                assert_eq!(secret["metadata"]["namespace"], self.object["metadata"]["namespace"], "{}", self.told());
                continue;
            }
            let (api_version, kind, name) = match &operation.action {
                Action::Create(object) | Action::Apply { object, .. } => {
                    let text =
                        |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
                    (text("/apiVersion"), text("/kind"), text("/metadata/name"))
                }
                Action::Patch { target, .. } | Action::Delete { target, .. } | Action::SetCondition { target, .. } => {
                    (target.api_version.clone(), target.kind.clone(), target.name.clone())
                }
                Action::Evict { .. } => panic!("nothing evicts: {operation:?}"),
            };
            let same = |target: &capwasm_contract::ObjectRef| {
                (&target.api_version, &target.kind, &target.name) == (&api_version, &kind, &name)
            };
            // A patch of an object and of its status is two requests.
            let status_of_last = matches!(&operation.action, Action::Patch { subresource: Some(_), .. });
            if status_of_last && last.as_ref().is_some_and(|(key, target)| *key == operation.key && same(target)) {
                last = None;
                continue;
            }
            let Some((_, target)) = collected.pop() else { panic!("{operation:?} was not collected\n{}", self.told()) };
            assert!(same(&target), "{operation:?} is not {target:?}\n{}", self.told());
            last = Some((operation.key.clone(), target));
        }
    }
}

/// Paths of the leaves outside of status in which two objects differ. An empty map and none are the same.
fn differences(old: &Value, new: &Value) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut walk = vec![(Vec::new(), old, new)];
    let none = Value::Object(serde_json::Map::new());
    while let Some((path, old, new)) = walk.pop() {
        let (old, new) = (if old.is_null() { &none } else { old }, if new.is_null() { &none } else { new });
        match (old, new) {
            (Value::Object(was), Value::Object(is)) => {
                for key in was.keys().chain(is.keys()).filter(|key| !(path.is_empty() && *key == "status")) {
                    let below: Vec<String> = path.iter().chain([key]).cloned().collect();
                    walk.push((below, was.get(key).unwrap_or(&Value::Null), is.get(key).unwrap_or(&Value::Null)));
                }
            }
            (Value::Object(was), is) if was.is_empty() && leaf(is) => found.push(path),
            (was, Value::Object(is)) if is.is_empty() && leaf(was) => found.push(path),
            (was, is) if was != is => found.push(path),
            _ => {}
        }
    }
    found
}

fn leaf(value: &Value) -> bool {
    !value.is_null()
}

fn object(u: &mut Unstructured<'_>) -> Result<Value> {
    let mut object = json!({
        "apiVersion": "infrastructure.example/v1beta2", "kind": "Thing",
        "metadata": {"name": "t", "namespace": "ns", "uid": "u", "generation": 3, "labels": {"cluster.x-k8s.io/cluster-name": "c"}},
        "spec": {}
    });
    if u.arbitrary()? {
        let endpoint =
            [json!({"host": "", "port": 0}), json!({"host": "h", "port": 1}), json!({"port": 6443}), json!({})];
        object["spec"]["controlPlaneEndpoint"] = u.choose(&endpoint)?.clone();
    }
    if u.arbitrary()? {
        object["spec"]["providerID"] = text(u, &["", "x:///1"])?.into();
    }
    if u.arbitrary()? {
        object["status"] = json!({
            "ready": u.arbitrary::<bool>()?, "initialized": u.arbitrary::<bool>()?, "dataSecretName": text(u, &["", "t"])?,
            "initialization": {"provisioned": u.arbitrary::<bool>()?, "dataSecretCreated": true, "controlPlaneInitialized": true},
            "observedGeneration": 3
        });
    }
    for _ in 0..u.int_in_range(0..=2)? {
        // What is no map has no fields; the API server lets nobody say otherwise.
        let mut changed = object.clone();
        mutate(u, &mut changed, &WORDS)?;
        let map = |pointer: &str| changed.pointer(pointer).is_none_or(Value::is_object);
        if ["", "/metadata", "/metadata/labels", "/metadata/annotations", "/spec", "/status", "/status/initialization"]
            .into_iter()
            .all(map)
            && map("/spec/controlPlaneEndpoint")
            && changed["metadata"].get("namespace") == object["metadata"].get("namespace")
        {
            object = changed;
        }
    }
    Ok(object)
}

fn kind(u: &mut Unstructured<'_>, role: Role) -> Result<KindDescriptor> {
    let status = json!({"properties": {
        "failureDomain": {}, "observedGeneration": {}, "initialization": {"properties": {"provisioned": {}}}, "ready": {"type": "boolean"},
        "conditions": {"items": {"properties": {"severity": {}}}}
    }, "required": ["ready"]});
    let mut schema = json!({"properties": {"status": status, "spec": {"properties": {"controlPlaneEndpoint": {}}}}});
    if u.arbitrary()? {
        mutate(u, &mut schema, &WORDS)?;
    }
    Ok(KindDescriptor {
        role,
        group: "infrastructure.example".into(),
        kind: "Thing".into(),
        version: "v1beta2".into(),
        finalizers: vec!["thing.example".into()],
        own: list(u, 3, |u| Ok(one_of(u, &OWN)?.to_owned()))?,
        may_wait: vec!["addresses".into()],
        exclusive_by: ExclusiveBy::Object,
        bootstrap_data: None,
        admission: false,
        crd: json!({"spec": {"versions": [{"name": "v1beta2", "schema": {"openAPIV3Schema": schema}}]}}),
    })
}

fn fields(u: &mut Unstructured<'_>, below: &str) -> Result<Value> {
    if u.ratio(1, 6)? {
        return Ok(json!({(text(u, &["spec.size", "metadata"])?): value(u, &WORDS, 2)?}));
    }
    let below = if below == "spec" && u.ratio(1, 3)? { "metadata" } else { below };
    Ok(json!({(below): crate::json::object(u, &WORDS, 3)?}))
}

fn answer(u: &mut Unstructured<'_>, role: Role) -> Result<std::result::Result<Answer, Problem>> {
    if u.ratio(1, 6)? {
        let fault =
            *u.choose(&[Fault::Waiting, Fault::Transient, Fault::Invalid, Fault::Terminal, Fault::Unsupported])?;
        let retry_after = u.arbitrary::<Option<u64>>()?.map(std::time::Duration::from_millis);
        return Ok(Err(Problem {
            fault,
            reason: text(u, &["Reason", ""])?,
            message: text(u, &["message", ""])?,
            retry_after,
        }));
    }
    if u.ratio(1, 8)? {
        return Ok(Ok(Answer::Gone(u.arbitrary()?)));
    }
    let endpoint = |u: &mut Unstructured<'_>| {
        let endpoint = Endpoint { host: text(u, &["", "10.0.0.1"])?, port: u.arbitrary()? };
        Ok(if u.arbitrary()? { Some(endpoint) } else { None })
    };
    let some_text = |u: &mut Unstructured<'_>| Ok(if u.arbitrary()? { Some(text(u, &["", "x:///2"])?) } else { None });
    Ok(Ok(match role {
        Role::InfrastructureCluster => Answer::Cluster(ClusterAnswer {
            provisioned: u.arbitrary()?,
            endpoint: endpoint(u)?,
            failure_domains: list(u, 2, |u| {
                Ok(FailureDomain {
                    name: text(u, &["a"])?,
                    control_plane: u.arbitrary()?,
                    attributes: vec![("k".into(), "v".into())],
                })
            })?,
        }),
        Role::InfrastructureMachine => Answer::Machine(MachineAnswer {
            provisioned: u.arbitrary()?,
            provider_id: some_text(u)?,
            addresses: list(u, 2, |u| Ok(Address { kind: "Hostname".into(), value: text(u, &["n"])? }))?,
            failure_domain: some_text(u)?,
        }),
        Role::InfrastructureMachinePool => Answer::Pool(PoolAnswer {
            provisioned: u.arbitrary()?,
            provider_ids: list(u, 2, |u| text(u, &["x:///1"]))?,
            replicas: u.arbitrary()?,
        }),
        Role::Bootstrap => Answer::Bootstrap(if u.arbitrary()? {
            Some(BootstrapData { format: text(u, &["cloud-config"])?.into(), value: u.arbitrary()? })
        } else {
            None
        }),
        Role::ControlPlane => Answer::ControlPlane(ControlPlaneAnswer {
            initialized: u.arbitrary()?,
            endpoint: endpoint(u)?,
            version: some_text(u)?,
            replicas: u.arbitrary()?,
            ready: u.arbitrary()?,
            available: u.arbitrary()?,
            up_to_date: u.arbitrary()?,
            selector: text(u, &["", "a=b"])?,
        }),
        Role::Controller | Role::Template => Answer::Reconciled,
    }))
}
