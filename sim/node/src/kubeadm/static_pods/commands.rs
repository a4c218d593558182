//! Command lines of a control plane's components. Pure.

use super::Plan;
use crate::kubeadm::config::Argument;
use crate::kubeadm::paths;

type Flag = (String, String);

fn flag(name: &str, value: impl Into<String>) -> Flag {
    (name.to_owned(), value.into())
}

/// A command with its flags in order; one that the configuration gives takes the place of the default.
fn command(name: &str, defaults: Vec<Flag>, extra: &[Argument]) -> Vec<String> {
    let given = |flag: &str| extra.iter().any(|argument| argument.name == flag);
    let mut flags: Vec<Flag> = defaults.into_iter().filter(|(name, _)| !given(name)).collect();
    flags.extend(extra.iter().map(|argument| flag(&argument.name, argument.value.as_str())));
    // Stable: flags that are given several times stay in their order.
    flags.sort_by(|(one, _), (other, _)| one.cmp(other));
    std::iter::once(name.to_owned()).chain(flags.into_iter().map(|(name, value)| format!("--{name}={value}"))).collect()
}

pub(super) fn api_server(plan: &Plan<'_>) -> Vec<String> {
    let (cluster, pki) = (plan.cluster, plan.pki);
    let in_pki = |name: &str| format!("{pki}/{name}");
    let mut flags = vec![
        flag("advertise-address", plan.address),
        flag("allow-privileged", "true"),
        flag("authorization-mode", "Node,RBAC"),
        flag("client-ca-file", in_pki("ca.crt")),
        flag("enable-admission-plugins", "NodeRestriction"),
        flag("enable-bootstrap-token-auth", "true"),
        flag("kubelet-client-certificate", in_pki("apiserver-kubelet-client.crt")),
        flag("kubelet-client-key", in_pki("apiserver-kubelet-client.key")),
        flag("kubelet-preferred-address-types", "InternalIP,ExternalIP,Hostname"),
        flag("proxy-client-cert-file", in_pki("front-proxy-client.crt")),
        flag("proxy-client-key-file", in_pki("front-proxy-client.key")),
        flag("requestheader-allowed-names", "front-proxy-client"),
        flag("requestheader-client-ca-file", in_pki("front-proxy-ca.crt")),
        flag("requestheader-extra-headers-prefix", "X-Remote-Extra-"),
        flag("requestheader-group-headers", "X-Remote-Group"),
        flag("requestheader-username-headers", "X-Remote-User"),
        flag("secure-port", plan.port.to_string()),
        flag("service-account-issuer", format!("https://kubernetes.default.svc.{}", cluster.networking.dns_domain)),
        flag("service-account-key-file", in_pki("sa.pub")),
        flag("service-account-signing-key-file", in_pki("sa.key")),
        flag("service-cluster-ip-range", cluster.networking.service_subnet.as_str()),
        flag("tls-cert-file", in_pki("apiserver.crt")),
        flag("tls-private-key-file", in_pki("apiserver.key")),
    ];
    match &cluster.etcd.external {
        Some(external) => {
            flags.push(flag("etcd-servers", external.endpoints.join(",")));
            for (name, file) in [
                ("etcd-cafile", &external.ca_file),
                ("etcd-certfile", &external.cert_file),
                ("etcd-keyfile", &external.key_file),
            ] {
                if !file.is_empty() {
                    flags.push(flag(name, file.as_str()));
                }
            }
        }
        None => flags.extend([
            flag("etcd-cafile", in_pki("etcd/ca.crt")),
            flag("etcd-certfile", in_pki("apiserver-etcd-client.crt")),
            flag("etcd-keyfile", in_pki("apiserver-etcd-client.key")),
            flag("etcd-servers", "https://127.0.0.1:2379"),
        ]),
    }
    command("kube-apiserver", flags, &cluster.api_server.extra_args)
}

pub(super) fn controller_manager(plan: &Plan<'_>) -> Vec<String> {
    let (cluster, pki) = (plan.cluster, plan.pki);
    let kubeconfig = paths::CONTROLLER_MANAGER;
    let mut flags = vec![
        flag("authentication-kubeconfig", kubeconfig),
        flag("authorization-kubeconfig", kubeconfig),
        flag("bind-address", plan.localhost()),
        flag("client-ca-file", format!("{pki}/ca.crt")),
        flag("cluster-name", cluster.cluster_name.as_str()),
        flag("cluster-signing-cert-file", format!("{pki}/ca.crt")),
        flag("cluster-signing-key-file", format!("{pki}/ca.key")),
        flag("controllers", "*,bootstrapsigner,tokencleaner"),
        flag("kubeconfig", kubeconfig),
        flag("leader-elect", "true"),
        flag("requestheader-client-ca-file", format!("{pki}/front-proxy-ca.crt")),
        flag("root-ca-file", format!("{pki}/ca.crt")),
        flag("service-account-private-key-file", format!("{pki}/sa.key")),
        flag("use-service-account-credentials", "true"),
    ];
    if !cluster.networking.pod_subnet.is_empty() {
        flags.push(flag("allocate-node-cidrs", "true"));
        flags.push(flag("cluster-cidr", cluster.networking.pod_subnet.as_str()));
        flags.push(flag("service-cluster-ip-range", cluster.networking.service_subnet.as_str()));
    }
    command("kube-controller-manager", flags, &cluster.controller_manager.extra_args)
}

pub(super) fn scheduler(plan: &Plan<'_>) -> Vec<String> {
    let flags = vec![
        flag("authentication-kubeconfig", paths::SCHEDULER),
        flag("authorization-kubeconfig", paths::SCHEDULER),
        flag("bind-address", plan.localhost()),
        flag("kubeconfig", paths::SCHEDULER),
        flag("leader-elect", "true"),
    ];
    command("kube-scheduler", flags, &plan.cluster.scheduler.extra_args)
}

pub(super) fn etcd(plan: &Plan<'_>, data: &str, extra: &[Argument]) -> Vec<String> {
    let (host, pki) = (plan.host(), plan.pki);
    let in_pki = |name: &str| format!("{pki}/etcd/{name}");
    let local = if plan.address.contains(':') { "[::1]" } else { "127.0.0.1" };
    let mut flags = vec![
        flag("advertise-client-urls", format!("https://{host}:2379")),
        flag("cert-file", in_pki("server.crt")),
        flag("client-cert-auth", "true"),
        flag("data-dir", data),
        flag("initial-advertise-peer-urls", plan.peer_url()),
        flag("key-file", in_pki("server.key")),
        flag("listen-client-urls", format!("https://{local}:2379,https://{host}:2379")),
        flag("listen-metrics-urls", format!("http://{local}:2381")),
        flag("listen-peer-urls", plan.peer_url()),
        flag("name", plan.node),
        flag("peer-cert-file", in_pki("peer.crt")),
        flag("peer-client-cert-auth", "true"),
        flag("peer-key-file", in_pki("peer.key")),
        flag("peer-trusted-ca-file", in_pki("ca.crt")),
        flag("snapshot-count", "10000"),
        flag("trusted-ca-file", in_pki("ca.crt")),
    ];
    if plan.members.is_empty() {
        flags.push(flag("initial-cluster", format!("{}={}", plan.node, plan.peer_url())));
    } else {
        let members: Vec<String> = plan.members.iter().map(|(name, url)| format!("{name}={url}")).collect();
        flags.push(flag("initial-cluster", members.join(",")));
        flags.push(flag("initial-cluster-state", "existing"));
    }
    command("etcd", flags, extra)
}
