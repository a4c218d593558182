//! Failures on request, and the journal.

use std::time::Duration;

use capwasm_sim_openstack::{OpenStack, Options};
use capwasm_sim_service::faults::{CallFault, Fault};
use serde_json::{Value, json};

use super::client::{Client, cloud};

#[tokio::test]
async fn calls_fail_each_in_its_services_way() {
    let (cloud, client) = cloud().await;
    for (path, status, expected) in [
        (
            "/networking/v2.0/ports",
            503,
            json!({ "NeutronError": { "type": "HTTPServiceUnavailable", "message": "simulated failure", "detail": "" } }),
        ),
        ("/compute/v2.1/servers", 500, json!({ "computeFault": { "code": 500, "message": "simulated failure" } })),
        ("/compute/v2.1/servers", 403, json!({ "forbidden": { "code": 403, "message": "simulated failure" } })),
        (
            "/load-balancer/v2/lbaas/pools",
            409,
            json!({ "faultcode": "Client", "faultstring": "simulated failure", "debuginfo": null }),
        ),
        (
            "/volume/v3/volumes",
            401,
            json!({ "error": { "code": 401, "title": "Unauthorized", "message": "The request you have made requires authentication." } }),
        ),
    ] {
        let fault = CallFault { method: "GET".into(), path: path.into(), count: Some(1), ..CallFault::status(status) };
        cloud.faults().inject(Fault::Call(fault));
        assert_eq!(client.ask("GET", path, Value::Null).await, (status, expected));
        assert_eq!(client.ask("GET", path, Value::Null).await.0, 200);
    }
    let fault =
        CallFault { path: "/networking/*".into(), retry_after: Some(7), count: Some(1), ..CallFault::status(429) };
    cloud.faults().inject(Fault::Call(fault));
    let answer = client.send("GET", "/networking/v2.0/ports", &Value::Null).await.unwrap();
    assert_eq!((answer.status, answer.headers["retry-after"].to_str().unwrap()), (429, "7"));
    cloud.stop().await;
}

#[tokio::test]
async fn the_nth_call_takes_effect_and_its_answer_is_lost() {
    let (cloud, client) = cloud().await;
    let fault = CallFault {
        method: "POST".into(),
        path: "/networking/v2.0/networks".into(),
        after: Some(1),
        count: Some(1),
        takes_effect: true,
        ..CallFault::status(0)
    };
    cloud.faults().inject(Fault::Call(fault));
    cloud.journal().clear();
    let path = "/networking/v2.0/networks";
    client.make(path, "network", json!({ "name": "a" })).await;
    let lost = client.send("POST", path, &json!({ "network": { "name": "b" } })).await;
    assert!(lost.is_err(), "{lost:?}");
    client.make(path, "network", json!({ "name": "c" })).await;
    assert_eq!(cloud.resources(), ["networks/a", "networks/b", "networks/c"]);
    assert_eq!(cloud.journal().count("POST", path), 3);
    let statuses: Vec<u16> = cloud.journal().calls().iter().map(|call| call.status).collect();
    assert_eq!(statuses, [201, 0, 201]);
    cloud.stop().await;
}

#[tokio::test]
async fn a_late_answer_is_the_right_one() {
    let (cloud, client) = cloud().await;
    let fault = CallFault { path: "/networking/*".into(), delay_ms: 50, count: Some(1), ..CallFault::status(200) };
    cloud.faults().inject(Fault::Call(fault));
    let before = tokio::time::Instant::now();
    assert_eq!(client.get("/networking/v2.0/networks").await["networks"][0]["name"], "public");
    assert!(before.elapsed() >= Duration::from_millis(50));
    cloud.stop().await;
}

#[tokio::test]
async fn faults_journal_and_resources_are_reached_from_outside() {
    let (cloud, client) = cloud().await;
    let fault = json!({ "method": "GET", "path": "/image/*", "status": 500 });
    let (status, body) = client.ask("POST", "/capwasm/faults", fault).await;
    assert_eq!(status, 201);
    assert_eq!(client.ask("GET", "/image/v2/images", Value::Null).await.0, 500);
    let path = format!("/capwasm/faults/{}", body["id"].as_str().unwrap());
    assert_eq!(client.delete(&path).await, 204);
    assert_eq!(client.delete(&path).await, 404);
    assert_eq!(client.ask("GET", "/image/v2/images", Value::Null).await.0, 200);
    assert_eq!(client.ask("POST", "/capwasm/faults", json!({ "nonsense": 1 })).await.0, 400);
    let calls = client.get("/capwasm/calls").await;
    assert!(calls.as_array().unwrap().iter().any(|call| call["path"] == "/image/v2/images" && call["status"] == 500));
    assert_eq!(client.delete("/capwasm/calls").await, 204);
    assert!(cloud.journal().is_empty());
    assert_eq!(client.get("/capwasm/resources").await, json!([]));
    cloud.stop().await;
}

#[tokio::test]
async fn tokens_end_with_their_time() {
    let options = Options { token_lifetime: Duration::ZERO, ..Options::default() };
    let cloud = OpenStack::start(options).await.unwrap();
    let client = Client::of(&cloud, "demo").await;
    assert_eq!(client.ask("GET", "/networking/v2.0/networks", Value::Null).await.0, 401);
    cloud.stop().await;
}
