//! `ctr images import`: remembers which images an archive names; nothing is unpacked.

use std::io::Read;

use serde_json::Value;

use super::Invocation;
use crate::files::{Files, reason};

/// Where the names are kept, a line each.
const IMPORTED: &str = "/var/lib/containerd/capwasm-images";

/// Names of the images that were imported.
pub(super) fn imported(files: &dyn Files) -> Vec<String> {
    files.read_text(IMPORTED).unwrap_or_default().lines().map(str::to_owned).collect()
}

pub(super) fn ctr(call: &Invocation<'_>) -> i32 {
    let operands: Vec<&str> = {
        let mut rest = call.arguments.iter();
        let mut operands = Vec::new();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "-n" | "--namespace" => drop(rest.next()),
                option if option.starts_with('-') && option.len() > 1 => {}
                operand => operands.push(operand),
            }
        }
        operands
    };
    let ["images" | "image" | "i", "import", path] = operands.as_slice() else {
        call.complain("ctr: only images import is supported on a capwasm simulated node");
        return 1;
    };
    let files = call.node.files();
    let content = if *path == "-" { Ok(call.streams.input.clone()) } else { files.read(&call.path(path)) };
    let names = match content.map_err(|error| reason(&error)).and_then(|content| names(&content)) {
        Ok(names) => names,
        Err(problem) => {
            call.complain(format!("ctr: {path}: {problem}"));
            return 1;
        }
    };
    let mut known = imported(files);
    for name in names {
        call.say(format!("unpacking {name} (sha256:simulated)...done"));
        if !known.contains(&name) {
            known.push(name);
        }
    }
    let written = files.install(IMPORTED, known.iter().map(|name| format!("{name}\n")).collect::<String>(), 0o644);
    i32::from(written.is_err())
}

/// The names in an archive's `manifest.json`.
fn names(archive: &[u8]) -> Result<Vec<String>, String> {
    let broken = |error: std::io::Error| format!("unrecognized image format: {error}");
    for entry in tar::Archive::new(archive).entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        if entry.path().map_err(broken)?.as_os_str() != "manifest.json" {
            continue;
        }
        let mut text = String::new();
        entry.read_to_string(&mut text).map_err(broken)?;
        let manifest: Value = serde_json::from_str(&text).map_err(|error| format!("manifest.json: {error}"))?;
        let tags = manifest.as_array().into_iter().flatten().flat_map(|image| image["RepoTags"].as_array());
        return Ok(tags.flatten().filter_map(Value::as_str).map(str::to_owned).collect());
    }
    Err("unrecognized image format: manifest.json is missing".to_owned())
}
