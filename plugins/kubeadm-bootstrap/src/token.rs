//! Bootstrap tokens: how a joining machine is let in, as Secrets in kube-system of the workload cluster.
//!
//! A token lives for a configured time and is prolonged until whoever holds it has joined. One that vanished before (the
//! cluster's own token cleaner takes those that ended) is made again, so that data that was handed out stays good. The
//! machines of a pool come and go: once all have joined, its token is replaced at half of its life.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use capwasm_api::time;
use capwasm_kubeadm::discovery::{ALPHABET, LENGTHS};
use capwasm_sdk::{Context, Host, ObjectRef, Optional, Place, Problem, object};
use serde_json::{Map, Value, json};

/// How soon a failed look is repeated.
pub const RETRY: Duration = Duration::from_secs(30);

/// Key of the provider's configuration: how long a token is good for, in seconds.
pub const TTL_KEY: &str = "bootstrapTokenTTLSeconds";
const DEFAULT_TTL: u64 = 15 * 60;
/// A shorter one would end before machines boot, and its refresh would be a load.
const SHORTEST_TTL: u64 = 60;

/// How long a token is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime(Duration);

impl Lifetime {
    /// From the provider's configuration; 15 minutes when it says nothing.
    pub fn configured(configuration: &Value) -> Result<Lifetime, Problem> {
        let seconds = match configuration.get(TTL_KEY) {
            None | Some(Value::Null) => Some(DEFAULT_TTL),
            Some(value) => value.as_u64().filter(|seconds| *seconds >= SHORTEST_TTL),
        };
        match seconds {
            Some(seconds) => Ok(Lifetime(Duration::from_secs(seconds))),
            None => Err(Problem::invalid(
                "InvalidProviderConfiguration",
                format!(
                    "{TTL_KEY} of the provider's configuration must be a number of seconds, {SHORTEST_TTL} or more"
                ),
            )),
        }
    }

    /// How often a token is looked at, so that one missed look does no harm.
    pub fn look(self) -> Duration {
        self.0 / 3
    }

    /// A token with less than this left is prolonged.
    fn fresh(self) -> Duration {
        self.0 * 5 / 6
    }

    /// A pool's token with less than this left is replaced.
    fn half(self) -> Duration {
        self.0 / 2
    }
}

/// Whose token it is, which decides what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// Machines that have not joined yet.
    Waiting,
    /// A pool all of whose machines have joined.
    SettledPool,
}

/// What the workload cluster knows of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// There is no such token.
    Absent,
    /// It has no expiration.
    Endless,
    /// Its expiration, RFC 3339.
    Until(String),
}

/// What is to be done about a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is made, or made again.
    Create,
    /// It gets its whole life anew.
    Prolong,
    /// It stays as it is.
    Keep,
    /// It is replaced by another.
    Replace,
}

/// Decides from what is left of a token's life, against the lifetime that tokens get. Pure.
pub fn decide(known: &Known, holder: Holder, now_ms: u64, lifetime: Lifetime) -> Step {
    // What is no time is no end that a cluster's authenticator would believe: it is written anew.
    let less_left = |than: Duration| {
        let least = now_ms.saturating_add(u64::try_from(than.as_millis()).unwrap_or(u64::MAX));
        matches!(known, Known::Until(end) if time::parse(end).is_none_or(|end| end.saturating_mul(1000) < least))
    };
    match (known, holder) {
        (Known::Absent, Holder::Waiting) => Step::Create,
        (Known::Absent, Holder::SettledPool) => Step::Replace,
        (_, Holder::Waiting) if less_left(lifetime.fresh()) => Step::Prolong,
        (_, Holder::SettledPool) if less_left(lifetime.half()) => Step::Replace,
        _ => Step::Keep,
    }
}

/// Looks a token up and says what it needs; a malformed token is `invalid`.
pub fn observe(host: &dyn Host, token: &str, holder: Holder, lifetime: Lifetime) -> Result<Step, Problem> {
    let found = host.workload(&target(id_and_secret(token)?.0)).optional()?;
    let known = found.as_ref().map_or(Known::Absent, |secret| {
        match STANDARD.decode(object::text(secret, "/data/expiration")).ok().and_then(|end| String::from_utf8(end).ok())
        {
            Some(end) if !end.is_empty() => Known::Until(end),
            _ => Known::Endless,
        }
    });
    Ok(decide(&known, holder, host.now_ms(), lifetime))
}

/// Makes a token known to the workload cluster.
pub fn create(cx: &mut Context<'_>, token: &str, lifetime: Lifetime) -> Result<(), Problem> {
    let (id, secret) = id_and_secret(token)?;
    let expiration = after(cx.host.now_ms(), lifetime.0);
    let data: Map<String, Value> = [
        ("token-id", id),
        ("token-secret", secret),
        ("expiration", &expiration),
        ("usage-bootstrap-authentication", "true"),
        ("usage-bootstrap-signing", "true"),
        ("auth-extra-groups", "system:bootstrappers:kubeadm:default-node-token"),
        ("description", "lets machines join; made by the kubeadm bootstrap provider"),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), json!(STANDARD.encode(value))))
    .collect();
    let object = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "bootstrap.kubernetes.io/token",
        "metadata": {"name": name(id), "namespace": "kube-system"},
        "data": data,
    });
    cx.out.create("bootstrap-token", Place::Workload, object);
    Ok(())
}

/// Gives a token its whole life anew.
pub fn prolong(cx: &mut Context<'_>, token: &str, lifetime: Lifetime) -> Result<(), Problem> {
    let expiration = after(cx.host.now_ms(), lifetime.0);
    let merge = json!({"data": {"expiration": STANDARD.encode(expiration)}});
    cx.out.patch("bootstrap-token", Place::Workload, target(id_and_secret(token)?.0), merge);
    Ok(())
}

fn after(now_ms: u64, lifetime: Duration) -> String {
    time::format((now_ms / 1000).saturating_add(lifetime.as_secs()))
}

fn name(id: &str) -> String {
    format!("bootstrap-token-{id}")
}

fn target(id: &str) -> ObjectRef {
    ObjectRef::new("v1", "Secret", name(id)).in_namespace("kube-system")
}

fn id_and_secret(token: &str) -> Result<(&str, &str), Problem> {
    let fits = |text: &str, length: u32| text.len() == length as usize && text.chars().all(|c| ALPHABET.contains(c));
    let [id_length, secret_length] = LENGTHS;
    token.split_once('.').filter(|(id, secret)| fits(id, id_length) && fits(secret, secret_length)).ok_or_else(|| {
        Problem::invalid(
            "InvalidToken",
            "spec.joinConfiguration.discovery.bootstrapToken.token must look like abcdef.0123456789abcdef",
        )
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use capwasm_sdk::Fault;
    use capwasm_sdk::test::{TestHost, run};

    const TOKEN: &str = "abcdef.0123456789abcdef";

    #[test]
    fn a_token_is_created_prolonged_replaced_or_left_alone() {
        let until = |time: &str| Known::Until(time.into());
        let lifetime = Lifetime::configured(&json!({})).unwrap();
        // The call stands at 22:13:20; of 15 minutes, 12:30 are five sixths and 7:30 the half.
        for (what, known, waiting, settled_pool) in [
            ("no Secret", Known::Absent, Step::Create, Step::Replace),
            ("ended long ago", until("2023-11-14T21:00:00Z"), Step::Prolong, Step::Replace),
            ("less than half left", until("2023-11-14T22:20:49Z"), Step::Prolong, Step::Replace),
            ("half left", until("2023-11-14T22:20:50Z"), Step::Prolong, Step::Keep),
            ("less than five sixths left", until("2023-11-14T22:25:49Z"), Step::Prolong, Step::Keep),
            ("five sixths left", until("2023-11-14T22:25:50Z"), Step::Keep, Step::Keep),
            ("an offset: five sixths left", until("2023-11-14T23:25:50+01:00"), Step::Keep, Step::Keep),
            ("an offset: ended", until("2023-11-14T23:13:00+01:00"), Step::Prolong, Step::Replace),
            ("no time at all", until("tomorrow"), Step::Prolong, Step::Replace),
            ("years left", until("2033-11-14T22:20:00Z"), Step::Keep, Step::Keep),
            ("a token without end", Known::Endless, Step::Keep, Step::Keep),
        ] {
            let decided =
                [Holder::Waiting, Holder::SettledPool].map(|it| decide(&known, it, 1_700_000_000_000, lifetime));
            assert_eq!(decided, [waiting, settled_pool], "{what}");
        }
    }

    #[test]
    fn the_lifetime_comes_from_the_providers_configuration() {
        let look = |configuration| Lifetime::configured(&configuration).map(Lifetime::look);
        assert_eq!(look(json!({})).unwrap(), Duration::from_secs(300));
        assert_eq!(look(json!({TTL_KEY: 3600})).unwrap(), Duration::from_secs(1200));
        for wrong in [json!(59), json!("15m"), json!(-1), json!(90.5)] {
            assert_eq!(look(json!({TTL_KEY: wrong})).unwrap_err().reason, "InvalidProviderConfiguration");
        }
    }

    #[test]
    fn what_stands_in_the_secret_is_what_is_decided_on() {
        let secret = |data: Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bootstrap-token-abcdef", "namespace": "kube-system"}, "data": data});
        let lifetime = Lifetime::configured(&json!({})).unwrap();
        for (data, step) in [
            (json!({"expiration": STANDARD.encode("2023-11-14T22:14:00Z")}), Step::Prolong),
            (json!({"expiration": STANDARD.encode("2024-11-14T22:14:00Z")}), Step::Keep),
            (json!({"expiration": "%"}), Step::Keep),
            (json!({}), Step::Keep),
        ] {
            let host = TestHost::new().object(Place::Workload, secret(data));
            assert_eq!(observe(&host, TOKEN, Holder::Waiting, lifetime), Ok(step));
        }
    }

    #[test]
    fn a_malformed_token_is_the_users_mistake() {
        let lifetime = Lifetime::configured(&json!({})).unwrap();
        for token in ["", "abc.def", "ABCDEF.0123456789abcdef", "abcdef.0123456789abcdef0", "abcdef0123456789abcdef"] {
            let (result, outcome) = run(&TestHost::new(), |cx| create(cx, token, lifetime));
            assert_eq!(result.unwrap_err().fault, Fault::Invalid, "{token}");
            assert!(outcome.operations.is_empty());
        }
    }

    #[test]
    fn a_new_token_has_the_form_that_kubeadm_reads() {
        assert!(id_and_secret(&capwasm_kubeadm::discovery::new_token(&TestHost::new())).is_ok());
    }
}
