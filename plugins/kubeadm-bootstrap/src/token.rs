//! Bootstrap tokens: how a joining machine is let in, as Secrets in kube-system of the workload cluster.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use capwasm_sdk::{Context, Host, ObjectRef, Optional, Place, Problem, object};
use serde_json::{Map, Value, json};

/// How long a token is good for.
pub const LIFETIME: Duration = Duration::from_secs(15 * 60);
/// It is prolonged once less than this is left.
const FRESH: Duration = Duration::from_secs(LIFETIME.as_secs() * 5 / 6);
/// How often it is looked at while its machine has not joined.
pub const REFRESH: Duration = Duration::from_secs(5 * 60);

/// How soon a failed look is repeated.
pub const RETRY: Duration = Duration::from_secs(30);

const ALPHABET: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const ID_LENGTH: u32 = 6;
const SECRET_LENGTH: u32 = 16;

/// A new token: `abcdef.0123456789abcdef`.
pub fn random(host: &dyn Host) -> String {
    format!("{}.{}", host.random_token(ALPHABET, ID_LENGTH), host.random_token(ALPHABET, SECRET_LENGTH))
}

/// Sees to it that the workload cluster takes the token for most of the next 15 minutes.
pub fn ensure(cx: &mut Context<'_>, token: &str) -> Result<(), Problem> {
    let Some((id, secret)) = parts(token) else {
        return Err(Problem::invalid(
            "InvalidToken",
            "spec.joinConfiguration.discovery.bootstrapToken.token must look like abcdef.0123456789abcdef",
        ));
    };
    let name = format!("bootstrap-token-{id}");
    let target = ObjectRef::new("v1", "Secret", &name).in_namespace("kube-system");
    let after = |time: Duration| rfc3339(cx.host.now_ms().saturating_add(time.as_secs() * 1000));
    let (expiration, fresh) = (after(LIFETIME), after(FRESH));
    match cx.host.workload(&target).optional()? {
        None => {
            let data: Map<String, Value> = [
                ("token-id", id),
                ("token-secret", secret),
                ("expiration", &expiration),
                ("usage-bootstrap-authentication", "true"),
                ("usage-bootstrap-signing", "true"),
                ("auth-extra-groups", "system:bootstrappers:kubeadm:default-node-token"),
                ("description", "lets one machine join; made by the kubeadm bootstrap provider"),
            ]
            .into_iter()
            .map(|(key, value)| (key.to_owned(), json!(STANDARD.encode(value))))
            .collect();
            let object = json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "type": "bootstrap.kubernetes.io/token",
                "metadata": {"name": name, "namespace": "kube-system"},
                "data": data,
            });
            cx.out.create("bootstrap-token", Place::Workload, object);
        }
        Some(found) if ends_before(&found, &fresh) => {
            let merge = json!({"data": {"expiration": STANDARD.encode(&expiration)}});
            cx.out.patch("bootstrap-token", Place::Workload, target, merge);
        }
        Some(_) => {}
    }
    Ok(())
}

/// Whether the token ends before `time`. One that never ends (a user's) is left alone.
fn ends_before(secret: &Value, time: &str) -> bool {
    let known = STANDARD.decode(object::text(secret, "/data/expiration")).unwrap_or_default();
    // Both in UTC without fractions, as every Kubernetes component writes them: the order of text is the order of time.
    !known.is_empty() && known.as_slice() < time.as_bytes()
}

fn parts(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    let fits = |text: &str, length: u32| text.len() == length as usize && text.chars().all(|c| ALPHABET.contains(c));
    (fits(id, ID_LENGTH) && fits(secret, SECRET_LENGTH)).then_some((id, secret))
}

/// `2023-11-14T22:13:20Z` of milliseconds since 1970.
pub fn rfc3339(ms: u64) -> String {
    let seconds = ms / 1000;
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Proleptic Gregorian calendar in eras of 400 years that begin on 1 March, so that leap days come last.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use capwasm_sdk::test::{TestHost, run};
    use capwasm_sdk::{Fault, Operation};

    const TOKEN: &str = "abcdef.0123456789abcdef";

    #[test]
    fn times_are_written_as_kubernetes_does() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_700_000_000_999, "2023-11-14T22:13:20Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(ms), text);
        }
    }

    #[test]
    fn a_token_is_created_prolonged_or_left_alone() {
        let secret = |expiration: &str| {
            let mut data = json!({"token-id": STANDARD.encode("abcdef")});
            if !expiration.is_empty() {
                data["expiration"] = json!(STANDARD.encode(expiration));
            }
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bootstrap-token-abcdef", "namespace": "kube-system"}, "data": data})
        };
        for (what, found, created, patched) in [
            ("no Secret yet", None, 1, 0),
            ("a Secret with little time left", Some(secret("2023-11-14T22:25:00Z")), 0, 1),
            ("a Secret that was just prolonged", Some(secret("2023-11-14T22:27:00Z")), 0, 0),
            ("a Secret that ends later", Some(secret("2033-11-14T22:20:00Z")), 0, 0),
            ("a Secret without end", Some(secret("")), 0, 0),
        ] {
            let host = found.into_iter().fold(TestHost::new(), |host, secret| host.object(Place::Workload, secret));
            let (result, outcome) = run(&host, |cx| ensure(cx, TOKEN));
            result.unwrap();
            let creates = outcome.operations.iter().filter(|it| matches!(it, Operation::Create { .. })).count();
            let patches = outcome.operations.iter().filter(|it| matches!(it, Operation::Patch { .. })).count();
            assert_eq!((creates, patches), (created, patched), "{what}");
        }
    }

    #[test]
    fn a_malformed_token_is_the_users_mistake() {
        for token in ["", "abc.def", "ABCDEF.0123456789abcdef", "abcdef.0123456789abcdef0", "abcdef0123456789abcdef"] {
            let (result, outcome) = run(&TestHost::new(), |cx| ensure(cx, token));
            assert_eq!(result.unwrap_err().fault, Fault::Invalid, "{token}");
            assert!(outcome.operations.is_empty());
        }
    }

    #[test]
    fn a_new_token_has_the_form_that_kubeadm_reads() {
        assert!(parts(&random(&TestHost::new())).is_some());
    }
}
