//! Where the API server listens: behind a load balancer, at what was given, at a floating IP, or at a fixed address.

use capwasm_sdk::{Context, Endpoint, Problem};

use super::floating_ip::{self, Wanted};
use super::load_balancer;
use super::pass::Pass;
use super::spec::Spec;
use super::status::Status;

/// How the endpoint comes to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    LoadBalancer,
    Given,
    FloatingIp,
    FixedIp,
    None,
}

fn way(spec: &Spec) -> Way {
    if spec.load_balancer().is_some() {
        Way::LoadBalancer
    } else if !spec.control_plane_endpoint.host.is_empty() {
        Way::Given
    } else if !spec.disable_api_server_floating_ip {
        Way::FloatingIp
    } else if !spec.api_server_fixed_ip.is_empty() {
        Way::FixedIp
    } else {
        Way::None
    }
}

/// Makes what the API server is reached at: a load balancer, a floating IP, or nothing where an address is given.
pub fn reconcile(cx: &mut Context<'_>, pass: &mut Pass<'_>) -> Result<Endpoint, Problem> {
    match way(&pass.spec) {
        Way::LoadBalancer => {
            if let Some(spec) = pass.spec.load_balancer().cloned() {
                load_balancer::reconcile(cx, pass, &spec)?;
            }
        }
        Way::FloatingIp => {
            let given = Some(pass.spec.api_server_floating_ip.as_str()).filter(|address| !address.is_empty());
            let found = floating_ip::ensure(cx, pass, Wanted { port: None, address: given })?;
            return Ok(Endpoint { host: found.floating_ip_address, port: pass.spec.api_port() });
        }
        Way::Given | Way::FixedIp | Way::None => {}
    }
    known(&pass.spec, &pass.status).ok_or_else(|| {
        let message = "there is no endpoint: enable a load balancer or floating IP, or set apiServerFixedIP or controlPlaneEndpoint";
        Problem::invalid("NoEndpoint", message)
    })
}

/// The endpoint as it follows from spec and status alone. One that was given stays: machines and certificates name it.
pub fn known(spec: &Spec, status: &Status) -> Option<Endpoint> {
    let balancer = status.api_server_load_balancer.as_ref();
    let host = [
        Some(spec.control_plane_endpoint.host.as_str()),
        balancer.map(|balancer| balancer.ip.as_str()),
        balancer.map(|balancer| balancer.internal_ip.as_str()),
        Some(spec.api_server_fixed_ip.as_str()).filter(|_| spec.load_balancer().is_none()),
    ];
    let host = host.into_iter().flatten().find(|host| !host.is_empty())?;
    Some(Endpoint { host: host.to_owned(), port: spec.api_port() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::cluster::status::LoadBalancerStatus;
    use capwasm_sdk::object;
    use serde_json::{Value, json};

    fn spec(spec: Value) -> Spec {
        object::spec(&json!({"metadata": {"name": "c"}, "spec": spec})).unwrap()
    }

    #[test]
    fn a_load_balancer_comes_first_then_what_was_given_then_floating_then_fixed() {
        let table = [
            (
                json!({"apiServerLoadBalancer": {"enabled": true}, "controlPlaneEndpoint": {"host": "h"}}),
                Way::LoadBalancer,
            ),
            (json!({"controlPlaneEndpoint": {"host": "h", "port": 1}, "apiServerFixedIP": "f"}), Way::Given),
            (json!({"apiServerFixedIP": "10.0.0.1"}), Way::FloatingIp),
            (json!({"disableAPIServerFloatingIP": true, "apiServerFixedIP": "10.0.0.1"}), Way::FixedIp),
            (json!({"disableAPIServerFloatingIP": true}), Way::None),
        ];
        for (given, expected) in table {
            assert_eq!(way(&spec(given.clone())), expected, "{given}");
        }
    }

    #[test]
    fn the_host_is_what_was_given_then_the_floating_ip_then_the_balancers_own() {
        let balancer = |ip: &str| Status {
            api_server_load_balancer: Some(LoadBalancerStatus {
                ip: ip.to_owned(),
                internal_ip: "10.0.0.5".to_owned(),
                ..LoadBalancerStatus::default()
            }),
            ..Status::default()
        };
        let host = |given: Value, status: &Status| known(&spec(given), status).map(|endpoint| endpoint.host);
        let plain = json!({"apiServerLoadBalancer": {"enabled": true}});
        assert_eq!(host(plain.clone(), &balancer("1.1.1.1")).as_deref(), Some("1.1.1.1"));
        assert_eq!(host(plain.clone(), &balancer("")).as_deref(), Some("10.0.0.5"));
        assert_eq!(host(plain, &Status::default()), None);
        let given = json!({"controlPlaneEndpoint": {"host": "api.example.org", "port": 443}});
        assert_eq!(host(given, &balancer("1.1.1.1")).as_deref(), Some("api.example.org"));
    }
}
