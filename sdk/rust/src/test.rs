//! Test kit: a host for native tests, and helpers that play the host's part after a call.
//!
//! [`TestHost`] answers reads from objects and secrets that the test put there, sends HTTP to a closure, makes
//! recognisable fake keys, and records what it was asked. [`TestHost::carry_out`] applies an outcome to its objects, so
//! that a test can run pass after pass as the real host would.

mod answers;
mod call;
mod carry_out;
pub mod replay;

use std::cell::RefCell;
use std::collections::BTreeMap;

use capwasm_contract::{EtcdMember, HttpResponse, ObjectRef, Place, Refused};
use serde_json::{Value, json};

use crate::host::{HttpRequest, Level};
use crate::object;

pub use call::{
    delete, delete_object, deprovision_cluster, deprovision_machine, deprovision_pool, generate, provision_cluster,
    provision_machine, provision_pool, reconcile, reconcile_object, release, run,
};
pub use carry_out::write_back;

type Handler = Box<dyn FnMut(&HttpRequest) -> Result<HttpResponse, Refused>>;

/// One read that a provider made, as `TestHost::reads` tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The API server that was asked.
    pub place: Place,
    /// `get v1/Secret ns/name`, `list v1/Node - app=x` (`-` for no namespace), `secret name key`.
    pub what: String,
}

/// A host of canned answers that records what it was asked. Its builder methods have the names of what they answer; to ask as a
/// provider does, write `Host::related(&host, "machine")`.
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
    /// An empty host: nothing is there, the time is 2023-11-14T22:13:20Z, the object's namespace is `default`.
    pub fn new() -> TestHost {
        TestHost::default()
    }

    /// Sets the time of the call, in milliseconds since 1970.
    #[must_use]
    pub fn now_ms(mut self, now_ms: u64) -> TestHost {
        self.now_ms = now_ms;
        self
    }

    /// Changes the time between passes; milliseconds since 1970.
    pub fn set_now_ms(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
    }

    /// Sets the attempt, which is 1 without this.
    #[must_use]
    pub fn attempt(mut self, attempt: u32) -> TestHost {
        self.attempt = attempt;
        self
    }

    /// Sets the provider's configuration, which is `{}` without this.
    #[must_use]
    pub fn configuration(mut self, configuration: Value) -> TestHost {
        self.configuration = configuration;
        self
    }

    /// Adds an object to a role of [`Host::related`](crate::Host::related).
    #[must_use]
    pub fn related(mut self, role: &str, object: Value) -> TestHost {
        self.related.entry(role.to_owned()).or_default().push(object);
        self
    }

    /// Replaces the objects of a role between passes.
    pub fn set_related(&mut self, role: &str, objects: Vec<Value>) {
        self.related.insert(role.to_owned(), objects);
    }

    /// Adds how an operation of the previous pass ended, by its key; [`TestHost::carry_out`] replaces all of these.
    #[must_use]
    pub fn result(self, key: &str, result: Result<(), Refused>) -> TestHost {
        self.results.borrow_mut().push((key.to_owned(), result));
        self
    }

    /// Adds an object to an API server; one of the same kind and name is replaced.
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

    /// All objects of an API server, those of [`TestHost::carry_out`] among them.
    pub fn objects(&self, place: Place) -> Vec<Value> {
        self.objects.borrow().iter().filter(|(at, _)| *at == place).map(|(_, object)| object.clone()).collect()
    }

    /// Makes every read of the workload cluster `unavailable`, or possible again.
    pub fn set_workload_down(&mut self, down: bool) {
        self.workload_down = down;
    }

    /// Adds a key of a Secret in the object's namespace. Secrets that are read as objects are put there with
    /// [`TestHost::object`].
    #[must_use]
    pub fn secret(mut self, name: &str, key: &str, value: impl Into<Vec<u8>>) -> TestHost {
        self.secrets.insert((name.to_owned(), key.to_owned()), value.into());
        self
    }

    /// Adds a key of a Secret in another namespace, and grants that namespace.
    #[must_use]
    pub fn secret_in(mut self, namespace: &str, name: &str, key: &str, value: impl Into<Vec<u8>>) -> TestHost {
        self.secrets_elsewhere.insert((namespace.to_owned(), name.to_owned(), key.to_owned()), value.into());
        self
    }

    /// Replaces a key of a Secret between passes.
    pub fn set_secret(&mut self, name: &str, key: &str, value: impl Into<Vec<u8>>) {
        self.secrets.insert((name.to_owned(), key.to_owned()), value.into());
    }

    /// Adds a key of the machine's bootstrap data: `value`, `format`.
    #[must_use]
    pub fn bootstrap_data(mut self, key: &str, value: impl Into<Vec<u8>>) -> TestHost {
        self.bootstrap_data.insert(key.to_owned(), value.into());
        self
    }

    /// Sets the certificate (PEM) with which a port of a workload pod serves TLS.
    #[must_use]
    pub fn serving_certificate(mut self, namespace: &str, pod: &str, port: u16, pem: &str) -> TestHost {
        self.serving_certificates.insert(format!("{namespace}/{pod}:{port}"), pem.to_owned());
        self
    }

    /// Sets the members of etcd; `None` makes it unreachable, as it is at first. Removals and a moved leader change them.
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

    /// Sets who answers HTTP requests; without this they are denied.
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

    /// All requests that were sent; those that a kept answer did for are not among them.
    pub fn requests(&self) -> Vec<HttpRequest> {
        self.requests.borrow().clone()
    }

    /// All reads, in their order.
    pub fn reads(&self) -> Vec<Read> {
        self.reads.borrow().clone()
    }

    /// All log lines, in their order.
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

#[cfg(test)]
mod tests;
