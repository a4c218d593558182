//! Columns of the built-in kinds.

mod cells;
mod pods;

use serde_json::Value;

use self::cells as cell;
use super::{Cell, Column};

type Compute = fn(&Value, i64) -> Value;

fn column(name: &str, ty: &str, priority: i64, compute: Compute) -> Column {
    Column {
        name: name.to_owned(),
        ty: ty.to_owned(),
        format: if name == "Name" { "name".to_owned() } else { String::new() },
        description: String::new(),
        priority,
        cell: Cell::Computed(compute),
    }
}

fn text(name: &str, compute: Compute) -> Column {
    column(name, "string", 0, compute)
}

fn wide(name: &str, compute: Compute) -> Column {
    column(name, "string", 1, compute)
}

fn count(name: &str, compute: Compute) -> Column {
    column(name, "integer", 0, compute)
}

pub(super) fn name_column() -> Column {
    text("Name", cell::name)
}

fn age() -> Column {
    text("Age", cell::age)
}

/// Name and age for kinds without columns of their own.
pub(super) fn columns(group: &str, version: &str, kind: &str) -> Vec<Column> {
    let name = name_column();
    match (group, version, kind) {
        ("", "v1", "Namespace") => vec![name, text("Status", cell::phase), age()],
        ("", "v1", "Secret") => vec![name, text("Type", cell::ty), count("Data", cell::data), age()],
        ("", "v1", "ConfigMap") => vec![name, count("Data", cell::data), age()],
        ("", "v1", "ServiceAccount") => vec![name, count("Secrets", cell::secrets), age()],
        ("" | "events.k8s.io", "v1", "Event") => vec![
            text("Last Seen", cell::event_last_seen),
            text("Type", cell::ty),
            text("Reason", cell::event_reason),
            text("Object", cell::event_object),
            wide("Subobject", cell::event_subobject),
            wide("Source", cell::event_source),
            text("Message", cell::event_message),
            wide("First Seen", cell::event_first_seen),
            column("Count", "integer", 1, cell::event_count),
            wide("Name", cell::name),
        ],
        ("", "v1", "Node") => vec![
            name,
            text("Status", cell::node_status),
            text("Roles", cell::node_roles),
            age(),
            text("Version", |node, _| cell::at(node, "/status/nodeInfo/kubeletVersion")),
            wide("Internal-IP", |node, _| cell::node_address(node, "InternalIP")),
            wide("External-IP", |node, _| cell::node_address(node, "ExternalIP")),
            wide("OS-Image", |node, _| cell::or_unknown(node, "/status/nodeInfo/osImage")),
            wide("Kernel-Version", |node, _| cell::or_unknown(node, "/status/nodeInfo/kernelVersion")),
            wide("Container-Runtime", |node, _| cell::or_unknown(node, "/status/nodeInfo/containerRuntimeVersion")),
        ],
        ("coordination.k8s.io", "v1", "Lease") => {
            vec![name, text("Holder", |lease, _| cell::at(lease, "/spec/holderIdentity")), age()]
        }
        ("", "v1", "Service") => vec![
            name,
            text("Type", |service, _| cell::at(service, "/spec/type")),
            text("Cluster-IP", |service, _| cell::or_none(service, "/spec/clusterIP")),
            text("External-IP", cell::service_external),
            text("Port(s)", cell::service_ports),
            age(),
            wide("Selector", |service, _| cell::labels(service.pointer("/spec/selector"))),
        ],
        ("", "v1", "Endpoints") => vec![name, text("Endpoints", cell::endpoints), age()],
        ("", "v1", "Pod") => vec![
            name,
            text("Ready", pods::ready),
            text("Status", pods::status),
            text("Restarts", pods::restarts),
            age(),
            wide("IP", |pod, _| cell::or_none(pod, "/status/podIP")),
            wide("Node", |pod, _| cell::or_none(pod, "/spec/nodeName")),
            wide("Nominated Node", |pod, _| cell::or_none(pod, "/status/nominatedNodeName")),
            wide("Readiness Gates", pods::gates),
        ],
        ("apps", "v1", "Deployment") => vec![
            name,
            text("Ready", |workload, _| cell::ratio(workload, "/status/readyReplicas", "/spec/replicas")),
            count("Up-to-date", |workload, _| cell::number(workload, "/status/updatedReplicas")),
            count("Available", |workload, _| cell::number(workload, "/status/availableReplicas")),
            age(),
        ],
        ("apps", "v1", "StatefulSet") => {
            vec![
                name,
                text("Ready", |workload, _| cell::ratio(workload, "/status/readyReplicas", "/spec/replicas")),
                age(),
            ]
        }
        ("apps", "v1", "ReplicaSet") => vec![
            name,
            count("Desired", |workload, _| cell::number(workload, "/spec/replicas")),
            count("Current", |workload, _| cell::number(workload, "/status/replicas")),
            count("Ready", |workload, _| cell::number(workload, "/status/readyReplicas")),
            age(),
        ],
        ("apps", "v1", "DaemonSet") => vec![
            name,
            count("Desired", |workload, _| cell::number(workload, "/status/desiredNumberScheduled")),
            count("Current", |workload, _| cell::number(workload, "/status/currentNumberScheduled")),
            count("Ready", |workload, _| cell::number(workload, "/status/numberReady")),
            count("Up-to-date", |workload, _| cell::number(workload, "/status/updatedNumberScheduled")),
            count("Available", |workload, _| cell::number(workload, "/status/numberAvailable")),
            text("Node Selector", |workload, _| cell::labels(workload.pointer("/spec/template/spec/nodeSelector"))),
            age(),
        ],
        ("apiextensions.k8s.io", "v1", "CustomResourceDefinition") => {
            vec![name, text("Created At", |crd, _| cell::at(crd, "/metadata/creationTimestamp"))]
        }
        _ => vec![name, age()],
    }
}
