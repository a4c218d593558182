//! What is observed of a control plane: the KubeadmControlPlane, its Cluster and its Machines.

use capwasm_api::names::{CORE_API_VERSION, annotations, condition, labels};
use capwasm_sdk::{Context, Host, ObjectRef, Optional, Problem, Refused, object};
use serde_json::{Map, Value, json};

/// A KubeadmControlPlane.
#[derive(Clone, Debug, Default)]
pub struct ControlPlane {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its uid.
    pub uid: String,
    /// `apiVersion`, for owner references.
    pub api_version: String,
    /// How many machines there should be.
    pub replicas: u32,
    /// Whether `spec.replicas` says so.
    pub has_replicas: bool,
    /// Kubernetes version of new machines, `v1.36.0`.
    pub version: String,
    /// `spec.kubeadmConfigSpec`.
    pub config: Map<String, Value>,
    /// `spec.machineTemplate`.
    pub template: Value,
    /// `spec.machineNaming.template`; empty for the default.
    pub naming: String,
    /// The first API server has answered before.
    pub initialized: bool,
    /// The first slot that was never used, as recorded.
    pub next_slot: Option<String>,
}

impl ControlPlane {
    /// Reads a KubeadmControlPlane; one of the wrong shape is `invalid`.
    pub fn read(object: &Value) -> Result<ControlPlane, Problem> {
        let replicas = match object.pointer("/spec/replicas") {
            None | Some(Value::Null) => Some(1),
            Some(number) => number.as_u64().and_then(|number| u32::try_from(number).ok()),
        };
        Ok(ControlPlane {
            name: object::name(object).to_owned(),
            namespace: object::namespace(object).to_owned(),
            uid: object::uid(object).to_owned(),
            api_version: object::text(object, "/apiVersion").to_owned(),
            replicas: replicas
                .ok_or_else(|| Problem::invalid("InvalidReplicas", "spec.replicas must be a whole number"))?,
            has_replicas: object.pointer("/spec/replicas").is_some_and(|replicas| !replicas.is_null()),
            version: with_v(object::text(object, "/spec/version")),
            config: match object.pointer("/spec/kubeadmConfigSpec") {
                None | Some(Value::Null) => Map::new(),
                Some(Value::Object(config)) => config.clone(),
                Some(_) => {
                    return Err(Problem::invalid("InvalidConfiguration", "spec.kubeadmConfigSpec must be an object"));
                }
            },
            template: object.pointer("/spec/machineTemplate").cloned().unwrap_or_default(),
            naming: object::text(object, "/spec/machineNaming/template").to_owned(),
            initialized: flag(object, "/status/initialization/controlPlaneInitialized"),
            next_slot: object::annotation(object, annotations::NEXT_SLOT).map(str::to_owned),
        })
    }

    /// An owner reference to it.
    pub fn owner(&self, controller: bool) -> Value {
        let mut owner =
            json!({"apiVersion": self.api_version, "kind": "KubeadmControlPlane", "name": self.name, "uid": self.uid});
        if controller {
            owner["controller"] = json!(true);
            owner["blockOwnerDeletion"] = json!(true);
        }
        owner
    }

    /// `clusterConfiguration` of its kubeadm configuration.
    pub fn cluster_configuration(&self) -> Map<String, Value> {
        self.config.get("clusterConfiguration").and_then(Value::as_object).cloned().unwrap_or_default()
    }
}

/// Machines carry versions with a `v`, whatever the user wrote.
fn with_v(version: &str) -> String {
    if version.starts_with(|c: char| c.is_ascii_digit()) { format!("v{version}") } else { version.to_owned() }
}

/// The Cluster.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Machines may be made.
    pub infrastructure_provisioned: bool,
    /// `https://host:port` of the API server, once it is known.
    pub server: Option<String>,
    /// Names of the failure domains for control-plane machines.
    pub failure_domains: Vec<String>,
}

impl Cluster {
    /// Reads a Cluster.
    pub fn read(object: &Value) -> Cluster {
        let domains =
            object.pointer("/status/failureDomains").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let domains = domains.iter().filter(|domain| flag(domain, "/controlPlane"));
        Cluster {
            name: object::name(object).to_owned(),
            uid: object::uid(object).to_owned(),
            infrastructure_provisioned: flag(object, "/status/initialization/infrastructureProvisioned"),
            server: server(object),
            failure_domains: domains
                .map(|domain| object::text(domain, "/name").to_owned())
                .filter(|name| !name.is_empty())
                .collect(),
        }
    }

    /// An owner reference to it.
    pub fn owner(&self) -> Value {
        json!({"apiVersion": CORE_API_VERSION, "kind": "Cluster", "name": self.name, "uid": self.uid})
    }
}

fn server(cluster: &Value) -> Option<String> {
    let host = object::text(cluster, "/spec/controlPlaneEndpoint/host");
    let port = cluster.pointer("/spec/controlPlaneEndpoint/port").and_then(Value::as_u64).filter(|port| *port > 0)?;
    match host {
        "" => None,
        host if host.contains(':') && !host.starts_with('[') => Some(format!("https://[{host}]:{port}")),
        host => Some(format!("https://{host}:{port}")),
    }
}

/// A Machine of the control plane.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// The whole object.
    pub object: Value,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// When it was created, RFC 3339.
    pub created: String,
    /// Kubernetes version; empty when it has none.
    pub version: String,
    /// Where it should be, or is.
    pub failure_domain: String,
    /// It is being deleted.
    pub deleting: bool,
    /// A person asked for it to go first.
    pub delete_first: bool,
    /// Its Node was found.
    pub has_node: bool,
    /// Nothing was heard of its Node lately.
    pub lost: bool,
    /// Condition Ready.
    pub ready: Option<bool>,
    /// Condition Available.
    pub available: Option<bool>,
    /// Why it is not as the control plane wants it; empty when it is.
    pub outdated: Vec<String>,
}

impl Machine {
    /// Reads a Machine; `outdated` is left to the caller.
    pub fn read(object: Value) -> Machine {
        let status =
            |name: &str| object::condition(&object, name).map(|found| object::text(found, "/status").to_owned());
        let holds = |name: &str| match status(name).as_deref() {
            Some("True") => Some(true),
            Some("False") => Some(false),
            _ => None,
        };
        let observed = object::text(&object, "/status/failureDomain");
        Machine {
            name: object::name(&object).to_owned(),
            uid: object::uid(&object).to_owned(),
            created: object::text(&object, "/metadata/creationTimestamp").to_owned(),
            version: object::text(&object, "/spec/version").to_owned(),
            failure_domain: if observed.is_empty() { object::text(&object, "/spec/failureDomain") } else { observed }
                .to_owned(),
            deleting: object::is_deleting(&object),
            delete_first: object::annotation(&object, annotations::DELETE_MACHINE).is_some(),
            has_node: !object::text(&object, "/status/nodeRef/name").is_empty(),
            lost: status(condition::NODE_READY).as_deref() == Some("Unknown"),
            ready: holds(condition::READY),
            available: holds(condition::AVAILABLE),
            outdated: Vec::new(),
            object,
        }
    }
}

/// Label selector of a cluster's control-plane machines.
pub fn selector(cluster: &str) -> String {
    format!("{}={cluster},{}", labels::CLUSTER_NAME, labels::CONTROL_PLANE)
}

/// The Machines that `uid` controls, oldest first.
pub fn owned_machines(host: &dyn Host, cluster: &str, uid: &str) -> Result<Vec<Machine>, Refused> {
    let found = host.lookup_list(CORE_API_VERSION, "Machine", None, &selector(cluster))?;
    let mut machines: Vec<_> =
        found.into_iter().filter(|machine| is_controlled_by(machine, uid)).map(Machine::read).collect();
    machines.sort_by(|a, b| (&a.created, &a.name).cmp(&(&b.created, &b.name)));
    Ok(machines)
}

fn is_controlled_by(object: &Value, uid: &str) -> bool {
    let owners =
        object.pointer("/metadata/ownerReferences").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    owners.iter().any(|owner| object::text(owner, "/uid") == uid && flag(owner, "/controller"))
}

/// Why a Machine is not as the control plane wants it. Its infrastructure is held against the template by name.
pub fn outdated(host: &dyn Host, plane: &ControlPlane, machine: &Machine) -> Result<Vec<String>, Refused> {
    let mut reasons = Vec::new();
    if machine.version != plane.version {
        reasons.push(format!("Version {}, {} required", machine.version, plane.version));
    }
    let wanted = TemplateRef::of(plane);
    if let Some(clone) = host.lookup(&infrastructure_of(&machine.object)).optional()? {
        let from = |key| object::annotation(&clone, key).unwrap_or_default();
        if (from(annotations::CLONED_FROM_NAME), from(annotations::CLONED_FROM_GROUP_KIND))
            != (wanted.name.as_str(), wanted.group_kind().as_str())
        {
            reasons.push(format!("{} is not up-to-date", object::text(&clone, "/kind")));
        }
    }
    Ok(reasons)
}

fn infrastructure_of(machine: &Value) -> ObjectRef {
    let part = |name: &str| object::text(machine, &format!("/spec/infrastructureRef/{name}"));
    ObjectRef::new(format!("{}/", part("apiGroup")), part("kind"), part("name"))
}

/// `spec.machineTemplate.spec.infrastructureRef`.
#[derive(Clone, Debug, Default)]
pub struct TemplateRef {
    /// API group.
    pub group: String,
    /// Kind, ending in `Template`.
    pub kind: String,
    /// Name.
    pub name: String,
}

impl TemplateRef {
    /// Of a control plane.
    pub fn of(plane: &ControlPlane) -> TemplateRef {
        let part = |name: &str| object::text(&plane.template, &format!("/spec/infrastructureRef/{name}")).to_owned();
        TemplateRef { group: part("apiGroup"), kind: part("kind"), name: part("name") }
    }

    /// `Kind.group`, as annotations of clones have it.
    pub fn group_kind(&self) -> String {
        format!("{}.{}", self.kind, self.group)
    }

    /// To look it up in the version that the host knows.
    pub fn target(&self) -> ObjectRef {
        ObjectRef::new(format!("{}/", self.group), &self.kind, &self.name)
    }
}

/// Whether the workload cluster's API answers with what `kubeadm init` leaves behind.
pub fn is_initialized(cx: &mut Context<'_>) -> Result<bool, Problem> {
    let configuration = ObjectRef::new("v1", "ConfigMap", "kubeadm-config").in_namespace("kube-system");
    match cx.host.workload(&configuration) {
        Ok(_) => Ok(true),
        Err(refused) => match refused.refusal {
            // The API answers before kubeadm has uploaded its configuration, and nothing announces that.
            capwasm_sdk::Refusal::NotFound => {
                cx.out.wake_after(std::time::Duration::from_secs(2));
                Ok(false)
            }
            // Woken when it can be reached.
            capwasm_sdk::Refusal::Unavailable => Ok(false),
            _ => Err(refused.into()),
        },
    }
}

/// Whether machines bring etcd members of their own, which would stay behind in etcd when a machine is taken away.
pub fn has_etcd_members(host: &dyn Host) -> Result<bool, Refused> {
    Ok(!host.workload_list("v1", "Pod", Some("kube-system"), "component=etcd,tier=control-plane")?.is_empty())
}

fn flag(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).and_then(Value::as_bool).unwrap_or_default()
}
