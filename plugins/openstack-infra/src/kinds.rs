//! Names of kinds, conditions, labels and finalizers. They are upstream's, so that objects can go from its provider to this
//! one and back.

/// API group of the kinds.
pub const GROUP: &str = "infrastructure.cluster.x-k8s.io";
/// The version of OpenStackCluster, OpenStackMachine and their templates that this provider speaks.
pub const V1BETA1: &str = "infrastructure.cluster.x-k8s.io/v1beta1";
/// The version of OpenStackServer, OpenStackFloatingIPPool and OpenStackClusterIdentity.
pub const V1ALPHA1: &str = "infrastructure.cluster.x-k8s.io/v1alpha1";
/// API group of claims of addresses.
pub const IPAM_GROUP: &str = "ipam.cluster.x-k8s.io";

pub const CLUSTER_FINALIZER: &str = "openstackcluster.infrastructure.cluster.x-k8s.io";
pub const MACHINE_FINALIZER: &str = "openstackmachine.infrastructure.cluster.x-k8s.io";
pub const SERVER_FINALIZER: &str = "openstackserver.infrastructure.cluster.x-k8s.io";
pub const POOL_FINALIZER: &str = "openstackfloatingippool.infrastructure.cluster.x-k8s.io";
/// Finalizer of an IPAddressClaim that was made for a machine.
pub const CLAIM_FINALIZER: &str = "openstackmachine.infrastructure.cluster.x-k8s.io/ip-claim";
/// Finalizer of an IPAddress that a pool made.
pub const ADDRESS_FINALIZER: &str = "openstackfloatingippool.infrastructure.cluster.x-k8s.io/delete-floating-ip";

/// On every object of a cluster.
pub const CLUSTER_NAME_LABEL: &str = "cluster.x-k8s.io/cluster-name";
pub const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";

pub const AUTHENTICATED: &str = "OpenStackAuthenticationSucceeded";
/// The cluster's network and subnets are there.
pub const NETWORK_READY: &str = "NetworkReady";
/// The cluster's router is there.
pub const ROUTER_READY: &str = "RouterReady";
/// The cluster's security groups and their rules are there.
pub const SECURITY_GROUPS_READY: &str = "SecurityGroupsReady";
/// The API server's endpoint is there.
pub const API_ENDPOINT_READY: &str = "APIEndpointReady";
/// The machine's server runs.
pub const INSTANCE_READY: &str = "InstanceReady";
/// The machine gets its share of the API server's traffic.
pub const API_SERVER_INGRESS_READY: &str = "APIServerIngressReadyCondition";
/// The pool has what it was asked for.
pub const POOL_READY: &str = "OpenstackFloatingIPPoolReadyCondition";
/// The machine's floating address is there.
pub const FLOATING_ADDRESS_READY: &str = "FloatingAddressFromPoolReady";
