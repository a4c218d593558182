//! `capwasm run` on a real kube-apiserver, as a user who has the roles of `deploy/rbac.yaml` and no other: every provider makes
//! a whole cluster and takes it away, and no request is refused.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::fs;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::process::{Command, Stdio};

use capwasm_sim_openstack::{Nodes, OpenStack, Options};
use capwasm_tests::api_server::{ADMIN, ApiServer, HOST};
use capwasm_tests::folder::Folder;
use capwasm_tests::management::{Process, free_address, give_compiled, keep_compiled};
use capwasm_tests::objects::{Objects, is, text};
use capwasm_tests::openstack::{Access, Project, Proxy, manifests};
use capwasm_tests::real::{self, NEWER};
use capwasm_tests::sample::{Sample, VERSION};
use capwasm_tests::{binary, guests, wait};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

/// A host that may do what its roles say, on an API server with a garbage collector.
struct Guarded {
    host: Option<Process>,
    server: ApiServer,
    folder: Folder,
}

impl Guarded {
    /// None where there is no program; `test` is told to be skipped then.
    async fn start(test: &str) -> Option<Guarded> {
        let server = ApiServer::start(test).await?;
        let folder = Folder::new();
        grant(&server).await;
        collect_garbage(test, &server, &folder);
        let mut command = Command::new(binary::capwasm());
        command.arg("run").arg("--kubeconfig").arg(server.kubeconfig(HOST)).args(["--engine", "sim"]);
        command.arg("--data-dir").arg(folder.join("host")).arg("--provider-dir").arg(binary::provider_dir());
        command.args(["--diagnostics", &free_address()]);
        let compiled = folder.join("host/aot");
        fs::DirBuilder::new().mode(0o700).create(folder.join("host")).unwrap();
        give_compiled(&compiled);
        let host = Process::spawn(command, &folder.join("run.log"), "capwasm runs");
        keep_compiled(&compiled);
        Some(Guarded { host: Some(host), server, folder })
    }

    async fn objects(&self, namespace: &str) -> Objects {
        Objects::in_new(self.server.client(ADMIN).await, namespace).await
    }

    /// Nobody makes an administrator of itself; such a request is none of the host's own.
    async fn cannot_grant_itself_more(&self) {
        let api: Api<ClusterRoleBinding> = Api::all(self.server.client(HOST).await);
        let binding = json!({
            "metadata": {"name": "more"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": HOST}],
        });
        let refused = api.create(&PostParams::default(), &serde_json::from_value(binding).unwrap()).await.unwrap_err();
        assert!(refused.to_string().contains("forbidden"), "{refused}");
    }

    /// Ends the host; it was refused nothing.
    async fn end(mut self) {
        assert!(self.host.take().expect("it runs").stop());
        let metrics = http::Request::get("/metrics").body(Vec::new()).unwrap();
        let metrics = self.server.client(ADMIN).await.request_text(metrics).await.unwrap();
        let counted = |line: &&str| line.starts_with("apiserver_request_total{");
        let requests: Vec<&str> = metrics.lines().filter(counted).collect();
        assert!(requests.len() > 50, "{requests:#?}");
        let own = r#"resource="clusterrolebindings""#;
        let is_refused = |line: &&&str| line.contains(r#"code="403""#) && !line.contains(own);
        let refused: Vec<&&str> = requests.iter().filter(is_refused).collect();
        let log = fs::read_to_string(self.folder.join("run.log")).unwrap();
        let told: Vec<&str> = log.lines().filter(|line| line.to_lowercase().contains("forbidden")).collect();
        assert!(refused.is_empty() && told.is_empty(), "{refused:#?}\n{told:#?}");
    }
}

/// Gives the host's user the roles of the manifest.
async fn grant(server: &ApiServer) {
    let manifest = fs::read_to_string(guests::root().join("deploy/rbac.yaml")).unwrap();
    let roles: Vec<Value> = serde_saphyr::from_multiple(&manifest).unwrap();
    let system = Objects::in_new(server.client(ADMIN).await, "kube-system").await;
    for role in &roles {
        let kind = text(role, "/kind");
        let binding = json!({
            "apiVersion": role["apiVersion"], "kind": format!("{kind}Binding"), "metadata": {"name": "capwasm"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "capwasm"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": HOST}],
        });
        system.create(role).await;
        system.create(&binding).await;
    }
    assert_eq!(roles.len(), 2);
}

/// Runs the garbage collector, which no API server has by itself.
fn collect_garbage(test: &str, server: &ApiServer, folder: &Folder) {
    let program = real::kubeadm(NEWER.folder, test).expect("the API server runs from it");
    let path = folder.join("kube-controller-manager");
    symlink(program, &path).unwrap();
    let mut command = Command::new(path);
    command.arg("--kubeconfig").arg(server.kubeconfig(ADMIN)).args([
        "--controllers=garbage-collector-controller",
        "--leader-elect=false",
        "--secure-port=0",
    ]);
    // The folder ends it.
    drop(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
}

#[tokio::test]
async fn clusters_of_every_provider_need_no_more_than_the_roles_allow() {
    let test = "rbac::clusters_of_every_provider_need_no_more_than_the_roles_allow";
    let Some(host) = Guarded::start(test).await else { return };
    host.cannot_grant_itself_more().await;
    tokio::join!(openstack(&host), containers(&host));
    host.end().await;
}

async fn openstack(host: &Guarded) {
    let nodes = Nodes { engine: host.folder.join("host/sim.sock"), version: VERSION.to_owned() };
    let fake = OpenStack::start(Options { nodes: Some(nodes), ..Options::default() }).await.unwrap();
    let project = Project::new(&Access::of(&fake.clouds_yaml(), "ost-admin"), "rbac").await;
    let proxy = Proxy::start(&project.access.auth_url);
    let objects = host.objects("openstack").await;
    let grants = json!({"spec": {"grants": {"origins": [proxy.origin()]}}});
    let granted = objects.merge("WasmProvider", "openstack-infra", grants).await["metadata"]["generation"].clone();
    let serves = |provider: &Value| is(provider, "Ready") && provider["status"]["observedGeneration"] == granted;
    objects.until("WasmProvider", "openstack-infra", "it serves with its grants", serves).await;
    let clouds = project.access.at(proxy.auth_url()).clouds_yaml();
    objects.create(&manifests::identity("openstack", &clouds, None)).await;
    for object in manifests::kubeadm("openstack", "rbac", VERSION, 1, 1, manifests::cluster_spec()) {
        objects.create(&object).await;
    }
    objects.until("Cluster", "rbac", "it is available", |cluster| is(cluster, "Available")).await;
    objects.delete("Cluster", "rbac").await;
    nothing_is_left(&objects, &["Secret/cloud-config"]).await;
    project.empty().await;
    fake.stop().await;
}

async fn containers(host: &Guarded) {
    let objects = host.objects("containers").await;
    let sample = Sample::new("containers", 1, 1);
    sample.create(&objects).await;
    sample.provisioned(&objects).await;
    sample.delete(&objects).await;
    nothing_is_left(&objects, &[]).await;
}

/// Waits until nothing is left but those Secrets that the test gave.
async fn nothing_is_left(objects: &Objects, given: &[&str]) {
    wait::until("no object is left", async || {
        let mut left: Vec<String> = objects.versions().await.into_iter().map(|(name, _)| name).collect();
        left.retain(|name| !given.contains(&name.as_str()));
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
}
