//! What cloud-init would do with a server's user data. Pure.
//!
//! Done: the header `## template: jinja`, `bootcmd`, `write_files` (encodings, modes, `append`), `runcmd`. A script (`#!`) is
//! run as it is. Other modules are named in [`Plan::ignored`].

use std::io;

use base64::Engine as _;
use capwasm_sim_node::kubeadm::config::Version;
use serde_json::{Value, json};

use super::table::{items, text};

const SCRIPTS: &str = "/var/lib/cloud/instance/scripts";
/// Modules that say what a simulated machine is anyway.
const HARMLESS: [&str; 12] = [
    "hostname",
    "fqdn",
    "preserve_hostname",
    "manage_etc_hosts",
    "package_update",
    "package_upgrade",
    "ssh_pwauth",
    "disable_root",
    "final_message",
    "output",
    "growpart",
    "resize_rootfs",
];

/// What a server knows about itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    pub instance_id: String,
    pub hostname: String,
    pub zone: String,
    pub region: String,
    pub metadata: Value,
    /// Files that are there before anything runs.
    pub files: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    pub path: String,
    pub mode: u32,
    pub content: Vec<u8>,
}

/// What is to be done, in this order: the script of `bootcmd`, files, the script of what is appended, the script of `runcmd`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub files: Vec<File>,
    pub scripts: Vec<(&'static str, String)>,
    /// Modules that are not simulated.
    pub ignored: Vec<String>,
}

impl Plan {
    /// Files and scripts as a tar archive for the root directory.
    ///
    /// # Errors
    /// When a path is too long.
    pub fn archive(&self) -> io::Result<Vec<u8>> {
        let mut builder = tar::Builder::new(Vec::new());
        let mut add = |path: &str, mode: u32, content: &[u8]| {
            let mut header = tar::Header::new_gnu();
            header.set_mode(mode);
            header.set_uid(0);
            header.set_gid(0);
            header.set_size(content.len() as u64);
            builder.append_data(&mut header, path.trim_start_matches('/'), content)
        };
        for file in &self.files {
            add(&file.path, file.mode, &file.content)?;
        }
        for (name, script) in &self.scripts {
            add(&format!("{SCRIPTS}/{name}"), 0o700, script.as_bytes())?;
        }
        builder.into_inner()
    }

    /// Paths of the scripts, in the order in which they run.
    pub fn scripts(&self) -> Vec<String> {
        self.scripts.iter().map(|(name, _)| format!("{SCRIPTS}/{name}")).collect()
    }
}

/// Reads user data.
///
/// # Errors
/// What cannot be read.
pub(super) fn plan(user_data: &[u8], facts: &Facts) -> Result<Plan, String> {
    let data = std::str::from_utf8(user_data).map_err(|_| "the user data is not text: it may be compressed")?;
    let mut plan = Plan::default();
    for (path, content) in &facts.files {
        plan.files.push(File { path: path.clone(), mode: 0o644, content: content.clone().into_bytes() });
    }
    let (first, rest) = data.split_once('\n').unwrap_or((data, ""));
    let rendered;
    let text = if first.replace(' ', "") == "##template:jinja" {
        rendered = render(rest, facts)?;
        rendered.as_str()
    } else {
        data
    };
    if text.starts_with("#!") {
        plan.scripts.push(("user-data", text.to_owned()));
        return Ok(plan);
    }
    if !text.starts_with("#cloud-config") {
        let first = text.lines().next().unwrap_or_default();
        return Err(format!("user data that begins with {first:?} is not simulated: #cloud-config or a script is"));
    }
    let config: Value =
        serde_saphyr::from_str(text).map_err(|error| format!("the cloud-config is no YAML: {error}"))?;
    read(&config, &mut plan)?;
    Ok(plan)
}

fn read(config: &Value, plan: &mut Plan) -> Result<(), String> {
    script(config, "bootcmd", plan)?;
    let mut appended = String::new();
    for (number, file) in items(config, "write_files").enumerate() {
        let path = text(file, "path");
        if !path.starts_with('/') {
            return Err(format!("write_files: {path:?} is no absolute path"));
        }
        let content =
            decode(text(file, "content"), text(file, "encoding")).map_err(|error| format!("{path}: {error}"))?;
        let mode = match &file["permissions"] {
            Value::String(text) => u32::from_str_radix(text.trim_start_matches("0o"), 8)
                .map_err(|_| format!("write_files: {path}: {text:?} is no mode"))?,
            Value::Number(number) => number.as_u64().and_then(|mode| u32::try_from(mode).ok()).unwrap_or(0o644),
            _ => 0o644,
        };
        if file["append"] == true {
            let part = format!("{SCRIPTS}/../appended-{number}");
            appended.push_str(&format!("cat {part} >> {}\n", quoted(path)));
            plan.files.push(File { path: part, mode: 0o600, content });
        } else {
            plan.files.push(File { path: path.to_owned(), mode, content });
        }
    }
    if !appended.is_empty() {
        plan.scripts.push(("append", format!("#!/bin/sh\n{appended}")));
    }
    script(config, "runcmd", plan)?;
    let known = ["bootcmd", "write_files", "runcmd"];
    let names = config.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    plan.ignored = names.filter(|name| !known.contains(name) && !HARMLESS.contains(name)).map(str::to_owned).collect();
    Ok(())
}

/// The script of a list of commands. Each is a script of its own, so that one that the simulated shell does not understand
/// spoils no other.
fn script(config: &Value, name: &'static str, plan: &mut Plan) -> Result<(), String> {
    if config[name].is_null() {
        return Ok(());
    }
    let mut script = "#!/bin/sh\n".to_owned();
    let commands = config[name].as_array().ok_or_else(|| format!("{name} is no list"))?;
    for (number, command) in commands.iter().enumerate() {
        let line = match command {
            Value::String(line) => line.clone(),
            Value::Array(words) => {
                let plain = |word: &Value| word.as_str().map_or_else(|| word.to_string(), str::to_owned);
                words.iter().map(|word| quoted(&plain(word))).collect::<Vec<_>>().join(" ")
            }
            Value::Null => continue,
            other => return Err(format!("{name}: {other} is no command")),
        };
        let path = format!("{SCRIPTS}/{name}.{number}");
        script.push_str(&format!("sh {path}\n"));
        plan.files.push(File { path, mode: 0o700, content: format!("{line}\n").into_bytes() });
    }
    plan.scripts.push((name, script));
    Ok(())
}

/// A word as a shell takes it literally.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn decode(content: &str, encoding: &str) -> Result<Vec<u8>, String> {
    match encoding.to_ascii_lowercase().as_str() {
        "" | "text/plain" => Ok(content.as_bytes().to_vec()),
        "b64" | "base64" => {
            let plain: String = content.chars().filter(|c| !c.is_whitespace()).collect();
            let decoded = base64::engine::general_purpose::STANDARD.decode(plain);
            decoded.map_err(|error| format!("the content is not base64: {error}"))
        }
        other => Err(format!("the encoding {other} is not simulated")),
    }
}

/// Fills a template in with the instance's data, as it stands in cloud-init's `instance-data.json`.
fn render(template: &str, facts: &Facts) -> Result<String, String> {
    let meta = json!({
        "hostname": facts.hostname, "local_hostname": facts.hostname, "local-hostname": facts.hostname, "name": facts.hostname,
        "instance_id": facts.instance_id, "instance-id": facts.instance_id, "uuid": facts.instance_id,
        "availability_zone": facts.zone, "meta": facts.metadata,
    });
    let standard = json!({
        "local_hostname": facts.hostname, "instance_id": facts.instance_id, "availability_zone": facts.zone,
        "region": facts.region, "cloud_name": "openstack", "platform": "openstack",
    });
    let mut data = standard.clone();
    data["v1"] = standard;
    data["ds"] = json!({ "meta_data": meta });
    let environment = minijinja::Environment::new();
    let data = minijinja::value::Value::from(minijinja::value::Serde(data));
    environment.render_str(template, data).map_err(|error| format!("the template cannot be filled in: {error}"))
}

/// A Kubernetes version in the name of an image: `ubuntu-2204-kube-v1.34.2` has `1.34.2`.
pub(super) fn version_in(name: &str) -> Option<String> {
    let words = name.split(['-', '_', ' ']).map(|word| word.trim_start_matches('v'));
    words.filter(|word| Version::parse(word).is_ok()).map(str::to_owned).next_back()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn facts() -> Facts {
        Facts { instance_id: "42".into(), hostname: "cp-0".into(), zone: "az1".into(), ..Facts::default() }
    }

    #[test]
    fn a_cloud_config_becomes_files_and_scripts_in_order() {
        let data = "## template: jinja\n#cloud-config\nwrite_files:\n- path: /run/a\n  permissions: '0600'\n  content: |\n    {{ ds.meta_data.instance_id }} {{ local_hostname }}\n- path: /run/b\n  encoding: b64\n  content: aGk=\n- path: /etc/hosts\n  append: true\n  content: x\nruncmd:\n- echo one\n- [echo, it's]\nusers:\n- default\n";
        let plan = plan(data.as_bytes(), &facts()).unwrap();
        assert_eq!(plan.files[0], File { path: "/run/a".into(), mode: 0o600, content: b"42 cp-0\n".to_vec() });
        assert_eq!(plan.files[1].content, b"hi");
        assert_eq!(plan.scripts.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["append", "runcmd"]);
        let file = |name: &str| {
            let found = plan.files.iter().find(|file| file.path == format!("{SCRIPTS}/{name}")).unwrap();
            String::from_utf8(found.content.clone()).unwrap()
        };
        assert_eq!(plan.scripts[1].1, format!("#!/bin/sh\nsh {SCRIPTS}/runcmd.0\nsh {SCRIPTS}/runcmd.1\n"));
        assert_eq!((file("runcmd.0"), file("runcmd.1")), ("echo one\n".into(), "'echo' 'it'\\''s'\n".into()));
        assert!(plan.scripts[0].1.contains(">> '/etc/hosts'"));
        assert_eq!(plan.ignored, ["users"]);
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for (data, expected) in [
            ("#cloud-config\nruncmd: 1\n", "no list"),
            ("#cloud-config\nwrite_files:\n- {path: a}\n", "no absolute path"),
            ("#cloud-config\nwrite_files:\n- {path: /a, encoding: gzip}\n", "not simulated"),
            ("Content-Type: multipart/mixed\n", "not simulated"),
            ("#cloud-config\n\t:\n", "no YAML"),
        ] {
            assert!(plan(data.as_bytes(), &facts()).unwrap_err().contains(expected), "{data}");
        }
        assert!(plan(&[0x1f, 0x8b], &facts()).is_err());
    }

    #[test]
    fn versions_are_found_in_names_of_images() {
        for (name, expected) in [
            ("ubuntu-jammy-kube-v1.34.2-251118", Some("1.34.2")),
            ("ubuntu-22.04-1.33.0", Some("1.33.0")),
            ("ubuntu-24.04.1", None),
            ("node-image", None),
            ("a-1.2", None),
        ] {
            assert_eq!(version_in(name).as_deref(), expected, "{name}");
        }
    }
}
