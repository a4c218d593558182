//! Static pod manifests of a control plane as kubeadm writes them: the same flags, volumes, probes and annotations, with what
//! the configuration adds, and patched from a directory of patches.

mod commands;
mod patches;

use serde_json::{Value, json};

use crate::files::{Files, reason};
use crate::kubeadm::config::{ClusterConfiguration, HostPath};
use crate::kubeadm::{paths, versions};

/// Annotation with the API server's `host:port`.
const API_SERVER_ENDPOINT: &str = "kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint";
/// Annotation with the URL at which clients find a member of etcd.
const ETCD_CLIENT_URLS: &str = "kubeadm.kubernetes.io/etcd.advertise-client-urls";

/// A control-plane node as its manifests describe it.
pub(super) struct Plan<'a> {
    /// The cluster's configuration, completed.
    pub cluster: &'a ClusterConfiguration,
    /// Directory of the certificates on the node.
    pub pki: &'a str,
    /// Address of the API server and of etcd.
    pub address: &'a str,
    /// Port of the API server.
    pub port: u16,
    pub node: &'a str,
    /// Members of etcd with their peer URLs when this node's joins them; empty for the first.
    pub members: &'a [(String, String)],
    /// Directory with patches; empty: none.
    pub patches: &'a str,
}

impl Plan<'_> {
    fn host(&self) -> String {
        if self.address.contains(':') { format!("[{}]", self.address) } else { self.address.to_owned() }
    }

    fn localhost(&self) -> &'static str {
        if self.address.contains(':') { "::1" } else { "127.0.0.1" }
    }

    /// Where other members find this one.
    pub(super) fn peer_url(&self) -> String {
        format!("https://{}:2380", self.host())
    }

    fn image(&self, name: &str) -> String {
        format!("{}/{name}:{}", self.cluster.image_repository, self.cluster.kubernetes_version)
    }
}

/// A volume and where it is mounted.
struct Mount {
    name: String,
    host: String,
    inside: String,
    read_only: bool,
    kind: String,
}

impl Mount {
    fn new(name: &str, path: &str, kind: &str) -> Mount {
        Mount {
            name: name.to_owned(),
            host: path.to_owned(),
            inside: path.to_owned(),
            read_only: true,
            kind: kind.to_owned(),
        }
    }

    fn writable(self) -> Mount {
        Mount { read_only: false, ..self }
    }

    fn extra(given: &HostPath) -> Mount {
        Mount {
            name: given.name.clone(),
            host: given.host_path.clone(),
            inside: given.mount_path.clone(),
            read_only: given.read_only,
            kind: given.path_type.clone(),
        }
    }
}

/// What differs between the pods.
struct Component<'a> {
    name: &'a str,
    image: String,
    command: Vec<String>,
    environment: &'a [Value],
    mounts: Vec<Mount>,
    /// Host, port, scheme, and paths of liveness, readiness and startup probe.
    probe: (String, u16, &'a str, [&'a str; 3]),
    cpu: &'a str,
    annotations: Value,
}

/// Writes the manifests of API server, controller manager and scheduler.
///
/// # Errors
/// When a file cannot be written or patched.
pub(super) fn write(files: &dyn Files, plan: &Plan<'_>) -> Result<(), String> {
    let cluster = plan.cluster;
    let certificates = || Mount::new("k8s-certs", plan.pki, "DirectoryOrCreate");
    let authorities = || Mount::new("ca-certs", "/etc/ssl/certs", "DirectoryOrCreate");
    let extra = |given: &[HostPath]| given.iter().map(Mount::extra).collect::<Vec<_>>();
    let mut api_server = vec![authorities(), certificates()];
    if let Some(external) = &cluster.etcd.external
        && !external.ca_file.is_empty()
        && !external.ca_file.starts_with(&format!("{}/", plan.pki))
    {
        api_server.push(Mount::new("etcd-certs-0", crate::files::parent(&external.ca_file), "DirectoryOrCreate"));
    }
    api_server.extend(extra(&cluster.api_server.extra_volumes));
    pod(
        files,
        plan,
        Component {
            name: "kube-apiserver",
            image: plan.image("kube-apiserver"),
            command: commands::api_server(plan),
            environment: &cluster.api_server.extra_envs,
            mounts: api_server,
            probe: (plan.address.to_owned(), plan.port, "HTTPS", ["/livez", "/readyz", "/livez"]),
            cpu: "250m",
            annotations: json!({ API_SERVER_ENDPOINT: format!("{}:{}", plan.host(), plan.port) }),
        },
    )?;
    let mut controllers = vec![
        authorities(),
        certificates(),
        Mount::new("kubeconfig", paths::CONTROLLER_MANAGER, "FileOrCreate"),
        Mount::new("flexvolume-dir", "/usr/libexec/kubernetes/kubelet-plugins/volume/exec", "DirectoryOrCreate")
            .writable(),
    ];
    controllers.extend(extra(&cluster.controller_manager.extra_volumes));
    let health = ["/healthz", "/healthz", "/healthz"];
    pod(
        files,
        plan,
        Component {
            name: "kube-controller-manager",
            image: plan.image("kube-controller-manager"),
            command: commands::controller_manager(plan),
            environment: &cluster.controller_manager.extra_envs,
            mounts: controllers,
            probe: (plan.localhost().to_owned(), 10257, "HTTPS", health),
            cpu: "200m",
            annotations: json!({}),
        },
    )?;
    let mut scheduler = vec![Mount::new("kubeconfig", paths::SCHEDULER, "FileOrCreate")];
    scheduler.extend(extra(&cluster.scheduler.extra_volumes));
    pod(
        files,
        plan,
        Component {
            name: "kube-scheduler",
            image: plan.image("kube-scheduler"),
            command: commands::scheduler(plan),
            environment: &cluster.scheduler.extra_envs,
            mounts: scheduler,
            probe: (plan.localhost().to_owned(), 10259, "HTTPS", ["/livez", "/readyz", "/livez"]),
            cpu: "100m",
            annotations: json!({}),
        },
    )
}

/// Writes the manifest of this node's member of etcd; nothing when etcd is somebody else's.
///
/// # Errors
/// When a file cannot be written or patched.
pub(super) fn write_etcd(files: &dyn Files, plan: &Plan<'_>) -> Result<(), String> {
    if plan.cluster.etcd.external.is_some() {
        return Ok(());
    }
    let local = plan.cluster.etcd.local.clone().unwrap_or_default();
    let first = |texts: [&str; 2]| texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default().to_owned();
    let repository = first([&local.image_repository, &plan.cluster.image_repository]);
    let tag = first([&local.image_tag, versions::etcd(&plan.cluster.kubernetes_version)]);
    let data = first([&local.data_dir, paths::ETCD_DATA]);
    let mounts = vec![
        Mount::new("etcd-certs", &format!("{}/etcd", plan.pki), "DirectoryOrCreate").writable(),
        Mount::new("etcd-data", &data, "DirectoryOrCreate").writable(),
    ];
    pod(
        files,
        plan,
        Component {
            name: "etcd",
            image: format!("{repository}/etcd:{tag}"),
            command: commands::etcd(plan, &data, &local.extra_args),
            environment: &local.extra_envs,
            mounts,
            probe: (plan.localhost().to_owned(), 2381, "HTTP", ["/livez", "/readyz", "/readyz"]),
            cpu: "100m",
            annotations: json!({ ETCD_CLIENT_URLS: format!("https://{}:2379", plan.host()) }),
        },
    )
}

fn pod(files: &dyn Files, plan: &Plan<'_>, component: Component<'_>) -> Result<(), String> {
    let (host, port, scheme, [live, ready, start]) = component.probe;
    let probe = |path: &str, period: u32, failures: u32| {
        json!({
            "httpGet": { "host": host, "path": path, "port": port, "scheme": scheme },
            "failureThreshold": failures, "periodSeconds": period, "timeoutSeconds": 15,
        })
    };
    let mounts: Vec<Value> = component
        .mounts
        .iter()
        .map(|mount| {
            let mut value = json!({ "name": mount.name, "mountPath": mount.inside });
            if mount.read_only {
                value["readOnly"] = json!(true);
            }
            value
        })
        .collect();
    let volumes: Vec<Value> = component
        .mounts
        .iter()
        .map(|mount| json!({ "name": mount.name, "hostPath": { "path": mount.host, "type": mount.kind } }))
        .collect();
    let mut container = json!({
        "name": component.name, "image": component.image, "imagePullPolicy": "IfNotPresent", "command": component.command,
        "livenessProbe": probe(live, 10, 8), "readinessProbe": probe(ready, 1, 3), "startupProbe": probe(start, 10, 24),
        "resources": { "requests": { "cpu": component.cpu } }, "volumeMounts": mounts,
    });
    if !component.environment.is_empty() {
        container["env"] = json!(component.environment);
    }
    let mut metadata = json!({
        "name": component.name, "namespace": "kube-system",
        "labels": { "component": component.name, "tier": "control-plane" },
    });
    if component.annotations.as_object().is_some_and(|annotations| !annotations.is_empty()) {
        metadata["annotations"] = component.annotations;
    }
    let mut manifest = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": {
            "containers": [container], "hostNetwork": true, "priority": 2_000_001_000, "priorityClassName": "system-node-critical",
            "securityContext": { "seccompProfile": { "type": "RuntimeDefault" } }, "volumes": volumes,
        },
        "status": {},
    });
    if !plan.patches.is_empty() {
        manifest = patches::apply(files, plan.patches, component.name, manifest)?;
    }
    let path = format!("{}/{}.yaml", paths::MANIFESTS, component.name);
    let text = serde_saphyr::to_string(&manifest).map_err(|error| format!("unable to write YAML: {error}"))?;
    files.install(&path, text, 0o600).map_err(|error| format!("couldn't write {path}: {}", reason(&error)))
}

/// The value of a flag in a static pod's command.
pub fn flag<'a>(manifest: &'a Value, name: &str) -> Option<&'a str> {
    let command = manifest["spec"]["containers"][0]["command"].as_array()?;
    let prefix = format!("--{name}=");
    command.iter().rev().filter_map(Value::as_str).find_map(|argument| argument.strip_prefix(&prefix))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use std::sync::Arc;

    use super::*;
    use crate::files::MemoryFiles;
    use crate::kubeadm::config::Documents;

    const CONFIG: &str = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.34.1\nimageRepository: r.example\n\
        clusterName: c\nnetworking: {serviceSubnet: 10.96.0.0/12, podSubnet: 192.168.0.0/16, dnsDomain: cluster.local}\n\
        apiServer:\n  extraArgs: [{name: v, value: '4'}, {name: authorization-mode, value: AlwaysAllow}]\n  \
        extraVolumes: [{name: audit, hostPath: /a, mountPath: /b, readOnly: true, pathType: File}]\n  extraEnvs: [{name: E, value: x}]\n";

    fn manifests(config: &str, members: &[(String, String)]) -> (MemoryFiles, [Value; 4]) {
        let (cluster, _) = Documents::parse(config).unwrap().cluster.unwrap();
        let memory = MemoryFiles::new(Arc::default());
        let files: &dyn Files = &memory;
        files.install("/p/kube-apiserver0+merge.yaml", "metadata: {labels: {patched: 'yes'}}", 0o600).unwrap();
        let plan = Plan {
            cluster: &cluster,
            pki: "/etc/kubernetes/pki",
            address: "127.64.0.2",
            port: 6443,
            node: "n",
            members,
            patches: "/p",
        };
        write(files, &plan).unwrap();
        write_etcd(files, &plan).unwrap();
        let names = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"];
        let read = |name: &str| match files.read_text(&format!("{}/{name}.yaml", paths::MANIFESTS)) {
            Ok(text) => serde_saphyr::from_str(&text).unwrap(),
            Err(_) => Value::Null,
        };
        let read = names.map(read);
        (memory, read)
    }

    #[test]
    fn manifests_say_what_kubeadm_and_the_configuration_say() {
        let (_, [api_server, controllers, scheduler, etcd]) = manifests(CONFIG, &[]);
        let container = &api_server["spec"]["containers"][0];
        assert_eq!(container["image"], "r.example/kube-apiserver:v1.34.1");
        assert_eq!(flag(&api_server, "v"), Some("4"));
        assert_eq!(flag(&api_server, "authorization-mode"), Some("AlwaysAllow"));
        assert_eq!(flag(&api_server, "etcd-servers"), Some("https://127.0.0.1:2379"));
        assert_eq!(flag(&api_server, "service-account-issuer"), Some("https://kubernetes.default.svc.cluster.local"));
        assert_eq!(container["env"], json!([{ "name": "E", "value": "x" }]));
        assert!(container["volumeMounts"].as_array().unwrap().iter().any(|mount| mount["mountPath"] == "/b"));
        assert_eq!(api_server["metadata"]["labels"]["patched"], "yes");
        assert_eq!(flag(&controllers, "cluster-cidr"), Some("192.168.0.0/16"));
        assert_eq!(
            controllers["metadata"]["labels"],
            json!({ "component": "kube-controller-manager", "tier": "control-plane" })
        );
        assert_eq!(flag(&scheduler, "leader-elect"), Some("true"));
        assert_eq!(flag(&etcd, "initial-cluster"), Some("n=https://127.64.0.2:2380"));
        assert_eq!(etcd["metadata"]["annotations"][ETCD_CLIENT_URLS], "https://127.64.0.2:2379");
    }

    #[test]
    fn a_member_that_joins_names_all_members() {
        let members = [("a".to_owned(), "https://1:2380".to_owned()), ("n".to_owned(), "https://2:2380".to_owned())];
        let (_, [.., etcd]) = manifests(CONFIG, &members);
        assert_eq!(flag(&etcd, "initial-cluster"), Some("a=https://1:2380,n=https://2:2380"));
        assert_eq!(flag(&etcd, "initial-cluster-state"), Some("existing"));
    }

    #[test]
    fn an_etcd_of_somebody_else_has_no_member_here() {
        let config = format!(
            "{CONFIG}etcd: {{external: {{endpoints: ['https://e:2379'], caFile: /e/ca, certFile: /e/crt, keyFile: /e/key}}}}\n"
        );
        let (_, [api_server, _, _, etcd]) = manifests(&config, &[]);
        assert!(etcd.is_null());
        assert_eq!(flag(&api_server, "etcd-servers"), Some("https://e:2379"));
        assert_eq!(flag(&api_server, "etcd-keyfile"), Some("/e/key"));
    }
}
