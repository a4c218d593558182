//! Labels and annotations that are the host's: they say to which Cluster an object belongs, who works on it and what holds it, so no
//! provider sets them on its objects.

/// Domains of the host and of those who run it, with everything below them.
const DOMAINS: [&str; 4] = ["capwasm.dev", "cluster.x-k8s.io", "k8s.io", "kubernetes.io"];

/// Annotation that keeps what an older version cannot say. A conversion sets it and takes it away.
pub const CONVERSION_DATA: &str = "cluster.x-k8s.io/conversion-data";

/// Annotation of an object that makes Machines: the number of the next one's name. Whoever makes them keeps it, a control plane too.
pub const NEXT_SLOT: &str = "capwasm.dev/next-slot";

/// Whether a label or annotation is the host's on objects of API group `group`. The domain that a group is named for is its
/// provider's (`controlplane.cluster.x-k8s.io`), and so is what has no domain.
pub fn is_hosts(key: &str, group: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else { return false };
    if key == NEXT_SLOT {
        return false;
    }
    let at_or_below =
        |above: &str| domain.strip_suffix(above).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    DOMAINS.contains(&domain) || (domain != group && DOMAINS.into_iter().any(at_or_below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_go_by_is_the_hosts() {
        const GROUP: &str = "infrastructure.cluster.x-k8s.io";
        let rows = [
            ("cluster.x-k8s.io/cluster-name", GROUP, true),
            ("cluster.x-k8s.io/paused", GROUP, true),
            ("cluster.x-k8s.io/managed-by", "cluster.x-k8s.io", true),
            (CONVERSION_DATA, GROUP, true),
            ("topology.cluster.x-k8s.io/owned", GROUP, true),
            ("controlplane.cluster.x-k8s.io/skip-coredns", GROUP, true),
            ("infrastructure.cluster.x-k8s.io/zone", GROUP, false),
            ("below.infrastructure.cluster.x-k8s.io/zone", GROUP, true),
            ("capwasm.dev/provider", GROUP, true),
            (NEXT_SLOT, "controlplane.cluster.x-k8s.io", false),
            ("app.kubernetes.io/managed-by", GROUP, true),
            ("kubectl.kubernetes.io/last-applied-configuration", GROUP, true),
            ("node.k8s.io/x", GROUP, true),
            ("example.org/cluster.x-k8s.io", GROUP, false),
            ("notcluster.x-k8s.io/x", GROUP, false),
            ("cluster.x-k8s.io.example.org/x", GROUP, false),
            ("cluster.x-k8s.io", GROUP, false),
            ("zone", GROUP, false),
        ];
        for (key, group, expected) in rows {
            assert_eq!(is_hosts(key, group), expected, "{key} on {group}");
        }
    }
}
