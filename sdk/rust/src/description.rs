//! Builds the [`Descriptor`] of a provider.

use capwasm_contract::descriptor::{Descriptor, ExclusiveBy, KindDescriptor, KindPattern, Role, Wants};
use serde_json::Value;

/// Version of the WIT package that this SDK speaks.
pub const CONTRACT: &str = "0.1";

/// Builder of a provider's descriptor: the kinds that it serves, and the grants that it wants.
#[derive(Clone, Debug)]
pub struct Description(Descriptor);

/// Builder of one served kind. Group, kind and version come from its CustomResourceDefinition.
#[derive(Clone, Debug)]
pub struct Kind(KindDescriptor);

impl Kind {
    /// `crd` is the definition as JSON, normally embedded with `include_str!`.
    ///
    /// # Panics
    /// When `crd` is not JSON. It is part of the component, so that this shows in the provider's first test.
    #[allow(
        clippy::panic,
        reason = "a provider with a broken CRD inside cannot describe itself; the host reports the trap"
    )]
    pub fn new(role: Role, crd: &str) -> Kind {
        let crd: Value = serde_json::from_str(crd).unwrap_or_else(|error| panic!("unable to parse the CRD: {error}"));
        let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        Kind(KindDescriptor {
            role,
            group: text("/spec/group"),
            kind: text("/spec/names/kind"),
            version: text("/spec/versions/0/name"),
            finalizers: Vec::new(),
            own: Vec::new(),
            may_wait: Vec::new(),
            exclusive_by: ExclusiveBy::Object,
            bootstrap_data: None,
            admission: false,
            crd,
        })
    }

    /// The API version in which objects are handed to the provider; the CRD's first without this.
    #[must_use]
    pub fn version(mut self, version: &str) -> Kind {
        self.0.version = version.to_owned();
        self
    }

    /// A finalizer; the first is the provider's own, others are taken over from earlier owners.
    #[must_use]
    pub fn finalizer(mut self, name: &str) -> Kind {
        self.0.finalizers.push(name.to_owned());
        self
    }

    /// A path outside of status that the provider sets itself: `spec.providerID`.
    #[must_use]
    pub fn own(mut self, path: &str) -> Kind {
        self.0.own.push(path.to_owned());
        self
    }

    /// A field, or a type of condition, of the status that nobody but people act on before the object is provisioned: the host
    /// may write it a moment later, with what comes next.
    #[must_use]
    pub fn may_wait(mut self, name: &str) -> Kind {
        self.0.may_wait.push(name.to_owned());
        self
    }

    /// One call at a time for all objects of this kind in one cluster.
    #[must_use]
    pub fn exclusive_by_cluster(mut self) -> Kind {
        self.0.exclusive_by = ExclusiveBy::Cluster;
        self
    }

    /// Of a controller's kind: the path of the name of the bootstrap data's Secret, `spec.userDataRef.name`, so that
    /// [`Host::bootstrap_data`](crate::Host::bootstrap_data) reads it.
    #[must_use]
    pub fn bootstrap_data(mut self, path: &str) -> Kind {
        self.0.bootstrap_data = Some(path.to_owned());
        self
    }

    /// Asks [`Admission`](crate::Admission) about objects of this kind before they are stored.
    #[must_use]
    pub fn admission(mut self) -> Kind {
        self.0.admission = true;
        self
    }
}

impl Description {
    /// A description without kinds. `name` is a DNS label, `version` the provider's own.
    pub fn new(name: &str, version: &str) -> Description {
        Description(Descriptor {
            name: name.to_owned(),
            version: version.to_owned(),
            contract: CONTRACT.to_owned(),
            kinds: Vec::new(),
            wants: Wants::default(),
        })
    }

    /// Adds a kind that the provider serves.
    #[must_use]
    pub fn kind(mut self, kind: Kind) -> Description {
        self.0.kinds.push(kind.0);
        self
    }

    /// Asks for a named HTTP endpoint, reached as `http://NAME.endpoint/…`; who installs the provider says where it is.
    #[must_use]
    pub fn endpoint(mut self, name: &str) -> Description {
        self.0.wants.endpoints.push(name.to_owned());
        self
    }

    /// Asks to send HTTP requests to an origin: `https://api.example.org`, `https://*.example.org:6443`.
    #[must_use]
    pub fn origin(mut self, origin: &str) -> Description {
        self.0.wants.origins.push(origin.to_owned());
        self
    }

    /// Asks to read a kind of the management cluster; `*` is every kind of the group.
    #[must_use]
    pub fn reads(mut self, group: &str, kind: &str) -> Description {
        self.0.wants.reads.push(pattern(group, kind));
        self
    }

    /// Asks to create, patch and delete objects of a kind in the management cluster.
    #[must_use]
    pub fn writes(mut self, group: &str, kind: &str) -> Description {
        self.0.wants.writes.push(pattern(group, kind));
        self
    }

    /// Asks to read a kind of the workload cluster.
    #[must_use]
    pub fn workload_reads(mut self, group: &str, kind: &str) -> Description {
        self.0.wants.workload_reads.push(pattern(group, kind));
        self
    }

    /// Asks to read a kind of the workload cluster, and to be called when what was read changes: the host watches all objects of
    /// the kind there, which costs memory. Nodes need no watch of their own; Secrets cannot have one.
    #[must_use]
    pub fn workload_watches(mut self, group: &str, kind: &str) -> Description {
        self.0.wants.workload_watches.push(pattern(group, kind));
        self.workload_reads(group, kind)
    }

    /// Asks to create, patch and delete objects of a kind in the workload cluster.
    #[must_use]
    pub fn workload_writes(mut self, group: &str, kind: &str) -> Description {
        self.0.wants.workload_writes.push(pattern(group, kind));
        self
    }

    /// Asks to read Secrets of the object's namespace by name; `*` matches any part: `*-kubeconfig`.
    #[must_use]
    pub fn secret(mut self, name: &str) -> Description {
        self.0.wants.secrets.push(name.to_owned());
        self
    }

    /// Asks to make keys and certificates: [`Host::new_authority`](crate::Host::new_authority) and the functions after it.
    #[must_use]
    pub fn pki(mut self) -> Description {
        self.0.wants.pki = true;
        self
    }

    /// Asks to read and change the membership of the workload cluster's etcd.
    #[must_use]
    pub fn etcd(mut self) -> Description {
        self.0.wants.etcd = true;
        self
    }

    /// The descriptor, as [`Provider::describe`](crate::Provider::describe) returns it.
    pub fn build(self) -> Descriptor {
        self.0
    }
}

fn pattern(group: &str, kind: &str) -> KindPattern {
    KindPattern { group: group.to_owned(), kind: kind.to_owned() }
}
