//! Fuzz targets: what a stranger may hand to the host, and the rules that hold whatever it is.
//!
//! A target is a function of bytes that panics when a rule is broken. `cargo xtask fuzz` looks for such bytes, led by coverage;
//! `corpus/<target>/` keeps those that found something or that show what inputs look like, and `tests/corpus.rs` hands all of them to
//! their target in every `cargo test`.
//!
//! | target | input | rule |
//! |---|---|---|
//! | `loader` | a component, or choices for one | refused with a reason, or a provider; in bounded time |
//! | `descriptor` | what `describe()` returns | every defect is named; what passes is safe to use |
//! | `outcome` | calls of the capability `outcome` | no write outside of the grants, none out of order |
//! | `write_back` | an answer and an outcome | only own paths change, and what latched stays |
//! | `origin` | granted and wanted origins, a host | `includes` is sound; special addresses by name only |
//! | `endpoint` | a rule, a method and a path | what is allowed, every server reads as the rule does |
//! | `narrowing` | two schemas and an object | what was valid stays valid when nothing is called narrower |
//! | `reference` | an artifact's name | comes back as it was written; never leaves its folder |
//! | `artifact` | manifests, keys, signed texts | refused or read |
//! | `recording` | a recording's file | refused, or read and written the same |
//! | `kubeconfig` | a kubeconfig of a Secret | refused, or a configuration that names no file and no program |
//! | `cloud_config` | bootstrap data, texts to be written into it | files go where they seem to; what is written is read as it was meant |
//! | `clouds` | a `clouds.yaml` of a Secret | refused without quoting a secret, or a request to the address that it names |
//! | `cel` | a rule, a schema, values | what is within the bound is evaluated in the memory that the bound says |
//! | `apply` | bodies of applies and patches | an apply twice is one; nobody loses a field unasked; patches are bounded |
//! | `resume` | continue tokens, resource versions | what the path names, each object once, nothing left out |
//! | `etcd` | frames and messages of an etcd member | a message or an error, in memory bounded by the frames |

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a broken rule is a panic")]

mod apply;
mod artifact;
mod cel;
mod cloud_config;
mod clouds;
mod descriptor;
mod endpoint;
mod etcd;
mod json;
mod kubeconfig;
mod lines;
mod loader;
mod narrowing;
mod origin;
mod outcome;
mod recording;
mod reference;
mod resume;
mod write_back;

/// A rule that has to hold for all inputs.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, and that of its folder in `corpus/`.
    pub name: &'static str,
    /// Panics when the input breaks the rule.
    pub run: fn(&[u8]),
}

/// All of them.
pub const TARGETS: [Target; 17] = [
    Target { name: "loader", run: loader::run },
    Target { name: "descriptor", run: descriptor::run },
    Target { name: "outcome", run: outcome::run },
    Target { name: "write_back", run: write_back::run },
    Target { name: "origin", run: origin::run },
    Target { name: "endpoint", run: endpoint::run },
    Target { name: "narrowing", run: narrowing::run },
    Target { name: "reference", run: reference::run },
    Target { name: "artifact", run: artifact::run },
    Target { name: "recording", run: recording::run },
    Target { name: "kubeconfig", run: kubeconfig::run },
    Target { name: "cloud_config", run: cloud_config::run },
    Target { name: "clouds", run: clouds::run },
    Target { name: "cel", run: cel::run },
    Target { name: "apply", run: apply::run },
    Target { name: "resume", run: resume::run },
    Target { name: "etcd", run: etcd::run },
];

/// The target of this name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}
