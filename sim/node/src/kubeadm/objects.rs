//! Objects that `kubeadm init` leaves in a cluster.

use serde_json::{Value, json};

use crate::kubeadm::config::BootstrapToken;
use crate::rest::{Rest, RestError};

const RBAC: &str = "rbac.authorization.k8s.io";
/// Group of who joins with a token.
pub(super) const NODE_TOKENS: &str = "system:bootstrappers:kubeadm:default-node-token";

fn config_map(namespace: &str, name: &str, data: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": namespace }, "data": data })
}

/// ConfigMaps that nodes and tools read the cluster's configuration from.
pub(super) async fn upload_configuration(rest: &Rest, cluster: &Value, kubelet: &str) -> Result<(), String> {
    let yaml = |value: &Value| serde_saphyr::to_string(value).map_err(|error| format!("unable to write YAML: {error}"));
    let collection = "/api/v1/namespaces/kube-system/configmaps";
    let maps = [
        config_map("kube-system", "kubeadm-config", json!({ "ClusterConfiguration": yaml(cluster)? })),
        config_map("kube-system", "kubelet-config", json!({ "kubelet": kubelet })),
    ];
    for map in maps {
        rest.ensure(collection, &map).await.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Roles and bindings with which nodes join.
pub(super) async fn grant(rest: &Rest) -> Result<(), String> {
    let group = |name: &str| json!([{ "apiGroup": RBAC, "kind": "Group", "name": name }]);
    let cluster_binding = |name: &str, role: &str, group_name: &str| {
        json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": { "name": name },
            "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": role }, "subjects": group(group_name),
        })
    };
    let role = |name: &str, namespace: &str, configuration: &[&str]| {
        json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": { "name": name, "namespace": namespace },
            "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "resourceNames": configuration, "verbs": ["get"] }],
        })
    };
    let binding = |name: &str, namespace: &str, subjects: Value| {
        json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding", "metadata": { "name": name, "namespace": namespace },
            "roleRef": { "apiGroup": RBAC, "kind": "Role", "name": name }, "subjects": subjects,
        })
    };
    let base = format!("/apis/{RBAC}/v1");
    let (cluster_roles, cluster_bindings) = (format!("{base}/clusterroles"), format!("{base}/clusterrolebindings"));
    let in_namespace = |namespace: &str, plural: &str| format!("{base}/namespaces/{namespace}/{plural}");
    let readers = json!([
        { "apiGroup": RBAC, "kind": "Group", "name": "system:nodes" },
        { "apiGroup": RBAC, "kind": "Group", "name": NODE_TOKENS },
    ]);
    let anonymous = json!([{ "apiGroup": RBAC, "kind": "User", "name": "system:anonymous" }]);
    let get_nodes = json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": { "name": "kubeadm:get-nodes" },
        "rules": [{ "apiGroups": [""], "resources": ["nodes"], "verbs": ["get"] }],
    });
    // kube-apiserver itself makes this role when it starts; nothing else here would.
    let cluster_admin = json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
        "metadata": { "name": "cluster-admin", "labels": { "kubernetes.io/bootstrapping": "rbac-defaults" } },
        "rules": [
            { "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] },
            { "nonResourceURLs": ["*"], "verbs": ["*"] },
        ],
    });
    let nodes_config = |name: &str, verbs: &[&str], resource: &str| {
        json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
            "metadata": { "name": name, "labels": { "kubernetes.io/bootstrapping": "rbac-defaults" } },
            "rules": [{ "apiGroups": ["certificates.k8s.io"], "resources": [resource], "verbs": verbs }],
        })
    };
    let signing = "system:certificates.k8s.io:certificatesigningrequests";
    let objects = [
        (cluster_roles.clone(), cluster_admin),
        (
            cluster_roles.clone(),
            nodes_config("system:node-bootstrapper", &["create", "get", "list", "watch"], "certificatesigningrequests"),
        ),
        (
            cluster_roles.clone(),
            nodes_config(&format!("{signing}:nodeclient"), &["create"], "certificatesigningrequests/nodeclient"),
        ),
        (
            cluster_roles.clone(),
            nodes_config(
                &format!("{signing}:selfnodeclient"),
                &["create"],
                "certificatesigningrequests/selfnodeclient",
            ),
        ),
        (
            cluster_bindings.clone(),
            cluster_binding("kubeadm:cluster-admins", "cluster-admin", "kubeadm:cluster-admins"),
        ),
        (cluster_roles, get_nodes),
        (cluster_bindings.clone(), cluster_binding("kubeadm:get-nodes", "kubeadm:get-nodes", NODE_TOKENS)),
        (
            cluster_bindings.clone(),
            cluster_binding("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", NODE_TOKENS),
        ),
        (
            cluster_bindings.clone(),
            cluster_binding(
                "kubeadm:node-autoapprove-bootstrap",
                "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
                NODE_TOKENS,
            ),
        ),
        (
            cluster_bindings,
            cluster_binding(
                "kubeadm:node-autoapprove-certificate-rotation",
                "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
                "system:nodes",
            ),
        ),
        (
            in_namespace("kube-system", "roles"),
            role("kubeadm:nodes-kubeadm-config", "kube-system", &["kubeadm-config"]),
        ),
        (
            in_namespace("kube-system", "rolebindings"),
            binding("kubeadm:nodes-kubeadm-config", "kube-system", readers.clone()),
        ),
        (in_namespace("kube-system", "roles"), role("kubeadm:kubelet-config", "kube-system", &["kubelet-config"])),
        (in_namespace("kube-system", "rolebindings"), binding("kubeadm:kubelet-config", "kube-system", readers)),
        (
            in_namespace("kube-public", "roles"),
            role("kubeadm:bootstrap-signer-clusterinfo", "kube-public", &["cluster-info"]),
        ),
        (
            in_namespace("kube-public", "rolebindings"),
            binding("kubeadm:bootstrap-signer-clusterinfo", "kube-public", anonymous),
        ),
    ];
    for (collection, object) in objects {
        rest.ensure(&collection, &object).await.map_err(|error: RestError| error.to_string())?;
    }
    Ok(())
}

/// Splits a bootstrap token into id and secret.
///
/// # Errors
/// When it has another form.
pub(super) fn split_token(token: &str) -> Result<(&str, &str), String> {
    let part = |text: &str, length: usize| {
        text.len() == length && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    match token.split_once('.') {
        Some((id, secret)) if part(id, 6) && part(secret, 16) => Ok((id, secret)),
        _ => Err(format!(
            "the bootstrap token {token:?} was not of the form \"\\\\A([a-z0-9]{{6}})\\\\.([a-z0-9]{{16}})\\\\z\""
        )),
    }
}

/// The Secret of a bootstrap token. `expiration` is RFC 3339.
pub(super) fn token_secret(token: &BootstrapToken, expiration: Option<&str>) -> Result<Value, String> {
    let (id, secret) = split_token(&token.token)?;
    let groups = if token.groups.is_empty() { NODE_TOKENS.to_owned() } else { token.groups.join(",") };
    let mut data = json!({ "token-id": id, "token-secret": secret, "auth-extra-groups": groups });
    for usage in ["signing", "authentication"] {
        if token.usages.is_empty() || token.usages.iter().any(|given| given == usage) {
            data[format!("usage-bootstrap-{usage}")] = json!("true");
        }
    }
    if let Some(expiration) = expiration {
        data["expiration"] = json!(expiration);
    }
    if !token.description.is_empty() {
        data["description"] = json!(token.description);
    }
    Ok(json!({
        "apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
        "metadata": { "name": format!("bootstrap-token-{id}"), "namespace": "kube-system" },
        "stringData": data,
    }))
}
