//! `docs/tutorial.md`, typed out: each `sh` block in order in one shell, each `diff` applied where it stands.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::process::Command;

use capwasm_tests::binary;
use capwasm_tests::folder::Folder;
use capwasm_tests::guests;
use capwasm_tests::registry::Registry;
use capwasm_tests::skip;

/// What somebody types who follows a page, as a script.
fn script(page: &str) -> String {
    // However it ends, what it left in the background ends with it.
    let mut script = "set -eux -o pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n".to_owned();
    let mut fence: Option<&str> = None;
    for line in page.lines() {
        match (fence, line.strip_prefix("```")) {
            (None, Some(language)) => {
                fence = Some(language);
                if language == "diff" {
                    script += "git apply --verbose <<'END_OF_DIFF'\n";
                }
            }
            (Some(language), Some(_)) => {
                if language == "diff" {
                    script += "END_OF_DIFF\n";
                }
                fence = None;
            }
            // A shell takes the failure of a negated command for no failure, whichever way it goes.
            (Some("sh"), None) if line.starts_with("! ") => script += &format!("if {}; then exit 1; fi\n", &line[2..]),
            (Some("sh" | "diff"), None) => script += &format!("{line}\n"),
            _ => {}
        }
    }
    assert!(fence.is_none(), "a block has no end");
    script
}

#[test]
fn the_tutorial_can_be_typed_as_it_stands() {
    const TEST: &str = "the_tutorial_can_be_typed_as_it_stands";
    let page = std::fs::read_to_string(guests::root().join("docs/tutorial.md")).unwrap();
    let folder = Folder::new();
    let has_registry = Command::new(capwasm_tests::skip::REGISTRY).arg("--version").output().is_ok();
    let (page, _registry) = if !has_registry {
        skip::skip(TEST, "sections 4 and 5 are left out: docker-registry is not installed");
        (local(&page), None)
    } else if !skip::kubectl(TEST) {
        (local(&page), None)
    } else {
        // Its ports may be taken on this machine.
        let registry = Registry::start(&folder);
        let page = page.replace("127.0.0.1:5000", &registry.address);
        (page.replace("capwasm up ", "capwasm up --listen 127.0.0.1:0 "), Some(registry))
    };
    let home = binary::capwasm();
    let path = format!("{}:{}", home.parent().unwrap().display(), std::env::var("PATH").unwrap());
    binary::provider_dir();
    let mut shell = Command::new("bash");
    shell.args(["-c", &script(&page)]).current_dir(folder.path()).env("PATH", path);
    shell.env("CARGO_NET_OFFLINE", "true").env("CARGO_TARGET_DIR", binary::target().join("plugins-build"));
    let output = shell.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
}

/// The sections that need neither a registry nor kubectl.
fn local(page: &str) -> String {
    page.split("## 4.").next().unwrap().to_owned()
}

#[test]
fn blocks_become_a_script() {
    let page = "text\n```sh\na\n! b\n```\n```diff\n-x\n+y\n```\n```yaml\nz\n```\n";
    let expected = "a\nif b; then exit 1; fi\ngit apply --verbose <<'END_OF_DIFF'\n-x\n+y\nEND_OF_DIFF\n";
    assert!(script(page).ends_with(expected), "{}", script(page));
}
