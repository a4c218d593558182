#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
use super::*;
use crate::userdata::Subcommand;
use rand::{RngExt, SeedableRng, rngs::StdRng};

fn spec(value: Value) -> ConfigSpec {
    serde_json::from_value(value).unwrap()
}

fn rendered(spec: &ConfigSpec, files: Vec<WriteFile>) -> Value {
    check(spec).unwrap();
    let payload = Payload { subcommand: Subcommand::Init, configuration: "---\nkind: A\n".into(), files };
    render(spec, &spec.users, &payload).unwrap().0
}

/// Content of a file by its path.
fn content(document: &Value, path: &str) -> String {
    let files = document.pointer("/storage/files").and_then(Value::as_array).unwrap();
    let file = files.iter().find(|file| file["path"] == path).unwrap_or_else(|| panic!("{path} is not there"));
    let source = file.pointer("/contents/source").and_then(Value::as_str).unwrap();
    String::from_utf8(STANDARD.decode(source.strip_prefix("data:;base64,").unwrap()).unwrap()).unwrap()
}

#[test]
fn every_part_of_a_spec_becomes_ignition() {
    let spec = spec(json!({
        "format": "ignition", "verbosity": 5,
        "preKubeadmCommands": ["pre", "cat <<EOF\nx\nEOF"], "postKubeadmCommands": ["post"],
        "ntp": {"enabled": true, "servers": ["foo.bar", "baz"]},
        "users": [{"name": "foo", "gecos": "Foo B. Bar", "groups": "foo, bar", "homeDir": "/home/foo", "shell": "/bin/false", "passwd": "$6$x",
                   "primaryGroup": "foo", "sudo": "ALL=(ALL) NOPASSWD:ALL", "sshAuthorizedKeys": ["k"], "lockPassword": false},
                  {"name": "second", "lockPassword": false}, {"name": "third"}],
        "diskSetup": {"partitions": [{"device": "/dev/lun0", "layout": true, "overwrite": true, "tableType": "gpt"}],
                      "filesystems": [{"device": "/dev/lun0", "filesystem": "ext4", "label": "test_disk", "extraOpts": ["-F"], "overwrite": true}]},
        "mounts": [["test_disk", "/var/lib/testdir", "noatime", "x=50%"]],
    }));
    let written = WriteFile {
        owner: "core:core".into(),
        encoding: "base64".into(),
        append: true,
        ..WriteFile::of_root("/etc/testfile", "0600", "Zm9v\nCg==")
    };
    let document = rendered(&spec, vec![written, WriteFile::of_root("/etc/plain", "", "x")]);
    assert_eq!(document["ignition"], json!({"version": "2.3.0"}));
    assert_eq!(
        document["passwd"]["users"],
        json!([
            {"name": "foo", "gecos": "Foo B. Bar", "groups": ["foo", "bar"], "homeDir": "/home/foo", "shell": "/bin/false",
             "passwordHash": "$6$x", "primaryGroup": "foo", "sshAuthorizedKeys": ["k"]},
            {"name": "second"}, {"name": "third"},
        ])
    );
    assert_eq!(document["storage"]["disks"], json!([{"device": "/dev/lun0", "wipeTable": true, "partitions": [{}]}]));
    assert_eq!(
        document["storage"]["filesystems"],
        json!([{"name": "test_disk", "mount": {"device": "/dev/lun0", "format": "ext4", "wipeFilesystem": true, "label": "test_disk", "options": ["-F"]}}])
    );
    let files = document["storage"]["files"].as_array().unwrap();
    let listed: Vec<_> =
        files.iter().map(|file| (file["path"].as_str().unwrap(), file["mode"].as_i64().unwrap())).collect();
    assert_eq!(
        listed,
        [
            ("/etc/sudoers.d/foo", 0o600),
            ("/etc/ssh/sshd_config", 0o600),
            ("/etc/testfile", 0o600),
            ("/etc/plain", 0o644),
            ("/etc/kubeadm.sh", 0o700),
            ("/etc/kubeadm.yml", 0o600),
            ("/etc/ntp.conf", 0o644),
        ]
    );
    assert_eq!(
        (&files[2]["user"], &files[2]["group"], &files[2]["append"]),
        (&json!({"name": "core"}), &json!({"name": "core"}), &json!(true))
    );
    assert_eq!((&files[3]["user"], &files[3]["append"]), (&json!({"name": "root"}), &Value::Null));
    assert_eq!(content(&document, "/etc/testfile"), "foo\n");
    assert_eq!(content(&document, "/etc/sudoers.d/foo"), "foo ALL=(ALL) NOPASSWD:ALL\n");
    assert!(
        content(&document, "/etc/ssh/sshd_config").contains("Match User foo,second\n  PasswordAuthentication yes\n")
    );
    assert!(content(&document, "/etc/ntp.conf").starts_with("server foo.bar\nserver baz\n"));
    assert_eq!(content(&document, "/etc/kubeadm.yml"), "---\nkind: A\n");
    assert_eq!(
        content(&document, "/etc/kubeadm.sh"),
        "#!/bin/bash\nset -e\npre\ncat <<EOF\nx\nEOF\nkubeadm init --config /etc/kubeadm.yml --v 5\n\
         mkdir -p /run/cluster-api && echo success > /run/cluster-api/bootstrap-success.complete\nmv /etc/kubeadm.yml /tmp/\npost\n"
    );
    let units = document["systemd"]["units"].as_array().unwrap();
    let names: Vec<_> = units.iter().map(|unit| unit["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["kubeadm.service", "ntpd.service", "var-lib-testdir.mount"]);
    let unit = units[0]["contents"].as_str().unwrap();
    assert!(unit.contains("ConditionPathExists=/etc/kubeadm.yml\n") && unit.contains("ExecStart=/etc/kubeadm.sh\n"));
    assert!(
        units[2]["contents"]
            .as_str()
            .unwrap()
            .contains("What=/dev/lun0\nWhere=/var/lib/testdir\nOptions=noatime,x=50%%\n")
    );
}

#[test]
fn the_users_container_linux_config_is_merged_in_last() {
    let with = |additional: &str, strict: bool| {
        spec(
            json!({"format": "ignition", "ignition": {"containerLinuxConfig": {"additionalConfig": additional, "strict": strict}}}),
        )
    };
    let merged = rendered(
        &with(
            "storage: {files: [{path: /x, mode: 0644}]}\nsystemd: {units: [{name: kubeadm.service, dropins: [{name: 10.conf, contents: '[Unit]'}]}]}\nignition: {timeouts: {http_total: 3}}",
            true,
        ),
        Vec::new(),
    );
    assert_eq!(merged["storage"]["files"].as_array().unwrap().last().unwrap()["path"], "/x");
    assert_eq!(merged["systemd"]["units"][1]["dropins"][0]["name"], "10.conf");
    assert_eq!(merged["ignition"], json!({"version": "2.3.0", "timeouts": {"httpTotal": 3}}));
    assert_eq!(merged["storage"]["files"].as_array().unwrap().len(), 3);

    let doubtful = "storage: {files: [{path: /x}]}";
    let problem = check(&with(doubtful, true)).unwrap_err();
    assert!(problem.message.contains("has no mode"), "{}", problem.message);
    let payload = Payload { subcommand: Subcommand::Join, configuration: String::new(), files: Vec::new() };
    let (_, warnings) = render(&with(doubtful, false), &[], &payload).unwrap();
    assert_eq!(warnings.len(), 1);
}

#[test]
fn what_ignition_cannot_write_is_refused() {
    let payload = |file| Payload { subcommand: Subcommand::Join, configuration: String::new(), files: vec![file] };
    for (part, file) in [
        ("not octal", WriteFile::of_root("/a", "rw-r--r--", "x")),
        ("not octal", WriteFile::of_root("/a", "77777", "x")),
        ("not base64", WriteFile { encoding: "base64".into(), ..WriteFile::of_root("/a", "", "%") }),
        ("gzip+base64", WriteFile { encoding: "gzip+base64".into(), ..WriteFile::of_root("/a", "", "eA==") }),
    ] {
        let problem = render(&ConfigSpec::default(), &[], &payload(file)).unwrap_err();
        assert!(problem.message.contains(part), "{}", problem.message);
    }
}

/// Whatever a file holds is what the machine gets.
#[test]
fn content_survives_whatever_it_is() {
    for seed in 0..500 {
        let rng = &mut StdRng::seed_from_u64(seed);
        let text: String = (0..rng.random_range(0..40))
            .map(|_| char::from_u32(rng.random_range(0..0x2_0000)).unwrap_or('\n'))
            .collect();
        let document = rendered(&spec(json!({"format": "ignition"})), vec![WriteFile::of_root("/f", "0600", &*text)]);
        assert_eq!(content(&document, "/f"), text, "seed {seed}");
    }
}
