//! The test binaries of the workspace, built by cargo.

use crate::build;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

#[derive(Debug, PartialEq, Eq)]
pub struct Binary {
    /// Of cargo's target: the file in `tests/`, or the crate for unit tests.
    pub name: String,
    /// The folder of its package, in which cargo would run it.
    pub folder: PathBuf,
    pub file: PathBuf,
}

/// Builds binaries and tests in one selection: another would have other features of what they share, and compile it twice.
pub fn build() -> Result<Vec<Binary>> {
    let mut command = build::cargo();
    command.args(["build", "--workspace", "--bins", "--tests", "--examples"]);
    command.args(["--message-format", "json-render-diagnostics"]).stdout(Stdio::piped());
    eprintln!("+ cargo build --workspace --bins --tests --examples");
    let mut child = command.spawn().context("unable to start cargo")?;
    let output = child.stdout.take().context("cargo has no output")?;
    let mut binaries = Vec::new();
    for line in BufReader::new(output).lines() {
        let message: Value = serde_json::from_str(&line?).context("unable to read what cargo says")?;
        binaries.extend(binary(&message));
    }
    if !child.wait()?.success() {
        bail!("the tests cannot be built");
    }
    binaries.sort_by(|a, b| (&a.folder, &a.name).cmp(&(&b.folder, &b.name)));
    Ok(binaries)
}

/// The test binary that a message of cargo's tells of.
fn binary(message: &Value) -> Option<Binary> {
    let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
    let file = message["executable"].as_str().filter(|_| is_test)?;
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let name = message["target"]["name"].as_str()?;
    Some(Binary { name: name.to_owned(), folder: folder.to_owned(), file: file.into() })
}

#[cfg(test)]
mod tests {
    use super::{Binary, binary};
    use serde_json::json;

    #[test]
    fn only_test_binaries_are_taken() {
        let mut message = json!({
            "reason": "compiler-artifact", "manifest_path": "/w/host/core/Cargo.toml", "executable": "/w/target/debug/deps/it-1",
            "profile": {"test": true}, "target": {"name": "it"},
        });
        let expected =
            Binary { name: "it".into(), folder: "/w/host/core".into(), file: "/w/target/debug/deps/it-1".into() };
        assert_eq!(binary(&message), Some(expected));
        message["executable"] = json!(null);
        assert_eq!(binary(&message), None);
        assert_eq!(binary(&json!({"reason": "build-finished", "success": true})), None);
    }
}
