//! Typed calls of Octavia: load balancers with their listeners, pools, health monitors and members.
//!
//! Octavia takes one change of a load balancer at a time: while it is not `ACTIVE` everything answers 409.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::answer::{self, nullable};
use crate::cloud::{Cloud, Failure, Gone, Query, Service, encode};

/// Provisioning status of something that can be used and changed.
pub const ACTIVE: &str = "ACTIVE";
/// Provisioning status of something that a person has to look at.
pub const ERROR: &str = "ERROR";
/// Provisioning status on the way out.
pub const PENDING_DELETE: &str = "PENDING_DELETE";
/// The provider that works without virtual machines of its own.
pub const OVN: &str = "ovn";

/// A kind of resource of Octavia.
pub trait Resource: DeserializeOwned {
    /// Below `/lbaas/`, and the list in an answer: `loadbalancers`.
    const MANY: &'static str;
    /// The resource in a request or answer: `loadbalancer`.
    const ONE: &'static str;
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the names are Octavia's")]
pub struct LoadBalancer {
    pub id: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub provisioning_status: String,
    #[serde(default, deserialize_with = "nullable")]
    pub vip_address: String,
    #[serde(default, deserialize_with = "nullable")]
    pub vip_port_id: String,
    #[serde(default, deserialize_with = "nullable")]
    pub provider: String,
    #[serde(default, deserialize_with = "nullable")]
    pub tags: Vec<String>,
}

/// A port of a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the names are Octavia's")]
pub struct Listener {
    pub id: String,
    #[serde(default)]
    pub name: String,
    #[serde(default, deserialize_with = "nullable")]
    pub allowed_cidrs: Vec<String>,
}

/// The servers behind a listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the names are Octavia's")]
pub struct Pool {
    pub id: String,
    #[serde(default)]
    pub name: String,
}

/// How a pool finds out which of its members work; times in seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the names are Octavia's")]
pub struct Monitor {
    pub id: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub delay: u32,
    #[serde(default)]
    pub timeout: u32,
    #[serde(default)]
    pub max_retries: u32,
    #[serde(default)]
    pub max_retries_down: u32,
}

/// A server in a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the names are Octavia's")]
pub struct Member {
    #[serde(default)]
    pub id: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub address: String,
    #[serde(default)]
    pub protocol_port: u16,
    #[serde(default)]
    pub provisioning_status: String,
}

/// All of this project with exactly this name.
pub fn named<T: Resource>(cloud: &Cloud<'_>, name: &str) -> Result<Vec<T>, Failure> {
    list::<T>(cloud, &Query::new().with("name", name).with("project_id", cloud.project_id()))
}

pub fn list<T: Resource>(cloud: &Cloud<'_>, query: &Query) -> Result<Vec<T>, Failure> {
    let found = cloud.list(Service::LoadBalancer, &format!("/lbaas/{}", T::MANY), T::MANY, query)?;
    found.into_iter().map(|one| answer::decode(cloud, Service::LoadBalancer, one)).collect()
}

/// One by its id; none when there is none.
pub fn get<T: Resource>(cloud: &Cloud<'_>, id: &str) -> Result<Option<T>, Failure> {
    cloud.find(Service::LoadBalancer, &path::<T>(id))?.map(|answer| unwrap(cloud, answer)).transpose()
}

/// Creates one; `fields` is what stands below its name in the request.
pub fn create<T: Resource>(cloud: &Cloud<'_>, fields: Value) -> Result<T, Failure> {
    unwrap(cloud, cloud.post(Service::LoadBalancer, &format!("/lbaas/{}", T::MANY), &json!({ T::ONE: fields }))?)
}

pub fn update<T: Resource>(cloud: &Cloud<'_>, id: &str, fields: Value) -> Result<T, Failure> {
    unwrap(cloud, cloud.put(Service::LoadBalancer, &path::<T>(id), &json!({ T::ONE: fields }))?)
}

/// Deletes a load balancer with everything that belongs to it; it goes some time after the answer.
pub fn delete_with_all(cloud: &Cloud<'_>, id: &str) -> Result<Gone, Failure> {
    cloud.delete(Service::LoadBalancer, &format!("{}?cascade=true", path::<LoadBalancer>(id)))
}

pub fn members(cloud: &Cloud<'_>, pool: &str) -> Result<Vec<Member>, Failure> {
    let at = format!("{}/members", path::<Pool>(pool));
    cloud
        .list(Service::LoadBalancer, &at, "members", &Query::new())?
        .into_iter()
        .map(|one| answer::decode(cloud, Service::LoadBalancer, one))
        .collect()
}

/// Makes `members` the members of a pool, all at once: what is not among them goes.
pub fn set_members(cloud: &Cloud<'_>, pool: &str, members: &[Value]) -> Result<(), Failure> {
    cloud.put(Service::LoadBalancer, &format!("{}/members", path::<Pool>(pool)), &json!({"members": members}))?;
    Ok(())
}

/// Names of the enabled providers.
pub fn providers(cloud: &Cloud<'_>) -> Result<Vec<String>, Failure> {
    let found = cloud.list(Service::LoadBalancer, "/lbaas/providers", "providers", &Query::new())?;
    Ok(found.iter().filter_map(|provider| provider.get("name")?.as_str().map(str::to_owned)).collect())
}

/// Id of the enabled flavor with this name.
pub fn flavor(cloud: &Cloud<'_>, name: &str) -> Result<Option<String>, Failure> {
    let found = cloud.list(Service::LoadBalancer, "/lbaas/flavors", "flavors", &Query::new().with("name", name))?;
    let usable = found.iter().find(|flavor| {
        flavor.get("name").and_then(Value::as_str) == Some(name)
            && flavor.get("enabled").and_then(Value::as_bool) != Some(false)
    });
    Ok(usable.and_then(|flavor| flavor.get("id")?.as_str().map(str::to_owned)))
}

fn path<T: Resource>(id: &str) -> String {
    format!("/lbaas/{}/{}", T::MANY, encode(id))
}

fn unwrap<T: Resource>(cloud: &Cloud<'_>, answer: Value) -> Result<T, Failure> {
    answer::decode_member(cloud, Service::LoadBalancer, answer, T::ONE)
}

macro_rules! resource {
    ($kind:ty, $many:literal, $one:literal) => {
        impl Resource for $kind {
            const MANY: &'static str = $many;
            const ONE: &'static str = $one;
        }
    };
}

resource!(LoadBalancer, "loadbalancers", "loadbalancer");
resource!(Listener, "listeners", "listener");
resource!(Pool, "pools", "pool");
resource!(Monitor, "healthmonitors", "healthmonitor");
