//! `capwasm describe cluster`: collect what belongs to a Cluster, and show it.

use anyhow::{Context, Result, bail};
use capwasm_api::names::{CORE_GROUP, labels};
use capwasm_object::{json, meta};
use clap::Args;
use jiff::Timestamp;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use serde_json::Value;

use crate::kubeconfig::{Connection, Namespace};
use crate::output::Output;
use crate::tree::{self, Node};

/// Options of `capwasm describe cluster`.
#[derive(Args)]
pub struct Options {
    /// Name of the Cluster.
    cluster: String,
    /// Every condition of every object, not only the one that sums them up.
    #[arg(long)]
    show_conditions: bool,
    #[command(flatten)]
    namespace: Namespace,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    output: Output,
}

pub async fn run(options: Options) -> Result<()> {
    let client = options.connection.client().await?;
    let tree = collect(&client, &options.namespace.namespace, &options.cluster).await?;
    options.output.print(&tree, |tree| tree::render(tree, options.show_conditions, Timestamp::now()))
}

/// A Cluster with all related objects.
pub async fn collect(client: &kube::Client, namespace: &str, name: &str) -> Result<Node> {
    let reader = Reader { client, namespace };
    let Some(cluster) = reader.get(CORE_GROUP, "Cluster", name).await? else {
        bail!("there is no Cluster {namespace}/{name}");
    };
    let machines = reader.list("Machine", name).await?;
    let mut root = Node::of(&cluster);
    if let Some(infrastructure) = reader.referenced(cluster.pointer("/spec/infrastructureRef")).await? {
        root.children.push(Node::of(&infrastructure).labelled("ClusterInfrastructure"));
    }
    if let Some(control_plane) = reader.referenced(cluster.pointer("/spec/controlPlaneRef")).await? {
        let mut node = Node::of(&control_plane).labelled("ControlPlane");
        node.children = reader.machines(&machines, meta::uid(&control_plane)).await?;
        root.children.push(node);
    }
    let sets = reader.list("MachineSet", name).await?;
    let mut workers = Node::group("Workers");
    for deployment in reader.list("MachineDeployment", name).await? {
        let mut node = Node::of(&deployment);
        for set in sets.iter().filter(|set| owned_by(set, meta::uid(&deployment))) {
            node.children.extend(reader.machines(&machines, meta::uid(set)).await?);
        }
        workers.children.push(node);
    }
    for set in sets.iter().filter(|set| !has_owner(set, "MachineDeployment")) {
        let mut node = Node::of(set);
        node.children = reader.machines(&machines, meta::uid(set)).await?;
        workers.children.push(node);
    }
    for pool in reader.list("MachinePool", name).await? {
        let mut node = Node::of(&pool);
        let template = "/spec/template/spec";
        let infrastructure = reader.referenced(pool.pointer(&format!("{template}/infrastructureRef"))).await?;
        node.children.extend(infrastructure.map(|found| Node::of(&found).labelled("MachinePoolInfrastructure")));
        let bootstrap = reader.referenced(pool.pointer(&format!("{template}/bootstrap/configRef"))).await?;
        node.children.extend(bootstrap.map(|found| Node::of(&found).labelled("BootstrapConfig")));
        node.children.extend(reader.machines(&machines, meta::uid(&pool)).await?);
        workers.children.push(node);
    }
    if !workers.children.is_empty() {
        root.children.push(workers);
    }
    let lone: Vec<Value> = machines.iter().filter(|machine| has_owner(machine, "Cluster")).cloned().collect();
    root.children.extend(reader.machines(&lone, meta::uid(&cluster)).await?);
    Ok(root)
}

fn owned_by(object: &Value, uid: &str) -> bool {
    json::items(object, "/metadata/ownerReferences").iter().any(|owner| json::text(owner, "/uid") == Some(uid))
}

fn has_owner(object: &Value, kind: &str) -> bool {
    json::items(object, "/metadata/ownerReferences").iter().any(|owner| meta::kind(owner) == kind)
}

struct Reader<'a> {
    client: &'a kube::Client,
    namespace: &'a str,
}

impl Reader<'_> {
    async fn api(&self, group: &str, kind: &str) -> Result<Option<(Api<DynamicObject>, ApiResource)>> {
        let found = if group == CORE_GROUP {
            Some(ApiResource::from_gvk(&GroupVersionKind::gvk(CORE_GROUP, capwasm_api::names::CORE_VERSION, kind)))
        } else {
            let group = kube::discovery::group(self.client, group).await;
            group.ok().and_then(|group| group.recommended_kind(kind)).map(|(resource, _)| resource)
        };
        Ok(found.map(|resource| (Api::namespaced_with(self.client.clone(), self.namespace, &resource), resource)))
    }

    async fn get(&self, group: &str, kind: &str, name: &str) -> Result<Option<Value>> {
        let Some((api, resource)) = self.api(group, kind).await? else { return Ok(None) };
        let found =
            api.get_opt(name).await.with_context(|| format!("unable to read {kind} {}/{name}", self.namespace))?;
        found.map(|object| typed(&object, &resource)).transpose()
    }

    async fn list(&self, kind: &str, cluster: &str) -> Result<Vec<Value>> {
        let Some((api, resource)) = self.api(CORE_GROUP, kind).await? else { return Ok(Vec::new()) };
        let of_cluster = ListParams::default().labels(&format!("{}={cluster}", labels::CLUSTER_NAME));
        let found = api.list(&of_cluster).await.with_context(|| format!("unable to list {kind}s"))?;
        found.items.iter().map(|object| typed(object, &resource)).collect()
    }

    async fn referenced(&self, reference: Option<&Value>) -> Result<Option<Value>> {
        let Some(reference) = reference else { return Ok(None) };
        let part = |pointer| json::text(reference, pointer).unwrap_or_default();
        self.get(part("/apiGroup"), part("/kind"), part("/name")).await
    }

    /// The OpenStackServer of an OpenStackMachine, which has the same name; `None` for other kinds.
    async fn server(&self, infrastructure: &Value) -> Result<Option<Value>> {
        if meta::kind(infrastructure) != "OpenStackMachine" {
            return Ok(None);
        }
        let gvk = GroupVersionKind::gvk(meta::group(infrastructure), "v1alpha1", "OpenStackServer");
        let resource = ApiResource::from_gvk(&gvk);
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), self.namespace, &resource);
        let name = meta::name(infrastructure);
        let found = api.get_opt(name).await.with_context(|| format!("unable to read OpenStackServer {name}"))?;
        found.map(|object| typed(&object, &resource)).transpose()
    }

    /// Machines of one owner, with their infrastructure and bootstrap configuration.
    async fn machines(&self, machines: &[Value], owner: &str) -> Result<Vec<Node>> {
        let mut nodes = Vec::new();
        for machine in machines.iter().filter(|machine| owned_by(machine, owner)) {
            let mut node = Node::of(machine);
            if let Some(infrastructure) = self.referenced(machine.pointer("/spec/infrastructureRef")).await? {
                let mut of_machine = Node::of(&infrastructure).labelled("MachineInfrastructure");
                of_machine.children.extend(self.server(&infrastructure).await?.as_ref().map(Node::of));
                node.children.push(of_machine);
            }
            if let Some(bootstrap) = self.referenced(machine.pointer("/spec/bootstrap/configRef")).await? {
                node.children.push(Node::of(&bootstrap).labelled("BootstrapConfig"));
            }
            nodes.push(node);
        }
        Ok(nodes)
    }
}

/// Adds apiVersion and kind, which items of a list may lack.
fn typed(object: &DynamicObject, resource: &ApiResource) -> Result<Value> {
    let mut value = serde_json::to_value(object)?;
    json::set(&mut value, &["apiVersion"], resource.api_version.clone());
    json::set(&mut value, &["kind"], resource.kind.clone());
    Ok(value)
}
