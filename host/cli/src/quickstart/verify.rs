//! Conditions of exit code 0: the Cluster is Provisioned and Available, every Machine Running, and the workload API
//! lists that many Ready nodes over TLS.

use std::time::Duration;

use anyhow::{Context, Result};
use capwasm_api::conditions;
use capwasm_object::{json, meta};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use serde_json::Value;

use super::progress::Progress;
use crate::kubeconfig;

/// Polling interval of what is shown.
const GLANCE: Duration = Duration::from_millis(150);

/// Waits until Cluster and Machines meet the conditions.
pub async fn provisioned(
    client: &kube::Client,
    namespace: &str,
    name: &str,
    machines: u32,
    progress: &Progress,
) -> Result<()> {
    let api = |kind: &str| -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk(capwasm_api::names::CORE_GROUP, capwasm_api::names::CORE_VERSION, kind);
        Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&gvk))
    };
    let of_cluster = ListParams::default().labels(&format!("{}={name}", capwasm_api::names::labels::CLUSTER_NAME));
    loop {
        let found = api("Machine").list(&of_cluster).await.context("unable to list Machines")?;
        let mut running = 0;
        for machine in &found.items {
            let machine = serde_json::to_value(machine)?;
            let phase = json::text(&machine, "/status/phase").unwrap_or("Pending");
            let done = phase == "Running";
            running += u32::from(done);
            progress.machine(meta::name(&machine), &state(&machine, phase), done);
        }
        let cluster = serde_json::to_value(api("Cluster").get(name).await.context("unable to read the Cluster")?)?;
        let available = conditions::is_true(&cluster, "Available");
        if running == machines
            && found.items.len() == machines as usize
            && available
            && json::text(&cluster, "/status/phase") == Some("Provisioned")
        {
            return Ok(());
        }
        tokio::time::sleep(GLANCE).await;
    }
}

/// The phase, and why it is not the next one.
fn state(machine: &Value, phase: &str) -> String {
    let why = ["BootstrapConfigReady", "InfrastructureReady", "NodeHealthy"]
        .iter()
        .filter_map(|name| conditions::get(machine, name))
        .find(|condition| condition.status != conditions::Status::True);
    match why {
        Some(why) if phase != "Running" && !why.message.is_empty() => {
            format!("{phase}: {}", why.message.lines().next().unwrap_or_default())
        }
        _ => phase.to_owned(),
    }
}

/// Lists nodes over TLS with the Secret's kubeconfig, until the expected number is Ready.
pub async fn nodes(text: &str, expected: u32) -> Result<()> {
    let nodes: Api<Node> = Api::all(kubeconfig::client_from_text(text).await?);
    loop {
        let list = nodes.list(&ListParams::default()).await.context("the workload cluster's API does not answer")?;
        let ready = list.items.iter().filter(|node| is_ready(node)).count();
        if ready == expected as usize {
            return Ok(());
        }
        tokio::time::sleep(GLANCE).await;
    }
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|conditions| {
        conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    })
}
