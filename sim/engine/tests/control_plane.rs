//! Control planes of several nodes: what kubeadm leaves in them, what they report, and what happens when parts of them are
//! gone. All through the Docker API and the workload cluster's own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::time::Duration;

use capwasm_sim_engine::SimOptions;
use capwasm_sim_engine::testing::*;
use capwasm_sim_node::testing::*;
use http::Method;
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/kube-system/pods";
const COMPONENTS: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];

async fn object(client: &kube::Client, path: &str) -> Value {
    get(client, path).await.unwrap_or_else(|error| panic!("{path}: {error}"))
}

async fn pod_ready(client: &kube::Client, name: &str) -> String {
    get(client, &format!("{PODS}/{name}")).await.map(|pod| condition(&pod, "Ready")).unwrap_or_default()
}

async fn patch(client: &kube::Client, path: &str, change: Value) {
    let request = http::Request::patch(path).header("content-type", "application/merge-patch+json");
    let _: Value = client.request(request.body(change.to_string().into_bytes()).unwrap()).await.unwrap();
}

async fn delete(client: &kube::Client, path: &str) {
    let _: Value = client.request(http::Request::delete(path).body(Vec::new()).unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_control_plane_has_the_pods_addons_and_rules_that_kubeadm_leaves() {
    let directory = tempfile::tempdir().unwrap();
    let sim = Sim::prepared(directory.path()).await;
    let docker = &sim.docker;
    let (certificates, endpoint) = new_cluster(docker).await;
    let admin = certificates.admin(&endpoint);

    let list = object(&admin, &format!("{PODS}?labelSelector=tier%3Dcontrol-plane")).await;
    let pods = list["items"].as_array().unwrap();
    let names: Vec<&str> = pods.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, COMPONENTS.map(|component| format!("{component}-c-cp-1")));
    let own = address(docker, "c-cp-1").await;
    for (pod, component) in pods.iter().zip(COMPONENTS) {
        assert_eq!(
            (condition(pod, "Ready").as_str(), &pod["status"]["phase"]),
            ("True", &json!("Running")),
            "{component}"
        );
        assert_eq!(pod["metadata"]["labels"]["component"], component);
        assert_eq!(pod["spec"]["nodeName"], "c-cp-1");
        assert_eq!(pod["status"]["podIP"], own.as_str());
        let tag = if component == "etcd" { "3.6.4-0" } else { VERSION };
        assert_eq!(pod["spec"]["containers"][0]["image"], format!("registry.k8s.io/{component}:{tag}"));
    }

    let system = "/api/v1/namespaces/kube-system";
    let apps = "/apis/apps/v1/namespaces/kube-system";
    let image = |object: &Value| object["spec"]["template"]["spec"]["containers"][0]["image"].clone();
    assert_eq!(
        image(&object(&admin, &format!("{apps}/daemonsets/kube-proxy")).await),
        format!("registry.k8s.io/kube-proxy:{VERSION}")
    );
    assert_eq!(
        image(&object(&admin, &format!("{apps}/deployments/coredns")).await),
        "registry.k8s.io/coredns/coredns:v1.12.1"
    );
    assert!(
        object(&admin, &format!("{system}/configmaps/coredns")).await["data"]["Corefile"]
            .as_str()
            .unwrap()
            .contains("cluster.local")
    );
    assert!(object(&admin, &format!("{system}/configmaps/kube-proxy")).await["data"]["config.conf"].is_string());
    assert_eq!(object(&admin, &format!("{system}/services/kube-dns")).await["spec"]["clusterIP"], "10.128.0.10");
    let kubelet = object(&admin, &format!("{system}/configmaps/kubelet-config")).await;
    assert!(kubelet["data"]["kubelet"].as_str().unwrap().contains("10.128.0.10"));
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    for path in [
        "/clusterrolebindings/kubeadm:get-nodes",
        "/clusterrolebindings/kubeadm:node-proxier",
        "/clusterrolebindings/kubeadm:cluster-admins",
        "/namespaces/kube-system/roles/kubeadm:kubelet-config",
        "/namespaces/kube-system/rolebindings/kubeadm:nodes-kubeadm-config",
        "/namespaces/kube-system/roles/kube-proxy",
    ] {
        object(&admin, &format!("{rbac}{path}")).await;
    }
    let node = object(&admin, "/api/v1/nodes/c-cp-1").await;
    assert_eq!(node["spec"]["taints"][0]["key"], "node-role.kubernetes.io/control-plane");
    assert!(
        node["metadata"]["annotations"]["kubeadm.alpha.kubernetes.io/cri-socket"]
            .as_str()
            .unwrap()
            .contains("containerd")
    );

    // A manifest that goes takes its pod along, one that comes brings it.
    let manifest = "/etc/kubernetes/manifests/kube-scheduler.yaml";
    sh(docker, "c-cp-1", &format!("mv {manifest} /tmp/")).await;
    let scheduler = || pod_ready(&admin, "kube-scheduler-c-cp-1");
    until("the scheduler's pod goes", scheduler, |ready| ready.is_empty()).await;
    sh(docker, "c-cp-1", &format!("mv /tmp/kube-scheduler.yaml {manifest}")).await;
    until("the scheduler's pod is back", scheduler, |ready| ready == "True").await;
    sim.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_of_etcd_the_api_refuses_and_with_it_everything_is_back() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = SimOptions::new(directory.path().join("docker.sock"), directory.path().join("data"));
    options.node_grace = Duration::from_millis(500);
    let sim = Sim::run(options).await;
    let docker = &sim.docker;
    prepare(docker).await;
    let (certificates, endpoint) = new_cluster(docker).await;
    add_control_planes(docker, &["c-cp-2", "c-cp-3"], &endpoint, &certificates).await;
    let admin = certificates.admin(&endpoint);
    let ready = |name: &'static str| {
        let admin = admin.clone();
        move || {
            let admin = admin.clone();
            async move { get(&admin, &format!("/api/v1/nodes/{name}")).await.map(|node| condition(&node, "Ready")) }
        }
    };

    // One of three: the API goes on, and its controllers see that the node is silent.
    call(docker, Method::POST, "/containers/c-cp-2/kill?signal=KILL", Value::Null).await;
    let _ = until("the killed node is unknown", ready("c-cp-2"), |ready| {
        ready.as_ref().is_ok_and(|ready| ready == "Unknown")
    })
    .await;
    // Its conditions are written before its taints.
    let is_tainted = |node: &Value| {
        let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
        taints.any(|t| t["key"] == "node.kubernetes.io/unreachable" && t["effect"] == "NoExecute")
    };
    until("it is tainted", || object(&admin, "/api/v1/nodes/c-cp-2"), is_tainted).await;
    until("its pods are not ready", || pod_ready(&admin, "etcd-c-cp-2"), |ready| ready == "False").await;

    // Two of three: nothing is answered, and watches end.
    use futures::TryStreamExt;
    let request = http::Request::get("/api/v1/nodes?watch=1").body(Vec::new()).unwrap();
    let watch = admin.request_events::<kube::api::DynamicObject>(request).await.unwrap();
    call(docker, Method::POST, "/containers/c-cp-3/kill?signal=KILL", Value::Null).await;
    let refusal = until("the API refuses", || get(&admin, "/api/v1/nodes"), Result::is_err).await.unwrap_err();
    assert!(matches!(&refusal, kube::Error::Api(status) if status.code == 500), "{refusal}");
    let ended = tokio::time::timeout(Duration::from_secs(20), watch.try_for_each(|_| async { Ok(()) })).await;
    assert!(ended.is_ok(), "a watch goes on without etcd");

    // One comes back.
    call(docker, Method::POST, "/containers/c-cp-3/start", Value::Null).await;
    let _ = until("the API is back", || get(&admin, "/api/v1/nodes"), Result::is_ok).await;
    let _ = until("the node is back", ready("c-cp-3"), |ready| ready.as_ref().is_ok_and(|ready| ready == "True")).await;
    until("its pods are back", || pod_ready(&admin, "kube-apiserver-c-cp-3"), |ready| ready == "True").await;
    sim.stop().await;
}

#[tokio::test]
async fn a_newer_control_plane_node_makes_the_cluster_newer_and_a_skew_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let sim = Sim::prepared(directory.path()).await;
    let docker = &sim.docker;
    let (certificates, endpoint) = new_cluster(docker).await;
    let admin = certificates.admin(&endpoint);

    node(docker, "c-w-36", "v1.36.0").await;
    let (code, output) = join_worker(docker, "c-w-36", &endpoint, &certificates).await;
    assert_eq!(code, 1);
    assert!(output.contains("control plane version >= 1.35.0. Current version: v1.34.0"), "{output}");

    // As a control plane provider does it: the configuration first, then the node.
    let path = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config";
    let text = object(&admin, path).await["data"]["ClusterConfiguration"].as_str().unwrap().replace(VERSION, "v1.35.1");
    patch(&admin, path, json!({ "data": { "ClusterConfiguration": text } })).await;
    let second = node(docker, "c-cp-2", "v1.35.1").await;
    let (code, output) = join_control_plane(docker, "c-cp-2", &endpoint, &certificates).await;
    assert_eq!(code, 0, "{output}");
    let newer = certificates.admin(&format!("{second}:6443"));
    assert_eq!(object(&newer, "/version").await["gitVersion"], "v1.35.1");
    let first = certificates.admin(&format!("{}:6443", address(docker, "c-cp-1").await));
    assert_eq!(object(&first, "/version").await["gitVersion"], VERSION);
    let node_two = object(&admin, "/api/v1/nodes/c-cp-2").await;
    assert_eq!(node_two["status"]["nodeInfo"]["kubeletVersion"], "v1.35.1");
    let pod = object(&admin, &format!("{PODS}/kube-apiserver-c-cp-2")).await;
    assert_eq!(pod["spec"]["containers"][0]["image"], "registry.k8s.io/kube-apiserver:v1.35.1");

    // A node needs the right to read the configuration, and the kubelet's, as with kubeadm.
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings";
    let path = format!("{roles}/kubeadm:nodes-kubeadm-config");
    let binding = object(&admin, &path).await;
    delete(&admin, &path).await;
    node(docker, "c-w-0", "v1.35.1").await;
    let (code, output) = join_worker(docker, "c-w-0", &endpoint, &certificates).await;
    assert_eq!(code, 1);
    assert!(output.contains("\"kubeadm-config\" is forbidden"), "{output}");
    let again = json!({ "metadata": { "name": binding["metadata"]["name"] }, "roleRef": binding["roleRef"], "subjects": binding["subjects"] });
    let request = http::Request::post(roles).header("content-type", "application/json");
    let _: Value = admin.request(request.body(again.to_string().into_bytes()).unwrap()).await.unwrap();
    let (code, output) = join_worker(docker, "c-w-0", &endpoint, &certificates).await;
    assert_eq!(code, 0, "{output}");

    delete(&admin, "/api/v1/namespaces/kube-system/configmaps/kubelet-config").await;
    node(docker, "c-w-1", "v1.35.1").await;
    let (code, output) = join_worker(docker, "c-w-1", &endpoint, &certificates).await;
    assert_eq!(code, 1);
    assert!(output.contains("configmaps \"kubelet-config\" not found"), "{output}");
    sim.stop().await;
}

#[tokio::test]
async fn a_deleted_node_comes_back_only_with_a_restart_of_its_container() {
    let directory = tempfile::tempdir().unwrap();
    let sim = Sim::prepared(directory.path()).await;
    let docker = &sim.docker;
    let (certificates, endpoint) = new_cluster(docker).await;
    node(docker, "c-w-1", VERSION).await;
    let (code, output) = join_worker(docker, "c-w-1", &endpoint, &certificates).await;
    assert_eq!(code, 0, "{output}");
    let admin = certificates.admin(&endpoint);
    delete(&admin, "/api/v1/nodes/c-w-1").await;
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/c-w-1";
    let _ = until("the lease goes with its node", || get(&admin, lease), Result::is_err).await;
    // Longer than the time between two heartbeats.
    let silent = tokio::time::timeout(
        Duration::from_secs(11),
        until("the node stays away", || get(&admin, "/api/v1/nodes/c-w-1"), Result::is_ok),
    );
    assert!(silent.await.is_err(), "a kubelet made its deleted Node anew");
    assert!(get(&admin, lease).await.is_err());
    call(docker, Method::POST, "/containers/c-w-1/restart", Value::Null).await;
    let _ = until("the node is back", || get(&admin, "/api/v1/nodes/c-w-1"), Result::is_ok).await;
    sim.stop().await;
}

#[tokio::test]
async fn configuration_of_the_older_kind_with_an_etcd_of_somebody_else_and_short_certificates() {
    let directory = tempfile::tempdir().unwrap();
    let sim = Sim::prepared(directory.path()).await;
    let docker = &sim.docker;
    let certificates = Certificates::generate();
    let own = node(docker, "node-1", VERSION).await;
    let older = "apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\nkubernetesVersion: v1.34.0\napiServer: {extraArgs: {v: '7'}}\n\
                 etcd: {external: {endpoints: ['https://etcd.example:2379'], caFile: /etc/kubernetes/pki/etcd/ca.crt, certFile: /c, keyFile: /k}}\n---\n\
                 apiVersion: kubeadm.k8s.io/v1beta3\nkind: InitConfiguration\nskipPhases: [addon]\nnodeRegistration:\n  \
                 kubeletExtraArgs: {node-labels: 'a=b'}\n";
    put(docker, "node-1", &certificates.with("/run/kubeadm/kubeadm.yaml", older)).await;
    let (code, output) = sh(docker, "node-1", "kubeadm init --config /run/kubeadm/kubeadm.yaml").await;
    assert_eq!(code, 0, "{output}");
    let admin = certificates.admin(&format!("{own}:6443"));
    let list = object(&admin, &format!("{PODS}?labelSelector=tier%3Dcontrol-plane")).await;
    assert_eq!(list["items"].as_array().unwrap().len(), 3, "an etcd elsewhere has no pod here");
    assert!(get(&admin, "/apis/apps/v1/namespaces/kube-system/deployments/coredns").await.is_err());
    let map = object(&admin, "/api/v1/namespaces/kube-system/configmaps/kubeadm-config").await;
    assert!(map["data"]["ClusterConfiguration"].as_str().unwrap().contains("kubeadm.k8s.io/v1beta4"));
    assert!(read(docker, "node-1", "/etc/kubernetes/manifests/kube-apiserver.yaml").await.contains("--v=7"));
    assert_eq!(object(&admin, "/api/v1/nodes/node-1").await["metadata"]["labels"]["a"], "b");

    let other = Certificates::generate();
    node(docker, "node-2", VERSION).await;
    let short =
        init_config("", "node-2").replace("clusterName: test", "clusterName: test\ncertificateValidityPeriod: 72h0m0s");
    put(docker, "node-2", &other.with("/run/kubeadm/kubeadm.yaml", &short)).await;
    let (code, output) = sh(docker, "node-2", "kubeadm init --config /run/kubeadm/kubeadm.yaml").await;
    assert_eq!(code, 0, "{output}");
    let pem = read(docker, "node-2", "/etc/kubernetes/pki/apiserver.crt").await;
    let (_, pem) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap();
    let left = pem.parse_x509().unwrap().validity().time_to_expiration().unwrap().whole_seconds();
    assert!((71 * 3600..=72 * 3600).contains(&left), "{left}");
    sim.stop().await;
}
