//! What real Nova's fake driver leaves out: its servers boot as simulated nodes, and addresses of load balancers lead to them.
//!
//! ```text
//! Nova, Octavia, Neutron  ◄── lists ──  Hypervisor  ──►  nodes of the simulated engine, listeners on loopback
//! ```
//!
//! It looks whenever somebody has written something through the proxy, until nothing changes any more.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use capwasm_sim_openstack::{Boot, Forwarding, Guest, Guests, Nodes};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{Cloud, Proxy};
use crate::objects::text;

const GLANCE: Duration = Duration::from_millis(200);
/// For so long after a write something may still change.
const UNREST: Duration = Duration::from_secs(10);
/// Claims a range of addresses, as simulated engines do it.
const CLAIM: u16 = 6443;

/// Runs the servers of one project. They end when it is dropped.
pub struct Hypervisor {
    external_network: String,
    _range: UdpSocket,
    _end: oneshot::Sender<()>,
}

impl Hypervisor {
    /// On a simulated engine, for the project of `cloud`.
    pub async fn start(nodes: Nodes, admin: &Cloud, cloud: &Cloud, name: &str, proxy: &Proxy) -> Hypervisor {
        let (range, claimed) = claim();
        external_network(admin, name, range).await;
        let mut look = Look {
            admin: admin.clone(),
            cloud: cloud.clone(),
            guests: Arc::new(Guests::new(nodes)),
            running: BTreeMap::new(),
        };
        let (end, ended) = oneshot::channel();
        let writes = proxy.writes();
        // Not on the test's runtime: a test that waits for a process must not stop it.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                tokio::select! {
                    () = look.run(writes) => {}
                    _ = ended => {}
                }
            });
        });
        Hypervisor { external_network: name.to_owned(), _range: claimed, _end: end }
    }

    /// Name of an external network whose addresses can be reached.
    pub fn external_network(&self) -> &str {
        &self.external_network
    }

    /// Removes the external network that was made for it.
    pub async fn end(self, admin: &Cloud) {
        for network in
            admin.list("network", &format!("/v2.0/networks?name={}", self.external_network), "networks").await
        {
            admin.delete("network", &format!("/v2.0/networks/{}", text(&network, "/id"))).await;
        }
    }
}

/// Second octet of addresses on loopback that nobody else uses while the socket is there.
fn claim() -> (u8, UdpSocket) {
    let mut ranges = (16..=254).map(|step: u8| 16 + step.wrapping_add(rand::random()) % 239);
    let claimed = ranges.find_map(|range| {
        let socket = UdpSocket::bind(SocketAddr::from(([127, range, 255, 254], CLAIM))).ok()?;
        Some((range, socket))
    });
    claimed.expect("a range of loopback is free")
}

async fn external_network(admin: &Cloud, name: &str, range: u8) {
    let network =
        admin.post("network", "/v2.0/networks", &json!({"network": {"name": name, "router:external": true}})).await;
    let pool = json!([{"start": format!("127.{range}.0.10"), "end": format!("127.{range}.0.250")}]);
    let subnet = json!({"subnet": {
        "network_id": network["network"]["id"], "ip_version": 4, "cidr": format!("127.{range}.0.0/24"),
        "gateway_ip": format!("127.{range}.0.1"), "enable_dhcp": false, "allocation_pools": pool,
    }});
    admin.post("network", "/v2.0/subnets", &subnet).await;
}

struct Look {
    admin: Cloud,
    cloud: Cloud,
    guests: Arc<Guests>,
    /// Machines by their server's id.
    running: BTreeMap<String, Guest>,
}

impl Look {
    async fn run(&mut self, writes: impl Fn() -> usize) {
        let mut forwarding = Forwarding::default();
        let (mut seen, mut last) = (0, Instant::now());
        loop {
            tokio::time::sleep(GLANCE).await;
            let now = writes();
            if now != seen {
                (seen, last) = (now, Instant::now());
            }
            if last.elapsed() < UNREST {
                self.servers().await;
                forwarding.lead(self.balancers().await).await;
            }
        }
    }

    /// Boots what is `ACTIVE`, ends what is gone.
    async fn servers(&mut self) {
        let path = format!("/servers/detail?all_tenants=1&project_id={}", self.cloud.project_id);
        let servers = self.admin.list("compute", &path, "servers").await;
        let there: BTreeSet<&str> = servers.iter().map(|server| text(server, "/id")).collect();
        let gone: Vec<String> = self.running.keys().filter(|id| !there.contains(id.as_str())).cloned().collect();
        for id in gone {
            if let Some(guest) = self.running.remove(&id) {
                self.guests.end(&guest.container).await;
            }
        }
        for server in servers.iter().filter(|server| server["status"] == "ACTIVE") {
            let id = text(server, "/id");
            if self.running.contains_key(id) {
                continue;
            }
            let boot = boot(server);
            let guest = self.guests.start(id, &boot).await.unwrap_or_else(|problem| panic!("{}: {problem}", boot.name));
            self.running.insert(id.to_owned(), guest.clone());
            let (guests, id) = (Arc::clone(&self.guests), id.to_owned());
            tokio::spawn(async move {
                let log = |line: String| eprintln!("console of {}: {line}", boot.name);
                if let Err(problem) = guests.initialize(&id, &boot, &guest.container, &log).await {
                    eprintln!("console of {}: {problem}", boot.name);
                }
            });
        }
    }

    /// Floating IPs of load balancers with the nodes behind their listeners.
    async fn balancers(&self) -> BTreeMap<IpAddr, BTreeMap<u16, Vec<SocketAddr>>> {
        let mut found = BTreeMap::new();
        if self.running.is_empty() {
            return found;
        }
        let of = format!("project_id={}", self.cloud.project_id);
        let lists = |kind: &'static str| {
            let path = format!("/v2/lbaas/{kind}?{of}");
            async move { self.cloud.list("load-balancer", &path, kind).await }
        };
        let (balancers, listeners) = (lists("loadbalancers").await, lists("listeners").await);
        let floating = self.cloud.list("network", &format!("/v2.0/floatingips?{of}"), "floatingips").await;
        let ports = self.cloud.list("network", &format!("/v2.0/ports?{of}"), "ports").await;
        for balancer in &balancers {
            let to_vip = |floating: &&Value| floating["port_id"] == balancer["vip_port_id"];
            let address = floating.iter().find(to_vip).map(|floating| text(floating, "/floating_ip_address").parse());
            let Some(Ok(address)) = address else { continue };
            let mut targets = BTreeMap::new();
            for listener in listeners.iter().filter(|one| one["loadbalancers"][0]["id"] == balancer["id"]) {
                let Some(port) = listener["protocol_port"].as_u64().and_then(|port| u16::try_from(port).ok()) else {
                    continue;
                };
                let path = format!("/v2/lbaas/pools/{}/members", text(listener, "/default_pool_id"));
                let members = match listener["default_pool_id"].is_string() {
                    true => self.cloud.list("load-balancer", &path, "members").await,
                    false => Vec::new(),
                };
                targets.insert(port, members.iter().filter_map(|member| self.node(member, &ports)).collect());
            }
            found.insert(address, targets);
        }
        found
    }

    /// Where the node behind a member is reached.
    fn node(&self, member: &Value, ports: &[Value]) -> Option<SocketAddr> {
        let has = |port: &&Value| {
            port["fixed_ips"]
                .as_array()
                .is_some_and(|fixed| fixed.iter().any(|ip| ip["ip_address"] == member["address"]))
        };
        let server = ports.iter().filter(has).find_map(|port| self.running.get(text(port, "/device_id")))?;
        Some(SocketAddr::from((server.address, u16::try_from(member["protocol_port"].as_u64()?).ok()?)))
    }
}

fn boot(server: &Value) -> Boot {
    let user_data = text(server, "/OS-EXT-SRV-ATTR:user_data");
    Boot {
        name: text(server, "/name").to_owned(),
        user_data: base64::engine::general_purpose::STANDARD.decode(user_data).expect("user data is base64"),
        zone: text(server, "/OS-EXT-AZ:availability_zone").to_owned(),
        image: Value::Null,
        metadata: server["metadata"].clone(),
    }
}
