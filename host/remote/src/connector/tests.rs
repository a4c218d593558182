//! API servers that misbehave, and what a client makes of them.
#![allow(clippy::unwrap_used, reason = "tests")]

use capwasm_test_support::hostile::{Behaviour, Ending, ON_THE_WAY, Script, Server, behaviours};
use futures::TryStreamExt;
use kube::{Api, api::WatchParams};

use super::*;
use crate::explain;

fn limits() -> Limits {
    Limits {
        head: Duration::from_millis(500),
        body: Duration::from_millis(500),
        header_bytes: 16 << 10,
        body_bytes: 1 << 20,
        line_bytes: 256 << 10,
        watch_bytes: 1 << 20,
    }
}

fn client_of(server: &Server, limits: Limits) -> Client {
    let config = Config::new(format!("http://{}", server.address).parse().unwrap());
    client(&config, Connections::Shared, limits).unwrap()
}

/// That the connection has ended, and that no more was read than may be.
async fn left(server: Server, name: &str) {
    assert!(server.sent() < ON_THE_WAY, "{name}: {} bytes", server.sent());
    assert!(tokio::task::spawn_blocking(move || server.left()).await.unwrap(), "{name}: the connection ends");
}

async fn get(client: &Client) -> Result<String, String> {
    let request = http::Request::get("/api/v1/nodes/n").body(Vec::new()).unwrap();
    client.request_text(request).await.map_err(|error| explain(&error))
}

/// An API server that answers with an empty object.
fn good() -> Server {
    let first = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}".to_vec();
    Server::start(Script { first, ..Script::default() })
}

/// All events of a watch, up to what ends it.
async fn watch(client: &Client) -> String {
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(client.clone());
    let events = async { nodes.watch(&WatchParams::default(), "0").await?.try_for_each(|_| async { Ok(()) }).await };
    events.await.map_or_else(|error| explain(&error), |()| "the watch ended".to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_api_server_is_left_at_a_limit_and_named_and_its_neighbour_answers_meanwhile() {
    let neighbour = client_of(&good(), limits());
    for Behaviour { name, script, ending } in behaviours() {
        let server = Server::start(script);
        let client = client_of(&server, limits());
        let (told, neighbours) = tokio::join!(get(&client), get(&neighbour));
        assert_eq!(neighbours.as_deref(), Ok("{}"), "{name}");
        let told = told.unwrap_err();
        let named = match ending {
            Ending::TooLarge => told.contains("the API server's answer is larger than 1048576 bytes"),
            Ending::Late => told.contains("the API server did not answer") || told.contains("was not complete after"),
            Ending::Headers | Ending::Broken => !told.is_empty(),
        };
        assert!(named, "{name}: {told}");
        left(server, name).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_is_left_at_a_limit_of_its_events_and_of_the_whole() {
    let first = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    let event = "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"1\"}}}\n";
    let rows = [
        (
            "an event without end",
            vec![b'x'; 64 << 10],
            "an event of the API server's watch is larger than 262144 bytes",
        ),
        (
            "events without end",
            event.repeat(500).into_bytes(),
            "a watch of the API server brought more than 1048576 bytes",
        ),
    ];
    for (name, again, expected) in rows {
        let server = Server::start(Script { first: first.clone(), again, ..Script::default() });
        let told = watch(&client_of(&server, limits())).await;
        assert!(told.contains(expected), "{name}: {told}");
        left(server, name).await;
    }
}
