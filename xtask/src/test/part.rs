//! The parts of the second tier.

use clap::ValueEnum;

/// What takes long, builds what is not ours, or needs services of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// A real Docker engine, which is installed and started.
    Docker,
    /// The real kubeadm and control planes of four Kubernetes versions, built with Go.
    Kubeadm,
    /// Real OpenStack services on loopback.
    Openstack,
    /// Every cut of the fault matrices on simulators, and every case of what is stripped, of which the first tier takes a sample.
    Faults,
    /// What is held against sources of Kubernetes, read with Go.
    Go,
    /// Upstream's OpenStack manager beside ours; `CAPWASM_CAPO` names its source.
    Upstream,
}

impl Part {
    /// All of them, in the order in which they are told.
    pub const ALL: [Part; 6] = [Part::Docker, Part::Kubeadm, Part::Openstack, Part::Faults, Part::Go, Part::Upstream];

    /// As in `CAPWASM_PARTS`, and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Part::Docker => "docker",
            Part::Kubeadm => "kubeadm",
            Part::Openstack => "openstack",
            Part::Faults => "faults",
            Part::Go => "go",
            Part::Upstream => "upstream",
        }
    }

    pub fn named(name: &str) -> Option<Part> {
        Part::ALL.into_iter().find(|part| part.name() == name)
    }

    /// The test binaries that have tests of it. A run that leaves the part out checks that none is missing here.
    pub fn binaries(self) -> &'static [&'static str] {
        match self {
            Part::Docker => &["docker", "kubeadm", "real_docker"],
            Part::Kubeadm => &["crds", "kubeadm", "rbac", "webhook"],
            Part::Openstack => &[
                "openstack",
                "openstack_contract",
                "openstack_faults",
                "openstack_fields",
                "openstack_outage",
                "openstack_real",
            ],
            Part::Faults => &["kill", "openstack_faults", "stripped"],
            Part::Go => &["xtask"],
            Part::Upstream => &["openstack_upstream"],
        }
    }
}
