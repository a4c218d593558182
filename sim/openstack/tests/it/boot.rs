//! Servers that boot as simulated Kubernetes nodes.

use base64::Engine as _;
use capwasm_sim_openstack::{Nodes, OpenStack, Options};
use serde_json::{Value, json};

use super::client::{Client, id};
use capwasm_sim_engine::testing::Sim;
use capwasm_sim_node::testing::{Certificates, TOKEN, VERSION, condition, get, init_config, join_config, until};

const LBAAS: &str = "/load-balancer/v2/lbaas";

/// User data as the kubeadm bootstrap provider makes it.
fn user_data(files: &[(String, String)], command: &str) -> String {
    let files: Vec<Value> = files
        .iter()
        .map(|(path, content)| json!({ "path": path, "owner": "root:root", "permissions": "0640", "content": content }))
        .collect();
    let done = "echo success > /run/cluster-api/bootstrap-success.complete";
    let config =
        json!({ "write_files": files, "runcmd": ["mkdir -p /run/cluster-api", format!("{command} && {done}")] });
    // JSON is YAML.
    let text = format!("## template: jinja\n#cloud-config\n{config}\n");
    base64::engine::general_purpose::STANDARD.encode(text)
}

struct World {
    client: Client,
    group: String,
    network: String,
    subnet: String,
}

impl World {
    /// A server with a port of its own that lets in the API server's port: id of the server and address of the port.
    async fn server(&self, name: &str, data: &str) -> (String, String) {
        let given = json!({ "network_id": self.network, "name": name, "security_groups": [self.group] });
        let port = self.client.make("/networking/v2.0/ports", "port", given).await;
        let address = port["fixed_ips"][0]["ip_address"].as_str().unwrap().to_owned();
        (self.client.server(name, &[&id(&port)], json!({ "user_data": data })).await, address)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn user_data_makes_a_cluster_behind_a_load_balancer_with_a_floating_ip() {
    let directory = tempfile::tempdir().unwrap();
    let sim = Sim::start(directory.path()).await;
    let nodes = Nodes { engine: directory.path().join("docker.sock"), version: VERSION.to_owned() };
    let cloud = OpenStack::start(Options { nodes: Some(nodes), ..Options::default() }).await.unwrap();
    let client = Client::of(&cloud, "demo").await;
    let (network, subnet, _) = client.network("c", "10.6.0.0/24").await;
    let group = id(&client.make("/networking/v2.0/security-groups", "security_group", json!({ "name": "g" })).await);
    let world = World { client, group, network, subnet };
    let client = &world.client;

    // The endpoint comes first, as a cluster's infrastructure does.
    let active = async |balancer: &str| {
        let path = format!("{LBAAS}/loadbalancers/{balancer}");
        client.until(&path, |_, body| body["loadbalancer"]["provisioning_status"] == "ACTIVE").await
    };
    let given = json!({ "name": "lb", "vip_subnet_id": world.subnet });
    let balancer = id(&client.make(&format!("{LBAAS}/loadbalancers"), "loadbalancer", given).await);
    let found = active(&balancer).await;
    let given =
        json!({ "floating_network_id": client.public().await, "port_id": found["loadbalancer"]["vip_port_id"] });
    let floating = client.make("/networking/v2.0/floatingips", "floatingip", given).await;
    let endpoint = format!("{}:6443", floating["floating_ip_address"].as_str().unwrap());
    let given = json!({ "protocol": "TCP", "protocol_port": 6443, "loadbalancer_id": balancer });
    let listener = id(&client.make(&format!("{LBAAS}/listeners"), "listener", given).await);
    active(&balancer).await;
    let given = json!({ "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "listener_id": listener });
    let pool = id(&client.make(&format!("{LBAAS}/pools"), "pool", given).await);
    active(&balancer).await;

    let certificates = Certificates::generate();
    let mut files = certificates.files.clone();
    let config = init_config(&endpoint, "{{ ds.meta_data.name }}").replace(
        "- name: provider-id\n    value: docker:////{{ ds.meta_data.name }}",
        "- name: cloud-provider\n    value: external",
    );
    assert!(config.contains("external"), "{config}");
    files.push(("/run/kubeadm/kubeadm.yaml".to_owned(), config));
    let data = user_data(&files, "kubeadm init --config /run/kubeadm/kubeadm.yaml");
    let (server, address) = world.server("cp-0", &data).await;
    let given = json!({ "name": "cp-0", "address": address, "protocol_port": 6443, "subnet_id": world.subnet });
    client.make(&format!("{LBAAS}/pools/{pool}/members"), "member", given).await;

    let admin = certificates.admin(&endpoint);
    let node = async |name: &str| get(&admin, &format!("/api/v1/nodes/{name}")).await.unwrap_or_default();
    let found = until("the first node", || node("cp-0"), |found| condition(found, "Ready") == "True").await;
    assert_eq!(found["spec"]["providerID"], format!("openstack://RegionOne/{server}").as_str());
    assert_eq!(found["metadata"]["labels"]["capwasm.dev/simulated"], "true");

    let join = join_config(&endpoint, TOKEN, &certificates.hash(), false);
    let files = [("/run/kubeadm/kubeadm-join-config.yaml".to_owned(), join)];
    let data = user_data(&files, "kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml");
    let (worker, _) = world.server("md-0", &data).await;
    until("the worker", || node("md-0"), |found| condition(found, "Ready") == "True").await;
    let console = async || {
        let path = format!("/compute/v2.1/servers/{worker}/action");
        let (_, body) = client.ask("POST", &path, json!({ "os-getConsoleOutput": {} })).await;
        body["output"].as_str().unwrap_or_default().to_owned()
    };
    until("the console", console, |text| text.contains("runcmd ended with exit code 0")).await;

    // A deleted server takes its machine along.
    for server in [&worker, &server] {
        let path = format!("/compute/v2.1/servers/{server}");
        assert_eq!(client.delete(&path).await, 204);
        client.until(&path, |status, _| status == 404).await;
    }
    let containers =
        capwasm_sim_node::testing::call(&sim.docker, http::Method::GET, "/containers/json?all=1", Value::Null).await;
    assert_eq!(containers, json!([]));
    cloud.stop().await;
    sim.stop().await;
}
