//! The addons that `kubeadm init` installs: kube-proxy and CoreDNS. Objects only: a simulated node runs no pods.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};

use crate::kubeadm::config::ClusterConfiguration;
use crate::kubeadm::versions;
use crate::rest::Rest;

const RBAC: &str = "rbac.authorization.k8s.io";
const SYSTEM: &str = "kube-system";

fn image(cluster: &ClusterConfiguration, default_path: &str, given: [&str; 2], tag: &str) -> String {
    let [repository, given_tag] = given;
    let base = default_path.rsplit('/').next().unwrap_or_default();
    let name = match (repository, cluster.image_repository.as_str()) {
        // Upstream's own registry has it one level deeper.
        ("", "registry.k8s.io") => format!("registry.k8s.io/{default_path}"),
        ("", own) => format!("{own}/{base}"),
        (given, _) => format!("{given}/{base}"),
    };
    format!("{name}:{}", if given_tag.is_empty() { tag } else { given_tag })
}

fn account(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name, "namespace": SYSTEM } })
}

fn binding(name: &str, role: &str, account: &str) -> Value {
    json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": { "name": name },
        "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": role },
        "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": SYSTEM }],
    })
}

pub(super) async fn kube_proxy(
    rest: &Rest,
    cluster: &ClusterConfiguration,
    endpoint: &str,
    configuration: Option<&Value>,
) -> Result<(), String> {
    let mut settings = configuration.cloned().unwrap_or_else(|| json!({}));
    settings["apiVersion"] = json!("kubeproxy.config.k8s.io/v1alpha1");
    settings["kind"] = json!("KubeProxyConfiguration");
    if settings["clusterCIDR"].is_null() && !cluster.networking.pod_subnet.is_empty() {
        settings["clusterCIDR"] = json!(cluster.networking.pod_subnet);
    }
    if settings["clientConnection"]["kubeconfig"].is_null() {
        settings["clientConnection"]["kubeconfig"] = json!("/var/lib/kube-proxy/kubeconfig.conf");
    }
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "default",
        "clusters": [{ "name": "default", "cluster": {
            "certificate-authority": "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt", "server": format!("https://{endpoint}"),
        } }],
        "contexts": [{ "name": "default", "context": { "cluster": "default", "namespace": "default", "user": "default" } }],
        "users": [{ "name": "default", "user": { "tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token" } }],
    });
    let yaml = |value: &Value| serde_saphyr::to_string(value).map_err(|error| format!("unable to write YAML: {error}"));
    let image = image(cluster, "kube-proxy", ["", ""], &cluster.kubernetes_version);
    let labels = json!({ "k8s-app": "kube-proxy" });
    let host_path =
        |name: &str, path: &str, kind: &str| json!({ "name": name, "hostPath": { "path": path, "type": kind } });
    let objects = [
        ("/api/v1/namespaces/kube-system/serviceaccounts".to_owned(), account("kube-proxy")),
        (
            "/api/v1/namespaces/kube-system/configmaps".to_owned(),
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": "kube-proxy", "namespace": SYSTEM, "labels": { "app": "kube-proxy" } },
                "data": { "kubeconfig.conf": yaml(&kubeconfig)?, "config.conf": yaml(&settings)? },
            }),
        ),
        (
            "/apis/apps/v1/namespaces/kube-system/daemonsets".to_owned(),
            json!({
                "apiVersion": "apps/v1", "kind": "DaemonSet",
                "metadata": { "name": "kube-proxy", "namespace": SYSTEM, "labels": labels },
                "spec": {
                    "selector": { "matchLabels": labels }, "updateStrategy": { "type": "RollingUpdate" },
                    "template": {
                        "metadata": { "labels": labels },
                        "spec": {
                            "priorityClassName": "system-node-critical", "hostNetwork": true, "serviceAccountName": "kube-proxy",
                            "nodeSelector": { "kubernetes.io/os": "linux" }, "tolerations": [{ "operator": "Exists" }],
                            "containers": [{
                                "name": "kube-proxy", "image": image, "imagePullPolicy": "IfNotPresent",
                                "command": ["/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/config.conf", "--hostname-override=$(NODE_NAME)"],
                                "env": [{ "name": "NODE_NAME", "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } } }],
                                "securityContext": { "privileged": true },
                                "volumeMounts": [
                                    { "name": "kube-proxy", "mountPath": "/var/lib/kube-proxy" },
                                    { "name": "xtables-lock", "mountPath": "/run/xtables.lock" },
                                    { "name": "lib-modules", "mountPath": "/lib/modules", "readOnly": true },
                                ],
                            }],
                            "volumes": [
                                { "name": "kube-proxy", "configMap": { "name": "kube-proxy" } },
                                host_path("xtables-lock", "/run/xtables.lock", "FileOrCreate"),
                                host_path("lib-modules", "/lib/modules", ""),
                            ],
                        },
                    },
                },
            }),
        ),
        (
            format!("/apis/{RBAC}/v1/clusterrolebindings"),
            binding("kubeadm:node-proxier", "system:node-proxier", "kube-proxy"),
        ),
        (
            format!("/apis/{RBAC}/v1/namespaces/kube-system/roles"),
            json!({
                "apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": { "name": "kube-proxy", "namespace": SYSTEM },
                "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["kube-proxy"], "verbs": ["get"] }],
            }),
        ),
        (
            format!("/apis/{RBAC}/v1/namespaces/kube-system/rolebindings"),
            json!({
                "apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding", "metadata": { "name": "kube-proxy", "namespace": SYSTEM },
                "roleRef": { "apiGroup": RBAC, "kind": "Role", "name": "kube-proxy" },
                "subjects": [{ "apiGroup": RBAC, "kind": "Group", "name": super::objects::NODE_TOKENS }],
            }),
        ),
    ];
    create(rest, objects).await
}

/// The address of Service `kube-dns`: the tenth of the subnet.
pub(super) fn dns_address(cluster: &ClusterConfiguration) -> Result<String, String> {
    Ok(match super::init::first_address(&cluster.networking.service_subnet)? {
        IpAddr::V4(first) => Ipv4Addr::from(u32::from(first).saturating_add(9)).to_string(),
        IpAddr::V6(first) => Ipv6Addr::from(u128::from(first).saturating_add(9)).to_string(),
    })
}

pub(super) async fn coredns(rest: &Rest, cluster: &ClusterConfiguration) -> Result<(), String> {
    let domain = &cluster.networking.dns_domain;
    let corefile = format!(
        ".:53 {{\n    errors\n    health {{\n       lameduck 5s\n    }}\n    ready\n    kubernetes {domain} in-addr.arpa ip6.arpa {{\n       \
         pods insecure\n       fallthrough in-addr.arpa ip6.arpa\n       ttl 30\n    }}\n    prometheus :9153\n    forward . /etc/resolv.conf {{\n       \
         max_concurrent 1000\n    }}\n    cache 30 {{\n       disable success {domain}\n       disable denial {domain}\n    }}\n    loop\n    reload\n    loadbalance\n}}\n"
    );
    let given = [cluster.dns.image_repository.as_str(), cluster.dns.image_tag.as_str()];
    let image = image(cluster, "coredns/coredns", given, versions::coredns(&cluster.kubernetes_version));
    let labels = json!({ "k8s-app": "kube-dns" });
    let port = |name: &str, number: u16, protocol: &str| json!({ "name": name, "port": number, "protocol": protocol, "targetPort": number });
    let container_port = |name: &str, number: u16, protocol: &str| json!({ "name": name, "containerPort": number, "protocol": protocol });
    let mut service_labels = labels.clone();
    service_labels["kubernetes.io/cluster-service"] = json!("true");
    service_labels["kubernetes.io/name"] = json!("CoreDNS");
    let objects = [
        ("/api/v1/namespaces/kube-system/serviceaccounts".to_owned(), account("coredns")),
        (
            "/api/v1/namespaces/kube-system/configmaps".to_owned(),
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "coredns", "namespace": SYSTEM },
                "data": { "Corefile": corefile },
            }),
        ),
        (
            format!("/apis/{RBAC}/v1/clusterroles"),
            json!({
                "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": { "name": "system:coredns" },
                "rules": [
                    { "apiGroups": [""], "resources": ["endpoints", "services", "pods", "namespaces"], "verbs": ["list", "watch"] },
                    { "apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"] },
                ],
            }),
        ),
        (format!("/apis/{RBAC}/v1/clusterrolebindings"), binding("system:coredns", "system:coredns", "coredns")),
        (
            "/apis/apps/v1/namespaces/kube-system/deployments".to_owned(),
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": { "name": "coredns", "namespace": SYSTEM, "labels": labels },
                "spec": {
                    "replicas": 2, "selector": { "matchLabels": labels },
                    "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 1 } },
                    "template": {
                        "metadata": { "labels": labels },
                        "spec": {
                            "priorityClassName": "system-cluster-critical", "serviceAccountName": "coredns", "dnsPolicy": "Default",
                            "nodeSelector": { "kubernetes.io/os": "linux" },
                            "tolerations": [
                                { "key": "CriticalAddonsOnly", "operator": "Exists" },
                                { "key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule" },
                            ],
                            "containers": [{
                                "name": "coredns", "image": image, "imagePullPolicy": "IfNotPresent", "args": ["-conf", "/etc/coredns/Corefile"],
                                "ports": [container_port("dns", 53, "UDP"), container_port("dns-tcp", 53, "TCP"), container_port("metrics", 9153, "TCP")],
                                "resources": { "limits": { "memory": "170Mi" }, "requests": { "cpu": "100m", "memory": "70Mi" } },
                                "volumeMounts": [{ "name": "config-volume", "mountPath": "/etc/coredns", "readOnly": true }],
                            }],
                            "volumes": [{ "name": "config-volume", "configMap": {
                                "name": "coredns", "items": [{ "key": "Corefile", "path": "Corefile" }],
                            } }],
                        },
                    },
                },
            }),
        ),
        (
            "/api/v1/namespaces/kube-system/services".to_owned(),
            json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": { "name": "kube-dns", "namespace": SYSTEM, "labels": service_labels },
                "spec": {
                    "clusterIP": dns_address(cluster)?, "selector": labels,
                    "ports": [port("dns", 53, "UDP"), port("dns-tcp", 53, "TCP"), port("metrics", 9153, "TCP")],
                },
            }),
        ),
    ];
    create(rest, objects).await
}

async fn create<const N: usize>(rest: &Rest, objects: [(String, Value); N]) -> Result<(), String> {
    // One after the other: over HTTP/1 each request at the same time would be a connection of its own.
    for (collection, object) in objects {
        let name = &object["metadata"]["name"];
        let ensured = rest.ensure(&collection, &object).await;
        ensured.map_err(|error| format!("unable to create {collection}/{name}: {error}"))?;
    }
    Ok(())
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

    #[test]
    fn images_come_from_the_registry_that_the_configuration_names() {
        let mut cluster = ClusterConfiguration::default();
        cluster.image_repository = "registry.k8s.io".into();
        assert_eq!(image(&cluster, "coredns/coredns", ["", ""], "v1"), "registry.k8s.io/coredns/coredns:v1");
        assert_eq!(image(&cluster, "coredns/coredns", ["r/x", "v2"], "v1"), "r/x/coredns:v2");
        cluster.image_repository = "mirror".into();
        assert_eq!(image(&cluster, "coredns/coredns", ["", ""], "v1"), "mirror/coredns:v1");
    }
}
