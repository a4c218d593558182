//! The real kubeadm of the oldest and the newest Kubernetes versions that are provisioned, as a judge for tests: ordinary Go
//! modules below `tests/kubeadm`, built where Go is present. The two newest come with their API server, controller manager,
//! scheduler and etcd in the same program.

use crate::{build, shell};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Folders below `tests/kubeadm`.
const VERSIONS: [&str; 4] = ["v1.30", "v1.31", "v1.35", "v1.36"];
/// What decides whether a program is up to date.
const SOURCES: [&str; 6] = ["go.mod", "go.sum", "main.go", "node.go", "streaming.go", "kubeadm.go"];

/// Builds what is not up to date. Whether all of it is there; failures are told, not returned.
pub fn build() -> bool {
    if !shell::on_path("go") {
        return false;
    }
    VERSIONS.iter().all(|version| match one(version) {
        Ok(()) => true,
        Err(error) => {
            eprintln!("kubeadm {version} cannot be built: {error:#}");
            false
        }
    })
}

/// Where the programs are: `<version>/kubeadm`.
pub fn folder() -> PathBuf {
    build::target().join("kubeadm")
}

fn one(version: &str) -> Result<()> {
    let module = build::root().join("tests/kubeadm").join(version);
    let folder = folder().join(version);
    let sources: String = SOURCES.iter().filter_map(|name| fs::read_to_string(module.join(name)).ok()).collect();
    let (program, stamp) = (folder.join("kubeadm"), folder.join("built-from"));
    if program.is_file() && fs::read_to_string(&stamp).is_ok_and(|built| built == sources) {
        return Ok(());
    }
    fs::create_dir_all(&folder).with_context(|| format!("unable to make {}", folder.display()))?;
    let release = release(&sources).context("go.mod does not say which Kubernetes")?;
    eprintln!("building kubeadm {release} (a few minutes, once)");
    let package = if module.join("main.go").is_file() { "." } else { "k8s.io/kubernetes/cmd/kubeadm" };
    shell::run(
        Command::new("go")
            .current_dir(&module)
            .env("CGO_ENABLED", "0")
            // Collecting garbage is a fifth of the compiler's work, and what debuggers want a seventh; nobody debugs these.
            .env("GOGC", "400")
            .args(["build", "-mod=readonly", "-buildvcs=false", "-trimpath"])
            .args(["-gcflags=all=-dwarf=false", "-ldflags", &flags(&release)])
            .arg("-o")
            .arg(&program)
            .arg(package),
    )?;
    fs::write(&stamp, sources).with_context(|| format!("unable to write {}", stamp.display()))
}

/// The version of `k8s.io/kubernetes` that a module requires.
fn release(sources: &str) -> Result<String> {
    let required = sources.lines().find_map(|line| line.split_once("k8s.io/kubernetes v"));
    let Some((_, release)) = required else { bail!("no k8s.io/kubernetes among the requirements") };
    Ok(format!("v{}", release.trim()))
}

/// What Kubernetes' own build sets; kubeadm refuses versions that are too far from its own.
fn flags(release: &str) -> String {
    let at = "k8s.io/component-base/version";
    let mut parts = release.trim_start_matches('v').split('.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    format!("-s -w -X {at}.gitVersion={release} -X {at}.gitMajor={major} -X {at}.gitMinor={minor}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::{flags, release};

    #[test]
    fn the_version_is_the_one_that_the_module_requires() {
        assert_eq!(release("module m\nrequire k8s.io/kubernetes v1.31.4\n").unwrap(), "v1.31.4");
        assert!(release("module m\n").is_err());
        assert!(flags("v1.31.4").ends_with("gitMajor=1 -X k8s.io/component-base/version.gitMinor=31"));
    }
}
