//! `pods/portforward` over a WebSocket, in the channel protocol that kube-rs speaks.
//!
//! Port `i` of the request has two channels, whose number is the first byte of every binary message: `2i` carries data both
//! ways, `2i + 1` one error sentence to the client. Both begin with the port, little-endian, so that the client knows which
//! it is. The connection ends when all ports have, or the client closes it. kubectl's SPDY, and SPDY in a WebSocket, are
//! not spoken.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _};
use http::{HeaderValue, StatusCode, header};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::dispatch::{Call, Reply};
use crate::config::PortForward;
use crate::registry::{Locator, Registry};
use crate::request::Query;
use crate::status::{ApiError, ApiResult};

/// Subprotocol. Messages are binary; clients that also offer later ones accept this.
const PROTOCOL: &str = "v4.channel.k8s.io";
/// Ports of one request at most: a channel's number is a byte.
const MOST_PORTS: usize = 16;
/// Messages buffered per direction.
const QUEUE: usize = 16;
/// Largest message to the client, in bytes.
const CHUNK: usize = 16 << 10;
/// Bytes that a connection is read in at a time.
const READ_BUFFER: usize = 8 << 10;
/// Largest message from the client, in bytes.
const MOST_BYTES: usize = 4 << 20;
/// How long a client may take to close its side.
const FAREWELL: Duration = Duration::from_secs(5);

type Socket = WebSocketStream<TokioIo<Upgraded>>;

pub(super) fn answer(registry: &Registry, call: &Call, at: &Locator) -> ApiResult<Reply> {
    let pod =
        registry.find(at)?.ok_or_else(|| ApiError::not_found(&at.resource.group, &at.resource.plural, &at.name))?;
    let ports = ports(&call.query)?;
    let key = handshake(call)?;
    let ways = registry.config.port_forward.clone();
    let ways = ways.ok_or_else(|| ApiError::new(501, "NotImplemented", "this server does not lead to pods"))?;
    let upgrade = call.upgrade.clone().ok_or_else(|| {
        ApiError::bad_request("port-forwarding takes over the connection, which this one does not allow: use HTTP/1.1")
    })?;
    let shutdown = call.shutdown.clone();
    tokio::spawn(async move {
        let forwarding = async {
            match upgrade.await {
                Ok(connection) => {
                    let config = WebSocketConfig::default()
                        .max_message_size(Some(MOST_BYTES))
                        .max_frame_size(Some(MOST_BYTES))
                        // The default is 128 KiB for each connection.
                        .read_buffer_size(READ_BUFFER);
                    let socket =
                        WebSocketStream::from_raw_socket(TokioIo::new(connection), Role::Server, Some(config)).await;
                    forward(socket, ways, pod, ports).await;
                }
                Err(error) => tracing::debug!(%error, "the connection was not handed over for port-forwarding"),
            }
        };
        tokio::select! {
            () = forwarding => {}
            () = shutdown.cancelled() => {}
        }
    });
    let accept = HeaderValue::from_str(&derive_accept_key(key.as_bytes()));
    let accept = accept.map_err(|_| ApiError::bad_request("Sec-WebSocket-Key is no key"))?;
    Ok(Reply {
        headers: vec![
            (header::CONNECTION, HeaderValue::from_static("Upgrade")),
            (header::UPGRADE, HeaderValue::from_static("websocket")),
            (header::SEC_WEBSOCKET_ACCEPT, accept),
            (header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL)),
        ],
        ..Reply::json(Bytes::new()).code(StatusCode::SWITCHING_PROTOCOLS)
    })
}

/// Parses `ports=80,443` or `ports=80&ports=443`.
fn ports(query: &Query) -> ApiResult<Vec<u16>> {
    let wrong = |port: &str| ApiError::bad_request(format!("query parameter \"ports\": {port:?} is not a port"));
    let all = query.all("ports").flat_map(|ports| ports.split(',')).filter(|port| !port.is_empty());
    let ports = all
        .map(|port| port.parse().ok().filter(|port| *port != 0).ok_or_else(|| wrong(port)))
        .collect::<ApiResult<Vec<u16>>>()?;
    if ports.is_empty() {
        return Err(ApiError::bad_request("query parameter \"ports\" is required"));
    }
    if ports.len() > MOST_PORTS {
        return Err(ApiError::bad_request(format!("at most {MOST_PORTS} ports can be forwarded at once")));
    }
    Ok(ports)
}

/// The client's `Sec-WebSocket-Key`, if it asks for a WebSocket with [`PROTOCOL`].
fn handshake(call: &Call) -> ApiResult<&str> {
    let has = |name: header::HeaderName, wanted: &str| {
        let mut tokens = call.header(name).split(',').map(str::trim);
        tokens.any(|token| token.eq_ignore_ascii_case(wanted))
    };
    if !has(header::CONNECTION, "upgrade") || !has(header::UPGRADE, "websocket") {
        return Err(ApiError::bad_request("Upgrade request required: port-forwarding goes over a WebSocket"));
    }
    if call.header(header::SEC_WEBSOCKET_VERSION) != "13" {
        return Err(ApiError::bad_request("Sec-WebSocket-Version has to be 13"));
    }
    if !has(header::SEC_WEBSOCKET_PROTOCOL, PROTOCOL) {
        return Err(ApiError::bad_request(format!("the WebSocket has to offer the protocol {PROTOCOL}")));
    }
    let key = call.header(header::SEC_WEBSOCKET_KEY);
    let decoded = base64::engine::general_purpose::STANDARD.decode(key).unwrap_or_default();
    if decoded.len() == 16 { Ok(key) } else { Err(ApiError::bad_request("Sec-WebSocket-Key is no key")) }
}

async fn forward(socket: Socket, ways: Arc<dyn PortForward>, pod: Value, ports: Vec<u16>) {
    let (mut sink, mut stream) = socket.split();
    let (to_client, outgoing) = mpsc::channel(QUEUE);
    let pod = Arc::new(pod);
    // Aborted with this function.
    let mut tasks = JoinSet::new();
    let mut inputs = Vec::with_capacity(ports.len());
    for (index, port) in (0_u8..).zip(ports) {
        let (input, from_client) = mpsc::channel(QUEUE);
        inputs.push(input);
        tasks.spawn(one_port(
            Port { index, port, to_client: to_client.clone() },
            ways.clone(),
            pod.clone(),
            from_client,
        ));
    }
    drop(to_client);
    tokio::select! {
        () = send(&mut sink, outgoing) => {}
        () = receive(&mut stream, inputs) => {}
    }
    drop(tasks);
    // Never fails: they are the two halves of one socket.
    let Ok(socket) = sink.reunite(stream) else { return };
    if tokio::time::timeout(FAREWELL, close(socket)).await.is_err() {
        tracing::debug!("a client of a port-forward did not close its connection");
    }
}

/// Sends the close frame, waits for the client's, then closes the connection: clients report any other order as an
/// error.
async fn close(mut socket: Socket) {
    let _ = socket.close(None).await;
    while let Some(Ok(_)) = socket.next().await {}
    let _ = socket.get_mut().shutdown().await;
}

/// Sends to the client until all ports have ended.
async fn send(sink: &mut SplitSink<Socket, Message>, mut outgoing: mpsc::Receiver<Message>) {
    while let Some(message) = outgoing.recv().await {
        if sink.send(message).await.is_err() {
            return;
        }
    }
}

/// Receives from the client until it closes.
async fn receive(stream: &mut SplitStream<Socket>, inputs: Vec<mpsc::Sender<Bytes>>) {
    while let Some(Ok(message)) = stream.next().await {
        match message {
            Message::Binary(mut bytes) if bytes.len() > 1 => {
                let channel = bytes.split_to(1)[0];
                // The client has nothing to say on error channels.
                let input = inputs.get(usize::from(channel / 2)).filter(|_| channel % 2 == 0);
                let Some(input) = input else { continue };
                // A port that has ended takes nothing more; the others go on.
                let _ = input.send(bytes).await;
            }
            Message::Close(_) => return,
            _ => {}
        }
    }
}

struct Port {
    index: u8,
    port: u16,
    to_client: mpsc::Sender<Message>,
}

impl Port {
    /// Sends on the data channel (0) or the error channel (1). Returns whether the client is still there.
    async fn say(&self, channel: u8, bytes: &[u8]) -> bool {
        let mut message = Vec::with_capacity(bytes.len() + 1);
        message.push(2 * self.index + channel);
        message.extend_from_slice(bytes);
        self.to_client.send(Message::binary(message)).await.is_ok()
    }
}

async fn one_port(port: Port, ways: Arc<dyn PortForward>, pod: Arc<Value>, mut from_client: mpsc::Receiver<Bytes>) {
    let number = port.port.to_le_bytes();
    if !(port.say(0, &number).await && port.say(1, &number).await) {
        return;
    }
    let stream = match ways.connect(&pod, port.port).await {
        Ok(stream) => stream,
        Err(sentence) => {
            port.say(1, sentence.as_bytes()).await;
            return;
        }
    };
    let (mut from_pod, mut to_pod) = tokio::io::split(stream);
    let down = async {
        let mut buffer = vec![0; CHUNK];
        while let Ok(read @ 1..) = from_pod.read(&mut buffer).await {
            if !port.say(0, &buffer[..read]).await {
                return;
            }
        }
    };
    // Ends early when the pod takes nothing more, and with it what is sent there; it may still have something to say.
    let up = async move {
        while let Some(bytes) = from_client.recv().await {
            if to_pod.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = down => {}
        () = async { up.await; std::future::pending().await } => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn ports_are_given_in_one_parameter_or_several() {
        let rows = [
            ("ports=80", Some(vec![80])),
            ("ports=80,443", Some(vec![80, 443])),
            ("ports=80&ports=443", Some(vec![80, 443])),
            ("", None),
            ("ports=0", None),
            ("ports=80,x", None),
            ("ports=70000", None),
            ("ports=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", None),
        ];
        for (query, expected) in rows {
            assert_eq!(ports(&Query::parse(query)).ok(), expected, "{query}");
        }
    }
}
