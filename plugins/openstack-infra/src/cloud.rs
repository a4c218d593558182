//! One project of an OpenStack cloud in one region: Keystone's token, its catalog, and requests to the services in it.

mod catalog;
mod credentials;
mod entry;
mod failure;
mod microversion;
mod query;
mod session;
mod yaml;

#[cfg(test)]
mod tests;

pub use failure::Failure;
pub use microversion::Version;
pub use query::{Query, encode};

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use capwasm_object::bounded;
use capwasm_sdk::{Fault, Host, HttpRequest, HttpResponse, Problem};
use serde_json::Value;

use crate::identity::IdentityRef;
use entry::Entry;
use session::{Freshness, Session, Transport};

/// What Cinder is asked for: the oldest that knows attachments.
const VOLUME_VERSION: &str = "volume 3.27";
/// What Nova is asked for at least: the oldest version in which all of what is used is there.
const COMPUTE_VERSION: Version = Version { major: 2, minor: 38 };
/// How long discovery documents and lists of extensions are believed.
const DISCOVERY_AGE: Duration = Duration::from_secs(3_600);
/// More pages than any collection here has; Nova's and Cinder's are of a thousand items each.
const MOST_PAGES: usize = 100;
/// Longest query of a next page in bytes: the first one's, and the id of an item.
const LONGEST_QUERY: usize = 4 << 10;
/// What all answers of a pass may take in bytes: their bodies and the trees of them, some ten thousand servers. A pass has twice
/// as much memory, and time to read it.
const ROOM: usize = 32 << 20;

/// The services that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// Nova.
    Compute,
    /// Neutron.
    Network,
    /// Glance.
    Image,
    /// Octavia.
    LoadBalancer,
    /// Cinder.
    Volume,
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Service::Compute => "Nova",
            Service::Network => "Neutron",
            Service::Image => "Glance",
            Service::LoadBalancer => "Octavia",
            Service::Volume => "Cinder",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// The service accepted it, and may still be at it.
    Now,
    Already,
}

/// A project in a region, with a token.
pub struct Cloud<'a> {
    host: &'a dyn Host,
    entry: Entry,
    transport: Transport,
    /// Empty when the cloud names none.
    region: String,
    session: RefCell<Session>,
    /// Whether a refused token was replaced already.
    is_renewed: Cell<bool>,
    compute_version: Cell<Version>,
    /// What is left of [`ROOM`].
    room: Cell<usize>,
}

impl<'a> Cloud<'a> {
    /// Reads the identity's Secret and gets a token; a recent one will do. `namespace` is that of the object.
    ///
    /// # Errors
    /// Waiting, invalid or transient, with the reason for the condition `OpenStackAuthenticationSucceeded`.
    pub fn connect(host: &'a dyn Host, namespace: &str, identity: &IdentityRef) -> Result<Cloud<'a>, Problem> {
        let secret = credentials::read(host, namespace, identity)?;
        let entry = Entry::read(&secret.clouds, &identity.cloud_name)?;
        let transport = Transport { ca: secret.ca.or_else(|| entry.ca.clone()), insecure: !entry.verify };
        let region = identity.region.as_deref().unwrap_or(&entry.region);
        let session = Session::open(host, &entry, &transport, region, Freshness::Recent)?;
        Ok(Cloud {
            host,
            transport,
            region: session.region.clone(),
            session: RefCell::new(session),
            entry,
            is_renewed: Cell::new(false),
            compute_version: Cell::new(COMPUTE_VERSION),
            room: Cell::new(ROOM),
        })
    }

    pub fn project_id(&self) -> String {
        self.session.borrow().project.clone()
    }

    /// Empty when the cloud names none.
    pub fn region(&self) -> &str {
        &self.region
    }

    /// Whether the catalog has the service in this region.
    pub fn offers(&self, service: Service) -> bool {
        self.root(service).is_ok()
    }

    /// `path` below the service's versioned root: `/servers/ID`, `/networks?name=x`, `/lbaas/loadbalancers`.
    pub fn get(&self, service: Service, path: &str) -> Result<Value, Failure> {
        self.send("GET", service, path, None, None)
    }

    /// As [`Cloud::get`]; an answer that is not older than `age` will do.
    pub fn get_recent(&self, service: Service, path: &str, age: Duration) -> Result<Value, Failure> {
        self.send("GET", service, path, None, Some(age))
    }

    /// As [`Cloud::get_recent`]; none for 404.
    pub fn find_recent(&self, service: Service, path: &str, age: Duration) -> Result<Option<Value>, Failure> {
        none_if_missing(self.get_recent(service, path, age))
    }

    /// As [`Cloud::get`]; none for 404.
    pub fn find(&self, service: Service, path: &str) -> Result<Option<Value>, Failure> {
        none_if_missing(self.get(service, path))
    }

    /// All pages of a collection; `key` is the list's name in the answer.
    pub fn list(&self, service: Service, path: &str, key: &str, query: &Query) -> Result<Vec<Value>, Failure> {
        let (mut items, mut seen) = (Vec::new(), BTreeSet::new());
        let mut url = query.after(path);
        while seen.len() < MOST_PAGES {
            let mut answer = self.get(service, &url)?;
            match answer.get_mut(key).map(Value::take) {
                Some(Value::Array(page)) => items.extend(page),
                _ => return Err(self.garbled(service, format!("there is no list {key:?} at {path}"))),
            }
            let Some(next) = next_page(&answer, key) else { return Ok(items) };
            if next.len() > LONGEST_QUERY {
                return Err(self.garbled(service, format!("the link to the next page of {path} is too long")));
            }
            // Services behind a proxy do not know their own address: only the query counts.
            seen.insert(std::mem::replace(&mut url, format!("{path}?{next}")));
            if seen.contains(&url) {
                return Err(self.garbled(service, format!("a page of {path} leads back to one before it")));
            }
        }
        Err(self.garbled(service, format!("there are more than {MOST_PAGES} pages of {path}")))
    }

    /// Creates, or acts; `Null` where the service answers nothing.
    pub fn post(&self, service: Service, path: &str, body: &Value) -> Result<Value, Failure> {
        self.send("POST", service, path, Some(body), None)
    }

    pub fn put(&self, service: Service, path: &str, body: &Value) -> Result<Value, Failure> {
        self.send("PUT", service, path, Some(body), None)
    }

    /// Deletes; what is gone already is a success.
    pub fn delete(&self, service: Service, path: &str) -> Result<Gone, Failure> {
        match self.send("DELETE", service, path, None, None) {
            Ok(_) => Ok(Gone::Now),
            Err(failure) if failure.is_not_found() => Ok(Gone::Already),
            Err(failure) => Err(failure),
        }
    }

    /// From now on asks Nova for at least this microversion (`2.53`, `2.60`); 2.38 without it.
    ///
    /// # Errors
    /// Also when Nova does not go that far.
    pub fn with_compute_microversion(&self, minimum: &str) -> Result<(), Failure> {
        let wanted = Version::parse(minimum).unwrap_or(COMPUTE_VERSION);
        if wanted <= self.compute_version.get() {
            return Ok(());
        }
        let newest = self.newest(Service::Compute)?;
        if newest.is_none_or(|newest| newest < wanted) {
            let newest = newest.map_or_else(|| "none".to_owned(), |newest| newest.to_string());
            let message = format!("microversion {wanted} of Nova is needed; the newest here is {newest}");
            return Err(Failure::new("VersionNotSupported", Fault::Invalid, message));
        }
        self.compute_version.set(wanted);
        Ok(())
    }

    /// Whether Octavia's API is at least this version: `2.12`.
    pub fn load_balancer_api_at_least(&self, version: &str) -> Result<bool, Failure> {
        Ok(self.newest(Service::LoadBalancer)? >= Version::parse(version))
    }

    /// Whether Neutron has an extension; a recent answer will do.
    pub fn network_extension(&self, alias: &str) -> Result<bool, Failure> {
        let answer = self.get_recent(Service::Network, "/extensions", DISCOVERY_AGE)?;
        let extensions = answer.get("extensions").and_then(Value::as_array).into_iter().flatten();
        Ok(extensions.filter_map(|extension| extension.get("alias")?.as_str()).any(|known| known == alias))
    }

    /// The newest version in a service's discovery document: Nova's is at the version, Octavia's before it.
    fn newest(&self, service: Service) -> Result<Option<Version>, Failure> {
        let root = self.root(service)?;
        let (versioned, unversioned) = catalog::versioned_and_unversioned(&root);
        let url = format!("{}/", if service == Service::Compute { versioned } else { unversioned });
        let request = HttpRequest::new("GET", url).max_age(DISCOVERY_AGE);
        self.answered(service, request).map(|document| microversion::newest(&document))
    }

    /// An answer of a service, which is named with its host, makes no sense.
    pub fn garbled(&self, service: Service, why: impl fmt::Display) -> Failure {
        let root = self.root(service).unwrap_or_default();
        Failure::garbled(&format!("read the answer of {service} at {}", catalog::host(&root)), why)
    }

    fn root(&self, service: Service) -> Result<String, Failure> {
        let session = self.session.borrow();
        let found = self
            .entry
            .endpoint(service)
            .or_else(|| catalog::endpoint(&session.catalog, service, &self.region, &self.entry.interface));
        found.map(|endpoint| service.root(endpoint, &session.project)).ok_or_else(|| {
            let (kind, interface) = (service.types().first().copied().unwrap_or_default(), &self.entry.interface);
            let (keystone, region) = (&self.entry.auth_url, &self.region);
            let message = format!(
                "the catalog of Keystone at {keystone} has no {kind} service in region {region:?} (interface {interface})"
            );
            Failure::new("ServiceNotInCatalog", Fault::Invalid, message)
        })
    }

    fn send(
        &self,
        method: &str,
        service: Service,
        path: &str,
        body: Option<&Value>,
        age: Option<Duration>,
    ) -> Result<Value, Failure> {
        let mut request = HttpRequest::new(method, format!("{}{path}", self.root(service)?));
        request.max_age = age;
        self.answered(service, body.map_or_else(|| request.clone(), |body| request.clone().json(body)))
    }

    /// The answer's body. A token that is refused is replaced, once for all requests of the call.
    fn answered(&self, service: Service, request: HttpRequest) -> Result<Value, Failure> {
        let act = format!("{} {} of {service}", request.method, request.url);
        let mut response = self.exchange(service, &act, &request)?;
        if response.status == 401 && !self.is_renewed.replace(true) {
            let session = Session::open(self.host, &self.entry, &self.transport, &self.region, Freshness::New)?;
            *self.session.borrow_mut() = session;
            response = self.exchange(service, &act, &request)?;
        }
        let body = self.read(&act, &response);
        match (body, request.max_age) {
            // What was kept would be read again and again.
            (Err(failure), Some(age)) if failure.is_garbled() && !age.is_zero() => {
                let request = HttpRequest { max_age: Some(Duration::ZERO), ..request };
                self.read(&act, &self.exchange(service, &act, &request)?)
            }
            (body, _) => body,
        }
    }

    fn exchange(&self, service: Service, act: &str, request: &HttpRequest) -> Result<HttpResponse, Failure> {
        let mut request = self.transport.over(request.clone()).header("accept", "application/json");
        request = request.header("x-auth-token", self.session.borrow().token.clone());
        if service == Service::Compute {
            let version = self.compute_version.get();
            request = request.header("openstack-api-version", format!("compute {version}"));
            request = request.header("x-openstack-nova-api-version", version.to_string());
        }
        if service == Service::Volume {
            request = request.header("openstack-api-version", VOLUME_VERSION);
        }
        self.host.http(&request).map_err(|refused| Failure::unanswered(act, &request.url, &refused))
    }

    /// The body of a success; `Null` where there is none.
    fn read(&self, act: &str, response: &HttpResponse) -> Result<Value, Failure> {
        match response.status {
            200..300 if response.body.trim_ascii().is_empty() => Ok(Value::Null),
            // Octavia's root answers 300 where its versions are the answer.
            200..=300 => {
                let mut room = self.room.get();
                let body = read_within(act, &response.body, &mut room);
                self.room.set(room);
                body
            }
            _ => Err(Failure::rejected(act, response)),
        }
    }
}

/// A body as JSON, within `room` bytes, from which it and its tree are taken.
fn read_within(act: &str, body: &[u8], room: &mut usize) -> Result<Value, Failure> {
    let Some(rest) = room.checked_sub(body.len()) else { return Err(Failure::too_large(act)) };
    *room = rest;
    bounded::read_within(body, room).map_err(|why| match why {
        bounded::ReadError::TooLarge => Failure::too_large(act),
        bounded::ReadError::NotJson(why) => Failure::garbled(act, why),
    })
}

fn none_if_missing(answer: Result<Value, Failure>) -> Result<Option<Value>, Failure> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(failure) if failure.is_not_found() => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// The query of the next page: `<key>_links` with `rel: next`, or Glance's `next`.
fn next_page(answer: &Value, key: &str) -> Option<String> {
    let links = answer.get(format!("{key}_links")).and_then(Value::as_array).into_iter().flatten();
    let link =
        links.filter(|link| link.get("rel").and_then(Value::as_str) == Some("next")).find_map(|link| link.get("href"));
    let href = link.or_else(|| answer.get("next"))?.as_str()?;
    href.split_once('?').map(|(_, query)| query.to_owned())
}
