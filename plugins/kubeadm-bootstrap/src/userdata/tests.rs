#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
use super::*;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

fn spec(value: Value) -> ConfigSpec {
    serde_json::from_value(value).unwrap()
}

fn payload(files: Vec<WriteFile>) -> Payload {
    Payload { subcommand: Subcommand::Join, configuration: "---\nkind: JoinConfiguration\n".into(), files }
}

fn text(spec: &ConfigSpec, files: Vec<WriteFile>) -> String {
    let (data, _) = render(spec, &spec.users, payload(files)).unwrap();
    String::from_utf8(data.value).unwrap()
}

#[test]
fn the_commands_and_files_of_kubeadm_are_those_that_others_look_for() {
    let read: Value = serde_saphyr::from_str(&text(
        &spec(json!({"preKubeadmCommands": ["a"], "postKubeadmCommands": ["b"]})),
        Vec::new(),
    ))
    .unwrap();
    assert_eq!(
        read["runcmd"],
        json!([
            "a",
            "kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml  && echo success > /run/cluster-api/bootstrap-success.complete",
            "b"
        ])
    );
    let paths: Vec<_> = read["write_files"].as_array().unwrap().iter().map(|file| file["path"].clone()).collect();
    assert_eq!(paths, ["/run/kubeadm/kubeadm-join-config.yaml", "/run/cluster-api/placeholder"]);
    let verbose = text(&spec(json!({"verbosity": 5})), Vec::new());
    assert!(verbose.contains("kubeadm-join-config.yaml --v 5 && echo"), "{verbose}");
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_made() {
    let from = json!({"secret": {"name": "s", "key": "k"}});
    for (part, spec_of) in [
        ("content and contentFrom", json!({"files": [{"path": "/a", "content": "x", "contentFrom": from}]})),
        ("/a is there twice", json!({"files": [{"path": "/a", "content": "x"}, {"path": "/a", "content": "y"}]})),
        (
            "is a template",
            json!({"files": [{"path": "/a", "content": "x", "contentFormat": "Template", "encoding": "base64"}]}),
        ),
        ("contentFormat Other", json!({"files": [{"path": "/a", "content": "x", "contentFormat": "Other"}]})),
        ("passwd and passwdFrom", json!({"users": [{"name": "u", "passwd": "x", "passwdFrom": from}]})),
        ("format talos", json!({"format": "talos"})),
        ("needs spec.format ignition", json!({"ignition": {"containerLinuxConfig": {"additionalConfig": "x"}}})),
        ("bootCommands", json!({"format": "ignition", "bootCommands": ["x"]})),
        ("gzip", json!({"format": "ignition", "files": [{"path": "/a", "encoding": "gzip", "content": "x"}]})),
        (
            "tableType",
            json!({"format": "ignition", "diskSetup": {"partitions": [{"device": "/d", "layout": true, "tableType": "mbr"}]}}),
        ),
        (
            "diskLayout",
            json!({"format": "ignition", "diskSetup": {"partitions": [{"device": "/d", "diskLayout": [{"percentage": 5}]}]}}),
        ),
        (
            "replaceFS",
            json!({"format": "ignition", "diskSetup": {"filesystems": [{"device": "/d", "filesystem": "ext4", "replaceFS": "x"}]}}),
        ),
        (
            "partition",
            json!({"format": "ignition", "diskSetup": {"filesystems": [{"device": "/d", "filesystem": "ext4", "partition": "auto"}]}}),
        ),
        ("inactive", json!({"format": "ignition", "users": [{"name": "u", "inactive": true}]})),
        ("name of a user", json!({"format": "ignition", "users": [{"name": "a\nroot ALL"}]})),
        ("mounts", json!({"format": "ignition", "mounts": [["nosuch", "/m"]]})),
        ("mounts", json!({"format": "ignition", "mounts": [["/dev/a"]]})),
    ] {
        let problem = check(&spec(spec_of)).expect_err(part);
        assert_eq!(problem.reason, "InvalidConfiguration", "{part}");
        assert!(problem.message.contains(part), "{part}: {}", problem.message);
    }
}

/// Strings that end a string, a block or a document for some reader.
fn hostile(rng: &mut StdRng) -> String {
    const PIECES: [&str; 30] = [
        "'",
        "\"",
        "\\",
        "\n",
        "\r\n",
        "\t",
        "#cloud-config\n",
        "## template: jinja\n",
        "---\n",
        "...\n",
        "{{ ds }}",
        "{% raw %}",
        "- ",
        ": ",
        " #",
        "|",
        ">",
        "&a",
        "*a",
        "!!binary ",
        "%YAML 1.2\n",
        "é",
        "\u{1f600}",
        "\u{85}",
        "\u{2028}",
        "\u{0}",
        "a",
        "runcmd:\n- rm\n",
        " ",
        "\u{feff}",
    ];
    (0..rng.random_range(1..7)).map(|_| PIECES[rng.random_range(0..PIECES.len())]).collect()
}

/// No string, however hostile, becomes anything but that string in cloud-config: no section and no command is added.
#[test]
fn hostile_strings_stay_strings_in_cloud_config() {
    for seed in 0..3_000 {
        let rng = &mut StdRng::seed_from_u64(seed);
        let mut next = || hostile(rng);
        let (path, owner, permissions, content) = (next(), next(), next(), next());
        let file = WriteFile { path, owner, permissions, content, ..WriteFile::default() };
        let spec = spec(json!({
            "bootCommands": [next()], "preKubeadmCommands": [next(), next()], "postKubeadmCommands": [next()],
            "ntp": {"enabled": true, "servers": [next()]}, "mounts": [[next(), next()]],
            "users": [{"name": next(), "gecos": next(), "groups": next(), "homeDir": next(), "shell": next(), "passwd": next(),
                       "primaryGroup": next(), "sudo": next(), "sshAuthorizedKeys": [next()], "inactive": true, "lockPassword": true}],
            "diskSetup": {"partitions": [{"device": next(), "layout": true, "tableType": next()}],
                          "filesystems": [{"device": next(), "filesystem": next(), "label": next(), "extraOpts": [next()]}]},
        }));
        let written = text(&spec, vec![file.clone()]);
        assert!(written.starts_with("## template: jinja\n#cloud-config\n"), "seed {seed}");
        let read: Value =
            serde_saphyr::from_str(&written).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{written}"));
        let sections: Vec<_> = read.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            sections,
            ["bootcmd", "disk_setup", "fs_setup", "mounts", "ntp", "runcmd", "users", "write_files"],
            "seed {seed}"
        );
        assert_eq!(read["bootcmd"], json!(spec.boot_commands), "seed {seed}");
        assert_eq!(read["mounts"], json!(spec.mounts), "seed {seed}");
        assert_eq!(read["ntp"]["servers"], json!(spec.ntp.as_ref().unwrap().servers), "seed {seed}");
        assert_eq!(read["runcmd"][1], json!(spec.pre_kubeadm_commands[1]), "seed {seed}");
        assert_eq!(read["runcmd"].as_array().unwrap().len(), 4, "seed {seed}");
        let user = &spec.users[0];
        for (key, value) in [
            ("name", Some(&user.name)),
            ("gecos", user.gecos.as_ref()),
            ("groups", user.groups.as_ref()),
            ("homedir", user.home_dir.as_ref()),
            ("passwd", user.passwd.as_ref()),
            ("primary_group", user.primary_group.as_ref()),
            ("shell", user.shell.as_ref()),
            ("sudo", user.sudo.as_ref()),
        ] {
            assert_eq!(read["users"][0][key], json!(value), "seed {seed}: {key}");
        }
        assert_eq!(read["users"][0]["ssh_authorized_keys"], json!(user.ssh_authorized_keys), "seed {seed}");
        let entry = &read["write_files"][0];
        for (key, value) in [
            ("path", &file.path),
            ("owner", &file.owner),
            ("permissions", &file.permissions),
            ("content", &file.content),
        ] {
            assert_eq!(entry[key], json!(value), "seed {seed}: {key}");
        }
        let filesystem = &read["fs_setup"][0];
        assert_eq!(filesystem["label"], json!(spec.disk_setup.filesystems[0].label), "seed {seed}");
        assert_eq!(filesystem["extra_opts"], json!(spec.disk_setup.filesystems[0].extra_opts), "seed {seed}");
    }
}
