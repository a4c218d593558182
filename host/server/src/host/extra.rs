//! Providers from the command line, which are granted what they want.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use capwasm_contract::descriptor::Descriptor;
use capwasm_providers::wasm_provider;
use capwasm_runtime::{Grants, Limits};

use super::{Host, Options, install};
use crate::{bundle, compile};

/// Creates a provider folder with the bundled providers, so that others can be added.
pub fn folder(bundled: &Path, folder: &Path) -> Result<PathBuf> {
    let folder = folder.join("plugins");
    std::fs::create_dir_all(&folder).with_context(|| format!("unable to make {}", folder.display()))?;
    for name in bundle::BUNDLED {
        let file = format!("{name}.wasm");
        let from = bundled.join(&file);
        std::fs::copy(&from, folder.join(&file)).with_context(|| format!("unable to copy {}", from.display()))?;
    }
    Ok(folder)
}

/// Adds components to the provider folder of a running host, and waits until they serve.
pub async fn start(
    client: &kube::Client,
    host: &Host,
    options: &Options,
    files: &[PathBuf],
) -> Result<Vec<Descriptor>> {
    // The host finds compiled what is compiled here.
    let runtime = compile::runtime(options.runtime.clone())?;
    let mut started = Vec::new();
    for path in files {
        let bytes = std::fs::read(path).with_context(|| format!("unable to read {}", path.display()))?;
        let provider = runtime
            .load(&bytes, Limits::default())
            .await
            .with_context(|| format!("{} is not a provider", path.display()))?;
        let descriptor = provider.descriptor();
        if bundle::BUNDLED.contains(&descriptor.name.as_str()) {
            bail!("{} is called {}, as a bundled provider is: give it another name", path.display(), descriptor.name);
        }
        let file = format!("{}.wasm", descriptor.name);
        let to = options.provider_dir.join(&file);
        std::fs::write(&to, &bytes).with_context(|| format!("unable to write {}", to.display()))?;
        let object = wasm_provider::bundled(descriptor, &file, &options.endpoints, told(descriptor)?, None)?;
        install::wasm_provider(client, &object).await?;
        let serves = host.serving(client, &descriptor.name).await?;
        serves.map_err(|why| anyhow::anyhow!("provider {} does not serve: {why}", descriptor.name))?;
        started.push(descriptor.clone());
    }
    Ok(started)
}

/// Wanted origins, which bundled providers get from options instead.
fn told(descriptor: &Descriptor) -> Result<Grants> {
    let origins = descriptor.wants.origins.iter().map(|origin| {
        origin.parse().with_context(|| format!("{} wants {origin:?}, which is no origin", descriptor.name))
    });
    Ok(Grants { origins: origins.collect::<Result<_>>()?, ..Grants::default() })
}
