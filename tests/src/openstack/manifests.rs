//! Manifests of clusters on OpenStack, to be changed by tests.

use serde_json::{Value, json};

/// Version of the kinds that the charts of today emit.
pub const V1BETA1: &str = "infrastructure.cluster.x-k8s.io/v1beta1";
const CORE: &str = "cluster.x-k8s.io/v1beta2";
const IDENTITY: &str = "cloud-config";
/// End of the name of [`machine`]'s bootstrap Secret, which nobody owns: it stays when its Machine goes.
pub const BOOTSTRAP: &str = "-bootstrap";
/// User data in that Secret.
pub const USER_DATA: &str = "#cloud-config\nruncmd: [\"true\"]\n";

/// The Secret that `identityRef` names, with `clouds.yaml` and perhaps a CA.
pub fn identity(namespace: &str, clouds_yaml: &str, cacert: Option<&str>) -> Value {
    let mut data = json!({"clouds.yaml": clouds_yaml});
    if let Some(cacert) = cacert {
        data["cacert"] = cacert.into();
    }
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": IDENTITY, "namespace": namespace}, "stringData": data})
}

/// `spec.identityRef` that names it. With the region, which is then in `spec.providerID`, as simulated nodes have it.
pub fn identity_ref() -> Value {
    json!({"name": IDENTITY, "cloudName": "openstack", "region": "RegionOne"})
}

/// `spec` of an OpenStackCluster whose network is made for it, with a load balancer in front of its API.
pub fn cluster_spec() -> Value {
    json!({
        "identityRef": identity_ref(),
        "externalNetwork": {"filter": {"name": "public"}},
        "managedSubnets": [{"cidr": "10.6.0.0/24", "dnsNameservers": ["192.0.2.53"]}],
        "managedSecurityGroups": {"allowAllInClusterTraffic": true},
        "apiServerLoadBalancer": {"enabled": true},
        "tags": ["of-a-test"],
    })
}

/// `spec` of an OpenStackMachine or of a template of them.
pub fn machine_spec() -> Value {
    json!({"identityRef": identity_ref(), "flavor": "m1.small", "image": {"filter": {"name": "node-image"}}})
}

/// OpenStackCluster and Cluster, without a control plane provider.
pub fn cluster(namespace: &str, name: &str, spec: Value) -> [Value; 2] {
    let metadata = json!({"name": name, "namespace": namespace});
    [
        json!({"apiVersion": V1BETA1, "kind": "OpenStackCluster", "metadata": metadata, "spec": spec}),
        json!({"apiVersion": CORE, "kind": "Cluster", "metadata": metadata, "spec": {
            "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}, "services": {"cidrBlocks": ["10.128.0.0/12"]}},
            "infrastructureRef": reference("infrastructure.cluster.x-k8s.io", "OpenStackCluster", name),
        }}),
    ]
}

/// OpenStackMachine, bootstrap Secret and Machine, which nobody owns.
pub fn machine(namespace: &str, cluster: &str, name: &str, control_plane: bool, zone: &str, spec: Value) -> [Value; 3] {
    let mut metadata =
        json!({"name": name, "namespace": namespace, "labels": {"cluster.x-k8s.io/cluster-name": cluster}});
    if control_plane {
        metadata["labels"]["cluster.x-k8s.io/control-plane"] = "".into();
    }
    let secret = format!("{name}{BOOTSTRAP}");
    let mut labelled = metadata.clone();
    labelled["name"] = secret.clone().into();
    let mut machine = json!({
        "clusterName": cluster, "version": "v1.34.0", "bootstrap": {"dataSecretName": secret},
        "infrastructureRef": reference("infrastructure.cluster.x-k8s.io", "OpenStackMachine", name),
    });
    if !zone.is_empty() {
        machine["failureDomain"] = zone.into();
    }
    [
        json!({"apiVersion": V1BETA1, "kind": "OpenStackMachine", "metadata": metadata, "spec": spec}),
        json!({"apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret", "metadata": labelled,
            "stringData": {"value": USER_DATA, "format": "cloud-config"}}),
        json!({"apiVersion": CORE, "kind": "Machine", "metadata": metadata, "spec": machine}),
    ]
}

/// A whole cluster of kubeadm machines.
pub fn kubeadm(namespace: &str, name: &str, version: &str, planes: usize, workers: usize, spec: Value) -> Vec<Value> {
    let [infrastructure, mut cluster] = cluster(namespace, name, spec);
    let (plane, pool) = (format!("{name}-control-plane"), format!("{name}-md-0"));
    let object = |api_version: &str, kind: &str, name: &str, spec: Value| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec});
    let template =
        |name: &str| object(V1BETA1, "OpenStackMachineTemplate", name, json!({"template": {"spec": machine_spec()}}));
    let machines = |name: &str| reference("infrastructure.cluster.x-k8s.io", "OpenStackMachineTemplate", name);
    cluster["spec"]["controlPlaneRef"] = reference("controlplane.cluster.x-k8s.io", "KubeadmControlPlane", &plane);
    // As every cluster with OpenStack's cloud provider has it: the provider ID comes from the cloud.
    let external = json!({"kubeletExtraArgs": [{"name": "cloud-provider", "value": "external"}]});
    let join = json!({"nodeRegistration": external});
    let control_plane = json!({
        "replicas": planes, "version": version,
        "kubeadmConfigSpec": {"initConfiguration": join, "joinConfiguration": join},
        "machineTemplate": {"spec": {"infrastructureRef": machines(&plane)}},
    });
    let deployment = json!({
        "clusterName": name, "replicas": workers, "selector": {},
        "template": {"spec": {
            "clusterName": name, "version": version, "infrastructureRef": machines(&pool),
            "bootstrap": {"configRef": reference("bootstrap.cluster.x-k8s.io", "KubeadmConfigTemplate", &pool)},
        }},
    });
    vec![
        infrastructure,
        cluster,
        template(&plane),
        object("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane", &plane, control_plane),
        template(&pool),
        object(
            "bootstrap.cluster.x-k8s.io/v1beta2",
            "KubeadmConfigTemplate",
            &pool,
            json!({"template": {"spec": {"joinConfiguration": join}}}),
        ),
        object(CORE, "MachineDeployment", &pool, deployment),
    ]
}

fn reference(group: &str, kind: &str, name: &str) -> Value {
    json!({"apiGroup": group, "kind": kind, "name": name})
}
