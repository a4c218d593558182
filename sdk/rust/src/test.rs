//! Test kit: a host for native tests, and helpers that play the host's part after a call.
//!
//! [`TestHost`] answers reads from objects and secrets that the test put there, sends HTTP to a closure, makes
//! recognisable fake keys, and records what it was asked. [`TestHost::carry_out`] applies an outcome to its objects, so
//! that a test can run pass after pass as the real host would.

mod carry_out;
pub mod replay;

use std::cell::RefCell;
use std::collections::BTreeMap;

use capwasm_contract::{
    Algorithm, BootstrapData, ClusterAnswer, ControlPlaneAnswer, EtcdMember, HttpResponse, MachineAnswer, ObjectRef,
    Outcome, Pair, Place, PoolAnswer, Problem, Refusal, Refused, Selection, Subject,
};
use capwasm_object::selector::Selector;
use serde_json::{Value, json};

use crate::host::{Host, HttpRequest, Level};
use crate::object;
use crate::provider::{
    Bootstrap, Context, ControlPlane, Controller, InfrastructureCluster, InfrastructureMachine,
    InfrastructureMachinePool,
};

pub use carry_out::write_back;

type Handler = Box<dyn FnMut(&HttpRequest) -> Result<HttpResponse, Refused>>;

/// One read that a provider made: `get v1/Secret ns/name` or `list v1/Node - app=x`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// Which API server.
    pub place: Place,
    /// What was read.
    pub what: String,
}

/// A host of canned answers that records what it was asked. Methods that set it up have the names of what they answer;
/// to ask as a provider does, write `Host::related(&host, "machine")`.
pub struct TestHost {
    now_ms: u64,
    attempt: u32,
    configuration: Value,
    namespace: String,
    related: BTreeMap<String, Vec<Value>>,
    results: RefCell<Vec<(String, Result<(), Refused>)>>,
    objects: RefCell<Vec<(Place, Value)>>,
    workload_down: bool,
    secrets: BTreeMap<(String, String), Vec<u8>>,
    secrets_elsewhere: BTreeMap<(String, String, String), Vec<u8>>,
    bootstrap_data: BTreeMap<String, Vec<u8>>,
    serving_certificates: BTreeMap<String, String>,
    etcd: RefCell<Option<Vec<EtcdMember>>>,
    etcd_calls: RefCell<Vec<String>>,
    http: RefCell<Option<Handler>>,
    insecure_tls: bool,
    recent: RefCell<Vec<(u64, HttpRequest, HttpResponse)>>,
    requests: RefCell<Vec<HttpRequest>>,
    reads: RefCell<Vec<Read>>,
    logs: RefCell<Vec<(Level, String)>>,
    serial: RefCell<u64>,
}

impl Default for TestHost {
    fn default() -> TestHost {
        TestHost {
            now_ms: 1_700_000_000_000,
            attempt: 1,
            configuration: json!({}),
            namespace: "default".to_owned(),
            related: BTreeMap::new(),
            results: RefCell::default(),
            objects: RefCell::default(),
            workload_down: false,
            secrets: BTreeMap::new(),
            secrets_elsewhere: BTreeMap::new(),
            bootstrap_data: BTreeMap::new(),
            serving_certificates: BTreeMap::new(),
            etcd: RefCell::default(),
            etcd_calls: RefCell::default(),
            http: RefCell::default(),
            insecure_tls: false,
            recent: RefCell::default(),
            requests: RefCell::default(),
            reads: RefCell::default(),
            logs: RefCell::default(),
            serial: RefCell::default(),
        }
    }
}

impl TestHost {
    /// A host at a fixed time that knows nothing.
    pub fn new() -> TestHost {
        TestHost::default()
    }

    /// The call's time.
    #[must_use]
    pub fn now_ms(mut self, now_ms: u64) -> TestHost {
        self.now_ms = now_ms;
        self
    }

    /// Moves the time between passes.
    pub fn set_now_ms(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
    }

    /// The call's attempt.
    #[must_use]
    pub fn attempt(mut self, attempt: u32) -> TestHost {
        self.attempt = attempt;
        self
    }

    /// The provider's configuration.
    #[must_use]
    pub fn configuration(mut self, configuration: Value) -> TestHost {
        self.configuration = configuration;
        self
    }

    /// One more object of a role.
    #[must_use]
    pub fn related(mut self, role: &str, object: Value) -> TestHost {
        self.related.entry(role.to_owned()).or_default().push(object);
        self
    }

    /// Replaces the objects of a role between passes.
    pub fn set_related(&mut self, role: &str, objects: Vec<Value>) {
        self.related.insert(role.to_owned(), objects);
    }

    /// How an operation of the previous pass ended.
    #[must_use]
    pub fn result(self, key: &str, result: Result<(), Refused>) -> TestHost {
        self.results.borrow_mut().push((key.to_owned(), result));
        self
    }

    /// One more object in an API server.
    #[must_use]
    pub fn object(self, place: Place, object: Value) -> TestHost {
        self.put(place, object);
        self
    }

    /// Adds or replaces an object between passes.
    pub fn put(&self, place: Place, object: Value) {
        self.take(place, &object);
        self.objects.borrow_mut().push((place, object));
    }

    /// Removes an object between passes.
    pub fn remove(&self, place: Place, target: &ObjectRef) {
        let namespace = self.namespace_of(place, target);
        self.objects.borrow_mut().retain(|(at, known)| *at != place || !is(known, target, &namespace));
    }

    /// All objects of an API server.
    pub fn objects(&self, place: Place) -> Vec<Value> {
        self.objects.borrow().iter().filter(|(at, _)| *at == place).map(|(_, object)| object.clone()).collect()
    }

    /// Makes every read of the workload cluster `unavailable`, or possible again.
    pub fn set_workload_down(&mut self, down: bool) {
        self.workload_down = down;
    }

    /// A key of a Secret.
    #[must_use]
    pub fn secret(mut self, name: &str, key: &str, value: impl Into<Vec<u8>>) -> TestHost {
        self.secrets.insert((name.to_owned(), key.to_owned()), value.into());
        self
    }

    /// A key of a Secret in another namespace; any other namespace is not granted.
    #[must_use]
    pub fn secret_in(mut self, namespace: &str, name: &str, key: &str, value: impl Into<Vec<u8>>) -> TestHost {
        self.secrets_elsewhere.insert((namespace.to_owned(), name.to_owned(), key.to_owned()), value.into());
        self
    }

    /// Replaces a key of a Secret between passes.
    pub fn set_secret(&mut self, name: &str, key: &str, value: impl Into<Vec<u8>>) {
        self.secrets.insert((name.to_owned(), key.to_owned()), value.into());
    }

    /// A key of the machine's bootstrap data.
    #[must_use]
    pub fn bootstrap_data(mut self, key: &str, value: impl Into<Vec<u8>>) -> TestHost {
        self.bootstrap_data.insert(key.to_owned(), value.into());
        self
    }

    /// What a port of a workload pod serves TLS with.
    #[must_use]
    pub fn serving_certificate(mut self, namespace: &str, pod: &str, port: u16, pem: &str) -> TestHost {
        self.serving_certificates.insert(format!("{namespace}/{pod}:{port}"), pem.to_owned());
        self
    }

    /// The members of etcd; none makes it unreachable, as it is at first. Removals and a moved leader change them.
    pub fn set_etcd(&self, members: Option<Vec<EtcdMember>>) {
        *self.etcd.borrow_mut() = members;
    }

    /// The members of etcd as they are now.
    pub fn etcd(&self) -> Option<Vec<EtcdMember>> {
        self.etcd.borrow().clone()
    }

    /// What etcd was asked to change: `remove 2a`, `move-leader 2a`, ids in hexadecimal.
    pub fn etcd_calls(&self) -> Vec<String> {
        self.etcd_calls.borrow().clone()
    }

    /// Who answers HTTP.
    #[must_use]
    pub fn http(self, handler: impl FnMut(&HttpRequest) -> Result<HttpResponse, Refused> + 'static) -> TestHost {
        *self.http.borrow_mut() = Some(Box::new(handler));
        self
    }

    /// Grants requests that do not verify who serves TLS.
    #[must_use]
    pub fn insecure_tls(mut self) -> TestHost {
        self.insecure_tls = true;
        self
    }

    /// Forgets the answers that are kept for [`HttpRequest::max_age`], as a host that starts anew.
    pub fn forget_recent(&self) {
        self.recent.borrow_mut().clear();
    }

    /// All requests so far that were sent; what a recent answer did for is not among them.
    pub fn requests(&self) -> Vec<HttpRequest> {
        self.requests.borrow().clone()
    }

    /// All reads so far.
    pub fn reads(&self) -> Vec<Read> {
        self.reads.borrow().clone()
    }

    /// All log lines so far.
    pub fn logs(&self) -> Vec<(Level, String)> {
        self.logs.borrow().clone()
    }

    fn take(&self, place: Place, like: &Value) {
        let same = |known: &Value| {
            ["/apiVersion", "/kind", "/metadata/namespace", "/metadata/name"]
                .iter()
                .all(|at| object::text(known, at) == object::text(like, at))
        };
        self.objects.borrow_mut().retain(|(at, known)| *at != place || !same(known));
    }

    fn namespace_of(&self, place: Place, target: &ObjectRef) -> String {
        target.namespace.clone().unwrap_or_else(|| match place {
            Place::Management => self.namespace.clone(),
            Place::Workload => String::new(),
        })
    }

    fn note(&self, place: Place, what: String) -> Result<(), Refused> {
        self.reads.borrow_mut().push(Read { place, what });
        if place == Place::Workload && self.workload_down {
            return Err(Refused::new(Refusal::Unavailable, "NotConnected", "the workload cluster cannot be reached"));
        }
        Ok(())
    }

    fn get(&self, place: Place, target: &ObjectRef) -> Result<Value, Refused> {
        let namespace = self.namespace_of(place, target);
        let what = format!("{}/{} {namespace}/{}", target.api_version, target.kind, target.name);
        self.note(place, format!("get {what}"))?;
        let objects = self.objects.borrow();
        let found = objects.iter().find(|(at, known)| *at == place && is(known, target, &namespace));
        found.map(|(_, object)| object.clone()).ok_or_else(|| Refused::not_found(format!("there is no {what}")))
    }

    fn list(&self, place: Place, of: &Selection) -> Result<Vec<Value>, Refused> {
        let Selection { api_version, kind, labels, .. } = of;
        let namespace = of.namespace.as_deref();
        self.note(place, format!("list {api_version}/{kind} {} {labels}", namespace.unwrap_or("-")))?;
        let selector = Selector::parse(labels)
            .map_err(|error| Refused::new(Refusal::Invalid, "BadSelector", error.to_string()))?;
        let wanted = namespace.or(match place {
            Place::Management => Some(self.namespace.as_str()),
            Place::Workload => None,
        });
        let objects = self.objects.borrow();
        let selected = objects.iter().filter(|(at, known)| {
            let at_home = object::namespace(known);
            *at == place
                && same_version(object::text(known, "/apiVersion"), api_version)
                && object::text(known, "/kind") == kind
                && wanted.is_none_or(|wanted| wanted == at_home || at_home.is_empty())
                && selector.matches_object(known)
        });
        Ok(selected.map(|(_, object)| object.clone()).collect())
    }

    /// Changes the members, unless etcd cannot be reached.
    fn change_etcd(&self, call: String, change: impl FnOnce(&mut Vec<EtcdMember>)) -> Result<(), Refused> {
        self.etcd_calls.borrow_mut().push(call);
        self.etcd.borrow_mut().as_mut().map(change).ok_or_else(etcd_down)
    }

    /// The latest kept answer to the very same request that is not too old.
    fn recent(&self, request: &HttpRequest) -> Option<HttpResponse> {
        let age = u64::try_from(request.max_age?.as_millis()).unwrap_or(u64::MAX);
        let wanted = without_times(request);
        let recent = self.recent.borrow();
        let fits = |(at, known, _): &&(u64, HttpRequest, HttpResponse)| {
            *known == wanted && age > 0 && self.now_ms.saturating_sub(*at) <= age
        };
        recent.iter().rev().find(fits).map(|(.., answer)| answer.clone())
    }

    fn next(&self) -> u64 {
        let mut serial = self.serial.borrow_mut();
        *serial += 1;
        *serial
    }
}

/// What makes two requests the same: everything but how long each may take, or be old.
fn without_times(request: &HttpRequest) -> HttpRequest {
    HttpRequest { deadline: None, max_age: None, ..request.clone() }
}

fn etcd_down() -> Refused {
    Refused::new(Refusal::Unavailable, "NotConnected", "etcd cannot be reached")
}

/// Whether an object is the one that a reference names; cluster-scoped objects have no namespace.
fn is(known: &Value, target: &ObjectRef, namespace: &str) -> bool {
    let at_home = object::namespace(known);
    same_version(object::text(known, "/apiVersion"), &target.api_version)
        && object::text(known, "/kind") == target.kind
        && object::name(known) == target.name
        && (at_home.is_empty() || at_home == namespace)
}

/// `group/` stands for any version of the group.
fn same_version(known: &str, wanted: &str) -> bool {
    known == wanted || (wanted.ends_with('/') && known.starts_with(wanted))
}

impl Host for TestHost {
    fn now_ms(&self) -> u64 {
        self.now_ms
    }

    fn attempt(&self) -> u32 {
        self.attempt
    }

    fn id(&self) -> String {
        "test".to_owned()
    }

    fn configuration(&self) -> Value {
        self.configuration.clone()
    }

    fn related(&self, role: &str) -> Vec<Value> {
        self.related.get(role).cloned().unwrap_or_default()
    }

    fn results(&self) -> Vec<(String, Result<(), Refused>)> {
        self.results.borrow().clone()
    }

    fn lookup(&self, target: &ObjectRef) -> Result<Value, Refused> {
        self.get(Place::Management, target)
    }

    fn lookup_list(&self, of: &Selection) -> Result<Vec<Value>, Refused> {
        self.list(Place::Management, of)
    }

    fn workload(&self, target: &ObjectRef) -> Result<Value, Refused> {
        self.get(Place::Workload, target)
    }

    fn workload_list(&self, of: &Selection) -> Result<Vec<Value>, Refused> {
        self.list(Place::Workload, of)
    }

    fn serving_certificate(&self, namespace: &str, pod: &str, port: u16) -> Result<String, Refused> {
        let at = format!("{namespace}/{pod}:{port}");
        self.note(Place::Workload, format!("serving certificate {at}"))?;
        self.serving_certificates
            .get(&at)
            .cloned()
            .ok_or_else(|| Refused::not_found(format!("nothing listens at {at}")))
    }

    fn etcd_members(&self) -> Result<Vec<EtcdMember>, Refused> {
        self.note(Place::Workload, "etcd members".to_owned())?;
        self.etcd().ok_or_else(etcd_down)
    }

    fn etcd_remove(&self, id: u64) -> Result<(), Refused> {
        self.change_etcd(format!("remove {id:x}"), |members| members.retain(|member| member.id != id))
    }

    fn etcd_move_leader(&self, to: u64) -> Result<(), Refused> {
        self.change_etcd(format!("move-leader {to:x}"), |members| {
            for member in members {
                member.leader = member.id == to;
            }
        })
    }

    fn secret(&self, name: &str, key: &str) -> Result<Vec<u8>, Refused> {
        self.reads.borrow_mut().push(Read { place: Place::Management, what: format!("secret {name} {key}") });
        let found = self.secrets.get(&(name.to_owned(), key.to_owned()));
        found.cloned().ok_or_else(|| Refused::not_found(format!("there is no key {key} in Secret {name}")))
    }

    fn secret_in(&self, namespace: &str, name: &str, key: &str) -> Result<Vec<u8>, Refused> {
        let what = format!("secret {namespace}/{name} {key}");
        self.reads.borrow_mut().push(Read { place: Place::Management, what });
        if namespace != self.namespace && !self.secrets_elsewhere.keys().any(|(granted, ..)| granted == namespace) {
            return Err(Refused::new(Refusal::Denied, "NotGranted", format!("namespace {namespace} is not granted")));
        }
        let own = || self.secrets.get(&(name.to_owned(), key.to_owned())).filter(|_| namespace == self.namespace);
        let elsewhere = self.secrets_elsewhere.get(&(namespace.to_owned(), name.to_owned(), key.to_owned()));
        let missing = || Refused::not_found(format!("there is no key {key} in Secret {namespace}/{name}"));
        elsewhere.or_else(own).cloned().ok_or_else(missing)
    }

    fn bootstrap_data(&self, key: &str) -> Result<Vec<u8>, Refused> {
        let found = self.bootstrap_data.get(key);
        found.cloned().ok_or_else(|| Refused::not_found("there is no bootstrap data yet"))
    }

    fn http(&self, request: &HttpRequest) -> Result<HttpResponse, Refused> {
        if request.insecure && !self.insecure_tls {
            return Err(Refused::new(Refusal::Denied, "NotGranted", "insecureTLS is not granted"));
        }
        if let Some(known) = self.recent(request) {
            return Ok(known);
        }
        self.requests.borrow_mut().push(request.clone());
        let answer = match self.http.borrow_mut().as_mut() {
            Some(handler) => handler(request)?,
            None => return Err(Refused::new(Refusal::Denied, "NotGranted", "the test has no HTTP handler")),
        };
        if request.max_age.is_some() && (200..300).contains(&answer.status) {
            self.recent.borrow_mut().push((self.now_ms, without_times(request), answer.clone()));
        }
        Ok(answer)
    }

    fn new_authority(&self, common_name: &str, algorithm: Algorithm, days: u32) -> Result<Pair, Refused> {
        Ok(fake_pair("authority", common_name, algorithm, self.now_ms, days, self.next()))
    }

    fn issue_client(
        &self,
        authority: &Pair,
        subject: &Subject,
        algorithm: Algorithm,
        days: u32,
    ) -> Result<Pair, Refused> {
        if !authority.certificate_pem.starts_with(BEGIN) {
            return Err(Refused::new(Refusal::Invalid, "BadAuthority", "the authority is not a certificate"));
        }
        let common_name = format!("{} O={}", subject.common_name, subject.organizations.join(","));
        Ok(fake_pair("client", &common_name, algorithm, self.now_ms, days, self.next()))
    }

    fn new_signing_key(&self, algorithm: Algorithm) -> Result<(String, String), Refused> {
        let serial = self.next();
        Ok((format!("fake public key {serial} {algorithm:?}\n"), format!("fake private key {serial} {algorithm:?}\n")))
    }

    fn public_key_hash(&self, certificate_pem: &str) -> Result<String, Refused> {
        if !certificate_pem.starts_with(BEGIN) {
            return Err(Refused::new(Refusal::Invalid, "BadCertificate", "this is not a certificate"));
        }
        let sum = certificate_pem
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Ok(format!("sha256:{}", format!("{sum:016x}").repeat(4)))
    }

    fn not_after_ms(&self, certificate_pem: &str) -> Result<u64, Refused> {
        certificate_pem
            .lines()
            .find_map(|line| line.strip_prefix("not-after-ms: "))
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| Refused::new(Refusal::Invalid, "BadCertificate", "this is not a certificate"))
    }

    fn random_token(&self, alphabet: &str, length: u32) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        let mut state = self.next().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (0..length)
            .filter_map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let index = usize::try_from(state >> 33).unwrap_or_default().checked_rem(letters.len())?;
                letters.get(index).copied()
            })
            .collect()
    }

    fn log(&self, level: Level, message: &str, _: &[(&str, &str)]) {
        self.logs.borrow_mut().push((level, message.to_owned()));
    }
}

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";

/// A pair that a test can recognise: readable, unique, with its end inside.
fn fake_pair(what: &str, common_name: &str, algorithm: Algorithm, now_ms: u64, days: u32, serial: u64) -> Pair {
    let not_after = now_ms + u64::from(days) * 86_400_000;
    Pair {
        certificate_pem: format!(
            "{BEGIN}\nfake {what} {serial} {algorithm:?}\nCN={common_name}\nnot-after-ms: {not_after}\n-----END CERTIFICATE-----\n"
        ),
        key_pem: format!("-----BEGIN PRIVATE KEY-----\nfake {what} {serial}\n-----END PRIVATE KEY-----\n"),
    }
}

/// Runs one role function against a host.
pub fn run<R>(
    host: &dyn Host,
    function: impl FnOnce(&mut Context<'_>) -> Result<R, Problem>,
) -> (Result<R, Problem>, Outcome) {
    let mut cx = Context::new(host);
    let result = function(&mut cx);
    (result, cx.out)
}

/// `InfrastructureCluster::provision`.
pub fn provision_cluster<T: InfrastructureCluster>(
    host: &dyn Host,
    object: &Value,
) -> (Result<ClusterAnswer, Problem>, Outcome) {
    run(host, |cx| T::provision(cx, object))
}

/// `InfrastructureCluster::deprovision`.
pub fn deprovision_cluster<T: InfrastructureCluster>(
    host: &dyn Host,
    object: &Value,
) -> (Result<bool, Problem>, Outcome) {
    run(host, |cx| T::deprovision(cx, object))
}

/// `InfrastructureMachine::provision`.
pub fn provision_machine<T: InfrastructureMachine>(
    host: &dyn Host,
    object: &Value,
) -> (Result<MachineAnswer, Problem>, Outcome) {
    run(host, |cx| T::provision(cx, object))
}

/// `InfrastructureMachine::deprovision`.
pub fn deprovision_machine<T: InfrastructureMachine>(
    host: &dyn Host,
    object: &Value,
) -> (Result<bool, Problem>, Outcome) {
    run(host, |cx| T::deprovision(cx, object))
}

/// `InfrastructureMachinePool::provision`.
pub fn provision_pool<T: InfrastructureMachinePool>(
    host: &dyn Host,
    object: &Value,
) -> (Result<PoolAnswer, Problem>, Outcome) {
    run(host, |cx| T::provision(cx, object))
}

/// `InfrastructureMachinePool::deprovision`.
pub fn deprovision_pool<T: InfrastructureMachinePool>(
    host: &dyn Host,
    object: &Value,
) -> (Result<bool, Problem>, Outcome) {
    run(host, |cx| T::deprovision(cx, object))
}

/// `Bootstrap::generate`.
pub fn generate<T: Bootstrap>(host: &dyn Host, object: &Value) -> (Result<Option<BootstrapData>, Problem>, Outcome) {
    run(host, |cx| T::generate(cx, object))
}

/// `Bootstrap::release`.
pub fn release<T: Bootstrap>(host: &dyn Host, object: &Value) -> (Result<bool, Problem>, Outcome) {
    run(host, |cx| T::release(cx, object))
}

/// `ControlPlane::reconcile`.
pub fn reconcile<T: ControlPlane>(host: &dyn Host, object: &Value) -> (Result<ControlPlaneAnswer, Problem>, Outcome) {
    run(host, |cx| T::reconcile(cx, object))
}

/// `ControlPlane::delete`.
pub fn delete<T: ControlPlane>(host: &dyn Host, object: &Value) -> (Result<bool, Problem>, Outcome) {
    run(host, |cx| T::delete(cx, object))
}

/// `Controller::reconcile`.
pub fn reconcile_object<T: Controller>(host: &dyn Host, object: &Value) -> (Result<(), Problem>, Outcome) {
    run(host, |cx| T::reconcile(cx, object))
}

/// `Controller::delete`.
pub fn delete_object<T: Controller>(host: &dyn Host, object: &Value) -> (Result<bool, Problem>, Outcome) {
    run(host, |cx| T::delete(cx, object))
}

#[cfg(test)]
mod tests;
