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

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a broken rule is a panic")]

mod artifact;
mod descriptor;
mod endpoint;
mod json;
mod kubeconfig;
mod loader;
mod narrowing;
mod origin;
mod outcome;
mod recording;
mod reference;
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
pub const TARGETS: [Target; 11] = [
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
];

/// The target of this name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}
