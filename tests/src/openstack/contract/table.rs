//! The requests, service by service: everything that the provider asks for, and how it may be refused.

mod compute;
mod identity;
mod load_balancers;
mod network;
mod ports;
mod quotas;
mod security_groups;
mod volumes;

use http::Method;
use serde_json::Value;

use super::{Step, Who};

const NOWHERE: &str = "00000000-0000-0000-0000-000000000000";
const N: &str = "network";
const C: &str = "compute";

fn step(name: &'static str, method: Method, service: &'static str, path: &str, body: Value, status: u16) -> Step {
    let path = path.to_owned();
    Step { name, method, service, path, body, status, who: Who::User, keep: Vec::new(), until: None, only: None }
}

fn get(name: &'static str, service: &'static str, path: &str) -> Step {
    step(name, Method::GET, service, path, Value::Null, 200)
}

fn post(name: &'static str, service: &'static str, path: &str, body: Value) -> Step {
    step(name, Method::POST, service, path, body, 201)
}

fn put(name: &'static str, service: &'static str, path: &str, body: Value) -> Step {
    step(name, Method::PUT, service, path, body, 200)
}

fn delete(name: &'static str, service: &'static str, path: &str) -> Step {
    step(name, Method::DELETE, service, path, Value::Null, 204)
}

pub(super) fn steps() -> Vec<Step> {
    let parts = [
        identity::identity(),
        network::network(),
        security_groups::security_groups(),
        network::routers(),
        ports::ports(),
        ports::floating_ips(),
        ports::trunks(),
        compute::images(),
        compute::flavors(),
        volumes::volumes(),
        compute::servers(),
        load_balancers::load_balancers(),
        quotas::quotas(),
        network::the_end(),
    ];
    parts.concat()
}
