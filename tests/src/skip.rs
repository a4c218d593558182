//! Tests that cannot run here say so where `cargo xtask test` reads it: libtest would swallow it.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::net::UnixStream;

/// Where a Docker engine listens.
pub const DOCKER_SOCKET: &str = "/var/run/docker.sock";

/// Tells that a test does not run.
pub fn skip(test: &str, reason: &str) {
    eprintln!("SKIPPED: {test}: {reason}");
    if let Some(path) = std::env::var_os("CAPWASM_SKIPS") {
        let mut file = OpenOptions::new().create(true).append(true).open(path).expect("CAPWASM_SKIPS is writable");
        writeln!(file, "{test}: {reason}").expect("CAPWASM_SKIPS is writable");
    }
}

/// Whether there is a Docker engine; otherwise `test` is told to be skipped.
pub fn docker(test: &str) -> bool {
    if std::env::var_os("CAPWASM_SKIP_DOCKER").is_some() {
        skip(test, "the Docker part is left out (CAPWASM_SKIP_DOCKER)");
        return false;
    }
    if let Err(error) = UnixStream::connect(DOCKER_SOCKET) {
        skip(test, &format!("no Docker engine answers at {DOCKER_SOCKET}: {error}"));
        return false;
    }
    true
}

/// Whether there is kubectl; otherwise `test` is told to be skipped.
pub fn kubectl(test: &str) -> bool {
    if std::env::var_os("CAPWASM_SKIP_KUBECTL").is_some() {
        skip(test, "the kubectl part is left out (CAPWASM_SKIP_KUBECTL)");
        return false;
    }
    if let Err(error) = std::process::Command::new("kubectl").args(["version", "--client"]).output() {
        skip(test, &format!("kubectl cannot be started: {error}"));
        return false;
    }
    true
}

/// Where a statically linked busybox is.
pub const BUSYBOX: &str = "/bin/busybox";

/// Whether there is busybox; otherwise `test` is told to be skipped.
pub fn busybox(test: &str) -> bool {
    let there = std::path::Path::new(BUSYBOX).is_file();
    if !there {
        skip(test, &format!("{BUSYBOX} is not there: install Debian's busybox-static"));
    }
    there
}

/// Debian's registry.
pub const REGISTRY: &str = "docker-registry";

/// Whether there is Debian's registry; otherwise `test` is told to be skipped.
pub fn registry(test: &str) -> bool {
    let there = std::process::Command::new(REGISTRY).arg("--version").output().is_ok();
    if !there {
        skip(test, &format!("{REGISTRY} cannot be started: install Debian's docker-registry"));
    }
    there
}
