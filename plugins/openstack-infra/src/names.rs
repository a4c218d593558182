//! Names of what this provider makes in OpenStack. They are upstream's, so that it finds again what was made before.

/// Names of what belongs to one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterNames {
    namespace: String,
    cluster: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum SecurityGroupRole {
    ControlPlane,
    Worker,
    Bastion,
}

impl SecurityGroupRole {
    pub const ALL: [SecurityGroupRole; 3] =
        [SecurityGroupRole::ControlPlane, SecurityGroupRole::Worker, SecurityGroupRole::Bastion];

    /// As it stands in names and in `managedSecurityGroups` rules.
    pub fn as_str(self) -> &'static str {
        match self {
            SecurityGroupRole::ControlPlane => "controlplane",
            SecurityGroupRole::Worker => "worker",
            SecurityGroupRole::Bastion => "bastion",
        }
    }
}

impl ClusterNames {
    /// Of the Cluster (not the OpenStackCluster) and its namespace.
    pub fn new(namespace: &str, cluster: &str) -> ClusterNames {
        ClusterNames { namespace: namespace.to_owned(), cluster: cluster.to_owned() }
    }

    pub fn base(&self) -> String {
        format!("{}-{}", self.namespace, self.cluster)
    }

    pub fn network(&self) -> String {
        format!("k8s-clusterapi-cluster-{}", self.base())
    }

    pub fn subnet(&self) -> String {
        self.network()
    }

    pub fn router(&self) -> String {
        self.network()
    }

    /// The API server's load balancer.
    pub fn load_balancer(&self) -> String {
        format!("{}-kubeapi", self.network())
    }

    /// Listener, pool and health monitor of a port all have this name.
    pub fn load_balancer_port(&self, port: u16) -> String {
        format!("{}-{port}", self.load_balancer())
    }

    /// A machine's member of the pool of a port.
    pub fn load_balancer_member(&self, port: u16, machine: &str) -> String {
        format!("{}-{machine}", self.load_balancer_port(port))
    }

    pub fn security_group(&self, role: SecurityGroupRole) -> String {
        format!("k8s-cluster-{}-secgroup-{}", self.base(), role.as_str())
    }

    /// The bastion's OpenStackServer and server.
    pub fn bastion(&self) -> String {
        format!("{}-bastion", self.cluster)
    }

    /// The description of everything that is made for the cluster.
    pub fn description(&self) -> String {
        format!("Created by cluster-api-provider-openstack cluster {}", self.base())
    }
}

/// A server's port: by its place in the list of ports, or by the suffix that it was given.
pub fn port(server: &str, index: usize, suffix: Option<&str>) -> String {
    match suffix {
        Some(suffix) if !suffix.is_empty() => format!("{server}-{suffix}"),
        _ => format!("{server}-{index}"),
    }
}

/// A server's volume for a block device; the root volume's device is `root`.
pub fn volume(server: &str, device: &str) -> String {
    format!("{server}-{device}")
}
