//! What is there from the start.

use serde_json::{Value, json};

use super::cloud::{Scope, State, new_id};
use super::keystone::REGION;
use super::neutron;
use super::nova;
use super::table::Table;

const PASSWORD: &str = "secret";
const SECRET: &str = "app-cred-secret";

/// Clouds by which clients sign in: a password of each user, and an application credential.
pub(super) struct Credentials {
    credential: String,
}

impl Credentials {
    /// The clouds as clients' libraries read them.
    pub fn clouds_yaml(&self, auth_url: &str) -> String {
        let header = format!("    region_name: {REGION}\n    interface: public\n    identity_api_version: 3\n");
        let password = |name: &str| {
            format!(
                "  ost-{name}:\n{header}    auth:\n      auth_url: {auth_url}\n      username: {name}\n      password: {PASSWORD}\n      project_name: {name}\n      user_domain_name: Default\n      project_domain_name: Default\n"
            )
        };
        let credential = format!(
            "  ost-demo-appcred:\n{header}    auth_type: v3applicationcredential\n    auth:\n      auth_url: {auth_url}\n      application_credential_id: {}\n      application_credential_secret: {SECRET}\n",
            self.credential
        );
        format!("clouds:\n{}{}{credential}", password("admin"), password("demo"))
    }
}

/// Fills an empty cloud. `range` is the second octet of the external network's addresses.
pub(super) fn plant(state: &mut State, range: u8) -> Credentials {
    let identity = &mut state.identity;
    let (admin_project, demo_project) = (identity.add_project("admin"), identity.add_project("demo"));
    let admin = identity.add_user("admin", PASSWORD, &admin_project);
    let demo = identity.add_user("demo", PASSWORD, &demo_project);
    for role in ["admin", "member", "reader", "load-balancer_member"] {
        identity.grant(&admin, &admin_project, role);
    }
    for role in ["load-balancer_member", "member", "reader"] {
        identity.grant(&demo, &demo_project, role);
    }
    let credential = identity.add_credential(&demo, &demo_project, "ost", SECRET);

    for (name, vcpus, ram, disk) in [("m1.tiny", 1, 512, 1), ("m1.small", 1, 2048, 20), ("m1.medium", 2, 4096, 40)] {
        nova::add_flavor(state, &json!({ "name": name, "vcpus": vcpus, "ram": ram, "disk": disk }));
    }
    let image = json!({
        "name": "node-image", "disk_format": "raw", "container_format": "bare", "visibility": "public", "os_type": "linux",
        "os_distro": "ubuntu",
        // Of 64 KiB of zeros.
        "checksum": "fcd6bcb56c1689fcef28b57c22475bad", "os_hash_algo": "sha512",
        "os_hash_value": "73e4153936dab198397b74ee9efc26093dda721eaab2f8d92786891153b45b04265a161b169c988edb0db2c53124607b6eaaa816559c5ce54f3dbc9fa6a7a4b2",
        "owner_specified.openstack.md5": "", "owner_specified.openstack.sha256": "",
        "owner_specified.openstack.object": "images/node-image",
    });
    let image = state.images.add(&admin_project, &image);
    state.images.upload(&image, 65536);
    state.volumes.types.insert(json!({
        "id": new_id(), "name": "__DEFAULT__", "is_public": true, "description": "Default Volume Type", "extra_specs": {},
        "os-volume-type-access:is_public": true,
    }));

    let scope = Scope { user: admin, project: admin_project.clone(), admin: true };
    let map = |value: Value| value.as_object().cloned().unwrap_or_default();
    let network = json!({
        "name": "public", "router:external": true, "mtu": 1500, "provider:network_type": "flat",
        "provider:physical_network": "public",
    });
    // Both are right, and nothing is there that could refuse them.
    if let Ok(network) = neutron::create_network(&mut state.networking, &admin_project, &map(network)) {
        let subnet = json!({
            "name": "public-subnet", "network_id": network, "ip_version": 4, "cidr": format!("127.{range}.0.0/16"),
            "gateway_ip": format!("127.{range}.0.1"), "enable_dhcp": false,
            "allocation_pools": [{ "start": format!("127.{range}.0.10"), "end": format!("127.{range}.255.250") }],
        });
        let made = neutron::create_subnet(&mut state.networking, &scope, &admin_project, &map(subnet));
        drop(made);
    }
    let seeded = |table: &mut Table| table.iter_mut().for_each(|resource| resource["_seed"] = json!(true));
    seeded(&mut state.images.images);
    seeded(&mut state.networking.networks);
    seeded(&mut state.networking.subnets);
    Credentials { credential }
}
