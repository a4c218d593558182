//! What the workload cluster's own cloud provider made and left: load balancers of Services with their floating IPs and
//! security groups, and volumes of persistent claims with their snapshots. Taken away when the cluster is deleted, where
//! that is asked for; otherwise nothing here is touched.

use capwasm_sdk::{Context, Problem, object};
use serde_json::Value;

use super::deletion::{delete, delete_balancer};
use super::events::{self, Act, What};
use super::pass::{Pass, pause};
use crate::cloud::{Query, Service, encode};
use crate::load_balancer::{self, LoadBalancer};
use crate::network::{self, FloatingIp, SecurityGroup};

/// Annotation of an OpenStackCluster: `true` or `false`, instead of the provider's configuration.
const ANNOTATION: &str = "capwasm.dev/openstack-janitor";
/// Annotation of an OpenStackCluster: `delete` (also without it) or `keep`. That of StackHPC's janitor.
const VOLUMES_POLICY: &str = "janitor.capi.stackhpc.com/volumes-policy";
/// Metadata of a volume or snapshot that stays when it is `true`. That of Azimuth's janitor.
const KEEP: &str = "janitor.capi.azimuth-cloud.com/keep";
/// Metadata with which Cinder's CSI driver says whose a volume is.
const CSI_CLUSTER: &str = "cinder.csi.openstack.org/cluster";

/// What is to be done in this cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Orders {
    is_on: bool,
    with_volumes: bool,
}

fn orders(object: &Value, configuration: &Value) -> Orders {
    let configured = configuration.get("janitor").and_then(Value::as_bool).unwrap_or_default();
    Orders {
        is_on: match object::annotation(object, ANNOTATION) {
            Some("true") => true,
            Some("false") => false,
            _ => configured,
        },
        with_volumes: object::annotation(object, VOLUMES_POLICY) != Some("keep"),
    }
}

/// Takes the next things away; true when nothing is left, or nothing is to be done.
pub fn remove(cx: &mut Context<'_>, pass: &Pass<'_>) -> Result<bool, Problem> {
    let orders = orders(pass.object, &cx.host.configuration());
    if !orders.is_on {
        return Ok(true);
    }
    floating_ips(cx, pass)?;
    if !balancers(cx, pass)? {
        return Ok(false);
    }
    // Only now: ports of load balancers are in them.
    groups(cx, pass)?;
    if !orders.with_volumes || !pass.cloud.offers(Service::Volume) {
        return Ok(true);
    }
    storage(cx, pass, "snapshots", events::SNAPSHOT)?;
    storage(cx, pass, "volumes", events::VOLUME)?;
    Ok(true)
}

fn project(pass: &Pass<'_>) -> Query {
    Query::new().with("project_id", pass.cloud.project_id())
}

fn floating_ips(cx: &mut Context<'_>, pass: &Pass<'_>) -> Result<(), Problem> {
    let found: Vec<FloatingIp> = network::list(&pass.cloud, &project(pass))?;
    for ip in found.iter().filter(|ip| is_service_floating_ip(&ip.description, &pass.cluster)) {
        delete::<FloatingIp>(cx, pass, events::FLOATING_IP, &ip.floating_ip_address, &ip.id)?;
    }
    Ok(())
}

fn balancers(cx: &mut Context<'_>, pass: &Pass<'_>) -> Result<bool, Problem> {
    if !pass.cloud.offers(Service::LoadBalancer) {
        return Ok(true);
    }
    let mut found: Vec<LoadBalancer> = load_balancer::list(&pass.cloud, &project(pass))?;
    found.retain(|balancer| is_service_balancer(&balancer.name, &pass.cluster));
    for balancer in &found {
        delete_balancer(cx, pass, balancer)?;
    }
    Ok(found.is_empty())
}

fn groups(cx: &mut Context<'_>, pass: &Pass<'_>) -> Result<(), Problem> {
    let found: Vec<SecurityGroup> = network::list(&pass.cloud, &project(pass))?;
    for group in found.iter().filter(|group| is_service_group(&group.description, &pass.cluster)) {
        delete::<SecurityGroup>(cx, pass, events::SECURITY_GROUP, &group.name, &group.id)?;
    }
    Ok(())
}

/// Volumes or snapshots.
///
/// # Errors
/// Waiting while some are left: they go after the answer, or hang on a server that goes.
fn storage(cx: &mut Context<'_>, pass: &Pass<'_>, kind: &str, what: What) -> Result<(), Problem> {
    let found = pass.cloud.list(Service::Volume, &format!("/{kind}/detail"), kind, &Query::new())?;
    let found: Vec<&Value> = found.iter().filter(|item| is_left_behind(item, &pass.cluster)).collect();
    let mut left = Vec::new();
    for item in found {
        let (id, name, status) =
            (object::text(item, "/id"), object::text(item, "/name"), object::text(item, "/status"));
        left.push(format!("{name} ({status})"));
        if !["available", "error"].contains(&status) {
            continue;
        }
        match pass.cloud.delete(Service::Volume, &format!("/{kind}/{}", encode(id))) {
            Ok(_) => events::done(cx, Act::Delete, what, name, id),
            Err(failure) if failure.is_conflict() => {}
            Err(failure) => return Err(events::failed(cx, Act::Delete, what, name, failure)),
        }
    }
    if left.is_empty() {
        return Ok(());
    }
    let message = format!("waiting for {kind} that the cluster left: {}", left.join(", "));
    Err(Problem::waiting("WaitingForStorage", message).retry_after(pause(cx.host.attempt())))
}

/// OpenStack's cloud controller manager names a Service's load balancer `kube_service_<cluster>_<namespace>_<name>`.
/// Names of clusters have no underscore, so that no other cluster's begin like this.
fn is_service_balancer(name: &str, cluster: &str) -> bool {
    name.strip_prefix("kube_service_")
        .and_then(|rest| rest.strip_prefix(cluster))
        .is_some_and(|rest| rest.starts_with('_'))
}

fn is_service_floating_ip(description: &str, cluster: &str) -> bool {
    description.starts_with("Floating IP for Kubernetes external service ")
        && description.ends_with(&format!(" from cluster {cluster}"))
}

fn is_service_group(description: &str, cluster: &str) -> bool {
    description.starts_with("Security Group for ")
        && description.ends_with(&format!(" Service LoadBalancer in cluster {cluster}"))
}

fn is_left_behind(item: &Value, cluster: &str) -> bool {
    let metadata = |name: &str| item.get("metadata").and_then(|metadata| metadata.get(name)).and_then(Value::as_str);
    metadata(CSI_CLUSTER) == Some(cluster) && metadata(KEEP) != Some("true")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn it_works_only_where_it_is_asked_to() {
        let with = |annotations: Value| json!({"metadata": {"annotations": annotations}});
        let on = json!({"janitor": true});
        let table = [
            (json!({}), json!({}), (false, true)),
            (json!({}), on.clone(), (true, true)),
            (json!({ANNOTATION: "true"}), json!({}), (true, true)),
            (json!({ANNOTATION: "false"}), on.clone(), (false, true)),
            (json!({VOLUMES_POLICY: "keep"}), on, (true, false)),
        ];
        for (annotations, configuration, (is_on, with_volumes)) in table {
            let orders = orders(&with(annotations.clone()), &configuration);
            assert_eq!(orders, Orders { is_on, with_volumes }, "{annotations}");
        }
    }

    #[test]
    fn only_what_this_cluster_left_is_meant() {
        assert!(is_service_balancer("kube_service_prod_default_web", "prod"));
        assert!(!is_service_balancer("kube_service_prod-2_default_web", "prod"));
        assert!(!is_service_balancer("k8s-clusterapi-cluster-ns-prod-kubeapi", "prod"));
        let ip = "Floating IP for Kubernetes external service default/web from cluster prod";
        assert!(is_service_floating_ip(ip, "prod") && !is_service_floating_ip(ip, "rod"));
        let group = "Security Group for default/web Service LoadBalancer in cluster prod";
        assert!(is_service_group(group, "prod") && !is_service_group(group, "od"));
        let volume = |metadata: Value| json!({"metadata": metadata});
        assert!(is_left_behind(&volume(json!({CSI_CLUSTER: "prod"})), "prod"));
        assert!(!is_left_behind(&volume(json!({CSI_CLUSTER: "prod", KEEP: "true"})), "prod"));
        assert!(!is_left_behind(&volume(json!({CSI_CLUSTER: "other"})), "prod"));
        assert!(!is_left_behind(&json!({}), "prod"));
    }
}
