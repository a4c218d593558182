//! A small OpenStack in memory for native tests: collections of JSON with the rules of the services that matter to this
//! provider, a log of calls, and faults at any call.
//!
//! What takes time (servers, load balancers, volumes) is done after it was read `patience` times, so that a test needs no
//! clock. Ids are readable: `network-1`, `server-7`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
#![allow(dead_code, reason = "a kit: not every test needs all of it")]

mod identity;
mod load_balancer;
mod neutron;
mod nova;
mod store;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::OnceLock;

use capwasm_sdk::api::descriptor::KindDescriptor;
use capwasm_sdk::test::TestHost;
use capwasm_sdk::{HttpRequest, HttpResponse, Refusal, Refused};
use serde_json::{Value, json};

use store::Store;

/// Where everything listens, each service below its own path.
pub const ORIGIN: &str = "https://cloud.test";
/// The project of the credentials.
pub const PROJECT: &str = "project-a";
/// The only region.
pub const REGION: &str = "RegionOne";
/// The external network that is there from the start.
pub const EXTERNAL_NETWORK: &str = "network-external";

const CLOUDS: &str = "clouds:
  openstack:
    auth:
      auth_url: https://cloud.test/identity
      application_credential_id: credential
      application_credential_secret: secret
    auth_type: v3applicationcredential
    region_name: RegionOne
";

/// One request to a service other than Keystone.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// `compute`, `network`, `image`, `load-balancer` or `volume`.
    pub service: String,
    /// `GET`, …
    pub method: String,
    /// Below the service's versioned root, with its query.
    pub path: String,
    /// `Null` without one.
    pub body: Value,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// What was answered; none when the answer was lost.
    pub status: Option<u16>,
}

/// What goes wrong with one call.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// Nothing is done, and this is the answer.
    Answer(u16, &'static str),
    /// Nothing is done, and nothing is answered.
    LostBefore,
    /// It is done, and nothing is answered: as a crash after the effect.
    LostAfter,
}

/// An answer of a service.
pub struct Answer {
    status: u16,
    body: Value,
}

impl Answer {
    fn new(status: u16, body: Value) -> Answer {
        Answer { status, body }
    }

    fn neutron(status: u16, kind: &str, message: &str) -> Answer {
        Answer::new(status, json!({"NeutronError": {"type": kind, "message": message, "detail": ""}}))
    }

    fn nova(status: u16, name: &str, message: &str) -> Answer {
        Answer::new(status, json!({ name: {"code": status, "message": message} }))
    }

    fn octavia(status: u16, message: &str) -> Answer {
        Answer::new(status, json!({"faultcode": "Client", "faultstring": message, "debuginfo": null}))
    }
}

/// The cloud. Clones are the same one.
#[derive(Clone, Default)]
pub struct OpenStack(Rc<RefCell<State>>);

struct State {
    store: Store,
    calls: Vec<Call>,
    /// Calls until each fault; 0 is the next call.
    faults: Vec<(usize, Fault)>,
    /// Tokens that are refused.
    revoked: Vec<String>,
    /// Tokens so far.
    tokens: usize,
    /// Seconds since 1970 when tokens are issued.
    now: u64,
}

impl Default for State {
    fn default() -> State {
        State {
            store: Store::seeded(),
            calls: Vec::new(),
            faults: Vec::new(),
            revoked: Vec::new(),
            tokens: 0,
            now: 1_700_000_000,
        }
    }
}

impl OpenStack {
    /// With an external network, three flavors, two images and three availability zones.
    pub fn new() -> OpenStack {
        OpenStack::default()
    }

    /// A host that reaches this cloud, and that has its credentials in the Secret `cloud-config`.
    pub fn host(&self) -> TestHost {
        self.behind(TestHost::new().secret("cloud-config", "clouds.yaml", CLOUDS))
    }

    /// `host`, reaching this cloud.
    pub fn behind(&self, host: TestHost) -> TestHost {
        let cloud = self.clone();
        host.http(move |request| cloud.0.borrow_mut().handle(request))
    }

    /// `spec.identityRef` for the Secret of [`OpenStack::host`].
    pub fn identity() -> Value {
        json!({"type": "Secret", "name": "cloud-config", "cloudName": "openstack"})
    }

    /// Its `clouds.yaml`.
    pub fn clouds() -> &'static str {
        CLOUDS
    }

    /// All calls so far.
    pub fn calls(&self) -> Vec<Call> {
        self.0.borrow().calls.clone()
    }

    /// `POST /networks` and so on: every call but reads.
    pub fn writes(&self) -> Vec<String> {
        let calls = self.calls().into_iter().filter(|call| call.method != "GET");
        calls.map(|call| format!("{} {}", call.method, call.path)).collect()
    }

    /// The bodies of such calls.
    pub fn bodies(&self, method: &str, path: &str) -> Vec<Value> {
        let calls = self.calls().into_iter().filter(|call| call.method == method && call.path == path);
        calls.map(|call| call.body).collect()
    }

    /// Forgets the calls so far.
    pub fn clear_calls(&self) {
        self.0.borrow_mut().calls.clear();
    }

    /// Lets the `nth` call from now (the next is 0) go wrong.
    pub fn fail(&self, nth: usize, fault: Fault) {
        self.0.borrow_mut().faults.push((nth, fault));
    }

    /// Takes back faults that have not come; says whether there were any.
    pub fn forget_faults(&self) -> bool {
        !std::mem::take(&mut self.0.borrow_mut().faults).is_empty()
    }

    /// Whether there are faults that have not come.
    pub fn is_faulty(&self) -> bool {
        !self.0.borrow().faults.is_empty()
    }

    /// Everything in a collection (`networks`, `security_groups`, `servers`, `loadbalancers`, `members`, …) in the order in
    /// which it was made.
    pub fn all(&self, collection: &str) -> Vec<Value> {
        self.0.borrow().store.all(collection).to_vec()
    }

    /// The only one of that name.
    pub fn named(&self, collection: &str, name: &str) -> Value {
        let found: Vec<Value> = self.all(collection).into_iter().filter(|item| item["name"] == name).collect();
        assert_eq!(found.len(), 1, "{collection} named {name}");
        found.into_iter().next().unwrap()
    }

    /// Adds something behind the provider's back; returns its id.
    pub fn add(&self, collection: &str, item: Value) -> String {
        self.0.borrow_mut().store.add(collection, item)
    }

    /// Changes something behind the provider's back (JSON merge patch).
    pub fn change(&self, collection: &str, id: &str, patch: &Value) {
        let mut state = self.0.borrow_mut();
        let item = state.store.get_mut(collection, id).expect("what should be changed");
        capwasm_sdk::object::merge(item, patch);
    }

    /// Removes something behind the provider's back.
    pub fn remove(&self, collection: &str, id: &str) {
        self.0.borrow_mut().store.take(collection, id);
    }

    /// How often something has to be read until it is done; 1 at first.
    pub fn set_patience(&self, reads: usize) {
        self.0.borrow_mut().store.patience = reads;
    }

    /// How many there may be in a collection.
    pub fn set_quota(&self, collection: &str, most: usize) {
        self.0.borrow_mut().store.quotas.insert(collection.to_owned(), most);
    }

    /// What servers and load balancers become instead of `ACTIVE`, volumes instead of `available`.
    pub fn set_outcome(&self, outcome: Option<&'static str>) {
        self.0.borrow_mut().store.outcome = outcome;
    }

    /// How many items a page of a list has.
    pub fn set_page(&self, items: usize) {
        self.0.borrow_mut().store.page = Some(items);
    }

    /// Takes a service out of the catalog.
    pub fn without(&self, service: &str) {
        self.0.borrow_mut().store.missing.push(service.to_owned());
    }

    /// Takes an extension out of Neutron.
    pub fn without_extension(&self, alias: &str) {
        self.0.borrow_mut().store.extensions.retain(|known| known != alias);
    }

    /// Refuses every token that was given out so far.
    pub fn revoke_tokens(&self) {
        let mut state = self.0.borrow_mut();
        let all = (1..=state.tokens).map(|number| format!("token-{number}")).collect();
        state.revoked = all;
    }

    /// How many tokens were given out.
    pub fn tokens(&self) -> usize {
        self.0.borrow().tokens
    }

    /// When tokens are issued from now on, in seconds since 1970.
    pub fn set_now(&self, seconds: u64) {
        self.0.borrow_mut().now = seconds;
    }
}

impl State {
    fn handle(&mut self, request: &HttpRequest) -> Result<HttpResponse, Refused> {
        let Some(path) = request.url.strip_prefix(ORIGIN) else {
            return Err(Refused::new(Refusal::Denied, "NotGranted", format!("{} is not granted", request.url)));
        };
        let body = if request.body.is_empty() { Value::Null } else { serde_json::from_slice(&request.body).unwrap() };
        if let Some(rest) = path.strip_prefix("/identity") {
            return Ok(self.keystone(&request.method, rest, &body));
        }
        let header =
            |name: &str| request.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let token = header("x-auth-token").unwrap_or_default();
        let (service, path) = route(path);
        let mut call = Call {
            service: service.to_owned(),
            method: request.method.clone(),
            path: path.to_owned(),
            body: body.clone(),
            headers: request.headers.clone(),
            status: None,
        };
        let fault = self.due();
        if fault == Some(Fault::LostBefore) {
            self.calls.push(call);
            return Err(lost());
        }
        let answer = match fault {
            Some(Fault::Answer(status, body)) => {
                self.calls.push(Call { status: Some(status), ..call });
                return Ok(HttpResponse { status, headers: Vec::new(), body: body.as_bytes().to_vec() });
            }
            _ if token.is_empty() || self.revoked.contains(&token) => {
                Answer::new(401, json!({"error": {"code": 401, "message": "Unauthorized", "title": "Unauthorized"}}))
            }
            _ => {
                let version = header("openstack-api-version");
                self.store.serve(service, &request.method, path, &body, version.as_deref())
            }
        };
        if fault == Some(Fault::LostAfter) {
            self.calls.push(call);
            return Err(lost());
        }
        call.status = Some(answer.status);
        self.calls.push(call);
        let body = if answer.body.is_null() { Vec::new() } else { answer.body.to_string().into_bytes() };
        Ok(HttpResponse { status: answer.status, headers: Vec::new(), body })
    }

    /// The fault of this call; the others come nearer.
    fn due(&mut self) -> Option<Fault> {
        let at = self.faults.iter().position(|(left, _)| *left == 0);
        let due = at.map(|at| self.faults.remove(at).1);
        for (left, _) in &mut self.faults {
            *left = left.saturating_sub(1);
        }
        due
    }
}

/// The service, and the path below its versioned root.
fn route(path: &str) -> (&str, &str) {
    for (service, root) in [
        ("compute", "/compute/v2.1"),
        ("network", "/network/v2.0"),
        ("image", "/image/v2"),
        ("load-balancer", "/load-balancer/v2"),
        ("volume", "/volume/v3/project-a"),
        ("load-balancer", "/load-balancer"),
    ] {
        if let Some(rest) = path.strip_prefix(root) {
            return (service, rest);
        }
    }
    ("none", path)
}

fn lost() -> Refused {
    Refused::new(Refusal::Unavailable, "ConnectionLost", "the connection was lost")
}

/// Everything in `spec` and `status` of an object is part of its definition: an API server drops what is not.
pub fn assert_declared(object: &Value) {
    static KINDS: OnceLock<Vec<KindDescriptor>> = OnceLock::new();
    let kinds = KINDS.get_or_init(|| crate::descriptor::describe().kinds);
    let kind = kinds.iter().find(|kind| object["kind"] == kind.kind.as_str()).expect("a kind of this provider");
    let versions = kind.crd["spec"]["versions"].as_array().unwrap();
    let version = versions.iter().find(|version| version["name"] == kind.version.as_str()).unwrap();
    for part in ["spec", "status"] {
        let schema = &version["schema"]["openAPIV3Schema"]["properties"][part];
        let unknown = unknown(schema, &object[part], part);
        assert!(unknown.is_empty(), "{}: {unknown:?}", kind.kind);
    }
}

/// Paths of `value` that the schema does not know, and fields that it wants and that are not there.
fn unknown(schema: &Value, value: &Value, at: &str) -> Vec<String> {
    match value {
        Value::Object(fields) => {
            let wanted = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            // What has a default is there as soon as it is written.
            let missing = wanted
                .filter(|name| !fields.contains_key(*name) && schema["properties"][*name].get("default").is_none())
                .map(|name| format!("{at}.{name} is missing"));
            let inner = fields.iter().flat_map(|(name, value)| {
                let known = schema.get("properties").and_then(|known| known.get(name));
                match known.or_else(|| schema.get("additionalProperties")) {
                    Some(known) => unknown(known, value, &format!("{at}.{name}")),
                    None => vec![format!("{at}.{name}")],
                }
            });
            missing.chain(inner).collect()
        }
        Value::Array(items) => {
            items.iter().flat_map(|item| unknown(&schema["items"], item, &format!("{at}[]"))).collect()
        }
        _ => Vec::new(),
    }
}
