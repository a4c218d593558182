//! Builds guest components when a test needs them, so that plain `cargo test` is enough.
//!
//! Each kind of guest has its own target folder beside the host's; a file lock lets parallel test processes build once. cargo
//! itself knows what is up to date.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

const TARGET: &str = "wasm32-wasip2";

/// The component of `plugins/<name>`, built as `cargo xtask build` does, at `target/plugins/<name>.wasm`.
pub fn plugin(name: &str) -> PathBuf {
    let package = format!("plugins/{name}");
    once(&package, || build(&package, name, &profile(&package), "plugins-build", "plugins"))
}

/// The profile that a plugin's manifest names under `[package.metadata.capwasm]`.
fn profile(package: &str) -> String {
    let manifest = fs::read_to_string(root().join(package).join("Cargo.toml")).unwrap_or_default();
    let named = manifest.lines().find_map(|line| line.strip_prefix("profile = "));
    named.unwrap_or("plugin").trim_matches('"').to_owned()
}

/// The component of `samples/<name>`, built as the plugins are, at `target/samples/<name>.wasm`.
pub fn sample(name: &str) -> PathBuf {
    once(&format!("samples/{name}"), || build(&format!("samples/{name}"), name, "plugin", "plugins-build", "samples"))
}

/// The component of `tests/fixtures/<name>`, at `target/fixtures/<name>.wasm`.
pub fn fixture(name: &str) -> PathBuf {
    once(&format!("fixtures/{name}"), || {
        build(&format!("tests/fixtures/{name}"), name, "release", "fixtures-build", "fixtures")
    })
}

/// The component of `tests/fixtures/guest` as another build of it, with another digest: `trap…` traps in every call, `wants…`
/// wants a grant more, `narrow…` and `wider…` have another schema, `contract` speaks another contract, `differs…` says something else;
/// any other name of eight characters is just another.
#[allow(clippy::panic, reason = "as below")]
pub fn variant(component: &[u8], name: &str) -> Vec<u8> {
    let mark = b"variant:original";
    let Some(at) = component.windows(mark.len()).position(|window| window == mark) else {
        panic!("the component has no mark of a variant")
    };
    let mut other = component.to_vec();
    for (to, from) in other[at + 8..at + 16].iter_mut().zip(name.bytes().chain(std::iter::repeat(b'-'))) {
        *to = from;
    }
    other
}

/// A file of `tests/fixtures`.
pub fn fixture_file(path: &str) -> PathBuf {
    root().join("tests/fixtures").join(path)
}

/// The components of `tests/fixtures/hostile`: name, and a part of what is said when it is refused, which stands in the file's
/// second line (`;; Refused: …`). For one that loops it is the end of both limits' names, `TimeMs)`: on a busy machine wall time is
/// over before CPU time.
#[allow(clippy::panic, reason = "as below")]
pub fn hostile() -> Vec<(String, String)> {
    let folder = fixture_file("hostile");
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found: Vec<(String, String)> = files
        .filter_map(|file| file.ok()?.file_name().into_string().ok())
        .map(|file| {
            let text = fs::read_to_string(folder.join(&file)).unwrap_or_default();
            let reason = text.lines().nth(1).and_then(|line| line.strip_prefix(";; Refused: "));
            match (file.strip_suffix(".wat"), reason) {
                (Some(name), Some(reason)) => (name.to_owned(), reason.to_owned()),
                _ => panic!("{file} is no .wat whose second line says `;; Refused: ` and a part of the reason"),
            }
        })
        .collect();
    found.sort();
    found
}

/// The repository's folder.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.ancestors().find(|folder| folder.join("wit/provider.wit").exists());
    root.unwrap_or(here).to_owned()
}

/// Within one process cargo is asked once for each guest.
fn once(key: &str, build: impl FnOnce() -> PathBuf) -> PathBuf {
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    built.entry(key.to_owned()).or_insert_with(build).clone()
}

#[allow(clippy::panic, reason = "a test without its guest cannot go on, and this is what its output should say")]
fn build(package: &str, name: &str, profile: &str, build_dir: &str, out_dir: &str) -> PathBuf {
    try_build(package, name, profile, build_dir, out_dir)
        .unwrap_or_else(|problem| panic!("unable to build the guest {package}: {problem}"))
}

fn try_build(package: &str, name: &str, profile: &str, build_dir: &str, out_dir: &str) -> Result<PathBuf, String> {
    let target = root().join("target");
    let (build_dir, out_dir) = (target.join(build_dir), target.join(out_dir));
    let io = |error: std::io::Error| error.to_string();
    fs::create_dir_all(&build_dir).map_err(io)?;
    fs::create_dir_all(&out_dir).map_err(io)?;
    let lock = File::create(build_dir.join(".guests.lock")).map_err(io)?;
    lock.lock().map_err(io)?;

    let manifest = root().join(package).join("Cargo.toml");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--lib", "--target", TARGET, "--profile", profile, "--message-format", "short"]);
    cargo.arg("--manifest-path").arg(&manifest).arg("--target-dir").arg(&build_dir);
    // Meant for the host that runs the tests.
    for name in ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
        cargo.env_remove(name);
    }
    let output = cargo.output().map_err(|error| format!("unable to run cargo: {error}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let missing = text.contains("can't find crate for `core`") || text.contains("can't find crate for `std`");
        let hint = if missing { format!("\nadd the target: rustup target add {TARGET}") } else { String::new() };
        return Err(format!("{text}{hint}"));
    }

    let built = build_dir.join(TARGET).join(profile).join(artifact(&manifest).map_err(io)?);
    let (draft, done) = (out_dir.join(format!(".{name}.{}", std::process::id())), out_dir.join(format!("{name}.wasm")));
    fs::copy(&built, &draft).map_err(|error| format!("{}: {error}", built.display()))?;
    fs::rename(&draft, &done).map_err(io)?;
    Ok(done)
}

/// The file that cargo makes of a manifest: named for the library, or else for the package.
fn artifact(manifest: &Path) -> std::io::Result<String> {
    let text = fs::read_to_string(manifest)?;
    let mut section = "";
    let (mut package, mut library) = (None, None);
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if let Some(name) = line.strip_prefix("name").and_then(|rest| rest.trim_start().strip_prefix('=')) {
            let name = name.trim().trim_matches('"').to_owned();
            match section {
                "[package]" => package = Some(name),
                "[lib]" => library = Some(name),
                _ => {}
            }
        }
    }
    let name = library.or(package).ok_or_else(|| std::io::Error::other("the manifest names no package"))?;
    Ok(format!("{}.wasm", name.replace('-', "_")))
}
