//! Clusters of simulated nodes, bootstrapped through the Docker API alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::time::Duration;

use capwasm_sim_engine::testing::*;
use capwasm_sim_node::testing::*;
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_three_nodes_forms_through_its_load_balancer() {
    let directory = tempfile::tempdir().unwrap();
    let sim = Sim::prepared(directory.path()).await;
    let docker = &sim.docker;
    let (certificates, endpoint) = new_cluster(docker).await;
    let admin = certificates.admin(&endpoint);

    let map = get(&admin, "/api/v1/namespaces/kube-system/configmaps/kubeadm-config").await.unwrap();
    assert!(map["data"]["ClusterConfiguration"].as_str().unwrap().contains(&endpoint));
    assert_eq!(get(&admin, "/version").await.unwrap()["gitVersion"], VERSION);

    // A worker.
    create(docker, "c-w-1", &format!("kindest/node:{VERSION}")).await;
    start(docker, "c-w-1").await;
    put(
        docker,
        "c-w-1",
        &[("/run/kubeadm/kubeadm-join-config.yaml", &join_config(&endpoint, TOKEN, &certificates.hash(), false))],
    )
    .await;
    let (code, output) = sh(docker, "c-w-1", &format!("mkdir -p /run/cluster-api\n{JOIN}")).await;
    assert_eq!(code, 0, "{output}");

    // A second control-plane node shares the cluster's objects.
    create(docker, "c-cp-2", &format!("kindest/node:{VERSION}")).await;
    let second = start(docker, "c-cp-2").await;
    let config = join_config(&endpoint, TOKEN, &certificates.hash(), true);
    put(docker, "c-cp-2", &certificates.with("/run/kubeadm/kubeadm-join-config.yaml", &config)).await;
    let (code, output) = sh(docker, "c-cp-2", &format!("mkdir -p /run/cluster-api\n{JOIN}")).await;
    assert_eq!(code, 0, "{output}");

    let nodes = get(&certificates.admin(&format!("{second}:6443")), "/api/v1/nodes").await.unwrap();
    let nodes = nodes["items"].as_array().unwrap();
    assert_eq!(nodes.len(), 3);
    for node in nodes {
        let ready = node["status"]["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .any(|c| c["type"] == "Ready" && c["status"] == "True");
        assert!(ready, "{node}");
        assert_eq!(node["metadata"]["labels"]["capwasm.dev/simulated"], "true");
        assert_eq!(node["status"]["nodeInfo"]["osImage"], "capwasm simulated node");
        assert_eq!(node["status"]["nodeInfo"]["kubeletVersion"], VERSION);
        let control_plane = node["metadata"]["labels"].get("node-role.kubernetes.io/control-plane").is_some();
        assert_eq!(control_plane, node["metadata"]["name"] != "c-w-1");
    }
    let worker = nodes.iter().find(|node| node["metadata"]["name"] == "c-w-1").unwrap();
    assert_eq!(worker["spec"]["taints"][0]["key"], "node.cluster.x-k8s.io/uninitialized");

    // Heartbeats renew the lease.
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/c-w-1";
    let first = get(&admin, lease).await.unwrap()["spec"]["renewTime"].clone();
    let deadline = Instant::now() + Duration::from_secs(30);
    while get(&admin, lease).await.unwrap()["spec"]["renewTime"] == first {
        assert!(Instant::now() < deadline, "no heartbeat");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }

    // The cluster outlives its first control-plane node when its member of etcd left, and removal deletes nothing in it.
    let (code, output) = sh(docker, "c-cp-1", "kubeadm reset --force").await;
    assert_eq!(code, 0, "{output}");
    call(docker, Method::DELETE, "/containers/c-cp-1?force=1", Value::Null).await;
    put(docker, "c-lb", &[("/usr/local/etc/haproxy/haproxy.cfg", &balancer_config(&[("c-cp-2", &second)]))]).await;
    call(docker, Method::POST, "/containers/c-lb/kill?signal=HUP", Value::Null).await;
    let nodes = get(&certificates.admin(&endpoint), "/api/v1/nodes").await.unwrap();
    assert_eq!(nodes["items"].as_array().unwrap().len(), 3);

    // With the last member of its etcd the cluster's data are gone.
    call(docker, Method::DELETE, "/containers/c-cp-2?force=1", Value::Null).await;
    create(docker, "c-cp-3", &format!("kindest/node:{VERSION}")).await;
    let third = start(docker, "c-cp-3").await;
    put(docker, "c-cp-3", &certificates.with("/run/kubeadm/kubeadm.yaml", &init_config(&endpoint, "c-cp-3"))).await;
    let (code, output) = sh(docker, "c-cp-3", &format!("mkdir -p /run/cluster-api\n{INIT}")).await;
    assert_eq!(code, 0, "{output}");
    let nodes = get(&certificates.admin(&format!("{third}:6443")), "/api/v1/nodes").await.unwrap();
    assert_eq!(nodes["items"].as_array().unwrap().len(), 1);
    sim.stop().await;
}

#[tokio::test]
async fn init_fails_as_kubeadm_does_when_something_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let sim = Sim::prepared(directory.path()).await;
    let docker = &sim.docker;
    let (certificates, other) = (Certificates::generate(), Certificates::generate());
    let good = init_config("", "node-1");
    let key = "/etc/kubernetes/pki/ca.key";
    let foreign = other.files.iter().find(|(path, _)| path == key).unwrap().1.clone();
    let yaml = "/run/kubeadm/kubeadm.yaml";
    let broken = [
        (
            vec![(yaml, good.replace("kubernetesVersion: v1.34.0", "kubernetesVersion: latest"))],
            "could not parse \"latest\" as version",
        ),
        (
            vec![(yaml, good.replace("kubernetesVersion: v1.34.0", "kubernetesVersion: v1.32.0"))],
            "only supports deploying clusters with the control plane version >= 1.33.0",
        ),
        (
            vec![(yaml, good.replace("kubernetesVersion: v1.34.0", "kubernetesVersion: v1.33.0"))],
            "[ERROR KubeletVersion]: the kubelet version is higher than the control plane version",
        ),
        (vec![(yaml, good.replace("v1beta4", "v1beta9"))], "API spec that this kubeadm does not know"),
        (vec![(yaml, good.replace("networking:", "networking: 7\nx:"))], "error unmarshaling configuration"),
        (vec![(yaml, good.replace("10.128.0.0/12", "10.128.0.0"))], "couldn't parse subnet"),
        (vec![(yaml, good.clone()), (key, foreign)], "the authority's key does not belong to its certificate"),
        (
            vec![(yaml, good.clone()), ("/etc/kubernetes/pki/etcd/ca.crt", "nonsense".to_owned())],
            "data does not contain a valid certificate",
        ),
        (
            vec![(yaml, good.clone()), ("/etc/kubernetes/manifests/etcd.yaml", String::new())],
            "[ERROR FileAvailable--etc-kubernetes-manifests-etcd.yaml]: /etc/kubernetes/manifests/etcd.yaml already exists",
        ),
    ];
    for (number, (files, expected)) in broken.iter().enumerate() {
        let name = format!("broken-{number}");
        create(docker, &name, &format!("kindest/node:{VERSION}")).await;
        start(docker, &name).await;
        let all: Vec<(&str, &str)> = certificates
            .files
            .iter()
            .filter(|(path, _)| !files.iter().any(|(changed, _)| changed == path))
            .map(|(path, content)| (path.as_str(), content.as_str()))
            .chain(files.iter().map(|(path, content)| (*path, content.as_str())))
            .collect();
        put(docker, &name, &all).await;
        let (code, output) = sh(docker, &name, INIT).await;
        assert_eq!(code, 1, "{expected}: {output}");
        assert!(output.contains(expected), "{expected}: {output}");
    }

    // Done once, it cannot be done again.
    create(docker, "node-1", &format!("kindest/node:{VERSION}")).await;
    start(docker, "node-1").await;
    put(docker, "node-1", &certificates.with(yaml, &good)).await;
    let (code, output) = sh(docker, "node-1", "kubeadm init --config /run/kubeadm/kubeadm.yaml").await;
    assert_eq!(code, 0, "{output}");
    let (code, output) = sh(docker, "node-1", "kubeadm init --config /run/kubeadm/kubeadm.yaml").await;
    assert_eq!(code, 1);
    assert!(output.contains("kube-apiserver.yaml already exists"), "{output}");
    let (code, output) = sh(docker, "node-1", "kubectl --kubeconfig /etc/kubernetes/admin.conf get nodes").await;
    assert_eq!((code, output.as_str()), (0, "node-1\n"));
    sim.stop().await;
}

#[tokio::test]
async fn join_fails_as_kubeadm_does_when_something_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let sim = Sim::prepared(directory.path()).await;
    let docker = &sim.docker;
    let (certificates, other) = (Certificates::generate(), Certificates::generate());
    let endpoint = cluster(docker, "c", &certificates).await;
    let admin = certificates.admin(&endpoint);
    let expired = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
        "metadata": { "name": "bootstrap-token-expire", "namespace": "kube-system" },
        "stringData": { "token-id": "expire", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
            "expiration": "2020-01-01T00:00:00Z" },
    });
    let request =
        http::Request::post("/api/v1/namespaces/kube-system/secrets").header("content-type", "application/json");
    let _: Value = admin.request(request.body(expired.to_string().into_bytes()).unwrap()).await.unwrap();
    let hash = certificates.hash();
    let nowhere = format!("{}:6444", endpoint.split(':').next().unwrap());
    let rows = [
        (join_config(&endpoint, TOKEN, &other.hash(), false), "are pinned"),
        (
            join_config(&endpoint, "zzzzzz.0123456789abcdef", &hash, false),
            "does not yet contain a JWS signature for token ID \"zzzzzz\"",
        ),
        (
            join_config(&endpoint, "expire.0123456789abcdef", &hash, false),
            "does not yet contain a JWS signature for token ID \"expire\"",
        ),
        (join_config(&endpoint, "abcdef.ffffffffffffffff", &hash, false), "failed to verify JWS signature"),
        (join_config(&endpoint, "not-a-token", &hash, false), "was not of the form"),
        (join_config(&nowhere, TOKEN, &hash, false), "failed to request the cluster-info ConfigMap"),
        (join_config(&endpoint, TOKEN, &hash, true), "ca.crt: no such file or directory"),
        (init_config(&endpoint, "x"), "no JoinConfiguration"),
    ];
    for (number, (config, expected)) in rows.iter().enumerate() {
        let name = format!("w-{number}");
        create(docker, &name, &format!("kindest/node:{VERSION}")).await;
        start(docker, &name).await;
        put(docker, &name, &[("/run/kubeadm/kubeadm-join-config.yaml", config)]).await;
        let (code, output) = sh(docker, &name, JOIN).await;
        assert_eq!(code, 1, "{expected}: {output}");
        assert!(output.contains(expected), "{expected}: {output}");
    }
    let nodes = get(&admin, "/api/v1/nodes").await.unwrap();
    assert_eq!(nodes["items"].as_array().unwrap().len(), 1, "a failed join must leave no Node");
    sim.stop().await;
}

#[tokio::test]
async fn a_node_joins_by_a_discovery_file() {
    let directory = tempfile::tempdir().unwrap();
    let sim = Sim::prepared(directory.path()).await;
    let docker = &sim.docker;
    let (certificates, endpoint) = new_cluster(docker).await;
    let kubeconfig = |token: &str| {
        use base64::Engine as _;
        let authority = base64::engine::general_purpose::STANDARD.encode(&certificates.ca.certificate);
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{{name: x, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: 'https://{endpoint}', certificate-authority-data: {authority}}}}}]\n\
             users: [{{name: u, user: {{{token}}}}}]\n"
        )
    };
    let join = |tls: &str| {
        format!(
            "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\ndiscovery:\n  file: {{kubeConfigPath: /etc/kubernetes/discovery.conf}}\n{tls}"
        )
    };
    let given = format!("token: {TOKEN}");
    let own = format!("  tlsBootstrapToken: {TOKEN}\n");
    for (name, token, tls, expected) in
        [("by-file", given.as_str(), "", 0), ("by-both", "", own.as_str(), 0), ("by-none", "", "", 1)]
    {
        node(docker, name, VERSION).await;
        let files = [
            ("/etc/kubernetes/discovery.conf", kubeconfig(token)),
            ("/run/kubeadm/kubeadm-join-config.yaml", join(tls)),
        ];
        put(docker, name, &files.each_ref().map(|(path, content)| (*path, content.as_str()))).await;
        let (code, output) = sh(docker, name, "kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml").await;
        assert_eq!(code, expected, "{name}: {output}");
    }
    sim.stop().await;
}
