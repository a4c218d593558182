//! CRDs of core and of WasmProvider, and the folder of bundled providers.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use capwasm_providers::wasm_provider;
use serde_json::Value;

/// CRDs of core kinds and of WasmProvider.
pub fn crds() -> Result<Vec<Value>> {
    let mut crds = capwasm_api::crds::core_crds();
    crds.push(wasm_provider::crd().context("the CRD of WasmProvider is broken")?);
    Ok(crds)
}

/// Providers that are shipped with capwasm, as `<name>.wasm` in the provider folder.
pub const BUNDLED: [&str; 4] = ["docker-infra", "kubeadm-bootstrap", "kubeadm-control-plane", OPENSTACK];

/// Bundled provider that reaches no cloud without a grant of the operator.
pub const OPENSTACK: &str = "openstack-infra";

/// The provider folder: the given one, or `plugins` beside the binary, or beside its folder (as `cargo xtask build`
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
