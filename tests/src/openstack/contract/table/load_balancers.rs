//! Octavia: load balancers, listeners, pools, members and monitors.

use serde_json::{Value, json};

use super::{N, NOWHERE, Step, delete, get, post, put};

pub(super) fn load_balancers() -> Vec<Step> {
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
