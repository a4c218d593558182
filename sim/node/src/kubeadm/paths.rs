//! Where kubeadm and the kubelet keep things.

/// Certificates, unless the configuration says otherwise.
pub const PKI: &str = "/etc/kubernetes/pki";
/// Directory of static pods.
pub const MANIFESTS: &str = "/etc/kubernetes/manifests";
/// Static pod of the API server.
pub const API_SERVER_MANIFEST: &str = "/etc/kubernetes/manifests/kube-apiserver.yaml";
/// The administrator's kubeconfig.
pub const ADMIN: &str = "/etc/kubernetes/admin.conf";
/// The kubeconfig that needs no RBAC rule.
pub const SUPER_ADMIN: &str = "/etc/kubernetes/super-admin.conf";
/// The controller manager's kubeconfig.
pub const CONTROLLER_MANAGER: &str = "/etc/kubernetes/controller-manager.conf";
/// The scheduler's kubeconfig.
pub const SCHEDULER: &str = "/etc/kubernetes/scheduler.conf";
/// Static pod of etcd.
pub const ETCD_MANIFEST: &str = "/etc/kubernetes/manifests/etcd.yaml";
/// Data of etcd, unless the configuration says otherwise.
pub const ETCD_DATA: &str = "/var/lib/etcd";
/// The kubelet's kubeconfig.
pub const KUBELET: &str = "/etc/kubernetes/kubelet.conf";
/// The kubelet's kubeconfig before it has a certificate.
pub const BOOTSTRAP_KUBELET: &str = "/etc/kubernetes/bootstrap-kubelet.conf";
/// Certificate and key of the kubelet, in one file.
pub const KUBELET_CERTIFICATE: &str = "/var/lib/kubelet/pki/kubelet-client-current.pem";
/// The kubelet's command line as kubeadm made it.
pub const KUBELET_FLAGS: &str = "/var/lib/kubelet/kubeadm-flags.env";
/// The kubelet's configuration.
pub const KUBELET_CONFIG: &str = "/var/lib/kubelet/config.yaml";
/// Version of the kubelet that a node without a version in its image pretends to be.
pub const KUBELET_VERSION: &str = "/var/lib/kubelet/simulated-version";
/// What a cloud's controller manager would write into the Node's `spec.providerID`, on a machine of a simulated cloud.
pub const PROVIDER_ID: &str = "/run/capwasm/provider-id";
