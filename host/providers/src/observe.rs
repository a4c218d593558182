//! Whom an object belongs to, and the objects that a call is told about. All reads go through the pass's view, so each of
//! them wakes the object.

use std::collections::BTreeMap;
use std::sync::Arc;

use capwasm_api::descriptor::{KindDescriptor, Role};
use capwasm_api::json;
use capwasm_api::names::{CORE_API_VERSION, CORE_GROUP, labels};
use capwasm_reconcile::{CacheError, ClusterId, Selector, View};
use serde_json::Value;

use crate::gate::Belongings;

/// An object's Machine, MachinePool and Cluster.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The Machine that owns it.
    pub machine: Option<Arc<Value>>,
    /// The MachinePool that owns it, or that Machine.
    pub pool: Option<Arc<Value>>,
    /// The Cluster that it belongs to.
    pub cluster: Option<Arc<Value>>,
    /// Name of that Cluster, also when it is not there (any more).
    pub cluster_id: Option<ClusterId>,
    /// An owner reference of the kind that the role asks for is there.
    pub owned: bool,
}

impl Observed {
    /// As the gate wants it.
    pub fn belongings(&self) -> Belongings<'_> {
        Belongings {
            machine: self.machine.as_deref(),
            pool: self.pool.as_deref(),
            cluster: self.cluster.as_deref(),
            owned: self.owned,
        }
    }
}

/// Reads owner and Cluster.
pub async fn observe(view: &View, role: Role, object: &Value) -> Result<Observed, CacheError> {
    let namespace = json::namespace(object);
    let mut observed = Observed::default();
    let mut cluster_name = json::label(object, labels::CLUSTER_NAME).map(str::to_owned);
    match role {
        Role::InfrastructureMachine | Role::Bootstrap => {
            if let Some(reference) = owner(object, "Machine") {
                observed.owned = true;
                observed.machine = owning(view, namespace, reference).await?;
                let of_pool = observed.machine.as_deref().and_then(|machine| owner(machine, "MachinePool"));
                if let Some(reference) = of_pool {
                    observed.pool = owning(view, namespace, reference).await?;
                }
            } else if let Some(reference) = owner(object, "MachinePool").filter(|_| role == Role::Bootstrap) {
                observed.owned = true;
                observed.pool = owning(view, namespace, reference).await?;
            }
        }
        Role::InfrastructureMachinePool => {
            if let Some(reference) = owner(object, "MachinePool") {
                observed.owned = true;
                observed.pool = owning(view, namespace, reference).await?;
            }
        }
        // By its label alone: nobody has to own it.
        Role::Controller => {}
        Role::InfrastructureCluster | Role::ControlPlane | Role::Template => {
            if let Some(owner) = owner(object, "Cluster") {
                observed.owned = true;
                cluster_name = json::text(owner, "/name").map(str::to_owned);
            }
        }
    }
    if let Some(owner) = observed.machine.as_ref().or(observed.pool.as_ref()) {
        cluster_name = json::text(owner, "/spec/clusterName").map(str::to_owned);
    }
    if let Some(name) = cluster_name {
        let kind = view.kind_at(CORE_API_VERSION, "Cluster").await?;
        observed.cluster = view.get(&kind, namespace, &name).await?;
        observed.cluster_id = Some(ClusterId::new(namespace, &name));
    }
    Ok(observed)
}

/// The owner reference of a core kind.
fn owner<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    json::items(object, "/metadata/ownerReferences")
        .iter()
        .find(|owner| json::kind(owner) == kind && json::group(owner) == CORE_GROUP)
}

/// The owner itself. A namesake that was made later is another object.
async fn owning(view: &View, namespace: &str, reference: &Value) -> Result<Option<Arc<Value>>, CacheError> {
    let kind = view.kind_at(CORE_API_VERSION, json::kind(reference)).await?;
    let found = view.get(&kind, namespace, json::text(reference, "/name").unwrap_or_default()).await?;
    Ok(found.filter(|found| Some(json::uid(found)) == json::text(reference, "/uid")))
}

/// The objects behind `call.related`, by role, as JSON text.
pub async fn related(
    view: &View,
    kinds: &[KindDescriptor],
    role: Role,
    namespace: &str,
    observed: &Observed,
) -> Result<BTreeMap<String, Vec<String>>, CacheError> {
    let mut related = BTreeMap::new();
    if let Some(machine) = &observed.machine {
        related.insert("machine".to_owned(), vec![machine.to_string()]);
    }
    if let Some(pool) = &observed.pool {
        related.insert("machine-pool".to_owned(), vec![pool.to_string()]);
    }
    let Some(cluster) = &observed.cluster else { return Ok(related) };
    related.insert("cluster".to_owned(), vec![cluster.to_string()]);
    let references: &[(&str, &str)] = match role {
        Role::InfrastructureMachine | Role::InfrastructureMachinePool | Role::ControlPlane | Role::Controller => {
            &[("infrastructure-cluster", "/spec/infrastructureRef")]
        }
        Role::Bootstrap => &[("control-plane", "/spec/controlPlaneRef")],
        Role::InfrastructureCluster | Role::Template => &[],
    };
    for (name, pointer) in references {
        if let Some(found) = referenced(view, kinds, namespace, cluster.pointer(pointer)).await? {
            related.insert((*name).to_owned(), vec![found]);
        }
    }
    if role == Role::InfrastructureCluster {
        let of_cluster = Selector::labels([(labels::CLUSTER_NAME, json::name(cluster))]);
        let machines = view.kind_at(CORE_API_VERSION, "Machine").await?;
        related.insert("machines".to_owned(), view.list_texts(&machines, Some(namespace), &of_cluster).await?);
        let mut infrastructure = Vec::new();
        for kind in kinds.iter().filter(|kind| kind.role == Role::InfrastructureMachine) {
            let kind = view.kind_at(&format!("{}/{}", kind.group, kind.version), &kind.kind).await?;
            infrastructure.extend(view.list_texts(&kind, Some(namespace), &of_cluster).await?);
        }
        related.insert("infrastructure-machines".to_owned(), infrastructure);
    }
    Ok(related)
}

/// The object behind a `{apiGroup, kind, name}` reference, as JSON text; none when the reference or the object is not there. One of the
/// provider's own kinds is in the version that it speaks, others in the one that the server prefers.
async fn referenced(
    view: &View,
    kinds: &[KindDescriptor],
    namespace: &str,
    reference: Option<&Value>,
) -> Result<Option<String>, CacheError> {
    let Some(reference) = reference else { return Ok(None) };
    let part = |name: &str| reference.get(name).and_then(Value::as_str);
    let (Some(group), Some(kind), Some(name)) = (part("apiGroup"), part("kind"), part("name")) else { return Ok(None) };
    let own = kinds.iter().find(|own| own.group == group && own.kind == kind);
    let resolved = match own {
        Some(own) => view.kind_at(&format!("{}/{}", own.group, own.version), kind).await,
        None => view.kind(group, kind).await,
    };
    match resolved {
        Ok(kind) => view.get_text(&kind, namespace, name).await,
        Err(CacheError::UnknownKind { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
