//! What each service says to a request over its quota.

use serde_json::{Value, json};

use super::{C, N, Step, Who, post, put};

pub(super) fn quotas() -> Vec<Step> {
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
