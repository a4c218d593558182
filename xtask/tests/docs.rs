//! What the documents say of the repository is there.

#![allow(clippy::expect_used, clippy::panic, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the repository").to_owned()
}

/// Every page of `docs/`, and the two beside it.
fn pages() -> Vec<PathBuf> {
    let docs = fs::read_dir(root().join("docs")).expect("there are docs");
    let mut pages: Vec<PathBuf> = docs.map(|entry| entry.expect("a page").path()).collect();
    pages.extend([root().join("README.md"), root().join("CONTRIBUTING.md")]);
    pages
}

fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`.
fn expanded(path: &str) -> Vec<String> {
    match path.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?))) {
        Some((before, (names, after))) => names.split(',').map(|name| format!("{before}{name}{after}")).collect(),
        None => vec![path.to_owned()],
    }
}

/// Whether it names a file or folder of this repository's sources.
fn is_ours(path: &str) -> bool {
    let folders = [
        "api/",
        "contract/",
        "deploy/",
        "fuzz/",
        "host/",
        "object/",
        "plugins/",
        "samples/",
        "sdk/",
        "sim/",
        "tests/",
        "wit/",
        "xtask/",
    ];
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-{},".contains(c);
    folders.iter().any(|folder| path.starts_with(folder)) && path.chars().all(plain)
}

#[test]
fn files_that_documents_name_are_there() {
    let mut missing = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page can be read");
        for path in quoted(&text).filter(|path| is_ours(path)).flat_map(expanded) {
            if !root().join(&path).exists() {
                missing.push(format!("{}: {path}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn contributing_has_a_line_for_every_package() {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).expect("it is there");
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("it is there");
    let members = manifest.split_once("members = [").and_then(|(_, rest)| rest.split_once(']')).expect("members").0;
    let named = |member: &str| {
        let mut folders = Path::new(member).ancestors().filter(|folder| !folder.as_os_str().is_empty());
        folders.any(|folder| text.contains(&format!("`{}/`", folder.display())))
    };
    let missing: Vec<&str> = members.split('"').skip(1).step_by(2).filter(|member| !named(member)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
