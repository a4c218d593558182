//! Authorisation, in this order:
//!
//! 1. `system:masters` may do everything.
//! 2. Every user may read discovery, OpenAPI, version and health, and ask about itself (self-subject reviews).
//! 3. Bootstrap tokens and nodes have the fixed rules of [`RULES`], which follow what kube-apiserver and the node authorizer
//!    grant by themselves; what kubeadm grants to tokens is in its RBAC objects.
//! 4. Everyone else has what the stored RBAC objects grant, read when a request comes this far.

use http::Method;
use serde_json::Value;

use crate::identity::{AUTHENTICATED, BOOTSTRAPPERS, Identity, MASTERS, NODES};
use crate::registry::{ListRequest, Registry, parse};
use crate::request::Target;
use crate::status::{ApiError, ApiResult};
use crate::turn;

/// A fixed rule: group of users, verbs, API group, resources (`*`: all), namespace, name.
struct Rule {
    users: &'static str,
    verbs: &'static [&'static str],
    group: &'static str,
    resources: &'static [&'static str],
    namespace: Option<&'static str>,
    names: &'static [&'static str],
}

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];

const fn rule(
    users: &'static str,
    verbs: &'static [&'static str],
    group: &'static str,
    resources: &'static [&'static str],
) -> Rule {
    Rule { users, verbs, group, resources, namespace: None, names: &[] }
}

static RULES: &[Rule] = &[
    rule(BOOTSTRAPPERS, &["create", "get", "list", "watch"], "certificates.k8s.io", &["certificatesigningrequests"]),
    Rule {
        namespace: Some("kube-public"),
        names: &["cluster-info"],
        ..rule(BOOTSTRAPPERS, &["get"], "", &["configmaps"])
    },
    rule(NODES, WRITE, "", &["nodes", "nodes/status"]),
    rule(
        NODES,
        READ,
        "",
        &[
            "services",
            "endpoints",
            "configmaps",
            "secrets",
            "persistentvolumes",
            "persistentvolumeclaims",
            "namespaces",
        ],
    ),
    rule(NODES, WRITE, "", &["pods", "pods/status"]),
    rule(NODES, &["create"], "", &["pods/eviction", "serviceaccounts/token"]),
    rule(NODES, &["get", "list", "watch", "create", "update", "patch"], "", &["events"]),
    rule(NODES, &["create", "update", "patch"], "events.k8s.io", &["events"]),
    Rule { namespace: Some("kube-node-lease"), ..rule(NODES, WRITE, "coordination.k8s.io", &["leases"]) },
    rule(NODES, &["create", "get", "list", "watch"], "certificates.k8s.io", &["certificatesigningrequests"]),
    rule(NODES, READ, "storage.k8s.io", &["volumeattachments", "storageclasses", "csinodes", "csidrivers"]),
    rule(NODES, READ, "discovery.k8s.io", &["endpointslices"]),
    rule(AUTHENTICATED, &["create"], "authentication.k8s.io", &["selfsubjectreviews"]),
    rule(AUTHENTICATED, &["create"], "authorization.k8s.io", &["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
    Rule {
        namespace: Some("kube-public"),
        names: &["cluster-info"],
        ..rule("system:unauthenticated", &["get"], "", &["configmaps"])
    },
];

/// Attributes of a request on a resource.
pub(super) struct Wish<'a> {
    pub verb: &'a str,
    pub group: &'a str,
    /// `plural` or `plural/subresource`.
    pub resource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
}

impl Rule {
    fn allows(&self, identity: &Identity, wish: &Wish<'_>) -> bool {
        identity.is_in(self.users)
            && self.verbs.contains(&wish.verb)
            && self.group == wish.group
            && self.resources.contains(&wish.resource)
            && self.namespace.is_none_or(|namespace| namespace == wish.namespace)
            && (self.names.is_empty() || self.names.contains(&wish.name))
    }
}

/// Whether a path that is no resource may be read.
pub(super) fn path(registry: &Registry, identity: &Identity, method: &Method, path: &str) -> ApiResult<()> {
    let read = matches!(*method, Method::GET | Method::HEAD);
    let open = ["/api", "/apis", "/openapi", "/version", "/healthz", "/livez", "/readyz"];
    let public = open
        .iter()
        .any(|prefix| path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
    let listed = registry.config.auth.anonymous_paths.iter().any(|allowed| allowed == path);
    if identity.is_in(MASTERS) || read && (listed || public && identity.is_in(AUTHENTICATED)) {
        return Ok(());
    }
    let verb = method.as_str().to_lowercase();
    Err(ApiError::forbidden(format!("forbidden: User \"{}\" cannot {verb} path \"{path}\"", identity.user)))
}

pub(super) async fn resource(registry: &Registry, identity: &Identity, verb: &str, target: &Target) -> ApiResult<()> {
    if identity.is_in(MASTERS) {
        return Ok(());
    }
    let combined = target.subresource.as_ref().map(|subresource| format!("{}/{subresource}", target.plural));
    let resource = combined.as_deref().unwrap_or(&target.plural);
    let namespace = target.namespace.as_deref().unwrap_or_default();
    let name = target.name.as_deref().unwrap_or_default();
    let wish = Wish { verb, group: &target.group, resource, namespace, name };
    if allowed(registry, identity, &wish).await? {
        return Ok(());
    }
    let scope = if namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace \"{namespace}\"")
    };
    let what =
        if target.group.is_empty() { target.plural.clone() } else { format!("{}.{}", target.plural, target.group) };
    let object = if name.is_empty() { what } else { format!("{what} \"{name}\"") };
    let message = format!(
        "{object} is forbidden: User \"{}\" cannot {verb} resource \"{resource}\" in API group \"{}\" {scope}",
        identity.user, target.group
    );
    Err(ApiError::forbidden(message).about(&target.group, &target.plural, name))
}

pub(super) async fn allowed(registry: &Registry, identity: &Identity, wish: &Wish<'_>) -> ApiResult<bool> {
    if identity.is_in(MASTERS) || RULES.iter().any(|rule| rule.allows(identity, wish)) {
        return Ok(true);
    }
    if granted(registry, identity, wish, "clusterrolebindings", None).await? {
        return Ok(true);
    }
    if wish.namespace.is_empty() {
        Ok(false)
    } else {
        granted(registry, identity, wish, "rolebindings", Some(wish.namespace)).await
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";

/// Whether a binding of this kind refers to a role that grants the request.
async fn granted(
    registry: &Registry,
    identity: &Identity,
    wish: &Wish<'_>,
    bindings: &str,
    namespace: Option<&str>,
) -> ApiResult<bool> {
    let bindings = registry.in_store(RBAC, bindings)?;
    let request = ListRequest { namespace: namespace.map(str::to_owned), ..ListRequest::default() };
    let page = registry.list(&bindings, &request).await?;
    // They are gone before the request is worked on.
    turn::give_back(page.items.iter().map(|(_, data)| data.len()).sum());
    for (_, data) in page.items {
        let binding = parse(&data)?;
        let subjects = binding["subjects"].as_array().map(Vec::as_slice).unwrap_or_default();
        if !subjects.iter().any(|subject| is_subject(subject, identity)) {
            continue;
        }
        let name = binding["roleRef"]["name"].as_str().unwrap_or_default();
        let at = match (binding["roleRef"]["kind"].as_str(), namespace) {
            (Some("Role"), Some(namespace)) => registry.locate(RBAC, "roles", namespace, name)?,
            _ => registry.locate(RBAC, "clusterroles", "", name)?,
        };
        let Some(role) = registry.read(&at.key())? else { continue };
        turn::long(role.data.len()).await;
        let role = parse(&role.data)?;
        let rules = role["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
        if rules.iter().any(|rule| grants(rule, wish)) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_subject(subject: &Value, identity: &Identity) -> bool {
    let text = |field: &str| subject[field].as_str().unwrap_or_default();
    match text("kind") {
        "User" => text("name") == identity.user,
        "Group" => identity.is_in(text("name")),
        "ServiceAccount" => identity.user == format!("system:serviceaccount:{}:{}", text("namespace"), text("name")),
        _ => false,
    }
}

fn grants(rule: &Value, wish: &Wish<'_>) -> bool {
    let has = |field: &str, matches: &dyn Fn(&str) -> bool| {
        rule[field]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .any(|entry| entry == "*" || matches(entry))
    };
    let subresource = wish.resource.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
    has("verbs", &|verb| verb == wish.verb)
        && has("apiGroups", &|group| group == wish.group)
        && has("resources", &|resource| resource == wish.resource || subresource.as_deref() == Some(resource))
        && (rule["resourceNames"].as_array().is_none_or(Vec::is_empty)
            || has("resourceNames", &|name| name == wish.name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wish<'a>(verb: &'a str, group: &'a str, resource: &'a str, namespace: &'a str, name: &'a str) -> Wish<'a> {
        Wish { verb, group, resource, namespace, name }
    }

    #[test]
    fn bootstrap_tokens_may_ask_for_a_certificate_and_nothing_else() {
        let joiner = Identity::new("system:bootstrap:abcdef", &[BOOTSTRAPPERS]);
        let may = |wish: Wish<'_>| RULES.iter().any(|rule| rule.allows(&joiner, &wish));
        assert!(may(wish("create", "certificates.k8s.io", "certificatesigningrequests", "", "")));
        assert!(may(wish("get", "", "configmaps", "kube-public", "cluster-info")));
        assert!(!may(wish("get", "", "configmaps", "kube-system", "kubeadm-config")), "kubeadm grants it by RBAC");
        assert!(!may(wish("list", "", "secrets", "kube-system", "")));
        assert!(!may(wish("create", "", "nodes", "", "")));
    }

    #[test]
    fn rbac_rules_match_as_in_kubernetes() {
        let rule = json!({"apiGroups": [""], "resources": ["pods", "*/status"], "verbs": ["get"], "resourceNames": []});
        assert!(grants(&rule, &wish("get", "", "pods", "a", "p")));
        assert!(grants(&rule, &wish("get", "", "nodes/status", "", "n")));
        assert!(!grants(&rule, &wish("list", "", "pods", "a", "")));
        assert!(!grants(&rule, &wish("get", "apps", "pods", "a", "p")));
        let named = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"], "resourceNames": ["x"]});
        assert!(
            grants(&named, &wish("delete", "g", "things", "a", "x"))
                && !grants(&named, &wish("delete", "g", "things", "a", "y"))
        );
    }
}
