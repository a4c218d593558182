//! Label keys.

/// Name of the cluster that an object belongs to.
pub const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
/// Marks Machines (and their clones) of the control plane; the value is empty.
pub const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";
/// Name of the control plane object that made a Machine.
pub const CONTROL_PLANE_NAME: &str = "cluster.x-k8s.io/control-plane-name";
/// Name of the MachineSet that made a Machine, hashed when too long for a label.
pub const SET_NAME: &str = "cluster.x-k8s.io/set-name";
/// Name of the MachineDeployment that a Machine or MachineSet descends from.
pub const DEPLOYMENT_NAME: &str = "cluster.x-k8s.io/deployment-name";
/// Name of the MachinePool that a Machine descends from.
pub const POOL_NAME: &str = "cluster.x-k8s.io/pool-name";
/// Tells the MachineSets of one MachineDeployment apart.
pub const TEMPLATE_HASH: &str = "machine-template-hash";
/// Put on Nodes whose infrastructure may be taken away at any time.
pub const INTERRUPTIBLE: &str = "cluster.x-k8s.io/interruptible";
/// Key prefix of the contract labels on CRDs: `cluster.x-k8s.io/v1beta2: v1beta1_v1beta2`.
pub const CONTRACT_PREFIX: &str = "cluster.x-k8s.io/";
