//! Label keys.

/// Name of an object's Cluster.
pub const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
/// Marks Machines (and their clones) of the control plane; the value is empty.
pub const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";
/// Name of the control plane of a Machine.
pub const CONTROL_PLANE_NAME: &str = "cluster.x-k8s.io/control-plane-name";
/// Name of the MachineSet of a Machine, hashed when too long for a label.
pub const SET_NAME: &str = "cluster.x-k8s.io/set-name";
/// Name of the MachineDeployment of a Machine or MachineSet.
pub const DEPLOYMENT_NAME: &str = "cluster.x-k8s.io/deployment-name";
/// Name of the MachinePool of a Machine.
pub const POOL_NAME: &str = "cluster.x-k8s.io/pool-name";
/// Distinguishes the MachineSets of a MachineDeployment.
pub const TEMPLATE_HASH: &str = "machine-template-hash";
/// On Nodes whose infrastructure may disappear at any time.
pub const INTERRUPTIBLE: &str = "cluster.x-k8s.io/interruptible";
/// Key prefix of the contract labels on CRDs: `cluster.x-k8s.io/v1beta2: v1beta1_v1beta2`.
pub const CONTRACT_PREFIX: &str = "cluster.x-k8s.io/";
