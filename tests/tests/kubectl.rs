//! A user with kubectl, who knows nothing of capwasm.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use capwasm_tests::guests::fixture_file;
use capwasm_tests::management::Management;
use capwasm_tests::objects::text;
use capwasm_tests::{skip, wait};

/// kubectl as the admin of a management cluster, in one namespace.
struct Kubectl<'a> {
    management: &'a Management,
    namespace: &'a str,
}

impl Kubectl<'_> {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command.arg("--kubeconfig").arg(self.management.kubeconfig());
        command.arg("--cache-dir").arg(self.management.data_dir().join("kubectl-cache"));
        command.args(["--namespace", self.namespace]).args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("kubectl starts")
    }

    /// What it prints; it has to succeed.
    fn says(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "kubectl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What it complains about; it has to fail.
    fn refuses(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(!output.status.success(), "kubectl {arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

/// A table's rows without its header, each split into cells.
fn rows(table: &str) -> Vec<Vec<&str>> {
    table.lines().skip(1).map(|line| line.split_whitespace().collect()).collect()
}

#[tokio::test]
async fn a_manifest_is_applied_waited_for_shown_scaled_and_deleted() {
    if !skip::kubectl("a_manifest_is_applied_waited_for_shown_scaled_and_deleted") {
        return;
    }
    let management = Management::shared();
    let kubectl = Kubectl { management, namespace: "basic" };
    kubectl.says(&["create", "namespace", "basic"]);
    let objects = management.objects("basic").await;
    let manifest = fixture_file("docker-basic.yaml");
    let manifest = manifest.to_str().unwrap();
    assert_eq!(kubectl.says(&["apply", "-f", manifest]).lines().filter(|line| line.ends_with(" created")).count(), 7);
    let watched =
        kubectl.command(&["get", "cluster", "quick", "--watch", "--output=jsonpath={.status.phase}{\"\\n\"}"]);
    let mut watching = spawn(watched);

    let waited = kubectl.says(&["wait", "--for=condition=Available", "cluster/quick", "--timeout=120s"]);
    assert!(waited.contains("condition met"), "{waited}");
    kubectl.says(&["wait", "--for=jsonpath={.status.phase}=Running", "machines", "--all", "--timeout=120s"]);
    watching.kill().expect("kubectl runs until it is ended");
    let phases = String::from_utf8(watching.wait_with_output().unwrap().stdout).unwrap();
    assert!(phases.lines().any(|phase| phase == "Provisioned"), "get -w follows the phases: {phases}");

    let applied_again = kubectl.says(&["apply", "-f", manifest]);
    assert_eq!(applied_again.lines().filter(|line| line.ends_with(" unchanged")).count(), 7, "{applied_again}");

    let machines = kubectl.says(&["get", "machines", "--output=wide"]);
    let header: Vec<&str> = machines
        .lines()
        .next()
        .unwrap_or_default()
        .split("  ")
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .collect();
    for column in ["NAME", "CLUSTER", "NODE NAME", "READY", "AVAILABLE", "PHASE", "AGE", "VERSION"] {
        assert!(header.contains(&column), "{column} is not in {header:?}");
    }
    assert_eq!(rows(&machines).len(), 3);
    for row in rows(&machines) {
        assert!(row.contains(&"quick") && row.contains(&"Running") && row.contains(&"v1.36.0"), "{row:?}");
        assert!(row.iter().any(|cell| cell.starts_with("docker:////")), "{row:?}");
    }

    let described = kubectl.says(&["describe", "cluster", "quick"]);
    for part in
        ["Kind:         Cluster", "Service Domain:  cluster.local", "Control Plane Initialized:", "InfrastructureReady"]
    {
        assert!(described.contains(part), "{part:?} is not in {described}");
    }
    let explained = kubectl.says(&["explain", "cluster.spec.controlPlaneEndpoint"]);
    assert!(explained.contains("host") && explained.contains("port"), "{explained}");

    kubectl.says(&["scale", "machinedeployment", "quick-md-0", "--replicas=3"]);
    kubectl.says(&[
        "wait",
        "--for=jsonpath={.status.readyReplicas}=3",
        "machinedeployment/quick-md-0",
        "--timeout=120s",
    ]);
    assert_eq!(rows(&kubectl.says(&["get", "machines"])).len(), 4);
    kubectl.says(&["scale", "machinedeployment", "quick-md-0", "--replicas=1"]);
    wait::until("two Machines are gone", async || match objects.names("Machine").await {
        machines if machines.len() == 2 => Ok(()),
        machines => Err(format!("{machines:?}")),
    })
    .await;

    let deleted = kubectl.says(&["delete", "cluster", "quick", "--timeout=120s"]);
    assert!(deleted.contains("deleted"), "{deleted}");
    let left = wait::until("what the manifest made is gone", async || {
        let left = everything(&kubectl);
        if left.len() <= 2 { Ok(left) } else { Err(format!("{left:?}")) }
    })
    .await;
    assert_eq!(left, ["configmap/kube-root-ca.crt", "serviceaccount/default"], "only what each namespace has");
    assert_eq!(management.engine().containers("quick").await, Vec::<String>::new());
}

/// Every object of the namespace but Events, of whatever kind the server has.
fn everything(kubectl: &Kubectl<'_>) -> Vec<String> {
    let kinds = kubectl.says(&["api-resources", "--namespaced", "--verbs=list", "--output=name"]);
    let kinds: Vec<&str> = kinds.lines().filter(|kind| !kind.starts_with("events")).collect();
    assert!(
        kinds.contains(&"secrets") && kinds.iter().any(|kind| kind.starts_with("dockermachinetemplates.")),
        "{kinds:?}"
    );
    let found = kubectl.says(&["get", &kinds.join(","), "--output=name", "--ignore-not-found"]);
    found.lines().map(str::to_owned).collect()
}

fn spawn(mut command: Command) -> std::process::Child {
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("kubectl starts")
}

#[tokio::test]
async fn manifests_with_mistakes_are_refused_with_the_field_that_is_wrong() {
    if !skip::kubectl("manifests_with_mistakes_are_refused_with_the_field_that_is_wrong") {
        return;
    }
    let management = Management::shared();
    let kubectl = Kubectl { management, namespace: "mistakes" };
    let objects = management.objects("mistakes").await;
    let good = std::fs::read_to_string(fixture_file("docker-basic.yaml")).unwrap();
    let cases = [
        (
            "an unknown field",
            "  clusterNetwork:",
            "  clusterNetwrok: {}\n  clusterNetwork:",
            "unknown field \"spec.clusterNetwrok\"",
        ),
        ("a wrong type", "  replicas: 2", "  replicas: \"two\"", "spec.replicas"),
        ("a missing name of the cluster", "  clusterName: quick\n  replicas", "  replicas", "spec.clusterName"),
        (
            "a kind that is not served",
            "kind: KubeadmControlPlane\nmetadata",
            "kind: KubeadmControlPlan\nmetadata",
            "no matches for kind \"KubeadmControlPlan\"",
        ),
        (
            "a version that is not served",
            "cluster.x-k8s.io/v1beta2\nkind: MachineDeployment",
            "cluster.x-k8s.io/v9\nkind: MachineDeployment",
            "no matches for kind \"MachineDeployment\" in version \"cluster.x-k8s.io/v9\"",
        ),
        ("a name that is none", "  name: quick\n  labels", "  name: Quick_\n  labels", "metadata.name"),
        ("a network that is none", "10.96.0.0/12", "10.96.0.0/99", "10.96.0.0/99"),
    ];
    for (name, right, wrong, complaint) in cases {
        assert!(good.contains(right), "{name}: the manifest has changed");
        let file = management.data_dir().join("mistake.yaml");
        std::fs::write(&file, good.replacen(right, wrong, 1)).unwrap();
        // For kinds that are not served kubectl asks for OpenAPI v2 first, unless it is told not to.
        let validate = if complaint.starts_with("no matches") { "--validate=false" } else { "--validate=strict" };
        let output = kubectl.run(&["apply", "--dry-run=server", validate, "-f", path(&file)]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{name} is accepted: {}", String::from_utf8_lossy(&output.stdout));
        assert!(said.contains(complaint), "{name}: {complaint:?} is not in {said:?}");
    }
    assert_eq!(objects.versions().await, [], "a dry run stores nothing");
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path of text")
}

#[tokio::test]
async fn patches_and_server_side_apply_work_on_provider_kinds() {
    if !skip::kubectl("patches_and_server_side_apply_work_on_provider_kinds") {
        return;
    }
    let management = Management::shared();
    let kubectl = Kubectl { management, namespace: "patches" };
    let objects = management.objects("patches").await;
    let manifest = fixture_file("docker-basic.yaml");
    kubectl.says(&["apply", "--server-side", "--filename", path(&manifest), "--dry-run=server"]);
    assert_eq!(objects.versions().await, [], "a dry run stores nothing");
    let template = management.data_dir().join("template.yaml");
    let text_of = "apiVersion: bootstrap.cluster.x-k8s.io/v1beta2\nkind: KubeadmConfigTemplate\nmetadata: {name: t}\nspec: {template: {spec: {files: [{path: /a, content: b}]}}}\n";
    std::fs::write(&template, text_of).unwrap();
    kubectl.says(&["apply", "--server-side", "--filename", path(&template)]);
    kubectl.says(&[
        "patch",
        "kubeadmconfigtemplate",
        "t",
        "--type=json",
        "--patch=[{\"op\": \"add\", \"path\": \"/metadata/labels\", \"value\": {\"a\": \"b\"}}]",
    ]);
    kubectl.says(&["annotate", "kubeadmconfigtemplate", "t", "c=d"]);
    let found = objects.get("KubeadmConfigTemplate", "t").await;
    assert_eq!((text(&found, "/metadata/labels/a"), text(&found, "/metadata/annotations/c")), ("b", "d"));
    assert_eq!(text(&found, "/spec/template/spec/files/0/path"), "/a");
    let other = kubectl.refuses(&["apply", "--server-side", "--field-manager=other", "--filename", {
        std::fs::write(&template, text_of.replace("content: b", "content: c")).unwrap();
        path(&template)
    }]);
    assert!(other.contains("conflict"), "{other}");
}
