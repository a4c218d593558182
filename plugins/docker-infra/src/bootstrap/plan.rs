//! The files and steps of one machine's bootstrap.

use std::collections::BTreeSet;

use crate::cloud_config::{CloudConfig, File, quote};
use crate::kind_node;
use crate::tar::{Attributes, Writer};

/// Where progress is seen.
pub const STEPS: &str = "/capwasm/steps";
/// Written by kubeadm's bootstrap data when it went well.
const SUCCESS: &str = "/run/cluster-api/bootstrap-success.complete";

/// What is to be done in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    files: Vec<File>,
    steps: Vec<String>,
    waits_for_boot: bool,
    /// What has no effect here, for a person.
    pub ignored: Vec<String>,
}

impl Plan {
    /// From a cloud-config; in a privileged container adapted to real nodes.
    pub fn new(mut config: CloudConfig, privileged: bool) -> Plan {
        if privileged {
            kind_node::adapt(&mut config);
        }
        let mut steps = config.boot_commands;
        steps.push("cp -a /capwasm/files/. /".to_owned());
        for (number, file) in config.files.iter().enumerate() {
            let path = quote(&file.path);
            if file.append {
                let directory = quote(file.path.rsplit_once('/').map_or("/", |(directory, _)| directory));
                steps.push(format!("mkdir -p {directory}/ && cat /capwasm/append/{number} >>{path}"));
            }
            if let Some(owner) = &file.named_owner {
                steps.push(format!("chown {} {path}", quote(owner)));
            }
        }
        steps.extend(config.commands);
        steps.retain(|command| !command.trim().is_empty());
        steps.push(format!("test -f {SUCCESS}"));
        Plan { files: config.files, steps, waits_for_boot: privileged, ignored: config.ignored }
    }

    /// How many steps there are.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Whether the node itself must come up first.
    pub fn waits_for_boot(&self) -> bool {
        self.waits_for_boot
    }

    /// The archive to unpack in `/`.
    pub fn archive(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        let mut made = BTreeSet::new();
        writer.directory("capwasm", Attributes::root(0o700));
        writer.directory("capwasm/files", Attributes::root(0o755));
        writer.directory("capwasm/append", Attributes::root(0o755));
        for (number, file) in self.files.iter().enumerate() {
            if file.append {
                writer.file(&format!("capwasm/append/{number}"), Attributes::root(0o600), &file.content);
                continue;
            }
            for (at, _) in file.path.match_indices('/').skip(1) {
                let directory = &file.path[..at];
                if made.insert(directory) {
                    writer.directory(&format!("capwasm/files{directory}"), Attributes::root(directory_mode(directory)));
                }
            }
            writer.file(&format!("capwasm/files{}", file.path), file.attributes, &file.content);
        }
        // Last, so that it stands for the whole.
        writer.directory("capwasm/steps", Attributes::root(0o755));
        writer.finish()
    }

    /// The script of a step.
    pub fn script(&self, number: usize) -> String {
        let command = self.steps.get(number).map_or("", |command| command.trim_end_matches('\n'));
        let command = if ends_the_shell(command) { format!("(\n{command}\n)") } else { command.to_owned() };
        format!(
            "mkdir {STEPS}/{number}.started || exit 0\n{{\n{command}\n}} >{STEPS}/{number}.log 2>&1\necho $? >{STEPS}/{number}.exit"
        )
    }

    /// The script that tells when the node is up; may run any number of times.
    pub fn boot_script(&self) -> String {
        format!("{} && echo 0 >{STEPS}/boot.exit", kind_node::BOOTED)
    }

    /// A step for a person.
    pub fn describe(&self, number: usize) -> String {
        let command: String = self.steps.get(number).map_or("", String::as_str).chars().take(120).collect();
        format!("step {} of {} ({})", number + 1, self.steps.len(), command.trim_end())
    }
}

/// Copying a directory also copies its mode onto one that is there already; these differ from the usual.
fn directory_mode(path: &str) -> u32 {
    match path {
        "/tmp" | "/var/tmp" => 0o1777,
        "/root" => 0o700,
        _ => 0o755,
    }
}

/// Whether a command might end the shell that has to write its exit code.
fn ends_the_shell(command: &str) -> bool {
    command
        .split(|letter: char| !letter.is_alphanumeric())
        .any(|word| matches!(word, "exit" | "exec" | "set" | "return"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::{cloud_config, tar};

    fn plan(text: &str) -> Plan {
        Plan::new(cloud_config::parse(text.as_bytes(), "m").unwrap(), false)
    }

    #[test]
    fn a_step_is_a_script_that_runs_at_most_once() {
        assert_eq!(
            plan("runcmd: ['a && b']").script(1),
            "mkdir /capwasm/steps/1.started || exit 0\n{\na && b\n} >/capwasm/steps/1.log 2>&1\necho $? >/capwasm/steps/1.exit"
        );
        assert!(plan("runcmd: ['a || exit 1']").script(1).contains("{\n(\na || exit 1\n)\n}"));
    }

    #[test]
    fn files_come_first_then_what_only_the_machine_can_do_then_the_commands() {
        let plan = plan(
            "write_files:\n- {path: /etc/a, owner: 'etcd:etcd'}\n- {path: /etc/b, append: true, content: x}\nruncmd: [one, '', two]\nbootcmd: [zero]\n",
        );
        assert_eq!(
            plan.steps,
            [
                "zero",
                "cp -a /capwasm/files/. /",
                "chown etcd:etcd /etc/a",
                "mkdir -p /etc/ && cat /capwasm/append/1 >>/etc/b",
                "one",
                "two",
                "test -f /run/cluster-api/bootstrap-success.complete"
            ]
        );
    }

    #[test]
    fn the_archive_holds_every_file_under_its_path_and_keeps_known_directory_modes() {
        let plan = plan(
            "write_files:\n- {path: /tmp/x/a, permissions: '0600', content: hi}\n- {path: /b, content: x, append: true}\n",
        );
        let entries = tar::read(&plan.archive()).unwrap();
        assert_eq!(entries["capwasm/files/tmp/x/a"].content, b"hi");
        assert_eq!(entries["capwasm/append/1"].content, b"x");
        assert!(entries.contains_key("capwasm/steps"));
        assert_eq!((directory_mode("/tmp"), directory_mode("/etc"), directory_mode("/root")), (0o1777, 0o755, 0o700));
    }
}
