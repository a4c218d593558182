//! The router between the cluster's network and the external one.

use capwasm_sdk::{Context, Problem};
use serde_json::{Value, json};

use super::events::{self, Act};
use super::pass::{Pass, pick};
use super::status::RouterStatus;
use crate::cloud::Query;
use crate::network::{self, FixedIp, GatewayInfo, Port, Router, Subnet};
use crate::param::Param;

/// Brings the router nearer to what is wanted. There is none without an external network, unless one is named.
pub fn reconcile(cx: &mut Context<'_>, pass: &mut Pass<'_>) -> Result<(), Problem> {
    let named = pass.spec.router()?;
    let managed = !pass.spec.managed_subnets.is_empty();
    let external = pass.status.external_network.as_ref().map(|external| external.id.clone());
    let router = match (named, external) {
        // It is somebody else's: its gateway is left alone.
        (Some(param), _) => network::one::<Router>(&pass.cloud, &param, &Query::new())
            .map_err(|problem| problem.context("spec.router"))?,
        (None, Some(external)) if managed => {
            let mut router = made(cx, pass, &external)?;
            router.tags = pass.tag::<Router>(&router.id, &router.tags)?;
            router
        }
        _ => {
            pass.status.router = None;
            return Ok(());
        }
    };
    pass.status.router = Some(status(&router));
    if managed { interface(pass, &router.id) } else { Ok(()) }
}

fn made(cx: &mut Context<'_>, pass: &Pass<'_>, external: &str) -> Result<Router, Problem> {
    let name = pass.names.router();
    let addresses = addresses(pass)?;
    let known = pass.status.router.as_ref().map_or("", |router| router.id.as_str());
    let router = match pick(network::named::<Router>(&pass.cloud, &name)?, known, |one| &one.id) {
        Some(found) => found,
        None => {
            let mut fields = json!({"name": name, "description": pass.names.description(), "admin_state_up": true});
            // Many clouds let nobody choose the gateway's address while the router is made, but do afterwards.
            if addresses.is_empty() {
                fields["external_gateway_info"] = gateway(external, &[]);
            }
            let made = network::create::<Router>(&pass.cloud, fields)
                .map_err(|failure| events::failed(cx, Act::Create, events::ROUTER, &name, failure))?;
            events::done(cx, Act::Create, events::ROUTER, &name, &made.id);
            made
        }
    };
    if has_gateway(&router, external, &addresses) {
        return Ok(router);
    }
    let change = json!({"external_gateway_info": gateway(external, &addresses)});
    let changed = network::update::<Router>(&pass.cloud, &router.id, change)
        .map_err(|failure| events::failed(cx, Act::Update, events::ROUTER, &name, failure))?;
    events::done(cx, Act::Update, events::ROUTER, &name, &changed.id);
    Ok(changed)
}

/// `spec.externalRouterIPs` with the ids of their subnets; without an address any of the subnet will do.
fn addresses(pass: &Pass<'_>) -> Result<Vec<FixedIp>, Problem> {
    let mut addresses = Vec::new();
    for (index, wanted) in pass.spec.external_router_ips.iter().enumerate() {
        let path = format!("spec.externalRouterIPs[{index}].subnet");
        let subnet_id = match Param::read(&wanted.subnet, &path)? {
            Some(Param::Id(id)) => id,
            Some(param) => {
                let found = network::one::<Subnet>(&pass.cloud, &param, &Query::new());
                found.map_err(|problem| problem.context(&path))?.id
            }
            None => return Err(Problem::invalid("InvalidReference", format!("{path}: name a subnet"))),
        };
        addresses.push(FixedIp { subnet_id, ip_address: wanted.fixed_ip.clone() });
    }
    Ok(addresses)
}

fn gateway(external: &str, addresses: &[FixedIp]) -> Value {
    let mut gateway = json!({"network_id": external});
    if !addresses.is_empty() {
        let addresses = addresses.iter().map(|address| {
            if address.ip_address.is_empty() {
                json!({"subnet_id": address.subnet_id})
            } else {
                json!({"subnet_id": address.subnet_id, "ip_address": address.ip_address})
            }
        });
        gateway["external_fixed_ips"] = addresses.collect();
    }
    gateway
}

/// Whether a router's gateway is in the external network with at least the wanted addresses.
fn has_gateway(router: &Router, external: &str, addresses: &[FixedIp]) -> bool {
    router.external_gateway_info.as_ref().is_some_and(|gateway| {
        gateway.network_id == external
            && addresses.iter().all(|wanted| {
                gateway.external_fixed_ips.iter().any(|has| {
                    has.subnet_id == wanted.subnet_id
                        && (wanted.ip_address.is_empty() || has.ip_address == wanted.ip_address)
                })
            })
    })
}

/// The router has a port in the cluster's subnet.
fn interface(pass: &Pass<'_>, router: &str) -> Result<(), Problem> {
    let Some(subnet) = pass.status.network.as_ref().and_then(|network| network.subnets.first()) else { return Ok(()) };
    let ports = network::list::<Port>(&pass.cloud, &Query::new().with("device_id", router))?;
    if !ports.iter().any(|port| port.fixed_ips.iter().any(|address| address.subnet_id == subnet.id)) {
        network::add_router_interface(&pass.cloud, router, &subnet.id)
            .map_err(|failure| Problem::from(failure).context("unable to connect the router to the subnet"))?;
    }
    Ok(())
}

fn status(router: &Router) -> RouterStatus {
    let gateway: Option<&GatewayInfo> = router.external_gateway_info.as_ref();
    RouterStatus {
        id: router.id.clone(),
        name: router.name.clone(),
        tags: router.tags.clone(),
        ips: gateway.into_iter().flat_map(|info| &info.external_fixed_ips).map(|ip| ip.ip_address.clone()).collect(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn address(subnet: &str, ip: &str) -> FixedIp {
        FixedIp { subnet_id: subnet.to_owned(), ip_address: ip.to_owned() }
    }

    #[test]
    fn a_gateway_is_changed_only_where_it_is_not_as_wanted() {
        let router = |network: &str, ips: &[FixedIp]| Router {
            external_gateway_info: Some(GatewayInfo {
                network_id: network.to_owned(),
                external_fixed_ips: ips.to_vec(),
            }),
            ..Router::default()
        };
        let has = router("x", &[address("s", "1.1.1.1")]);
        let table = [
            ("as it came", &has, vec![], true),
            ("the wanted address", &has, vec![address("s", "1.1.1.1")], true),
            ("any address of the subnet", &has, vec![address("s", "")], true),
            ("another address", &has, vec![address("s", "1.1.1.2")], false),
            ("another subnet", &has, vec![address("t", "")], false),
            ("another network", &router("y", &[]), vec![], false),
            ("no gateway", &Router::default(), vec![], false),
        ];
        for (what, router, wanted, expected) in table {
            assert_eq!(has_gateway(router, "x", &wanted), expected, "{what}");
        }
    }

    #[test]
    fn a_gateway_names_addresses_only_where_they_are_wanted() {
        assert_eq!(gateway("x", &[]), json!({"network_id": "x"}));
        let expected = json!({
            "network_id": "x",
            "external_fixed_ips": [{"subnet_id": "s", "ip_address": "1.1.1.1"}, {"subnet_id": "t"}],
        });
        assert_eq!(gateway("x", &[address("s", "1.1.1.1"), address("t", "")]), expected);
    }
}
