//! `capwasm crds`: what a host installs, as YAML.

use std::path::PathBuf;

use anyhow::{Context, Result};
use capwasm_providers::{ProviderFiles, Serving, served};
use capwasm_runtime::Limits;
use capwasm_server::{bundle, compile};
use clap::Args;
use serde_json::Value;

use crate::output;

/// Options of `capwasm crds`.
#[derive(Args)]
pub struct Options {
    /// Leave out the kinds of the bundled providers.
    #[arg(long)]
    core_only: bool,
    /// Folder with components. Default: `plugins` beside the binary.
    #[arg(long)]
    provider_dir: Option<PathBuf>,
}

/// Prints the CRDs that a host installs into a Kubernetes API server, as YAML documents.
pub async fn print(options: Options) -> Result<()> {
    let mut crds: Vec<Value> = bundle::crds()?.iter().map(|crd| served(crd, Serving::Stored)).collect();
    if !options.core_only {
        let files = ProviderFiles::open(&bundle::provider_dir(options.provider_dir)?)?;
        let runtime = compile::runtime(compile::options(None))?;
        for name in bundle::BUNDLED {
            let file = format!("{name}.wasm");
            let provider = runtime
                .load(&files.read(&file).await?, Limits::default())
                .await
                .with_context(|| format!("unable to load {file}"))?;
            crds.extend(capwasm_providers::crds(provider.descriptor(), Serving::Stored));
        }
    }
    let documents: Result<Vec<String>, _> =
        crds.iter().map(|crd| serde_saphyr::to_string(crd).map(|text| format!("---\n{text}"))).collect();
    output::write(&documents?.concat())
}
