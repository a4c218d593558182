//! `kubeadm join`: discovery over TLS with a pinned CA, a kubelet certificate by token, and the node's registration.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capwasm_pki::Algorithm;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::files::{Files, reason};
use crate::kubeadm::config::{ClusterConfiguration, Documents, JoinConfiguration, Version, duration};
use crate::kubeadm::init::{
    ControlPlane, PORT, control_plane_taints, local_address, node_name, own_version, patches_directory, validity,
};
use crate::kubeadm::kubeconfig::{self, Kubeconfig, User};
use crate::kubeadm::pki;
use crate::kubeadm::{Failure, Flags, cluster_info, objects, paths, preflight, static_pods, versions};
use crate::kubelet::{self, Registration};
use crate::rest::{Credentials, Rest, RestError, Trust};
use crate::shell::Invocation;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
/// kubeadm's default for both timeouts.
const PATIENCE: Duration = Duration::from_secs(300);
const RETRY: Duration = Duration::from_millis(500);
/// Phases that may be left out.
const SKIPPABLE: [&str; 3] = ["preflight", "kubelet-wait-bootstrap", "control-plane-join/mark-control-plane"];

/// The cluster as discovery found it.
struct Found {
    server: String,
    authority_pem: String,
    authority: Vec<u8>,
    /// Token for the kubelet's certificate request.
    token: String,
}

/// Runs the phases of `kubeadm join`.
pub(super) async fn join(call: &Invocation<'_>, flags: &Flags, documents: Documents) -> Result<(), Failure> {
    let Some(join) = documents.join else {
        return Err(Failure::Input("no JoinConfiguration in the configuration file".to_owned()));
    };
    let skipped: Vec<&str> = flags.skipped_phases.iter().chain(&join.skip_phases).map(String::as_str).collect();
    if let Some(phase) = skipped.iter().find(|phase| !SKIPPABLE.contains(phase)) {
        return Err(Failure::Input(format!("the simulated kubeadm cannot skip phase \"{phase}\"")));
    }
    if join.control_plane.is_some() && !call.node.shares_store() {
        return Err(Failure::Input(
            "a further control-plane node needs a store to share: only the simulated engine has one, a capwasm-node container has not".to_owned(),
        ));
    }
    let name = node_name(call.node, &join.node_registration)?;
    check(&join).map_err(Failure::Input)?;
    let ca_path =
        if join.ca_cert_path.is_empty() { format!("{}/ca.crt", paths::PKI) } else { join.ca_cert_path.clone() };

    if !skipped.contains(&"preflight") {
        call.say("[preflight] Running pre-flight checks");
        let findings = preflight::join(call.node.files(), join.control_plane.is_some(), &ca_path);
        for warning in preflight::judge(findings, flags, &join.node_registration.ignore_preflight_errors)? {
            call.complain(warning);
        }
    }
    let patience = join.timeouts.discovery.as_deref().and_then(duration).unwrap_or(PATIENCE);
    let found = discover(call, &join, patience).await.map_err(|problem| Failure::Phase {
        phase: "preflight",
        message: format!("couldn't validate the identity of the API Server: {problem}"),
    })?;
    let fetched = fetch_configuration(call, &found).await.map_err(Failure::phase("preflight"))?;
    let Fetched { cluster, version, kubelet } = fetched;
    let certificate_patience = join.timeouts.tls_bootstrap.as_deref().and_then(duration).unwrap_or(PATIENCE);

    if let Some(control_plane) = &join.control_plane {
        let port = control_plane.local_api_endpoint.bind_port.unwrap_or(PORT);
        let address =
            local_address(call.node, &control_plane.local_api_endpoint.advertise_address).map_err(Failure::Input)?;
        let pki =
            if cluster.certificates_dir.is_empty() { paths::PKI.to_owned() } else { cluster.certificates_dir.clone() };
        let algorithm = pki::algorithm(&cluster.encryption_algorithm).map_err(Failure::Input)?;
        let validity = validity(&cluster).map_err(Failure::Input)?;
        let patches = patches_directory(call, &join.patches);
        let node_name = name.clone();
        let plane = ControlPlane { call, cluster, pki, algorithm, validity, patches, node_name, address, port };
        let taints = join.node_registration.taints.clone().unwrap_or_else(control_plane_taints);
        let authority = control_plane_authority(&plane, &found).map_err(Failure::phase("preflight"))?;
        plane.kubeconfigs(&authority).map_err(Failure::phase("control-plane-prepare/kubeconfig"))?;
        static_pods::write(call.node.files(), &plane.manifests(&[]))
            .map_err(Failure::phase("control-plane-prepare/control-plane"))?;
        plane
            .start_kubelet(&join.node_registration, &taints, &version, &kubelet)
            .map_err(Failure::phase("kubelet-start"))?;
        bootstrap_kubelet(call, &found, &name, &plane.cluster.cluster_name, plane.algorithm, certificate_patience)
            .await
            .map_err(Failure::phase("kubelet-start"))?;
        if plane.cluster.etcd.external.is_none() {
            let members = etcd_members(&plane, &authority).await.map_err(Failure::phase("etcd-join"))?;
            static_pods::write_etcd(call.node.files(), &plane.manifests(&members))
                .map_err(Failure::phase("etcd-join"))?;
        }
        let health = join
            .timeouts
            .control_plane_component_health_check
            .as_deref()
            .and_then(duration)
            .unwrap_or(Duration::from_secs(240));
        let admin = plane.wait(health).await.map_err(Failure::phase("wait-control-plane"))?;
        plane.register(&admin).await.map_err(Failure::phase("kubelet-start"))?;
        if !skipped.contains(&"control-plane-join/mark-control-plane") {
            plane.mark(&admin, &taints).await.map_err(Failure::phase("control-plane-join/mark-control-plane"))?;
        }
        call.node.wake_kubelet().await.map_err(Failure::phase("kubelet-start"))?;
        call.say("\nThis node has joined the cluster and a new control plane instance was created.");
        return Ok(());
    }

    call.node.files().install(&ca_path, found.authority_pem.clone(), 0o644).map_err(|error| Failure::Phase {
        phase: "kubelet-start",
        message: format!("couldn't save the CA certificate: {}", reason(&error)),
    })?;
    let taints = join.node_registration.taints.clone().unwrap_or_default();
    install(call, paths::KUBELET_CONFIG, kubelet, 0o644).map_err(Failure::phase("kubelet-start"))?;
    kubelet::write_flags(call.node, &name, &join.node_registration, &taints, &version)
        .map_err(Failure::phase("kubelet-start"))?;
    let algorithm = pki::algorithm(&cluster.encryption_algorithm).map_err(Failure::Input)?;
    let kubelet = bootstrap_kubelet(call, &found, &name, &cluster.cluster_name, algorithm, certificate_patience)
        .await
        .map_err(Failure::phase("kubelet-start"))?;
    let registration = Registration::read(call.node).ok_or_else(|| Failure::Phase {
        phase: "kubelet-start",
        message: "the kubelet's flags are missing".to_owned(),
    })?;
    registration.register(&kubelet).await.map_err(|error| Failure::Phase {
        phase: "kubelet-start",
        message: format!("unable to register the node: {error}"),
    })?;
    call.node.wake_kubelet().await.map_err(Failure::phase("kubelet-start"))?;
    call.say("\nThis node has joined the cluster:\n* Certificate signing request was sent to apiserver and a response was received.");
    Ok(())
}

/// What can be wrong in the configuration alone.
fn check(join: &JoinConfiguration) -> Result<(), String> {
    match (&join.discovery.bootstrap_token, &join.discovery.file) {
        (Some(_), Some(_)) => {
            Err("discovery: Invalid value: \"\": bootstrapToken and file can not both be set".to_owned())
        }
        (None, None) => Err("discovery: Invalid value: \"\": bootstrapToken or file must be set".to_owned()),
        (Some(token), None) => {
            objects::split_token(&token.token)
                .map_err(|problem| format!("discovery.bootstrapToken.token: Invalid value: \"\": {problem}"))?;
            let valid = token
                .api_server_endpoint
                .rsplit_once(':')
                .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
            if !valid {
                return Err(format!(
                    "discovery.bootstrapToken.apiServerEndpoint: Invalid value: {:?}: must be host:port",
                    token.api_server_endpoint
                ));
            }
            if token.ca_cert_hashes.is_empty() && !token.unsafe_skip_ca_verification {
                return Err("discovery.bootstrapToken: Invalid value: \"\": using token-based discovery without caCertHashes can be unsafe. \
                            Set unsafeSkipCAVerification as true in your kubeadm config file to continue"
                    .to_owned());
            }
            for hash in &token.ca_cert_hashes {
                let hex = hash.strip_prefix("sha256:").unwrap_or_default();
                if hex.len() != 64 || !hex.chars().all(|c| c.is_ascii_hexdigit()) {
                    return Err(format!(
                        "discovery.bootstrapToken.caCertHashes: Invalid value: {hash:?}: expected \"sha256:<64 hex digits>\""
                    ));
                }
            }
            Ok(())
        }
        // Without a token of its own the file's user asks for the kubelet's certificate.
        (None, Some(_)) if join.discovery.tls_bootstrap_token.is_empty() => Ok(()),
        (None, Some(_)) => objects::split_token(&join.discovery.tls_bootstrap_token)
            .map(drop)
            .map_err(|problem| format!("discovery.tlsBootstrapToken: {problem}")),
    }
}

async fn discover(call: &Invocation<'_>, join: &JoinConfiguration, patience: Duration) -> Result<Found, String> {
    let files = call.node.files();
    let tls_token = &join.discovery.tls_bootstrap_token;
    let Some(discovery) = &join.discovery.bootstrap_token else {
        let path = join.discovery.file.as_ref().map(|file| file.kube_config_path.as_str()).unwrap_or_default();
        let given = Kubeconfig::load(files, path)?;
        let token = match given.token() {
            _ if !tls_token.is_empty() => tls_token.clone(),
            Some(token) => token.to_owned(),
            None => {
                return Err(format!(
                    "{path} has no token for its user, and there is no tlsBootstrapToken: the simulated kubeadm knows no other way to ask for a certificate"
                ));
            }
        };
        call.say(format!("[preflight] Discovering the cluster by the file {path}"));
        let rest = Rest::connect(&given.server, &Trust::Authority(&given.authority), &Credentials::Token(&token))
            .map_err(|error| error.to_string())?;
        let deadline = Instant::now() + patience;
        while let Err(error) = rest.send(http::Method::GET, "/version", None).await {
            if Instant::now() + RETRY > deadline {
                return Err(format!("failed to reach the API server that {path} names: {error}"));
            }
            tokio::time::sleep(RETRY).await;
        }
        return Ok(Found {
            server: given.server,
            authority_pem: capwasm_pki::certificate_pem(&given.authority),
            authority: given.authority,
            token,
        });
    };
    let endpoint = format!("https://{}", discovery.api_server_endpoint);
    call.say(format!("[preflight] Discovering the cluster at {endpoint}"));
    let anybody =
        Rest::connect(&endpoint, &Trust::Nobody, &Credentials::Anonymous).map_err(|error| error.to_string())?;
    let deadline = Instant::now() + patience;
    // Fetched without trust; believed only when the token signed it, its CA is the pinned one, and the server proves to have it.
    let info = loop {
        let problem = match anybody.get(cluster_info::PATH).await {
            Ok(Some(info)) => match cluster_info::verify(&info, &discovery.token)? {
                Some(()) => break info,
                None => format!(
                    "the cluster-info ConfigMap does not yet contain a JWS signature for token ID {:?}, will try again",
                    discovery.token.split('.').next().unwrap_or_default()
                ),
            },
            Ok(None) => "configmaps \"cluster-info\" not found".to_owned(),
            Err(error) => error.to_string(),
        };
        if Instant::now() + RETRY > deadline {
            return Err(format!(
                "failed to request the cluster-info ConfigMap: Get \"{endpoint}{}\": {problem}",
                cluster_info::PATH
            ));
        }
        tokio::time::sleep(RETRY).await;
    };
    let text = info["data"]["kubeconfig"].as_str().ok_or("there is no kubeconfig key in the cluster-info ConfigMap")?;
    let published = Kubeconfig::parse(files, text)
        .map_err(|problem| format!("couldn't parse the kubeconfig file in the cluster-info ConfigMap: {problem}"))?;
    let hash = capwasm_pki::public_key_hash(&published.authority).map_err(|error| error.to_string())?;
    if !discovery.unsafe_skip_ca_verification
        && !discovery.ca_cert_hashes.iter().any(|pinned| pinned.eq_ignore_ascii_case(&hash))
    {
        return Err(format!(
            "cluster CA found in cluster-info ConfigMap is invalid: none of the public keys \"{hash}\" are pinned"
        ));
    }
    let token = if tls_token.is_empty() { discovery.token.clone() } else { tls_token.clone() };
    let proven = Rest::connect(&endpoint, &Trust::Authority(&published.authority), &Credentials::Anonymous)
        .map_err(|error| error.to_string())?;
    proven
        .get(cluster_info::PATH)
        .await
        .map_err(|error| format!("the server at {endpoint} does not have a certificate of the pinned CA: {error}"))?;
    Ok(Found {
        server: published.server,
        authority_pem: capwasm_pki::certificate_pem(&published.authority),
        authority: published.authority,
        token,
    })
}

/// What a node learns from the cluster before it joins.
struct Fetched {
    cluster: ClusterConfiguration,
    version: String,
    /// Configuration of its kubelet, YAML.
    kubelet: String,
}

/// Reads the cluster's configuration with the token, which proves that the token is good.
async fn fetch_configuration(call: &Invocation<'_>, found: &Found) -> Result<Fetched, String> {
    let rest = Rest::connect(&found.server, &Trust::Authority(&found.authority), &Credentials::Token(&found.token))
        .map_err(|error| error.to_string())?;
    call.say("[preflight] Reading configuration from the \"kubeadm-config\" ConfigMap in namespace \"kube-system\"...");
    let map = config_map(&rest, &found.server, "kubeadm-config").await?;
    let text = map["data"]["ClusterConfiguration"]
        .as_str()
        .ok_or("the kubeadm-config ConfigMap has no ClusterConfiguration")?;
    let (cluster, _) =
        Documents::parse(text)?.cluster.ok_or("the kubeadm-config ConfigMap has no ClusterConfiguration")?;
    let version = cluster.kubernetes_version.clone();
    let wanted = Version::parse(&version)?;
    if let Some(own) = own_version(call.node)? {
        versions::deployable(&own, &wanted)?;
    }
    call.say(
        "[kubelet-start] Reading configuration from the \"kubelet-config\" ConfigMap in namespace \"kube-system\"...",
    );
    let map = config_map(&rest, &found.server, "kubelet-config").await?;
    let kubelet =
        map["data"]["kubelet"].as_str().ok_or("the kubelet-config ConfigMap has no key \"kubelet\"")?.to_owned();
    if !cluster.proxy.disabled {
        match rest.get("/api/v1/namespaces/kube-system/configmaps/kube-proxy").await {
            // Not installed, or not by kubeadm: a node can do without.
            Ok(_) => {}
            Err(error) if error.code() == Some(403) => {}
            Err(error) => {
                return Err(format!("unable to fetch the kube-proxy ConfigMap: failed to get config map: {error}"));
            }
        }
    }
    Ok(Fetched { cluster, version, kubelet })
}

async fn config_map(rest: &Rest, server: &str, name: &str) -> Result<Value, String> {
    let path = format!("/api/v1/namespaces/kube-system/configmaps/{name}");
    match rest.get(&path).await {
        Ok(Some(map)) => Ok(map),
        Ok(None) => Err(format!("unable to fetch the {name} ConfigMap: configmaps {name:?} not found")),
        Err(error @ RestError::Status { .. }) => {
            Err(format!("unable to fetch the {name} ConfigMap: failed to get config map: {error}"))
        }
        Err(error) => Err(format!("unable to fetch the {name} ConfigMap: Get \"{server}{path}\": {error}")),
    }
}

/// Makes this node's member of etcd one of those that are there; all of them with their peer URLs.
async fn etcd_members(plane: &ControlPlane<'_>, authority: &pki::Authority) -> Result<Vec<(String, String)>, String> {
    plane.call.say("[etcd] Announced new etcd member joining to the existing etcd cluster");
    let peer_url = plane.manifests(&[]).peer_url();
    let joined = plane.call.node.join_etcd(&authority.der, &plane.node_name, &peer_url).await;
    joined.map_err(|problem| format!("error creating local etcd static pod manifest file: {problem}"))
}

fn install(call: &Invocation<'_>, path: &str, text: String, mode: u32) -> Result<(), String> {
    call.node.files().install(path, text, mode).map_err(|error| format!("couldn't write {path}: {}", reason(&error)))
}

/// The certificates that a joining control-plane node must have got beforehand.
fn control_plane_authority(plane: &ControlPlane<'_>, found: &Found) -> Result<pki::Authority, String> {
    let unmet = |problem: String| {
        format!(
            "\nOne or more conditions for hosting a new control plane instance is not satisfied.\n\n{problem}\n\nPlease ensure that:\n\
             * The cluster has a stable controlPlaneEndpoint address.\n\
             * The certificates that must be shared among control plane instances are provided.\n"
        )
    };
    if plane.cluster.control_plane_endpoint.is_empty() {
        return Err(unmet("unable to add a new control plane instance to a cluster that doesn't have a stable controlPlaneEndpoint address".to_owned()));
    }
    let files = plane.call.node.files();
    for name in ["ca.crt", "ca.key", "sa.key", "front-proxy-ca.crt"] {
        let path = format!("{}/{name}", plane.pki);
        if !files.exists(&path) {
            return Err(unmet(format!("failure loading {name}: open {path}: no such file or directory")));
        }
    }
    let authority = plane.certificates(false).map_err(unmet)?;
    if authority.der == found.authority {
        Ok(authority)
    } else {
        Err(unmet("the CA certificate on this node is not the cluster's".to_owned()))
    }
}

/// Gets a client certificate for the kubelet by its token, writes kubelet.conf, and returns the kubelet's client.
async fn bootstrap_kubelet(
    call: &Invocation<'_>,
    found: &Found,
    name: &str,
    cluster: &str,
    algorithm: Algorithm,
    patience: Duration,
) -> Result<Rest, String> {
    let files: &dyn Files = call.node.files();
    let install = |path: &str, text: String| {
        files.install(path, text, 0o600).map_err(|error| format!("couldn't write {path}: {}", reason(&error)))
    };
    let bootstrap = kubeconfig::render(
        cluster,
        &found.server,
        &found.authority_pem,
        "tls-bootstrap-token-user",
        &User::Token(&found.token),
    );
    install(paths::BOOTSTRAP_KUBELET, bootstrap)?;
    call.say("[kubelet-start] Waiting for the kubelet to perform the TLS Bootstrap...");
    let rest = Kubeconfig::load(files, paths::BOOTSTRAP_KUBELET)?.client()?;
    let request = pki::kubelet_request(name, algorithm)?;
    let certificate = signed(&rest, &request.certificate, patience).await?;
    install(paths::KUBELET_CERTIFICATE, format!("{certificate}{}", request.key))?;
    let user = format!("system:node:{name}");
    let text = kubeconfig::render(
        cluster,
        &found.server,
        &found.authority_pem,
        &user,
        &User::File(paths::KUBELET_CERTIFICATE),
    );
    install(paths::KUBELET, text)?;
    files
        .remove(paths::BOOTSTRAP_KUBELET)
        .map_err(|error| format!("couldn't remove {}: {}", paths::BOOTSTRAP_KUBELET, reason(&error)))?;
    Kubeconfig::load(files, paths::KUBELET)?.client()
}

/// Posts a certificate request and waits until it is signed.
async fn signed(rest: &Rest, request: &str, patience: Duration) -> Result<String, String> {
    let object = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": { "generateName": "csr-" },
        "spec": {
            "request": STANDARD.encode(request),
            "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
            "usages": ["digital signature", "client auth"],
        },
    });
    let created = rest
        .create(REQUESTS, &object)
        .await
        .map_err(|error| format!("cannot create certificate signing request: {error}"))?;
    let name = created["metadata"]["name"].as_str().ok_or("the certificate signing request has no name")?.to_owned();
    let path = format!("{REQUESTS}/{name}");
    let deadline = Instant::now() + patience;
    let mut current = created;
    loop {
        if let Some(certificate) = current["status"]["certificate"].as_str().filter(|text| !text.is_empty()) {
            let bytes = STANDARD.decode(certificate).map_err(|_| "the signed certificate is not base64")?;
            return String::from_utf8(bytes).map_err(|_| "the signed certificate is not PEM".to_owned());
        }
        if let Some(refused) = refusal(&current) {
            return Err(format!("certificate signing request {name} was refused: {refused}"));
        }
        if Instant::now() > deadline {
            return Err(format!("timed out waiting for certificate signing request {name} to be signed"));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        current = rest
            .get(&path)
            .await
            .map_err(|error| error.to_string())?
            .ok_or("the certificate signing request is gone")?;
    }
}

fn refusal(request: &Value) -> Option<String> {
    let conditions = request["status"]["conditions"].as_array()?;
    let refused = conditions.iter().find(|condition| condition["type"] == "Denied" || condition["type"] == "Failed")?;
    Some(refused["message"].as_str().unwrap_or("no reason given").to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::field_reassign_with_default,
        reason = "tests"
    )]
    use super::*;
    use crate::kubeadm::config::TokenDiscovery;

    #[test]
    fn wrong_discovery_is_refused_before_anything_is_asked() {
        let mut good = TokenDiscovery::default();
        good.token = "abcdef.0123456789abcdef".into();
        good.api_server_endpoint = "127.0.0.1:6443".into();
        good.ca_cert_hashes = vec![format!("sha256:{}", "a".repeat(64))];
        let with = |change: fn(&mut TokenDiscovery)| {
            let mut discovery = good.clone();
            change(&mut discovery);
            let mut join = JoinConfiguration::default();
            join.discovery.bootstrap_token = Some(discovery);
            check(&join)
        };
        assert_eq!(with(|_| {}), Ok(()));
        assert!(with(|d| d.token = "ABC".into()).unwrap_err().contains("was not of the form"));
        assert!(with(|d| d.api_server_endpoint = "nowhere".into()).unwrap_err().contains("apiServerEndpoint"));
        assert!(with(|d| d.ca_cert_hashes.clear()).unwrap_err().contains("unsafeSkipCAVerification"));
        assert!(with(|d| d.ca_cert_hashes = vec!["sha256:12".into()]).unwrap_err().contains("caCertHashes"));
        assert!(check(&JoinConfiguration::default()).unwrap_err().contains("must be set"));
    }
}
