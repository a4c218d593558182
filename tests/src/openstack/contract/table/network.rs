//! Neutron: networks, subnets and routers, and their deletion at the very end.

use serde_json::{Value, json};

use super::{N, NOWHERE, Step, delete, get, post, put};

pub(super) fn network() -> Vec<Step> {
    let id = "/v2.0/networks/<net>";
    let subnet = |more: Value| {
        let mut body = json!({"network_id": "<net>", "name": "contract", "ip_version": 4, "cidr": "10.6.0.0/24"});
        body.as_object_mut().into_iter().for_each(|body| body.extend(more.as_object().cloned().unwrap_or_default()));
        json!({"subnet": body})
    };
    vec![
        get("extension", N, "/v2.0/extensions/standard-attr-tag").only("/extension/alias"),
        get("extension that is not there", N, "/v2.0/extensions/no-such-thing").is(404),
        get("external networks", N, "/v2.0/networks?router%3Aexternal=true&name=public")
            .keep("public", "/networks/0/id")
            .only("/networks/0/name"),
        get("networks of a name that nobody has", N, "/v2.0/networks?name=nobody"),
        post("network", N, "/v2.0/networks", json!({"network": {"name": "contract", "description": "of a test"}}))
            .keep("net", "/network/id"),
        post(
            "network with an unknown field",
            N,
            "/v2.0/networks",
            json!({"network": {"name": "contract", "colour": "blue"}}),
        )
        .is(400),
        post("network without a body", N, "/v2.0/networks", json!({})).is(400),
        get("network by id", N, id),
        get("network that is not there", N, &format!("/v2.0/networks/{NOWHERE}")).is(404),
        get("networks by name", N, "/v2.0/networks?name=contract&project_id=<project>"),
        put("tags", N, "/v2.0/networks/<net>/tags", json!({"tags": ["capi", "contract"]})),
        get("networks by tags", N, "/v2.0/networks?tags=capi,contract").only("/networks/0/tags"),
        get("networks by any tag", N, "/v2.0/networks?tags-any=capi,other").only("/networks/0/tags"),
        get("networks without tags", N, "/v2.0/networks?not-tags=capi&project_id=<project>"),
        get("networks without any tag", N, "/v2.0/networks?not-tags-any=capi&project_id=<project>"),
        put("tags that are too long", N, "/v2.0/networks/<net>/tags", json!({"tags": ["x".repeat(300)]})).is(400),
        post("subnet", N, "/v2.0/subnets", subnet(json!({"dns_nameservers": ["192.0.2.53"]})))
            .keep("subnet", "/subnet/id"),
        post("subnet over another", N, "/v2.0/subnets", subnet(json!({}))).is(400),
        post("subnet of no address family", N, "/v2.0/subnets", subnet(json!({"ip_version": 5}))).is(400),
        post("subnet without a range", N, "/v2.0/subnets", json!({"subnet": {"network_id": "<net>", "ip_version": 4}}))
            .is(400),
        post(
            "subnet of a network that is not there",
            N,
            "/v2.0/subnets",
            subnet(json!({"network_id": NOWHERE, "cidr": "10.7.0.0/24"})),
        )
        .is(404),
        post(
            "subnet with pools outside",
            N,
            "/v2.0/subnets",
            subnet(json!({"cidr": "10.8.0.0/24", "allocation_pools": [{"start": "10.9.0.5", "end": "10.9.0.9"}]})),
        )
        .is(400),
        get("subnet by id", N, "/v2.0/subnets/<subnet>"),
        get("subnets by range", N, "/v2.0/subnets?network_id=<net>&cidr=10.6.0.0%2F24&name=contract"),
        put(
            "name servers",
            N,
            "/v2.0/subnets/<subnet>",
            json!({"subnet": {"dns_nameservers": ["192.0.2.53", "192.0.2.54"]}}),
        ),
        get("network with its subnet", N, id),
    ]
}

pub(super) fn routers() -> Vec<Step> {
    let gateway = json!({"network_id": "<public>"});
    vec![
        post("router", N, "/v2.0/routers", json!({"router": {"name": "contract", "external_gateway_info": gateway}}))
            .keep("router", "/router/id"),
        post(
            "router to a network that is not there",
            N,
            "/v2.0/routers",
            json!({"router": {"name": "contract", "external_gateway_info": {"network_id": NOWHERE}}}),
        )
        .is(404),
        get("router by id", N, "/v2.0/routers/<router>"),
        get("routers by name", N, "/v2.0/routers?name=contract&project_id=<project>"),
        get("router that is not there", N, &format!("/v2.0/routers/{NOWHERE}")).is(404),
        put("interface", N, "/v2.0/routers/<router>/add_router_interface", json!({"subnet_id": "<subnet>"})),
        put(
            "interface a second time",
            N,
            "/v2.0/routers/<router>/add_router_interface",
            json!({"subnet_id": "<subnet>"}),
        )
        .is(400),
        put(
            "interface of a subnet that is not there",
            N,
            "/v2.0/routers/<router>/add_router_interface",
            json!({"subnet_id": NOWHERE}),
        )
        .is(404),
        get(
            "router's ports",
            N,
            "/v2.0/ports?device_id=<router>&device_owner=network%3Arouter_interface&project_id=<project>",
        ),
        delete("router in use", N, "/v2.0/routers/<router>").is(409),
        delete("network in use", N, "/v2.0/networks/<net>").is(409),
        delete("subnet in use", N, "/v2.0/subnets/<subnet>").is(409),
    ]
}

pub(super) fn the_end() -> Vec<Step> {
    vec![
        delete("port away", N, "/v2.0/ports/<port>"),
        put("interface away", N, "/v2.0/routers/<router>/remove_router_interface", json!({"subnet_id": "<subnet>"})),
        put(
            "interface away again",
            N,
            "/v2.0/routers/<router>/remove_router_interface",
            json!({"subnet_id": "<subnet>"}),
        )
        .is(404),
        delete("router away", N, "/v2.0/routers/<router>"),
        delete("router away again", N, "/v2.0/routers/<router>").is(404),
        delete("group away", N, "/v2.0/security-groups/<group>"),
        delete("group away again", N, "/v2.0/security-groups/<group>").is(404),
        delete("subnet away", N, "/v2.0/subnets/<subnet>"),
        delete("subnet away again", N, "/v2.0/subnets/<subnet>").is(404),
        delete("network away", N, "/v2.0/networks/<net>"),
        delete("network away again", N, "/v2.0/networks/<net>").is(404),
    ]
}
