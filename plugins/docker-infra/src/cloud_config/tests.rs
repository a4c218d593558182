#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
use super::*;

fn scripts(steps: &[Step]) -> Vec<&str> {
    steps.iter().map(|step| step.script.as_str()).collect()
}

fn parsed(text: &str) -> Recipe {
    parse(text.as_bytes(), "quick-1").unwrap()
}

#[test]
fn kubeadms_bootstrap_data_becomes_files_and_commands() {
    let config = parsed(
        "## template: jinja\n#cloud-config\n\nwrite_files:\n-   path: /etc/kubernetes/pki/ca.crt\n    owner: root:root\n    permissions: '0640'\n    content: |\n      -----BEGIN CERTIFICATE-----\n      x\n-   path: /run/kubeadm/kubeadm.yaml\n    permissions: 0600\n    content: |\n      ---\n      nodeRegistration:\n        name: '{{ ds.meta_data.local_hostname }}'\nruncmd:\n  - 'kubeadm init --config /run/kubeadm/kubeadm.yaml  && echo success > /run/cluster-api/bootstrap-success.complete'\n",
    );
    assert_eq!(config.files[0].path, "/etc/kubernetes/pki/ca.crt");
    assert_eq!(config.files[0].attributes, Attributes::root(0o640));
    assert_eq!(config.files[0].content, b"-----BEGIN CERTIFICATE-----\nx\n");
    assert_eq!(config.files[1].attributes.mode, 0o600);
    assert!(String::from_utf8_lossy(&config.files[1].content).contains("name: 'quick-1'"));
    assert_eq!(
        scripts(&config.commands),
        [
            "kubeadm init --config /run/kubeadm/kubeadm.yaml  && echo success > /run/cluster-api/bootstrap-success.complete"
        ]
    );
    assert!(config.ignored.is_empty());
}

#[test]
fn a_document_that_asks_for_nothing_is_nothing() {
    for text in ["", "#cloud-config\n", "{}", "write_files:\nruncmd: []\n"] {
        assert_eq!(parsed(text), Recipe::default(), "{text:?}");
    }
}

#[test]
fn commands_are_lines_or_words() {
    let config =
        parsed("runcmd:\n- echo a && b\n- [ls, -l, /]\n- [echo, \"it's\", '', $HOME]\n- true\n- |\n  a\n  b\n");
    assert_eq!(scripts(&config.commands), ["echo a && b", "ls -l /", r"echo 'it'\''s' '' '$HOME'", "true", "a\nb\n"]);
}

#[test]
fn contents_are_decoded() {
    // "hi\n" compressed by gzip, with and without a file name in its header.
    let plain = "H4sIAAAAAAACA8vI5AIAenpv7QMAAAA=";
    let gz = parse(format!("write_files:\n- {{path: /a, encoding: gzip+base64, content: {plain}}}\n").as_bytes(), "m");
    let b64 = parsed(
        "write_files:\n- {path: /a, encoding: b64, content: aGkK}\n- {path: /b, encoding: base64, content: \"aG\\nk\"}\n- {path: /c, content: !!binary aGk=}\n",
    );
    assert_eq!(b64.files[0].content, b"hi\n");
    assert_eq!(b64.files[1].content, b"hi");
    assert_eq!(b64.files[2].content, b"hi");
    assert_eq!(gz.map(|config| config.files[0].content.clone()), Ok(b"hi\n".to_vec()));
}

#[test]
fn errors_never_quote_the_document() {
    for text in [
        "write_files: secret\n",
        "write_files: [secret]\n",
        "runcmd: [secret, {secret: secret}]\n",
        "a: 'secret",
        "secret",
    ] {
        let error = parse(text.as_bytes(), "m").unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
}

#[test]
fn appended_content_joins_the_file_of_the_same_document_or_stays_an_addition() {
    let config = parsed(
        "write_files:\n- {path: /a, content: one}\n- {path: /a, content: two, append: true}\n- {path: /b, content: x, append: true}\n",
    );
    assert_eq!(config.files.len(), 2);
    assert_eq!((config.files[0].content.as_slice(), config.files[0].append), (b"onetwo".as_slice(), false));
    assert!(config.files[1].append);
}

#[test]
fn a_later_file_replaces_an_earlier_one() {
    let config = parsed("write_files:\n- {path: /a, content: one}\n- {path: //./a, content: two}\n");
    assert_eq!(config.files.len(), 1);
    assert_eq!(config.files[0].content, b"two");
}

#[test]
fn what_has_no_effect_is_named() {
    let config = parsed("## template: jinja\nmounts: [[a, b]]\nntp: {enabled: true}\nruncmd: ['{{ v1.region }} {{']\n");
    assert_eq!(config.ignored, ["{{ v1.region }}", "mounts", "ntp"]);
    assert_eq!(scripts(&config.commands), ["{{ v1.region }} {{"]);
    let config = parsed("## template: jinja\nwrite_files: [{path: /a, content: '{{ \"secret\" }}'}]\n");
    assert_eq!(config.ignored, ["{{…}}"], "what is written to files is not quoted");
}

#[test]
fn groups_and_users_are_what_cloud_init_makes_of_them() {
    let config = parsed(
        "groups: [ops, {dev: [ann]}]\nusers:\n- default\n- {name: capi, sudo: 'ALL=(ALL) NOPASSWD:ALL', groups: 'a, b', lock_passwd: false, passwd: $6$x, homedir: /h, shell: /bin/sh, gecos: C A, primary_group: g, inactive: '3', ssh_authorized_keys: [ssh-rsa A]}\n- bob\n",
    );
    let names: Vec<&str> = config.users.iter().map(|user| user.name.as_str()).collect();
    assert_eq!(names, ["capi", "bob", "ann"]);
    let capi = &config.users[0];
    assert_eq!((capi.groups.join("+"), capi.locked, capi.home.as_str()), ("a+b".to_owned(), false, "/h"));
    assert_eq!((capi.sudo.join(""), capi.keys.join("")), ("ALL=(ALL) NOPASSWD:ALL".to_owned(), "ssh-rsa A".to_owned()));
    assert!(config.users[1].locked, "nobody logs in by password unless that was asked for");
    assert_eq!(config.groups.len(), 2);
    assert_eq!(config.ignored, ["users[].inactive"]);
}

#[test]
fn hostile_documents_are_refused_and_never_panic() {
    let nested = format!("a: {}", "[".repeat(100_000));
    let bomb = (1..30).fold("a0: &a0 [x, x]\n".to_owned(), |text, n| {
        let before = n - 1;
        format!("{text}a{n}: &a{n} [*a{before}, *a{before}, *a{before}, *a{before}]\n")
    });
    for (what, text) in [
        ("not YAML", "runcmd: [a, {b\n"),
        ("a list", "- a\n"),
        ("a scalar", "hello"),
        ("files that are a string", "write_files: x\n"),
        ("commands that are a mapping", "runcmd: {a: b}\n"),
        ("a command that is a mapping", "runcmd: [{a: b}]\n"),
        ("unknown encoding", "write_files: [{path: /a, encoding: rot13}]\n"),
        ("bad base64", "write_files: [{path: /a, encoding: b64, content: '%'}]\n"),
        ("half a base64 group", "write_files: [{path: /a, encoding: b64, content: 'aGkKa'}]\n"),
        ("bad gzip", "write_files: [{path: /a, encoding: gz, content: 'H4sI'}]\n"),
        ("bad permissions", "write_files: [{path: /a, permissions: rwx}]\n"),
        ("too many permissions", "write_files: [{path: /a, permissions: '177777'}]\n"),
        ("traversal", "write_files: [{path: ../../etc/passwd}]\n"),
        ("deep nesting", nested.as_str()),
        ("a user that is an option", "users: [{name: -rf}]\n"),
        ("a user with a command", "users: [{name: 'a;reboot'}]\n"),
        ("a user without a name", "users: [{gecos: x}]\n"),
        ("a key with a line of its own", "users: [{name: a, ssh_authorized_keys: [\"a\\nb\"]}]\n"),
        ("unknown field", "write_files: [{path: /a, sorce: {uri: x}}]\n"),
        ("alias bomb", bomb.as_str()),
    ] {
        assert!(parse(text.as_bytes(), "m").is_err(), "{what}");
    }
    assert_eq!(parse(&[b'#'; LARGEST + 1], "m"), Err(CloudConfigError::TooLarge(LARGEST + 1)));
    assert_eq!(parse(&[0xff, 0xfe], "m"), Err(CloudConfigError::NotText));
}
