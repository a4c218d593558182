#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
use super::*;

#[test]
fn every_section_becomes_ignitions_own() {
    let config = r#"
ignition:
  config:
    append: [{source: "https://a", verification: {hash: {function: sha512, sum: "{SUM}"}}}]
  timeouts: {http_total: 5}
  security: {tls: {certificate_authorities: [{source: "https://ca"}]}}
storage:
  disks:
  - device: /dev/sdb
    wipe_table: true
    partitions: [{label: data, number: 1, size: 10GiB, start: 1MiB, type_guid: linux_filesystem_data}]
  raid: [{name: r, level: raid1, devices: [/dev/a, /dev/b], spares: 1}]
  filesystems: [{name: data, mount: {device: /dev/sdb1, format: ext4, wipe_filesystem: true, label: data, options: ["-F"]}}]
  files:
  - {path: /etc/a, mode: 0644, user: {id: 500}, group: {name: core}, contents: {inline: "x\ny\n"}}
  - {path: /etc/b, mode: 0600, filesystem: data, contents: {remote: {url: "https://b", compression: gzip}}}
  - {path: /etc/c, mode: 0o600, append: true}
  directories: [{path: /d, mode: 0700}]
  links: [{path: /l, target: /etc/a, hard: true}]
systemd:
  units:
  - name: a.service
    enabled: true
    contents: |
      [Unit]
      Description=a
      [Install]
    dropins: [{name: x.conf, contents: "[Service]\n"}]
networkd: {units: [{name: 00.network, contents: "[Match]\n"}]}
passwd:
  users: [{name: u, password_hash: h, ssh_authorized_keys: [k], uid: 5, no_create_home: true, groups: [wheel]}]
  groups: [{name: g, gid: 7}]
"#;
    let sum = "0a".repeat(64);
    let (made, warnings) = convert(&config.replace("{SUM}", &sum), true).unwrap();
    assert!(warnings.is_empty());
    assert_eq!(
        made,
        json!({
            "ignition": {
                "config": {"append": [{"source": "https://a", "verification": {"hash": format!("sha512-{sum}")}}]},
                "timeouts": {"httpTotal": 5}, "security": {"tls": {"certificateAuthorities": [{"source": "https://ca"}]}},
            },
            "storage": {
                "disks": [{"device": "/dev/sdb", "wipeTable": true, "partitions": [
                    {"label": "data", "number": 1, "sizeMiB": 10_240, "startMiB": 1, "typeGuid": "0fc63daf-8483-4772-8e79-3d69d8477de4"}]}],
                "raid": [{"name": "r", "level": "raid1", "devices": ["/dev/a", "/dev/b"], "spares": 1}],
                "filesystems": [{"name": "data", "mount": {"device": "/dev/sdb1", "format": "ext4", "wipeFilesystem": true, "label": "data", "options": ["-F"]}}],
                "files": [
                    {"filesystem": "root", "path": "/etc/a", "mode": 420, "user": {"id": 500}, "group": {"name": "core"}, "contents": {"source": "data:;base64,eAp5Cg=="}},
                    {"filesystem": "data", "path": "/etc/b", "mode": 384, "contents": {"source": "https://b", "compression": "gzip"}},
                    {"filesystem": "root", "path": "/etc/c", "mode": 384, "append": true, "contents": {"source": "data:,"}},
                ],
                "directories": [{"filesystem": "root", "path": "/d", "mode": 448}],
                "links": [{"filesystem": "root", "path": "/l", "target": "/etc/a", "hard": true}],
            },
            "systemd": {"units": [{"name": "a.service", "enabled": true, "contents": "[Unit]\nDescription=a\n[Install]\n", "dropins": [{"name": "x.conf", "contents": "[Service]\n"}]}]},
            "networkd": {"units": [{"name": "00.network", "contents": "[Match]\n"}]},
            "passwd": {"users": [{"name": "u", "passwordHash": "h", "sshAuthorizedKeys": ["k"], "uid": 5, "noCreateHome": true, "groups": ["wheel"]}],
                       "groups": [{"name": "g", "gid": 7}]},
        })
    );
}

#[test]
fn what_is_doubtful_is_a_warning_and_in_strict_mode_an_error() {
    for (config, part) in [
        ("storage: {files: [{path: /foo, contents: {inline: foo}}]}", "storage.files[0]: has no mode"),
        ("storage: {directories: [{path: /foo}]}", "storage.directories[0]: has no mode"),
        ("storage: {disks: [{device: /dev/sda, partitions: [{label: 'foo:bar'}]}]}", "has a colon"),
        ("systemd: {unit: []}", "systemd.unit: is not known"),
        ("nosuch: 1", "nosuch: is not known"),
        ("systemd: {units: [{name: a.service, enabled: true, contents: '[Unit]'}]}", "unit a.service: is enabled, but"),
    ] {
        let (_, warnings) = convert(config, false).unwrap();
        assert!(warnings.len() == 1 && warnings[0].contains(part), "{config}: {warnings:?}");
        assert_eq!(convert(config, true).unwrap_err(), warnings, "{config}");
    }
}

#[test]
fn what_cannot_be_is_an_error_in_any_mode() {
    for (config, part) in [
        ("a: [", "not YAML"),
        ("- a", "must be a map"),
        ("storage: []", "storage: must be a map"),
        ("storage: {files: {}}", "storage.files: must be a list"),
        ("storage: {files: [{path: foo, mode: 0644}]}", "absolute path"),
        ("storage: {files: [{path: /a, mode: '0644'}]}", "storage.files[0].mode: must be a whole number"),
        ("storage: {files: [{path: /a, mode: 0644, contents: {local: x}}]}", "local is not supported"),
        ("storage: {files: [{path: /a, mode: 0644, contents: {inline: x, remote: {url: y}}}]}", "only one of"),
        ("storage: {links: [{path: /a}]}", "needs a target"),
        ("storage: {disks: [{device: /d, partitions: [{size: big}]}]}", "must be a size"),
        ("storage: {disks: [{device: /d, partitions: [{size: 512}]}]}", "must be a size"),
        ("storage: {disks: [{device: /d, partitions: [{size: 10KiB}]}]}", "must be a size"),
        (
            "ignition: {config: {replace: {source: 'https://a', verification: {hash: {function: sha512, sum: '00'}}}}}",
            "128",
        ),
        ("systemd: {units: [{name: a, enabled: 3}]}", "systemd.units[0].enabled: must be true or false"),
        ("passwd: {users: [{name: a, groups: wheel}]}", "must be a list"),
        ("etcd: {name: x}", "etcd: is not supported"),
        ("update: {group: beta}", "update: is not supported"),
    ] {
        let errors = convert(config, false).unwrap_err();
        assert!(errors.iter().any(|error| error.contains(part)), "{config}: {errors:?}");
    }
    assert_eq!(convert("", true).unwrap().0, json!({}));
}
