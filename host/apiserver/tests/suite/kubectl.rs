//! The real kubectl against the server, where there is one.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use capwasm_test_support::skip;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::fixture::{Way, fixture, thing_crd};

struct Kubectl {
    program: PathBuf,
    home: PathBuf,
}

impl Kubectl {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env_clear()
            .env("HOME", &self.home)
            .env("KUBECONFIG", self.home.join("kubeconfig"))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .kill_on_drop(true);
        command
    }

    async fn output(&self, arguments: &[&str]) -> Output {
        let run = self.command(arguments).stdin(Stdio::null()).output();
        tokio::time::timeout(Duration::from_secs(60), run)
            .await
            .unwrap_or_else(|_| panic!("kubectl {arguments:?} hung"))
            .unwrap()
    }

    /// Standard output; panics when the command fails.
    async fn run(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments).await;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "kubectl {arguments:?}: {out}{err}");
        out.into_owned()
    }

    /// Standard error; panics when the command succeeds.
    async fn fail(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments).await;
        assert!(!output.status.success(), "kubectl {arguments:?} succeeded");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.home.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join("kubectl")).find(|candidate| candidate.is_file())
}

fn kubectl(home: &Path, kubeconfig: &str) -> Option<Kubectl> {
    if !skip::kubectl("the API server's tests with the real kubectl") {
        return None;
    }
    let program = find()?;
    std::fs::write(home.join("kubeconfig"), kubeconfig).unwrap();
    Some(Kubectl { program, home: home.to_owned() })
}

const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n  namespace: work\ndata:\n  k: one\n";
const THING: &str = "apiVersion: example.org/v1\nkind: Thing\nmetadata:\n  name: t\n  namespace: work\nspec:\n  size: 3\n  replicas: 1\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_manages_built_in_objects() {
    let f = fixture(Way::Tls).await;
    let tls = f.tls.as_ref().unwrap();
    let Some(kubectl) = kubectl(tls.dir.path(), &tls.kubeconfig) else { return };
    assert!(kubectl.run(&["version"]).await.contains("Server Version: v1.34.0"));
    assert!(kubectl.run(&["auth", "whoami"]).await.contains("capwasm-admin"));
    assert!(kubectl.run(&["auth", "can-i", "create", "pods"]).await.contains("yes"));
    kubectl.run(&["create", "namespace", "work"]).await;
    kubectl.run(&["-n", "work", "create", "configmap", "made", "--from-literal=a=b"]).await;
    kubectl.run(&["-n", "work", "create", "secret", "generic", "s", "--from-literal=p=secret"]).await;
    assert_eq!(kubectl.run(&["-n", "work", "get", "secret", "s", "-o", "jsonpath={.data.p}"]).await, "c2VjcmV0");
    let file = kubectl.file("config.yaml", CONFIG);
    assert!(kubectl.run(&["apply", "-f", &file]).await.contains("configmap/c created"));
    assert!(kubectl.run(&["apply", "-f", &file]).await.contains("configmap/c unchanged"));
    let file = kubectl.file("config.yaml", &CONFIG.replace("one", "two"));
    assert!(kubectl.run(&["apply", "-f", &file]).await.contains("configmap/c configured"));
    assert_eq!(kubectl.run(&["-n", "work", "get", "cm", "c", "-o", "jsonpath={.data.k}"]).await, "two");
    let typo = kubectl.file("typo.yaml", &CONFIG.replace("\ndata:", "\ndta:"));
    let refused = kubectl.fail(&["apply", "-f", &typo]).await;
    assert!(refused.contains("unknown field \"dta\""), "{refused}");
    kubectl.run(&["-n", "work", "label", "cm", "c", "colour=red"]).await;
    kubectl.run(&["-n", "work", "annotate", "cm", "c", "note=x"]).await;
    kubectl.run(&["-n", "work", "patch", "cm", "c", "-p", "{\"data\":{\"k\":\"three\"}}"]).await;
    let table = kubectl.run(&["-n", "work", "get", "cm", "-l", "colour=red", "--show-labels"]).await;
    assert!(table.starts_with("NAME") && table.contains("colour=red"), "{table}");
    assert!(kubectl.run(&["-n", "work", "describe", "cm", "c"]).await.contains("three"));
    assert!(kubectl.run(&["get", "all", "-A"]).await.is_empty());
    assert!(kubectl.run(&["api-resources"]).await.contains("configmaps"));
    assert!(kubectl.run(&["api-versions"]).await.contains("apps/v1"));
    assert!(kubectl.run(&["explain", "configmap.data"]).await.contains("map[string]string"));
    kubectl.run(&["-n", "work", "delete", "cm", "c"]).await;
    kubectl.run(&["delete", "namespace", "work", "--timeout=30s"]).await;
    assert!(kubectl.fail(&["get", "namespace", "work"]).await.contains("NotFound"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_manages_custom_resources() {
    let f = fixture(Way::Tls).await;
    let tls = f.tls.as_ref().unwrap();
    let Some(kubectl) = kubectl(tls.dir.path(), &tls.kubeconfig) else { return };
    let crd = kubectl.file("crd.json", &thing_crd().to_string());
    kubectl.run(&["apply", "--server-side", "-f", &crd]).await;
    kubectl.run(&["wait", "--for=condition=Established", "crd/things.example.org", "--timeout=20s"]).await;
    kubectl.run(&["create", "namespace", "work"]).await;
    let file = kubectl.file("thing.yaml", THING);
    assert!(kubectl.run(&["apply", "-f", &file]).await.contains("thing.example.org/t created"));
    assert!(kubectl.run(&["apply", "-f", &file]).await.contains("unchanged"));
    assert!(
        kubectl.run(&["apply", "--server-side", "--force-conflicts", "-f", &file]).await.contains("serverside-applied")
    );
    let table = kubectl.run(&["-n", "work", "get", "th"]).await;
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((&rows[0], &rows[1][..2]), (&vec!["NAME", "SIZE", "AGE"], &["t", "3"][..]), "{table}");
    kubectl.run(&["-n", "work", "scale", "thing/t", "--replicas=4"]).await;
    assert_eq!(kubectl.run(&["-n", "work", "get", "thing", "t", "-o", "jsonpath={.spec.replicas}"]).await, "4");
    let typo = kubectl.file("typo.yaml", &THING.replace("size:", "sise:"));
    assert!(kubectl.fail(&["apply", "-f", &typo]).await.contains("unknown field \"spec.sise\""));
    let wrong = kubectl.file("wrong.yaml", &THING.replace("size: 3", "size: 30"));
    assert!(kubectl.fail(&["apply", "-f", &wrong]).await.contains("spec.size: Invalid value: 30"));
    let explained = kubectl.run(&["explain", "thing.spec.ports"]).await;
    assert!(explained.contains("port\t<integer>"), "{explained}");
    assert!(kubectl.run(&["-n", "work", "describe", "thing", "t"]).await.contains("Size:"));
    kubectl.run(&["-n", "work", "wait", "--for=jsonpath={.spec.size}=3", "thing/t", "--timeout=20s"]).await;
    let shown: Value = serde_json::from_str(
        &kubectl.run(&["-n", "work", "get", "things.v1beta1.example.org", "t", "-o", "json"]).await,
    )
    .unwrap();
    assert_eq!(shown["apiVersion"], "example.org/v1beta1");
    kubectl.run(&["-n", "work", "delete", "thing", "t", "--timeout=20s"]).await;
    kubectl.run(&["delete", "crd", "things.example.org", "--timeout=20s"]).await;
    let unknown = kubectl.fail(&["get", "things"]).await;
    // kubectl may still know the kind from its discovery cache.
    assert!(
        unknown.contains("doesn't have a resource type") || unknown.contains("could not find the requested resource"),
        "{unknown}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_watches() {
    let f = fixture(Way::Tls).await;
    let tls = f.tls.as_ref().unwrap();
    let Some(kubectl) = kubectl(tls.dir.path(), &tls.kubeconfig) else { return };
    kubectl.run(&["create", "configmap", "first"]).await;
    let mut watch = kubectl
        .command(&["get", "cm", "-w", "--no-headers"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = async || {
        tokio::time::timeout(Duration::from_secs(30), lines.next_line())
            .await
            .expect("kubectl watch is silent")
            .unwrap()
            .unwrap()
    };
    assert!(next().await.starts_with("first "));
    kubectl.run(&["create", "configmap", "second", "--from-literal=a=b"]).await;
    let line = next().await;
    assert_eq!(line.split_whitespace().take(2).collect::<Vec<_>>(), ["second", "1"]);
    watch.kill().await.unwrap();
}
