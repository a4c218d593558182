//! What infrastructure and bootstrap providers do with nodes, for tests: through the Docker API of an engine, simulated or real,
//! and the API of the clusters that come of it. Everything panics where a test would.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "for tests")]

use std::time::Duration;

use crate::kubeadm::pki::Authority;
use capwasm_pki::{Algorithm, Leaf};
use capwasm_sim_service::docker::Docker;
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

/// Kubernetes version of the clusters.
pub const VERSION: &str = "v1.34.0";
/// Bootstrap token of [`init_config`].
pub const TOKEN: &str = "abcdef.0123456789abcdef";

/// Calls an engine; panics with its message when it refuses.
pub async fn call(docker: &Docker, method: Method, path: &str, body: Value) -> Value {
    docker.json(method, &format!("/v1.41{path}"), &body).await.unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The status code of a call.
pub async fn code(docker: &Docker, method: Method, path: &str, body: Value) -> u16 {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    docker.send(method, &format!("/v1.41{path}"), "application/json", body).await.unwrap().0
}

/// Makes a container in the network `kind`, labelled with its name as a provider labels it with a UID.
pub async fn create(docker: &Docker, name: &str, image: &str) {
    let body = json!({ "Image": image, "Hostname": name, "HostConfig": { "NetworkMode": "kind" }, "Labels": { "capwasm.dev/uid": name } });
    call(docker, Method::POST, &format!("/containers/create?name={name}"), body).await;
}

/// Starts a container; its address in the network `kind`.
pub async fn start(docker: &Docker, name: &str) -> String {
    call(docker, Method::POST, &format!("/containers/{name}/start"), Value::Null).await;
    address(docker, name).await
}

/// A container's address in the network `kind`.
pub async fn address(docker: &Docker, name: &str) -> String {
    let found = call(docker, Method::GET, &format!("/containers/{name}/json"), Value::Null).await;
    found["NetworkSettings"]["Networks"]["kind"]["IPAddress"].as_str().unwrap().to_owned()
}

/// Pulls the images of [`Images::simulated`] and makes the network `kind`.
pub async fn prepare(docker: &Docker) {
    call(docker, Method::POST, &format!("/images/create?fromImage=kindest/node&tag={VERSION}"), Value::Null).await;
    call(docker, Method::POST, "/images/create?fromImage=kindest/haproxy&tag=v20230606-42a2262b", Value::Null).await;
    call(docker, Method::POST, "/networks/create", json!({ "Name": "kind", "CheckDuplicate": true })).await;
}

/// A tar archive of files with mode 0600.
pub fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o600);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, path.trim_start_matches('/'), content.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

/// Unpacks files with mode 0600 into a container.
pub async fn put(docker: &Docker, container: &str, files: &[(&str, &str)]) {
    docker
        .archive(Method::PUT, &format!("/v1.41/containers/{container}/archive?path=/"), archive(files))
        .await
        .unwrap();
}

/// Starts a detached exec of a script and returns its id.
pub async fn begin(docker: &Docker, container: &str, script: &str) -> String {
    let body = json!({ "Cmd": ["/bin/sh", "-c", script] });
    let exec = call(docker, Method::POST, &format!("/containers/{container}/exec"), body).await;
    let id = exec["Id"].as_str().unwrap().to_owned();
    call(docker, Method::POST, &format!("/exec/{id}/start"), json!({ "Detach": true })).await;
    id
}

/// Waits for an exec's end.
pub async fn finished(docker: &Docker, id: &str) -> i64 {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let found = call(docker, Method::GET, &format!("/exec/{id}/json"), Value::Null).await;
        if !found["Running"].as_bool().unwrap() {
            return found["ExitCode"].as_i64().unwrap();
        }
        assert!(Instant::now() < deadline, "the exec does not end");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Runs a script to its end: exit code and everything that it printed.
pub async fn sh(docker: &Docker, container: &str, script: &str) -> (i64, String) {
    let id = begin(docker, container, &format!("{{\n{script}\n}} >/tmp/out 2>&1")).await;
    let code = finished(docker, &id).await;
    (code, read(docker, container, "/tmp/out").await)
}

/// A file of a container.
pub async fn read(docker: &Docker, container: &str, path: &str) -> String {
    use std::io::Read;
    let (status, body) = docker
        .send(Method::GET, &format!("/v1.41/containers/{container}/archive?path={path}"), "", Vec::new())
        .await
        .unwrap();
    assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
    let mut text = String::new();
    let mut archive = tar::Archive::new(&body[..]);
    archive.entries().unwrap().next().unwrap().unwrap().read_to_string(&mut text).unwrap();
    text
}

/// Certificates of a cluster as the control plane provider makes them.
pub struct Certificates {
    /// The cluster's own authority.
    pub ca: Authority,
    /// Path and content of all certificates and keys that a node gets before `kubeadm init`.
    pub files: Vec<(String, String)>,
}

impl Certificates {
    /// New authorities and a key for service accounts.
    pub fn generate() -> Certificates {
        let make = |name: &str| Authority::generate(name, Algorithm::EcdsaP256).unwrap();
        let (ca, proxy, etcd) = (make("kubernetes"), make("front-proxy-ca"), make("etcd-ca"));
        let mut files = Vec::new();
        for (base, authority) in [("ca", &ca), ("front-proxy-ca", &proxy), ("etcd/ca", &etcd)] {
            files.push((format!("/etc/kubernetes/pki/{base}.crt"), authority.certificate.clone()));
            files.push((format!("/etc/kubernetes/pki/{base}.key"), authority.key_pem()));
        }
        let sa = Algorithm::EcdsaP256.generate().unwrap();
        files.push(("/etc/kubernetes/pki/sa.key".into(), sa.serialize_pem()));
        files.push(("/etc/kubernetes/pki/sa.pub".into(), sa.public_key_pem()));
        Certificates { ca, files }
    }

    /// What `discovery-token-ca-cert-hash` is for the cluster's authority.
    pub fn hash(&self) -> String {
        capwasm_pki::public_key_hash(&self.ca.der).unwrap()
    }

    /// Files with one more or replaced.
    pub fn with<'a>(&'a self, path: &'a str, content: &'a str) -> Vec<(&'a str, &'a str)> {
        let kept = self.files.iter().filter(|(existing, _)| existing != path);
        kept.map(|(path, content)| (path.as_str(), content.as_str())).chain([(path, content)]).collect()
    }

    /// An administrator's client of the API server at `host:port`.
    pub fn admin(&self, endpoint: &str) -> kube::Client {
        use base64::Engine as _;
        let pair = self.ca.issue(&Leaf::client("admin", &["system:masters"]), Algorithm::EcdsaP256).unwrap();
        let mut config = kube::Config::new(format!("https://{endpoint}").parse().unwrap());
        config.root_cert = Some(vec![self.ca.der.clone()]);
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        config.auth_info = serde_json::from_value(
            json!({ "client-certificate-data": encode(&pair.certificate), "client-key-data": encode(&pair.key) }),
        )
        .unwrap();
        kube::Client::try_from(config).unwrap()
    }
}

/// Reads an object at a path of the API.
pub async fn get(client: &kube::Client, path: &str) -> Result<Value, kube::Error> {
    client.request(http::Request::get(path).body(Vec::new()).unwrap()).await
}

/// Configuration of `kubeadm init` for a node of a cluster that is reached at `host:port`.
pub fn init_config(endpoint: &str, node: &str) -> String {
    format!(
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nclusterName: test\nkubernetesVersion: {VERSION}\n\
         controlPlaneEndpoint: {endpoint}\nnetworking:\n  podSubnet: 192.168.0.0/16\n  serviceSubnet: 10.128.0.0/12\n---\n\
         apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nbootstrapTokens:\n- token: {TOKEN}\n\
         nodeRegistration:\n  name: {node}\n  kubeletExtraArgs:\n  - name: provider-id\n    value: docker:////{node}\n"
    )
}

/// Configuration of `kubeadm join`, with short timeouts.
pub fn join_config(endpoint: &str, token: &str, hash: &str, control_plane: bool) -> String {
    let role = if control_plane { "controlPlane: {}\n" } else { "" };
    format!(
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n{role}discovery:\n  bootstrapToken:\n    token: {token}\n    \
         apiServerEndpoint: {endpoint}\n    caCertHashes:\n    - {hash}\nnodeRegistration:\n  taints:\n  - key: node.cluster.x-k8s.io/uninitialized\n    \
         effect: NoSchedule\ntimeouts:\n  discovery: 3s\n  tlsBootstrap: 3s\n"
    )
}

/// Configuration of a load balancer for API servers, by name and address.
pub fn balancer_config(servers: &[(&str, &str)]) -> String {
    let servers: String = servers
        .iter()
        .map(|(name, address)| format!("  server {name} {address}:6443 check check-ssl verify none\n"))
        .collect();
    format!(
        "global\n  maxconn 100\ndefaults\n  mode tcp\nfrontend control-plane\n  bind *:6443\n  default_backend api\nbackend api\n{servers}"
    )
}

/// Waits until `holds`, and panics with what there is instead.
pub async fn until<T: std::fmt::Debug, F: Future<Output = T>>(
    what: &str,
    ask: impl Fn() -> F,
    holds: impl Fn(&T) -> bool,
) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let found = ask().await;
        if holds(&found) {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}: {found:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The status of a condition, empty when there is none.
pub fn condition(object: &Value, kind: &str) -> String {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let found =
        conditions.filter(|condition| condition["type"] == kind).find_map(|condition| condition["status"].as_str());
    found.unwrap_or_default().to_owned()
}

/// A container of a node, started, with its address.
pub async fn node(docker: &Docker, name: &str, version: &str) -> String {
    call(docker, Method::POST, &format!("/images/create?fromImage=kindest/node&tag={version}"), Value::Null).await;
    create(docker, name, &format!("kindest/node:{version}")).await;
    start(docker, name).await
}

/// Joins a started node as a further control-plane node: exit code and output.
pub async fn join_control_plane(
    docker: &Docker,
    name: &str,
    endpoint: &str,
    certificates: &Certificates,
) -> (i64, String) {
    let config = join_config(endpoint, TOKEN, &certificates.hash(), true);
    put(docker, name, &certificates.with("/run/kubeadm/kubeadm-join-config.yaml", &config)).await;
    sh(docker, name, &format!("mkdir -p /run/cluster-api\n{JOIN}")).await
}

/// Joins a started node as a worker: exit code and output.
pub async fn join_worker(docker: &Docker, name: &str, endpoint: &str, certificates: &Certificates) -> (i64, String) {
    let config = join_config(endpoint, TOKEN, &certificates.hash(), false);
    put(docker, name, &[("/run/kubeadm/kubeadm-join-config.yaml", &config)]).await;
    sh(docker, name, &format!("mkdir -p /run/cluster-api\n{JOIN}")).await
}

/// Starts nodes and joins them as further control-plane nodes.
pub async fn add_control_planes(docker: &Docker, names: &[&str], endpoint: &str, certificates: &Certificates) {
    for name in names {
        node(docker, name, VERSION).await;
        let (code, output) = join_control_plane(docker, name, endpoint, certificates).await;
        assert_eq!(code, 0, "{output}");
    }
}

/// Command that makes a started node the first of its cluster, as bootstrap data has it.
pub const INIT: &str =
    "kubeadm init --config /run/kubeadm/kubeadm.yaml  && echo success > /run/cluster-api/bootstrap-success.complete";
/// Command that joins a started node, as bootstrap data has it.
pub const JOIN: &str = "kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml  && echo success > /run/cluster-api/bootstrap-success.complete";

/// Images of a cluster's containers.
pub struct Images {
    /// Image of nodes.
    pub node: String,
    /// Image of load balancers.
    pub balancer: String,
}

impl Images {
    /// As the quick start names them.
    pub fn simulated() -> Images {
        Images { node: format!("kindest/node:{VERSION}"), balancer: "kindest/haproxy:v20230606-42a2262b".to_owned() }
    }
}

/// A simulated cluster with a load balancer and one control-plane node, initialised; its endpoint.
pub async fn cluster(docker: &Docker, name: &str, certificates: &Certificates) -> String {
    cluster_of(docker, name, certificates, &Images::simulated()).await
}

/// As [`cluster`], named `c`, with authorities of its own; they and its endpoint.
pub async fn new_cluster(docker: &Docker) -> (Certificates, String) {
    let certificates = Certificates::generate();
    let endpoint = cluster(docker, "c", &certificates).await;
    (certificates, endpoint)
}

/// As [`cluster`], of other images.
pub async fn cluster_of(docker: &Docker, name: &str, certificates: &Certificates, images: &Images) -> String {
    let (balancer, node) = (format!("{name}-lb"), format!("{name}-cp-1"));
    create(docker, &balancer, &images.balancer).await;
    put(docker, &balancer, &[("/usr/local/etc/haproxy/haproxy.cfg", &balancer_config(&[]))]).await;
    let endpoint = format!("{}:6443", start(docker, &balancer).await);
    create(docker, &node, &images.node).await;
    let own = start(docker, &node).await;
    put(docker, &balancer, &[("/usr/local/etc/haproxy/haproxy.cfg", &balancer_config(&[(&node, &own)]))]).await;
    call(docker, Method::POST, &format!("/containers/{balancer}/kill?signal=HUP"), Value::Null).await;
    put(docker, &node, &certificates.with("/run/kubeadm/kubeadm.yaml", &init_config(&endpoint, &node))).await;
    let (code, output) = sh(docker, &node, &format!("mkdir -p /run/cluster-api\n{INIT}")).await;
    assert_eq!(code, 0, "{output}");
    endpoint
}
