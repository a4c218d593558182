//! What a write of an object like a Machine costs from request to answer, in process and in memory: time, and bytes allocated.
//! Prints one line per figure; `watch` is a status patch that four watchers read.

use std::error::Error;
use std::time::Instant;

use capwasm_apiserver::{Identity, Server, ServerConfig, Store};
use capwasm_test_support::counting::{self, Counting};
use futures::AsyncBufReadExt as _;
use futures::StreamExt as _;
use futures::stream::select_all;
use serde_json::{Value, json};

const OBJECTS: usize = 2_000;
const WATCHERS: usize = 4;
const MACHINES: &str = "/apis/bench.example/v1/namespaces/default/machines";

#[global_allocator]
static ALLOCATOR: Counting = Counting;

type Failure = Box<dyn Error + Send + Sync>;

fn crd() -> Value {
    let text = json!({"type": "string", "maxLength": 512});
    let reference = json!({"type": "object", "required": ["kind", "name"], "properties": {"apiGroup": text, "kind": text, "name": text}});
    let condition = json!({"type": "object", "required": ["type", "status"], "properties": {
        "type": text, "status": {"type": "string", "enum": ["True", "False", "Unknown"]}, "reason": text, "message": {"type": "string"},
        "lastTransitionTime": {"type": "string", "format": "date-time"}, "observedGeneration": {"type": "integer", "format": "int64"}}});
    let keyed = |items: &Value, key: &str| json!({"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]});
    let spec = json!({"type": "object", "required": ["clusterName"], "properties": {
        "clusterName": text, "version": text, "providerID": text, "failureDomain": text, "minReadySeconds": {"type": "integer", "default": 0},
        "bootstrap": {"type": "object", "properties": {"configRef": reference, "dataSecretName": text}}, "infrastructureRef": reference,
        "readinessGates": keyed(&json!({"type": "object", "required": ["conditionType"], "properties": {"conditionType": text, "polarity": {"type": "string", "default": "Positive"}}}), "conditionType"),
        "deletion": {"type": "object", "default": {}, "properties": {"order": text, "nodeDrainTimeoutSeconds": {"type": "integer", "default": 10}}}},
        "x-kubernetes-validations": [{"rule": "self.clusterName == oldSelf.clusterName", "message": "clusterName is immutable"}]});
    let status = json!({"type": "object", "properties": {
        "phase": text, "observedGeneration": {"type": "integer"}, "conditions": keyed(&condition, "type"),
        "addresses": {"type": "array", "items": {"type": "object", "properties": {"type": text, "address": text}}},
        "nodeInfo": {"type": "object", "additionalProperties": {"type": "string"}}, "nodeRef": {"type": "object", "properties": {"name": text}}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "machines.bench.example"},
        "spec": {"group": "bench.example", "scope": "Namespaced", "names": {"plural": "machines", "kind": "Machine"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}}}]}})
}

fn machine(index: usize, version: &str) -> Value {
    let reference = |kind: &str| json!({"apiGroup": "bench.example", "kind": kind, "name": format!("machine-{index}")});
    json!({"apiVersion": "bench.example/v1", "kind": "Machine",
        "metadata": {"name": format!("machine-{index}"), "namespace": "default", "finalizers": ["machine.cluster.x-k8s.io"],
            "labels": {"cluster.x-k8s.io/cluster-name": "one", "cluster.x-k8s.io/control-plane": "", "topology": "owned"},
            "annotations": {"controlplane.cluster.x-k8s.io/kubeadm-cluster-configuration": "c".repeat(700)},
            "ownerReferences": [{"apiVersion": "bench.example/v1", "kind": "KubeadmControlPlane", "name": "one", "uid": "11111111-1111", "controller": true}]},
        "spec": {"clusterName": "one", "version": version, "failureDomain": "a", "infrastructureRef": reference("DockerMachine"),
            "bootstrap": {"configRef": reference("KubeadmConfig"), "dataSecretName": format!("machine-{index}")},
            "readinessGates": [{"conditionType": "APIServerPodHealthy"}, {"conditionType": "SchedulerPodHealthy"}]}})
}

fn status(round: usize) -> Value {
    let conditions: Vec<Value> = ["Available", "Ready", "BootstrapConfigReady", "InfrastructureReady", "NodeReady", "NodeHealthy", "Deleting", "Paused"]
        .iter()
        .map(|kind| {
            let state = if round == 0 { "True" } else { "False" };
            json!({"type": kind, "status": state, "reason": format!("Round{round}"), "message": "", "observedGeneration": 1, "lastTransitionTime": "2026-11-22T23:00:00Z"})
        })
        .collect();
    json!({"status": {"phase": "Running", "conditions": conditions, "addresses": [{"type": "InternalIP", "address": "172.18.0.2"}],
        "nodeRef": {"name": "node"}, "nodeInfo": {"kubeletVersion": "v1.35.0", "osImage": "Debian", "architecture": "amd64", "bootID": "b"}}})
}

struct Api(kube::Client);

impl Api {
    async fn send(&self, method: &str, path: &str, content: &str, body: &Value) -> Result<(), Failure> {
        let request = http::Request::builder().method(method).uri(path).header("content-type", content);
        self.0.request_text(request.body(body.to_string().into_bytes())?).await?;
        Ok(())
    }

    async fn measure(
        &self,
        what: &str,
        method: &str,
        content: &str,
        query: &str,
        body: impl Fn(usize) -> Value,
    ) -> Result<(), Failure> {
        let path = |index: usize| match method {
            "POST" => MACHINES.to_owned(),
            _ => format!("{MACHINES}/machine-{index}{query}"),
        };
        let (before, started) = (counting::allocated(), Instant::now());
        for index in 0..OBJECTS {
            self.send(method, &path(index), content, &body(index)).await?;
        }
        report(what, before, started);
        Ok(())
    }
}

fn report(what: &str, before: u64, started: Instant) {
    let micros = started.elapsed().as_secs_f64() * 1e6 / OBJECTS as f64;
    let bytes = (counting::allocated() - before) / OBJECTS as u64;
    println!("{what}: {micros:.0} µs, {bytes} bytes allocated per operation");
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let started = Instant::now();
    let server = Server::start(Store::memory()?, ServerConfig::new("bench")).await?;
    println!("start of the first server, with the table of built-in kinds: {:.1?}", started.elapsed());
    let api = Api(server.client(Identity::admin("bench")));
    let json = "application/json";
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    api.send("POST", crds, json, &crd()).await?;

    api.measure("create", "POST", json, "", |index| machine(index, "v1.35.0")).await?;
    let merge = "application/merge-patch+json";
    api.measure("patch of the status", "PATCH", merge, "/status?fieldManager=core", |_| status(0)).await?;
    api.measure(
        "patch of a label",
        "PATCH",
        merge,
        "?fieldManager=core",
        |_| json!({"metadata": {"labels": {"a": "b"}}}),
    )
    .await?;
    let apply = "application/apply-patch+yaml";
    let query = "?fieldManager=owner&force=true";
    api.measure("apply", "PATCH", apply, query, |index| machine(index, "v1.35.1")).await?;
    api.measure("apply of the same", "PATCH", apply, query, |index| machine(index, "v1.35.1")).await?;
    api.measure("patch that changes nothing", "PATCH", merge, "/status?fieldManager=core", |_| status(0)).await?;

    let mut watches = Vec::new();
    for _ in 0..WATCHERS {
        let selected = format!("{MACHINES}?watch=true&labelSelector=topology%3Downed");
        let lines = api.0.request_stream(http::Request::get(selected).body(Vec::new())?).await?.lines();
        watches.push(Box::pin(lines));
    }
    let mut watches = select_all(watches);
    for _ in 0..WATCHERS * OBJECTS {
        watches.next().await.ok_or("a watch ended")??;
    }
    let (before, started) = (counting::allocated(), Instant::now());
    for index in 0..OBJECTS {
        let path = format!("{MACHINES}/machine-{index}/status?fieldManager=core");
        api.send("PATCH", &path, merge, &status(1)).await?;
        for _ in 0..WATCHERS {
            watches.next().await.ok_or("a watch ended")??;
        }
    }
    report("watch", before, started);
    Ok(())
}
