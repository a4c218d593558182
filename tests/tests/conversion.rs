//! Both API versions through a running management cluster: manifests for v1beta1 make a cluster, and clients of either
//! version see and change the same objects.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use capwasm_tests::management::Management;
use capwasm_tests::objects::Objects;
use capwasm_tests::wait;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

const MANIFESTS: &str = "
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: DockerCluster
metadata: {name: elder}
spec:
  failureDomains:
    one: {controlPlane: true}
    two: {controlPlane: false}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: elder}
spec:
  clusterNetwork: {pods: {cidrBlocks: [192.168.0.0/16]}, services: {cidrBlocks: [10.128.0.0/12]}}
  controlPlaneEndpoint: {host: '', port: 0}
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerCluster, name: elder}
  controlPlaneRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlane, name: elder}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: DockerMachineTemplate
metadata: {name: elder}
spec: {template: {spec: {}}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: KubeadmControlPlane
metadata: {name: elder}
spec:
  replicas: 1
  version: v1.34.0
  machineTemplate:
    infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachineTemplate, name: elder}
    nodeDrainTimeout: 1500ms
  kubeadmConfigSpec:
    clusterConfiguration:
      apiServer: {extraArgs: {v: '2'}, timeoutForControlPlane: 4m0s}
    initConfiguration: {nodeRegistration: {}}
    joinConfiguration: {nodeRegistration: {}}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfigTemplate
metadata: {name: elder}
spec: {template: {spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: {v: '3'}}}}}}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDeployment
metadata: {name: elder}
spec:
  clusterName: elder
  replicas: 1
  revisionHistoryLimit: 5
  selector: {matchLabels: null}
  template:
    spec:
      clusterName: elder
      version: v1.34.0
      failureDomain: two
      nodeDrainTimeout: 90s
      bootstrap: {configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, name: elder}}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachineTemplate, name: elder}
";

/// A kind in v1beta1.
fn old(objects: &Objects, group: &str, kind: &str) -> Api<DynamicObject> {
    let group = format!("{group}cluster.x-k8s.io");
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&group, "v1beta1", kind));
    Api::namespaced_with(objects.client(), objects.namespace(), &resource)
}

async fn get(api: &Api<DynamicObject>, name: &str) -> Value {
    serde_json::to_value(api.get(name).await.unwrap()).unwrap()
}

#[tokio::test]
async fn manifests_of_v1beta1_make_a_cluster_that_clients_of_both_versions_see_and_change() {
    let objects = Management::shared().objects("elder").await;
    for manifest in serde_saphyr::from_multiple::<Value>(MANIFESTS).unwrap() {
        objects.create(&manifest).await;
    }
    let (clusters, deployments) = (old(&objects, "", "Cluster"), old(&objects, "", "MachineDeployment"));
    let planes = old(&objects, "controlplane.", "KubeadmControlPlane");

    // Conditions, readiness and counters are where tools for v1beta1 look for them.
    let condition = |object: &Value, name: &str| {
        let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        all.iter().any(|condition| condition["type"] == name && condition["status"] == "True")
    };
    wait::until("the cluster and its worker are ready in v1beta1", async || {
        let (cluster, deployment) = (get(&clusters, "elder").await, get(&deployments, "elder").await);
        let is_ready = condition(&cluster, "Ready")
            && cluster["status"]["controlPlaneReady"] == true
            && cluster["status"]["failureDomains"]["one"]["controlPlane"] == true
            && deployment["status"]["updatedReplicas"] == 1
            && deployment["status"]["readyReplicas"] == 1;
        if is_ready { Ok(()) } else { Err(format!("{} {}", cluster["status"], deployment["status"])) }
    })
    .await;
    let stored = objects.get("Cluster", "elder").await;
    assert_eq!(stored["status"].get("deprecated"), None, "nobody had to write them");
    assert_eq!(stored["spec"]["infrastructureRef"]["apiGroup"], "infrastructure.cluster.x-k8s.io");

    // What was written reads back, also what v1beta2 cannot say.
    let plane = get(&planes, "elder").await;
    assert_eq!(plane["spec"]["machineTemplate"]["nodeDrainTimeout"], "1500ms");
    assert_eq!(plane["spec"]["kubeadmConfigSpec"]["clusterConfiguration"]["apiServer"]["extraArgs"], json!({"v": "2"}));
    let stored = objects.get("KubeadmControlPlane", "elder").await;
    assert_eq!(stored["spec"]["machineTemplate"]["spec"]["deletion"], json!({"nodeDrainTimeoutSeconds": 1}));
    let deployment = get(&deployments, "elder").await;
    assert_eq!(deployment["spec"]["template"]["spec"]["nodeDrainTimeout"], "90s");
    assert_eq!(deployment["spec"]["revisionHistoryLimit"], 5);

    // A client of the one version changes what the other sees, and nothing else.
    let before = objects.get("MachineDeployment", "elder").await;
    let patch = json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": 2}, "type": "RollingUpdate"}}});
    deployments.patch("elder", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    let after = objects.get("MachineDeployment", "elder").await;
    let mut expected = before["spec"].clone();
    expected["rollout"]["strategy"]["rollingUpdate"]["maxSurge"] = 2.into();
    assert_eq!(after["spec"], expected);
    objects
        .merge(
            "MachineDeployment",
            "elder",
            json!({"spec": {"template": {"spec": {"deletion": {"nodeDrainTimeoutSeconds": 7}}}}}),
        )
        .await;
    let deployment = get(&deployments, "elder").await;
    assert_eq!(deployment["spec"]["template"]["spec"]["nodeDrainTimeout"], "7s");
    assert_eq!(deployment["spec"]["revisionHistoryLimit"], 5);

    // Reading and sending back changes nothing.
    let before = objects.get("KubeadmControlPlane", "elder").await;
    wait::until("it is sent back", async || {
        let whole = planes.get("elder").await.unwrap();
        // Its status may have moved on since it was read.
        planes.replace("elder", &PostParams::default(), &whole).await.map_err(|error| error.to_string())
    })
    .await;
    let after = objects.get("KubeadmControlPlane", "elder").await;
    assert_eq!(
        (&before["spec"], &before["metadata"]["annotations"]),
        (&after["spec"], &after["metadata"]["annotations"])
    );

    // Server-side apply in v1beta1 owns what it says.
    let applied = json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineDeployment", "metadata": {"name": "elder"},
        "spec": {"replicas": 2}});
    deployments.patch("elder", &PatchParams::apply("elder").force(), &Patch::Apply(&applied)).await.unwrap();
    let after = objects.get("MachineDeployment", "elder").await;
    assert_eq!(after["spec"]["replicas"], 2);
    assert_eq!(after["spec"]["template"]["spec"]["deletion"], json!({"nodeDrainTimeoutSeconds": 7}));

    // Refused in v1beta1 as it would be in v1beta2.
    let mut broken = json!({"spec": {"template": {"spec": {"nodeDrainTimeout": "soon"}}}});
    let refused = deployments.patch("elder", &PatchParams::default(), &Patch::Merge(&broken)).await.unwrap_err();
    assert!(refused.to_string().contains("soon"), "{refused}");
    broken["spec"]["template"]["spec"]["nodeDrainTimeout"] = "-5s".into();
    assert!(deployments.patch("elder", &PatchParams::default(), &Patch::Merge(&broken)).await.is_err());

    clusters.delete("elder", &kube::api::DeleteParams::default()).await.unwrap();
    wait::until("nothing is left", async || {
        let machines = objects.names("Machine").await;
        if machines.is_empty() && objects.find("Cluster", "elder").await.is_none() {
            Ok(())
        } else {
            Err(machines.join(" "))
        }
    })
    .await;
}
