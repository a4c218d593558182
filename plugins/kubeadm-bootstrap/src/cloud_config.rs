//! Bootstrap data as cloud-init's `#cloud-config`.
//!
//! Sections stand in the order in which they take effect. The first line makes cloud-init fill in instance data, so that
//! a node may be named `{{ ds.meta_data.local_hostname }}`.

use serde_json::{Value, json};

use crate::config::{DiskSetup, Filesystem, Ntp, Part, Partition, User};
use crate::userdata::WriteFile;
use capwasm_yaml::write;

/// Everything that a machine does at its first boot.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the names are cloud-init's, or those of KubeadmConfig")]
pub struct CloudConfig<'a> {
    pub boot_commands: &'a [String],
    pub disk_setup: Option<&'a DiskSetup>,
    pub mounts: &'a [Vec<String>],
    pub ntp: Option<&'a Ntp>,
    pub users: &'a [User],
    pub files: Vec<WriteFile>,
    pub run_commands: Vec<String>,
}

impl CloudConfig<'_> {
    /// The document. The same for the same input.
    pub fn render(&self) -> String {
        let mut out = String::from("## template: jinja\n#cloud-config\n");
        section(&mut out, "bootcmd", json!(self.boot_commands));
        if let Some(disks) = self.disk_setup {
            section(&mut out, "disk_setup", Value::Object(disks.partitions.iter().map(disk).collect()));
            section(&mut out, "fs_setup", disks.filesystems.iter().map(filesystem).collect());
        }
        section(&mut out, "mounts", json!(self.mounts));
        if let Some(ntp) = self.ntp {
            section(&mut out, "ntp", fields([("enabled", json!(ntp.enabled)), ("servers", json!(ntp.servers))]));
        }
        section(&mut out, "users", self.users.iter().map(user).collect());
        section(&mut out, "write_files", self.files.iter().map(file).collect());
        section(&mut out, "runcmd", json!(self.run_commands));
        out
    }
}

fn section(out: &mut String, name: &str, value: Value) {
    if !is_empty(&value) {
        out.push('\n');
        out.push_str(&write::document(&json!({ name: value })));
    }
}

/// A map of the fields that say something.
fn fields<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Object(fields.into_iter().filter(|(_, value)| !is_empty(value)).map(|(k, v)| (k.to_owned(), v)).collect())
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

fn file(file: &WriteFile) -> Value {
    let mut written = fields([
        ("path", json!(file.path)),
        ("owner", json!(if file.owner.is_empty() { "root:root" } else { &file.owner })),
        ("permissions", json!(file.permissions)),
        ("encoding", json!(file.encoding)),
        ("append", if file.append { Value::Bool(true) } else { Value::Null }),
    ]);
    written["content"] = json!(file.content);
    written
}

fn user(user: &User) -> Value {
    fields([
        ("name", json!(user.name)),
        ("gecos", json!(user.gecos)),
        ("groups", json!(user.groups)),
        ("homedir", json!(user.home_dir)),
        // In days; a truth would be passed over.
        ("inactive", if user.inactive == Some(true) { json!("0") } else { Value::Null }),
        ("lock_passwd", json!(user.lock_password)),
        ("passwd", json!(user.passwd)),
        ("primary_group", json!(user.primary_group)),
        ("shell", json!(user.shell)),
        ("ssh_authorized_keys", json!(user.ssh_authorized_keys)),
        ("sudo", json!(user.sudo)),
    ])
}

fn disk(partition: &Partition) -> (String, Value) {
    let table = partition.table_type.as_deref();
    let layout = match partition.layout {
        Some(whole) => Value::Bool(whole),
        None => partition.disk_layout.iter().map(|part| share(part, table)).collect(),
    };
    let value = fields([
        ("layout", layout),
        ("overwrite", json!(partition.overwrite)),
        ("table_type", json!(partition.table_type)),
    ]);
    (partition.device.clone(), value)
}

/// A percentage, or a percentage with the type's code for that kind of table.
fn share(part: &Part, table: Option<&str>) -> Value {
    let Some(name) = part.partition_type.as_deref() else {
        return json!(part.percentage);
    };
    // What a type is called: on a GPT disk, on an MBR disk.
    const CODES: [(&str, &str, &str); 7] = [
        ("Linux", "8300", "83"),
        ("LinuxSwap", "8200", "82"),
        ("LinuxRAID", "fd00", "fd"),
        ("LVM", "8e00", "8e"),
        ("Fat32", "0700", "0c"),
        ("NTFS", "0700", "07"),
        ("LinuxExtended", "8300", "85"),
    ];
    let code = CODES
        .iter()
        .find(|(known, ..)| *known == name)
        .map_or(name, |(_, gpt, mbr)| if table == Some("gpt") { gpt } else { mbr });
    // cloud-init wants a number where it can be one; the tools read its digits as hexadecimal. It adds zeros at the end of
    // short ones, so that none may be lost at the start.
    match code.parse::<u32>() {
        Ok(digits) if !code.starts_with('0') => json!([part.percentage, digits]),
        _ => json!([part.percentage, code]),
    }
}

fn filesystem(filesystem: &Filesystem) -> Value {
    fields([
        ("device", json!(filesystem.device)),
        ("extra_opts", json!(filesystem.extra_opts)),
        ("filesystem", json!(filesystem.filesystem)),
        ("label", json!(filesystem.label)),
        ("overwrite", json!(filesystem.overwrite)),
        ("partition", json!(filesystem.partition)),
        ("replace_fs", json!(filesystem.replace_fs)),
    ])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::config::ConfigSpec;

    #[test]
    fn every_section_reads_back_as_cloud_init_spells_it() {
        let spec: ConfigSpec = serde_json::from_value(json!({
            "bootCommands": ["echo boot"],
            "users": [{"name": "capi", "sudo": "ALL=(ALL) NOPASSWD:ALL", "lockPassword": false, "inactive": true, "homeDir": "/h", "sshAuthorizedKeys": ["ssh-rsa A"]}],
            "ntp": {"enabled": true, "servers": ["a.example", "b.example"]},
            "mounts": [["/dev/vdb1", "/data", "ext4", "defaults,noatime"]],
            "diskSetup": {
                "partitions": [{"device": "/dev/vdb", "layout": true, "overwrite": false, "tableType": "gpt"},
                               {"device": "/dev/vdc", "diskLayout": [{"percentage": 60}, {"percentage": 40, "partitionType": "LinuxSwap"}]}],
                "filesystems": [{"device": "/dev/vdb", "filesystem": "ext4", "label": "etcd", "partition": "auto", "replaceFS": "ntfs", "extraOpts": ["-E", "x"]}],
            },
        }))
        .unwrap();
        let rendered = CloudConfig {
            boot_commands: &spec.boot_commands,
            disk_setup: Some(&spec.disk_setup),
            mounts: &spec.mounts,
            ntp: spec.ntp.as_ref(),
            users: &spec.users,
            files: vec![WriteFile {
                append: true,
                encoding: "base64".into(),
                ..WriteFile::of_root("/a", "0600", "eA==")
            }],
            run_commands: vec!["kubeadm init && echo \"$HOME\" > /run/x".into()],
        }
        .render();
        assert!(rendered.starts_with("## template: jinja\n#cloud-config\n\nbootcmd:\n"), "{rendered}");
        let read: Value = serde_saphyr::from_str(&rendered).unwrap();
        assert_eq!(
            read,
            json!({
                "bootcmd": ["echo boot"],
                "disk_setup": {"/dev/vdb": {"layout": true, "overwrite": false, "table_type": "gpt"}, "/dev/vdc": {"layout": [60, [40, 82]]}},
                "fs_setup": [{"device": "/dev/vdb", "filesystem": "ext4", "label": "etcd", "partition": "auto", "replace_fs": "ntfs", "extra_opts": ["-E", "x"]}],
                "mounts": [["/dev/vdb1", "/data", "ext4", "defaults,noatime"]],
                "ntp": {"enabled": true, "servers": ["a.example", "b.example"]},
                "users": [{"name": "capi", "sudo": "ALL=(ALL) NOPASSWD:ALL", "lock_passwd": false, "inactive": "0", "homedir": "/h", "ssh_authorized_keys": ["ssh-rsa A"]}],
                "write_files": [{"path": "/a", "owner": "root:root", "permissions": "0600", "append": true, "encoding": "base64", "content": "eA=="}],
                "runcmd": ["kubeadm init && echo \"$HOME\" > /run/x"],
            })
        );
    }

    #[test]
    fn partition_types_are_codes_of_their_kind_of_table() {
        let of = |name: &str, table| {
            share(&Part { percentage: 5, partition_type: Some(name.into()) }, table).as_array().cloned().unwrap()[1]
                .clone()
        };
        for (name, gpt, mbr) in [
            ("LinuxSwap", json!(8200), json!(82)),
            ("LVM", json!("8e00"), json!("8e")),
            ("Fat32", json!("0700"), json!("0c")),
            ("NTFS", json!("0700"), json!("07")),
            (
                "0FC63DAF-8483-4772-8E79-3D69D8477DE4",
                json!("0FC63DAF-8483-4772-8E79-3D69D8477DE4"),
                json!("0FC63DAF-8483-4772-8E79-3D69D8477DE4"),
            ),
        ] {
            assert_eq!((of(name, Some("gpt")), of(name, None)), (gpt, mbr), "{name}");
        }
    }

    #[test]
    fn what_was_not_asked_for_takes_no_section() {
        assert_eq!(CloudConfig::default().render(), "## template: jinja\n#cloud-config\n");
    }
}
