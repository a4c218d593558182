//! Servers, machines and pools against a small OpenStack, pass after pass, from every state that a crash can leave.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod hostile;
mod machine;
mod pool;
mod server;
mod server_faults;

use capwasm_sdk::test::{TestHost, delete_object, reconcile_object, write_back};
use capwasm_sdk::{Outcome, Problem, object};
use serde_json::{Value, json};

use crate::OpenStack as Provider;
use crate::testing::{OpenStack, PROJECT, assert_declared};

/// More passes than anything here needs.
const MOST_PASSES: usize = 40;
/// When objects are deleted at the earliest, in milliseconds.
const NOW: u64 = 1_700_000_000_000;
/// The user data, with bytes that are no text.
const USER_DATA: &[u8] = b"#cloud-config\nruncmd: [kubeadm join]\n\xff\x00";

/// A cloud, a host in front of it, and the object that is reconciled.
struct World {
    cloud: OpenStack,
    host: TestHost,
    object: Value,
}

/// What a pass came to; none when the caller crashed in it.
type Pass<R> = Option<Result<R, Problem>>;

impl World {
    /// One pass. When the answer of a call is lost in it, the caller has crashed: nothing of the outcome counts.
    fn pass<R>(&mut self, function: impl FnOnce(&TestHost, &Value) -> (Result<R, Problem>, Outcome)) -> Pass<R> {
        let lost = self.lost();
        let (result, outcome) = function(&self.host, &self.object);
        if self.lost() > lost {
            return None;
        }
        write_back(&outcome, &mut self.object);
        self.host.carry_out(&outcome);
        Some(result)
    }

    fn lost(&self) -> usize {
        self.cloud.calls().iter().filter(|call| call.status.is_none()).count()
    }

    fn reconcile(&mut self) -> Pass<()> {
        self.pass(|host, object| reconcile_object::<Provider>(host, object))
    }

    /// Passes until the object is ready.
    fn settle(&mut self) {
        let mut last = None;
        for _ in 0..MOST_PASSES {
            last = self.reconcile();
            if last == Some(Ok(())) {
                assert_known(&self.object);
                return;
            }
        }
        panic!("not ready after {MOST_PASSES} passes: {last:?}\n{:#?}\n{:#}", self.calls(), self.object);
    }

    fn delete(&mut self) -> Pass<bool> {
        object::merge(&mut self.object, &json!({"metadata": {"deletionTimestamp": "2023-11-14T22:13:20Z"}}));
        self.pass(|host, object| delete_object::<Provider>(host, object))
    }

    /// Passes of a deletion until nothing is left.
    fn end(&mut self) {
        let mut last = None;
        for pass in 0..MOST_PASSES as u64 {
            last = self.delete();
            if last == Some(Ok(true)) {
                return;
            }
            self.host.set_now_ms(NOW + (pass + 1) * 1_000);
        }
        panic!("not gone after {MOST_PASSES} passes: {last:?}\n{:#?}\n{:#}", self.calls(), self.object);
    }

    /// Id of the only server.
    fn server(&self) -> String {
        let servers = self.cloud.all("servers");
        assert_eq!(servers.len(), 1);
        servers[0]["id"].as_str().unwrap().to_owned()
    }

    /// `GET /servers/<id>` and so on, in order.
    fn calls(&self) -> Vec<String> {
        self.cloud.calls().iter().map(|call| format!("{} {}", call.method, call.path)).collect()
    }

    fn status(&self, at: &str) -> &str {
        object::text(&self.object, &format!("/status/{at}"))
    }

    /// Status and reason of a condition.
    fn condition(&self, name: &str) -> (&str, &str) {
        let found = object::condition(&self.object, name).unwrap_or(&Value::Null);
        (object::text(found, "/status"), object::text(found, "/reason"))
    }
}

/// Nothing is written that the API does not have. The host writes the conditions.
fn assert_known(object: &Value) {
    let mut object = object.clone();
    if let Some(status) = object["status"].as_object_mut() {
        status.remove("conditions");
    }
    assert_declared(&object);
}

/// A network with a subnet behind a router, and security groups.
fn cloud() -> OpenStack {
    let cloud = OpenStack::new();
    let add = |collection: &str, mut item: Value| {
        object::merge(&mut item, &json!({"project_id": PROJECT}));
        cloud.add(collection, item);
    };
    add("networks", json!({"id": "n1", "name": "main", "tags": ["main"], "subnets": ["s1"], "router:external": false}));
    add("subnets", json!({"id": "s1", "name": "main-subnet", "network_id": "n1", "cidr": "10.0.0.0/24", "tags": []}));
    add("networks", json!({"id": "n2", "name": "storage", "tags": [], "subnets": ["s2"], "router:external": false}));
    add(
        "subnets",
        json!({"id": "s2", "name": "storage-subnet", "network_id": "n2", "cidr": "10.9.0.0/24", "tags": []}),
    );
    add(
        "routers",
        json!({"id": "r1", "name": "main", "external_gateway_info": {"network_id": "network-external"}, "tags": []}),
    );
    add(
        "ports",
        json!({
            "id": "interface", "name": "", "network_id": "n1", "device_id": "r1", "device_owner": "network:router_interface",
            "fixed_ips": [{"subnet_id": "s1", "ip_address": "10.0.0.1"}], "tags": [], "description": "",
        }),
    );
    for group in ["g-worker", "g-extra", "g-other"] {
        add(
            "security_groups",
            json!({"id": group, "name": group, "tags": ["groups"], "description": "", "security_group_rules": []}),
        );
    }
    cloud.add("server_groups", json!({"id": "group-1", "name": "spread", "policies": ["anti-affinity"]}));
    cloud
}

/// What there is of servers and floating IPs, apart from what was there before.
fn left(cloud: &OpenStack) -> Vec<String> {
    let mut left = Vec::new();
    for collection in ["servers", "volumes", "trunks", "floatingips", "ports"] {
        for item in cloud.all(collection) {
            if item["id"] != "interface" && !item["id"].as_str().unwrap().starts_with("mine") {
                left.push(format!("{collection} {} {}", item["id"], item["name"]));
            }
        }
    }
    left
}
