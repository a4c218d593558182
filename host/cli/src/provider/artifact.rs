//! `capwasm provider push | pull | save | load`: providers between files, registries and folders.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use capwasm_registry::{Artifact, LARGEST_COMPONENT, Layout, Reference, Verification, copy, pull, sign};
use capwasm_runtime::{Limits, Provider};
use clap::Args;
use serde::Serialize;

use super::registry;
use crate::compile;
use crate::output::Output;

/// Options of `capwasm provider push`.
#[derive(Args)]
pub struct Push {
    /// The component.
    file: PathBuf,
    /// Where to: REGISTRY/REPOSITORY:TAG.
    reference: Reference,
    /// Sign it with this private key, too.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Say something about the artifact. May be given again.
    #[arg(long, value_name = "NAME=VALUE", value_parser = annotation)]
    annotation: Vec<(String, String)>,
    #[command(flatten)]
    registry: registry::Options,
    #[command(flatten)]
    output: Output,
}

/// Options of `capwasm provider pull`.
#[derive(Args)]
pub struct Pull {
    /// What: REGISTRY/REPOSITORY:TAG, or with @sha256:….
    reference: Reference,
    /// The file to write. Default: the repository's last part, with .wasm.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Only when signed with this public key; any one of them where it is given again.
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
    /// Largest component, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = LARGEST_COMPONENT)]
    max_size: u64,
    /// From a folder of `save` instead of a registry.
    #[arg(long, value_name = "FOLDER")]
    from: Option<PathBuf>,
    #[command(flatten)]
    registry: registry::Options,
}

/// Options of `capwasm provider save`.
#[derive(Args)]
pub struct Save {
    /// The folder, an OCI image layout. Made where there is none, added to where there is one.
    folder: PathBuf,
    /// What: REGISTRY/REPOSITORY:TAG, or with @sha256:….
    #[arg(required = true)]
    references: Vec<Reference>,
    /// Only when signed with this public key; any one of them where it is given again.
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
    #[command(flatten)]
    registry: registry::Options,
    #[command(flatten)]
    output: Output,
}

/// Options of `capwasm provider load`.
#[derive(Args)]
pub struct Load {
    /// A folder that `save` wrote.
    folder: PathBuf,
    /// Push to this registry, with or without a path before the repositories, instead of the one in each name.
    #[arg(long, value_name = "REGISTRY")]
    to: Option<String>,
    /// Only when signed with this public key; any one of them where it is given again.
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
    #[command(flatten)]
    registry: registry::Options,
    #[command(flatten)]
    output: Output,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    /// The given reference.
    name: Reference,
    /// Reference by digest.
    reference: Reference,
    signed: bool,
}

/// Reads and loads a component.
pub async fn component(file: &Path) -> Result<(Vec<u8>, std::sync::Arc<Provider>)> {
    let bytes = compile::read(file)?;
    let provider = compile::load(file, &bytes, Limits::default()).await?;
    Ok((bytes, provider))
}

pub async fn push(options: Push) -> Result<()> {
    let (bytes, provider) = component(&options.file).await?;
    let descriptor = provider.descriptor();
    let mut annotations = BTreeMap::from([
        ("org.opencontainers.image.title".to_owned(), descriptor.name.clone()),
        ("org.opencontainers.image.version".to_owned(), descriptor.version.clone()),
        ("dev.capwasm.contract".to_owned(), descriptor.contract.clone()),
    ]);
    annotations.extend(options.annotation);
    // Before anything is sent: a key that does not open leaves no unsigned artifact behind.
    let key = options.key.as_deref().map(registry::private_key).transpose()?;
    let repository = options.registry.read()?.repository(&options.reference)?;
    let reference = Artifact::build(bytes.into(), annotations)?.push(&repository, &options.reference).await?;
    if let Some(key) = &key {
        sign(&repository, &reference, key).await.with_context(|| format!("{reference} is pushed, but not signed"))?;
    }
    let stored = Stored { name: options.reference, reference, signed: key.is_some() };
    options.output.print(&stored, |stored| format!("{}\n", stored.reference))
}

pub async fn run_pull(options: Pull) -> Result<()> {
    let reference = &options.reference;
    let verification = registry::verification(&options.key)?;
    let pulled = match &options.from {
        Some(folder) => {
            let folder = Layout::open(folder)?.repository(reference);
            pull(&folder, reference, &verification, options.max_size).await?
        }
        None => {
            let repository = options.registry.read()?.repository(reference)?;
            pull(&repository, reference, &verification, options.max_size).await?
        }
    };
    let file = options.output.unwrap_or_else(|| {
        let last = reference.repository().rsplit('/').next().unwrap_or_default();
        PathBuf::from(format!("{last}.wasm"))
    });
    write(&file, &pulled.component)?;
    println!("{}", pulled.reference);
    if matches!(verification, Verification::None) {
        eprintln!("{}: not verified, as no --key was given", file.display());
    }
    Ok(())
}

/// Writes a file beside its place and renames it, so that a host that watches the folder never sees a part of it.
pub fn write(file: &Path, bytes: &[u8]) -> Result<()> {
    let name = file.file_name().with_context(|| format!("{} is not the name of a file", file.display()))?;
    let part = file.with_file_name(format!(".{}.part", name.to_string_lossy()));
    std::fs::write(&part, bytes)
        .and_then(|()| std::fs::rename(&part, file))
        .with_context(|| format!("unable to write {}", file.display()))
}

pub async fn save(options: Save) -> Result<()> {
    let verification = registry::verification(&options.key)?;
    let reachable = options.registry.read()?;
    let folder = Layout::create(&options.folder)?;
    let mut all = Vec::new();
    for name in options.references {
        let from = reachable.repository(&name)?;
        let (reference, signed) = copy(&from, &folder.repository(&name), &name, &verification)
            .await
            .with_context(|| format!("unable to save {name}"))?;
        all.push(Stored { name, reference, signed });
    }
    options.output.print(&all, |all| people(all))
}

pub async fn load(options: Load) -> Result<()> {
    let verification = registry::verification(&options.key)?;
    let reachable = options.registry.read()?;
    let folder = Layout::open(&options.folder)?;
    let mut all = Vec::new();
    for name in folder.references()? {
        let to = match &options.to {
            Some(registry) => name.below(registry)?,
            None => name.clone(),
        };
        let repository = reachable.repository(&to)?;
        let (pinned, signed) = copy(&folder.repository(&name), &repository, &name, &verification)
            .await
            .with_context(|| format!("unable to load {name}"))?;
        let reference = pinned.digest().map_or_else(|| to.clone(), |digest| to.pinned(digest));
        all.push(Stored { name, reference, signed });
    }
    if all.is_empty() {
        bail!("{} holds no artifacts", options.folder.display());
    }
    options.output.print(&all, |all| people(all))
}

fn people(all: &[Stored]) -> String {
    let line = |stored: &Stored| {
        format!("{}  {}\n", stored.reference, if stored.signed { "with signatures" } else { "not signed" })
    };
    all.iter().map(line).collect()
}

fn annotation(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("NAME=VALUE is expected".to_owned()),
    }
}
