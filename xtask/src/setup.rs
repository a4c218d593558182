//! What a machine needs: the WebAssembly target always; programs that tests run; for parts of the second tier a Docker engine and Go's builds.

use crate::{docker, kubeadm, openstack, shell};
use anyhow::{Result, bail};
use clap::Args;
use std::process::Command;

/// Options of `cargo xtask setup`.
#[derive(Args)]
pub struct Options {
    /// Only say what is missing.
    #[arg(long)]
    pub no_install: bool,
    /// Install and start a Docker engine, too.
    #[arg(long)]
    pub docker: bool,
    /// Build the real kubeadm and control planes, too: some fifteen minutes, once.
    #[arg(long)]
    pub kubeadm: bool,
}

/// What this machine offers to the tests.
#[derive(Debug)]
pub struct Machine {
    /// A Docker engine answers.
    pub docker: bool,
    /// kubectl is on PATH and new enough (1.29).
    pub kubectl: bool,
    /// The real kubeadm was built.
    pub kubeadm: bool,
}

/// Sets the machine up as far as it may, and tells what there is.
pub fn run(options: &Options) -> Result<Machine> {
    wasm_target()?;
    let may_install = !options.no_install && is_root() && shell::on_path("apt-get");
    if !kubectl() && may_install {
        install_kubectl();
    }
    if options.docker && !docker::answers() && may_install {
        docker::install_and_start();
    }
    let programs = [("etcd", "etcd-server"), ("busybox", "busybox-static"), ("docker-registry", "docker-registry")];
    let missing: Vec<&str> =
        programs.iter().filter(|(name, _)| !shell::on_path(name)).map(|(_, debian)| *debian).collect();
    if !missing.is_empty() && may_install {
        install(&missing);
    }
    let machine = Machine {
        docker: options.docker && docker::answers(),
        kubectl: kubectl(),
        kubeadm: options.kubeadm && kubeadm::build(),
    };
    for (there, what, package) in [
        (machine.docker || !options.docker, "a Docker engine", "docker.io and iptables, then `dockerd`"),
        (
            machine.kubeadm || !options.kubeadm,
            "the real kubeadm, which judges generated configuration",
            "Go 1.26 or newer, with access to a Go module proxy",
        ),
        (shell::on_path("etcd"), "etcd", "Debian's etcd-server"),
        (shell::on_path("busybox"), "busybox, statically linked", "Debian's busybox-static"),
        (shell::on_path("docker-registry"), "a registry", "Debian's docker-registry"),
        (machine.kubectl, "kubectl 1.29 or newer", "Debian 13's `kubectl`, or one from the Kubernetes project"),
    ] {
        if !there {
            eprintln!("MISSING: {what}. The tests that need it will not run. Install {package}.");
        }
    }
    Ok(machine)
}

/// Whether there is the Python that starts real OpenStack services; it is installed where that may be.
pub fn has_python(no_install: bool) -> bool {
    if !openstack::python() && !no_install && is_root() && shell::on_path("apt-get") {
        install(&openstack::PACKAGES);
    }
    let there = openstack::python();
    if !there {
        eprintln!(
            "MISSING: Python 3.11 or newer with venv, for real OpenStack services. Install Debian's python3 and python3-venv."
        );
    }
    there
}

/// `rustup target add wasm32-wasip2`, when it is not there.
pub fn wasm_target() -> Result<()> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output()?;
    let sysroot = String::from_utf8_lossy(&sysroot.stdout).trim().to_owned();
    if std::path::Path::new(&sysroot).join("lib/rustlib/wasm32-wasip2/lib").is_dir() {
        return Ok(());
    }
    if !shell::on_path("rustup") {
        bail!(
            "the target wasm32-wasip2 is missing and there is no rustup: install the target's standard library for this rustc"
        );
    }
    shell::run(Command::new("rustup").args(["target", "add", "wasm32-wasip2"]))
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|out| out.stdout.starts_with(b"0"))
}

/// Whether there is a kubectl that speaks to today's servers.
fn kubectl() -> bool {
    let Ok(out) = Command::new("kubectl").args(["version", "--client"]).output() else { return false };
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let minor =
        text.split("v1.").nth(1).and_then(|rest| rest.split('.').next()).and_then(|minor| minor.parse::<u32>().ok());
    minor.is_some_and(|minor| minor >= 29)
}

/// Debian's own package where it is new enough; a failure is told by what is missing afterwards.
fn install_kubectl() {
    install(&["kubectl"]);
}

/// Debian packages. That one fails is told by what is missing afterwards.
fn install(packages: &[&str]) {
    let _ = shell::status(Command::new("apt-get").args(["update", "-q"]));
    for package in packages {
        // Debian starts servers when it installs them; these are started by tests.
        let mut command = Command::new("apt-get");
        command.env("RUNLEVEL", "1").args(["install", "-y", "-q", "--no-install-recommends", package]);
        let _ = shell::status(&mut command);
    }
}
