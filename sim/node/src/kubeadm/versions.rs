//! Which versions of etcd and CoreDNS belong to a version of Kubernetes, and how far versions may lie apart. Pure.

use crate::kubeadm::config::Version;

/// Image tag of etcd for a Kubernetes version.
pub(super) fn etcd(kubernetes: &str) -> &'static str {
    match minor(kubernetes) {
        0..=31 => "3.5.15-0",
        32 => "3.5.16-0",
        33 => "3.5.21-0",
        34 => "3.6.4-0",
        _ => "3.6.5-0",
    }
}

/// Image tag of CoreDNS for a Kubernetes version.
pub(super) fn coredns(kubernetes: &str) -> &'static str {
    match minor(kubernetes) {
        0..=32 => "v1.11.3",
        33 => "v1.12.0",
        34 => "v1.12.1",
        _ => "v1.13.1",
    }
}

fn minor(version: &str) -> u64 {
    Version::parse(version).map_or(u64::MAX, |version| version.minor)
}

/// Whether a kubeadm of version `own` may deploy or join a control plane of version `wanted`: one minor version older at most.
///
/// # Errors
/// kubeadm's refusal.
pub(super) fn deployable(own: &Version, wanted: &Version) -> Result<(), String> {
    let oldest = own.minor.saturating_sub(1);
    if wanted.minor >= oldest {
        return Ok(());
    }
    Err(format!(
        "this version of kubeadm only supports deploying clusters with the control plane version >= 1.{oldest}.0. Current version: {}",
        wanted.text
    ))
}

/// kubeadm's warning about a control plane that is newer than itself.
pub(super) fn newer(own: &Version, wanted: &Version) -> Option<String> {
    (wanted.minor > own.minor).then(|| {
        format!(
            "Kubernetes version is greater than kubeadm version. Please consider to upgrade kubeadm. Kubernetes version: {}. Kubeadm version: 1.{}.x",
            wanted.text.trim_start_matches('v'),
            own.minor
        )
    })
}

/// Whether a kubelet may run a control plane: it must not be newer.
///
/// # Errors
/// kubeadm's refusal, the preflight check `KubeletVersion`.
pub(super) fn kubelet(kubelet: &Version, control_plane: &Version) -> Result<(), String> {
    if (kubelet.minor, kubelet.patch) <= (control_plane.minor, control_plane.patch) {
        return Ok(());
    }
    Err(format!(
        "the kubelet version is higher than the control plane version. This is not a supported version skew and may lead to a malfunctional cluster. Kubelet version: {:?} Control plane version: {:?}",
        kubelet.text.trim_start_matches('v'),
        control_plane.text.trim_start_matches('v')
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    #[test]
    fn kubeadm_deploys_what_is_at_most_one_minor_version_older() {
        for (own, wanted, expected) in [
            ("v1.34.0", "v1.34.5", true),
            ("v1.34.0", "v1.33.0", true),
            ("v1.34.0", "v1.32.9", false),
            ("v1.34.0", "v1.35.0", true),
        ] {
            assert_eq!(deployable(&version(own), &version(wanted)).is_ok(), expected, "{own} {wanted}");
        }
        assert!(newer(&version("v1.34.0"), &version("v1.35.0")).is_some());
        assert!(newer(&version("v1.34.0"), &version("v1.34.9")).is_none());
    }

    #[test]
    fn kubelets_are_not_newer_than_the_control_plane() {
        for (own, plane, expected) in [
            ("v1.34.0", "v1.34.0", true),
            ("v1.31.0", "v1.34.0", true),
            ("v1.34.1", "v1.34.0", false),
            ("v1.35.0", "v1.34.9", false),
        ] {
            assert_eq!(kubelet(&version(own), &version(plane)).is_ok(), expected, "{own} {plane}");
        }
    }

    #[test]
    fn images_of_etcd_and_coredns_follow_the_version() {
        assert_eq!((etcd("v1.34.2"), coredns("v1.34.2")), ("3.6.4-0", "v1.12.1"));
        assert_eq!((etcd("v1.31.0"), coredns("v1.31.0")), ("3.5.15-0", "v1.11.3"));
    }
}
