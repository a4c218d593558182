//! The shell on a node in memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::net::IpAddr;

use async_trait::async_trait;

use super::*;
use crate::files::{Files, MemoryFiles};
use capwasm_sim_service::faults::NodeFault;

struct TestNode(MemoryFiles);

#[async_trait]
impl Node for TestNode {
    fn files(&self) -> &dyn Files {
        &self.0
    }
    fn hostname(&self) -> String {
        "node-1".to_owned()
    }
    fn address(&self) -> IpAddr {
        "127.0.0.1".parse().unwrap()
    }
    fn version(&self) -> Option<String> {
        Some("v1.34.0".to_owned())
    }
    fn shares_store(&self) -> bool {
        true
    }
    fn faults(&self) -> Vec<NodeFault> {
        Vec::new()
    }
    async fn join_etcd(&self, _: &[u8], _: &str, _: &str) -> Result<Vec<(String, String)>, String> {
        Ok(Vec::new())
    }
    async fn leave_etcd(&self, _: &[u8], _: &str) -> Result<(), String> {
        Ok(())
    }
    async fn wake_kubelet(&self) -> Result<(), String> {
        Ok(())
    }
}

fn node() -> TestNode {
    let node = TestNode(MemoryFiles::new(Arc::default()));
    for path in ["/tmp", "/run", "/etc"] {
        node.files().make_directories(path).unwrap();
    }
    node
}

async fn sh(node: &TestNode, script: &str) -> (i32, String, String) {
    let streams = Streams { input: Bytes::new(), out: Target::buffer(), error: Target::buffer() };
    let argv = ["/bin/sh", "-c", script].map(str::to_owned);
    let status = execute(node, &argv, BTreeMap::new(), "/", streams.clone()).await;
    let text = |target: &Target| String::from_utf8(target.collected()).unwrap();
    (status, text(&streams.out), text(&streams.error))
}

#[tokio::test]
async fn scripts_print_and_exit_as_a_posix_shell_does() {
    let rows = [
        ("echo a; echo b && echo c || echo d", 0, "a\nb\nc\n"),
        ("false || echo x; false && echo y; echo $?", 0, "x\n1\n"),
        ("! false && echo negated", 0, "negated\n"),
        ("X=1 Y='a b'; echo \"$X-$Y\" ${X}2 '$X'", 0, "1-a b 12 $X\n"),
        ("X='a  b'; echo $X \"$X\"", 0, "a b a  b\n"),
        ("echo one; exit 7; echo two", 7, "one\n"),
        ("{ echo in; false; }; echo $?", 0, "in\n1\n"),
        ("(exit 3); echo $?", 0, "3\n"),
        ("if test -d /tmp; then echo yes; else echo no; fi", 0, "yes\n"),
        ("if [ a = b ]; then echo 1; elif [ 1 -lt 2 ]; then echo 2; fi", 0, "2\n"),
        ("for i in a b; do echo $i; done", 0, "a\nb\n"),
        ("echo hello | cat", 0, "hello\n"),
        ("echo $(hostname) # comment", 0, "node-1\n"),
        ("echo a\\\nb", 0, "ab\n"),
        ("printf '%s-%s\\n' a b", 0, "a-b\n"),
        ("", 0, ""),
    ];
    for (script, status, out) in rows {
        assert_eq!(sh(&node(), script).await, (status, out.to_owned(), String::new()), "{script}");
    }
}

#[tokio::test]
async fn what_is_not_understood_fails_loudly() {
    let rows = [
        ("nonsense --flag", 127, "sh: nonsense: not found"),
        ("while true; do echo x; done", 2, "\"while\" is not supported"),
        ("sleep 5 &", 2, "background commands are not supported"),
        ("cat <<EOF\nx\nEOF", 2, "here-documents are not supported"),
        ("echo 'x", 2, "unterminated quoted string"),
        ("f() { echo; }", 2, "functions are not supported"),
        ("set -u", 2, "only -e and -x are supported"),
        ("echo $(", 2, "unterminated $("),
        ("mkdir /a/b", 1, "mkdir: cannot create directory '/a/b': No such file or directory"),
        ("cat /none", 1, "cat: /none: No such file or directory"),
        ("echo x > /none/x", 1, "can't create /none/x"),
        ("systemctl is-active --quiet docker", 3, ""),
        ("chmod u+s /tmp", 1, "invalid mode"),
    ];
    for (script, status, error) in rows {
        let (got, _, text) = sh(&node(), script).await;
        assert_eq!(got, status, "{script}: {text}");
        assert!(text.contains(error), "{script}: {text}");
    }
}

#[tokio::test]
async fn redirections_reach_files_in_order() {
    let node = node();
    let (status, out, error) = sh(
        &node,
        "{ echo out; nonsense; echo more; } >/tmp/log 2>&1\necho $? >/tmp/exit; cat /tmp/log >&2; cat < /tmp/exit",
    )
    .await;
    assert_eq!((status, out.as_str(), error.as_str()), (0, "0\n", "out\nsh: nonsense: not found\nmore\n"));
    sh(&node, "echo a > /tmp/f; echo b >> /tmp/f; nonsense 2>/dev/null; echo c >> /tmp/f").await;
    assert_eq!(node.files().read_text("/tmp/f").unwrap(), "a\nb\nc\n");
}

#[tokio::test]
async fn a_bootstrap_step_runs_once_and_leaves_its_log_and_exit_code() {
    let node = node();
    node.files().make_directories("/capwasm/steps").unwrap();
    node.files().install("/capwasm/files/etc/x/conf", "v", 0o600).unwrap();
    let step = "mkdir /capwasm/steps/0.started || exit 0\n{\ncp -a /capwasm/files/. /\n} >/capwasm/steps/0.log 2>&1\necho $? >/capwasm/steps/0.exit\n";
    assert_eq!(sh(&node, step).await.0, 0);
    assert_eq!(node.files().read_text("/capwasm/steps/0.exit").unwrap(), "0\n");
    assert_eq!(node.files().read_text("/etc/x/conf").unwrap(), "v");
    assert_eq!(node.files().stat("/etc/x/conf").unwrap().unwrap().mode, 0o600);
    node.files().remove("/etc/x/conf").unwrap();
    assert_eq!(sh(&node, step).await.0, 0);
    assert!(!node.files().exists("/etc/x/conf"), "a step that was started must not run again");
}

#[tokio::test]
async fn file_commands_do_what_they_say() {
    let node = node();
    let script = "mkdir -p /a/b && touch /a/b/c && chmod 0600 /a/b/c && chown 1:2 /a/b/c && cp -r /a /d && mv /d/b/c /d/x && rm -rf /a && \
                  ln -s /d/x /l && test -L /l && test ! -e /a && ls /d && echo t | tee /tmp/t >/dev/null && cat /tmp/t";
    assert_eq!(sh(&node, script).await, (0, "b\nx\nt\n".to_owned(), String::new()));
    assert_eq!(node.files().stat("/l").unwrap().unwrap().mode, 0o600);
}

#[tokio::test]
async fn kubeadm_without_its_file_fails_as_kubeadm_does() {
    let (status, _, error) = sh(&node(), "kubeadm init --config /run/kubeadm/kubeadm.yaml").await;
    assert_eq!(status, 1);
    assert!(error.contains("unable to read config from \"/run/kubeadm/kubeadm.yaml\""), "{error}");
}

#[tokio::test]
async fn a_failing_command_ends_a_script_that_says_so() {
    let rows = [
        ("set -e; false; echo on", 1, ""),
        ("set -e; false || echo saved; echo on", 0, "saved\non\n"),
        ("set -e; ! false; echo on", 0, "on\n"),
        ("set -e; if false; then :; fi; echo on", 0, "on\n"),
        ("set -e; true && false; echo on", 1, ""),
        ("set -e; false && true; echo on", 0, "on\n"),
        ("set -e; { false; echo in; }; echo on", 1, ""),
        ("sh -ec 'false; echo in'; echo $?", 0, "1\n"),
    ];
    for (script, status, out) in rows {
        assert_eq!(sh(&node(), script).await, (status, out.to_owned(), String::new()), "{script}");
    }
}

#[tokio::test]
async fn a_script_runs_by_its_path_when_it_may() {
    let node = node();
    node.files().install("/etc/run.sh", "#!/bin/bash\nset -e\necho ran\nfalse\necho not\n", 0o755).unwrap();
    assert_eq!(sh(&node, "/etc/run.sh; echo $?").await.1, "ran\n1\n");
    assert_eq!(sh(&node, "chmod 0644 /etc/run.sh; /etc/run.sh").await.0, 126);
    node.files().install("/etc/run.py", "#!/usr/bin/python3\n", 0o755).unwrap();
    assert_eq!(sh(&node, "/etc/run.py").await.0, 126);
    assert_eq!(sh(&node, "/etc/none.sh").await.0, 127);
}

#[tokio::test]
async fn users_and_groups_are_kept_where_the_system_keeps_them() {
    let node = node();
    let script = "groupadd -f admins && useradd -m -c 'The Admin' -s /bin/bash -G admins ada && usermod -p HASH ada && passwd -l ada && id -u ada";
    assert_eq!(sh(&node, script).await, (0, "1000\n".to_owned(), String::new()));
    let line = |path: &str| {
        let text = node.files().read_text(path).unwrap();
        text.lines().find(|line| line.contains("ada")).unwrap_or_default().to_owned()
    };
    assert_eq!(line("/etc/passwd"), "ada:x:1000:1001:The Admin:/home/ada:/bin/bash");
    assert_eq!(line("/etc/group"), "admins:x:1000:ada");
    assert_eq!(line("/etc/shadow"), "ada:!HASH:19000:0:99999:7:::");
    assert!(node.files().exists("/home/ada"));
    assert_eq!(sh(&node, "id -u nobody >/dev/null 2>&1 || echo none").await.1, "none\n");
    assert_eq!(sh(&node, "useradd ada").await.0, 9);
    for (owner, expected) in
        [("ada:admins", (1000, 1000)), ("0", (0, 1000)), ("ada:", (1000, 1001)), (":0", (1000, 0)), ("7:8", (7, 8))]
    {
        assert_eq!(sh(&node, &format!("touch /owned && chown {owner} /owned")).await.0, 0, "{owner}");
        let found = node.files().stat("/owned").unwrap().unwrap();
        assert_eq!((found.uid, found.gid), expected, "{owner}");
    }
    assert_eq!(sh(&node, "chown bob /owned").await, (1, String::new(), "chown: invalid user: 'bob'\n".to_owned()));
}

#[tokio::test]
async fn tail_prints_the_end_and_ctr_remembers_images() {
    let node = node();
    node.files().install("/tmp/f", "one\ntwo\nthree\n", 0o644).unwrap();
    for (script, out) in
        [("tail -n 2 /tmp/f", "two\nthree\n"), ("tail -c 4 /tmp/f", "ree\n"), ("echo a | tail -n1", "a\n")]
    {
        assert_eq!(sh(&node, script).await.1, out, "{script}");
    }
    let manifest = r#"[{"RepoTags":["r.example/a:1"]}]"#;
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(manifest.len() as u64);
    builder.append_data(&mut header, "manifest.json", manifest.as_bytes()).unwrap();
    node.files().install("/tmp/i.tar", builder.into_inner().unwrap(), 0o644).unwrap();
    let (status, out, error) =
        sh(&node, "ctr --namespace=k8s.io images import /tmp/i.tar >/dev/null; crictl images").await;
    assert_eq!((status, error.as_str()), (0, ""));
    assert!(out.contains("r.example/a"), "{out}");
}
