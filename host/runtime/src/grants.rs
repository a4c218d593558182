//! Grants: `spec.grants` of a WasmProvider, with the shape of `wants` in a descriptor.
//!
//! Whatever is not listed is denied; an empty list grants nothing.

mod endpoint;
mod origin;

use std::collections::BTreeMap;

use capwasm_contract::descriptor::{KindPattern, Wants};
use serde::{Deserialize, Serialize};

pub use endpoint::{ClientCertificate, NamedEndpoint, Rule};
pub(crate) use endpoint::{EndpointRefusal, Target};
pub use origin::Origin;
pub(crate) use origin::{ends_in_number, special_address};

/// Capabilities of a provider. The default grants nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Grants {
    /// Named HTTP endpoints by their name in `http://NAME.endpoint/`.
    pub endpoints: BTreeMap<String, NamedEndpoint>,
    /// HTTP origins; see [`Origin`] for their forms.
    pub origins: Vec<Origin>,
    /// Allows requests that ask for TLS without verification. No descriptor can want it, so it is never missing.
    #[serde(rename = "insecureTLS")]
    pub insecure_tls: bool,
    /// Kinds of the management cluster that may be read.
    pub reads: Vec<KindPattern>,
    /// Kinds of the management cluster that may be created, patched or deleted.
    pub writes: Vec<KindPattern>,
    /// Kinds of the workload cluster that may be read.
    pub workload_reads: Vec<KindPattern>,
    /// Kinds of the workload cluster that may be created, patched or deleted.
    pub workload_writes: Vec<KindPattern>,
    /// Names of Secrets in the object's namespace and in [`Grants::namespaces`]; `*` matches any part.
    pub secrets: Vec<String>,
    /// Whether keys and certificates may be made.
    pub pki: bool,
    /// Whether etcd members of the workload cluster may be read and changed.
    pub etcd: bool,
    /// Namespaces of the management cluster besides the object's own; `*` means all.
    pub namespaces: Vec<String>,
}

/// An invalid grant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// An origin does not parse.
    #[error(
        "origin {origin:?}: {problem}; expected scheme://host[:port], host being a name, *.suffix, *, an address or a CIDR"
    )]
    Origin {
        /// Text of the origin.
        origin: String,
        /// The problem with the origin.
        problem: &'static str,
    },
    /// An endpoint is inconsistent.
    #[error("endpoint {name:?}: {problem}")]
    Endpoint {
        /// Name of the endpoint.
        name: String,
        /// The problem with the endpoint.
        problem: String,
    },
}

impl Grants {
    /// Whether a Secret of this name may be read.
    pub fn covers_secret(&self, name: &str) -> bool {
        self.secrets.iter().any(|pattern| wildcard(pattern, name))
    }

    /// Whether a namespace other than the object's own may be used.
    pub fn covers_namespace(&self, namespace: &str) -> bool {
        !namespace.is_empty() && self.namespaces.iter().any(|granted| granted == "*" || granted == namespace)
    }

    /// Wanted capabilities without grants, as text such as `endpoints: docker`.
    pub fn missing(&self, wants: &Wants) -> Vec<String> {
        let mut missing = Vec::new();
        let endpoints = wants.endpoints.iter().filter(|name| !self.endpoints.contains_key(*name));
        missing.extend(endpoints.map(|name| format!("endpoints: {name}")));
        let origins = wants.origins.iter().filter(|want| !self.origins.iter().any(|granted| granted.includes(want)));
        missing.extend(origins.map(|origin| format!("origins: {origin}")));
        let kinds = [
            ("reads", &wants.reads, &self.reads),
            ("writes", &wants.writes, &self.writes),
            ("workloadReads", &wants.workload_reads, &self.workload_reads),
            ("workloadWrites", &wants.workload_writes, &self.workload_writes),
        ];
        for (name, wanted, granted) in kinds {
            let uncovered = wanted.iter().filter(|want| !covers_pattern(granted, want));
            missing.extend(uncovered.map(|want| format!("{name}: {}.{}", want.kind, want.group)));
        }
        let covers = |want: &&String| !self.secrets.iter().any(|granted| granted == *want || wildcard(granted, want));
        missing.extend(wants.secrets.iter().filter(covers).map(|name| format!("secrets: {name}")));
        if wants.pki && !self.pki {
            missing.push("pki: true".to_owned());
        }
        if wants.etcd && !self.etcd {
            missing.push("etcd: true".to_owned());
        }
        missing
    }
}

/// Groups that no wildcard covers: whoever writes their kinds controls the cluster.
const NEVER_BY_WILDCARD: [&str; 8] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "capwasm.dev",
    "certificates.k8s.io",
    "rbac.authorization.k8s.io",
];

/// Whether no wildcard covers the group; no provider may bring a kind in it.
pub(crate) fn is_guarded(group: &str) -> bool {
    NEVER_BY_WILDCARD.contains(&group)
}

/// Kinds of the core group that no wildcard covers. Secrets have a capability of their own.
const NEVER_BY_WILDCARD_CORE: [&str; 2] = ["Secret", "ServiceAccount"];

pub(crate) fn covers(patterns: &[KindPattern], group: &str, kind: &str) -> bool {
    let guarded = is_guarded(group) || (group.is_empty() && NEVER_BY_WILDCARD_CORE.contains(&kind));
    // A guest that asks for kind `*` must not match a pattern that spells `*`.
    kind != "*" && patterns.iter().any(|pattern| pattern.matches(group, kind) && !(guarded && pattern.kind == "*"))
}

fn covers_pattern(granted: &[KindPattern], want: &KindPattern) -> bool {
    granted.contains(want) || covers(granted, &want.group, &want.kind)
}

/// `*` matches any part, also the empty one.
pub(crate) fn wildcard(pattern: &str, text: &str) -> bool {
    let Some((prefix, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(prefix) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    // `split` yields at least one part, the one after the last star.
    let suffix = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    text.ends_with(suffix)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn kind(group: &str, kind: &str) -> KindPattern {
        KindPattern { group: group.into(), kind: kind.into() }
    }

    #[test]
    fn wildcards_match_any_part() {
        let rows = [
            ("*-ca", "one-ca", true),
            ("*-ca", "-ca", true),
            ("*-ca", "one-ca-x", false),
            ("one", "one", true),
            ("one", "one2", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c2", false),
            ("a*bc*c", "abc", false),
            ("*", "", true),
            ("ab*ba", "aba", false),
        ];
        for (pattern, text, expected) in rows {
            assert_eq!(wildcard(pattern, text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn dangerous_kinds_are_never_covered_by_a_wildcard() {
        let all = |group: &str| vec![kind(group, "*")];
        assert!(covers(&all("apps"), "apps", "Deployment"));
        assert!(!covers(&all("apps"), "batch", "Job"));
        assert!(!covers(&all("apps"), "apps", "*"));
        for group in NEVER_BY_WILDCARD {
            assert!(!covers(&all(group), group, "Anything"), "{group}");
            assert!(covers(&[kind(group, "Anything")], group, "Anything"), "{group} by name");
        }
        assert!(covers(&all(""), "", "ConfigMap"));
        assert!(!covers(&all(""), "", "Secret") && covers(&[kind("", "Secret")], "", "Secret"));
        assert!(!covers(&all(""), "", "ServiceAccount"));
    }

    #[test]
    fn what_is_wanted_and_not_granted_is_named() {
        let wants = Wants {
            endpoints: vec!["docker".into()],
            origins: vec!["https://*.example.org".into()],
            reads: vec![kind("", "ConfigMap")],
            writes: vec![kind("", "Secret")],
            secrets: vec!["*-ca".into()],
            pki: true,
            etcd: true,
            ..Wants::default()
        };
        assert_eq!(
            Grants::default().missing(&wants),
            [
                "endpoints: docker",
                "origins: https://*.example.org",
                "reads: ConfigMap.",
                "writes: Secret.",
                "secrets: *-ca",
                "pki: true",
                "etcd: true"
            ]
        );
        let granted: Grants = serde_json::from_value(serde_json::json!({
            "endpoints": {"docker": {"unix": "/run/docker.sock"}},
            "origins": ["https://*.example.org"],
            "reads": [{"group": "", "kind": "*"}],
            "writes": [{"group": "", "kind": "Secret"}],
            "secrets": ["*"],
            "pki": true,
            "etcd": true,
        }))
        .unwrap();
        assert_eq!(granted.missing(&wants), Vec::<String>::new());
    }

    #[test]
    fn a_wildcard_matches_what_it_is_made_of_and_nothing_that_lacks_a_part() {
        arbtest::arbtest(|u| {
            let word = |u: &mut arbitrary::Unstructured<'_>| u.choose(&["", "a", "b", "ab", "-ca"]).copied();
            let parts: Vec<&str> = (0..u.int_in_range(1..=4)?).map(|_| word(u)).collect::<Result<_, _>>()?;
            let (pattern, mut text) = (parts.join("*"), String::new());
            for (index, part) in parts.iter().enumerate() {
                text += if index == 0 { "" } else { word(u)? };
                text += part;
            }
            assert!(wildcard(&pattern, &text), "{pattern} on {text}");
            let other = text.replace(u.choose(&["a", "b", "-"])?, "x");
            let lacks = parts.iter().any(|part| !other.contains(part));
            assert!(!(lacks && wildcard(&pattern, &other)), "{pattern} on {other}");
            Ok(())
        });
    }

    #[test]
    fn what_is_granted_is_not_missing_and_more_grants_never_miss_more() {
        arbtest::arbtest(|u| {
            let kinds = |u: &mut arbitrary::Unstructured<'_>| {
                let one = |u: &mut arbitrary::Unstructured<'_>| {
                    Ok(kind(u.choose(&["", "apps", "capwasm.dev"])?, u.choose(&["*", "Secret", "Deployment"])?))
                };
                (0..u.int_in_range(0..=3)?).map(|_| one(u)).collect::<arbitrary::Result<Vec<_>>>()
            };
            let wants = Wants { reads: kinds(u)?, writes: kinds(u)?, secrets: vec!["*-ca".into()], ..Wants::default() };
            let some = Grants { reads: kinds(u)?, secrets: vec!["a-ca".into()], ..Grants::default() };
            let more = Grants { writes: kinds(u)?, etcd: true, ..some.clone() };
            assert!(
                more.missing(&wants).iter().all(|missing| some.missing(&wants).contains(missing)),
                "{wants:?} {some:?}"
            );
            let all = Grants {
                reads: wants.reads.clone(),
                writes: wants.writes.clone(),
                secrets: wants.secrets.clone(),
                ..some
            };
            assert_eq!(all.missing(&wants), Vec::<String>::new());
            Ok(())
        });
    }
}
