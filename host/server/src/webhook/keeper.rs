//! Maintains the webhook's objects: the Secret with the CA, trust in CRDs and webhook configurations, and the kinds in
//! those.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use capwasm_providers::Conversions;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::address::Address;
use super::certificates::Authority;
use super::configuration::{self, CONVERT, Kind, NAME};
use super::server::Certificate;

/// Name of the Secret with the CA.
const SECRET: &str = "capwasm-webhook";
/// Field manager of the configurations.
const MANAGER: &str = "capwasm-webhook";
/// Delay after a failed pass.
const RETRY: Duration = Duration::from_secs(5);
/// Longest delay between passes: clocks are set, machines sleep.
const LOOK: Duration = Duration::from_secs(3600);

/// Keeps it for one host.
pub struct Keeper {
    client: kube::Client,
    /// Namespace of the Secret.
    namespace: String,
    address: Address,
    conversions: Arc<Conversions>,
    certificate: Arc<Certificate>,
    /// CA of the serving certificate, and when to replace that.
    signed: Option<(Authority, Timestamp)>,
}

impl Keeper {
    pub fn new(
        client: kube::Client,
        namespace: String,
        address: Address,
        conversions: Arc<Conversions>,
        certificate: Arc<Certificate>,
    ) -> Self {
        Keeper { client, namespace, address, conversions, certificate, signed: None }
    }

    /// Creates and updates all objects. Returns the time until the next pass.
    ///
    /// # Errors
    /// When the API server refuses something, or cannot be reached.
    pub async fn pass(&mut self) -> Result<Duration> {
        let now = Timestamp::now();
        let authority = self.authority(now).await?;
        self.conversions.reached_by(self.address.client_config(CONVERT, &authority.bundle));
        self.trust(&authority.bundle).await?;
        for kind in [Kind::Mutating, Kind::Validating] {
            self.configure(kind, &authority.bundle).await?;
        }
        // Last: by now everybody trusts the newest.
        let renew = match &self.signed {
            Some((by, renew)) if *by == authority && now < *renew => *renew,
            _ => {
                let serving = authority.issue(&self.address.names(), now)?;
                self.certificate.set(&serving)?;
                tracing::info!(renew = %serving.renew, "the webhook has a new serving certificate");
                let renew = serving.renew;
                self.signed = Some((authority.clone(), renew));
                renew
            }
        };
        let next = renew.min(authority.renew()).duration_since(now);
        Ok(Duration::try_from(next).unwrap_or_default().clamp(RETRY, LOOK))
    }

    /// Runs passes until `shutdown`: after changes, when the kinds change, and when a certificate has to be replaced.
    pub async fn run(mut self, mut due: Duration, shutdown: CancellationToken) {
        let mut kinds = self.conversions.admissions().changes();
        let mut touched = self.touched();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                changed = kinds.changed() => if changed.is_err() { return },
                event = touched.next() => if event.is_none() { return },
                () = tokio::time::sleep(due) => {}
            }
            // What came together is looked at together.
            while touched.next().now_or_never().flatten().is_some() {}
            due = match self.pass().await {
                Ok(due) => due,
                Err(error) => {
                    tracing::warn!(
                        error = format!("{error:#}"),
                        "unable to keep the webhook's configuration; trying again"
                    );
                    RETRY
                }
            };
        }
    }

    /// Yields when the Secret or a configuration has changed.
    fn touched(&self) -> BoxStream<'static, ()> {
        let named = |name: &str| watcher::Config::default().fields(&format!("metadata.name={name}"));
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let secrets = watcher(secrets, named(SECRET)).default_backoff().map(|_| ()).boxed();
        let configurations = [Kind::Mutating, Kind::Validating].map(|kind| {
            let resource = resource("admissionregistration.k8s.io", kind.name());
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
            watcher(api, named(NAME)).default_backoff().map(|_| ()).boxed()
        });
        futures::stream::select_all(configurations.into_iter().chain([secrets])).boxed()
    }

    /// Reads the CA from its Secret, or creates it.
    async fn authority(&self, now: Timestamp) -> Result<Authority> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let unable = || format!("unable to keep the webhook's CA in the Secret {}/{SECRET}", self.namespace);
        for _ in 0..3 {
            let live = api.get_opt(SECRET).await.with_context(unable)?;
            let stored = live.as_ref().and_then(|secret| Authority::from_data(secret.data.as_ref()?));
            let wanted = match &stored {
                Some(stored) => match stored.renewed(now)? {
                    Some(renewed) => renewed,
                    None => return Ok(stored.clone()),
                },
                None => Authority::new(now)?,
            };
            let mut secret = live.clone().unwrap_or_default();
            secret.metadata.name = Some(SECRET.to_owned());
            secret.data = Some(wanted.to_data());
            let written = match live {
                Some(_) => api.replace(SECRET, &PostParams::default(), &secret).await,
                None => api.create(&PostParams::default(), &secret).await,
            };
            match written {
                Ok(_) => {
                    tracing::info!(secret = SECRET, namespace = self.namespace, "the webhook has a new CA");
                    return Ok(wanted);
                }
                // Somebody else was first, or took it away.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(error).with_context(unable),
            }
        }
        bail!("{}: it changes all the time", unable())
    }

    /// Sets the bundle in all CRDs with this webhook.
    async fn trust(&self, bundle: &str) -> Result<()> {
        let api: Api<DynamicObject> =
            Api::all_with(self.client.clone(), &resource("apiextensions.k8s.io", "CustomResourceDefinition"));
        let crds = api.list(&ListParams::default()).await.context("unable to list CRDs")?;
        let wanted = self.address.client_config(CONVERT, bundle);
        for crd in crds {
            let Some(live) = crd.data.pointer("/spec/conversion/webhook/clientConfig") else { continue };
            if !self.address.is_in(live, CONVERT) || live.get("caBundle") == wanted.get("caBundle") {
                continue;
            }
            let name = crd.metadata.name.unwrap_or_default();
            let patch =
                json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": wanted["caBundle"]}}}}});
            api.patch(&name, &PatchParams::default(), &Patch::Merge(patch))
                .await
                .with_context(|| format!("unable to let CRD {name} trust the webhook"))?;
        }
        Ok(())
    }

    async fn configure(&self, kind: Kind, bundle: &str) -> Result<()> {
        let resource = resource("admissionregistration.k8s.io", kind.name());
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let wanted = configuration::of(kind, &self.conversions.admissions().kinds(), &self.address, bundle);
        api.patch(NAME, &PatchParams::apply(MANAGER).force(), &Patch::Apply(wanted))
            .await
            .map(drop)
            .with_context(|| format!("unable to apply the {} {NAME}", kind.name()))
    }
}

fn resource(group: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind))
}
