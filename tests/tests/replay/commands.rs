//! Commands that take recordings and components: what another version would do, exports, components of strangers.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use capwasm_contract::recording::Ended;
use capwasm_runtime::record;
use capwasm_tests::binary::{self, output, run};
use capwasm_tests::folder::Folder;
use capwasm_tests::guests::{fixture, fixture_file};
use capwasm_tests::objects::name_of;
use serde_json::{Value, json};

use crate::recorded::{path, recorded, said};

/// The fixture with another word in it: the same component, but for what it says to whom it lets wait.
fn another_version(folder: &Path) -> PathBuf {
    let mut component = std::fs::read(fixture("guest")).unwrap();
    let (old, new) = (b"somebody else first", b"nobody else for now");
    let places: Vec<usize> = (0..component.len() - old.len()).filter(|at| component[*at..].starts_with(old)).collect();
    assert!(!places.is_empty(), "the fixture says what it waits for");
    for at in places {
        component[at..at + new.len()].copy_from_slice(new);
    }
    let file = folder.join("fixture-2.wasm");
    std::fs::write(&file, component).unwrap();
    file
}

#[tokio::test]
async fn what_another_version_would_do_otherwise_is_shown_by_object() {
    let (recorded, folder) = (recorded(), Folder::new());
    let (same, other) = (fixture("guest"), another_version(&folder.join(".")));
    recorded.file(&["-fixture-", "-wait.json"]).await;
    let diff = |file: &Path, more: &[&str]| {
        let recordings = recorded.recordings();
        let arguments = ["provider", "diff", "fixture", path(file), "--recordings", path(&recordings)];
        run(&[&arguments, more].concat())
    };
    let nothing = diff(&same, &[]);
    assert!(nothing.status.success(), "{}", said(&nothing));
    let differs = diff(&other, &[]);
    assert_eq!(differs.status.code(), Some(3), "{}", said(&differs));
    let text = String::from_utf8(differs.stdout).unwrap();
    for part in [
        "FixtureMachine fixtures/wait  infrastructure-machine.provision",
        "~ result",
        r#"/problem/message: "somebody else first" -> "nobody else for now""#,
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert!(!text.contains("FixtureMachine fixtures/secret") && !text.contains('\x1b'), "{text}");
    let report: Value = serde_json::from_slice(&diff(&other, &["-o", "json"]).stdout).unwrap();
    let objects: Vec<&str> =
        report["calls"].as_array().unwrap().iter().map(|call| call["object"].as_str().unwrap()).collect();
    assert_eq!(objects, ["FixtureMachine fixtures/wait"]);
    assert!(report["total"].as_u64() > report["same"].as_u64(), "{report}");

    let one = recorded.file(&["-fixture-", "-wait.json"]).await;
    let again = run(&["replay", path(&one), "--provider", path(&other)]);
    assert!(again.status.code() == Some(3) && said(&again).contains("nobody else for now"), "{}", said(&again));
    let nobody = run(&["provider", "diff", "nobody", path(&same), "--recordings", path(&recorded.recordings())]);
    assert!(nobody.status.code() == Some(1) && said(&nobody).contains("--record DIR"), "{}", said(&nobody));
}

#[tokio::test]
async fn an_export_has_no_key_and_says_that_it_is_inexact() {
    let (recorded, folder) = (recorded(), Folder::new());
    let with_key = |file: &PathBuf| {
        let recording = record::read(std::fs::File::open(file).unwrap()).unwrap();
        matches!(recording.ended, Ended::Replied { .. })
            && std::fs::read_to_string(file).unwrap().contains("PRIVATE KEY")
    };
    let file = recorded.files(&["-kubeadm-bootstrap-bootstrap.generate-"]).into_iter().find(with_key).expect("a key");
    let copy = folder.join("to-share.json");
    output(&["replay", "export", path(&file), "--redact", "--to", path(&copy)]);
    let text = std::fs::read_to_string(&copy).unwrap();
    let exported: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&exported["inexact"], &exported["format"]), (&json!(true), &json!(1)));
    assert_eq!(std::fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    let original: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let mut revealed = 0;
    for entry in original["tape"].as_array().unwrap() {
        let Some(secret) = entry.pointer("/answer/given/bytes/text").and_then(Value::as_str) else { continue };
        revealed += 1;
        for line in secret.lines().filter(|line| line.len() > 20 && !line.starts_with("-----")) {
            assert!(!text.contains(line), "{line} is in the export of {}", name_of(&exported));
        }
    }
    assert!(revealed > 0, "the call opened Secrets");
    let twice = run(&["replay", "export", path(&file), "--to", path(&copy)]);
    assert!(twice.status.code() == Some(1) && said(&twice).contains("unable to make"), "{}", said(&twice));
}

/// Part 4 of the lifecycle: commands that look at a component bear whatever it is, as the host does.
#[test]
fn hostile_components_neither_hang_nor_exhaust_who_looks_at_them() {
    let folder = Folder::new();
    let mut hostile: Vec<PathBuf> =
        std::fs::read_dir(fixture_file("hostile")).unwrap().map(|entry| entry.unwrap().path()).collect();
    hostile.sort();
    let endless = Path::new("/dev/zero");
    let mut refused = Vec::new();
    for file in hostile.iter().map(PathBuf::as_path).chain([endless]) {
        let component = if file == endless {
            file.to_owned()
        } else {
            let to = folder.join("hostile.wasm");
            std::fs::write(&to, wat::parse_file(file).unwrap()).unwrap();
            to
        };
        let seen = run(&["provider", "inspect", path(&component)]);
        // One that only misbehaves when it is called is a provider all the same.
        assert!(matches!(seen.status.code(), Some(0 | 1)), "{}: {}", file.display(), said(&seen));
        assert!(!said(&seen).contains('\x1b'), "{}: {:?}", file.display(), said(&seen));
        if seen.status.code() == Some(1) {
            refused.push(file.file_stem().unwrap().to_str().unwrap().to_owned());
        }
    }
    for name in ["endless-loop", "endless-start", "memory-bomb", "acting-descriptor", "deep-recursion", "zero"] {
        assert!(refused.iter().any(|refused| refused == name), "{name} is not among {refused:?}");
    }
}

/// What compiles a stranger's component is a child that the kernel limits, never the command itself.
#[tokio::test]
async fn each_command_that_takes_a_component_compiles_it_in_a_child() {
    let recorded = recorded();
    let component = recorded.providers().join("docker-infra.wasm");
    let any = recorded.file(&["-docker-infra-"]).await;
    let recordings = recorded.recordings();
    let commands: [&[&str]; 4] = [
        &["provider", "inspect", path(&component)],
        &["provider", "push", path(&component), "127.0.0.1:1/a/b:1"],
        &["provider", "diff", "docker-infra", path(&component), "--recordings", path(&recordings), "--last", "1"],
        &["replay", path(&any), "--provider", path(&component)],
    ];
    for command in commands {
        let mut child =
            Command::new(binary::capwasm()).args(command).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut compiled = false;
        while child.try_wait().unwrap().is_none() {
            compiled |= compiles(child.id());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert!(compiled, "{command:?}");
    }
}

/// Whether a process has a child that compiles.
fn compiles(parent: u32) -> bool {
    let children = |task: &Path| std::fs::read_to_string(task.join("children")).unwrap_or_default();
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{parent}/task")) else { return false };
    let all: String = tasks.filter_map(Result::ok).map(|task| children(&task.path())).collect();
    all.split_whitespace().any(|child| {
        std::fs::read_to_string(format!("/proc/{child}/cmdline")).is_ok_and(|line| line.contains("compile-component"))
    })
}
