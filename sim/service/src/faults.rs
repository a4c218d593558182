//! Failures on request, for tests of what copes with them.
//!
//! A [`NodeFault`] belongs to one container. It comes from the container's label [`LABEL`] (a list, as in
//! `never-join,slow-start=100..500`; it lasts as long as the container), or from a request (it lasts until it is lifted or the
//! engine ends). Inside a real container the environment variable [`VARIABLE`] takes the label's place.
//!
//! | fault | what happens |
//! |---|---|
//! | `never-join` | `kubeadm init` and `join` do nothing, for as long as the fault lasts |
//! | `fail-bootstrap` | `kubeadm init` and `join` fail with exit code 1 |
//! | `slow-start=<ms>` or `<ms>..<ms>` | `kubeadm init` and `join` begin that much later, by chance between the two |
//! | `unhealthy=<static pod>` | that pod is not ready; `kube-apiserver` does not listen, `etcd` does not answer |
//! | `etcd-lost` | the member of etcd has lost its data: it does not come back, not even when the fault is lifted |
//! | `not-ready` | the kubelet says that its node is not ready |
//! | `silent` | the kubelet says nothing any more, and its node becomes Unknown |
//!
//! A [`CallFault`] concerns calls of the engine's own API: the next `count`, or a `share` of them, that match method and path.
//!
//! Over the engine's socket: `POST /capwasm/faults` with a [`Fault`] as JSON answers `{"id": "..."}`; `GET /capwasm/faults` lists
//! them with their ids, `DELETE /capwasm/faults/<id>` lifts one and `DELETE /capwasm/faults` all. [`Client`] does this from
//! another process; in the engine's own process [`Faults`] of its options does it.
//!
//! ```
//! use capwasm_sim_service::faults::{CallFault, Fault, Faults, NodeFault};
//!
//! let faults = Faults::default();
//! let id = faults.inject(Fault::node("c-cp-1", NodeFault::NotReady));
//! faults.inject(Fault::Call(CallFault { path: "/containers/*/exec".into(), count: Some(2), ..CallFault::status(500) }));
//! assert!(faults.lift(&id));
//! ```

mod client;
mod registry;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use client::Client;
pub use registry::{Faults, Injected};
pub use registry::{Verdict, listed};

/// Container label with faults.
pub const LABEL: &str = "capwasm.dev/simulate";
/// Environment variable with faults, inside a real container.
pub const VARIABLE: &str = "CAPWASM_SIMULATE";

/// A failure on request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Fault {
    /// A failure of one node.
    Node {
        /// Name of its container.
        container: String,
        /// What fails.
        fault: NodeFault,
    },
    /// A failure of calls of an API.
    Call(CallFault),
}

impl Fault {
    /// A failure of the node in this container.
    pub fn node(container: impl Into<String>, fault: NodeFault) -> Fault {
        Fault::Node { container: container.into(), fault }
    }
}

/// Something that goes wrong on a node; as JSON the text that a label has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum NodeFault {
    /// The node does not join.
    NeverJoin,
    /// Its kubeadm fails.
    FailBootstrap,
    /// Its bootstrap begins late: at least and at most.
    SlowStart(Duration, Duration),
    /// A static pod is not healthy.
    Unhealthy(String),
    /// Its member of etcd has lost its data.
    EtcdLost,
    /// Its kubelet says that it is not ready.
    NotReady,
    /// Its kubelet is silent.
    Silent,
}

/// A text that names no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no fault: never-join, fail-bootstrap, slow-start=<ms>[..<ms>], unhealthy=<static pod>, etcd-lost, not-ready or silent is expected"
)]
pub struct UnknownFault(String);

impl fmt::Display for NodeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeFault::NeverJoin => f.write_str("never-join"),
            NodeFault::FailBootstrap => f.write_str("fail-bootstrap"),
            NodeFault::SlowStart(least, most) => write!(f, "slow-start={}..{}", least.as_millis(), most.as_millis()),
            NodeFault::Unhealthy(pod) => write!(f, "unhealthy={pod}"),
            NodeFault::EtcdLost => f.write_str("etcd-lost"),
            NodeFault::NotReady => f.write_str("not-ready"),
            NodeFault::Silent => f.write_str("silent"),
        }
    }
}

impl FromStr for NodeFault {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<NodeFault, UnknownFault> {
        let unknown = || UnknownFault(text.to_owned());
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        Ok(match (name, value) {
            ("never-join", "") => NodeFault::NeverJoin,
            ("fail-bootstrap", "") => NodeFault::FailBootstrap,
            ("slow-start", range) => {
                let (least, most) = range.split_once("..").unwrap_or((range, range));
                let time = |text: &str| text.parse().map(Duration::from_millis).map_err(|_| unknown());
                let (least, most) = (time(least)?, time(most)?);
                if least > most {
                    return Err(unknown());
                }
                NodeFault::SlowStart(least, most)
            }
            ("unhealthy", pod) if !pod.is_empty() => NodeFault::Unhealthy(pod.to_owned()),
            ("etcd-lost", "") => NodeFault::EtcdLost,
            ("not-ready", "") => NodeFault::NotReady,
            ("silent", "") => NodeFault::Silent,
            _ => return Err(unknown()),
        })
    }
}

impl From<NodeFault> for String {
    fn from(fault: NodeFault) -> String {
        fault.to_string()
    }
}

impl TryFrom<String> for NodeFault {
    type Error = UnknownFault;

    fn try_from(text: String) -> Result<NodeFault, UnknownFault> {
        text.parse()
    }
}

/// Calls of the engine's API that go wrong, or of the simulated OpenStack's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallFault {
    /// HTTP method; empty for any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub method: String,
    /// Path without the version; `*` stands for any text, empty for any path.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Status code of the answer; 0: the connection is closed without one. 200, in the simulated OpenStack: nothing goes wrong
    /// but the delay.
    pub status: u16,
    /// Paths among them that it does not concern.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub spares: String,
    /// Message of the error that is answered.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The whole body of the answer, in place of one that has the message as the service would put it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Milliseconds to wait before the answer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub delay_ms: u64,
    /// Whether the call takes effect before it goes wrong, as when only its answer is lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_effect: bool,
    /// How many matching calls go well before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u32>,
    /// Seconds that the answer says to wait until the next try; only the simulated OpenStack says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// How many calls; without it all, for as long as the fault lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Which share of the calls that match, above 0 and up to 1: of every ten, with 0.1 the tenth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl CallFault {
    /// All calls are answered with this status.
    pub fn status(status: u16) -> CallFault {
        CallFault {
            method: String::new(),
            path: String::new(),
            status,
            spares: String::new(),
            message: String::new(),
            body: None,
            delay_ms: 0,
            takes_effect: false,
            after: None,
            retry_after: None,
            count: None,
            share: None,
        }
    }

    /// Whether nothing goes wrong but the delay.
    pub fn is_late(&self) -> bool {
        self.status == 200 && self.body.is_none()
    }

    fn matches(&self, method: &str, path: &str) -> bool {
        (self.method.is_empty() || self.method.eq_ignore_ascii_case(method))
            && (self.path.is_empty() || fits(&self.path, path))
            && (self.spares.is_empty() || !fits(&self.spares, path))
    }
}

/// Whether a text fits a pattern in which `*` stands for any text.
pub fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => {
            let Some(text) = text.strip_prefix(start) else { return false };
            (0..=text.len()).filter(|at| text.is_char_boundary(*at)).any(|at| fits(rest, &text[at..]))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn faults_are_written_as_they_are_read() {
        let texts = [
            "never-join",
            "fail-bootstrap",
            "slow-start=100..500",
            "unhealthy=kube-scheduler",
            "etcd-lost",
            "not-ready",
            "silent",
        ];
        for text in texts {
            let fault: Fault = serde_json::from_str(&format!(r#"{{"container":"c","fault":"{text}"}}"#)).unwrap();
            assert_eq!(fault, Fault::node("c", text.parse().unwrap()));
            assert!(serde_json::to_string(&fault).unwrap().contains(text));
        }
        assert_eq!(
            "slow-start=7".parse(),
            Ok(NodeFault::SlowStart(Duration::from_millis(7), Duration::from_millis(7)))
        );
        for text in ["", "nonsense", "never-join=1", "slow-start", "slow-start=5..1", "unhealthy"] {
            assert!(text.parse::<NodeFault>().is_err(), "{text}");
        }
    }

    #[test]
    fn patterns_have_stars_for_any_text() {
        for (pattern, text, expected) in [
            ("/containers/*/exec", "/containers/a/exec", true),
            ("/containers/*/exec", "/containers/a/json", false),
            ("*", "/x", true),
            ("/containers/create", "/containers/create", true),
            ("/containers/*", "/images/x", false),
            ("*a*b", "xaxxb", true),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_call_fault_needs_no_more_than_a_status() {
        let fault: Fault = serde_json::from_str(r#"{"status":500,"share":0.25}"#).unwrap();
        assert_eq!(fault, Fault::Call(CallFault { share: Some(0.25), ..CallFault::status(500) }));
        assert!(serde_json::from_str::<Fault>(r#"{"status":500,"nonsense":1}"#).is_err());
    }
}
