//! `capwasm provider swap | rollback | approve`: change the WasmProvider, and wait until the host has acted on it, or
//! says why not.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use capwasm_api::conditions;
use capwasm_object::json;
use capwasm_providers::wasm_provider;
use capwasm_providers::wasm_provider::history::History;
use clap::Args;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::kubeconfig::Connection;

/// What all of them take.
#[derive(Args)]
struct Common {
    /// Name of the WasmProvider.
    name: String,
    #[command(flatten)]
    connection: Connection,
    /// Longest wait until the host has done it, seconds; 0 does not wait.
    #[arg(long, default_value_t = 120)]
    timeout: u64,
}

/// Options of `capwasm provider swap`.
#[derive(Args)]
pub struct Swap {
    #[command(flatten)]
    common: Common,
    /// The component: a file, which is put into the host's provider folder on this machine; the name of one that is there; or
    /// REGISTRY/REPOSITORY:TAG, or with @sha256:….
    component: String,
    /// The host's provider folder. Default: as the host says.
    #[arg(long)]
    provider_dir: Option<PathBuf>,
    /// Approve it, too, if the update policy asks for that.
    #[arg(long)]
    approve: bool,
}

/// Options of `capwasm provider rollback`.
#[derive(Args)]
pub struct Rollback {
    #[command(flatten)]
    common: Common,
    /// Digest, or how it begins, of a component that served before. Default: the last one.
    #[arg(long, value_name = "DIGEST", conflicts_with = "undo")]
    to: Option<String>,
    /// Follow the source again instead.
    #[arg(long)]
    undo: bool,
}

/// Options of `capwasm provider approve`.
#[derive(Args)]
pub struct Approve {
    #[command(flatten)]
    common: Common,
    /// Digest of the component. Default: the one that waits.
    digest: Option<String>,
}

/// Points the source at another component.
pub async fn swap(options: Swap) -> Result<()> {
    let provider = Remote::find(&options.common).await?;
    let source = match place(&options, &provider.object)? {
        Some(file) => json!({"file": file, "oci": null}),
        None => json!({"file": null, "oci": {"reference": options.component}}),
    };
    let mut object = provider.patch(json!({"source": source, "update": {"pin": null}})).await?;
    loop {
        let Some(settled) = provider.settled(&object).await? else { return Ok(()) };
        let candidate = History::of(&settled).candidate;
        let waits = candidate.filter(|candidate| options.approve && candidate.waits_for_approval());
        match waits {
            Some(candidate) => {
                object = provider.patch(json!({"update": {"approve": candidate.component.digest}})).await?;
            }
            None => return provider.tell(&settled),
        }
    }
}

/// Pins an earlier component, or removes the pin.
pub async fn rollback(options: Rollback) -> Result<()> {
    let provider = Remote::find(&options.common).await?;
    let history = History::of(&provider.object);
    let pin = if options.undo { Value::Null } else { earlier(&history, options.to.as_deref())?.into() };
    let object = provider.patch(json!({"update": {"pin": pin}})).await?;
    match provider.settled(&object).await? {
        Some(settled) => provider.tell(&settled),
        None => Ok(()),
    }
}

pub async fn approve(options: Approve) -> Result<()> {
    let provider = Remote::find(&options.common).await?;
    let waits = || History::of(&provider.object).candidate.map(|candidate| candidate.component.digest);
    let digest = options.digest.or_else(waits).context("nothing waits for approval")?;
    let object = provider.patch(json!({"update": {"approve": digest}})).await?;
    match provider.settled(&object).await? {
        Some(settled) => provider.tell(&settled),
        None => Ok(()),
    }
}

struct Remote {
    api: Api<DynamicObject>,
    name: String,
    object: Value,
    timeout: Duration,
}

impl Remote {
    async fn find(common: &Common) -> Result<Self> {
        let client = common.connection.client().await?;
        let gvk = GroupVersionKind::gvk(wasm_provider::GROUP, "v1alpha1", wasm_provider::KIND);
        let api: Api<DynamicObject> = Api::all_with(client, &ApiResource::from_gvk(&gvk));
        let found = api
            .get_opt(&common.name)
            .await
            .context("unable to read WasmProviders: does capwasm run on this cluster?")?;
        let name = common.name.clone();
        let found = found.with_context(|| format!("there is no WasmProvider {name:?}; see `capwasm provider list`"))?;
        let object = serde_json::to_value(found)?;
        Ok(Remote { api, name, object, timeout: Duration::from_secs(common.timeout) })
    }

    async fn patch(&self, spec: Value) -> Result<Value> {
        let patch = Patch::Merge(json!({"spec": spec}));
        let patched = self.api.patch(&self.name, &PatchParams::default(), &patch).await;
        Ok(serde_json::to_value(patched.with_context(|| format!("unable to change WasmProvider {}", self.name))?)?)
    }

    /// The object once the host has observed this generation of it; `None` without waiting.
    async fn settled(&self, object: &Value) -> Result<Option<Value>> {
        if self.timeout.is_zero() {
            return Ok(None);
        }
        let generation = json::number(object, "/metadata/generation").unwrap_or_default();
        let settled = |object: Option<&DynamicObject>| object.is_some_and(|object| is_settled(object, generation));
        let waited = tokio::time::timeout(self.timeout, await_condition(self.api.clone(), &self.name, settled)).await;
        let found = waited
            .with_context(|| {
                format!(
                    "the host has not done it within {:?}; see `kubectl describe wasmprovider {}`",
                    self.timeout, self.name
                )
            })?
            .context("unable to wait for the host")?;
        Ok(Some(serde_json::to_value(found)?))
    }

    /// Prints the component that serves; an error if it is another than requested.
    fn tell(&self, object: &Value) -> Result<()> {
        let late = conditions::get(object, "UpToDate");
        match late.filter(|late| late.status.as_str() != "True" && late.reason != "Pinned") {
            Some(late) => bail!("{}: {}: {}", self.name, late.reason, late.message),
            None => {
                let text = |pointer: &str| json::text(object, pointer).unwrap_or_default();
                println!("{}: {} ({}) serves", self.name, text("/status/digest"), text("/status/version"));
                Ok(())
            }
        }
    }
}

fn is_settled(object: &DynamicObject, generation: i64) -> bool {
    let object = json!({"status": object.data.get("status")});
    let seen = json::number(&object, "/status/observedGeneration").unwrap_or_default() >= generation;
    seen && conditions::get(&object, "UpToDate").is_some_and(|late| late.reason != "InstallingCRDs")
}

/// Digest of an earlier component.
fn earlier(history: &History, wanted: Option<&str>) -> Result<String> {
    let matches = |digest: &str| {
        wanted
            .is_none_or(|wanted| digest.trim_start_matches("sha256:").starts_with(wanted.trim_start_matches("sha256:")))
    };
    let found: Vec<&str> =
        history.previous.iter().map(|record| record.digest.as_str()).filter(|digest| matches(digest)).collect();
    match (found.as_slice(), wanted) {
        ([first, ..], None) | ([first], Some(_)) => Ok((*first).to_owned()),
        ([], None) => bail!("no component served before this one"),
        ([], Some(wanted)) => {
            let kept: Vec<&str> = history.previous.iter().map(|record| record.digest.as_str()).collect();
            bail!("{wanted} is not kept; there are {}", kept.join(", "))
        }
        (_, Some(wanted)) => bail!("{wanted} is how several digests begin"),
    }
}

/// Name of the component in the host's provider folder, to which a file is copied; `None` for an artifact.
fn place(options: &Swap, provider: &Value) -> Result<Option<String>> {
    let file = Path::new(&options.component);
    if !file.exists() {
        let named = options.component.ends_with(".wasm") && !options.component.contains('/');
        if file.extension().is_some_and(|extension| extension == "wasm") && !named {
            bail!("there is no file {}", file.display());
        }
        return Ok(named.then(|| options.component.clone()));
    }
    let told = json::text(provider, "/status/providerFolder").map(PathBuf::from);
    let folder = options.provider_dir.clone().or(told).filter(|folder| folder.is_dir()).context(
        "the host's provider folder is not on this machine: push the component to a registry, or give --provider-dir",
    )?;
    let bytes = std::fs::read(file).with_context(|| format!("unable to read {}", file.display()))?;
    if let (Some(parent), Some(name)) = (file.canonicalize()?.parent(), file.file_name())
        && folder.canonicalize()? == parent
    {
        return Ok(Some(name.to_string_lossy().into_owned()));
    }
    let digest = hex::encode(&Sha256::digest(&bytes)[..6]);
    let name = format!("{}-{digest}.wasm", options.common.name);
    // Whole under its name, or not there.
    let mut draft = tempfile::NamedTempFile::new_in(&folder)
        .with_context(|| format!("unable to write to the provider folder {}", folder.display()))?;
    std::io::Write::write_all(&mut draft, &bytes)?;
    draft.persist(folder.join(&name)).with_context(|| format!("unable to write {name}"))?;
    Ok(Some(name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use super::*;

    fn history(digests: &[&str]) -> History {
        let previous: Vec<Value> = digests.iter().map(|digest| json!({"digest": format!("sha256:{digest}")})).collect();
        History::of(&json!({"status": {"previous": previous}}))
    }

    #[test]
    fn a_rollback_goes_to_the_last_component_or_to_the_one_that_is_meant() {
        let kept = history(&["aa11", "ab22"]);
        assert_eq!(earlier(&kept, None).unwrap(), "sha256:aa11");
        assert_eq!(earlier(&kept, Some("ab")).unwrap(), "sha256:ab22");
        assert_eq!(earlier(&kept, Some("sha256:aa11")).unwrap(), "sha256:aa11");
        for (wanted, part) in [(Some("a"), "several"), (Some("cc"), "sha256:aa11, sha256:ab22")] {
            assert!(earlier(&kept, wanted).unwrap_err().to_string().contains(part), "{wanted:?}");
        }
        assert!(earlier(&history(&[]), None).is_err());
    }

    #[test]
    fn a_host_has_dealt_with_a_generation_when_it_says_so() {
        let object = |observed: i64, reason: &str| -> DynamicObject {
            let late = json!({"type": "UpToDate", "status": "False", "reason": reason, "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"});
            serde_json::from_value(
                json!({"metadata": {}, "status": {"observedGeneration": observed, "conditions": [late]}}),
            )
            .unwrap()
        };
        assert!(is_settled(&object(3, "LoadFailed"), 3));
        assert!(!is_settled(&object(2, "LoadFailed"), 3));
        assert!(!is_settled(&object(3, "InstallingCRDs"), 3));
    }
}
