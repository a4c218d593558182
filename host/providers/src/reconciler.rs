//! One kind of a provider: observe, gate, call, write back.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use capwasm_api::descriptor::{ExclusiveBy, KindDescriptor, Role};
use capwasm_api::json;
use capwasm_api::names::{SECRET_TYPE, labels::CLUSTER_NAME};
use capwasm_reconcile::{ErrorKind, Pass, Plan, ReconcileError, Reconciler, Results};
use capwasm_remote::Remote;
use capwasm_runtime::{Call, Capabilities, Facts, Function, Refusal, Refused, Reply};
use serde_json::Value;

use crate::gate::{self, Decision};
use crate::generation::Generation;
use crate::observe::{self, Observed};
use crate::reads::{DataSecret, Management, NamespaceSecrets, Workload};
use crate::write_back::{self, Contract, WriteBack};

/// Reconciles one kind by calling a generation of its provider.
pub struct ProviderReconciler {
    name: String,
    kind: KindDescriptor,
    contract: Contract,
    generation: Arc<Generation>,
    remote: Remote,
}

impl ProviderReconciler {
    /// Of one kind of a generation. `crd` is the kind's CRD as it is installed: its labels decide the contract version.
    pub fn new(generation: Arc<Generation>, kind: KindDescriptor, crd: &Value, remote: Remote) -> Self {
        let name = kind.kind.to_lowercase();
        let contract = Contract::of(crd, &kind.version);
        Self { name, kind, contract, generation, remote }
    }

    async fn call(&self, pass: &Pass<'_>, observed: &Observed, function: Function) -> Result<Plan, ReconcileError> {
        let namespace = pass.key.namespace.clone();
        let kinds = &self.generation.provider.descriptor().kinds;
        let related = observe::related(pass.view, kinds, self.kind.role, &namespace, observed).await?;
        let bootstrap_data = self.bootstrap_data(&pass.object, observed);
        let uid = json::uid(&pass.object);
        let now_ms = u64::try_from(pass.now.as_millisecond()).unwrap_or_default();
        let workload = Arc::new(Workload {
            view: pass.view.clone(),
            remote: self.remote.clone(),
            cluster: observed.cluster_id.clone(),
            watched: self.generation.provider.descriptor().wants.workload_watches.clone(),
        });
        let call = Call {
            function,
            object: pass.object.to_string(),
            facts: Facts {
                now_ms,
                attempt: pass.attempt,
                id: pass.trace_id.to_owned(),
                configuration: self.generation.configuration.clone(),
                related,
                results: results(&pass.results),
            },
            capabilities: Capabilities {
                lookup: Arc::new(Management { view: pass.view.clone(), namespace: namespace.clone() }),
                workload: workload.clone(),
                certificates: workload.clone(),
                etcd: workload,
                secrets: Arc::new(NamespaceSecrets { view: pass.view.clone(), namespace, bootstrap_data }),
                http: self.generation.http.clone(),
            },
            grants: self.generation.grants.clone(),
            seed: seed(uid, now_ms),
            recorder: self.generation.recorder.clone(),
        };
        let at = self.write_back(pass, observed);
        let reply = self.generation.provider.call(call).await;
        self.generation.ended(pass.key, function.name(), &reply);
        Ok(match reply {
            Ok(Reply { answer, outcome, .. }) => write_back::answered(&at, &answer, &outcome),
            Err(error) => write_back::failed(&at, error.failure.reason(), &format!("{error}; {}", error.advice())),
        })
    }

    /// The Secret that `secrets.bootstrap-data` opens.
    fn bootstrap_data(&self, object: &Value, observed: &Observed) -> Option<DataSecret> {
        let belongings = observed.belongings();
        // What a Machine names, core found there; what any object may name has to be meant for it.
        let (named, of_type) = match &self.kind.bootstrap_data {
            Some(path) => (json::text(object, &format!("/{}", path.replace('.', "/"))), Some(SECRET_TYPE)),
            None => (belongings.data_secret(), None),
        };
        named.map(|name| DataSecret { name: name.to_owned(), of_type })
    }

    fn write_back<'a>(&'a self, pass: &'a Pass<'_>, observed: &'a Observed) -> WriteBack<'a> {
        WriteBack {
            object: &pass.object,
            kind: &self.kind,
            contract: self.contract,
            cluster: observed.cluster_id.as_ref(),
            of_pool: observed.machine.is_none() && observed.pool.is_some(),
            now: pass.now,
        }
    }
}

#[async_trait]
impl Reconciler for ProviderReconciler {
    fn name(&self) -> &str {
        &self.name
    }

    fn finalizers(&self) -> Vec<String> {
        match self.kind.role {
            Role::Template => Vec::new(),
            _ => self.kind.finalizers.first().cloned().into_iter().collect(),
        }
    }

    fn exclusion(&self, object: &Value) -> Option<String> {
        let cluster = json::label(object, CLUSTER_NAME)?;
        (self.kind.exclusive_by == ExclusiveBy::Cluster)
            .then(|| format!("{}/{}/{cluster}", self.kind.kind, json::namespace(object)))
    }

    fn divided_by(&self) -> Option<&str> {
        Some(CLUSTER_NAME)
    }

    async fn reconcile(&self, pass: &Pass<'_>) -> Result<Plan, ReconcileError> {
        let observed = observe::observe(pass.view, self.kind.role, &pass.object).await?;
        let at = self.write_back(pass, &observed);
        match gate::decide(self.kind.role, &self.kind.finalizers, &pass.object, &observed.belongings()) {
            Decision::Ignore | Decision::Leave => Ok(Plan::nothing()),
            Decision::Paused => Ok(write_back::paused(&at)),
            Decision::Waiting(reason, message) => Ok(write_back::waiting(&at, reason, message)),
            Decision::Finalize => match self.kind.finalizers.first() {
                Some(finalizer) => Ok(write_back::finalize(&pass.object, finalizer)),
                None => Ok(Plan::nothing()),
            },
            Decision::Provision => self.call(pass, &observed, function(self.kind.role, false)).await,
            Decision::Deprovision => {
                let mut plan = self.call(pass, &observed, function(self.kind.role, true)).await?;
                // What a guest waits for while it deletes may be nothing that the host watches.
                plan.wake_after.get_or_insert(Duration::from_secs(10));
                Ok(plan)
            }
        }
    }
}

/// The exported function; a template is never called, its gate stays closed.
fn function(role: Role, deleting: bool) -> Function {
    match (role, deleting) {
        (Role::InfrastructureCluster, false) => Function::ClusterProvision,
        (Role::InfrastructureCluster, true) => Function::ClusterDeprovision,
        (Role::InfrastructureMachine | Role::Template, false) => Function::MachineProvision,
        (Role::InfrastructureMachine | Role::Template, true) => Function::MachineDeprovision,
        (Role::InfrastructureMachinePool, false) => Function::PoolProvision,
        (Role::InfrastructureMachinePool, true) => Function::PoolDeprovision,
        (Role::Bootstrap, false) => Function::BootstrapGenerate,
        (Role::Bootstrap, true) => Function::BootstrapRelease,
        (Role::ControlPlane, false) => Function::ControlPlaneReconcile,
        (Role::ControlPlane, true) => Function::ControlPlaneDelete,
        (Role::Controller, false) => Function::ControllerReconcile,
        (Role::Controller, true) => Function::ControllerDelete,
    }
}

fn results(results: &Results) -> Vec<(String, Result<(), Refused>)> {
    let refusal = |kind| match kind {
        ErrorKind::NotFound => Refusal::NotFound,
        ErrorKind::Conflict => Refusal::Conflict,
        ErrorKind::AlreadyExists => Refusal::AlreadyExists,
        ErrorKind::Invalid => Refusal::Invalid,
        ErrorKind::Denied => Refusal::Denied,
        ErrorKind::Limit => Refusal::Limit,
        ErrorKind::Unavailable => Refusal::Unavailable,
        ErrorKind::Unsupported => Refusal::Unsupported,
    };
    results
        .iter()
        .map(|(key, result)| {
            let result = result.clone().map_err(|error| Refused::new(refusal(error.kind), error.reason, error.message));
            (key.clone(), result)
        })
        .collect()
}

/// Seeds WASI's random numbers: differs from pass to pass, follows from what is recorded of a call.
fn seed(uid: &str, now_ms: u64) -> u64 {
    uid.bytes()
        .fold(now_ms ^ 0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
