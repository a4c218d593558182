//! Owner and Cluster of an object. All reads go through the pass's view, so changes wake the object.

use std::sync::Arc;

use capwasm_api::contract::Contract;
use capwasm_api::names::{CORE_API_VERSION, CORE_GROUP, labels};
use capwasm_object::{json, meta};
use capwasm_reconcile::interests::{Fields, News};
use capwasm_reconcile::{CacheError, ClusterId, View};
use serde_json::Value;

use crate::field::provisioned;
use crate::role::Rules;

/// Kinds that may own the objects of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Cluster,
    /// A Machine, perhaps of a MachinePool.
    Machine,
    MachinePool,
}

impl Owner {
    fn kind(self) -> &'static str {
        match self {
            Owner::Cluster => "Cluster",
            Owner::Machine => "Machine",
            Owner::MachinePool => "MachinePool",
        }
    }

    /// What of it a provider's object has to hear of at once, whatever its role. The rest of its status, most of which says what happens
    /// to such objects, is told a little later; so is what it has from objects of providers.
    pub fn news(self) -> Fields {
        match self {
            Owner::Cluster => OF_CLUSTER,
            Owner::Machine => OF_MACHINE,
            Owner::MachinePool => OF_POOL,
        }
    }
}

const OF_CLUSTER: Fields = &[
    "/metadata/deletionTimestamp",
    "/metadata/annotations",
    "/metadata/labels",
    "/spec",
    "/status/initialization",
    "/status/failureDomains",
];
const OF_MACHINE: Fields = &[
    "/metadata/deletionTimestamp",
    "/metadata/annotations",
    "/metadata/finalizers",
    "/metadata/labels",
    "/metadata/ownerReferences",
    "/spec/bootstrap",
    "/spec/clusterName",
    "/spec/deletion",
    "/spec/failureDomain",
    "/spec/infrastructureRef",
    "/spec/minReadySeconds",
    "/spec/readinessGates",
    "/spec/taints",
    "/spec/version",
    "/status/deletion",
    "/status/nodeRef",
];
const OF_POOL: Fields = &[
    "/metadata/deletionTimestamp",
    "/metadata/annotations",
    "/metadata/labels",
    "/spec",
    "/status/initialization",
    "/status/nodeRefs",
];

/// Of a Machine, for those who neither boot it nor run it: not its bootstrap data either.
pub const OF_OTHERS_MACHINE: Fields = &[
    "/metadata/deletionTimestamp",
    "/metadata/annotations",
    "/metadata/finalizers",
    "/metadata/labels",
    "/metadata/ownerReferences",
    "/spec/clusterName",
    "/spec/deletion",
    "/spec/failureDomain",
    "/spec/infrastructureRef",
    "/spec/minReadySeconds",
    "/spec/readinessGates",
    "/spec/taints",
    "/spec/version",
    "/status/deletion",
    "/status/nodeRef",
];

/// What has to happen elsewhere first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// CamelCase reason of the condition.
    pub reason: &'static str,
    /// Message of the condition.
    pub message: &'static str,
}

/// Owners and Cluster of an object, as far as they exist.
#[derive(Clone, Debug, Default)]
pub struct Belongings {
    /// The Machine that owns the object.
    pub machine: Option<Arc<Value>>,
    /// The MachinePool that owns the object or its Machine.
    pub pool: Option<Arc<Value>>,
    /// The Cluster of the object.
    pub cluster: Option<Arc<Value>>,
    /// The Cluster's namespace and name, even if the Cluster does not exist.
    pub cluster_id: Option<ClusterId>,
    /// Whether there is an owner reference to a kind that the role asks for.
    pub owned: bool,
    /// Metadata of those Secrets that belong to the object, or that its status names.
    pub secrets: Vec<Arc<Value>>,
}

impl Belongings {
    /// Reads owner and Cluster. The first of the role's owners that owns the object counts; without one, the label
    /// `cluster.x-k8s.io/cluster-name` names the Cluster.
    pub async fn read(view: &View, rules: &dyn Rules, object: &Value) -> Result<Self, CacheError> {
        let owners = rules.owners();
        let heeding = |owner| view.with_news(News::In(rules.news_of(owner)));
        let namespace = meta::namespace(object);
        let mut found = Self::default();
        let mut cluster_name = meta::label(object, labels::CLUSTER_NAME).map(str::to_owned);
        if let Some((owner, reference)) = owners.iter().find_map(|owner| Some((owner, owning(object, *owner)?))) {
            found.owned = true;
            match owner {
                Owner::Cluster => cluster_name = json::text(reference, "/name").map(str::to_owned),
                Owner::Machine => {
                    found.machine = read(&heeding(Owner::Machine), namespace, reference).await?;
                    let pool = found.machine.as_deref().and_then(|machine| owning(machine, Owner::MachinePool));
                    if let Some(reference) = pool {
                        found.pool = read(&heeding(Owner::MachinePool), namespace, reference).await?;
                    }
                }
                Owner::MachinePool => found.pool = read(&heeding(Owner::MachinePool), namespace, reference).await?,
            }
        }
        if let Some(owner) = found.machine.as_ref().or(found.pool.as_ref()) {
            cluster_name = json::text(owner, "/spec/clusterName").map(str::to_owned);
        }
        if let Some(name) = cluster_name {
            let kind = view.kind_at(CORE_API_VERSION, "Cluster").await?;
            found.cluster = heeding(Owner::Cluster).get(&kind, namespace, &name).await?;
            found.cluster_id = Some(ClusterId::new(namespace, &name));
        }
        Ok(found)
    }

    /// A Secret that was read.
    pub fn secret(&self, name: &str) -> Option<&Value> {
        self.secrets.iter().map(Arc::as_ref).find(|secret| meta::name(secret) == name)
    }

    /// Name of the bootstrap data Secret: the Machine's, or the MachinePool's, which its Machines share.
    pub fn data_secret(&self) -> Option<&str> {
        let of_machine = self.machine.as_deref().and_then(|at| json::text(at, "/spec/bootstrap/dataSecretName"));
        let of_pool = || json::text(self.pool.as_deref()?, "/spec/template/spec/bootstrap/dataSecretName");
        of_machine.or_else(of_pool)
    }

    /// Whether a MachinePool owns it directly.
    pub fn is_of_pool(&self) -> bool {
        self.machine.is_none() && self.pool.is_some()
    }

    /// Waits for the Cluster to exist.
    pub fn has_cluster(&self) -> Result<(), Waiting> {
        there(self.cluster.is_some(), "WaitingForCluster", "the Cluster that it belongs to is not there")
    }

    /// Waits for `status.initialization.infrastructureProvisioned` of the Cluster.
    pub fn has_infrastructure(&self) -> Result<(), Waiting> {
        let flag = |cluster| json::flag(cluster, "/status/initialization/infrastructureProvisioned") == Some(true);
        there(
            self.cluster.as_deref().is_some_and(flag),
            "WaitingForClusterInfrastructureReady",
            "the Cluster's infrastructure is not provisioned",
        )
    }

    /// Waits for bootstrap data, unless the object is provisioned by either contract.
    pub fn has_bootstrap_data(&self, object: &Value, message: &'static str) -> Result<(), Waiting> {
        let needless = || Contract::NEWEST_FIRST.into_iter().any(|contract| provisioned(contract).is_true(object));
        there(self.data_secret().is_some() || needless(), "WaitingForBootstrapData", message)
    }
}

/// `Waiting` unless `is`.
pub fn there(is: bool, reason: &'static str, message: &'static str) -> Result<(), Waiting> {
    if is { Ok(()) } else { Err(Waiting { reason, message }) }
}

fn owning(object: &Value, owner: Owner) -> Option<&Value> {
    json::items(object, "/metadata/ownerReferences")
        .iter()
        .find(|reference| meta::kind(reference) == owner.kind() && meta::group(reference) == CORE_GROUP)
}

/// The owner itself. A namesake that was made later is another object.
async fn read(view: &View, namespace: &str, reference: &Value) -> Result<Option<Arc<Value>>, CacheError> {
    let kind = view.kind_at(CORE_API_VERSION, meta::kind(reference)).await?;
    let found = view.get(&kind, namespace, json::text(reference, "/name").unwrap_or_default()).await?;
    Ok(found.filter(|found| Some(meta::uid(found)) == json::text(reference, "/uid")))
}
