//! Puts the CRDs back that the host installed, when somebody deletes them while it runs.
//!
//! What somebody changes in one stays, and one that is handed over (without the host's label) is left alone. Providers' CRDs are their
//! WasmProvider's, whose controller reads them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use capwasm_object::{json, meta};
use capwasm_providers::{Conversions, Serving, served, wasm_provider};
use futures::StreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use kube::api::Api;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::install;

/// Delay after a failed write.
const RETRY: Duration = Duration::from_secs(5);

/// CRDs of the host, and who converts their kinds.
pub struct Crds {
    /// As they are, before [`served`].
    pub crds: Vec<Value>,
    /// Conversion by this process for the API server.
    pub conversions: Option<Arc<Conversions>>,
    /// WasmProviders of the host, which go with their CRD and come back with it. One that is deleted by itself stays away.
    pub providers: Vec<Value>,
}

impl Crds {
    /// Installs one and waits until it is established. Returns whether it is the host's.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn install(&self, client: &kube::Client, crd: &Value) -> anyhow::Result<bool> {
        let client_config = self.conversions.as_ref().and_then(|conversions| conversions.client_config());
        let versions = match (&client_config, &self.conversions) {
            (Some(config), _) => Serving::Webhook(config),
            (None, Some(_)) => Serving::All,
            (None, None) => Serving::Stored,
        };
        install::crd(client, &served(crd, versions)).await
    }

    /// Puts them back until `shutdown`. `installed` are the names of those that are the host's.
    pub async fn keep(self, installed: BTreeSet<String>, client: kube::Client, shutdown: CancellationToken) {
        let api: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client.clone());
        let config = watcher::Config::default().labels(install::INSTALLED_BY);
        let mut events = watcher(api, config).default_backoff().boxed();
        let mut ours = Ours { present: installed, listed: BTreeSet::new() };
        let (mut gone, mut delay) = (BTreeSet::new(), Duration::ZERO);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                event = events.next() => match event {
                    Some(Ok(event)) => {
                        gone.extend(ours.gone(event.map_name()));
                        delay = Duration::ZERO;
                    }
                    Some(Err(error)) => tracing::debug!(%error, "the watch of the host's CRDs failed"),
                    None => return,
                },
                () = tokio::time::sleep(delay), if !gone.is_empty() => {
                    gone = self.put_back(&client, gone).await;
                    delay = RETRY;
                }
            }
        }
    }

    /// A CRD with what the host has of its kind.
    async fn whole(&self, client: &kube::Client, crd: &Value) -> anyhow::Result<()> {
        self.install(client, crd).await?;
        if json::text(crd, "/spec/group") == Some(wasm_provider::GROUP) {
            for provider in &self.providers {
                install::wasm_provider(client, provider).await?;
            }
        }
        Ok(())
    }

    /// Returns the names of those for which it did not work.
    async fn put_back(&self, client: &kube::Client, gone: BTreeSet<String>) -> BTreeSet<String> {
        let mut left = BTreeSet::new();
        for name in gone {
            let Some(crd) = self.crds.iter().find(|crd| meta::name(crd) == name) else { continue };
            match self.whole(client, crd).await {
                Ok(()) => {
                    tracing::warn!(crd = name, "somebody deleted a CRD of the host; it is back, without its objects")
                }
                Err(error) => {
                    tracing::warn!(crd = name, error = format!("{error:#}"), "unable to put a CRD back; trying again");
                    left.insert(name);
                }
            }
        }
        left
    }
}

trait Named {
    fn map_name(self) -> Event<String>;
}

impl<K: ResourceExt> Named for Event<K> {
    fn map_name(self) -> Event<String> {
        match self {
            Event::Apply(object) => Event::Apply(object.name_any()),
            Event::Delete(object) => Event::Delete(object.name_any()),
            Event::Init => Event::Init,
            Event::InitApply(object) => Event::InitApply(object.name_any()),
            Event::InitDone => Event::InitDone,
        }
    }
}

/// CRDs with the host's label, as far as the watch has shown them.
#[derive(Debug, Default)]
struct Ours {
    present: BTreeSet<String>,
    /// Those of a list that goes on.
    listed: BTreeSet<String>,
}

impl Ours {
    /// The names of those that were there, and are there no more.
    fn gone(&mut self, event: Event<String>) -> Vec<String> {
        match event {
            Event::Apply(name) => {
                self.present.insert(name);
                Vec::new()
            }
            Event::Delete(name) => self.present.take(&name).into_iter().collect(),
            Event::Init => {
                self.listed.clear();
                Vec::new()
            }
            Event::InitApply(name) => {
                self.listed.insert(name);
                Vec::new()
            }
            Event::InitDone => {
                let before = std::mem::replace(&mut self.present, std::mem::take(&mut self.listed));
                before.difference(&self.present).cloned().collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use kube::api::{DeleteParams, Patch, PatchParams};
    use serde_json::json;

    use super::*;
    use crate::testing::{api, until, world};

    #[test]
    fn what_was_there_is_missed_whenever_it_went() {
        let name = |name: &str| name.to_owned();
        let mut ours = Ours::default();
        let rows: [(&str, Event<String>, &[&str]); 12] = [
            ("a first list", Event::Init, &[]),
            ("one", Event::InitApply(name("a")), &[]),
            ("another", Event::InitApply(name("b")), &[]),
            ("what never was there is not missed", Event::InitDone, &[]),
            ("a change", Event::Apply(name("a")), &[]),
            ("deleted", Event::Delete(name("a")), &["a"]),
            ("told twice", Event::Delete(name("a")), &[]),
            ("it is back", Event::Apply(name("a")), &[]),
            ("the watch begins again", Event::Init, &[]),
            ("with one", Event::InitApply(name("b")), &[]),
            ("the other went meanwhile", Event::InitDone, &["a"]),
            ("the rest is still known", Event::Delete(name("b")), &["b"]),
        ];
        for (row, event, expected) in rows {
            assert_eq!(ours.gone(event), expected, "{row}");
        }
    }

    fn crd(plural: &str) -> Value {
        let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        let names = json!({"kind": plural.to_uppercase(), "plural": plural, "singular": plural,
            "listKind": format!("{}List", plural.to_uppercase())});
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.kept.example")},
            "spec": {"group": "kept.example", "scope": "Namespaced", "names": names,
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}})
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_crd_that_somebody_deletes_comes_back_and_what_somebody_changes_stays() {
        let world = world().await;
        let provider = json!({"apiVersion": wasm_provider::API_VERSION, "kind": wasm_provider::KIND,
            "metadata": {"name": "bundled"}, "spec": {"source": {"file": "bundled.wasm"}}});
        let mut wanted = ["as", "bs", "cs"].map(crd).to_vec();
        wanted.push(wasm_provider::crd().unwrap());
        let kept = Crds { crds: wanted, conversions: None, providers: vec![provider.clone()] };
        let mut installed = BTreeSet::new();
        for crd in &kept.crds {
            assert!(kept.install(&world.client, crd).await.unwrap());
            installed.insert(meta::name(crd).to_owned());
        }
        install::wasm_provider(&world.client, &provider).await.unwrap();
        let shutdown = CancellationToken::new();
        let keeping = tokio::spawn(kept.keep(installed, world.client.clone(), shutdown.clone()));
        let crds = api(&world.client, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "");
        let (merge, delete) = (PatchParams::default(), DeleteParams::default());
        let back = async |name: &str| {
            let before = crds.get(name).await.unwrap().metadata.uid;
            crds.delete(name, &delete).await.unwrap();
            until("it comes back", async || crds.get_opt(name).await.unwrap().filter(|crd| crd.metadata.uid != before))
                .await;
        };
        back("as.kept.example").await;
        let handed_over = Patch::Merge(json!({"metadata": {"labels": {install::INSTALLED_BY: null}}}));
        crds.patch("bs.kept.example", &merge, &handed_over).await.unwrap();
        let changed = Patch::Merge(json!({"spec": {"names": {"shortNames": ["seen"]}}}));
        crds.patch("cs.kept.example", &merge, &changed).await.unwrap();
        back("as.kept.example").await;
        crds.delete("bs.kept.example", &delete).await.unwrap();
        back("as.kept.example").await;
        assert!(crds.get_opt("bs.kept.example").await.unwrap().is_none(), "it was somebody else's");
        let changed = crds.get("cs.kept.example").await.unwrap();
        assert_eq!(changed.data["spec"]["names"]["shortNames"], json!(["seen"]), "nobody fights over it");
        let providers = api(&world.client, wasm_provider::GROUP, "v1alpha1", wasm_provider::KIND, "");
        let first = providers.get("bundled").await.unwrap().metadata.uid;
        back("wasmproviders.capwasm.dev").await;
        until("the host's providers come back with their CRD", async || {
            providers.get_opt("bundled").await.ok()??.metadata.uid.filter(|uid| Some(uid) != first.as_ref())
        })
        .await;
        shutdown.cancel();
        keeping.await.unwrap();
    }
}
