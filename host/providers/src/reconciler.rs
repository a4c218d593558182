//! Reconciles one kind of a provider: observe, gate, call, write back.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use capwasm_api::contract::{Contract, of_version};
use capwasm_api::names::{SECRET_TYPE, labels::CLUSTER_NAME};
use capwasm_contract::descriptor::{ExclusiveBy, KindDescriptor};
use capwasm_contract::{Facts, Function};
use capwasm_object::{json, meta};
use capwasm_reconcile::{Pass, Plan, ReconcileError, Reconciler};
use capwasm_remote::Remote;
use capwasm_runtime::{Call, Capabilities, Reply};
use serde_json::Value;

use crate::belongings::Belongings;
use crate::gate::{self, Decision};
use crate::generation::Generation;
use crate::own_secrets;
use crate::reads::{DataSecret, Management, NamespaceSecrets, Workload};
use crate::related::Related;
use crate::role::ServedKind;
use crate::write_back::{self, Ending, Subject};

pub struct ProviderReconciler {
    name: String,
    kind: ServedKind,
    generation: Arc<Generation>,
    remote: Remote,
}

impl ProviderReconciler {
    /// `None` for a template. Labels of the installed `crd` decide the contract version; without them it is the newest.
    pub fn new(generation: Arc<Generation>, kind: KindDescriptor, crd: &Value, remote: Remote) -> Option<Self> {
        let name = kind.kind.to_lowercase();
        let contract = of_version(crd, &kind.version).unwrap_or(Contract::V1Beta2);
        Some(Self { name, kind: ServedKind::new(kind, contract)?, generation, remote })
    }

    async fn call(&self, pass: &Pass<'_>, subject: &Subject<'_>, function: Function) -> Result<Plan, ReconcileError> {
        let namespace = pass.key.namespace.clone();
        let belongings = subject.belongings;
        let kinds = &self.generation.provider.descriptor().kinds;
        let mut related = Related::new(pass.view, kinds, &namespace, belongings);
        if let Some(cluster) = &belongings.cluster {
            self.kind.rules.relate(&mut related, cluster).await?;
        }
        let related = related.into_map();
        // Before the call, after which nothing may fail that is read here.
        let own = self.kind.rules.own_secrets(&pass.object, belongings, &self.generation.grants);
        let own = own.iter().filter_map(|name| belongings.secrets.iter().find(|secret| meta::name(secret) == name));
        let cluster = belongings.cluster_id.as_ref().map_or("", |cluster| cluster.name.as_str());
        let taken_back = own_secrets::take_back(pass.view, &pass.object, cluster, own).await?;
        let bootstrap_data = self.bootstrap_data(&pass.object, belongings);
        let uid = meta::uid(&pass.object);
        let now_ms = u64::try_from(pass.now.as_millisecond()).unwrap_or_default();
        // More does not fit into the guest.
        let most = usize::try_from(self.generation.provider.limits().memory_bytes).unwrap_or(usize::MAX);
        let workload = Arc::new(Workload {
            view: pass.view.clone(),
            remote: self.remote.clone(),
            cluster: belongings.cluster_id.clone(),
            most,
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
                results: pass.results.clone(),
            },
            capabilities: Capabilities {
                lookup: Arc::new(Management { view: pass.view.clone(), namespace: namespace.clone(), most }),
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
        let reply = self.generation.provider.call(call).await;
        self.generation.ended(pass.key, function.name(), &reply);
        let mut plan = match reply {
            Ok(Reply { answer, outcome, .. }) => write_back::plan(subject, Ending::Replied(&answer, &outcome)),
            Err(error) => {
                let message = format!("{error}; {}", error.advice());
                write_back::plan(subject, Ending::Failed { reason: error.failure.reason(), message: &message })
            }
        };
        plan.operations.extend(taken_back);
        Ok(plan)
    }

    /// Metadata of Secrets that belong to the object, and of the one that its status names.
    async fn secrets(&self, pass: &Pass<'_>, belongings: &Belongings) -> Result<Vec<Arc<Value>>, ReconcileError> {
        let mut names = self.kind.rules.own_secrets(&pass.object, belongings, &self.generation.grants);
        if let Some(named) = self.kind.rules.named_secret(&pass.object)
            && !names.iter().any(|name| name == named)
        {
            names.push(named.to_owned());
        }
        Ok(own_secrets::read(pass.view, meta::namespace(&pass.object), &names).await?)
    }

    /// The Secret that `secrets.bootstrap-data` reads.
    fn bootstrap_data(&self, object: &Value, belongings: &Belongings) -> Option<DataSecret> {
        // What a Machine names, core found there; what any object may name has to be meant for it.
        let (named, of_type) = match &self.kind.descriptor.bootstrap_data {
            Some(path) => (json::text(object, &format!("/{}", path.replace('.', "/"))), Some(SECRET_TYPE)),
            None => (belongings.data_secret(), None),
        };
        named.map(|name| DataSecret { name: name.to_owned(), of_type })
    }
}

#[async_trait]
impl Reconciler for ProviderReconciler {
    fn name(&self) -> &str {
        &self.name
    }

    fn finalizers(&self) -> Vec<String> {
        self.kind.descriptor.finalizers.first().cloned().into_iter().collect()
    }

    fn exclusion(&self, object: &Value) -> Option<String> {
        let cluster = meta::label(object, CLUSTER_NAME)?;
        let KindDescriptor { exclusive_by, kind, .. } = &self.kind.descriptor;
        (*exclusive_by == ExclusiveBy::Cluster).then(|| format!("{kind}/{}/{cluster}", meta::namespace(object)))
    }

    fn divided_by(&self) -> Option<&str> {
        Some(CLUSTER_NAME)
    }

    /// Calls have limits of their own.
    fn deadline(&self) -> Option<Duration> {
        None
    }

    async fn reconcile(&self, pass: &Pass<'_>) -> Result<Plan, ReconcileError> {
        let ServedKind { descriptor, rules, .. } = &self.kind;
        let mut belongings = Belongings::read(pass.view, *rules, &pass.object).await?;
        belongings.secrets = self.secrets(pass, &belongings).await?;
        let subject = Subject { kind: &self.kind, object: &pass.object, belongings: &belongings, now: pass.now };
        match gate::decide(*rules, &descriptor.finalizers, &pass.object, &belongings) {
            Decision::Ignore | Decision::Leave => Ok(Plan::nothing()),
            Decision::Paused => Ok(write_back::plan(&subject, Ending::Paused)),
            Decision::Waiting(waiting) => Ok(write_back::plan(&subject, Ending::Waiting(waiting))),
            Decision::Finalize(finalizer) => Ok(Plan::finalize(&pass.object, &finalizer)),
            Decision::Provision => self.call(pass, &subject, rules.functions().reconcile).await,
            Decision::Deprovision => {
                let mut plan = self.call(pass, &subject, rules.functions().delete).await?;
                // What a guest waits for while it deletes may be nothing that the host watches.
                plan.wake_after.get_or_insert(Duration::from_secs(10));
                Ok(plan)
            }
        }
    }
}

/// Seed of WASI's random numbers: differs between passes, and follows from what a recording has.
fn seed(uid: &str, now_ms: u64) -> u64 {
    uid.bytes()
        .fold(now_ms ^ 0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
