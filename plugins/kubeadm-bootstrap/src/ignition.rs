//! Bootstrap data as Ignition 2.3.0, which Flatcar reads.
//!
//! Ignition writes files and units before the first boot and runs no commands: /etc/kubeadm.sh has them, and the unit
//! kubeadm.service runs it once, as long as /etc/kubeadm.yml is there, which the script moves away when kubeadm is done.
//! What the user gives as Container Linux Config ([`clc`]) is merged in last.

pub mod clc;
mod mounts;

use base64::{Engine, engine::general_purpose::STANDARD};
use capwasm_sdk::Problem;
use serde_json::{Map, Value, json};

use crate::config::{ConfigSpec, Filesystem, Partition, User};
use crate::userdata::{Payload, SENTINEL, WriteFile, verbosity};

const VERSION: &str = "2.3.0";
const SCRIPT: &str = "/etc/kubeadm.sh";
const CONFIG: &str = "/etc/kubeadm.yml";

/// What Ignition, or the Container Linux Config, cannot do.
pub fn check(spec: &ConfigSpec) -> Result<(), Problem> {
    let unless = |wrong: bool, message: String| if wrong { Err(invalid(message)) } else { Ok(()) };
    unless(!spec.boot_commands.is_empty(), "bootCommands are not possible with the format ignition".into())?;
    for file in &spec.files {
        let zipped = file.encoding.starts_with("gzip");
        unless(
            zipped,
            format!("encoding {} of file {} is not possible with the format ignition", file.encoding, file.path),
        )?;
    }
    for user in &spec.users {
        // It stands in lines of configuration files.
        let odd = user.name.is_empty()
            || user.name.contains(|c: char| c.is_whitespace() || c.is_control() || "/,:".contains(c));
        unless(odd, format!("{:?} cannot be the name of a user with the format ignition", user.name))?;
        unless(
            user.inactive == Some(true),
            format!("inactive of user {} is not possible with the format ignition", user.name),
        )?;
    }
    for partition in &spec.disk_setup.partitions {
        let device = &partition.device;
        let table = partition.table_type.as_deref().unwrap_or("gpt");
        unless(
            table != "gpt",
            format!("tableType {table} of {device} is not possible with the format ignition; use gpt"),
        )?;
        let parts = !partition.disk_layout.is_empty();
        unless(
            parts,
            format!("diskLayout of {device} is not possible with the format ignition; use additionalConfig"),
        )?;
    }
    for filesystem in &spec.disk_setup.filesystems {
        let device = &filesystem.device;
        let replaces = filesystem.replace_fs.is_some();
        unless(replaces, format!("replaceFS of {device} is not possible with the format ignition; use overwrite"))?;
        let part = filesystem.partition.is_some();
        unless(
            part,
            format!("partition of {device} is not possible with the format ignition; name the partition's device"),
        )?;
    }
    mounts::units(spec).map_err(invalid)?;
    additional(spec).map(|_| ())
}

/// The document, and warnings about the user's Container Linux Config.
pub fn render(spec: &ConfigSpec, users: &[User], payload: &Payload) -> Result<(Value, Vec<String>), Problem> {
    let mut files: Vec<Value> = users.iter().filter_map(sudoers).collect();
    files.extend(sshd(users));
    for written in &payload.files {
        files.push(file(written)?);
    }
    files.push(own(SCRIPT, 0o700, &script(spec, payload)));
    files.push(own(CONFIG, 0o600, &payload.configuration));
    let ntp = spec.ntp.as_ref().filter(|ntp| ntp.enabled == Some(true));
    if let Some(ntp) = ntp.filter(|ntp| !ntp.servers.is_empty()) {
        files.push(own("/etc/ntp.conf", 0o644, &ntp_conf(&ntp.servers)));
    }
    let mut units = vec![json!({"name": "kubeadm.service", "enabled": true, "contents": unit()})];
    if ntp.is_some() {
        units.push(json!({"name": "ntpd.service", "enabled": true}));
    }
    units.extend(mounts::units(spec).map_err(invalid)?);
    let storage = present([
        ("disks", spec.disk_setup.partitions.iter().map(disk).collect()),
        ("filesystems", spec.disk_setup.filesystems.iter().map(filesystem).collect()),
        ("files", Value::Array(files)),
    ]);
    let mut document = json!({"ignition": {"version": VERSION}, "storage": storage, "systemd": {"units": units}});
    if !users.is_empty() {
        document["passwd"] = json!({"users": users.iter().map(user).collect::<Vec<_>>()});
    }
    let (additional, warnings) = additional(spec)?;
    merge(&mut document, additional);
    Ok((document, warnings))
}

/// The user's Container Linux Config as Ignition, empty when there is none.
fn additional(spec: &ConfigSpec) -> Result<(Value, Vec<String>), Problem> {
    let config = &spec.ignition.container_linux_config;
    if config.additional_config.trim().is_empty() {
        return Ok((json!({}), Vec::new()));
    }
    clc::convert(&config.additional_config, config.strict).map_err(|problems| {
        invalid(format!("spec.ignition.containerLinuxConfig.additionalConfig cannot be used: {}", problems.join("; ")))
    })
}

fn invalid(message: impl Into<String>) -> Problem {
    Problem::invalid("InvalidConfiguration", message)
}

/// Lists are put behind each other, maps are merged, and of anything else the later one counts.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(from)) => into.extend(from),
        (into, from) => *into = from,
    }
}

fn script(spec: &ConfigSpec, payload: &Payload) -> String {
    let mut lines = vec!["#!/bin/bash".to_owned(), "set -e".to_owned()];
    lines.extend(spec.pre_kubeadm_commands.iter().cloned());
    lines.push(format!("kubeadm {} --config {CONFIG} {}", payload.subcommand.as_str(), verbosity(spec)));
    lines.push(format!("mkdir -p /run/cluster-api && echo success > {SENTINEL}"));
    lines.push(format!("mv {CONFIG} /tmp/"));
    lines.extend(spec.post_kubeadm_commands.iter().cloned());
    lines.join("\n") + "\n"
}

fn unit() -> String {
    format!(
        "[Unit]
Description=kubeadm
# It is moved away when kubeadm is done, so that it runs once.
ConditionPathExists={CONFIG}
After=network.target
[Service]
Type=oneshot
ExecStart={SCRIPT}
[Install]
WantedBy=multi-user.target
"
    )
}

fn ntp_conf(servers: &[String]) -> String {
    let servers: String = servers.iter().map(|server| format!("server {server}\n")).collect();
    format!(
        "{servers}
# Time is served to nobody but this machine.
restrict default nomodify nopeer noquery notrap limited kod
restrict 127.0.0.1
restrict [::1]
"
    )
}

fn sudoers(user: &User) -> Option<Value> {
    let rule = user.sudo.as_ref().filter(|rule| !rule.is_empty())?;
    Some(own(&format!("/etc/sudoers.d/{}", user.name), 0o600, &format!("{} {rule}\n", user.name)))
}

/// Passwords are let in for those who may use theirs; all else is as Flatcar has it.
fn sshd(users: &[User]) -> Option<Value> {
    let names: Vec<_> =
        users.iter().filter(|user| user.lock_password == Some(false)).map(|user| user.name.as_str()).collect();
    if names.is_empty() {
        return None;
    }
    let text = format!(
        "Subsystem sftp internal-sftp
ClientAliveInterval 180
UseDNS no
UsePAM yes
# PAM does these two.
PrintLastLog no
PrintMotd no

Match User {}
  PasswordAuthentication yes
",
        names.join(",")
    );
    Some(own("/etc/ssh/sshd_config", 0o600, &text))
}

fn own(path: &str, mode: u32, content: &str) -> Value {
    json!({"filesystem": "root", "path": path, "mode": mode, "contents": {"source": source(content.as_bytes())}})
}

/// Content as a data URL.
fn source(content: &[u8]) -> String {
    format!("data:;base64,{}", STANDARD.encode(content))
}

fn file(file: &WriteFile) -> Result<Value, Problem> {
    let content = match file.encoding.as_str() {
        "" => file.content.clone().into_bytes(),
        // People break it into lines.
        "base64" => STANDARD
            .decode(file.content.split_ascii_whitespace().collect::<String>())
            .map_err(|_| invalid(format!("the content of file {} is not base64", file.path)))?,
        other => {
            return Err(invalid(format!(
                "encoding {other} of file {} is not possible with the format ignition",
                file.path
            )));
        }
    };
    let mut entry = json!({"filesystem": "root", "path": file.path, "contents": {"source": source(&content)}});
    let mode = if file.permissions.is_empty() { "0644" } else { &file.permissions };
    let mode = u32::from_str_radix(mode, 8).ok().filter(|mode| *mode <= 0o7777);
    entry["mode"] = json!(
        mode.ok_or_else(|| invalid(format!("permissions {} of file {} are not octal", file.permissions, file.path)))?
    );
    let owner = if file.owner.is_empty() { "root:root" } else { &file.owner };
    let (user, group) = owner.split_once(':').unwrap_or((owner, ""));
    for (key, name) in [("user", user.trim()), ("group", group.trim())] {
        if !name.is_empty() {
            entry[key] = json!({"name": name});
        }
    }
    if file.append {
        entry["append"] = json!(true);
    }
    Ok(entry)
}

fn user(user: &User) -> Value {
    let groups: Vec<_> =
        user.groups.iter().flat_map(|groups| groups.split(',')).map(str::trim).filter(|it| !it.is_empty()).collect();
    present([
        ("name", json!(user.name)),
        ("gecos", json!(user.gecos)),
        ("groups", json!(groups)),
        ("homeDir", json!(user.home_dir)),
        ("shell", json!(user.shell)),
        ("passwordHash", json!(user.passwd)),
        ("primaryGroup", json!(user.primary_group)),
        ("sshAuthorizedKeys", json!(user.ssh_authorized_keys)),
    ])
}

fn disk(partition: &Partition) -> Value {
    // One partition of all that there is.
    let partitions = if partition.layout == Some(true) { json!([{}]) } else { Value::Null };
    present([
        ("device", json!(partition.device)),
        ("wipeTable", json!(partition.overwrite)),
        ("partitions", partitions),
    ])
}

fn filesystem(filesystem: &Filesystem) -> Value {
    let mount = present([
        ("device", json!(filesystem.device)),
        ("format", json!(filesystem.filesystem)),
        ("wipeFilesystem", json!(filesystem.overwrite)),
        ("label", json!(filesystem.label)),
        ("options", json!(filesystem.extra_opts)),
    ]);
    present([("name", json!(filesystem.label)), ("mount", mount)])
}

/// A map of what is neither null nor empty.
fn present<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let says = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    };
    let kept = fields.into_iter().filter(|(_, value)| says(value)).map(|(key, value)| (key.to_owned(), value));
    Value::Object(kept.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests;
