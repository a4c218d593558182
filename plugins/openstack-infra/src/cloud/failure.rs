//! Why a request to OpenStack failed, and what that means for the object.

use std::fmt;
use std::time::Duration;

use capwasm_sdk::{Fault, HttpResponse, Problem, Refusal, Refused};
use serde_json::Value;

pub const UNAUTHENTICATED: &str = "OpenStackAuthenticationFailed";
/// Reason of a quota that is used up, or of a network without free addresses.
const QUOTA: &str = "QuotaExceeded";
/// Reason of an answer that makes no sense.
const GARBLED: &str = "AnswerGarbled";
/// Reason of answers that take more room than there is for them.
const TOO_LARGE: &str = "AnswerTooLarge";
/// A quota is free again when somebody deletes something, or asks for more.
const QUOTA_RETRY: Duration = Duration::from_secs(120);
/// For a service that asks for patience and does not say how much.
const BUSY_RETRY: Duration = Duration::from_secs(30);
/// Longest wait that a service may ask for.
const LONGEST_RETRY: Duration = Duration::from_secs(600);
/// Letters of a service's own words that are passed on.
const LONGEST_MESSAGE: usize = 1_000;
/// Letters of what is wrong with an answer, which may be quoted there.
pub const LONGEST_WHY: usize = 200;
/// Letters of what was to be done; a URL is the catalog's, and may be any.
const LONGEST_ACT: usize = 500;
/// Bytes of an error's body that are read.
const ERROR_BYTES: usize = 64 << 10;
/// Types of Neutron's errors that mean: there are no more.
const EXHAUSTED: [&str; 5] = [
    "OverQuota",
    "IpAddressGenerationFailure",
    "ExternalIpAddressExhausted",
    "NoNetworkAvailable",
    "SecurityGroupRuleLimitExceeded",
];

/// A failed request to OpenStack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// HTTP status; none when there was no answer.
    pub status: Option<u16>,
    /// CamelCase, for conditions and events: `QuotaExceeded`, `NotFound`, …
    pub reason: String,
    /// For a person: the request, and the service's own words.
    pub message: String,
    /// When to try again, where the service says so.
    pub retry_after: Option<Duration>,
    /// What kind of problem this is, unless the caller knows better.
    pub fault: Fault,
    /// The service's own name of the error, where it has one: `SecurityGroupInUse`.
    pub kind: Option<String>,
}

impl Failure {
    /// From an answer that is no success. `act` reads on from "unable to".
    pub fn rejected(act: &str, response: &HttpResponse) -> Failure {
        let told = Told::read(&response.body);
        let status = response.status;
        let is_quota = told.kind.as_deref().is_some_and(|kind| EXHAUSTED.contains(&kind))
            || matches!(status, 403 | 413) && told.message.to_ascii_lowercase().contains("quota");
        let asked = retry_after(response).or(told.retry_after);
        let (reason, fault, retry_after) = match status {
            _ if is_quota => (QUOTA, Fault::Transient, Some(asked.unwrap_or(QUOTA_RETRY).max(QUOTA_RETRY))),
            401 => (UNAUTHENTICATED, Fault::Invalid, None),
            403 => ("Forbidden", Fault::Invalid, None),
            // What the object names may also have gone a moment ago.
            404 => ("NotFound", Fault::Transient, None),
            406 => ("VersionNotSupported", Fault::Invalid, None),
            408 => ("ServiceUnavailable", Fault::Transient, asked),
            409 => ("Conflict", Fault::Transient, asked),
            413 | 429 => ("RateLimited", Fault::Transient, Some(asked.unwrap_or(BUSY_RETRY))),
            500.. => ("ServiceUnavailable", Fault::Transient, asked),
            300..=399 => ("UnexpectedRedirect", Fault::Invalid, None),
            _ => ("RequestRefused", Fault::Invalid, None),
        };
        Failure {
            status: Some(status),
            reason: reason.to_owned(),
            message: format!("unable to {}: {status}: {}", beginning(act, LONGEST_ACT), told.message),
            retry_after: retry_after.map(|delay| delay.min(LONGEST_RETRY)),
            fault,
            kind: told.kind,
        }
    }

    /// From a request to `url` that the host did not send, or that nobody answered.
    pub fn unanswered(act: &str, url: &str, refused: &Refused) -> Failure {
        let (reason, fault) = match refused.refusal {
            Refusal::Denied => ("RequestDenied", Fault::Terminal),
            Refusal::Invalid => ("RequestDenied", Fault::Invalid),
            Refusal::Unsupported => ("RequestDenied", Fault::Unsupported),
            _ => ("Unreachable", Fault::Transient),
        };
        let (act, why) = (beginning(act, LONGEST_ACT), beginning(&refused.message, LONGEST_MESSAGE));
        let mut message = format!("unable to {act}: {why}");
        if refused.refusal == Refusal::Denied {
            message.push_str(&remedy(beginning(url, LONGEST_ACT), why));
        }
        Failure::new(reason, fault, message)
    }

    /// From an answer that makes no sense.
    pub fn garbled(act: &str, why: impl fmt::Display) -> Failure {
        let (act, why) = (beginning(act, LONGEST_ACT), why.to_string());
        let why = beginning(&why, LONGEST_WHY);
        Failure::new(GARBLED, Fault::Transient, format!("unable to {act}: the answer makes no sense: {why}"))
    }

    /// From an answer that takes more room than there is.
    pub fn too_large(act: &str) -> Failure {
        let act = beginning(act, LONGEST_ACT);
        Failure::new(
            TOO_LARGE,
            Fault::Transient,
            format!("unable to {act}: the answers take more memory than there is"),
        )
    }

    /// A failure without an HTTP status.
    pub fn new(reason: &str, fault: Fault, message: String) -> Failure {
        Failure { status: None, reason: reason.to_owned(), message, retry_after: None, fault, kind: None }
    }

    /// 409: in use, being changed, or there already.
    pub fn is_conflict(&self) -> bool {
        self.status == Some(409) && !self.is_quota()
    }

    /// A quota of the project is used up.
    pub fn is_quota(&self) -> bool {
        self.reason == QUOTA
    }

    pub fn is_not_found(&self) -> bool {
        self.status == Some(404)
    }

    /// A success that makes no sense.
    pub fn is_garbled(&self) -> bool {
        self.reason == GARBLED
    }

    /// Whether the service may have done, or may still do, what it was asked.
    pub fn is_unanswered(&self) -> bool {
        self.status.is_none_or(|status| status >= 500) && !matches!(self.reason.as_str(), "RequestDenied")
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.message)
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Problem {
        let problem = Problem::new(failure.fault, failure.reason, failure.message);
        match failure.retry_after {
            Some(delay) => problem.retry_after(delay),
            None => problem,
        }
    }
}

/// Who can allow what was denied.
fn remedy(url: &str, denied: &str) -> String {
    let (flag, grant) = if denied.contains("insecureTLS") {
        ("--openstack-insecure-tls".to_owned(), "set spec.grants.insecureTLS")
    } else {
        let host = url.find("://").map_or(0, |at| at + 3);
        let end = url[host..].find('/').map_or(url.len(), |at| host + at);
        (format!("--openstack-origin {}", &url[..end]), "add it to spec.grants.origins")
    };
    format!("; start the host with {flag}, or {grant} of WasmProvider openstack-infra")
}

/// What an error's body says.
struct Told {
    kind: Option<String>,
    message: String,
    retry_after: Option<Duration>,
}

impl Told {
    /// Neutron: `{"NeutronError": {type, message, detail}}`; Octavia: `{faultcode, faultstring}`; Keystone:
    /// `{"error": {code, message, title}}`; Nova and Cinder: `{"itemNotFound": {code, message, retryAfter}}`; Glance:
    /// `{code, message}` or a page of HTML; anybody before them: any text.
    fn read(body: &[u8]) -> Told {
        let body = &body[..body.len().min(ERROR_BYTES)];
        let parsed = serde_json::from_slice::<Value>(body).ok();
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let own = parsed.as_ref().and_then(|value| {
            let message = text(value, "faultstring").or_else(|| text(value, "message"))?;
            Some(Told { kind: text(value, "faultcode"), message, retry_after: None })
        });
        let inner = || {
            let (name, value) =
                parsed.as_ref()?.as_object()?.iter().find(|(_, value)| value.get("message").is_some())?;
            let seconds = value.get("retryAfter").and_then(|value| match value {
                Value::String(text) => text.parse().ok(),
                value => value.as_u64(),
            });
            Some(Told {
                kind: text(value, "type").or_else(|| Some(name.clone())).filter(|name| name != "error"),
                message: text(value, "message")?,
                retry_after: seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs),
            })
        };
        let any = || Told { kind: None, message: String::from_utf8_lossy(body).into_owned(), retry_after: None };
        let mut told = own.or_else(inner).unwrap_or_else(any);
        // Glance has tags in its JSON, too.
        told.message = plain(&told.message).chars().take(LONGEST_MESSAGE).collect();
        told
    }
}

/// So many letters of a text.
pub fn beginning(text: &str, letters: usize) -> &str {
    text.char_indices().nth(letters).map_or(text, |(end, _)| &text[..end])
}

/// Text without tags, on one line.
fn plain(text: &str) -> String {
    let mut inside = false;
    let kept = text.chars().filter_map(|letter| match letter {
        '<' => {
            inside = true;
            Some(' ')
        }
        '>' if inside => {
            inside = false;
            None
        }
        _ if inside => None,
        _ => Some(letter),
    });
    let kept: String = kept.collect();
    let words: Vec<&str> = kept.split_whitespace().collect();
    if words.is_empty() { "no reason was given".to_owned() } else { words.join(" ") }
}

/// `Retry-After` in seconds; dates are not understood.
fn retry_after(response: &HttpResponse) -> Option<Duration> {
    let value = response.headers.iter().find(|(name, _)| name == "retry-after").map(|(_, value)| value.trim())?;
    value.parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn answer(status: u16, body: &str) -> HttpResponse {
        HttpResponse { status, headers: Vec::new(), body: body.as_bytes().to_vec() }
    }

    #[test]
    fn every_services_errors_become_the_problem_that_they_are() {
        let table = [
            (
                400,
                r#"{"badRequest": {"code": 400, "message": "Invalid key_name."}}"#,
                "RequestRefused",
                Fault::Invalid,
                "Invalid key_name.",
            ),
            (
                401,
                r#"{"error": {"code": 401, "message": "log in", "title": "Unauthorized"}}"#,
                UNAUTHENTICATED,
                Fault::Invalid,
                "log in",
            ),
            (
                403,
                r#"{"forbidden": {"code": 403, "message": "Quota exceeded for instances: Requested 1"}}"#,
                QUOTA,
                Fault::Transient,
                "Requested 1",
            ),
            (
                403,
                r#"{"forbidden": {"code": 403, "message": "Policy doesn't allow it"}}"#,
                "Forbidden",
                Fault::Invalid,
                "Policy",
            ),
            (
                404,
                r#"{"itemNotFound": {"code": 404, "message": "Instance x could not be found."}}"#,
                "NotFound",
                Fault::Transient,
                "could not be found",
            ),
            (
                404,
                "<html><head><title>404 Not Found</title></head><body>No image\n found</body></html>",
                "NotFound",
                Fault::Transient,
                "404 Not Found No image found",
            ),
            (
                409,
                r#"{"NeutronError": {"type": "OverQuota", "message": "Quota exceeded for resources: ['port'].", "detail": ""}}"#,
                QUOTA,
                Fault::Transient,
                "['port']",
            ),
            (
                409,
                r#"{"NeutronError": {"type": "IpAddressGenerationFailure", "message": "No more IP addresses", "detail": ""}}"#,
                QUOTA,
                Fault::Transient,
                "No more",
            ),
            (
                409,
                r#"{"NeutronError": {"type": "SecurityGroupInUse", "message": "in use", "detail": ""}}"#,
                "Conflict",
                Fault::Transient,
                "in use",
            ),
            (
                409,
                r#"{"faultcode": "Client", "faultstring": "Load Balancer x is immutable", "debuginfo": null}"#,
                "Conflict",
                Fault::Transient,
                "immutable",
            ),
            (
                403,
                r#"{"faultcode": "Client", "faultstring": "Quota has been met for resources: Load Balancer"}"#,
                QUOTA,
                Fault::Transient,
                "Load Balancer",
            ),
            (
                413,
                r#"{"overLimit": {"code": 413, "message": "VolumeLimitExceeded: allowed (10) exceeded for quota 'volumes'.", "retryAfter": "0"}}"#,
                QUOTA,
                Fault::Transient,
                "VolumeLimitExceeded",
            ),
            (
                413,
                r#"{"overLimit": {"code": 413, "message": "too fast", "retryAfter": 7}}"#,
                "RateLimited",
                Fault::Transient,
                "too fast",
            ),
            (
                406,
                r#"{"computeFault": {"message": "Version 2.99 is not supported"}}"#,
                "VersionNotSupported",
                Fault::Invalid,
                "2.99",
            ),
            (500, r#"{"message": "oops", "code": "500"}"#, "ServiceUnavailable", Fault::Transient, "oops"),
            (502, "", "ServiceUnavailable", Fault::Transient, "no reason was given"),
            (301, "", "UnexpectedRedirect", Fault::Invalid, ""),
        ];
        for (status, body, reason, fault, words) in table {
            let failure = Failure::rejected("list things", &answer(status, body));
            assert_eq!((failure.reason.as_str(), failure.fault), (reason, fault), "{body}");
            assert!(
                failure.message.contains(words) && failure.message.starts_with("unable to list things"),
                "{failure}"
            );
            assert!(failure.message.contains(words), "{failure}");
            assert_eq!(failure.is_quota(), reason == QUOTA, "{body}");
        }
    }

    #[test]
    fn a_service_is_given_the_time_that_it_asks_for_within_limits() {
        let after = |status, header: Option<&str>, body: &str| {
            let headers = header.map(|value| ("retry-after".to_owned(), value.to_owned())).into_iter().collect();
            let response = HttpResponse { headers, ..answer(status, body) };
            Problem::from(Failure::rejected("x", &response)).retry_after
        };
        assert_eq!(after(429, Some("5"), ""), Some(Duration::from_secs(5)));
        assert_eq!(after(429, None, ""), Some(BUSY_RETRY));
        assert_eq!(
            after(413, None, r#"{"overLimit": {"message": "slow", "retryAfter": "9"}}"#),
            Some(Duration::from_secs(9))
        );
        assert_eq!(after(503, Some("86400"), ""), Some(LONGEST_RETRY));
        assert_eq!(after(503, Some("Wed, 21 Oct 2026 07:28:00 GMT"), ""), None);
        assert_eq!(after(403, Some("1"), r#"{"forbidden": {"message": "Quota exceeded"}}"#), Some(QUOTA_RETRY));
    }

    #[test]
    fn what_was_not_answered_may_have_been_done() {
        let unanswered =
            |refusal| Failure::unanswered("x", "https://c:5000/v3", &Refused::new(refusal, "Why", "because"));
        let denied = unanswered(Refusal::Denied);
        assert!(denied.message.contains("--openstack-origin https://c:5000,"), "{denied}");
        assert!(unanswered(Refusal::Unavailable).is_unanswered());
        assert!(!unanswered(Refusal::Denied).is_unanswered());
        assert_eq!(unanswered(Refusal::Denied).fault, Fault::Terminal);
        assert!(Failure::rejected("x", &answer(504, "")).is_unanswered());
        assert!(!Failure::rejected("x", &answer(409, "")).is_unanswered());
    }
}
