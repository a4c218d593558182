//! Where forwarded ports of simulated pods lead: pods of the host network are at their node's address.

use async_trait::async_trait;
use capwasm_apiserver::{ByteStream, PortForward};
use serde_json::Value;
use tokio::net::TcpStream;

/// Connects port-forwards to the port at `status.podIP`.
#[derive(Clone, Copy, Debug)]
pub struct ToPodAddress;

#[async_trait]
impl PortForward for ToPodAddress {
    async fn connect(&self, pod: &Value, port: u16) -> Result<Box<dyn ByteStream>, String> {
        let failed = |why: &str| format!("error forwarding port {port} to pod: {why}");
        let address = pod.pointer("/status/podIP").and_then(Value::as_str).filter(|address| !address.is_empty());
        let address = address.ok_or_else(|| failed("pod is not running"))?;
        let stream = TcpStream::connect((address, port)).await.map_err(|error| failed(&error.to_string()))?;
        // gRPC waits for small answers.
        let _ = stream.set_nodelay(true);
        Ok(Box::new(stream))
    }
}
