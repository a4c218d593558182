//! The simulated OpenStack as this provider's host reaches it: no sockets and no clock, a log of calls, and faults at any call.
//!
//! What takes time (servers, load balancers, volumes) is done after it was read `patience` times.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

pub mod hostile;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::OnceLock;

use capwasm_sdk::descriptor::KindDescriptor;
use capwasm_sdk::test::TestHost;
use capwasm_sdk::{HttpRequest, HttpResponse, Refusal, Refused};
use capwasm_sim_openstack::InProcess;
use capwasm_sim_service::faults::{self, CallFault};
use serde_json::{Value, json};

/// Where everything listens, each service below its own path.
pub const ORIGIN: &str = "https://cloud.test";
/// The project of the credentials.
pub const PROJECT: &str = "project-a";
pub const REGION: &str = "RegionOne";

const CLOUDS: &str = "clouds:
  openstack:
    auth:
      auth_url: https://cloud.test/identity
      application_credential_id: credential
      application_credential_secret: secret
    auth_type: v3applicationcredential
    region_name: RegionOne
";

/// Where a service's paths begin, and what they are called in [`Call`].
const SERVICES: [(&str, &str); 6] = [
    ("compute", "/compute/v2.1"),
    ("network", "/networking/v2.0"),
    ("image", "/image/v2"),
    ("load-balancer", "/load-balancer/v2"),
    ("load-balancer", "/load-balancer"),
    ("volume", "/volume/v3"),
];

/// One request to a service other than Keystone.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// `compute`, `network`, `image`, `load-balancer` or `volume`.
    pub service: String,
    pub method: String,
    /// Below the service's versioned root, with its query.
    pub path: String,
    /// `Null` without one.
    pub body: Value,
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

/// The cloud. Clones are the same one.
#[derive(Clone)]
pub struct OpenStack(Rc<Shared>);

struct Shared {
    cloud: InProcess,
    log: RefCell<Log>,
}

#[derive(Default)]
struct Log {
    calls: Vec<Call>,
    /// Tokens that were given out.
    tokens: usize,
    /// How many items a page of a list has.
    page: Option<usize>,
}

impl OpenStack {
    /// With an external network, three flavors, two images and three availability zones.
    pub fn new() -> OpenStack {
        let cloud = InProcess::new(ORIGIN, PROJECT, "credential", "secret");
        cloud.set_now(1_700_000_000);
        let openstack = OpenStack(Rc::new(Shared { cloud, log: RefCell::default() }));
        let add = |collection: &str, item: Value| drop(openstack.add(collection, item));
        add(
            "networks",
            json!({"id": "network-external", "name": "public", "router:external": true, "project_id": "admin"}),
        );
        add(
            "subnets",
            json!({
                "id": "subnet-external", "name": "public-subnet", "network_id": "network-external", "cidr": "172.24.4.0/24",
                "project_id": "admin",
            }),
        );
        for (id, vcpus, ram, disk) in [("tiny", 1, 512, 1), ("small", 1, 2048, 20), ("medium", 2, 4096, 40)] {
            let name = format!("m1.{id}");
            add(
                "flavors",
                json!({"id": format!("flavor-{id}"), "name": name, "vcpus": vcpus, "ram": ram, "disk": disk}),
            );
        }
        for (id, tags) in [("node", json!(["kube", "v1.34"])), ("other", json!([]))] {
            let (id, name) = (format!("image-{id}"), format!("{id}-image"));
            add("images", json!({"id": id, "name": name, "tags": tags, "os_type": "linux"}));
        }
        add("volume_types", json!({"name": "fast"}));
        openstack
    }

    /// A host that reaches this cloud, and that has its credentials in the Secret `cloud-config`.
    pub fn host(&self) -> TestHost {
        self.behind(TestHost::new().secret("cloud-config", "clouds.yaml", CLOUDS))
    }

    /// `host` with this cloud behind its HTTP requests.
    pub fn behind(&self, host: TestHost) -> TestHost {
        let cloud = self.clone();
        host.http(move |request| cloud.handle(request))
    }

    /// `spec.identityRef` for the Secret of [`OpenStack::host`].
    pub fn identity() -> Value {
        json!({"type": "Secret", "name": "cloud-config", "cloudName": "openstack"})
    }

    pub fn clouds() -> &'static str {
        CLOUDS
    }

    pub fn calls(&self) -> Vec<Call> {
        self.0.log.borrow().calls.clone()
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
        self.0.log.borrow_mut().calls.clear();
    }

    /// Lets the `nth` call from now (the next is 0) go wrong.
    pub fn fail(&self, nth: usize, fault: Fault) {
        let fault = match fault {
            Fault::Answer(status, body) => CallFault { body: Some(body.to_owned()), ..CallFault::status(status) },
            Fault::LostBefore => CallFault::status(0),
            Fault::LostAfter => CallFault { takes_effect: true, ..CallFault::status(0) },
        };
        let after = u32::try_from(nth).ok();
        let fault = CallFault { spares: "/identity/*".to_owned(), after, count: Some(1), ..fault };
        self.0.cloud.faults().inject(faults::Fault::Call(fault));
    }

    /// Takes back faults that have not come; says whether there were any.
    pub fn forget_faults(&self) -> bool {
        let were_any = self.is_faulty();
        self.0.cloud.faults().lift_all();
        were_any
    }

    /// Whether there are faults that have not come.
    pub fn is_faulty(&self) -> bool {
        !self.0.cloud.faults().list().is_empty()
    }

    /// Everything in a collection (`networks`, `security_groups`, `servers`, `loadbalancers`, `members`, …) in the order in
    /// which it was made. What Neutron makes for itself is left out: the default security group, ports of its own.
    pub fn all(&self, collection: &str) -> Vec<Value> {
        let own =
            |item: &Value| collection == "flavors" || item["project_id"] == PROJECT || item["project_id"] == "admin";
        let groups = self.0.cloud.all("security_groups").into_iter();
        let default = groups.filter(|group| group["name"] == "default").map(|group| group["id"].clone()).next();
        let is_default = |item: &Value| {
            default.as_ref().is_some_and(|default| item["id"] == *default || item["security_group_id"] == *default)
        };
        self.0.cloud.all(collection).into_iter().filter(|item| own(item) && !is_default(item)).collect()
    }

    /// The only one of that name.
    pub fn named(&self, collection: &str, name: &str) -> Value {
        let found: Vec<Value> = self.all(collection).into_iter().filter(|item| item["name"] == name).collect();
        assert_eq!(found.len(), 1, "{collection} named {name}");
        found.into_iter().next().unwrap()
    }

    /// Adds something behind the provider's back; returns its id.
    pub fn add(&self, collection: &str, item: Value) -> String {
        self.0.cloud.add(collection, item).expect("something that can be added")
    }

    /// Changes something behind the provider's back (JSON merge patch).
    pub fn change(&self, collection: &str, id: &str, patch: &Value) {
        assert!(self.0.cloud.change(collection, id, patch), "{collection} has no {id}");
    }

    /// Removes something behind the provider's back.
    pub fn remove(&self, collection: &str, id: &str) {
        self.0.cloud.remove(collection, id);
    }

    /// How often something has to be read until it is done; 1 at first.
    pub fn set_patience(&self, reads: usize) {
        self.0.cloud.set_patience(reads);
    }

    /// How many there may be in a collection.
    pub fn set_quota(&self, collection: &str, most: i64) {
        assert!(self.0.cloud.set_quota(collection, most), "{collection} has no quota");
    }

    /// Whether servers, load balancers and volumes end in an error from now on.
    pub fn set_breaks(&self, breaks: bool) {
        self.0.cloud.set_breaks(breaks);
    }

    /// How many items a page of a list has.
    pub fn set_page(&self, items: usize) {
        self.0.log.borrow_mut().page = Some(items);
    }

    /// Makes the credentials an administrator's.
    pub fn make_administrator(&self) {
        self.0.cloud.make_administrator();
    }

    /// Takes a service out of the catalog.
    pub fn without(&self, service: &str) {
        self.0.cloud.without_service(service);
    }

    /// Takes an extension out of Neutron.
    pub fn without_extension(&self, alias: &str) {
        self.0.cloud.without_extension(alias);
    }

    /// Refuses every token that was given out so far.
    pub fn revoke_tokens(&self) {
        self.0.cloud.revoke_tokens();
    }

    /// How many tokens were given out.
    pub fn tokens(&self) -> usize {
        self.0.log.borrow().tokens
    }

    /// When tokens are issued from now on, in seconds since 1970.
    pub fn set_now(&self, seconds: u64) {
        self.0.cloud.set_now(i64::try_from(seconds).unwrap());
    }

    pub fn handle(&self, request: &HttpRequest) -> Result<HttpResponse, Refused> {
        let Some(path) = request.url.strip_prefix(ORIGIN) else {
            return Err(Refused::new(Refusal::Denied, "NotGranted", format!("{} is not granted", request.url)));
        };
        let page = self.0.log.borrow().page.filter(|_| request.method == "GET");
        let limited = page.map(|page| format!("{path}{}limit={page}", if path.contains('?') { '&' } else { '?' }));
        let mut asked =
            http::Request::builder().method(request.method.as_str()).uri(limited.as_deref().unwrap_or(path));
        for (name, value) in &request.headers {
            asked = asked.header(name, value);
        }
        let answer = self.0.cloud.answer(&asked.body(request.body.clone().into()).unwrap());
        let status = answer.as_ref().map(|answer| answer.status().as_u16());
        let mut log = self.0.log.borrow_mut();
        match SERVICES.iter().find_map(|(service, root)| Some((service, path.strip_prefix(root)?))) {
            Some((service, path)) => log.calls.push(Call {
                service: (*service).to_owned(),
                method: request.method.clone(),
                path: path.to_owned(),
                body: serde_json::from_slice(&request.body).unwrap_or_default(),
                headers: request.headers.clone(),
                status,
            }),
            None => log.tokens += usize::from(status == Some(201)),
        }
        let (parts, body) = answer.ok_or_else(lost)?.into_parts();
        let text = |value: &http::HeaderValue| value.to_str().unwrap_or_default().to_owned();
        let headers = parts.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
        // Nobody behind a proxy knows under which address he is known.
        let body = match page {
            Some(_) => String::from_utf8_lossy(&body).replace(ORIGIN, "http://internal:8080").into_bytes(),
            None => body.to_vec(),
        };
        Ok(HttpResponse { status: parts.status.as_u16(), headers, body })
    }
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
