//! The binaries under test, and the components that they load.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::guests;

/// Names of the bundled providers.
pub const PLUGINS: [&str; 4] = ["docker-infra", "kubeadm-bootstrap", "kubeadm-control-plane", "openstack-infra"];

/// The `capwasm` binary. With `CAPWASM_PREBUILT` it is taken as it is; otherwise cargo brings it up to date first.
pub fn capwasm() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(find).clone()
}

/// Runs `capwasm` to its end.
pub fn run(arguments: &[&str]) -> Output {
    Command::new(capwasm()).args(arguments).output().expect("capwasm cannot be started")
}

/// Runs `capwasm`, which has to succeed, and returns what it prints.
pub fn output(arguments: &[&str]) -> String {
    let output = run(arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "capwasm {arguments:?} ended with {}: {}", output.status, text(&output.stderr));
    text(&output.stdout)
}

/// Runs an example of a package, which has to succeed. `cargo test` has built it already where the whole workspace is tested.
pub fn example(package: &str, name: &str, arguments: &[&str]) {
    let built = profile().join("examples").join(name);
    let mut command = if prebuilt_only() && built.is_file() {
        Command::new(built)
    } else {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(guests::root()).args(["run", "--quiet", "--package", package, "--example", name]);
        cargo.arg("--target-dir").arg(target()).arg("--");
        cargo
    };
    let output = command.args(arguments).output().expect("the example starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A folder with the bundled providers.
pub fn provider_dir() -> PathBuf {
    let prebuilt = target().join("plugins");
    if prebuilt_only() && PLUGINS.iter().all(|name| prebuilt.join(format!("{name}.wasm")).is_file()) {
        return prebuilt;
    }
    let files: Vec<PathBuf> = PLUGINS.iter().map(|name| guests::plugin(name)).collect();
    files[0].parent().expect("a file is in a folder").to_owned()
}

/// The folder that cargo builds into.
pub fn target() -> PathBuf {
    profile().parent().expect("a profile's folder is in the target folder").to_owned()
}

fn prebuilt_only() -> bool {
    std::env::var_os("CAPWASM_PREBUILT").is_some()
}

/// `target/debug` of `target/debug/deps/this-test`.
fn profile() -> PathBuf {
    let this = std::env::current_exe().expect("this binary has a path");
    let folder = this.parent().expect("a file is in a folder");
    let folder = if folder.ends_with("deps") { folder.parent().expect("deps is in a folder") } else { folder };
    folder.to_owned()
}

fn find() -> PathBuf {
    let (profile, target) = (profile(), target());
    let binary = profile.join("capwasm");
    if !prebuilt_only() {
        build(&profile, &target);
    }
    assert!(binary.is_file(), "{} is not there: unset CAPWASM_PREBUILT, or build it", binary.display());
    binary
}

fn build(profile: &Path, target: &Path) {
    let lock = File::create(target.join(".binaries.lock")).expect("the target folder is writable");
    lock.lock().expect("the lock file can be locked");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(guests::root()).args([
        "build",
        "--package",
        "capwasm",
        "--package",
        "capwasm-sim-node",
        "--bins",
    ]);
    cargo.arg("--target-dir").arg(target);
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let output = cargo.output().expect("cargo cannot be started");
    assert!(output.status.success(), "unable to build capwasm: {}", String::from_utf8_lossy(&output.stderr));
}
