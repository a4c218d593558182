//! `outcome`: collects the guest's outcome. Writes need a grant for their kind; without one the operation is replaced
//! by its refusal, since these functions cannot return `denied`.

use std::time::Duration;

use capwasm_contract::{Condition, Event, ObjectRef, Operation, Outcome, Place, Refused};
use capwasm_object::bounded::{self, ReadError};
use capwasm_object::group_version::group;
use serde_json::Value;
use wasmtime::component::{HasData, Linker};
use wasmtime::{Result, bail};

use crate::bindings::{outcome, types};
use crate::budget::{Budget, Limit};
use crate::capability::names;
use crate::capability::scope::{Scope, not_granted};
use crate::failure::Stop;
use crate::grants::covers;

/// Cost of an entry besides its text, so that the number of entries is limited too. An operation has 200 bytes of its own.
const ENTRY_BYTES: usize = 256;

pub(crate) struct OutcomeView<'a> {
    pub(crate) outcome: &'a mut Outcome,
    pub(crate) budget: &'a Budget,
    pub(crate) scope: &'a Scope,
}

struct HasOutcome;

impl HasData for HasOutcome {
    type Data<'a> = OutcomeView<'a>;
}

pub(crate) fn add_to_linker<T: 'static>(linker: &mut Linker<T>, view: fn(&mut T) -> OutcomeView<'_>) -> Result<()> {
    outcome::add_to_linker::<T, HasOutcome>(linker, view)
}

impl OutcomeView<'_> {
    fn charge(&mut self, texts: &[&str]) -> Result<()> {
        let bytes = texts.iter().map(|text| text.len()).sum::<usize>() + ENTRY_BYTES;
        Ok(self.budget.charge(Limit::Result, bytes).map_err(Stop::from)?)
    }

    /// As [`OutcomeView::charge`], with the texts of a reference: each may be as long as the guest's memory.
    fn charge_for(&mut self, target: &types::ObjectRef, texts: &[&str]) -> Result<()> {
        let namespace = target.namespace.as_deref().unwrap_or_default();
        let named = [&target.api_version, &target.kind, namespace, &target.name];
        let bytes: usize = named.iter().map(|text| text.len()).sum();
        self.budget.charge(Limit::Result, bytes).map_err(Stop::from)?;
        self.charge(texts)
    }

    fn writable(&self, place: Place, target: &ObjectRef) -> std::result::Result<(), Refused> {
        names::object(target)?;
        let (api_version, kind) = (&target.api_version, &target.kind);
        match place {
            Place::Management => self.scope.write(api_version, kind, target.namespace.as_deref()),
            Place::Workload if covers(&self.scope.grants().workload_writes, group(api_version), kind) => Ok(()),
            Place::Workload => Err(not_granted("workloadWrites", api_version, kind)),
        }
    }

    /// Adds the operation, or its refusal if the target is not granted.
    fn operate(
        &mut self,
        key: String,
        place: Place,
        target: ObjectRef,
        operation: impl FnOnce(String, ObjectRef) -> Operation,
    ) {
        let operation = match self.writable(place, &target) {
            Ok(()) => operation(key, target),
            Err(refused) => Operation::Refused { key, refused },
        };
        self.outcome.operations.push(operation);
    }
}

/// Parses JSON, charged as it grows. Invalid JSON is a bug of the guest and traps, naming the function.
fn parse(budget: &Budget, call: &str, text: &str) -> Result<Value> {
    match bounded::read(text.as_bytes(), |bytes| budget.charge(Limit::Parsed, bytes).is_ok()) {
        Ok(value) if value.is_object() => Ok(value),
        Ok(_) => bail!("outcome.{call}: expected a JSON object"),
        Err(ReadError::NotJson(error)) => bail!("outcome.{call}: not JSON: {error}"),
        Err(ReadError::TooLarge) => Err(Stop::from(Limit::Parsed).into()),
    }
}

/// Reference to an object given as JSON.
fn reference(call: &str, object: &Value) -> Result<ObjectRef> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    match (text("/apiVersion"), text("/kind"), text("/metadata/name")) {
        (Some(api_version), Some(kind), Some(name)) => {
            Ok(ObjectRef { api_version, kind, namespace: text("/metadata/namespace"), name })
        }
        _ => bail!("outcome.{call}: the object needs apiVersion, kind and metadata.name"),
    }
}

impl outcome::Host for OutcomeView<'_> {
    fn set_status(&mut self, fields: String) -> Result<()> {
        self.charge(&[&fields])?;
        self.outcome.status.push(parse(self.budget, "set-status", &fields)?);
        Ok(())
    }

    fn set_own(&mut self, fields: String) -> Result<()> {
        self.charge(&[&fields])?;
        self.outcome.own.push(parse(self.budget, "set-own", &fields)?);
        Ok(())
    }

    fn set_condition(&mut self, name: String, status: Option<bool>, reason: String, message: String) -> Result<()> {
        self.charge(&[&name, &reason, &message])?;
        self.outcome.conditions.push(Condition { name, status, reason, message });
        Ok(())
    }

    fn emit_event(&mut self, warning: bool, reason: String, message: String) -> Result<()> {
        self.charge(&[&reason, &message])?;
        self.outcome.events.push(Event { warning, reason, message });
        Ok(())
    }

    fn wake_after(&mut self, ms: u64) -> Result<()> {
        self.outcome.wake_after(Duration::from_millis(ms));
        Ok(())
    }

    fn wake_when_applied(&mut self) -> Result<()> {
        self.outcome.wake_when_applied = true;
        Ok(())
    }

    fn create(&mut self, key: String, place: types::Place, object: String) -> Result<()> {
        self.charge(&[&key, &object])?;
        let (place, object) = (place.into(), parse(self.budget, "create", &object)?);
        let target = reference("create", &object)?;
        self.operate(key, place, target, |key, _| Operation::Create { key, place, object });
        Ok(())
    }

    fn apply(&mut self, key: String, place: types::Place, object: String) -> Result<()> {
        self.charge(&[&key, &object])?;
        let (place, object) = (place.into(), parse(self.budget, "apply", &object)?);
        let target = reference("apply", &object)?;
        self.operate(key, place, target, |key, _| Operation::Apply { key, place, object });
        Ok(())
    }

    fn patch(&mut self, key: String, place: types::Place, target: types::ObjectRef, merge: String) -> Result<()> {
        self.charge_for(&target, &[&key, &merge])?;
        let (place, merge) = (place.into(), parse(self.budget, "patch", &merge)?);
        self.operate(key, place, target.into(), |key, target| Operation::Patch { key, place, target, merge });
        Ok(())
    }

    fn set_condition_of(
        &mut self,
        key: String,
        target: types::ObjectRef,
        name: String,
        status: Option<bool>,
        reason: String,
        message: String,
    ) -> Result<()> {
        self.charge_for(&target, &[&key, &name, &reason, &message])?;
        let condition = Condition { name, status, reason, message };
        self.operate(key, Place::Management, target.into(), |key, target| Operation::SetConditionOf {
            key,
            target,
            condition,
        });
        Ok(())
    }

    fn delete(
        &mut self,
        key: String,
        place: types::Place,
        target: types::ObjectRef,
        uid: Option<String>,
    ) -> Result<()> {
        self.charge_for(&target, &[&key, uid.as_deref().unwrap_or_default()])?;
        let place = place.into();
        self.operate(key, place, target.into(), |key, target| Operation::Delete { key, place, target, uid });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::bindings::outcome::Host;
    use crate::grants::Grants;
    use crate::limits::Limits;
    use capwasm_contract::descriptor::KindPattern;
    use serde_json::json;
    use std::sync::Arc;

    /// An outcome with a limit of its bytes.
    struct Collector(Outcome, Budget);

    impl Collector {
        fn new(result_bytes: u64) -> Self {
            Collector(Outcome::default(), Budget::new(&Limits { result_bytes, ..Limits::default() }))
        }

        fn view<'a>(&'a mut self, scope: &'a Scope) -> OutcomeView<'a> {
            OutcomeView { outcome: &mut self.0, budget: &self.1, scope }
        }
    }

    fn scope() -> Scope {
        let grants = Grants {
            writes: vec![KindPattern { group: String::new(), kind: "Secret".into() }],
            workload_writes: vec![KindPattern { group: String::new(), kind: "ConfigMap".into() }],
            ..Grants::default()
        };
        Scope::new(Arc::new(r#"{"metadata":{"namespace":"ns"}}"#.into()), Arc::new(grants))
    }

    fn object(kind: &str, namespace: &str) -> String {
        json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "namespace": namespace}}).to_string()
    }

    #[test]
    fn ungranted_writes_become_refusals_in_their_place() {
        let (scope, mut collector) = (scope(), Collector::new(1 << 20));
        let mut view = collector.view(&scope);
        let (management, workload) = (types::Place::Management, types::Place::Workload);
        view.create("a".into(), management, object("Secret", "ns")).unwrap();
        view.create("b".into(), management, object("Secret", "other")).unwrap();
        view.create("c".into(), management, object("ConfigMap", "ns")).unwrap();
        view.apply("d".into(), workload, object("ConfigMap", "kube-system")).unwrap();
        view.apply("e".into(), workload, object("Secret", "kube-system")).unwrap();
        let outcome = collector.0;
        let refused: Vec<_> = outcome
            .operations
            .iter()
            .map(|operation| (operation.key(), matches!(operation, Operation::Refused { .. })))
            .collect();
        assert_eq!(refused, [("a", false), ("b", true), ("c", true), ("d", false), ("e", true)]);
    }

    /// All kinds of writes to one object of the management cluster, with whether each was refused.
    fn attempts(scope: &Scope, target: &types::ObjectRef) -> Vec<(String, bool)> {
        let mut collector = Collector::new(1 << 20);
        let mut view = collector.view(scope);
        let place = types::Place::Management;
        let mut metadata = json!({"name": target.name, "finalizers": [], "ownerReferences": [],
            "annotations": {"cluster.x-k8s.io/paused": ""}});
        if let Some(namespace) = &target.namespace {
            metadata["namespace"] = json!(namespace);
        }
        let object = json!({"apiVersion": target.api_version, "kind": target.kind, "metadata": metadata}).to_string();
        view.create("create".into(), place, object.clone()).unwrap();
        view.apply("apply".into(), place, object.clone()).unwrap();
        view.patch("patch".into(), place, target.clone(), object).unwrap();
        view.patch("patch of the status".into(), place, target.clone(), r#"{"status":{}}"#.into()).unwrap();
        view.set_condition_of("condition".into(), target.clone(), "Ready".into(), None, "A".into(), String::new())
            .unwrap();
        view.delete("delete".into(), place, target.clone(), None).unwrap();
        view.delete("delete by uid".into(), place, target.clone(), Some("u".into())).unwrap();
        let refused = |operation: &Operation| matches!(operation, Operation::Refused { .. });
        collector.0.operations.iter().map(|o| (o.key().to_owned(), refused(o))).collect()
    }

    fn target(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> types::ObjectRef {
        let (namespace, name) = (namespace.map(str::to_owned), name.to_owned());
        types::ObjectRef { api_version: api_version.into(), kind: kind.into(), namespace, name }
    }

    fn scope_with(writes: &[(&str, &str)], namespaces: &[&str]) -> Scope {
        let pattern = |(group, kind): &(&str, &str)| KindPattern { group: (*group).into(), kind: (*kind).into() };
        let grants = Grants {
            writes: writes.iter().map(pattern).collect(),
            namespaces: namespaces.iter().map(|name| (*name).to_owned()).collect(),
            ..Grants::default()
        };
        Scope::new(Arc::new(r#"{"metadata":{"namespace":"ns"}}"#.into()), Arc::new(grants))
    }

    /// A foreign namespace, a foreign kind, names that are paths: by whatever function it is tried.
    #[test]
    fn no_write_leaves_the_own_namespace_or_the_granted_kinds() {
        let granted = [("", "Secret"), ("example.org", "*")];
        let (own, wide) = (scope_with(&granted, &[]), scope_with(&granted, &["shared"]));
        let secret = |namespace, name| target("v1", "Secret", namespace, name);
        let rows = [
            ("the own namespace", &own, secret(None, "x"), false),
            ("the own namespace by name", &own, secret(Some("ns"), "x"), false),
            ("a namespace that is granted", &wide, secret(Some("shared"), "x"), false),
            ("any kind of a granted group", &own, target("example.org/v1", "Any", None, "x"), false),
            ("any version of a granted group", &own, target("example.org/v1alpha1", "Any", None, "x"), false),
            ("a foreign namespace", &own, secret(Some("kube-system"), "x"), true),
            ("a foreign namespace beside one that is granted", &wide, secret(Some("kube-system"), "x"), true),
            ("the empty namespace", &wide, secret(Some(""), "x"), true),
            ("a namespace that begins as the own", &own, secret(Some("ns2"), "x"), true),
            ("a namespace that is a path", &wide, secret(Some("ns/../kube-system"), "x"), true),
            ("a kind that is not granted", &own, target("v1", "ConfigMap", None, "x"), true),
            ("the kind in another group", &own, target("evil.org/v1", "Secret", None, "x"), true),
            ("the group below the granted one", &own, target("sub.example.org/v1", "Any", None, "x"), true),
            ("another kind by its case", &own, target("v1", "secret", None, "x"), true),
            ("the kind of a list", &own, target("v1", "SecretList", None, "x"), true),
            ("all kinds", &own, target("example.org/v1", "*", None, "x"), true),
            ("a name that is a path", &own, secret(None, "../configmaps/x"), true),
            ("a name with a subresource", &own, secret(None, "x/status"), true),
            ("a name with a query", &own, secret(None, "x?dryRun=All"), true),
            ("a name of dots", &own, secret(None, ".."), true),
            ("no name", &own, secret(None, ""), true),
            ("a version that is a path", &own, target("example.org/v1/../../api/v1", "Secret", None, "x"), true),
            ("a version with a query", &own, target("example.org/v1?x=", "Any", None, "x"), true),
            ("no version", &own, target("", "Secret", None, "x"), true),
            ("a slash for a group", &own, target("/v1", "Secret", None, "x"), true),
        ];
        for (name, scope, target, refused) in rows {
            for (how, was) in attempts(scope, &target) {
                assert_eq!(was, refused, "{name}: {how}");
            }
        }
    }

    /// RBAC, CRDs, webhooks, tokens, and what says what a provider may: one by one, with all groups granted by wildcard.
    #[test]
    fn what_would_make_a_provider_more_than_it_is_is_written_only_where_its_kind_is_granted_by_name() {
        let rows = [
            ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"),
            ("rbac.authorization.k8s.io", "v1", "Role"),
            ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
            ("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration"),
            ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy"),
            ("apiregistration.k8s.io", "v1", "APIService"),
            ("authentication.k8s.io", "v1", "TokenRequest"),
            ("authorization.k8s.io", "v1", "SubjectAccessReview"),
            ("certificates.k8s.io", "v1", "CertificateSigningRequest"),
            ("capwasm.dev", "v1alpha1", "WasmProvider"),
            ("", "v1", "Secret"),
            ("", "v1", "ServiceAccount"),
        ];
        let all: Vec<(&str, &str)> = rows.iter().map(|(group, _, _)| (*group, "*")).collect();
        for (group, version, kind) in rows {
            let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
            // Some are in namespaces and some are not: neither way is any better.
            for namespace in [None, Some("ns"), Some("kube-system")] {
                let target = target(&api_version, kind, namespace, "evil");
                let by_wildcard = attempts(&scope_with(&all, &["*"]), &target);
                assert!(by_wildcard.iter().all(|(_, refused)| *refused), "{kind}: {by_wildcard:?}");
                let by_name = attempts(&scope_with(&[(group, kind)], &["*"]), &target);
                assert!(by_name.iter().all(|(_, refused)| !refused), "{kind}: {by_name:?}");
            }
        }
    }

    /// A namespace that is no text is none, and an object has one name.
    #[test]
    fn the_namespace_of_an_object_is_read_as_it_is_written() {
        let (scope, mut collector) = (scope(), Collector::new(1 << 20));
        let mut view = collector.view(&scope);
        let management = types::Place::Management;
        let twice =
            r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x","namespace":"ns","namespace":"kube-system"}}"#;
        view.create("twice".into(), management, twice.into()).unwrap();
        let no_text = r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x","namespace":["kube-system"]}}"#;
        view.create("no text".into(), management, no_text.into()).unwrap();
        for nameless in [
            r#"{"apiVersion":"v1","kind":"Secret","metadata":{"generateName":"x"}}"#,
            r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":7}}"#,
            r#"{"apiVersion":"v1","kind":"Secret"}"#,
            r#"{"kind":"Secret","metadata":{"name":"x"}}"#,
            r#"[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}]"#,
        ] {
            assert!(view.create("k".into(), management, nameless.into()).is_err(), "{nameless}");
        }
        let outcome = collector.0;
        assert!(
            matches!(&outcome.operations[0], Operation::Refused { refused, .. } if refused.message.contains("kube-system"))
        );
        // The executor puts it into the object's own, as one that says nothing.
        assert!(matches!(&outcome.operations[1], Operation::Create { .. }), "{:?}", outcome.operations[1]);
        assert_eq!(outcome.operations.len(), 2);
    }

    #[test]
    fn broken_json_traps_with_the_name_of_the_call() {
        let (scope, mut collector) = (scope(), Collector::new(1 << 20));
        let mut view = collector.view(&scope);
        let error = view.set_status("[]".into()).unwrap_err();
        assert_eq!(error.to_string(), "outcome.set-status: expected a JSON object");
        let error = view.create("k".into(), types::Place::Management, "{}".into()).unwrap_err();
        assert_eq!(error.to_string(), "outcome.create: the object needs apiVersion, kind and metadata.name");
    }

    #[test]
    fn the_size_of_an_outcome_is_bounded_even_when_its_texts_are_empty() {
        let (scope, mut collector) = (scope(), Collector::new(10 * ENTRY_BYTES as u64));
        let mut view = collector.view(&scope);
        for _ in 0..10 {
            view.emit_event(false, String::new(), String::new()).unwrap();
        }
        let error = view.emit_event(false, String::new(), String::new()).unwrap_err();
        assert!(matches!(error.downcast_ref(), Some(Stop::Result)));
    }

    /// Each text is far below the limit, and its tree is not.
    #[test]
    fn an_outcome_is_charged_for_the_memory_of_its_trees() {
        let scope = scope();
        let small = format!(
            r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"x"}},"a":[{}0]}}"#,
            r#"{"":0},"#.repeat(10_000)
        );
        let management = types::Place::Management;
        type Write = fn(&mut OutcomeView<'_>, String, types::Place) -> Result<()>;
        let writes: [(&str, Write); 5] = [
            ("set-status", |view, text, _| view.set_status(text)),
            ("set-own", |view, text, _| view.set_own(text)),
            ("create", |view, text, place| view.create("k".into(), place, text)),
            ("apply", |view, text, place| view.apply("k".into(), place, text)),
            ("patch", |view, text, place| view.patch("k".into(), place, target("v1", "Secret", None, "x"), text)),
        ];
        for (name, write) in writes {
            let mut collector = Collector::new(1 << 20);
            let error = write(&mut collector.view(&scope), small.clone(), management).unwrap_err();
            assert!(matches!(error.downcast_ref(), Some(Stop::Result)), "{name}: {error}");
            assert!(collector.0.is_empty() && collector.1.used(Limit::Result) < 100_000, "{name}");
            // What a machine's status or a cloud-config takes is far from it.
            let honest = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}, "data": {"value": "x".repeat(900_000)}});
            assert!(write(&mut Collector::new(1 << 20).view(&scope), honest.to_string(), management).is_ok(), "{name}");
        }
        let mut collector = Collector::new(1 << 20);
        let one = json!({"status": {"conditions": [{"type": "A"}, {"type": "B"}]}}).to_string();
        let many = (0..10_000).take_while(|_| collector.view(&scope).set_status(one.clone()).is_ok()).count();
        assert!((1_000..10_000).contains(&many), "many small ones add up, but not at once: {many}");
    }

    #[test]
    fn every_text_of_a_target_counts_for_the_size_of_an_outcome() {
        let scope = scope();
        let long = || "x".repeat(1_000);
        let short =
            || types::ObjectRef { api_version: "v1".into(), kind: "Secret".into(), namespace: None, name: "x".into() };
        let targets = [
            ("api version", types::ObjectRef { api_version: long(), ..short() }),
            ("kind", types::ObjectRef { kind: long(), ..short() }),
            ("namespace", types::ObjectRef { namespace: Some(long()), ..short() }),
            ("name", types::ObjectRef { name: long(), ..short() }),
        ];
        let exceeded = |call: &dyn Fn(&mut OutcomeView<'_>) -> Result<()>| {
            let mut collector = Collector::new(1_000);
            let mut view = collector.view(&scope);
            call(&mut view).is_err_and(|error| matches!(error.downcast_ref(), Some(Stop::Result)))
        };
        let (management, none) = (types::Place::Management, String::new);
        for (what, target) in targets {
            assert!(exceeded(&|view| view.patch(none(), management, target.clone(), "{}".into())), "patch: {what}");
            assert!(exceeded(&|view| view.delete(none(), management, target.clone(), None)), "delete: {what}");
            let condition = |view: &mut OutcomeView<'_>| {
                view.set_condition_of(none(), target.clone(), none(), None, none(), none())
            };
            assert!(exceeded(&condition), "set-condition-of: {what}");
        }
        assert!(exceeded(&|view| view.delete(none(), management, short(), Some(long()))), "delete: uid");
    }

    #[test]
    fn the_earliest_wish_to_wake_wins() {
        let (scope, mut collector) = (scope(), Collector::new(1 << 20));
        let mut view = collector.view(&scope);
        for ms in [500, 200, 900] {
            view.wake_after(ms).unwrap();
        }
        assert_eq!(collector.0.wake_after, Some(Duration::from_millis(200)));
    }

    #[test]
    fn without_a_grant_every_write_is_refused_whatever_it_names() {
        let text = |u: &mut arbitrary::Unstructured<'_>| {
            u.choose(&["v1", "", "/", "capwasm.dev/v1", "*", "Secret", "..", "a/b", "ns", "x"])
                .map(|text| (*text).to_owned())
        };
        arbtest::arbtest(|u| {
            let grants = Arc::new(Grants { namespaces: vec!["*".into()], ..Grants::default() });
            let scope = Scope::new(Arc::new(r#"{"metadata":{"namespace":"ns"}}"#.into()), grants);
            let mut collector = Collector::new(1 << 20);
            let mut view = collector.view(&scope);
            let place = if u.arbitrary()? { types::Place::Management } else { types::Place::Workload };
            let (api_version, kind, namespace, name) = (text(u)?, text(u)?, Some(text(u)?), text(u)?);
            let object =
                json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}});
            let target = types::ObjectRef { api_version, kind, namespace, name };
            view.create("a".into(), place, object.to_string()).unwrap();
            view.apply("b".into(), place, object.to_string()).unwrap();
            view.patch("c".into(), place, target.clone(), "{}".into()).unwrap();
            view.delete("d".into(), place, target.clone(), None).unwrap();
            view.set_condition_of("e".into(), target, "Ready".into(), None, String::new(), String::new()).unwrap();
            let outcome = collector.0;
            assert!(
                outcome.operations.iter().all(|operation| matches!(operation, Operation::Refused { .. })),
                "{outcome:?}"
            );
            assert_eq!(outcome.operations.len(), 5);
            Ok(())
        });
    }
}
