//! Tests that cannot run here, or belong to a part that is left out, say so where `cargo xtask test` reads it: libtest would
//! swallow it.
//!
//! The file that `CAPWASM_SKIPS` names gets a line for each, its fields separated by tabs: `skip`, test and reason; or `part` or
//! `sample`, the part's name, test and binary.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::net::UnixStream;

/// Where a Docker engine listens.
pub const DOCKER_SOCKET: &str = "/var/run/docker.sock";

/// Tells that a test does not run.
pub fn skip(test: &str, reason: &str) {
    eprintln!("SKIPPED: {test}: {reason}");
    tell(&format!("skip\t{test}\t{}", reason.replace(['\n', '\t'], " ")));
}

/// Whether a part of the second tier runs; otherwise `test` is told to belong to it.
pub fn part(part: &str, test: &str) -> bool {
    if !runs(part) {
        eprintln!("SECOND TIER: {test} belongs to the part {part}");
        tell(&format!("part\t{part}\t{test}\t{}", binary()));
    }
    runs(part)
}

/// Whether `test` goes through all of its cases, as it does where this part of the second tier runs; otherwise it is told to take
/// a sample.
pub fn whole(part: &str, test: &str) -> bool {
    if !runs(part) {
        eprintln!("SAMPLE: {test} takes a sample; the part {part} has all of it");
        tell(&format!("sample\t{part}\t{test}\t{}", binary()));
    }
    runs(part)
}

/// Whether `CAPWASM_PARTS` lists it, or is not set.
fn runs(part: &str) -> bool {
    std::env::var("CAPWASM_PARTS").map_or(true, |parts| parts.split(',').any(|listed| listed == part))
}

/// The name of this test binary, without the hash that cargo puts behind it.
fn binary() -> String {
    let file = std::env::current_exe().unwrap_or_default();
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    stem.rsplit_once('-').map_or(stem.clone(), |(name, _)| name.to_owned())
}

fn tell(line: &str) {
    if let Some(path) = std::env::var_os("CAPWASM_SKIPS") {
        let mut file = OpenOptions::new().create(true).append(true).open(path).expect("CAPWASM_SKIPS is writable");
        // In one write: tests beside this one append to the same file.
        file.write_all(format!("{line}\n").as_bytes()).expect("CAPWASM_SKIPS is writable");
    }
}

/// Whether there is a Docker engine; otherwise `test` is told to be skipped.
pub fn docker(test: &str) -> bool {
    if !part("docker", test) {
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
        skip(test, "there is no kubectl 1.29 or newer (CAPWASM_SKIP_KUBECTL)");
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

/// The program of Debian's package `docker-registry`.
pub const REGISTRY: &str = "docker-registry";

/// Whether there is Debian's registry; otherwise `test` is told to be skipped.
pub fn registry(test: &str) -> bool {
    let there = std::process::Command::new(REGISTRY).arg("--version").output().is_ok();
    if !there {
        skip(test, &format!("{REGISTRY} cannot be started: install Debian's docker-registry"));
    }
    there
}
