//! `capwasm provider new`: what it writes builds offline, passes its own tests and runs in `capwasm quickstart`, with no edit.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::path::Path;
use std::process::{Command, Output};

use capwasm_tests::binary;
use capwasm_tests::folder::Folder;
use capwasm_tests::management::{give_compiled, keep_compiled};
use serde_json::Value;

/// Runs cargo in a project, without a network, into a folder where the dependencies are built already, or will be once for all.
fn cargo(project: &Path, arguments: &[&str]) {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(project).args(arguments).env("CARGO_NET_OFFLINE", "true");
    cargo.env("CARGO_TARGET_DIR", binary::target().join("plugins-build"));
    for name in ["CARGO_BUILD_TARGET", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
        cargo.env_remove(name);
    }
    succeeds(&format!("cargo {arguments:?}"), &cargo.output().unwrap());
}

fn succeeds(what: &str, output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{what} ended with {}: {}\n{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout) + &text(&output.stderr)
}

/// From the command to a quickstart that waits for the objects of its sample.
fn new_project_runs(role: &str, name: &str, ready: &[&str]) {
    let folder = Folder::new();
    let project = folder.join(name);
    let directory = project.to_str().unwrap();
    let said = binary::output(&["provider", "new", name, "--role", role, "--directory", directory]);
    assert!(said.contains("cargo build --profile plugin"), "{said}");
    cargo(&project, &["test", "--quiet"]);
    cargo(&project, &["build", "--quiet", "--profile", "plugin", "--target", "wasm32-wasip2"]);
    let component =
        binary::target().join(format!("plugins-build/wasm32-wasip2/plugin/{}.wasm", name.replace('-', "_")));
    let inspected = binary::output(&["provider", "inspect", component.to_str().unwrap(), "-o", "json"]);
    let inspected: Value = serde_json::from_str(&inspected).unwrap();
    assert_eq!(inspected["name"], name);
    assert!(inspected["sizeBytes"].as_u64().unwrap() < 1_000_000, "{inspected}");

    let data = folder.join("data");
    give_compiled(&data.join("aot"));
    let mut quickstart = Command::new(binary::capwasm());
    quickstart.args(["quickstart", "--engine", "sim", "--worker-machine-count", "0", "--data-dir"]).arg(&data);
    quickstart.arg("--provider-dir").arg(binary::provider_dir()).arg("--provider").arg(&component);
    quickstart.arg("--sample").arg(project.join("sample.yaml"));
    let said = succeeds("capwasm quickstart", &quickstart.output().unwrap());
    keep_compiled(&data.join("aot"));
    assert!(said.contains(&format!("provider {name} 0.1.0 serves")), "{said}");
    for object in ready {
        assert!(said.contains(&format!("{object}: ready")), "{object}: {said}");
    }
}

#[test]
fn an_infrastructure_provider_runs_with_no_edit() {
    let objects = ["NewCloudCluster new-cloud-sample", "NewCloudMachine new-cloud-sample"];
    new_project_runs("infrastructure", "new-cloud", &objects);
}

#[test]
fn a_controller_runs_with_no_edit() {
    new_project_runs("controller", "mirror", &["Mirror mirror-sample"]);
}

#[test]
fn a_bootstrap_provider_runs_with_no_edit() {
    new_project_runs("bootstrap", "scripts", &["ScriptsConfig scripts-sample"]);
}

#[test]
fn a_control_plane_provider_runs_with_no_edit() {
    new_project_runs("control-plane", "hosted", &["HostedControlPlane hosted-sample"]);
}

#[test]
fn what_cannot_be_made_is_refused_with_what_to_do() {
    let folder = Folder::new();
    std::fs::write(folder.join("mine"), "").unwrap();
    let full = folder.path().to_str().unwrap();
    let other = folder.join("other");
    let other = other.to_str().unwrap();
    for (arguments, message) in [
        (vec!["boxes", "--role", "controller", "--directory", full], "is not empty"),
        (vec!["Boxes", "--role", "controller", "--directory", other], "lower-case letters"),
        (vec!["boxes", "--role", "controller", "--directory", other, "--sdk", full], "sdk/rust of a checkout"),
        (vec!["boxes", "--role", "nothing", "--directory", other], "possible values"),
    ] {
        let output = binary::run(&[&["provider", "new"], arguments.as_slice()].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(message), "{arguments:?}: {said}");
    }
    assert!(!Path::new(other).exists(), "nothing is left of a refused project");
    assert_eq!(std::fs::read_dir(full).unwrap().count(), 1);
}

#[test]
fn an_sdk_of_a_git_repository_is_named_with_its_revision() {
    let folder = Folder::new();
    let project = folder.join("p");
    let directory = project.to_str().unwrap();
    let url = "https://git.example.org/capwasm.git";
    binary::output(&[
        "provider",
        "new",
        "p",
        "--role",
        "controller",
        "--directory",
        directory,
        "--sdk-git",
        url,
        "--sdk-rev",
        "v0.1.0",
    ]);
    let manifest = std::fs::read_to_string(project.join("Cargo.toml")).unwrap();
    assert!(manifest.contains(&format!("capwasm-sdk = {{ git = {url:?}, rev = \"v0.1.0\" }}")), "{manifest}");
    assert!(!project.join("Cargo.lock").exists(), "its versions are not known");
}
