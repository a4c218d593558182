//! `kubeadm init`.

use std::time::Duration;

use capwasm_pki::{Algorithm, Leaf};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::files::{Files, reason};
use crate::kubeadm::config::{
    ClusterConfiguration, Documents, InitConfiguration, NodeRegistration, Patches, Taint, Version, duration,
};
use crate::kubeadm::kubeconfig::{self, Kubeconfig, User};
use crate::kubeadm::pki::{self, Authority, Validity};
use crate::kubeadm::{Failure, Flags, addons, cluster_info, objects, paths, preflight, static_pods, versions};
use crate::kubelet::{self, Registration};
use crate::node::Node;
use crate::rest::Rest;
use crate::shell::Invocation;

/// Port of the API server unless the configuration says otherwise.
pub(super) const PORT: u16 = 6443;
/// Phases that may be left out without a node that pretends.
const SKIPPABLE: [&str; 8] = [
    "preflight",
    "addon",
    "addon/kube-proxy",
    "addon/coredns",
    "mark-control-plane",
    "show-join-command",
    "upload-certs",
    "kubelet-finalize",
];
/// Label of control-plane nodes.
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
const NO_BALANCER: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// How long a token is good for by default.
const TOKEN_TTL: Duration = Duration::from_secs(24 * 3600);

/// A control-plane node in the making; shared with `join`.
pub(super) struct ControlPlane<'a> {
    pub call: &'a Invocation<'a>,
    pub cluster: ClusterConfiguration,
    /// Directory of the certificates on the node.
    pub pki: String,
    pub algorithm: Algorithm,
    pub validity: Validity,
    /// Directory of patches; empty: none.
    pub patches: String,
    pub node_name: String,
    pub address: String,
    pub port: u16,
}

/// Runs the phases of `kubeadm init`.
pub(super) async fn init(call: &Invocation<'_>, flags: &Flags, documents: Documents) -> Result<(), Failure> {
    let (mut cluster, mut document) = documents.cluster.unwrap_or_else(|| (ClusterConfiguration::default(), json!({})));
    let init = documents.init.unwrap_or_default();
    if documents.join.is_some() {
        return Err(Failure::Input("a JoinConfiguration is no configuration of kubeadm init".to_owned()));
    }
    let own = own_version(call.node).map_err(Failure::Input)?;
    let version = complete(own.as_ref(), &mut cluster).map_err(Failure::Input)?;
    let algorithm = pki::algorithm(&cluster.encryption_algorithm).map_err(Failure::Input)?;
    let skipped: Vec<&str> = flags.skipped_phases.iter().chain(&init.skip_phases).map(String::as_str).collect();
    check_skipped(&skipped)?;
    let node_name = node_name(call.node, &init.node_registration)?;
    let address = local_address(call.node, &init.local_api_endpoint.advertise_address).map_err(Failure::Input)?;

    call.say(format!("[init] Using Kubernetes version: {}", version.text));
    call.say("[init] This is a capwasm simulated node: no container is started, the API server is capwasm's own");
    if !skipped.contains(&"preflight") {
        call.say("[preflight] Running pre-flight checks");
        let mut findings = preflight::init(call.node.files());
        if let Some(own) = &own {
            if let Some(text) = versions::newer(own, &version) {
                call.complain(format!("\t[WARNING KubernetesVersion]: {text}"));
            }
            findings.extend(versions::kubelet(own, &version).err().map(|text| ("KubeletVersion".to_owned(), text)));
        }
        for warning in preflight::judge(findings, flags, &init.node_registration.ignore_preflight_errors)? {
            call.complain(warning);
        }
    }

    let pki =
        if cluster.certificates_dir.is_empty() { paths::PKI.to_owned() } else { cluster.certificates_dir.clone() };
    let port = init.local_api_endpoint.bind_port.unwrap_or(PORT);
    let validity = validity(&cluster).map_err(Failure::Input)?;
    let patches = patches_directory(call, &init.patches);
    let plane = ControlPlane { call, cluster, pki, algorithm, validity, patches, node_name, address, port };
    let authority = plane.certificates(true).map_err(Failure::phase("certs"))?;
    plane.kubeconfigs(&authority).map_err(Failure::phase("kubeconfig"))?;
    plane.embedded_kubelet_config(&authority).map_err(Failure::phase("kubeconfig/kubelet"))?;
    let taints = init.node_registration.taints.clone().unwrap_or_else(control_plane_taints);
    let kubelet_config = kubelet_config(&plane.cluster, documents.kubelet).map_err(Failure::phase("kubelet-start"))?;
    plane
        .start_kubelet(&init.node_registration, &taints, &version.text, &kubelet_config)
        .map_err(Failure::phase("kubelet-start"))?;
    static_pods::write(call.node.files(), &plane.manifests(&[])).map_err(Failure::phase("control-plane"))?;
    static_pods::write_etcd(call.node.files(), &plane.manifests(&[])).map_err(Failure::phase("etcd"))?;
    let patience = init
        .timeouts
        .control_plane_component_health_check
        .as_deref()
        .and_then(duration)
        .unwrap_or(Duration::from_secs(240));
    let admin = plane.wait(patience).await.map_err(Failure::phase("wait-control-plane"))?;

    call.say("[upload-config] Storing the configuration used in ConfigMap \"kubeadm-config\" in the \"kube-system\" Namespace");
    plane.describe(&mut document, &version.text);
    objects::upload_configuration(&admin, &document, &kubelet_config).await.map_err(Failure::phase("upload-config"))?;
    plane.register(&admin).await.map_err(Failure::phase("kubelet-start"))?;
    if !skipped.contains(&"mark-control-plane") {
        plane.mark(&admin, &taints).await.map_err(Failure::phase("mark-control-plane"))?;
    }
    tokens(&plane, &admin, &init, &authority).await.map_err(Failure::phase("bootstrap-token"))?;
    let skips = |addon: &str| skipped.contains(&"addon") || skipped.contains(&addon);
    if !plane.cluster.dns.disabled && !skips("addon/coredns") {
        addons::coredns(&admin, &plane.cluster).await.map_err(Failure::phase("addon/coredns"))?;
        call.say("[addons] Applied essential addon: CoreDNS");
    }
    if !plane.cluster.proxy.disabled && !skips("addon/kube-proxy") {
        addons::kube_proxy(&admin, &plane.cluster, &plane.endpoint(), documents.kube_proxy.as_ref())
            .await
            .map_err(Failure::phase("addon/kube-proxy"))?;
        call.say("[addons] Applied essential addon: kube-proxy");
    }
    // It may have looked before its Node was there.
    call.node.wake_kubelet().await.map_err(Failure::phase("kubelet-start"))?;
    call.say("\nYour Kubernetes control-plane has initialized successfully!");
    Ok(())
}

fn check_skipped(skipped: &[&str]) -> Result<(), Failure> {
    match skipped.iter().find(|phase| !SKIPPABLE.contains(phase)) {
        Some(phase) => Err(Failure::Input(format!("the simulated kubeadm cannot skip phase \"{phase}\""))),
        None => Ok(()),
    }
}

/// Version of this node's kubeadm and kubelet.
pub(super) fn own_version(node: &dyn Node) -> Result<Option<Version>, String> {
    node.version().map(|text| Version::parse(&text)).transpose()
}

/// Where patches lie; empty: nowhere.
pub(super) fn patches_directory(call: &Invocation<'_>, patches: &Patches) -> String {
    if patches.directory.is_empty() { String::new() } else { call.path(&patches.directory) }
}

/// How long the configuration wants certificates to be good for.
pub(super) fn validity(cluster: &ClusterConfiguration) -> Result<Validity, String> {
    let time = |given: &Option<String>, default: Duration, field: &str| match given.as_deref() {
        None | Some("") => Ok(default),
        Some(text) => duration(text).ok_or_else(|| format!("{field}: Invalid value: {text:?}: time: invalid duration")),
    };
    let default = Validity::default();
    Ok(Validity {
        leaf: time(&cluster.certificate_validity_period, default.leaf, "certificateValidityPeriod")?,
        authority: time(&cluster.ca_certificate_validity_period, default.authority, "caCertificateValidityPeriod")?,
    })
}

/// Fills in defaults and checks the version against the node's own.
fn complete(own: Option<&Version>, cluster: &mut ClusterConfiguration) -> Result<Version, String> {
    if cluster.kubernetes_version.is_empty() {
        cluster.kubernetes_version =
            own.map(|own| own.text.clone()).ok_or("kubernetesVersion is not set and the node's image names none")?;
    }
    let version = Version::parse(&cluster.kubernetes_version)?;
    if let Some(own) = own {
        versions::deployable(own, &version)?;
    }
    cluster.kubernetes_version.clone_from(&version.text);
    let default = |field: &mut String, value: &str| {
        if field.is_empty() {
            value.clone_into(field);
        }
    };
    default(&mut cluster.cluster_name, "kubernetes");
    default(&mut cluster.image_repository, "registry.k8s.io");
    default(&mut cluster.networking.service_subnet, "10.96.0.0/12");
    default(&mut cluster.networking.dns_domain, "cluster.local");
    first_address(&cluster.networking.service_subnet)?;
    Ok(version)
}

/// The address of Service `kubernetes`: the first of the subnet.
pub(super) fn first_address(subnets: &str) -> Result<std::net::IpAddr, String> {
    let broken = || format!("networking.serviceSubnet: Invalid value: {subnets:?}: couldn't parse subnet");
    let first = subnets.split(',').next().unwrap_or_default().trim();
    let (base, bits) = first.split_once('/').ok_or_else(broken)?;
    let bits: u32 = bits.parse().map_err(|_| broken())?;
    match base.parse().map_err(|_| broken())? {
        std::net::IpAddr::V4(base) if (1..31).contains(&bits) => {
            Ok(std::net::Ipv4Addr::from((u32::from(base) & (u32::MAX << (32 - bits))) + 1).into())
        }
        std::net::IpAddr::V6(base) if bits < 127 && bits > 0 => {
            Ok(std::net::Ipv6Addr::from((u128::from(base) & (u128::MAX << (128 - bits))) + 1).into())
        }
        _ => Err(broken()),
    }
}

pub(super) fn node_name(node: &dyn Node, registration: &NodeRegistration) -> Result<String, Failure> {
    let name = match registration.kubelet_argument("hostname-override") {
        Some(name) => name.to_owned(),
        None if registration.name.is_empty() => node.hostname().to_lowercase(),
        None => registration.name.clone(),
    };
    let valid = !name.is_empty()
        && name.len() <= 253
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c));
    if valid { Ok(name) } else { Err(Failure::Input(format!("nodeRegistration.name: Invalid value: {name:?}"))) }
}

pub(super) fn local_address(node: &dyn Node, given: &str) -> Result<String, String> {
    match given {
        "" | "0.0.0.0" | "::" => Ok(node.address().to_string()),
        given => given
            .parse::<std::net::IpAddr>()
            .map(|address| address.to_string())
            .map_err(|_| format!("localAPIEndpoint.advertiseAddress: Invalid value: {given:?}: not an IP address")),
    }
}

pub(super) fn control_plane_taints() -> Vec<Taint> {
    vec![Taint { key: CONTROL_PLANE.to_owned(), value: String::new(), effect: "NoSchedule".to_owned() }]
}

/// The kubelet's configuration, YAML: what is given, completed as kubeadm completes it.
fn kubelet_config(cluster: &ClusterConfiguration, given: Option<Value>) -> Result<String, String> {
    let mut config = given.unwrap_or_else(|| json!({}));
    for (name, default) in [
        ("apiVersion", json!("kubelet.config.k8s.io/v1beta1")),
        ("kind", json!("KubeletConfiguration")),
        ("staticPodPath", json!(paths::MANIFESTS)),
        ("clusterDomain", json!(cluster.networking.dns_domain)),
        ("clusterDNS", json!([super::addons::dns_address(cluster)?])),
        ("rotateCertificates", json!(true)),
        ("cgroupDriver", json!("systemd")),
    ] {
        if config[name].is_null() {
            config[name] = default;
        }
    }
    serde_saphyr::to_string(&config).map_err(|error| format!("unable to write YAML: {error}"))
}

impl ControlPlane<'_> {
    fn files(&self) -> &dyn Files {
        self.call.node.files()
    }

    /// What this node's manifests are made of; `members` of etcd when this node's joins them.
    pub(super) fn manifests<'p>(&'p self, members: &'p [(String, String)]) -> static_pods::Plan<'p> {
        static_pods::Plan {
            cluster: &self.cluster,
            pki: &self.pki,
            address: &self.address,
            port: self.port,
            node: &self.node_name,
            members,
            patches: &self.patches,
        }
    }

    /// `host:port` that clients use: the cluster's stable endpoint, or this node.
    pub(super) fn endpoint(&self) -> String {
        let own = if self.address.contains(':') {
            format!("[{}]:{}", self.address, self.port)
        } else {
            format!("{}:{}", self.address, self.port)
        };
        match self.cluster.control_plane_endpoint.as_str() {
            "" => own,
            endpoint if endpoint.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) => {
                endpoint.to_owned()
            }
            endpoint => format!("{endpoint}:{}", self.port),
        }
    }

    /// Makes what is missing of the certificates and checks the rest.
    pub(super) fn certificates(&self, may_create: bool) -> Result<Authority, String> {
        let (files, pki, algorithm) = (self.files(), self.pki.as_str(), self.algorithm);
        let say = |base: &str, made: bool| {
            let what = if made { "Generating" } else { "Using existing" };
            self.call.say(format!("[certs] {what} {base} certificate and key"));
        };
        self.call.say(format!("[certs] Using certificateDir folder \"{pki}\""));
        let authority = |base: &str, name: &str| -> Result<Authority, String> {
            if !may_create {
                return pki::load_authority(files, pki, base);
            }
            let (found, made) = pki::ensure_authority(files, pki, base, name, algorithm, self.validity)?;
            say(base, made);
            Ok(found)
        };
        let leaf = |base: &str, authority: &Authority, wanted: &Leaf<'_>| {
            pki::ensure_leaf(files, pki, base, authority, wanted, algorithm, self.validity).map(|made| say(base, made))
        };
        let cluster = authority("ca", "kubernetes")?;
        let mut names = vec![self.node_name.clone(), self.call.node.hostname()];
        let domain = &self.cluster.networking.dns_domain;
        names.extend(["kubernetes", "kubernetes.default", "kubernetes.default.svc"].map(str::to_owned));
        names.push(format!("kubernetes.default.svc.{domain}"));
        names.push(first_address(&self.cluster.networking.service_subnet)?.to_string());
        names.push(self.address.clone());
        if let Some((host, _)) = self.endpoint().rsplit_once(':') {
            names.push(host.trim_matches(['[', ']']).to_owned());
        }
        names.extend(self.cluster.api_server.cert_sans.iter().cloned());
        names.sort();
        names.dedup();
        leaf("apiserver", &cluster, &Leaf::server("kube-apiserver", names))?;
        leaf(
            "apiserver-kubelet-client",
            &cluster,
            &Leaf::client("kube-apiserver-kubelet-client", &["kubeadm:cluster-admins"]),
        )?;
        let proxy = authority("front-proxy-ca", "front-proxy-ca")?;
        leaf("front-proxy-client", &proxy, &Leaf::client("front-proxy-client", &[]))?;
        if self.cluster.etcd.external.is_none() {
            let etcd = authority("etcd/ca", "etcd-ca")?;
            let local = self.cluster.etcd.local.clone().unwrap_or_default();
            for (base, extra) in [("etcd/server", &local.server_cert_sans), ("etcd/peer", &local.peer_cert_sans)] {
                let mut names = vec![self.node_name.clone(), self.address.clone()];
                names.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
                names.extend(extra.iter().cloned());
                names.dedup();
                leaf(base, &etcd, &Leaf::peer(&self.node_name, names))?;
            }
            leaf("etcd/healthcheck-client", &etcd, &Leaf::client("kube-etcd-healthcheck-client", &[]))?;
            leaf("apiserver-etcd-client", &etcd, &Leaf::client("kube-apiserver-etcd-client", &[]))?;
        }
        pki::ensure_service_account_key(files, pki, algorithm)?;
        Ok(cluster)
    }

    /// Writes the kubeconfigs of administrators and components.
    pub(super) fn kubeconfigs(&self, authority: &Authority) -> Result<(), String> {
        let users = [
            (paths::ADMIN, "kubernetes-admin", Some("kubeadm:cluster-admins")),
            (paths::SUPER_ADMIN, "kubernetes-super-admin", Some("system:masters")),
            (paths::CONTROLLER_MANAGER, "system:kube-controller-manager", None),
            (paths::SCHEDULER, "system:kube-scheduler", None),
        ];
        for (path, user, group) in users {
            let pair =
                authority.issue_for(&Leaf::client(user, group.as_slice()), self.algorithm, self.validity.leaf)?;
            self.write_kubeconfig(path, user, authority, &User::Embedded(&pair.certificate, &pair.key))?;
        }
        Ok(())
    }

    fn embedded_kubelet_config(&self, authority: &Authority) -> Result<(), String> {
        let user = format!("system:node:{}", self.node_name);
        let pair = authority.issue_for(&Leaf::client(&user, &["system:nodes"]), self.algorithm, self.validity.leaf)?;
        self.write_kubeconfig(paths::KUBELET, &user, authority, &User::Embedded(&pair.certificate, &pair.key))
    }

    fn write_kubeconfig(
        &self,
        path: &str,
        user: &str,
        authority: &Authority,
        credentials: &User<'_>,
    ) -> Result<(), String> {
        let server = format!("https://{}", self.endpoint());
        let text = kubeconfig::render(&self.cluster.cluster_name, &server, &authority.certificate, user, credentials);
        self.call.say(format!("[kubeconfig] Writing {path:?} kubeconfig file"));
        self.files().install(path, text, 0o600).map_err(|error| format!("couldn't write {path}: {}", reason(&error)))
    }

    /// Writes the kubelet's configuration.
    pub(super) fn start_kubelet(
        &self,
        registration: &NodeRegistration,
        taints: &[Taint],
        version: &str,
        config: &str,
    ) -> Result<(), String> {
        let path = paths::KUBELET_CONFIG;
        self.files()
            .install(path, config.to_owned(), 0o644)
            .map_err(|error| format!("couldn't write {path}: {}", reason(&error)))?;
        kubelet::write_flags(self.call.node, &self.node_name, registration, taints, version)
    }

    /// Waits until this node's API server answers, and returns an administrator's client of it.
    pub(super) async fn wait(&self, patience: Duration) -> Result<Rest, String> {
        self.call.say("[wait-control-plane] Waiting for the kubelet to serve the control plane from \"/etc/kubernetes/manifests\"");
        self.call.node.wake_kubelet().await?;
        let mut admin = Kubeconfig::load(self.files(), paths::SUPER_ADMIN)?;
        let own = if self.address.contains(':') { format!("[{}]", self.address) } else { self.address.clone() };
        // Not the cluster's endpoint: a load balancer may not know this node yet.
        admin.server = format!("https://{own}:{}", self.port);
        let rest = admin.client()?;
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            match rest.get("/api/v1/namespaces/kube-system").await {
                Ok(Some(_)) => return Ok(rest),
                Ok(None) if tokio::time::Instant::now() > deadline => {
                    return Err("the API server has no Namespace kube-system".to_owned());
                }
                Err(error) if tokio::time::Instant::now() > deadline => {
                    return Err(format!("failed while waiting for the control plane to start: {error}"));
                }
                _ => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    /// Puts what was defaulted into the document that is uploaded.
    fn describe(&self, document: &mut Value, version: &str) {
        document["apiVersion"] = json!("kubeadm.k8s.io/v1beta4");
        document["kind"] = json!("ClusterConfiguration");
        document["kubernetesVersion"] = json!(version);
        document["clusterName"] = json!(self.cluster.cluster_name);
        document["certificatesDir"] = json!(self.pki);
        document["imageRepository"] = json!(self.cluster.image_repository);
        for (name, value) in [
            ("serviceSubnet", &self.cluster.networking.service_subnet),
            ("dnsDomain", &self.cluster.networking.dns_domain),
        ] {
            document["networking"][name] = json!(value);
        }
        if document["etcd"].is_null() {
            document["etcd"] = json!({ "local": { "dataDir": "/var/lib/etcd" } });
        }
    }

    /// Registers this node as its kubelet would.
    pub(super) async fn register(&self, admin: &Rest) -> Result<(), String> {
        self.call.say(format!("[kubelet-check] Registering node {}", self.node_name));
        let registration = Registration::read(self.call.node).ok_or("the kubelet's flags are missing")?;
        registration.register(admin).await.map_err(|error| format!("unable to register the node: {error}"))
    }

    /// Labels and taints this node as a control-plane node.
    pub(super) async fn mark(&self, admin: &Rest, taints: &[Taint]) -> Result<(), String> {
        self.call.say(format!(
            "[mark-control-plane] Marking the node {} as control-plane by adding the label: {CONTROL_PLANE}",
            self.node_name
        ));
        let path = format!("/api/v1/nodes/{}", self.node_name);
        let node = admin.get(&path).await.map_err(|error| error.to_string())?.ok_or("the node is gone")?;
        let mut all: Vec<Value> = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        for taint in taints {
            if !all.iter().any(|found| found["key"] == taint.key.as_str() && found["effect"] == taint.effect.as_str()) {
                all.push(json!({ "key": taint.key, "value": taint.value, "effect": taint.effect }));
            }
        }
        let patch =
            json!({ "metadata": { "labels": { CONTROL_PLANE: "", NO_BALANCER: "" } }, "spec": { "taints": all } });
        admin.merge(&path, &patch).await.map(drop).map_err(|error| error.to_string())
    }
}

async fn tokens(
    plane: &ControlPlane<'_>,
    admin: &Rest,
    init: &InitConfiguration,
    authority: &Authority,
) -> Result<(), String> {
    plane.call.say("[bootstrap-token] Configuring bootstrap tokens, cluster-info ConfigMap, RBAC Roles");
    for token in init.bootstrap_tokens.iter().filter(|token| !token.token.is_empty()) {
        let ttl = match &token.ttl {
            Some(text) => duration(text).ok_or_else(|| format!("invalid ttl {text:?}"))?,
            None => TOKEN_TTL,
        };
        let expiration = match &token.expires {
            Some(given) => Some(given.clone()),
            None if ttl.is_zero() => None,
            None => {
                let end = Timestamp::now()
                    .checked_add(jiff::SignedDuration::try_from(ttl).map_err(|error| error.to_string())?);
                Some(end.map_err(|error| error.to_string())?.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
            }
        };
        let secret = objects::token_secret(token, expiration.as_deref())?;
        admin.ensure("/api/v1/namespaces/kube-system/secrets", &secret).await.map_err(|error| error.to_string())?;
    }
    objects::grant(admin).await?;
    cluster_info::publish(admin, &format!("https://{}", plane.endpoint()), &authority.certificate).await
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn the_service_address_is_the_first_of_the_subnet() {
        for (subnet, expected) in
            [("10.96.0.0/12", "10.96.0.1"), ("10.128.0.0/12,fd00::/112", "10.128.0.1"), ("fd00:10::/112", "fd00:10::1")]
        {
            assert_eq!(first_address(subnet).unwrap().to_string(), expected);
        }
        for subnet in ["", "10.96.0.0", "10.96.0.0/33", "x/8"] {
            assert!(first_address(subnet).is_err(), "{subnet}");
        }
    }
}
