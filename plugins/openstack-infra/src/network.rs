//! Typed calls of Neutron: one set of functions for every kind of resource.
//!
//! Lists are filtered by the service. An answer of another shape is a [`Failure`], never an empty list.

mod find;
mod resources;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::answer;
use crate::cloud::{Cloud, Failure, Gone, Query, Service, encode};

pub use find::{NO_MATCH, named, one};
pub use resources::{
    AllocationPool, FixedIp, FloatingIp, GatewayInfo, Network, Port, Router, Rule, SecurityGroup, Subnet,
};

/// Neutron's extension for tags on networks, subnets, ports, routers, floating IPs and security groups.
const TAGS: &str = "standard-attr-tag";

/// A kind of resource of Neutron.
pub trait Resource: DeserializeOwned {
    /// In URLs: `security-groups`.
    const PATH: &'static str;
    /// The list in an answer: `security_groups`.
    const MANY: &'static str;
    /// The resource in a request or answer: `security_group`.
    const ONE: &'static str;
    /// In conditions and events: `security group`.
    const WHAT: &'static str;
}

/// All that match; `query` filters by exact values.
pub fn list<T: Resource>(cloud: &Cloud<'_>, query: &Query) -> Result<Vec<T>, Failure> {
    let found = cloud.list(Service::Network, &format!("/{}", T::PATH), T::MANY, query)?;
    found.into_iter().map(|one| answer::decode(cloud, Service::Network, one)).collect()
}

/// One by its id; none when there is none.
pub fn get<T: Resource>(cloud: &Cloud<'_>, id: &str) -> Result<Option<T>, Failure> {
    cloud.find(Service::Network, &path::<T>(id))?.map(|answer| unwrap(cloud, answer)).transpose()
}

/// Creates one; `fields` is what stands below its name in the request.
pub fn create<T: Resource>(cloud: &Cloud<'_>, fields: Value) -> Result<T, Failure> {
    unwrap(cloud, cloud.post(Service::Network, &format!("/{}", T::PATH), &wrap::<T>(fields))?)
}

/// Creates several in one request: all of them, or none.
pub fn create_all<T: Resource>(cloud: &Cloud<'_>, fields: Vec<Value>) -> Result<(), Failure> {
    cloud.post(Service::Network, &format!("/{}", T::PATH), &json!({ T::MANY: fields }))?;
    Ok(())
}

pub fn update<T: Resource>(cloud: &Cloud<'_>, id: &str, fields: Value) -> Result<T, Failure> {
    unwrap(cloud, cloud.put(Service::Network, &path::<T>(id), &wrap::<T>(fields))?)
}

/// Deletes one; what is gone already is a success.
pub fn delete<T: Resource>(cloud: &Cloud<'_>, id: &str) -> Result<Gone, Failure> {
    cloud.delete(Service::Network, &path::<T>(id))
}

/// Makes `tags` its tags, where this Neutron has tags at all.
pub fn set_tags<T: Resource>(cloud: &Cloud<'_>, id: &str, tags: &[String]) -> Result<(), Failure> {
    if !cloud.network_extension(TAGS)? {
        return Ok(());
    }
    cloud.put(Service::Network, &format!("{}/tags", path::<T>(id)), &json!({"tags": tags}))?;
    Ok(())
}

/// Gives a router an address in a subnet.
pub fn add_router_interface(cloud: &Cloud<'_>, router: &str, subnet: &str) -> Result<(), Failure> {
    router_interface(cloud, router, "add_router_interface", json!({"subnet_id": subnet}))
}

/// Takes a router's address in a subnet away.
pub fn remove_router_interface(cloud: &Cloud<'_>, router: &str, subnet: &str) -> Result<(), Failure> {
    router_interface(cloud, router, "remove_router_interface", json!({"subnet_id": subnet}))
}

fn router_interface(cloud: &Cloud<'_>, router: &str, act: &str, body: Value) -> Result<(), Failure> {
    cloud.put(Service::Network, &format!("/routers/{}/{act}", encode(router)), &body)?;
    Ok(())
}

/// Whether two lists have the same tags, in whatever order.
pub fn same_tags(one: &[String], other: &[String]) -> bool {
    one.iter().all(|tag| other.contains(tag)) && other.iter().all(|tag| one.contains(tag))
}

fn path<T: Resource>(id: &str) -> String {
    format!("/{}/{}", T::PATH, encode(id))
}

fn wrap<T: Resource>(fields: Value) -> Value {
    json!({ T::ONE: fields })
}

fn unwrap<T: Resource>(cloud: &Cloud<'_>, answer: Value) -> Result<T, Failure> {
    answer::decode_member(cloud, Service::Network, answer, T::ONE)
}
