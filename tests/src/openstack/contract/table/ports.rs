//! Neutron: ports, floating IPs and trunks.

use serde_json::{Value, json};

use super::{N, NOWHERE, Step, delete, get, post, put};

pub(super) fn ports() -> Vec<Step> {
    let port = |more: Value| {
        let mut body = json!({"network_id": "<net>", "name": "contract-0", "description": "of a test"});
        body.as_object_mut().into_iter().for_each(|body| body.extend(more.as_object().cloned().unwrap_or_default()));
        json!({"port": body})
    };
    vec![
        post(
            "port",
            N,
            "/v2.0/ports",
            port(json!({
                "fixed_ips": [{"subnet_id": "<subnet>", "ip_address": "10.6.0.10"}], "security_groups": ["<group>"],
                "allowed_address_pairs": [{"ip_address": "10.6.0.200"}], "admin_state_up": true,
            })),
        )
        .keep("port", "/port/id"),
        post("port at an address in use", N, "/v2.0/ports", port(json!({"fixed_ips": [{"ip_address": "10.6.0.10"}]})))
            .is(409),
        post(
            "port outside of the subnet",
            N,
            "/v2.0/ports",
            port(json!({"fixed_ips": [{"subnet_id": "<subnet>", "ip_address": "10.99.0.10"}]})),
        )
        .is(400),
        post("port with a group that is not there", N, "/v2.0/ports", port(json!({"security_groups": [NOWHERE]})))
            .is(404),
        post("port of a network that is not there", N, "/v2.0/ports", port(json!({"network_id": NOWHERE}))).is(404),
        post(
            "port with groups but no security",
            N,
            "/v2.0/ports",
            port(json!({"port_security_enabled": false, "security_groups": ["<group>"]})),
        )
        .is(400),
        post(
            "port without security",
            N,
            "/v2.0/ports",
            port(json!({"name": "open", "port_security_enabled": false, "fixed_ips": [{"ip_address": "10.6.0.11"}]})),
        )
        .keep("open", "/port/id"),
        get("port by id", N, "/v2.0/ports/<port>"),
        get("ports by name", N, "/v2.0/ports?name=contract-0&network_id=<net>"),
        put(
            "port's address pairs",
            N,
            "/v2.0/ports/<port>",
            json!({"port": {"allowed_address_pairs": [{"ip_address": "10.6.0.201"}, {"ip_address": "10.6.1.0/24"}]}}),
        ),
        put("port's tags", N, "/v2.0/ports/<port>/tags", json!({"tags": ["capi"]})),
        get("port that is not there", N, &format!("/v2.0/ports/{NOWHERE}")).is(404),
        delete("group in use", N, "/v2.0/security-groups/<group>").is(409),
        delete("port without security away", N, "/v2.0/ports/<open>"),
        delete("port without security away again", N, "/v2.0/ports/<open>").is(404),
    ]
}

pub(super) fn floating_ips() -> Vec<Step> {
    vec![
        post(
            "floating IP",
            N,
            "/v2.0/floatingips",
            json!({"floatingip": {"floating_network_id": "<public>", "description": "of a test"}}),
        )
        .keep("floating", "/floatingip/id")
        .keep("address", "/floatingip/floating_ip_address"),
        post(
            "floating IP of an inner network",
            N,
            "/v2.0/floatingips",
            json!({"floatingip": {"floating_network_id": "<net>"}}),
        )
        .is(400),
        post(
            "floating IP of a network that is not there",
            N,
            "/v2.0/floatingips",
            json!({"floatingip": {"floating_network_id": NOWHERE}}),
        )
        .is(404),
        get("floating IPs by address", N, "/v2.0/floatingips?floating_ip_address=<address>"),
        get("floating IPs by port", N, "/v2.0/floatingips?port_id=<port>"),
        put("floating IP to a port", N, "/v2.0/floatingips/<floating>", json!({"floatingip": {"port_id": "<port>"}}))
            .only("/floatingip/fixed_ip_address"),
        get("floating IP at a port", N, "/v2.0/floatingips/<floating>").until("/floatingip/status", "ACTIVE"),
        get("floating IPs of the port", N, "/v2.0/floatingips?port_id=<port>"),
        put(
            "floating IP to a port that is not there",
            N,
            "/v2.0/floatingips/<floating>",
            json!({"floatingip": {"port_id": NOWHERE}}),
        )
        .is(404),
        put("interface in use", N, "/v2.0/routers/<router>/remove_router_interface", json!({"subnet_id": "<subnet>"}))
            .is(409),
        put("floating IP from its port", N, "/v2.0/floatingips/<floating>", json!({"floatingip": {"port_id": null}}))
            .only("/floatingip/port_id"),
        get("floating IP at no port", N, "/v2.0/floatingips/<floating>").until("/floatingip/status", "DOWN"),
        put("floating IP's tags", N, "/v2.0/floatingips/<floating>/tags", json!({"tags": ["capi"]})),
        delete("floating IP away", N, "/v2.0/floatingips/<floating>"),
        delete("floating IP away again", N, "/v2.0/floatingips/<floating>").is(404),
    ]
}

pub(super) fn trunks() -> Vec<Step> {
    vec![
        post(
            "trunk port",
            N,
            "/v2.0/ports",
            json!({"port": {"network_id": "<net>", "name": "trunk", "fixed_ips": [{"ip_address": "10.6.0.12"}]}}),
        )
        .keep("parent", "/port/id")
        .only("/port/name"),
        post(
            "trunk",
            N,
            "/v2.0/trunks",
            json!({"trunk": {"name": "contract", "port_id": "<parent>", "description": "of a test"}}),
        )
        .keep("trunk", "/trunk/id"),
        post("trunk of the same port", N, "/v2.0/trunks", json!({"trunk": {"port_id": "<parent>"}})).is(409),
        get("trunks by port", N, "/v2.0/trunks?port_id=<parent>"),
        put("trunk's tags", N, "/v2.0/trunks/<trunk>/tags", json!({"tags": ["capi"]})),
        delete("port of a trunk", N, "/v2.0/ports/<parent>").is(409),
        delete("trunk away", N, "/v2.0/trunks/<trunk>"),
        delete("trunk away again", N, "/v2.0/trunks/<trunk>").is(404),
        delete("trunk port away", N, "/v2.0/ports/<parent>"),
    ]
}
