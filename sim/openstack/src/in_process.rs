//! The services as a function from request to answer, without sockets, clock and background: for tests of what calls them.
//!
//! What takes time is done once it was looked at often enough ([`InProcess::set_patience`]), so that a test waits for nothing.
//! The tests' own part is what no client could bring about: resources with ids and fields of their choice, changes behind
//! everybody's back, services and extensions that are not there. Collections are called as in the APIs (`security_groups`,
//! `loadbalancers`), and Octavia's `lb_flavors` and `lb_zones` besides.
//!
//! ```
//! use capwasm_sim_openstack::InProcess;
//!
//! let cloud = InProcess::new("https://cloud.test", "project", "credential", "secret");
//! let network = cloud.add("networks", serde_json::json!({ "id": "n1", "name": "main" }));
//! assert_eq!(network.as_deref(), Some("n1"));
//! let request = http::Request::get("/networking/v2.0/networks").body(Default::default()).unwrap();
//! assert_eq!(cloud.answer(&request).unwrap().status(), 401);
//! ```

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use capwasm_sim_service::faults::Faults;
use http::{Method, Request, Response};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::cloud::{Cloud, Scope, State, new_id, now};
use super::front::{self, Front};
use super::journal::Journal;
use super::neutron::{self, NetworkKind};
use super::nova;
use super::octavia::Part;
use super::pace::{Looks, Pace};
use super::table::{Table, merge, text};

const TOKEN_LIFETIME: Duration = Duration::from_secs(60 * 60);

/// A simulated OpenStack of one project that is called as a function.
pub struct InProcess {
    front: Front,
    project: String,
}

impl InProcess {
    /// A cloud behind `origin` (`https://host`), empty but for a project with an application credential, the zones `az1` to
    /// `az3`, and volumes' default type. What takes time is done after one look.
    pub fn new(origin: &str, project: &str, credential: &str, secret: &str) -> InProcess {
        let mut state = State::default();
        state.identity.add_tenant(project, credential, secret);
        let zones = ["az1", "az2", "az3"].map(str::to_owned).to_vec();
        let pace = Pace::Looks(Looks::new(1));
        let cloud = Cloud::new(origin.to_owned(), pace, zones, TOKEN_LIFETIME, None, state);
        let front = Front { cloud, faults: Faults::default(), journal: Journal::default() };
        let made = InProcess { front, project: project.to_owned() };
        made.add("volume_types", json!({ "name": "__DEFAULT__" }));
        made
    }

    /// Answers a call, whose URI may be a path alone; `None` when a fault closes the connection instead. Delays of faults are
    /// not waited for.
    pub fn answer(&self, request: &Request<Bytes>) -> Option<Response<Bytes>> {
        let fault = self.front.judge(request);
        let answer = self.front.settle(request, fault)?;
        Some(front::response(answer, request.method() == Method::HEAD))
    }

    /// Failures that a test can request.
    pub fn faults(&self) -> &Faults {
        &self.front.faults
    }

    /// How often something is to be looked at from now on until it is done; without a look it is done with the call itself.
    pub fn set_patience(&self, looks: usize) {
        if let Pace::Looks(waits) = &self.front.cloud.pace {
            waits.set_patience(looks);
        }
    }

    /// Whether servers, load balancers and volumes end in an error from now on.
    pub fn set_breaks(&self, breaks: bool) {
        self.front.cloud.breaks.store(breaks, Ordering::Relaxed);
    }

    /// When tokens are issued from now on, in seconds since 1970.
    pub fn set_now(&self, seconds: i64) {
        let now = Timestamp::from_second(seconds).ok();
        self.with(|state| state.identity.clock = now);
    }

    /// Refuses every token that was given out so far.
    pub fn revoke_tokens(&self) {
        self.with(|state| state.identity.revoke_all());
    }

    /// Makes the project's credential an administrator's.
    pub fn make_administrator(&self) {
        self.with(|state| {
            let of_project = |user: &&Value| user["default_project_id"] == self.project.as_str();
            let user = state.identity.users.iter().find(of_project).map(|user| text(user, "id").to_owned());
            if let Some(user) = user {
                state.identity.grant(&user, &self.project, "admin");
            }
        });
    }

    /// Takes services of a type (`load-balancer`) out of the catalog.
    pub fn without_service(&self, kind: &str) {
        self.with(|state| state.identity.absent.insert(kind.to_owned()));
    }

    /// Takes an extension out of Neutron.
    pub fn without_extension(&self, alias: &str) {
        self.with(|state| state.networking.absent.insert(alias.to_owned()));
    }

    /// How many the project may have of a collection; false when it has no quota.
    pub fn set_quota(&self, collection: &str, most: i64) -> bool {
        let project = &self.project;
        self.with(|state| {
            match (collection, NetworkKind::of(collection), Part::of(collection)) {
                ("servers", ..) => state.compute.quotas.set(project, "instances", most),
                ("volumes", ..) => state.volumes.quotas.set(project, "volumes", most),
                (_, Some(kind), _) => state.networking.quotas.set(project, kind.quota(), most),
                (_, _, Some(part)) => state.balancing.quotas.set(project, part.quota(), most),
                _ => return false,
            }
            true
        })
    }

    /// Everything in a collection, in the order in which it was made, as it is kept: fields that begin with `_` are never shown.
    pub fn all(&self, collection: &str) -> Vec<Value> {
        self.with(|state| table(state, collection).map(|table| table.iter().cloned().collect()).unwrap_or_default())
    }

    /// Adds a resource as it stands, of the project unless it names another; its id. Images, flavors, servers, networks and subnets get
    /// what theirs have from the start. `None` when there is no such collection, or Neutron refuses it.
    pub fn add(&self, collection: &str, mut resource: Value) -> Option<String> {
        if !resource["id"].is_string() {
            resource["id"] = json!(new_id());
        }
        if resource.get("project_id").is_none() {
            resource["project_id"] = json!(self.project);
        }
        let project = resource["project_id"].as_str().unwrap_or_default().to_owned();
        let id = resource["id"].as_str().map(str::to_owned);
        let scope = Scope { user: String::new(), project: project.clone(), admin: true };
        let fields = |resource: &Value| resource.as_object().cloned().unwrap_or_else(Map::new);
        self.with(|state| match collection {
            "flavors" => Some(nova::add_flavor(state, &resource)),
            "images" => {
                let id = state.images.add(&project, &resource);
                state.images.upload(&id, 1 << 16);
                Some(id)
            }
            "networks" => neutron::create_network(&mut state.networking, &project, &fields(&resource)).ok(),
            "subnets" => {
                let is_v6 = resource["cidr"].as_str().is_some_and(|cidr| cidr.contains(':'));
                resource["ip_version"] = json!(if is_v6 { 6 } else { 4 });
                neutron::create_subnet(&mut state.networking, &scope, &project, &fields(&resource)).ok()
            }
            "servers" => {
                let mut made = json!({ "created": now(), "updated": now(), "metadata": {}, "tags": [], "_ports": [] });
                merge(&mut made, fields(&resource));
                state.compute.servers.insert(made);
                id
            }
            _ => {
                table(state, collection)?.insert(resource);
                id
            }
        })
    }

    /// Changes a resource behind everybody's back (JSON merge patch); false when it is not there.
    pub fn change(&self, collection: &str, id: &str, patch: &Value) -> bool {
        self.with(|state| {
            let found = table(state, collection).and_then(|table| table.get_mut(id));
            found.map(|found| json_patch::merge(found, patch)).is_some()
        })
    }

    /// Removes a resource behind everybody's back; false when it is not there.
    pub fn remove(&self, collection: &str, id: &str) -> bool {
        self.with(|state| table(state, collection).and_then(|table| table.remove(id)).is_some())
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        self.front.cloud.with(act)
    }
}

fn table<'a>(state: &'a mut State, collection: &str) -> Option<&'a mut Table> {
    Some(match collection {
        "flavors" => &mut state.compute.flavors,
        "servers" => &mut state.compute.servers,
        "server_groups" => &mut state.compute.groups,
        "images" => &mut state.images.images,
        "lb_flavors" => &mut state.balancing.flavors,
        "lb_zones" => &mut state.balancing.zones,
        "volumes" => &mut state.volumes.volumes,
        "volume_types" => &mut state.volumes.types,
        "snapshots" => &mut state.volumes.snapshots,
        "attachments" => &mut state.volumes.attachments,
        _ => match (NetworkKind::of(collection), Part::of(collection)) {
            (Some(kind), _) => state.networking.table_mut(kind),
            (_, Some(part)) => state.balancing.table_mut(part),
            _ => return None,
        },
    })
}
