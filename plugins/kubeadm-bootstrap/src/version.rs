//! Kubernetes versions, and which of kubeadm's configuration APIs a version reads.

use capwasm_sdk::Problem;

/// The oldest minor version of Kubernetes 1 whose kubeadm is spoken to.
const OLDEST: Minor = Minor(1, 22);

/// Major and minor number of a Kubernetes version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Minor(pub u64, pub u64);

impl Minor {
    /// The first that reads kubeadm's v1beta4.
    pub const V1BETA4: Minor = Minor(1, 31);
    /// The first whose kubeadm makes keys on the curve P-384.
    pub const ECDSA_P384: Minor = Minor(1, 34);
}

impl std::fmt::Display for Minor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "v{}.{}", self.0, self.1)
    }
}

/// A version of kubeadm's configuration API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// Kubernetes v1.22 to v1.30.
    V1Beta3,
    /// Kubernetes v1.31 and newer.
    V1Beta4,
}

impl Api {
    /// Its `apiVersion`.
    pub fn as_str(self) -> &'static str {
        match self {
            Api::V1Beta3 => "kubeadm.k8s.io/v1beta3",
            Api::V1Beta4 => "kubeadm.k8s.io/v1beta4",
        }
    }
}

/// The Kubernetes version of a machine, as far as kubeadm's configuration depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    text: String,
    minor: Option<Minor>,
}

impl Version {
    /// Reads `v1.36.0`, with or without `v`, pre-release and build. An empty text stands for a machine whose image
    /// decides; kubeadm is then spoken to in its newest API. What is no version, or too old, is `invalid`.
    pub fn parse(text: &str) -> Result<Version, Problem> {
        if text.is_empty() {
            return Ok(Version { text: String::new(), minor: None });
        }
        let Some(version) = capwasm_object::version::Version::parse(text) else {
            return Err(Problem::invalid(
                "InvalidKubernetesVersion",
                format!("the version of the machine is not a Kubernetes version: {text}"),
            ));
        };
        let minor = Minor(version.major, version.minor);
        if minor < OLDEST {
            return Err(Problem::invalid(
                "UnsupportedKubernetesVersion",
                format!("Kubernetes {text} is too old; kubeadm is supported from {OLDEST} on"),
            ));
        }
        Ok(Version { text: text.to_owned(), minor: Some(minor) })
    }

    /// As it was given; empty when there was none.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The API of kubeadm's configuration files: v1beta4 from Kubernetes 1.31 on.
    pub fn api(&self) -> Api {
        if self.is_at_least(Minor::V1BETA4) { Api::V1Beta4 } else { Api::V1Beta3 }
    }

    /// A machine without a version is taken to be new.
    pub fn is_at_least(&self, minor: Minor) -> bool {
        self.minor.is_none_or(|known| known >= minor)
    }

    /// The problem of a field that this version's kubeadm does not have.
    pub fn lacks(&self, field: &str, first: Minor, hint: &str) -> Problem {
        Problem::invalid(
            "UnsupportedByKubernetesVersion",
            format!("{field} needs Kubernetes {first} or newer, and the machine has {}{hint}", self.text),
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn the_kubernetes_version_decides_which_kubeadm_api_is_spoken() {
        for (text, api) in [
            ("", Some(Api::V1Beta4)),
            ("v1.36.0", Some(Api::V1Beta4)),
            ("1.31.0", Some(Api::V1Beta4)),
            ("v1.31.0-rc.1+build", Some(Api::V1Beta4)),
            ("v2.0.0", Some(Api::V1Beta4)),
            ("v1.30.9", Some(Api::V1Beta3)),
            ("v1.22.0", Some(Api::V1Beta3)),
            ("v1.21.14", None),
            ("v0.9.0", None),
            ("latest", None),
            ("v1", None),
        ] {
            assert_eq!(Version::parse(text).ok().map(|version| version.api()), api, "{text:?}");
        }
    }
}
