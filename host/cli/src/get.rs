//! `capwasm get kubeconfig`: R8, the Secret `<cluster>-kubeconfig` as it is.

use anyhow::{Context, Result, bail};
use clap::Args;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;

use crate::kubeconfig::{Connection, Namespace};

/// Options of `capwasm get kubeconfig`.
#[derive(Args)]
pub struct Options {
    /// Name of the Cluster.
    cluster: String,
    #[command(flatten)]
    namespace: Namespace,
    #[command(flatten)]
    connection: Connection,
}

pub async fn run(options: Options) -> Result<()> {
    let client = options.connection.client().await?;
    print!("{}", kubeconfig(client, &options.namespace.namespace, &options.cluster).await?);
    Ok(())
}

pub async fn kubeconfig(client: kube::Client, namespace: &str, cluster: &str) -> Result<String> {
    let name = format!("{cluster}-kubeconfig");
    let secrets: Api<Secret> = Api::namespaced(client, namespace);
    let Some(secret) = secrets.get_opt(&name).await.context("unable to read the Secret")? else {
        bail!(
            "there is no Secret {namespace}/{name}: the control plane of cluster {cluster:?} has not made it yet, or there is no such cluster"
        );
    };
    let value = secret
        .data
        .unwrap_or_default()
        .remove("value")
        .with_context(|| format!("Secret {namespace}/{name} has no key \"value\""))?;
    String::from_utf8(value.0).with_context(|| format!("Secret {namespace}/{name} is not text"))
}
