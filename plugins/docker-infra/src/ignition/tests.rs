#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
use super::*;

const KUBEADM: &str = r#"{
  "ignition": {"version": "2.3.0", "config": {}},
  "storage": {
    "directories": [{"filesystem": "root", "path": "/etc/kubernetes/", "mode": 448}],
    "files": [
      {"filesystem": "root", "path": "/etc/kubeadm.sh", "mode": 448, "contents": {"source": "data:,%23!%2Fbin%2Fsh%0Akubeadm%20init%0A"}},
      {"filesystem": "root", "path": "/etc/z", "contents": {"source": "data:;base64,H4sIAAAAAAACA8vI5AIAenpv7QMAAAA=", "compression": "gzip", "verification": {}}, "user": {"id": 7}, "group": {"name": "adm"}},
      {"filesystem": "root", "path": "/etc/hosts", "append": true, "contents": {"source": "data:,x"}}
    ],
    "links": [{"filesystem": "root", "path": "/etc/l", "target": "/etc/z"}, {"path": "/etc/h", "target": "/etc/z", "hard": true}]
  },
  "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["ssh-rsa A"], "groups": ["sudo"]}], "groups": [{"name": "ops", "gid": 900}]},
  "systemd": {"units": [
    {"name": "kubeadm.service", "enabled": true, "contents": "[Unit]\nConditionPathExists=/etc/kubeadm.yml\n[Service]\nType=oneshot\nEnvironment=\"A=b c\" D=e\nExecStartPre=-/bin/x\nExecStart=/etc/kubeadm.sh --say \"two words\"\n"},
    {"name": "daemon.service", "enable": true, "contents": "[Service]\nExecStart=/bin/forever\n"},
    {"name": "off.service", "enabled": false, "contents": "x", "dropins": [{"name": "10.conf", "contents": "y"}]},
    {"name": "masked.service", "mask": true},
    {"name": "data.mount", "enabled": true, "contents": "[Mount]\nWhat=/dev/vdb\n"},
    {"name": "ntpd.service", "enabled": true}
  ]}
}"#;

fn scripts(recipe: &Recipe) -> Vec<&str> {
    recipe.commands.iter().map(|step| step.script.as_str()).collect()
}

#[test]
fn ignition_becomes_files_accounts_and_steps_in_order() {
    let recipe = parse(KUBEADM.as_bytes(), false).unwrap();
    assert_eq!(
        (recipe.directories[0].path.as_str(), recipe.directories[0].attributes.mode),
        ("/etc/kubernetes", 0o700)
    );
    assert_eq!(recipe.files[0].content, b"#!/bin/sh\nkubeadm init\n");
    assert_eq!(recipe.files[0].attributes.mode, 0o700);
    assert_eq!(
        (recipe.files[1].content.as_slice(), recipe.files[1].named_owner.as_deref()),
        (b"hi\n".as_slice(), Some("7:adm"))
    );
    assert!(recipe.files[2].append);
    let paths: Vec<&str> = recipe.files[3..].iter().map(|file| file.path.as_str()).collect();
    assert_eq!(
        paths,
        ["/kubeadm.service", "/daemon.service", "/off.service", "/off.service.d/10.conf", "/data.mount"]
            .map(|path| format!("{UNITS}{path}"))
    );
    assert_eq!((recipe.users[0].name.as_str(), recipe.groups[0].gid), ("core", Some(900)));
    assert_eq!(
        scripts(&recipe),
        [
            "mkdir -p /etc/ && ln -sfn /etc/z /etc/l",
            "mkdir -p /etc/ && ln -f /etc/z /etc/h",
            "if test -e /etc/kubeadm.yml; then\n{ A='b c' D=e /bin/x || true; } &&\nA='b c' D=e /etc/kubeadm.sh --say 'two words'\nfi",
            "ln -sfn /dev/null /etc/systemd/system/masked.service",
        ]
    );
    assert_eq!(
        recipe.ignored,
        ["daemon.service", "data.mount", "ntpd.service"].map(|name| format!("systemd.units {name}")),
        "they stay, and here is nobody to look after them"
    );
}

#[test]
fn where_there_is_systemd_units_that_stay_are_its_own() {
    let recipe = parse(KUBEADM.as_bytes(), true).unwrap();
    assert!(scripts(&recipe).contains(&"systemctl daemon-reload && systemctl enable --now daemon.service"));
    assert!(scripts(&recipe).last().unwrap().starts_with("if systemctl cat ntpd.service >/dev/null 2>&1; then"));
    assert_eq!(recipe.ignored, ["systemd.units data.mount"]);
}

#[test]
fn hostile_documents_are_refused_without_being_quoted() {
    let with = |part: &str| format!(r#"{{"ignition": {{"version": "2.3.0"}}, {part}}}"#);
    for (what, text) in [
        ("not JSON", "secret".to_owned()),
        ("no version", "{}".to_owned()),
        ("another version", r#"{"ignition": {"version": "1.0.0"}}"#.to_owned()),
        ("another shape", with(r#""storage": {"files": "secret"}"#)),
        ("traversal", with(r#""storage": {"files": [{"path": "/../x"}]}"#)),
        ("another filesystem", with(r#""storage": {"files": [{"path": "/x", "filesystem": "usr"}]}"#)),
        ("from the network", with(r#""storage": {"files": [{"path": "/x", "contents": {"source": "http://x/"}}]}"#)),
        (
            "unknown compression",
            with(
                r#""storage": {"files": [{"path": "/x", "contents": {"source": "data:,secret", "compression": "xz"}}]}"#,
            ),
        ),
        ("a unit elsewhere", with(r#""systemd": {"units": [{"name": "../x"}]}"#)),
        ("a user with a command", with(r#""passwd": {"users": [{"name": "a;b"}]}"#)),
        ("a link to nothing", with(r#""storage": {"links": [{"path": "/x"}]}"#)),
    ] {
        let error = parse(text.as_bytes(), true).unwrap_err().to_string();
        assert!(!error.contains("secret"), "{what}: {error}");
    }
}

#[test]
fn of_two_files_of_one_path_the_later_one_counts_with_its_mode_and_owner() {
    let text = r#"{"ignition": {"version": "2.3.0"}, "storage": {"files": [
        {"path": "/x", "append": true, "contents": {"source": "data:,a"}},
        {"path": "/x", "mode": 384, "user": {"id": 7}, "contents": {"source": "data:,b"}}]}}"#;
    let recipe = parse(text.as_bytes(), false).unwrap();
    let [file] = recipe.files.as_slice() else { panic!("{:?}", recipe.files) };
    assert_eq!((file.content.as_slice(), file.append), (b"b".as_slice(), false));
    assert_eq!((file.attributes.mode, file.attributes.uid), (0o600, 7));
}

#[test]
fn of_conditions_with_a_bar_one_is_enough_and_no_title_shows_the_environment() {
    let unit = "[Unit]\\nConditionPathExists=/a\\nConditionPathExists=|/b\\nConditionPathExists=|!/c\\n[Service]\\nType=oneshot\\nEnvironment=P=secret\\nExecStart=/bin/x y\\n";
    let text = format!(
        r#"{{"ignition": {{"version": "2.3.0"}}, "systemd": {{"units": [{{"name": "x.service", "enabled": true, "contents": "{unit}"}}]}}}}"#
    );
    let recipe = parse(text.as_bytes(), false).unwrap();
    assert_eq!(scripts(&recipe), ["if test -e /a && { test -e /b || test ! -e /c; }; then\nP=secret /bin/x y\nfi"]);
    assert_eq!(recipe.commands[0].title, "x.service: /bin/x y");
}
