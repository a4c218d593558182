//! The API server's load balancer, its listeners, pools and health monitors.
//!
//! Octavia takes one change at a time: after each, the pass goes on if the load balancer is `ACTIVE` at once, and otherwise
//! comes back. What is there already is found by its name.

use std::collections::BTreeSet;
use std::net::IpAddr;

use capwasm_api::names::fingerprint;
use capwasm_sdk::{Context, Problem};
use serde_json::{Map, Value, json};

use super::cidr;
use super::events::{self, Act};
use super::floating_ip::{self, Wanted};
use super::pass::{Pass, pause, pick};
use super::spec::{LoadBalancerSpec, MonitorSpec};
use super::status::{LoadBalancerStatus, NetworkStatus, Status};
use crate::cloud::Query;
use crate::load_balancer::{self, ACTIVE, ERROR, Listener, LoadBalancer, Monitor, OVN, PENDING_DELETE, Pool};
use crate::network::{self, Network, Subnet};
use crate::param::Param;

/// Key of the fingerprint of the floating IP.
const FLOATING_IP: &str = "floatingIP";
/// The version of Octavia's API from which listeners can have allowed CIDRs.
const ALLOWED_CIDRS_SINCE: &str = "2.12";
/// Listener, pool, monitor and two changes take five; more means that somebody works against us.
const MOST_STEPS: usize = 8;
/// Octavia's answer where a provider cannot do something.
const NOT_IMPLEMENTED: u16 = 501;

/// Finds the network and subnets of the load balancer's own address, where they are not the cluster's.
pub fn find_network(pass: &mut Pass<'_>) -> Result<(), Problem> {
    let Some(spec) = pass.spec.load_balancer() else { return Ok(()) };
    let at = "spec.apiServerLoadBalancer";
    let found = match Param::read(&spec.network, &format!("{at}.network"))? {
        None => None,
        Some(param) => {
            let network = network::one::<Network>(&pass.cloud, &param, &Query::new());
            let network = network.map_err(|problem| problem.context(format!("{at}.network")))?;
            let among = Query::new().with("network_id", &network.id);
            let mut subnets = Vec::new();
            for (index, value) in spec.subnets.iter().enumerate() {
                let path = format!("{at}.subnets[{index}]");
                let Some(param) = Param::read(value, &path)? else { continue };
                let subnet = network::one::<Subnet>(&pass.cloud, &param, &among);
                let subnet = subnet.map_err(|problem| problem.context(&path))?;
                if subnet.network_id != network.id {
                    let message = format!("{path} is not of the load balancer's network {}", network.id);
                    return Err(Problem::invalid("InvalidSubnets", message));
                }
                subnets.push(subnet);
            }
            Some(NetworkStatus::of(&network, &subnets))
        }
    };
    pass.status.api_server_load_balancer.get_or_insert_default().load_balancer_network = found;
    Ok(())
}

/// Brings the load balancer nearer to what is wanted; afterwards it is in the status, with its addresses.
pub fn reconcile(cx: &mut Context<'_>, pass: &mut Pass<'_>, spec: &LoadBalancerSpec) -> Result<(), Problem> {
    let name = pass.names.load_balancer();
    let known = pass.status.api_server_load_balancer.as_ref().map_or("", |known| known.id.as_str());
    let found = load_balancer::named::<LoadBalancer>(&pass.cloud, &name)?;
    let balancer = match pick(found, known, |one| &one.id) {
        Some(found) => found,
        None => create(cx, pass, spec, &name)?,
    };
    remember(&mut pass.status, &balancer);
    usable(cx, &balancer)?;
    if !pass.spec.disable_api_server_floating_ip {
        floating_ip(cx, pass, &balancer)?;
    }
    let cidrs = allowed_cidrs(cx, pass, spec, &balancer)?;
    for port in pass.spec.load_balancer_ports() {
        reconcile_port(cx, pass, spec, &balancer, port, cidrs.as_deref())?;
    }
    pass.status.api_server_load_balancer.get_or_insert_default().allowed_cidrs = cidrs;
    Ok(())
}

fn create(cx: &mut Context<'_>, pass: &Pass<'_>, spec: &LoadBalancerSpec, name: &str) -> Result<LoadBalancer, Problem> {
    let mut fields = fields(pass, spec)?;
    if !spec.provider.is_empty() {
        if load_balancer::providers(&pass.cloud)?.contains(&spec.provider) {
            fields.insert("provider".to_owned(), spec.provider.clone().into());
        } else {
            let message = format!("Octavia has no provider {}; its default is used", spec.provider);
            cx.out.warning("OctaviaProviderNotFound", message);
        }
    }
    if !spec.flavor.is_empty() {
        if let Some(id) = load_balancer::flavor(&pass.cloud, &spec.flavor)? {
            fields.insert("flavor_id".to_owned(), id.into());
        } else {
            let message = format!("Octavia has no enabled flavor {}; its default is used", spec.flavor);
            cx.out.warning("OctaviaFlavorNotFound", message);
        }
    }
    let made = load_balancer::create::<LoadBalancer>(&pass.cloud, Value::Object(fields))
        .map_err(|failure| events::failed(cx, Act::Create, events::LOAD_BALANCER, name, failure))?;
    events::done(cx, Act::Create, events::LOAD_BALANCER, name, &made.id);
    Ok(made)
}

fn fields(pass: &Pass<'_>, spec: &LoadBalancerSpec) -> Result<Map<String, Value>, Problem> {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    set("name", pass.names.load_balancer().into());
    set("description", pass.names.description().into());
    let known = pass.status.api_server_load_balancer.as_ref();
    match known.and_then(|known| known.load_balancer_network.as_ref()) {
        Some(network) => {
            set("vip_network_id", network.id.clone().into());
            if let Some(subnet) = network.subnets.first() {
                set("vip_subnet_id", subnet.id.clone().into());
            }
        }
        None => {
            let subnet = pass.status.network.as_ref().and_then(|network| network.subnets.first());
            let subnet = subnet.ok_or_else(|| Problem::transient("NoSubnet", "the cluster has no subnet yet"))?;
            set("vip_subnet_id", subnet.id.clone().into());
        }
    }
    if let Some(address) = vip_address(pass)? {
        set("vip_address", address.into());
    }
    if !spec.availability_zone.is_empty() {
        set("availability_zone", spec.availability_zone.clone().into());
    }
    if !pass.spec.tags.is_empty() {
        set("tags", json!(pass.spec.tags));
    }
    Ok(fields)
}

/// The address that the load balancer has to have in its own network.
fn vip_address(pass: &Pass<'_>) -> Result<Option<String>, Problem> {
    let before = pass.status.api_server_load_balancer.as_ref().map_or("", |known| known.internal_ip.as_str());
    for address in [before, pass.spec.api_server_fixed_ip.as_str()] {
        if !address.is_empty() {
            return Ok(Some(address.to_owned()));
        }
    }
    if pass.spec.disable_api_server_floating_ip { given_address(pass, "apiServerFixedIP") } else { Ok(None) }
}

/// The endpoint that the user gave, where it is an address. Names cannot be resolved here.
fn given_address(pass: &Pass<'_>, instead: &str) -> Result<Option<String>, Problem> {
    let host = pass.spec.control_plane_endpoint.host.as_str();
    if host.is_empty() || host.parse::<IpAddr>().is_ok() {
        return Ok(Some(host.to_owned()).filter(|host| !host.is_empty()));
    }
    let message = format!("spec.controlPlaneEndpoint.host is the name {host}: say its address in spec.{instead}");
    Err(Problem::invalid("EndpointIsName", message))
}

fn remember(status: &mut Status, balancer: &LoadBalancer) {
    let known = status.api_server_load_balancer.get_or_insert_default();
    known.id.clone_from(&balancer.id);
    known.name.clone_from(&balancer.name);
    known.internal_ip.clone_from(&balancer.vip_address);
    known.tags.clone_from(&balancer.tags);
}

/// Whether it can be changed now.
///
/// # Errors
/// Waiting while Octavia is at it; transient when a person has to look at it.
pub fn usable(cx: &Context<'_>, balancer: &LoadBalancer) -> Result<(), Problem> {
    match balancer.provisioning_status.as_str() {
        ACTIVE => Ok(()),
        ERROR => {
            let message = format!(
                "load balancer {} is in state ERROR: look into Octavia, fail it over or delete it",
                balancer.id
            );
            Err(Problem::transient("LoadBalancerError", message))
        }
        PENDING_DELETE => Err(pending(cx, balancer, "somebody deletes it")),
        state => Err(pending(cx, balancer, &format!("it is {state}"))),
    }
}

fn pending(cx: &Context<'_>, balancer: &LoadBalancer, why: &str) -> Problem {
    let message = format!("waiting for load balancer {}: {why}", balancer.name);
    Problem::waiting("LoadBalancerNotReady", message).retry_after(pause(cx.host.attempt()))
}

/// The address leads to the load balancer. While listeners and pools come one after the other it is looked at once.
fn floating_ip(cx: &mut Context<'_>, pass: &mut Pass<'_>, balancer: &LoadBalancer) -> Result<(), Problem> {
    let known = pass.status.api_server_load_balancer.as_ref().map_or("", |known| known.ip.as_str());
    let print = fingerprint(&json!([balancer.vip_port_id, pass.spec.api_server_floating_ip]).to_string());
    if !known.is_empty() && pass.status.is_applied(FLOATING_IP, &print) {
        return Ok(());
    }
    let given = [known, pass.spec.api_server_floating_ip.as_str()].into_iter().find(|address| !address.is_empty());
    let address = match given {
        Some(address) => Some(address.to_owned()),
        None => given_address(pass, "apiServerFloatingIP")?,
    };
    let wanted = Wanted { port: Some(&balancer.vip_port_id), address: address.as_deref() };
    let ip = floating_ip::ensure(cx, pass, wanted)?.floating_ip_address;
    pass.status.api_server_load_balancer.get_or_insert_default().ip = ip;
    pass.status.set_applied(FLOATING_IP, Some(print));
    Ok(())
}

/// The CIDRs that listeners should have; none where this Octavia cannot do that.
fn allowed_cidrs(
    cx: &mut Context<'_>,
    pass: &Pass<'_>,
    spec: &LoadBalancerSpec,
    balancer: &LoadBalancer,
) -> Result<Option<Vec<String>>, Problem> {
    let (cidrs, refused) = canonical_cidrs(spec, &pass.status);
    for text in refused {
        let message =
            format!("{text} is neither an IPv4 address nor a range of them, and is left out of the allowed CIDRs");
        cx.out.warning("FailedIPAddressValidation", message);
    }
    if balancer.provider == OVN {
        return Ok(None);
    }
    // Octavia's version only matters where something is to be allowed.
    if cidrs.is_empty() || pass.cloud.load_balancer_api_at_least(ALLOWED_CIDRS_SINCE)? {
        return Ok(Some(cidrs));
    }
    let message =
        format!("allowedCIDRs need Octavia's API {ALLOWED_CIDRS_SINCE} or later; anybody can reach the API server");
    cx.out.warning("AllowedCIDRsNotSupported", message);
    Ok(None)
}

/// What the user allows, and with it what the cluster itself needs; sorted, each once. And what is no range of IPv4.
pub fn canonical_cidrs(spec: &LoadBalancerSpec, status: &Status) -> (Vec<String>, Vec<String>) {
    if spec.allowed_cidrs.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let mut given: Vec<&str> = spec.allowed_cidrs.iter().map(String::as_str).collect();
    if let Some(bastion) = &status.bastion {
        given.extend(bastion.floating_ip.as_deref());
        given.extend(bastion.ip.as_deref());
    }
    given.extend(status.cidrs());
    given.extend(status.router.iter().flat_map(|router| &router.ips).map(String::as_str));
    given.retain(|text| !text.is_empty());
    let (mut cidrs, mut refused) = (BTreeSet::new(), Vec::new());
    for text in given {
        match cidr::parse(text).filter(cidr::is_ipv4) {
            Some(cidr) => {
                cidrs.insert(cidr.to_string());
            }
            None => refused.push(text.to_owned()),
        }
    }
    (cidrs.into_iter().collect(), refused)
}

/// What there is of one port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct View {
    listener: Option<Listener>,
    pool: Option<Pool>,
    monitor: Option<Monitor>,
    /// The provider cannot watch members.
    is_unwatched: bool,
}

/// What is to be done next about a port.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    CreateListener,
    CreatePool { listener: String },
    CreateMonitor { pool: String },
    ChangeMonitor { id: String, fields: Value },
    ChangeCidrs { listener: String },
    Done,
}

fn next(view: &View, monitor: &MonitorSpec, cidrs: Option<&[String]>) -> Step {
    let Some(listener) = &view.listener else { return Step::CreateListener };
    let Some(pool) = &view.pool else { return Step::CreatePool { listener: listener.id.clone() } };
    match &view.monitor {
        None if view.is_unwatched => {}
        None => return Step::CreateMonitor { pool: pool.id.clone() },
        Some(found) => {
            let wanted = monitor_fields(monitor);
            let has = MonitorSpec {
                delay: found.delay,
                timeout: found.timeout,
                max_retries: found.max_retries,
                max_retries_down: found.max_retries_down,
            };
            if has != *monitor {
                return Step::ChangeMonitor { id: found.id.clone(), fields: wanted };
            }
        }
    }
    let is_as_wanted = |cidrs: &[String]| {
        let has = &listener.allowed_cidrs;
        has.len() == cidrs.len() && cidrs.iter().all(|cidr| has.contains(cidr))
    };
    match cidrs {
        Some(cidrs) if !is_as_wanted(cidrs) => Step::ChangeCidrs { listener: listener.id.clone() },
        _ => Step::Done,
    }
}

fn monitor_fields(monitor: &MonitorSpec) -> Value {
    json!({
        "delay": monitor.delay, "timeout": monitor.timeout, "max_retries": monitor.max_retries,
        "max_retries_down": monitor.max_retries_down,
    })
}

fn reconcile_port(
    cx: &mut Context<'_>,
    pass: &Pass<'_>,
    spec: &LoadBalancerSpec,
    balancer: &LoadBalancer,
    port: u16,
    cidrs: Option<&[String]>,
) -> Result<(), Problem> {
    let name = pass.names.load_balancer_port(port);
    let cloud = &pass.cloud;
    let mut view = View {
        listener: load_balancer::named::<Listener>(cloud, &name)?.into_iter().next(),
        pool: load_balancer::named::<Pool>(cloud, &name)?.into_iter().next(),
        monitor: load_balancer::named::<Monitor>(cloud, &name)?.into_iter().next(),
        is_unwatched: false,
    };
    for _ in 0..MOST_STEPS {
        let step = next(&view, &spec.monitor, cidrs);
        if step == Step::Done {
            return Ok(());
        }
        take(cx, pass, &mut view, &step, &Port { name: &name, number: port, balancer, spec, cidrs })?;
        // Refused changes nothing, and so needs no wait.
        if !view.is_unwatched || !matches!(step, Step::CreateMonitor { .. }) {
            settle(cx, pass, &balancer.id)?;
        }
    }
    let message = format!("{name} does not stay as it was made; is somebody else changing it?");
    Err(Problem::transient("LoadBalancerUnstable", message))
}

/// A port of a load balancer.
struct Port<'p> {
    name: &'p str,
    number: u16,
    balancer: &'p LoadBalancer,
    spec: &'p LoadBalancerSpec,
    cidrs: Option<&'p [String]>,
}

fn take(cx: &mut Context<'_>, pass: &Pass<'_>, view: &mut View, step: &Step, port: &Port<'_>) -> Result<(), Problem> {
    let (cloud, name) = (&pass.cloud, port.name);
    let with_tags = |mut fields: Value| {
        if !pass.spec.tags.is_empty() {
            fields["tags"] = json!(pass.spec.tags);
        }
        fields
    };
    match step {
        Step::CreateListener => {
            let mut fields = with_tags(json!({
                "name": name, "protocol": "TCP", "protocol_port": port.number, "loadbalancer_id": port.balancer.id,
            }));
            if let Some(cidrs) = port.cidrs.filter(|cidrs| !cidrs.is_empty()) {
                fields["allowed_cidrs"] = json!(cidrs);
            }
            let made = load_balancer::create::<Listener>(cloud, fields)
                .map_err(|failure| events::failed(cx, Act::Create, events::LISTENER, name, failure))?;
            events::done(cx, Act::Create, events::LISTENER, name, &made.id);
            view.listener = Some(made);
        }
        Step::CreatePool { listener } => {
            // OVN balances by connection, and knows no other way.
            let method = if port.balancer.provider == OVN { "SOURCE_IP_PORT" } else { "ROUND_ROBIN" };
            let fields = with_tags(json!({
                "name": name, "protocol": "TCP", "lb_algorithm": method, "listener_id": listener,
            }));
            let made = load_balancer::create::<Pool>(cloud, fields)
                .map_err(|failure| events::failed(cx, Act::Create, events::POOL, name, failure))?;
            events::done(cx, Act::Create, events::POOL, name, &made.id);
            view.pool = Some(made);
        }
        Step::CreateMonitor { pool } => {
            let mut fields = monitor_fields(&port.spec.monitor);
            fields["name"] = name.into();
            fields["type"] = "TCP".into();
            fields["pool_id"] = pool.clone().into();
            match load_balancer::create::<Monitor>(cloud, fields) {
                Ok(made) => {
                    events::done(cx, Act::Create, events::MONITOR, name, &made.id);
                    view.monitor = Some(made);
                }
                Err(failure) if failure.status == Some(NOT_IMPLEMENTED) => {
                    let message = "the load balancer's provider cannot watch members, so there is no health monitor";
                    cx.out.warning("SkippedCreateMonitor", message);
                    view.is_unwatched = true;
                }
                Err(failure) => return Err(events::failed(cx, Act::Create, events::MONITOR, name, failure)),
            }
        }
        Step::ChangeMonitor { id, fields } => {
            let changed = load_balancer::update::<Monitor>(cloud, id, fields.clone())
                .map_err(|failure| events::failed(cx, Act::Update, events::MONITOR, name, failure))?;
            events::done(cx, Act::Update, events::MONITOR, name, id);
            view.monitor = Some(changed);
        }
        Step::ChangeCidrs { listener } => {
            let fields = json!({"allowed_cidrs": port.cidrs.unwrap_or_default()});
            let changed = load_balancer::update::<Listener>(cloud, listener, fields)
                .map_err(|failure| events::failed(cx, Act::Update, events::LISTENER, name, failure))?;
            events::done(cx, Act::Update, events::LISTENER, name, listener);
            view.listener = Some(changed);
        }
        Step::Done => {}
    }
    Ok(())
}

/// Looks at the load balancer after a change.
///
/// # Errors
/// Waiting when the change takes a while.
pub fn settle(cx: &Context<'_>, pass: &Pass<'_>, id: &str) -> Result<(), Problem> {
    let found = load_balancer::get::<LoadBalancer>(&pass.cloud, id)?;
    let found = found.ok_or_else(|| Problem::transient("LoadBalancerGone", "the load balancer was deleted"))?;
    usable(cx, &found)
}

/// The load balancer of the status, where there is one.
pub fn known(status: &Status) -> Option<&LoadBalancerStatus> {
    status.api_server_load_balancer.as_ref().filter(|known| !known.id.is_empty())
}

#[cfg(test)]
#[path = "load_balancer_tests.rs"]
mod tests;
