//! The rules, one by one, with objects written by hand: the same thing said in both versions.

use capwasm_api::conversion::{DATA_ANNOTATION, OLD_DATA_ANNOTATION, convert_core, convert_core_with};
use capwasm_object::{json, meta};
use serde_json::{Value, json};

use super::kinds::convert;
use super::round_trips::{assert_same, without_data};

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

/// `old` and `new` say the same.
fn assert_pair(old: &str, new: &str) {
    let (old, new) = (yaml(old), yaml(new));
    let version = |object: &Value| json::text(object, "/apiVersion").unwrap().to_owned();
    let what = meta::kind(&old);
    let up = convert(&old, &version(&new)).unwrap();
    assert_same(&format!("{what} up"), &new, &up);
    let down = convert(&new, &version(&old)).unwrap();
    assert_same(&format!("{what} down"), &old, &without_data(&down));
}

#[test]
fn a_cluster_says_the_same_in_both_versions() {
    assert_pair(
        "
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: c, namespace: ns}
spec:
  paused: false
  clusterNetwork: {apiServerPort: 6443, pods: {cidrBlocks: [192.168.0.0/16]}, serviceDomain: cluster.local}
  controlPlaneEndpoint: {host: lb, port: 6443}
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerCluster, name: c, namespace: ns}
  topology:
    class: small
    classNamespace: classes
    version: v1.34.0
    controlPlane:
      replicas: 3
      nodeDrainTimeout: 5m0s
      machineHealthCheck:
        enable: true
        maxUnhealthy: 40%
        nodeStartupTimeout: 10m0s
        unhealthyConditions: [{type: Ready, status: Unknown, timeout: 5m0s}]
        unhealthyMachineConditions: [{type: NodeReady, status: 'False', timeout: 1h0m30s}]
        remediationTemplate: {apiVersion: x.example.com/v1, kind: Fix, name: f, namespace: ns}
    workers:
      machineDeployments:
      - name: md
        class: workers
        failureDomain: fd1
        rollout: {after: '2030-01-01T00:00:00Z'}
        nodeDeletionTimeout: 10s
        strategy:
          type: RollingUpdate
          rollingUpdate: {maxSurge: 1, maxUnavailable: 0, deletePolicy: Oldest}
          remediation: {maxInFlight: 20%}
      machinePools: [{name: mp, class: pool, nodeVolumeDetachTimeout: 1m0s}]
    variables: [{name: v, value: {}}]
status:
  infrastructureReady: true
  controlPlaneReady: false
  phase: Provisioned
  failureReason: CreateError
  failureMessage: broken
  failureDomains:
    fd1: {controlPlane: true, attributes: {zone: a}}
    fd2: {controlPlane: false}
  conditions: [{type: Mine, status: 'True', lastTransitionTime: '2025-01-01T00:00:00Z'}]
  v1beta2: {controlPlane: {desiredReplicas: 3}, workers: {replicas: 1}}
",
        "
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: c, namespace: ns}
spec:
  paused: false
  clusterNetwork: {apiServerPort: 6443, pods: {cidrBlocks: [192.168.0.0/16]}, serviceDomain: cluster.local}
  controlPlaneEndpoint: {host: lb, port: 6443}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DockerCluster, name: c}
  topology:
    classRef: {name: small, namespace: classes}
    version: v1.34.0
    controlPlane:
      replicas: 3
      deletion: {nodeDrainTimeoutSeconds: 300}
      healthCheck:
        enabled: true
        checks:
          nodeStartupTimeoutSeconds: 600
          unhealthyNodeConditions: [{type: Ready, status: Unknown, timeoutSeconds: 300}]
          unhealthyMachineConditions: [{type: NodeReady, status: 'False', timeoutSeconds: 3630}]
        remediation:
          triggerIf: {unhealthyLessThanOrEqualTo: 40%}
          templateRef: {apiVersion: x.example.com/v1, kind: Fix, name: f}
    workers:
      machineDeployments:
      - name: md
        class: workers
        failureDomain: fd1
        deletion: {order: Oldest, nodeDeletionTimeoutSeconds: 10}
        healthCheck: {remediation: {maxInFlight: 20%}}
        rollout:
          after: '2030-01-01T00:00:00Z'
          strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
      machinePools: [{name: mp, class: pool, deletion: {nodeVolumeDetachTimeoutSeconds: 60}}]
    variables: [{name: v, value: {}}]
status:
  initialization: {infrastructureProvisioned: true, controlPlaneInitialized: false}
  phase: Provisioned
  failureDomains:
  - {name: fd1, controlPlane: true, attributes: {zone: a}}
  - {name: fd2, controlPlane: false}
  controlPlane: {desiredReplicas: 3}
  workers: {replicas: 1}
  deprecated:
    v1beta1:
      failureReason: CreateError
      failureMessage: broken
      conditions: [{type: Mine, status: 'True', lastTransitionTime: '2025-01-01T00:00:00Z'}]
",
    );
}

#[test]
fn machines_and_what_makes_them_say_the_same_in_both_versions() {
    assert_pair(
        "
apiVersion: cluster.x-k8s.io/v1beta1
kind: Machine
metadata: {name: m, namespace: ns}
spec:
  clusterName: c
  bootstrap: {configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfig, name: m, namespace: ns}}
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachine, name: m, namespace: ns}
  nodeDrainTimeout: 1m30s
status:
  bootstrapReady: true
  infrastructureReady: true
  nodeRef: {apiVersion: v1, kind: Node, name: node}
",
        "
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: m, namespace: ns}
spec:
  clusterName: c
  bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfig, name: m}}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DockerMachine, name: m}
  deletion: {nodeDrainTimeoutSeconds: 90}
status:
  initialization: {bootstrapDataSecretCreated: true, infrastructureProvisioned: true}
  nodeRef: {name: node}
",
    );
    assert_pair(
        "
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDeployment
metadata: {name: md, namespace: ns}
spec:
  clusterName: c
  minReadySeconds: 10
  rolloutAfter: '2030-01-01T00:00:00Z'
  machineNamingStrategy: {template: '{{ .random }}'}
  selector: {}
  strategy:
    type: OnDelete
    rollingUpdate: {deletePolicy: Newest}
    remediation: {maxInFlight: 2}
  template: {spec: {clusterName: c, bootstrap: {}, infrastructureRef: {apiVersion: x.io/v1beta1, kind: T, name: t, namespace: ns}}}
status:
  replicas: 3
  updatedReplicas: 1
  v1beta2: {upToDateReplicas: 1}
",
        "
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: md, namespace: ns}
spec:
  clusterName: c
  deletion: {order: Newest}
  machineNaming: {template: '{{ .random }}'}
  remediation: {maxInFlight: 2}
  rollout: {after: '2030-01-01T00:00:00Z', strategy: {type: OnDelete}}
  selector: {}
  template: {spec: {clusterName: c, minReadySeconds: 10, bootstrap: {}, infrastructureRef: {apiGroup: x.io, kind: T, name: t}}}
status:
  replicas: 3
  upToDateReplicas: 1
",
    );
    assert_pair(
        "
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineSet
metadata: {name: ms, namespace: ns}
spec: {clusterName: c, deletePolicy: Random, minReadySeconds: 1, selector: {matchLabels: {a: b}}}
status: {replicas: 2, fullyLabeledReplicas: 2, phase: x}
",
        "
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineSet
metadata: {name: ms, namespace: ns}
spec: {clusterName: c, deletion: {order: Random}, selector: {matchLabels: {a: b}}, template: {spec: {minReadySeconds: 1}}}
status: {replicas: 2, phase: x}
",
    );
}

#[test]
fn a_health_check_groups_its_fields() {
    assert_pair(
        "
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineHealthCheck
metadata: {name: h, namespace: ns}
spec:
  clusterName: c
  selector: {}
  nodeStartupTimeout: 0s
  unhealthyRange: '[1-3]'
  unhealthyConditions: [{type: Ready, status: 'False', timeout: 2m0s}]
",
        "
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineHealthCheck
metadata: {name: h, namespace: ns}
spec:
  clusterName: c
  selector: {}
  checks: {nodeStartupTimeoutSeconds: 0, unhealthyNodeConditions: [{type: Ready, status: 'False', timeoutSeconds: 120}]}
  remediation: {triggerIf: {unhealthyInRange: '[1-3]'}}
",
    );
}

#[test]
fn a_class_names_its_templates_with_their_version() {
    assert_pair(
        "
apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata: {name: k, namespace: ns}
spec:
  infrastructure: {ref: {apiVersion: x.io/v1beta1, kind: I, name: i, namespace: ns}}
  infrastructureNamingStrategy: {template: '{{ .cluster.name }}'}
  controlPlane:
    ref: {apiVersion: x.io/v1beta1, kind: C, name: c, namespace: ns}
    machineInfrastructure: {ref: {apiVersion: x.io/v1beta1, kind: M, name: m, namespace: ns}}
    namingStrategy: {template: cp}
  workers:
    machineDeployments:
    - class: w
      template:
        metadata: {labels: {a: b}}
        bootstrap: {ref: {apiVersion: x.io/v1beta1, kind: B, name: b, namespace: ns}}
        infrastructure: {ref: {apiVersion: x.io/v1beta1, kind: M, name: m, namespace: ns}}
      strategy: {type: RollingUpdate, remediation: {maxInFlight: 1}}
      machineHealthCheck: {maxUnhealthy: 1}
  variables: [{name: v, required: false, metadata: {labels: {l: x}}, schema: {openAPIV3Schema: {type: object, default: {}}}}]
  patches: [{name: p, external: {generateExtension: g, validateExtension: v}}]
",
        "
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: k, namespace: ns}
spec:
  infrastructure: {templateRef: {apiVersion: x.io/v1beta1, kind: I, name: i}, naming: {template: '{{ .cluster.name }}'}}
  controlPlane:
    templateRef: {apiVersion: x.io/v1beta1, kind: C, name: c}
    machineInfrastructure: {templateRef: {apiVersion: x.io/v1beta1, kind: M, name: m}}
    naming: {template: cp}
  workers:
    machineDeployments:
    - class: w
      metadata: {labels: {a: b}}
      bootstrap: {templateRef: {apiVersion: x.io/v1beta1, kind: B, name: b}}
      infrastructure: {templateRef: {apiVersion: x.io/v1beta1, kind: M, name: m}}
      rollout: {strategy: {type: RollingUpdate}}
      healthCheck: {remediation: {maxInFlight: 1, triggerIf: {unhealthyLessThanOrEqualTo: 1}}}
  variables: [{name: v, required: false, deprecatedV1Beta1Metadata: {labels: {l: x}}, schema: {openAPIV3Schema: {type: object, default: {}}}}]
  patches: [{name: p, external: {generatePatchesExtension: g, validateTopologyExtension: v}}]
",
    );
}

#[test]
fn kubeadm_configuration_follows_kubeadms_own_versions() {
    assert_pair(
        "
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: KubeadmControlPlane
metadata: {name: cp, namespace: ns}
spec:
  replicas: 3
  version: v1.34.0
  machineNamingStrategy: {template: t}
  machineTemplate:
    metadata: {labels: {a: b}}
    infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachineTemplate, name: t, namespace: ns}
    nodeDrainTimeout: 1m0s
    readinessGates: [{conditionType: Mine}]
  remediationStrategy: {maxRetry: 2, minHealthyPeriod: 1h0m0s, retryPeriod: 10s}
  rolloutAfter: '2030-01-01T00:00:00Z'
  rolloutBefore: {certificatesExpiryDays: 30}
  rolloutStrategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0}}
  kubeadmConfigSpec:
    clusterConfiguration:
      apiServer: {extraArgs: {a: '1', b: ''}, timeoutForControlPlane: 4m0s}
      etcd: {local: {extraArgs: {x: y}}}
    initConfiguration:
      bootstrapTokens: [{token: abcdef.0123456789abcdef, ttl: 15m0s}]
      nodeRegistration: {taints: [], kubeletExtraArgs: {v: '4'}}
    joinConfiguration:
      controlPlane: {}
      discovery: {timeout: 5m0s}
status:
  initialized: true
  ready: false
  readyReplicas: 0
  lastRemediation: {machine: m, retryCount: 1, timestamp: '2025-01-01T00:00:00Z'}
",
        "
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlane
metadata: {name: cp, namespace: ns}
spec:
  replicas: 3
  version: v1.34.0
  machineNaming: {template: t}
  machineTemplate:
    metadata: {labels: {a: b}}
    spec:
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DockerMachineTemplate, name: t}
      deletion: {nodeDrainTimeoutSeconds: 60}
      readinessGates: [{conditionType: Mine}]
  remediation: {maxRetry: 2, minHealthyPeriodSeconds: 3600, retryPeriodSeconds: 10}
  rollout:
    after: '2030-01-01T00:00:00Z'
    before: {certificatesExpiryDays: 30}
    strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0}}
  kubeadmConfigSpec:
    clusterConfiguration:
      apiServer: {extraArgs: [{name: a, value: '1'}, {name: b, value: ''}]}
      etcd: {local: {extraArgs: [{name: x, value: y}]}}
    initConfiguration:
      bootstrapTokens: [{token: abcdef.0123456789abcdef, ttlSeconds: 900}]
      nodeRegistration: {taints: [], kubeletExtraArgs: [{name: v, value: '4'}]}
      timeouts: {controlPlaneComponentHealthCheckSeconds: 240}
    joinConfiguration:
      controlPlane: {}
      timeouts: {controlPlaneComponentHealthCheckSeconds: 240, tlsBootstrapSeconds: 300}
status:
  initialization: {controlPlaneInitialized: true}
  deprecated: {v1beta1: {readyReplicas: 0}}
  lastRemediation: {machine: m, retryCount: 1, time: '2025-01-01T00:00:00Z'}
",
    );
    assert_pair(
        "
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfigTemplate
metadata: {name: t, namespace: ns}
spec: {template: {spec: {joinConfiguration: {nodeRegistration: {name: x}}, files: [{path: /a, content: b}]}}}
",
        "
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfigTemplate
metadata: {name: t, namespace: ns}
spec: {template: {spec: {joinConfiguration: {nodeRegistration: {name: x}}, files: [{path: /a, content: b}]}}}
",
    );
}

#[test]
fn docker_kinds_say_the_same_in_both_versions() {
    assert_pair(
        "
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: DockerCluster
metadata: {name: d, namespace: ns}
spec: {failureDomains: {fd1: {controlPlane: true}, fd2: {controlPlane: false}}}
status: {ready: true, failureDomains: {fd1: {controlPlane: true}}}
",
        "
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DockerCluster
metadata: {name: d, namespace: ns}
spec: {failureDomains: [{name: fd1, controlPlane: true}, {name: fd2, controlPlane: false}]}
status: {initialization: {provisioned: true}, failureDomains: [{name: fd1, controlPlane: true}]}
",
    );
}

fn machine(spec: Value) -> Value {
    json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine", "metadata": {"name": "m", "namespace": "ns"}, "spec": spec})
}

const OLD: &str = "cluster.x-k8s.io/v1beta1";
const NEW: &str = "cluster.x-k8s.io/v1beta2";

#[test]
fn what_v1beta2_cannot_say_is_kept_until_a_v1beta2_client_changes_it() {
    let old = machine(json!({
        "clusterName": "c", "nodeDrainTimeout": "1500ms", "nodeDeletionTimeout": "90s",
        "infrastructureRef": {"apiVersion": "x.io/v1", "kind": "K", "name": "i", "namespace": "elsewhere", "uid": "u"}}));
    let mut new = convert_core(old.clone(), NEW).unwrap();
    assert_eq!(new["spec"]["deletion"], json!({"nodeDrainTimeoutSeconds": 1, "nodeDeletionTimeoutSeconds": 90}));
    assert_eq!(new["spec"]["infrastructureRef"], json!({"apiGroup": "x.io", "kind": "K", "name": "i"}));
    let kept = meta::annotation(&new, OLD_DATA_ANNOTATION).unwrap();
    assert!(kept.len() < 500 && !kept.contains("clusterName"), "only the pieces are kept: {kept}");
    assert_eq!(without_data(&convert_core(new.clone(), OLD).unwrap()), old);

    new["spec"]["deletion"]["nodeDrainTimeoutSeconds"] = 7.into();
    let shown = convert_core(new.clone(), OLD).unwrap();
    assert_eq!(shown["spec"]["nodeDrainTimeout"], "7s", "a change in v1beta2 is not overruled by what was kept");
    assert_eq!(shown["spec"]["nodeDeletionTimeout"], "90s", "its neighbour stays as it was written");
    assert_eq!(convert_core(shown, NEW).unwrap(), new);
}

#[test]
fn what_v1beta1_cannot_say_comes_back_and_a_v1beta1_clients_change_wins() {
    let new = json!({"apiVersion": NEW, "kind": "Machine", "metadata": {"name": "m", "namespace": "ns"},
        "spec": {"clusterName": "c", "minReadySeconds": 5, "deletion": {"nodeDrainTimeoutSeconds": 60}},
        "status": {"failureDomain": "fd1", "phase": "Updating"}});
    let mut shown = convert_core(new.clone(), OLD).unwrap();
    assert!(meta::annotation(&shown, DATA_ANNOTATION).is_some());
    assert_eq!(shown["status"]["phase"], "Running", "a phase that v1beta1 does not have");
    assert_eq!(convert_core(shown.clone(), NEW).unwrap(), new);
    shown["spec"]["nodeDrainTimeout"] = "2m0s".into();
    shown["spec"]["providerID"] = "p".into();
    let back = convert_core(shown, NEW).unwrap();
    let mut expected = new;
    expected["spec"]["deletion"]["nodeDrainTimeoutSeconds"] = 120.into();
    expected["spec"]["providerID"] = "p".into();
    assert_eq!(back, expected);
}

#[test]
fn nothing_is_kept_where_nothing_would_be_lost() {
    let old = machine(json!({"clusterName": "c", "nodeDrainTimeout": "1m0s"}));
    let new = convert_core(old.clone(), NEW).unwrap();
    assert_eq!(new["metadata"].get("annotations"), None);
    assert_eq!(convert_core(new, OLD).unwrap(), old);
}

#[test]
fn empties_that_say_nothing_are_dropped_and_those_that_do_are_kept() {
    let old = json!({"apiVersion": OLD, "kind": "Cluster", "metadata": {"name": "c", "namespace": "ns"},
        "spec": {"paused": true, "controlPlaneEndpoint": {"host": "", "port": 0}, "controlPlaneRef": {},
            "topology": {"class": "k", "version": "v1.34.0", "variables": [{"name": "v", "value": {"a": []}}, {"name": "w", "value": ""}],
                "controlPlane": {"metadata": {}}}},
        "status": {"observedGeneration": 0}});
    let new = convert_core(old, NEW).unwrap();
    assert_eq!(
        new["spec"],
        json!({"paused": true, "topology": {"classRef": {"name": "k"}, "version": "v1.34.0",
            "variables": [{"name": "v", "value": {"a": []}}, {"name": "w", "value": ""}]}})
    );
    assert_eq!(new.get("status"), None);
    assert_eq!(new["metadata"].get("annotations"), None);
}

#[test]
fn v1beta1_readers_see_conditions_that_nobody_had_to_write() {
    let condition = |name: &str, status: &str| json!({"type": name, "status": status, "reason": "NotReady", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let new = json!({"apiVersion": NEW, "kind": "Cluster", "metadata": {"name": "c", "namespace": "ns"}, "spec": {"paused": false},
        "status": {"conditions": [condition("InfrastructureReady", "False"), condition("ControlPlaneAvailable", "True")]}});
    let shown = convert_core(new.clone(), OLD).unwrap();
    let names: Vec<(&str, &str)> = json::items(&shown, "/status/conditions")
        .iter()
        .map(|c| (c["type"].as_str().unwrap(), c["status"].as_str().unwrap()))
        .collect();
    assert_eq!(names, [("Ready", "False"), ("ControlPlaneReady", "True"), ("InfrastructureReady", "False")]);
    assert_eq!(shown["status"]["conditions"][0]["severity"], "Warning");
    assert_eq!(convert_core(shown.clone(), NEW).unwrap(), new, "they are not stored");
    // Nor when a client lost the annotation: they would be out of date soon.
    assert_eq!(convert_core(without_data(&shown), NEW).unwrap(), new);
}

#[test]
fn a_references_version_is_asked_of_the_resolver() {
    let new = json!({"apiVersion": NEW, "kind": "Machine", "metadata": {"name": "m", "namespace": "ns"},
        "spec": {"clusterName": "c", "infrastructureRef": {"apiGroup": "x.io", "kind": "K", "name": "i"}}});
    let known = |group: &str, kind: &str| (group == "x.io" && kind == "K").then(|| "x.io/v1alpha7".to_owned());
    let shown = convert_core_with(new.clone(), OLD, &known).unwrap();
    assert_eq!(shown["spec"]["infrastructureRef"]["apiVersion"], "x.io/v1alpha7");
    // Without an answer it is the contract's name for it; the way back does not depend on it.
    let shown = convert_core_with(new.clone(), OLD, &|_, _| None).unwrap();
    assert_eq!(shown["spec"]["infrastructureRef"]["apiVersion"], "x.io/v1beta1");
    assert_eq!(convert_core_with(shown, NEW, &known).unwrap()["spec"], new["spec"]);
}

#[test]
fn versions_older_than_v1beta1_go_through_the_stored_one() {
    let old = json!({"apiVersion": "ipam.cluster.x-k8s.io/v1alpha1", "kind": "IPAddressClaim", "metadata": {"name": "a", "namespace": "ns"},
        "spec": {"poolRef": {"apiGroup": "x.io", "kind": "P", "name": "p"}},
        "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"}]}});
    let between = convert_core(old.clone(), "ipam.cluster.x-k8s.io/v1beta1").unwrap();
    assert_eq!(between["status"], old["status"]);
    assert_eq!(convert_core(between, "ipam.cluster.x-k8s.io/v1alpha1").unwrap(), old);
}
