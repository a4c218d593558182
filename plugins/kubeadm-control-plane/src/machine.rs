//! A Machine of the control plane, with what was made for it, and the conditions that this provider sets on it.

mod conditions;

use capwasm_api::conditions::Status;
use capwasm_api::names::{CORE_API_VERSION, annotations, condition, labels, reason};
use capwasm_object::json;
use capwasm_sdk::{ObjectRef, Outcome, object};
use jiff::Timestamp;
use serde_json::Value;

use self::conditions::Change;
pub use self::conditions::Conditions;
use crate::names;

/// What is looked at of a Machine.
pub const FIELDS: [&str; 9] = [
    "kind",
    "metadata",
    "spec",
    "status/conditions",
    "status/nodeRef/name",
    "status/nodeInfo/kubeletVersion",
    "status/failureDomain",
    "status/certificatesExpiryDate",
    "status/initialization",
];

/// A Machine of the control plane with what belongs to it.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// The object as it was read, or [`FIELDS`] of it.
    pub stored: Value,
    /// Its conditions, with those of this pass.
    pub conditions: Conditions,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
    /// Kubernetes version; empty when it has none.
    pub version: String,
    /// Version of its kubelet; empty until its Node was found.
    pub kubelet_version: String,
    /// `spec.providerID`, of the infrastructure machine while core has not copied it; empty until it is known.
    pub provider_id: String,
    /// Failure domain that it should be in, or is in.
    pub failure_domain: String,
    /// Since when it is being deleted.
    pub deleting: Option<Timestamp>,
    /// Name of its Node, also when core has not recorded it yet.
    pub node: Option<String>,
    /// Its KubeadmConfig; none when it was not made, or is gone.
    pub config: Option<Value>,
    /// Its infrastructure machine; none when it was not made, or is gone.
    pub infrastructure: Option<Value>,
    /// Why it is not as the control plane wants it; empty when it is.
    pub outdated: Vec<String>,
}

impl Machine {
    /// Reads a Machine; what belongs to it is left to the caller.
    pub fn read(object: Value) -> Machine {
        let text = |pointer: &str| object::text(&object, pointer).to_owned();
        let observed = text("/status/failureDomain");
        Machine {
            name: object::name(&object).to_owned(),
            uid: object::uid(&object).to_owned(),
            created: text("/metadata/creationTimestamp").parse().unwrap_or_default(),
            version: text("/spec/version"),
            kubelet_version: text("/status/nodeInfo/kubeletVersion"),
            provider_id: text("/spec/providerID"),
            failure_domain: if observed.is_empty() { text("/spec/failureDomain") } else { observed },
            deleting: object::is_deleting(&object)
                .then(|| text("/metadata/deletionTimestamp").parse().unwrap_or_default()),
            node: Some(text("/status/nodeRef/name")).filter(|name| !name.is_empty()),
            conditions: Conditions::read(json::items(&object, "/status/conditions")),
            stored: object,
            ..Machine::default()
        }
    }

    /// Core has matched it with its Node, so that everybody can see that it arrived.
    pub fn is_registered(&self) -> bool {
        !object::text(&self.stored, "/status/nodeRef/name").is_empty()
    }

    /// Name of the Node that says that it is this machine.
    pub fn matching<'a>(&self, nodes: &'a [Value]) -> Option<&'a str> {
        let same =
            |node: &&Value| !self.provider_id.is_empty() && object::text(node, "/spec/providerID") == self.provider_id;
        nodes.iter().find(same).map(object::name)
    }

    /// To name it in an operation.
    pub fn target(&self) -> ObjectRef {
        ObjectRef::new(CORE_API_VERSION, "Machine", &self.name)
    }

    /// Its infrastructure machine, in the version that the host knows.
    pub fn infrastructure_target(&self) -> ObjectRef {
        let part = |name: &str| object::text(&self.stored, &format!("/spec/infrastructureRef/{name}"));
        ObjectRef::new(format!("{}/", part("apiGroup")), part("kind"), part("name"))
    }

    /// Its KubeadmConfig; none where its bootstrap data comes from elsewhere.
    pub fn config_target(&self) -> Option<ObjectRef> {
        let part = |name: &str| object::text(&self.stored, &format!("/spec/bootstrap/configRef/{name}"));
        (part("kind") == "KubeadmConfig" && !part("name").is_empty())
            .then(|| ObjectRef::new(names::BOOTSTRAP_API_VERSION, "KubeadmConfig", part("name")))
    }

    /// Status of a condition: true, false; none for unknown and not reported.
    pub fn holds(&self, name: &str) -> Option<bool> {
        match self.conditions.get(name)?.status {
            Status::True => Some(true),
            Status::False => Some(false),
            Status::Unknown => None,
        }
    }

    /// Sets a condition of this pass.
    pub fn set(&mut self, now: Timestamp, name: &str, status: Option<bool>, reason: &str, message: &str) {
        self.conditions.set(now, name, status.map_or(Status::Unknown, Status::from), reason, message);
    }

    /// Whether a person asked for it to go first.
    pub fn goes_first(&self) -> bool {
        object::annotation(&self.stored, annotations::DELETE_MACHINE).is_some()
    }

    /// Whether it has the pre-terminate hook of this provider.
    pub fn has_hook(&self) -> bool {
        object::annotation(&self.stored, names::CLEANUP_HOOK).is_some()
    }

    /// Whether it has pre-terminate hooks of others.
    pub fn has_other_hooks(&self) -> bool {
        let known = json::at(&self.stored, "/metadata/annotations").and_then(Value::as_object);
        known.is_some_and(|known| {
            known
                .keys()
                .any(|key| key.starts_with(annotations::PRE_TERMINATE_HOOK_PREFIX) && key != names::CLEANUP_HOOK)
        })
    }

    /// Whether drain and the like are done, so that only hooks hold its end.
    pub fn waits_for_hooks(&self) -> bool {
        self.conditions.get(condition::DELETING).is_some_and(|deleting| {
            deleting.status == Status::True && deleting.reason == reason::WAITING_FOR_PRE_TERMINATE_HOOK
        })
    }

    /// A health check found it unhealthy, whoever may act on that.
    pub fn is_unhealthy(&self) -> bool {
        self.holds(condition::HEALTH_CHECK_SUCCEEDED) == Some(false)
    }

    /// A health check found it unhealthy, and this provider is asked to act.
    pub fn needs_remediation(&self) -> bool {
        self.is_unhealthy() && self.holds(condition::OWNER_REMEDIATED) == Some(false)
    }

    /// Its static pods, and its etcd member where etcd is managed, are well.
    pub fn is_healthy(&self, managed_etcd: bool) -> bool {
        names::health_conditions(managed_etcd).iter().all(|name| self.holds(name) == Some(true))
    }

    /// Asks for the conditions of this pass to be written, those that say something else than before.
    pub fn publish(&self, out: &mut Outcome) {
        // It may be gone before it could be told.
        if self.deleting.is_some() && (!self.has_hook() || self.waits_for_hooks()) {
            return;
        }
        let own = names::health_conditions(true).into_iter().chain([
            names::NODE_LABELS_AND_TAINTS_SET,
            condition::UP_TO_DATE,
            condition::OWNER_REMEDIATED,
        ]);
        for name in own {
            let Some(Change { condition: now, known }) = self.conditions.change(name) else { continue };
            // Before there is a Node nothing is known, which need not be written: what is absent counts as unknown.
            if self.node.is_none() && !known && now.status != Status::False {
                continue;
            }
            let status = match now.status {
                Status::True => Some(true),
                Status::False => Some(false),
                Status::Unknown => None,
            };
            out.set_condition_of(
                format!("{name}-{}", self.name),
                self.target(),
                name,
                status,
                &now.reason,
                now.message.clone(),
            );
        }
    }
}

/// Label selector of a cluster's control-plane machines.
pub fn selector(cluster: &str) -> String {
    format!("{}={cluster},{}", labels::CLUSTER_NAME, labels::CONTROL_PLANE)
}

/// The uid of the owner that controls an object.
pub fn controller(object: &Value) -> Option<&str> {
    let owners = json::at(object, "/metadata/ownerReferences")?.as_array()?;
    let controls = |owner: &&Value| owner.get("controller").and_then(Value::as_bool) == Some(true);
    owners.iter().find(controls).map(|owner| object::text(owner, "/uid"))
}

/// Names for people, at most three.
pub fn list<'a>(machines: impl IntoIterator<Item = &'a Machine>) -> String {
    let mut names: Vec<&str> = machines.into_iter().map(|machine| machine.name.as_str()).collect();
    names.sort_unstable();
    let more = names.len().saturating_sub(3);
    names.truncate(3);
    let more = if more > 0 { format!(", ... ({more} more)") } else { String::new() };
    format!("{}{more}", names.join(", "))
}
