//! Objects passed to a call. All reads go through the pass's view, so changes wake the object.

use std::collections::BTreeMap;

use capwasm_api::names::{CORE_API_VERSION, labels};
use capwasm_contract::descriptor::{KindDescriptor, Role};
use capwasm_object::{meta, news::OF_PROVIDED};
use capwasm_reconcile::{CacheError, Selector, View, interests::News};
use serde_json::Value;

use crate::belongings::{Belongings, OF_OTHERS_MACHINE};

/// Objects of `call.related` by relation (`cluster`, `machines`), as JSON text.
pub struct Related<'a> {
    view: &'a View,
    kinds: &'a [KindDescriptor],
    namespace: &'a str,
    found: BTreeMap<String, Vec<String>>,
}

impl<'a> Related<'a> {
    /// Starts with owner and Cluster, which every role gets. `kinds` are the provider's own.
    pub fn new(view: &'a View, kinds: &'a [KindDescriptor], namespace: &'a str, belongings: &Belongings) -> Self {
        let Belongings { machine, pool, cluster, .. } = belongings;
        let named = [("machine", machine), ("machine-pool", pool), ("cluster", cluster)];
        let found =
            named.into_iter().filter_map(|(name, object)| Some((name.into(), vec![object.as_ref()?.to_string()])));
        Self { view, kinds, namespace, found: found.collect() }
    }

    pub fn into_map(self) -> BTreeMap<String, Vec<String>> {
        self.found
    }

    /// Adds the object of the Cluster's `spec.infrastructureRef`.
    pub async fn infrastructure_cluster(&mut self, cluster: &Value) -> Result<(), CacheError> {
        self.referenced("infrastructure-cluster", cluster.pointer("/spec/infrastructureRef")).await
    }

    /// Adds the object of the Cluster's `spec.controlPlaneRef`.
    pub async fn control_plane(&mut self, cluster: &Value) -> Result<(), CacheError> {
        self.referenced("control-plane", cluster.pointer("/spec/controlPlaneRef")).await
    }

    /// Adds the Cluster's Machines, and its infrastructure machines of the provider's own kinds.
    pub async fn machines(&mut self, cluster: &Value) -> Result<(), CacheError> {
        let of_cluster = Selector::labels([(labels::CLUSTER_NAME, meta::name(cluster))]);
        let machines = self.view.kind_at(CORE_API_VERSION, "Machine").await?;
        let view = self.view.with_news(News::In(OF_OTHERS_MACHINE));
        let machines = view.list_texts(&machines, Some(self.namespace), &of_cluster).await?;
        let view = self.view.with_news(News::In(OF_PROVIDED));
        let mut infrastructure = Vec::new();
        for kind in self.kinds.iter().filter(|kind| kind.role == Role::InfrastructureMachine) {
            let kind = self.view.kind_at(&format!("{}/{}", kind.group, kind.version), &kind.kind).await?;
            infrastructure.extend(view.list_texts(&kind, Some(self.namespace), &of_cluster).await?);
        }
        self.found.insert("machines".to_owned(), machines);
        self.found.insert("infrastructure-machines".to_owned(), infrastructure);
        Ok(())
    }

    /// Adds the object of a `{apiGroup, kind, name}` reference, if it exists. The provider's own kinds are read in its
    /// version, others in the server's preferred one.
    async fn referenced(&mut self, as_what: &str, reference: Option<&Value>) -> Result<(), CacheError> {
        let part = |name: &str| reference?.get(name).and_then(Value::as_str);
        let (Some(group), Some(kind), Some(name)) = (part("apiGroup"), part("kind"), part("name")) else {
            return Ok(());
        };
        let own = self.kinds.iter().find(|own| own.group == group && own.kind == kind);
        let resolved = match own {
            Some(own) => self.view.kind_at(&format!("{}/{}", own.group, own.version), kind).await,
            None => self.view.kind(group, kind).await,
        };
        let found = match resolved {
            Ok(kind) => self.view.with_news(News::In(OF_PROVIDED)).get_text(&kind, self.namespace, name).await?,
            Err(CacheError::UnknownKind { .. }) => None,
            Err(error) => return Err(error),
        };
        self.found.extend(found.map(|found| (as_what.to_owned(), vec![found])));
        Ok(())
    }
}
