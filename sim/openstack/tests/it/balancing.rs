//! Octavia, and traffic through it.

use std::time::Duration;

use capwasm_sim_openstack::{Delays, OpenStack, Options};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::client::{Client, cloud, id};

const LBAAS: &str = "/load-balancer/v2/lbaas";

fn fault(body: &Value) -> &str {
    body["faultstring"].as_str().unwrap_or_default()
}

async fn active(client: &Client, balancer: &str) {
    let path = format!("{LBAAS}/loadbalancers/{balancer}");
    client.until(&path, |_, body| body["loadbalancer"]["provisioning_status"] == "ACTIVE").await;
}

/// A load balancer with a listener on 6443 and a pool: ids.
async fn balancer(client: &Client, subnet: &str) -> (String, String, String) {
    let given = json!({ "name": "lb", "vip_subnet_id": subnet });
    let made = id(&client.make(&format!("{LBAAS}/loadbalancers"), "loadbalancer", given).await);
    active(client, &made).await;
    let given = json!({ "name": "l", "protocol": "TCP", "protocol_port": 6443, "loadbalancer_id": made });
    let listener = id(&client.make(&format!("{LBAAS}/listeners"), "listener", given).await);
    active(client, &made).await;
    let given = json!({ "name": "p", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "listener_id": listener });
    let pool = id(&client.make(&format!("{LBAAS}/pools"), "pool", given).await);
    active(client, &made).await;
    (made, listener, pool)
}

#[tokio::test]
async fn what_changes_is_immutable_until_it_has_changed() {
    let slow = Duration::from_secs(3600);
    let delays = Delays { load_balancer: slow, ..Delays::default() };
    let cloud = OpenStack::start(Options { delays, ..Options::default() }).await.unwrap();
    let client = Client::of(&cloud, "demo").await;
    let (_, subnet, _) = client.network("c", "10.6.0.0/24").await;
    let given = json!({ "name": "lb", "vip_subnet_id": subnet });
    let made = client.make(&format!("{LBAAS}/loadbalancers"), "loadbalancer", given).await;
    assert_eq!(made["provisioning_status"], "PENDING_CREATE");
    let made = id(&made);
    let given = json!({ "listener": { "protocol": "TCP", "protocol_port": 1, "loadbalancer_id": made } });
    let (status, body) = client.ask("POST", &format!("{LBAAS}/listeners"), given).await;
    let expected = format!("Load Balancer {made} is immutable and cannot be updated.");
    assert_eq!((status, fault(&body)), (409, expected.as_str()));
    let (status, body) = client.ask("DELETE", &format!("{LBAAS}/loadbalancers/{made}?cascade=true"), Value::Null).await;
    let expected = format!("Invalid state PENDING_CREATE of loadbalancer resource {made}");
    assert_eq!((status, fault(&body)), (409, expected.as_str()));
    cloud.stop().await;
}

#[tokio::test]
async fn a_load_balancer_takes_all_that_is_its_own_along() {
    let (cloud, client) = cloud().await;
    let (network, subnet, _) = client.network("c", "10.6.0.0/24").await;
    let (made, listener, pool) = balancer(&client, &subnet).await;
    let again = json!({ "listener": { "protocol": "TCP", "protocol_port": 6443, "loadbalancer_id": made } });
    let (status, body) = client.ask("POST", &format!("{LBAAS}/listeners"), again).await;
    let expected = "Another Listener on this Load Balancer is already using protocol TCP and protocol_port 6443";
    assert_eq!((status, fault(&body)), (409, expected));
    let monitor = json!({ "name": "m", "pool_id": pool, "type": "TCP", "delay": 10, "timeout": 5, "max_retries": 5 });
    client.make(&format!("{LBAAS}/healthmonitors"), "healthmonitor", monitor).await;
    active(&client, &made).await;

    let path = format!("{LBAAS}/pools/{pool}/members");
    let member =
        |address: &str| json!({ "name": address, "address": address, "protocol_port": 6443, "subnet_id": subnet });
    let wanted = json!({ "members": [member("10.6.0.10"), member("10.6.0.11")] });
    assert_eq!(client.ask("PUT", &path, wanted).await.0, 202);
    let (status, body) = client.ask("PUT", &path, json!({ "members": [] })).await;
    if status == 409 {
        assert_eq!(fault(&body), format!("Pool {pool} is immutable and cannot be updated."));
    }
    active(&client, &made).await;
    assert_eq!(client.ask("PUT", &path, json!({ "members": [member("10.6.0.11")] })).await.0, 202);
    active(&client, &made).await;
    let members = client.get(&path).await;
    assert_eq!(members["members"].as_array().unwrap().len(), 1);
    assert_eq!(members["members"][0]["address"], "10.6.0.11");
    let shown = client.get(&format!("{LBAAS}/pools/{pool}")).await;
    assert_eq!(shown["pool"]["listeners"], json!([{ "id": listener }]));
    assert!(shown["pool"]["healthmonitor_id"].is_string());

    let path = format!("{LBAAS}/loadbalancers/{made}");
    let vip = client.get(&path).await["loadbalancer"]["vip_port_id"].as_str().unwrap().to_owned();
    let (status, body) = client.ask("DELETE", &path, Value::Null).await;
    let expected = format!("Validation failure: Cannot delete Load Balancer {made} - it has children");
    assert_eq!((status, fault(&body)), (400, expected.as_str()));
    assert_eq!(client.delete(&format!("{path}?cascade=true")).await, 204);
    client.until(&path, |status, _| status == 404).await;
    assert_eq!(client.ask("GET", &format!("/networking/v2.0/ports/{vip}"), Value::Null).await.0, 404);
    let left: Vec<String> = cloud
        .resources()
        .into_iter()
        .filter(|name| name.starts_with("listeners/") || name.starts_with("pools/"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
    assert!(!network.is_empty());
    cloud.stop().await;
}

#[tokio::test]
async fn ovn_refuses_what_it_cannot_do() {
    let (cloud, client) = cloud().await;
    let (_, subnet, _) = client.network("c", "10.6.0.0/24").await;
    let given = json!({ "name": "lb", "vip_subnet_id": subnet, "provider": "ovn" });
    let made = id(&client.make(&format!("{LBAAS}/loadbalancers"), "loadbalancer", given).await);
    active(&client, &made).await;
    let pool =
        |algorithm: &str| json!({ "pool": { "protocol": "TCP", "lb_algorithm": algorithm, "loadbalancer_id": made } });
    assert_eq!(client.ask("POST", &format!("{LBAAS}/pools"), pool("ROUND_ROBIN")).await.0, 501);
    assert_eq!(client.ask("POST", &format!("{LBAAS}/pools"), pool("SOURCE_IP_PORT")).await.0, 201);
    let given = json!({ "loadbalancer": { "vip_subnet_id": subnet, "provider": "nope" } });
    let (status, body) = client.ask("POST", &format!("{LBAAS}/loadbalancers"), given).await;
    assert_eq!((status, fault(&body)), (400, "Provider 'nope' is not enabled."));
    cloud.stop().await;
}

#[tokio::test]
async fn a_floating_ip_of_a_load_balancer_really_leads_to_its_members() {
    let (cloud, client) = cloud().await;
    let (_, subnet, _) = client.network("c", "10.6.0.0/24").await;
    let (made, _, pool) = balancer(&client, &subnet).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"hello").await.unwrap();
        }
    });
    let member = json!({ "address": "127.0.0.1", "protocol_port": port });
    client.make(&format!("{LBAAS}/pools/{pool}/members"), "member", member).await;
    let found = client.get(&format!("{LBAAS}/loadbalancers/{made}")).await;
    let given =
        json!({ "floating_network_id": client.public().await, "port_id": found["loadbalancer"]["vip_port_id"] });
    let floating = client.make("/networking/v2.0/floatingips", "floatingip", given).await;
    let address = format!("{}:6443", floating["floating_ip_address"].as_str().unwrap());
    let greeting = async || {
        let mut text = String::new();
        if let Ok(mut stream) = TcpStream::connect(&address).await {
            // A connection that breaks has said nothing.
            let _ = stream.read_to_string(&mut text).await;
        }
        text
    };
    let heard = capwasm_sim_node::testing::until("the greeting", greeting, |text| text == "hello").await;
    assert_eq!(heard, "hello");
    assert_eq!(client.delete(&format!("/networking/v2.0/floatingips/{}", id(&floating))).await, 204);
    let closed = async || TcpStream::connect(&address).await.is_err();
    capwasm_sim_node::testing::until("the end of the listener", closed, |closed| *closed).await;
    server.abort();
    cloud.stop().await;
}
