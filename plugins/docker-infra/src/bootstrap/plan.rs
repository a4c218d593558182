//! The files and steps of one machine's bootstrap.

use capwasm_api::names::fingerprint;

use std::collections::BTreeMap;

use crate::kind_node;
use crate::recipe::{Directory, File, Recipe, Step, quote};
use crate::tar::{Attributes, Writer};

/// Where progress is seen. Nothing long lies there, because it is read as a whole.
pub const STEPS: &str = "/capwasm/steps";
/// Where the output of steps goes, of whatever length.
pub const LOGS: &str = "/capwasm/log";
/// Written by kubeadm's bootstrap data when it went well.
const SUCCESS: &str = "/run/cluster-api/bootstrap-success.complete";
/// Links to directories of `/usr` in many images.
const LINKED: [&str; 4] = ["/bin", "/lib", "/lib64", "/sbin"];
/// How much of a failed step's output is put beside its exit code.
const LOG_BYTES: usize = 4_000;

/// What is to be done in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    directories: Vec<Directory>,
    files: Vec<File>,
    steps: Vec<Step>,
    waits_for_boot: bool,
    /// What has no effect here, for a person.
    pub ignored: Vec<String>,
}

impl Plan {
    /// From bootstrap data; in a privileged container adapted to real nodes. `images` is how many archives of images
    /// may lie in the container.
    pub fn new(mut recipe: Recipe, privileged: bool, images: usize) -> Plan {
        if privileged {
            kind_node::adapt(&mut recipe);
        }
        let mut steps: Vec<Step> = (0..images).map(import).collect();
        steps.extend(recipe.before);
        let lies_in = |top: &str| {
            let mut paths = recipe.directories.iter().map(|it| &it.path).chain(recipe.files.iter().map(|it| &it.path));
            paths.any(|path| path.strip_prefix(top).is_some_and(|rest| rest.starts_with('/')))
        };
        steps.extend(LINKED.into_iter().filter(|top| lies_in(top)).map(through_link));
        steps.push(Step::command("cp -a /capwasm/files/. /"));
        steps.extend(recipe.groups.iter().map(crate::recipe::Group::step));
        steps.extend(recipe.users.iter().map(crate::recipe::User::step));
        for (number, file) in recipe.files.iter().enumerate().filter(|(_, file)| file.append) {
            let path = quote(&file.path);
            let directory = quote(file.path.rsplit_once('/').map_or("/", |(directory, _)| directory));
            let Attributes { mode, uid, gid } = file.attributes;
            steps.push(Step::command(format!(
                "mkdir -p {directory}/ && cat /capwasm/append/{number} >>{path} && chmod {mode:04o} {path} && chown {uid}:{gid} {path}"
            )));
        }
        let directories = recipe.directories.iter().map(|directory| (&directory.path, &directory.named_owner));
        let files = recipe.files.iter().map(|file| (&file.path, &file.named_owner));
        steps.extend(directories.chain(files).filter_map(|(path, owner)| {
            Some(Step::command(format!("chown {} {}", quote(owner.as_ref()?), quote(path))))
        }));
        steps.extend(recipe.commands);
        steps.retain(|step| !step.script.trim().is_empty());
        steps.push(Step::command(format!("test -f {SUCCESS}")));
        Plan {
            directories: recipe.directories,
            files: recipe.files,
            steps,
            waits_for_boot: privileged,
            ignored: recipe.ignored,
        }
    }

    /// How many steps there are.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// A fingerprint of what the steps do.
    pub fn print(&self) -> String {
        let scripts: Vec<&str> = self.steps.iter().map(|step| step.script.as_str()).collect();
        fingerprint(&scripts.join("\n\0"))
    }

    /// Whether the node itself must come up first.
    pub fn waits_for_boot(&self) -> bool {
        self.waits_for_boot
    }

    /// The archive to unpack in `/`.
    pub fn archive(&self) -> Writer {
        let mut writer = Writer::default();
        let own: BTreeMap<&str, Attributes> =
            self.directories.iter().map(|directory| (directory.path.as_str(), directory.attributes)).collect();
        let mut tree: BTreeMap<&str, Attributes> = own.clone();
        let staged = self.files.iter().filter(|file| !file.append).map(|file| file.path.as_str());
        for path in staged.chain(self.directories.iter().map(|directory| directory.path.as_str())) {
            for (at, _) in path.match_indices('/').skip(1) {
                let parent = &path[..at];
                tree.entry(parent).or_insert_with(|| Attributes::root(directory_mode(parent)));
            }
        }
        writer.directory("capwasm", Attributes::root(0o700));
        writer.directory("capwasm/files", Attributes::root(0o755));
        writer.directory("capwasm/append", Attributes::root(0o755));
        writer.directory("capwasm/log", Attributes::root(0o755));
        // In order of their names, so that parents come first.
        for (path, attributes) in tree {
            writer.directory(&format!("capwasm/files{path}"), attributes);
        }
        for (number, file) in self.files.iter().enumerate() {
            if file.append {
                writer.file(&format!("capwasm/append/{number}"), Attributes::root(0o600), &file.content);
            } else {
                writer.file(&format!("capwasm/files{}", file.path), file.attributes, &file.content);
            }
        }
        // Last, so that it stands for the whole.
        writer.directory("capwasm/steps", Attributes::root(0o755));
        writer.directory(&format!("capwasm/steps/{}-{}.plan", self.steps.len(), self.print()), Attributes::root(0o755));
        writer
    }

    /// The script of a step.
    pub fn script(&self, number: usize) -> String {
        let command = self.steps.get(number).map_or("", |step| step.script.trim_end_matches('\n'));
        let command = if ends_the_shell(command) { format!("(\n{command}\n)") } else { command.to_owned() };
        format!(
            "mkdir {STEPS}/{number}.started || exit 0\n{{\n{command}\n}} >{LOGS}/{number} 2>&1\ncode=$?\n\
             test $code = 0 || tail -c {LOG_BYTES} {LOGS}/{number} >{STEPS}/{number}.log 2>/dev/null\n\
             echo $code >{STEPS}/{number}.exit"
        )
    }

    /// The script that tells when the node is up; may run any number of times.
    pub fn boot_script(&self) -> String {
        format!("{} && echo 0 >{STEPS}/boot.exit", kind_node::BOOTED)
    }

    /// A step for a person.
    pub fn describe(&self, number: usize) -> String {
        let title = self.steps.get(number).map_or("", |step| step.title.as_str());
        format!("step {} of {} ({title})", number + 1, self.steps.len())
    }
}

/// Copies what lies in a directory that is a link in many images: no directory is copied over a link.
fn through_link(top: &str) -> Step {
    let from = format!("/capwasm/files{top}");
    let script = format!("if test -L {top}; then cp -a {from}/. {top}/ && rm -rf {from}; fi");
    Step::titled(format!("copy files to {top}"), script)
}

/// Gives an image's archive to the container runtime; one that could not be had is no error.
fn import(number: usize) -> Step {
    let path = image_archive(number);
    let script = format!("test ! -f {path} || {{ ctr --namespace=k8s.io images import {path} && rm -f {path}; }}");
    Step::titled(format!("import image {number}"), script)
}

/// Where the archive of an image lies.
pub fn image_archive(number: usize) -> String {
    format!("/capwasm/images/{number}.tar")
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
        Plan::new(cloud_config::parse(text.as_bytes(), "m").unwrap(), false, 0)
    }

    #[test]
    fn a_step_is_a_script_that_runs_at_most_once_and_keeps_its_output_apart() {
        assert_eq!(
            plan("runcmd: ['a && b']").script(1),
            "mkdir /capwasm/steps/1.started || exit 0\n{\na && b\n} >/capwasm/log/1 2>&1\ncode=$?\n\
             test $code = 0 || tail -c 4000 /capwasm/log/1 >/capwasm/steps/1.log 2>/dev/null\necho $code >/capwasm/steps/1.exit"
        );
        assert!(plan("runcmd: ['a || exit 1']").script(1).contains("{\n(\na || exit 1\n)\n}"));
    }

    #[test]
    fn files_come_first_then_what_only_the_machine_can_do_then_the_commands() {
        let text = "write_files:\n- {path: /etc/a, owner: 'etcd:etcd'}\n- {path: /etc/b, append: true, content: x, permissions: '0640'}\nruncmd: [one, '', two]\nbootcmd: [zero]\nusers: [{name: ann}]\n";
        let recipe = cloud_config::parse(text.as_bytes(), "m").unwrap();
        let plan = Plan::new(recipe, false, 1);
        let titles: Vec<&str> = plan.steps.iter().map(|step| step.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "import image 0",
                "zero",
                "cp -a /capwasm/files/. /",
                "make user ann",
                "mkdir -p /etc/ && cat /capwasm/append/1 >>/etc/b && chmod 0640 /etc/b && chown 0:0 /etc/b",
                "chown etcd:etcd /etc/a",
                "one",
                "two",
                "test -f /run/cluster-api/bootstrap-success.complete"
            ]
        );
    }

    #[test]
    fn files_reach_directories_that_are_links_in_the_image() {
        let plan = plan("write_files:\n- {path: /lib/systemd/a, content: x}\n- {path: /library/b, content: x}\n");
        let scripts: Vec<&str> = plan.steps.iter().map(|step| step.script.as_str()).take(2).collect();
        let linked = "if test -L /lib; then cp -a /capwasm/files/lib/. /lib/ && rm -rf /capwasm/files/lib; fi";
        assert_eq!(scripts, [linked, "cp -a /capwasm/files/. /"]);
    }

    #[test]
    fn the_archive_holds_every_file_under_its_path_and_keeps_known_directory_modes() {
        let plan = plan(
            "write_files:\n- {path: /tmp/x/a, permissions: '0600', content: hi}\n- {path: /b, content: x, append: true}\n",
        );
        let entries = tar::read(&plan.archive().finish().unwrap()).unwrap();
        assert_eq!(entries["capwasm/files/tmp/x/a"].content, b"hi");
        assert_eq!(entries["capwasm/append/1"].content, b"x");
        assert!(entries.contains_key("capwasm/steps") && entries.contains_key("capwasm/log"));
        assert_eq!((directory_mode("/tmp"), directory_mode("/etc"), directory_mode("/root")), (0o1777, 0o755, 0o700));
    }
}
