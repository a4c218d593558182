//! Bootstrap data: what a machine runs at its first boot, in the format that its image reads.
//!
//! Whatever the format, the steps are the same: files are there, the user's commands run, then kubeadm, then a sentinel
//! file says that all went well, then the user's last commands.

use capwasm_sdk::{BootstrapData, Format, Problem};

use crate::cloud_config::CloudConfig;
use crate::config::{ConfigSpec, User};
use crate::ignition;

/// Written at the end of a successful bootstrap.
pub const SENTINEL: &str = "/run/cluster-api/bootstrap-success.complete";

/// A file on the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteFile {
    /// Absolute path on the machine.
    pub path: String,
    /// `root:root` when empty.
    pub owner: String,
    /// The system's own when empty.
    pub permissions: String,
    /// `base64`, `gzip+base64`, …; empty for text.
    pub encoding: String,
    /// Adds to a file that is there.
    pub append: bool,
    /// The content, in `encoding`.
    pub content: String,
}

impl WriteFile {
    /// A plain-text file that belongs to root.
    pub fn of_root(path: impl Into<String>, permissions: &str, content: impl Into<String>) -> WriteFile {
        WriteFile {
            path: path.into(),
            permissions: permissions.into(),
            content: content.into(),
            ..WriteFile::default()
        }
    }

    /// What is below /run is gone after a reboot; this one makes the sentinel's directory without a shell.
    fn placeholder() -> WriteFile {
        WriteFile::of_root("/run/cluster-api/placeholder", "0640", "Makes the directory for the sentinel file.\n")
    }
}

/// The subcommand of kubeadm that a machine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subcommand {
    /// `kubeadm init`: makes a cluster.
    Init,
    /// `kubeadm join`: joins one.
    Join,
}

impl Subcommand {
    /// The word on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Subcommand::Init => "init",
            Subcommand::Join => "join",
        }
    }

    /// Where cloud-init puts kubeadm's configuration.
    fn config(self) -> &'static str {
        match self {
            Subcommand::Init => "/run/kubeadm/kubeadm.yaml",
            Subcommand::Join => "/run/kubeadm/kubeadm-join-config.yaml",
        }
    }
}

/// What was made for one machine, besides what stands in the spec as it is.
#[derive(Clone, Debug)]
pub struct Payload {
    /// What the machine runs.
    pub subcommand: Subcommand,
    /// The file that kubeadm reads, YAML.
    pub configuration: String,
    /// Certificates and the user's files.
    pub files: Vec<WriteFile>,
}

/// `--v 5` where a verbosity is asked for.
pub fn verbosity(spec: &ConfigSpec) -> String {
    spec.verbosity.map(|level| format!("--v {level}")).unwrap_or_default()
}

/// What a spec asks for that cannot be, whatever the machine.
pub fn check(spec: &ConfigSpec) -> Result<(), Problem> {
    let invalid = |message: String| Err(Problem::invalid("InvalidConfiguration", message));
    for (at, file) in spec.files.iter().enumerate() {
        let path = &file.path;
        if file.content_from.is_some() && !file.content.is_empty() {
            return invalid(format!("file {path} has both content and contentFrom; leave one of them out"));
        }
        if spec.files.iter().take(at).any(|earlier| earlier.path == *path) {
            return invalid(format!("file {path} is there twice"));
        }
        if !matches!(file.content_format.as_str(), "" | "Raw" | "Template") {
            return invalid(format!("contentFormat {} of file {path} is not known", file.content_format));
        }
        if file.is_template() && !file.encoding.is_empty() {
            return invalid(format!("file {path} is a template, so that its content cannot be {}", file.encoding));
        }
    }
    for user in &spec.users {
        if user.passwd.is_some() && user.passwd_from.is_some() {
            return invalid(format!("user {} has both passwd and passwdFrom; leave one of them out", user.name));
        }
    }
    match spec.format.as_str() {
        "" | "cloud-config" if !spec.ignition.container_linux_config.additional_config.is_empty() => {
            invalid("spec.ignition needs spec.format ignition".into())
        }
        "" | "cloud-config" => Ok(()),
        "ignition" => ignition::check(spec),
        other => invalid(format!("format {other} is not known; there are cloud-config and ignition")),
    }
}

/// The data, and warnings about what the user merged into it.
pub fn render(spec: &ConfigSpec, users: &[User], payload: Payload) -> Result<(BootstrapData, Vec<String>), Problem> {
    if spec.format == "ignition" {
        let (value, warnings) = ignition::render(spec, users, &payload)?;
        return Ok((BootstrapData { format: Format::Ignition, value: value.to_string().into_bytes() }, warnings));
    }
    let value = cloud_config(spec, users, payload).into_bytes();
    Ok((BootstrapData { format: Format::CloudConfig, value }, Vec::new()))
}

fn cloud_config(spec: &ConfigSpec, users: &[User], payload: Payload) -> String {
    let Payload { subcommand, configuration, mut files } = payload;
    files.push(WriteFile::of_root(subcommand.config(), "0640", configuration));
    files.push(WriteFile::placeholder());
    let kubeadm = format!(
        "kubeadm {} --config {} {} && echo success > {SENTINEL}",
        subcommand.as_str(),
        subcommand.config(),
        verbosity(spec)
    );
    let run_commands =
        spec.pre_kubeadm_commands.iter().cloned().chain([kubeadm]).chain(spec.post_kubeadm_commands.iter().cloned());
    CloudConfig {
        boot_commands: &spec.boot_commands,
        disk_setup: Some(&spec.disk_setup),
        mounts: &spec.mounts,
        ntp: spec.ntp.as_ref(),
        users,
        files,
        run_commands: run_commands.collect(),
    }
    .render()
}

#[cfg(test)]
mod tests;
