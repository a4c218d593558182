//! Internals for the fuzz targets in `fuzz/`. Not a stable API.

use std::sync::Arc;

use capwasm_contract::descriptor::{Descriptor, Role};
use capwasm_contract::recording::Request;
use capwasm_contract::{ObjectRef, Outcome, Place, Selection};
use wasmtime::component::{Resource, ResourceTable};

use crate::bindings::lookup::Host as _;
use crate::bindings::outcome::Host as _;
use crate::bindings::secrets::{Host as _, HostSecret};
use crate::bindings::types;
use crate::budget::Budget;
use crate::call::Capabilities;
use crate::capability::lookup::LookupView;
use crate::capability::outcome::OutcomeView;
use crate::capability::scope::Scope;
use crate::capability::secrets::{Opened, SecretsView};
use crate::grants::{self, Grants, NamedEndpoint, Origin};
use crate::limits::Limits;
use crate::load::{self, LoadError};
use crate::record::player::Player;
use crate::record::tape::Tape;
use crate::record::{Recording, Replay, Replayed};

/// Whether an origin covers scheme, host (without brackets) and port.
pub fn origin_matches(origin: &Origin, tls: bool, host: &str, port: u16) -> bool {
    origin.matches(tls, host, port)
}

/// Whether a granted origin covers a wanted one.
pub fn origin_includes(granted: &Origin, wanted: &str) -> bool {
    granted.includes(wanted)
}

/// Whether an address must be granted by name.
pub fn special_address(address: std::net::IpAddr) -> bool {
    grants::special_address(address)
}

/// Whether the rules of an endpoint allow a request.
pub fn endpoint_allows(endpoint: &NamedEndpoint, method: &str, path: &str) -> bool {
    endpoint.allows(method, path).is_ok()
}

/// Whether `text` matches a pattern, in which `*` matches any part.
pub fn wildcard(pattern: &str, text: &str) -> bool {
    grants::wildcard(pattern, text)
}

/// Parses and checks a descriptor of a component with these exports.
///
/// # Errors
/// Everything that is wrong with it.
pub fn descriptor(text: &str, roles: &[Role], conversion: bool, admission: bool) -> Result<Descriptor, LoadError> {
    load::descriptor_of(text, roles, load::Pure { conversion, admission })
}

/// A call of the capability `outcome`.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the fields are those of the contract")]
pub enum Call {
    SetStatus(String),
    SetOwn(String),
    SetCondition { name: String, status: Option<bool>, reason: String, message: String },
    EmitEvent { warning: bool, reason: String, message: String },
    WakeAfter(u64),
    WakeWhenApplied,
    Create { key: String, place: Place, object: String },
    Apply { key: String, place: Place, object: String },
    Patch { key: String, place: Place, target: ObjectRef, merge: String },
    SetConditionOf { key: String, target: ObjectRef, name: String, status: Option<bool> },
    Delete { key: String, place: Place, target: ObjectRef, uid: Option<String> },
}

/// The outcome of a guest's calls for an object, up to the first that traps; `false` if one did.
pub fn collect(object: &str, grants: &Grants, limit: u64, calls: &[Call]) -> (Outcome, bool) {
    let scope = Scope::new(Arc::new(object.to_owned()), Arc::new(grants.clone()));
    let (mut outcome, budget) = (Outcome::default(), Budget::new(&Limits { result_bytes: limit, ..Limits::default() }));
    let mut view = OutcomeView { outcome: &mut outcome, budget: &budget, scope: &scope };
    let finished = calls.iter().all(|call| make(&mut view, call.clone()).is_ok());
    (outcome, finished)
}

fn make(view: &mut OutcomeView<'_>, call: Call) -> wasmtime::Result<()> {
    match call {
        Call::SetStatus(fields) => view.set_status(fields),
        Call::SetOwn(fields) => view.set_own(fields),
        Call::SetCondition { name, status, reason, message } => view.set_condition(name, status, reason, message),
        Call::EmitEvent { warning, reason, message } => view.emit_event(warning, reason, message),
        Call::WakeAfter(ms) => view.wake_after(ms),
        Call::WakeWhenApplied => view.wake_when_applied(),
        Call::Create { key, place, object } => view.create(key, wire_place(place), object),
        Call::Apply { key, place, object } => view.apply(key, wire_place(place), object),
        Call::Patch { key, place, target, merge } => view.patch(key, wire_place(place), wire(target), merge),
        Call::SetConditionOf { key, target, name, status } => {
            view.set_condition_of(key, wire(target), name, status, "Reason".to_owned(), String::new())
        }
        Call::Delete { key, place, target, uid } => view.delete(key, wire_place(place), wire(target), uid),
    }
}

fn wire_place(place: Place) -> types::Place {
    match place {
        Place::Management => types::Place::Management,
        Place::Workload => types::Place::Workload,
    }
}

fn wire(target: ObjectRef) -> types::ObjectRef {
    let ObjectRef { api_version, kind, namespace, name } = target;
    types::ObjectRef { api_version, kind, namespace, name }
}

/// A call without a guest: its capabilities, and the budget that they charge.
pub struct Session {
    outcome: Outcome,
    budget: Budget,
    scope: Scope,
    capabilities: Capabilities,
    table: ResourceTable,
    opened: Opened,
    tape: Tape,
}

impl Session {
    /// A call for an object of the namespace `ns`.
    pub fn new(limits: &Limits, grants: Grants, capabilities: Capabilities) -> Self {
        let scope = Scope::new(Arc::new(r#"{"metadata":{"namespace":"ns"}}"#.to_owned()), Arc::new(grants));
        let (table, opened) = (ResourceTable::new(), Opened::default());
        Session {
            outcome: Outcome::default(),
            budget: Budget::new(limits),
            scope,
            capabilities,
            table,
            opened,
            tape: Tape::Off,
        }
    }

    /// Makes a call of the capability `outcome`; `false` if it traps.
    pub fn want(&mut self, call: Call) -> bool {
        let mut view = OutcomeView { outcome: &mut self.outcome, budget: &self.budget, scope: &self.scope };
        make(&mut view, call).is_ok()
    }

    fn lookup(&mut self) -> LookupView<'_> {
        let source = &*self.capabilities.lookup;
        LookupView { source, scope: &self.scope, budget: &self.budget, tape: &mut self.tape }
    }

    fn secrets(&mut self) -> SecretsView<'_> {
        let Session { capabilities, scope, table, opened, budget, tape, .. } = self;
        SecretsView { source: &*capabilities.secrets, scope, table, opened, budget, tape }
    }

    /// Reads an object; whether it was answered.
    pub async fn get(&mut self, target: ObjectRef) -> bool {
        self.lookup().get(wire(target)).await.is_ok_and(|answer| answer.is_ok())
    }

    /// Reads a list; whether it was answered.
    pub async fn list(&mut self, of: Selection) -> bool {
        let Selection { api_version, kind, namespace, labels } = of;
        self.lookup().list(api_version, kind, namespace, labels).await.is_ok_and(|answer| answer.is_ok())
    }

    /// Opens a Secret; a handle to it.
    pub async fn open(&mut self, name: String) -> Option<u32> {
        Some(self.secrets().open(name).await.ok()?.ok()?.rep())
    }

    /// Drops a handle.
    pub fn close(&mut self, handle: u32) {
        // A handle that is not there is no handle.
        let _ = HostSecret::drop(&mut self.secrets(), Resource::new_own(handle));
    }

    /// Bytes that were charged and not given back.
    pub fn charged(&self) -> u64 {
        self.budget.held()
    }
}

/// Answers requests from a recording, and ends the call as recorded.
pub fn play(recording: &Recording, how: &Replay, requests: &[Request]) -> Replayed {
    let mut player = Player::new(recording.tape.clone(), how);
    // The first that is not answered ends the call.
    let _ = requests.iter().all(|request| player.turn(request.clone()).is_ok());
    player.finish(recording.ended.clone(), recording)
}
