//! The requests, service by service: everything that the provider asks for, and how it may be refused.

use http::Method;
use serde_json::{Value, json};

use super::{Step, Who};

const NOWHERE: &str = "00000000-0000-0000-0000-000000000000";

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
        identity(),
        network(),
        security_groups(),
        routers(),
        ports(),
        floating_ips(),
        trunks(),
        images(),
        flavors(),
        volumes(),
        servers(),
        load_balancers(),
        quotas(),
        the_end(),
    ];
    parts.concat()
}

fn identity() -> Vec<Step> {
    const I: &str = "identity";
    let password = |user: &str, password: &str| {
        json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user": {
                "name": user, "domain": {"name": "Default"}, "password": password,
            }}},
            "scope": {"project": {"name": "<name>", "domain": {"name": "Default"}}},
        }})
    };
    let credential = |credential: Value| {
        json!({"auth": {"identity": {
            "methods": ["application_credential"], "application_credential": credential,
        }}})
    };
    let user = json!({"name": "<name>", "domain": {"id": "default"}});
    vec![
        post("token by password", I, "/auth/tokens", password("<name>", "of-a-test"))
            .by(Who::Nobody)
            .only("/token/user/domain"),
        post("token by a wrong password", I, "/auth/tokens", password("<name>", "wrong")).by(Who::Nobody).is(401),
        post("token of a user who is not there", I, "/auth/tokens", password("nobody", "of-a-test"))
            .by(Who::Nobody)
            .is(401),
        post("token by nothing", I, "/auth/tokens", json!({})).by(Who::Nobody).is(400),
        post(
            "application credential",
            I,
            "/users/<user>/application_credentials",
            json!({"application_credential": {"name": "capi", "secret": "s3cret"}}),
        )
        .keep("credential", "/application_credential/id")
        .only("/application_credential/name"),
        post(
            "application credential of the same name",
            I,
            "/users/<user>/application_credentials",
            json!({"application_credential": {"name": "capi", "secret": "s3cret"}}),
        )
        .is(409),
        post(
            "token by application credential",
            I,
            "/auth/tokens",
            credential(json!({"id": "<credential>", "secret": "s3cret"})),
        )
        .by(Who::Nobody)
        .only("/token/methods"),
        post(
            "token by application credential's name",
            I,
            "/auth/tokens",
            credential(json!({"name": "capi", "user": user, "secret": "s3cret"})),
        )
        .by(Who::Nobody)
        .only("/token/project/domain"),
        post(
            "token by a wrong secret",
            I,
            "/auth/tokens",
            credential(json!({"id": "<credential>", "secret": "wrong"})),
        )
        .by(Who::Nobody)
        .is(401),
        post(
            "token by an application credential that is not there",
            I,
            "/auth/tokens",
            credential(json!({"id": NOWHERE.replace('-', ""), "secret": "s3cret"})),
        )
        .by(Who::Nobody)
        .is(404),
        delete("application credential away", I, "/users/<user>/application_credentials/<credential>"),
        delete("application credential away again", I, "/users/<user>/application_credentials/<credential>").is(404),
        get("networks without a token", "network", "/v2.0/networks").by(Who::Nobody).is(401),
        get("networks with a wrong token", "network", "/v2.0/networks").by(Who::Stranger).is(401),
        get("servers with a wrong token", "compute", "/servers").by(Who::Stranger).is(401),
        get("images with a wrong token", "image", "/v2/images").by(Who::Stranger).is(401),
        get("volumes with a wrong token", "block-storage", "<volumes>/volumes").by(Who::Stranger).is(401),
        get("load balancers with a wrong token", "load-balancer", "/v2/lbaas/loadbalancers").by(Who::Stranger).is(401),
    ]
}

const N: &str = "network";

fn network() -> Vec<Step> {
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

fn security_groups() -> Vec<Step> {
    let rule = |more: Value| {
        let mut body = json!({"security_group_id": "<group>", "direction": "ingress", "ethertype": "IPv4"});
        body.as_object_mut().into_iter().for_each(|body| body.extend(more.as_object().cloned().unwrap_or_default()));
        json!({"security_group_rule": body})
    };
    let path = "/v2.0/security-group-rules";
    let api =
        json!({"protocol": "tcp", "port_range_min": 6443, "port_range_max": 6443, "remote_ip_prefix": "0.0.0.0/0"});
    vec![
        post(
            "group",
            N,
            "/v2.0/security-groups",
            json!({"security_group": {"name": "contract", "description": "of a test"}}),
        )
        .keep("group", "/security_group/id"),
        get("group by id", N, "/v2.0/security-groups/<group>"),
        get("groups by name", N, "/v2.0/security-groups?name=contract&project_id=<project>"),
        get("group that is not there", N, &format!("/v2.0/security-groups/{NOWHERE}")).is(404),
        post("rule", N, path, rule(api.clone())).keep("rule", "/security_group_rule/id"),
        post("rule a second time", N, path, rule(api)).is(409),
        post(
            "rule of a protocol number",
            N,
            path,
            rule(json!({"protocol": "4", "remote_group_id": "<group>", "description": "ipip"})),
        ),
        post("rule of any IPv6", N, path, rule(json!({"ethertype": "IPv6", "remote_group_id": "<group>"}))),
        post(
            "rule with ports the wrong way round",
            N,
            path,
            rule(json!({"protocol": "tcp", "port_range_min": 9, "port_range_max": 8})),
        )
        .is(400),
        post("rule with ports of no protocol", N, path, rule(json!({"port_range_min": 8, "port_range_max": 9})))
            .is(400),
        post("rule of no direction", N, path, rule(json!({"direction": "sideways"}))).is(400),
        post("rule of another family's range", N, path, rule(json!({"remote_ip_prefix": "2001:db8::/32"}))).is(400),
        post(
            "rule with two sources",
            N,
            path,
            rule(json!({"remote_ip_prefix": "10.0.0.0/8", "remote_group_id": "<group>"})),
        )
        .is(400),
        post("rule of a group that is not there", N, path, rule(json!({"security_group_id": NOWHERE}))).is(404),
        post(
            "rules at once",
            N,
            path,
            json!({"security_group_rules": [
            {"security_group_id": "<group>", "direction": "ingress", "ethertype": "IPv4", "protocol": "icmp"},
            {"security_group_id": "<group>", "direction": "ingress", "ethertype": "IPv4", "protocol": "udp",
                "port_range_min": 30000, "port_range_max": 32767, "remote_ip_prefix": "10.6.0.0/24"}]}),
        ),
        post(
            "rules at once of which one is there",
            N,
            path,
            json!({"security_group_rules": [
            {"security_group_id": "<group>", "direction": "ingress", "ethertype": "IPv4", "protocol": "sctp"},
            {"security_group_id": "<group>", "direction": "ingress", "ethertype": "IPv4", "protocol": "icmp"}]}),
        )
        .is(409),
        get("rules", N, "/v2.0/security-group-rules?security_group_id=<group>"),
        delete("rule away", N, "/v2.0/security-group-rules/<rule>"),
        delete("rule away again", N, "/v2.0/security-group-rules/<rule>").is(404),
    ]
}

fn routers() -> Vec<Step> {
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

fn ports() -> Vec<Step> {
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

fn floating_ips() -> Vec<Step> {
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

fn trunks() -> Vec<Step> {
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

fn images() -> Vec<Step> {
    const G: &str = "image";
    vec![
        get("images by name", G, "/v2/images?name=node-image&status=active").keep("image", "/images/0/id"),
        get("images of a name that nobody has", G, "/v2/images?name=nobody"),
        get("images by tag", G, "/v2/images?tag=nobody"),
        get("image by id", G, "/v2/images/<image>"),
        get("image that is not there", G, &format!("/v2/images/{NOWHERE}")).is(404),
        get("images with a bad limit", G, "/v2/images?limit=x").is(400),
        get("images after one that is not there", G, &format!("/v2/images?marker={NOWHERE}")).is(400),
    ]
}

const C: &str = "compute";

fn flavors() -> Vec<Step> {
    vec![
        get("versions of Nova", C, "/").only("/version/id"),
        get("flavors", C, "/flavors/detail?limit=1").only("/flavors/0/links"),
        get("flavor's names", C, "/flavors?limit=1").only("/flavors/0/links"),
        get("flavors of a limit", C, "/flavors?limit=x").is(400),
        get("all flavors", C, "/flavors/detail?sort_key=name").keep("flavor", "/flavors/1/id").only("/flavors/1/name"),
        get("flavor by id", C, "/flavors/<flavor>"),
        get("flavor that is not there", C, "/flavors/nowhere").is(404),
        get("zones", C, "/os-availability-zone"),
        get("zones in detail", C, "/os-availability-zone/detail").is(403),
        post(
            "server group",
            C,
            "/os-server-groups",
            json!({"server_group": {"name": "contract", "policies": ["soft-anti-affinity"]}}),
        )
        .is(200)
        .keep("servers", "/server_group/id"),
        post(
            "server group of no policy",
            C,
            "/os-server-groups",
            json!({"server_group": {"name": "contract", "policies": ["indifference"]}}),
        )
        .is(400),
        get("server groups", C, "/os-server-groups"),
        get("server group that is not there", C, &format!("/os-server-groups/{NOWHERE}")).is(404),
        post(
            "key pair",
            C,
            "/os-keypairs",
            json!({"keypair": {"name": "<name>", "public_key": "ssh-ed25519 \
            AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl t@t"}}),
        )
        .only("/keypair/type"),
    ]
}

fn volumes() -> Vec<Step> {
    const V: &str = "block-storage";
    let volume = |more: Value| {
        let mut body = json!({"name": "contract", "size": 1});
        body.as_object_mut().into_iter().for_each(|body| body.extend(more.as_object().cloned().unwrap_or_default()));
        json!({"volume": body})
    };
    vec![
        post(
            "volume",
            V,
            "<volumes>/volumes",
            volume(json!({"volume_type": "__DEFAULT__", "description": "of a test"})),
        )
        .is(202)
        .keep("volume", "/volume/id"),
        get("volume by id", V, "<volumes>/volumes/<volume>").until("/volume/status", "available"),
        get("volumes by name", V, "<volumes>/volumes/detail?name=contract"),
        post("volume of no size", V, "<volumes>/volumes", volume(json!({"size": 0}))).is(400),
        post("volume of a type that is not there", V, "<volumes>/volumes", volume(json!({"volume_type": "gold"})))
            .is(404),
        post(
            "volume in a zone that is not there",
            V,
            "<volumes>/volumes",
            volume(json!({"availability_zone": "moon"})),
        )
        .is(202)
        .keep("moon", "/volume/id")
        .only("/volume/status"),
        post("volume of an image that is not there", V, "<volumes>/volumes", volume(json!({"imageRef": NOWHERE})))
            .is(400),
        get("volume that is not there", V, &format!("<volumes>/volumes/{NOWHERE}")).is(404),
        get("volume in another zone", V, "<volumes>/volumes/<moon>")
            .until("/volume/status", "available")
            .only("/volume/availability_zone"),
        delete("volume in another zone away", V, "<volumes>/volumes/<moon>").is(202),
        delete("volume that was never there", V, &format!("<volumes>/volumes/{NOWHERE}")).is(404),
    ]
}

fn servers() -> Vec<Step> {
    const V: &str = "block-storage";
    let server = |more: Value| {
        let mut body = json!({"name": "contract", "flavorRef": "<flavor>", "imageRef": "<image>", "networks": [{"port": "<port>"}]});
        body.as_object_mut().into_iter().for_each(|body| body.extend(more.as_object().cloned().unwrap_or_default()));
        json!({"server": body})
    };
    vec![
        post("server", C, "/servers", json!({"server": {
            "name": "contract", "flavorRef": "<flavor>", "imageRef": "<image>", "networks": [{"port": "<port>"}],
            "user_data": "I2Nsb3VkLWNvbmZpZwo=", "config_drive": true, "key_name": "<name>", "availability_zone": "az2",
            "metadata": {"cluster": "contract"}, "tags": ["capi", "contract"],
            "block_device_mapping_v2": [
                {"source_type": "image", "uuid": "<image>", "boot_index": 0, "destination_type": "local", "delete_on_termination": true},
                {"source_type": "volume", "uuid": "<volume>", "boot_index": -1, "destination_type": "volume",
                    "delete_on_termination": true, "tag": "etcd"},
            ]}, "os:scheduler_hints": {"group": "<servers>"}})).is(202).keep("server", "/server/id")
            .only("/server/security_groups"),
        get("server by id", C, "/servers/<server>").until("/server/status", "ACTIVE"),
        get("servers by name", C, "/servers/detail?name=%5Econtract%24"),
        get("servers' names", C, "/servers?name=%5Econtract%24"),
        get("servers of a name that nobody has", C, "/servers?name=%5Enobody%24"),
        get("server that is not there", C, &format!("/servers/{NOWHERE}")).is(404),
        get("server's interfaces", C, "/servers/<server>/os-interface"),
        get("port of the server", N, "/v2.0/ports/<port>").until("/port/status", "ACTIVE"),
        get("server group with a member", C, "/os-server-groups/<servers>"),
        get("volume of the server", V, "<volumes>/volumes/<volume>").until("/volume/status", "in-use").only("/volume/status"),
        post("server on a port in use", C, "/servers", server(json!({}))).is(409),
        post("server of no flavor", C, "/servers", server(json!({"flavorRef": "nowhere"}))).is(400),
        post("server of no image", C, "/servers", server(json!({"imageRef": NOWHERE}))).is(400),
        post("server on a port that is not there", C, "/servers", server(json!({"networks": [{"port": NOWHERE}]}))).is(400),
        post("server in a zone that is not there", C, "/servers",
            server(json!({"availability_zone": "moon", "networks": [{"uuid": "<net>"}]}))).is(400),
        post("server with a key that is not there", C, "/servers",
            server(json!({"key_name": "nobody", "networks": [{"uuid": "<net>"}]}))).is(400),
        post("server with user data that is not base64", C, "/servers", server(json!({"user_data": "abc", "networks": [{"uuid": "<net>"}]}))).is(400),
        post("server without a name", C, "/servers", json!({"server": {"flavorRef": "<flavor>", "imageRef": "<image>"}})).is(400),
        post("server in a group that is not there", C, "/servers", json!({"server": {"name": "contract", "flavorRef": "<flavor>",
            "imageRef": "<image>", "networks": [{"uuid": "<net>"}]}, "os:scheduler_hints": {"group": NOWHERE}})).is(400),
        post("server whose build fails", C, "/servers",
            json!({"server": {"name": "broken", "flavorRef": "<flavor>", "imageRef": "<image>", "networks": [{"uuid": "<net>"}],
                "availability_zone": "az-fail"}})).is(202).keep("broken", "/server/id").only(""),
        get("server whose build has failed", C, "/servers/<broken>").until("/server/status", "ERROR").only("/server/fault/code"),
        delete("server whose build has failed away", C, "/servers/<broken>"),
        delete("volume in use", V, "<volumes>/volumes/<volume>").is(400),
        post("server stops", C, "/servers/<server>/action", json!({"os-stop": null})).is(202),
        get("server that is stopped", C, "/servers/<server>").until("/server/status", "SHUTOFF").only("/server/OS-EXT-STS:power_state"),
        post("console", C, "/servers/<server>/action", json!({"os-getConsoleOutput": {}})).is(200).only(""),
        delete("server away", C, "/servers/<server>"),
        get("server that is gone", C, "/servers/<server>").is(404).until("", ""),
        delete("server away again", C, "/servers/<server>").is(404),
        get("volume of the server that is gone", V, "<volumes>/volumes/<volume>").is(404).until("", ""),
        get("port of the server that is gone", N, "/v2.0/ports/<port>").until("/port/status", "DOWN"),
        delete("server group away", C, "/os-server-groups/<servers>"),
        delete("key pair away", C, "/os-keypairs/<name>"),
    ]
}

fn load_balancers() -> Vec<Step> {
    const L: &str = "load-balancer";
    let lb = "/v2/lbaas/loadbalancers/<lb>";
    let active = |name| {
        get(name, L, lb).until("/loadbalancer/provisioning_status", "ACTIVE").only("/loadbalancer/provisioning_status")
    };
    let members = "/v2/lbaas/pools/<pool>/members";
    let listener = |more: Value| {
        let mut body =
            json!({"name": "contract-6443", "loadbalancer_id": "<lb>", "protocol": "TCP", "protocol_port": 6443});
        body.as_object_mut().into_iter().for_each(|body| body.extend(more.as_object().cloned().unwrap_or_default()));
        json!({"listener": body})
    };
    vec![
        get("versions of Octavia", L, "/").only("/versions/0/id"),
        get("providers", L, "/v2/lbaas/providers"),
        get("load balancers by name", L, "/v2/lbaas/loadbalancers?name=contract"),
        get("load balancer that is not there", L, &format!("/v2/lbaas/loadbalancers/{NOWHERE}")).is(404),
        post("load balancer of nothing", L, "/v2/lbaas/loadbalancers", json!({"loadbalancer": {"name": "contract"}})).is(400),
        post("load balancer on a subnet that is not there", L, "/v2/lbaas/loadbalancers",
            json!({"loadbalancer": {"name": "contract", "vip_subnet_id": NOWHERE}})).is(400),
        post("load balancer of a provider that is not there", L, "/v2/lbaas/loadbalancers",
            json!({"loadbalancer": {"name": "contract", "vip_subnet_id": "<subnet>", "provider": "nobody"}})).is(400),
        post("load balancer", L, "/v2/lbaas/loadbalancers",
            json!({"loadbalancer": {"name": "contract", "vip_subnet_id": "<subnet>", "description": "of a test", "tags": ["capi"]}}))
            .keep("lb", "/loadbalancer/id").keep("vip", "/loadbalancer/vip_port_id"),
        active("load balancer is active"),
        get("load balancer by id", L, lb),
        get("load balancer by name", L, "/v2/lbaas/loadbalancers?name=contract").only("/loadbalancers/0/name"),
        get("port of the load balancer", N, "/v2.0/ports/<vip>").only("/port/device_owner"),
        post("listener", L, "/v2/lbaas/listeners", listener(json!({"allowed_cidrs": ["10.6.0.0/24"], "tags": ["capi"]})))
            .keep("listener", "/listener/id"),
        active("after the listener"),
        post("listener on the same port", L, "/v2/lbaas/listeners", listener(json!({}))).is(409),
        post("listener of a port out of range", L, "/v2/lbaas/listeners", listener(json!({"protocol_port": 70000}))).is(400),
        post("listener of a load balancer that is not there", L, "/v2/lbaas/listeners",
            listener(json!({"loadbalancer_id": NOWHERE}))).is(404),
        get("listeners by name", L, "/v2/lbaas/listeners?name=contract-6443"),
        put("allowed ranges", L, "/v2/lbaas/listeners/<listener>", json!({"listener": {"allowed_cidrs": ["0.0.0.0/0"]}})),
        active("after the ranges"),
        post("pool", L, "/v2/lbaas/pools",
            json!({"pool": {"name": "contract-6443", "listener_id": "<listener>", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "tags": ["capi"]}}))
            .keep("pool", "/pool/id"),
        active("after the pool"),
        post("pool of no algorithm", L, "/v2/lbaas/pools",
            json!({"pool": {"loadbalancer_id": "<lb>", "protocol": "TCP", "lb_algorithm": "GUESS"}})).is(400),
        get("pools by name", L, "/v2/lbaas/pools?name=contract-6443"),
        post("monitor", L, "/v2/lbaas/healthmonitors", json!({"healthmonitor": {
            "name": "contract-6443", "pool_id": "<pool>", "type": "TCP", "delay": 10, "timeout": 5, "max_retries": 5, "max_retries_down": 3}}))
            .keep("monitor", "/healthmonitor/id"),
        active("after the monitor"),
        post("monitor a second time", L, "/v2/lbaas/healthmonitors", json!({"healthmonitor": {
            "pool_id": "<pool>", "type": "TCP", "delay": 10, "timeout": 5, "max_retries": 5}})).is(409),
        get("monitors by name", L, "/v2/lbaas/healthmonitors?name=contract-6443"),
        put("monitor's delay", L, "/v2/lbaas/healthmonitors/<monitor>", json!({"healthmonitor": {"delay": 20}})),
        active("after the monitor's delay"),
        put("members", L, members, json!({"members": [
            {"name": "cp-0", "address": "10.6.0.10", "protocol_port": 6443, "subnet_id": "<subnet>", "tags": ["capi"]},
            {"name": "cp-1", "address": "10.6.0.20", "protocol_port": 6443, "subnet_id": "<subnet>"}]})).is(202),
        active("after the members"),
        get("members of the pool", L, members),
        put("the same members", L, members, json!({"members": [
            {"name": "cp-0", "address": "10.6.0.10", "protocol_port": 6443, "subnet_id": "<subnet>", "tags": ["capi"]},
            {"name": "cp-1", "address": "10.6.0.20", "protocol_port": 6443, "subnet_id": "<subnet>"}]})).is(202),
        active("after the same members"),
        put("one member less", L, members, json!({"members": [
            {"name": "cp-1", "address": "10.6.0.20", "protocol_port": 6443, "subnet_id": "<subnet>"}]})).is(202),
        active("after one member less"),
        get("the member that is left", L, members).keep("member", "/members/0/id"),
        post("member by itself", L, members, json!({"member": {"name": "cp-2", "address": "10.6.0.30", "protocol_port": 6443}})),
        active("after the member"),
        post("member of an address in use", L, members, json!({"member": {"address": "10.6.0.30", "protocol_port": 6443}})).is(409),
        post("member of no address", L, members, json!({"member": {"address": "nowhere", "protocol_port": 6443}})).is(400),
        delete("member away", L, "/v2/lbaas/pools/<pool>/members/<member>"),
        active("after the member is away"),
        delete("load balancer with children", L, lb).is(400),
        delete("load balancer away", L, "/v2/lbaas/loadbalancers/<lb>?cascade=true"),
        get("load balancer that is gone", L, lb).is(404).until("", ""),
        delete("load balancer away again", L, "/v2/lbaas/loadbalancers/<lb>?cascade=true").is(404),
        get("port of the load balancer that is gone", N, "/v2.0/ports/<vip>").is(404).until("", ""),
    ]
}

fn quotas() -> Vec<Step> {
    let network = |quota: Value| {
        put("quota of Neutron", N, "/v2.0/quotas/<project>", json!({"quota": quota})).by(Who::Admin).only("")
    };
    vec![
        // No quota may be less than what is used.
        network(json!({"network": 1, "security_group": 2, "floatingip": 0, "port": 2, "router": 1})),
        post("network over its quota", N, "/v2.0/networks", json!({"network": {"name": "one-more"}})).is(409),
        post("group over its quota", N, "/v2.0/security-groups", json!({"security_group": {"name": "one-more"}}))
            .is(409),
        post(
            "floating IP over its quota",
            N,
            "/v2.0/floatingips",
            json!({"floatingip": {"floating_network_id": "<public>"}}),
        )
        .is(409),
        post("port over its quota", N, "/v2.0/ports", json!({"port": {"network_id": "<net>"}})).is(409),
        post("router over its quota", N, "/v2.0/routers", json!({"router": {"name": "one-more"}})).is(409),
        put("quota of Nova", C, "/os-quota-sets/<project>", json!({"quota_set": {"instances": 0}}))
            .by(Who::Admin)
            .only(""),
        post(
            "server over its quota",
            C,
            "/servers",
            json!({"server": {"name": "one-more", "flavorRef": "<flavor>",
            "imageRef": "<image>", "networks": [{"port": "<port>"}]}}),
        )
        .is(403),
        put("quota of Cinder", "block-storage", "/os-quota-sets/<project>", json!({"quota_set": {"volumes": 0}}))
            .by(Who::Admin)
            .only(""),
        post(
            "volume over its quota",
            "block-storage",
            "<volumes>/volumes",
            json!({"volume": {"name": "one-more", "size": 1}}),
        )
        .is(413),
        put("quota of Octavia", "load-balancer", "/v2/lbaas/quotas/<project>", json!({"quota": {"load_balancer": 0}}))
            .by(Who::Admin)
            .is(202)
            .only(""),
        post(
            "load balancer over its quota",
            "load-balancer",
            "/v2/lbaas/loadbalancers",
            json!({"loadbalancer": {"name": "one-more", "vip_subnet_id": "<subnet>"}}),
        )
        .is(403),
    ]
}

fn the_end() -> Vec<Step> {
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
