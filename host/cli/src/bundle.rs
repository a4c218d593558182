//! What comes with the binary: CRDs of the core kinds and of WasmProvider, and where the bundled providers are.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use capwasm_providers::{ProviderFiles, Serving, served, wasm_provider};
use capwasm_runtime::Limits;
use clap::Args;
use serde_json::Value;

/// Core kinds and WasmProvider.
pub fn crds() -> Result<Vec<Value>> {
    let mut crds = capwasm_api::crds::core_crds();
    crds.push(wasm_provider::crd().context("the CRD of WasmProvider is broken")?);
    Ok(crds)
}

/// Options of `capwasm crds`.
#[derive(Args)]
pub struct CrdsOptions {
    /// Leave out the kinds of the bundled providers.
    #[arg(long)]
    core_only: bool,
    /// Folder with components. Default: `plugins` beside the binary.
    #[arg(long)]
    provider_dir: Option<PathBuf>,
}

/// Prints the CRDs that a host installs into a Kubernetes API server, as YAML documents.
pub async fn print_crds(options: CrdsOptions) -> Result<()> {
    let mut crds: Vec<Value> = crds()?.iter().map(|crd| served(crd, Serving::Stored)).collect();
    if !options.core_only {
        let files = ProviderFiles::open(&provider_dir(options.provider_dir)?)?;
        let runtime = crate::compile::runtime(None)?;
        for name in BUNDLED {
            let file = format!("{name}.wasm");
            let provider = runtime
                .load(&files.read(&file).await?, Limits::default())
                .await
                .with_context(|| format!("unable to load {file}"))?;
            crds.extend(capwasm_providers::crds(provider.descriptor(), Serving::Stored));
        }
    }
    for crd in crds {
        print!("---\n{}", serde_saphyr::to_string(&crd)?);
    }
    Ok(())
}

/// The providers that come with capwasm; `<name>.wasm` in the provider folder.
pub const BUNDLED: [&str; 4] =
    ["docker-infra", "kubeadm-bootstrap", "kubeadm-control-plane", crate::openstack::PROVIDER];

/// The provider folder: as given, or `plugins` beside the binary, or beside the binary's folder (as `cargo xtask build`
/// leaves it).
pub fn provider_dir(given: Option<PathBuf>) -> Result<PathBuf> {
    if let Some(given) = given {
        return Ok(given);
    }
    let binary = std::env::current_exe().context("unable to find this binary")?;
    let folders: Vec<PathBuf> = binary.ancestors().skip(1).take(2).map(|folder| folder.join("plugins")).collect();
    match folders.iter().find(|folder| folder.is_dir()) {
        Some(folder) => Ok(folder.clone()),
        None => bail!(
            "there is no folder with providers: give --provider-dir, or put them into {}",
            folders.first().map_or_else(String::new, |f| f.display().to_string())
        ),
    }
}
