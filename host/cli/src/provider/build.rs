//! `capwasm provider build`: builds a Rust project into a component that a host would load.

use std::path::{Path, PathBuf};
use std::process::{Command, Output as Finished, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::{Deserialize, Serialize};

use super::artifact::{component, write};
use crate::output::Output;

const TARGET: &str = "wasm32-wasip2";

/// Options of `capwasm provider build`.
#[derive(Args)]
pub struct Build {
    /// The project's folder, with its Cargo.toml.
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// Copy the component to this file. Default: it stays where cargo wrote it.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// The profile to build with. Default: `plugin` where the workspace has one, as `provider new` writes it; otherwise `release`.
    #[arg(long)]
    profile: Option<String>,
    #[command(flatten)]
    output: Output,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Built {
    file: PathBuf,
    name: String,
    version: String,
    digest: String,
    size_bytes: usize,
}

/// Builds the component, and loads it as a host would.
pub async fn run(options: Build) -> Result<()> {
    let built = cargo(&options.folder, options.profile)?;
    let (bytes, provider) = component(&built).await?;
    let file = match options.to {
        Some(file) => {
            write(&file, &bytes)?;
            file
        }
        None => built,
    };
    let descriptor = provider.descriptor();
    let built = Built {
        file,
        name: descriptor.name.clone(),
        version: descriptor.version.clone(),
        digest: provider.digest().to_owned(),
        size_bytes: bytes.len(),
    };
    options.output.print(&built, |built| {
        let size = built.size_bytes as f64 / 1e6;
        format!("{}  {} {}  {size:.2} MB  {}\n", built.file.display(), built.name, built.version, built.digest)
    })
}

/// Runs cargo, whose messages go to standard error, and returns the one component that it built.
fn cargo(folder: &Path, profile: Option<String>) -> Result<PathBuf> {
    let manifest = folder.join("Cargo.toml");
    if !manifest.is_file() {
        bail!("there is no {}: name the folder of a provider's project", manifest.display());
    }
    let profile = match profile {
        Some(profile) => profile,
        None => default_profile(folder)?.to_owned(),
    };
    let arguments = ["build", "--lib", "--target", TARGET, "--profile", &profile];
    let output = run_cargo(folder, &[&arguments[..], &["--message-format", "json-render-diagnostics"]].concat())?;
    if !output.status.success() {
        bail!(
            "cargo could not build {}; where it misses the target, `rustup target add {TARGET}` installs it",
            folder.display()
        );
    }
    let mut components = components(&String::from_utf8_lossy(&output.stdout), &absolute(&manifest)?);
    match (components.pop(), components.is_empty()) {
        (Some(component), true) => Ok(component),
        (None, _) => bail!("nothing was built: the project's library needs `crate-type = [\"cdylib\"]`"),
        (Some(_), false) => bail!("{} builds more than one component: name the folder of one", folder.display()),
    }
}

fn run_cargo(folder: &Path, arguments: &[&str]) -> Result<Finished> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(folder).args(arguments).stdin(Stdio::null()).stderr(Stdio::inherit());
    command.output().context("unable to start cargo: install Rust (rustup.rs)")
}

/// Profiles are in the manifest of the workspace, or of a project outside of one.
fn default_profile(folder: &Path) -> Result<&'static str> {
    let output = run_cargo(folder, &["locate-project", "--workspace", "--message-format", "plain"])?;
    let root = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let text = std::fs::read_to_string(&root).with_context(|| format!("unable to read {}", root.display()))?;
    Ok(if has_plugin_profile(&text) { "plugin" } else { "release" })
}

fn has_plugin_profile(manifest: &str) -> bool {
    manifest.lines().any(|line| line.split('#').next().unwrap_or_default().trim() == "[profile.plugin]")
}

fn absolute(path: &Path) -> Result<PathBuf> {
    path.canonicalize().with_context(|| format!("unable to find {}", path.display()))
}

/// Components of the project itself in cargo's messages, without those of dependencies.
fn components(messages: &str, manifest: &Path) -> Vec<PathBuf> {
    #[derive(Deserialize)]
    struct Message {
        reason: String,
        #[serde(default)]
        manifest_path: PathBuf,
        #[serde(default)]
        filenames: Vec<PathBuf>,
    }
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter(|message| message.reason == "compiler-artifact" && message.manifest_path == manifest)
        .flat_map(|message| message.filenames)
        .filter(|file| file.extension().is_some_and(|extension| extension == "wasm"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_for_plugins_is_found_in_a_manifest() {
        assert!(has_plugin_profile("[package]\nname = \"x\"\n [profile.plugin] # small\nlto = true\n"));
        assert!(!has_plugin_profile("# [profile.plugin]\n[profile.plugin.package.x]\n[profile.release]\n"));
    }

    #[test]
    fn the_projects_own_component_is_found_among_cargos_messages() {
        let messages = r#"
            {"reason":"compiler-artifact","manifest_path":"/d/Cargo.toml","filenames":["/t/dependency.wasm"]}
            {"reason":"compiler-artifact","manifest_path":"/p/Cargo.toml","filenames":["/t/libp.rlib","/t/p.wasm"]}
            {"reason":"build-script-executed","package_id":"p"}
            not json
            {"reason":"build-finished","success":true}"#;
        assert_eq!(components(messages, Path::new("/p/Cargo.toml")), [Path::new("/t/p.wasm")]);
        assert!(components(messages, Path::new("/q/Cargo.toml")).is_empty());
    }
}
