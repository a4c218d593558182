//! Building the host and the providers.

use crate::shell;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The bundled providers: package name, and name of the component.
pub const PLUGINS: [&str; 4] = ["docker-infra", "kubeadm-bootstrap", "kubeadm-control-plane", "openstack-infra"];

/// The sample providers: built for the tests, shipped with nothing.
const SAMPLES: [&str; 1] = ["addons"];

pub fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}

/// `cargo`, as the one that runs this.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// The folder that cargo builds into.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// `target/release/{capwasm,capwasm-node}` and `target/plugins/*.wasm`; what is compiled of the latter is in `capwasm`.
pub fn everything() -> Result<()> {
    host_and_plugins(&["--release"])?;
    precompile()?;
    for name in ["capwasm", "capwasm-node"] {
        let file = target().join("release").join(name);
        eprintln!("{}  {}", file.display(), size(&file)?);
    }
    Ok(())
}

/// `target/debug/{capwasm,capwasm-node}` and `target/plugins/*.wasm`, to look at: built in less than half the time, and what `cargo xtask
/// test` needs anyway. Returns the program.
pub fn debug() -> Result<PathBuf> {
    host_and_plugins(&[])?;
    Ok(target().join("debug/capwasm"))
}

/// Both at the same time: linking components takes one core alone.
fn host_and_plugins(profile: &[&str]) -> Result<()> {
    std::thread::scope(|scope| {
        let components = scope.spawn(plugins);
        let packages = ["--package", "capwasm", "--package", "capwasm-sim-node"];
        let host = shell::run(cargo().args(["build", "--bins"]).args(profile).args(packages));
        components.join().unwrap_or_else(|_| bail!("the build of the providers panicked")).and(host)
    })
}

/// Puts the native code of the providers into the program, so that a host on a new folder compiles nothing. Not into files beside
/// the components: native code is trusted as the program itself is, and only from inside of it.
fn precompile() -> Result<()> {
    let program = target().join("release/capwasm");
    let part = target().join("release/.capwasm.part");
    let components = PLUGINS.map(|name| target().join("plugins").join(format!("{name}.wasm")));
    shell::run(Command::new(&program).arg("precompile").arg("--to").arg(&part).args(components))?;
    std::fs::rename(&part, &program).with_context(|| format!("unable to write {}", program.display()))
}

/// The bundled providers as components.
fn plugins() -> Result<()> {
    build_components(&[])
}

/// The bundled providers and the samples as components.
pub fn plugins_and_samples() -> Result<()> {
    build_components(&SAMPLES)
}

/// The bundled providers and some samples as components. They are built in a folder of their own: another profile and another target
/// than the host's would otherwise wait for its lock.
fn build_components(samples: &[&'static str]) -> Result<()> {
    let build = target().join("plugins-build");
    let mut by_profile: BTreeMap<String, Vec<(&str, &str)>> = BTreeMap::new();
    for name in PLUGINS {
        by_profile.entry(profile(name)?).or_default().push((name, "plugins"));
    }
    for name in samples {
        by_profile.entry("plugin".to_owned()).or_default().push((name, "samples"));
    }
    for (profile, components) in by_profile {
        let mut command = cargo();
        command.args(["build", "--profile", &profile, "--target", "wasm32-wasip2", "--target-dir"]).arg(&build);
        for (name, _) in &components {
            command.args(["--package", name]);
        }
        shell::run(&mut command)?;
        for (name, folder) in components {
            copy(&build.join("wasm32-wasip2").join(&profile), name, &target().join(folder))?;
        }
    }
    Ok(())
}

/// The profile that a plugin's manifest names under `[package.metadata.capwasm]`, as the tests read it.
fn profile(plugin: &str) -> Result<String> {
    let manifest = root().join("plugins").join(plugin).join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).with_context(|| format!("unable to read {}", manifest.display()))?;
    let named = text.lines().find_map(|line| line.strip_prefix("profile = "));
    Ok(named.unwrap_or("plugin").trim_matches('"').to_owned())
}

/// A component from cargo's folder into the one where it is looked for.
fn copy(built: &Path, name: &str, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("unable to make {}", folder.display()))?;
    let built = built.join(format!("{}.wasm", name.replace('-', "_")));
    let file = folder.join(format!("{name}.wasm"));
    // Written beside and renamed: a host that starts meanwhile never sees half a file.
    let part = folder.join(format!(".{name}.wasm.part"));
    std::fs::copy(&built, &part).with_context(|| format!("unable to copy {}", built.display()))?;
    std::fs::rename(&part, &file).with_context(|| format!("unable to write {}", file.display()))?;
    eprintln!("{}  {}", file.display(), size(&file)?);
    Ok(())
}

fn size(file: &Path) -> Result<String> {
    let bytes = std::fs::metadata(file).with_context(|| format!("unable to read {}", file.display()))?.len();
    Ok(format!("{:.2} MB", bytes as f64 / 1e6))
}
