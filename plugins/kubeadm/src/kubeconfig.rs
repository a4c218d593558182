//! The admin's kubeconfig, as Secret `<cluster>-kubeconfig`: made once, its client certificate renewed in time.

use base64::{Engine, engine::general_purpose::STANDARD};
use capwasm_sdk::{Algorithm, Context, Host, ObjectRef, Optional, Pair, Place, Refused, Subject};
use serde_json::{Value, json};

use crate::certificates::{Purpose, secret};

const KEY: &str = "value";
const CERTIFICATE: &str = "client-certificate-data:";
const AUTHORITY: &str = "certificate-authority-data:";
const DAYS: u32 = 365;
/// A certificate that ends sooner is renewed.
const RENEW_MS: u64 = DAYS as u64 * 86_400_000 / 2;

/// What to do about the Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is no Secret yet.
    Create,
    /// Ours ends within half a year, or leads to another server, or trusts another authority.
    Renew,
    /// Ours is good for as many milliseconds, or it is the user's.
    Keep(Option<u64>),
}

/// What a kubeconfig of ours should say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// Name of the Cluster.
    pub cluster: &'a str,
    /// `https://host:port`, where it is known.
    pub server: Option<&'a str>,
    /// The cluster's authority (PEM), where it is there.
    pub authority: Option<&'a str>,
}

/// The pure decision; `not_after_ms` reads the end of a certificate.
pub fn decide(
    known: Option<&str>,
    wanted: Wanted<'_>,
    now_ms: u64,
    not_after_ms: impl FnOnce(&str) -> Option<u64>,
) -> Step {
    let Some(known) = known else { return Step::Create };
    // A user's kubeconfig is left alone; ours, and upstream's, can be told by the context's name.
    let context = format!("{0}-admin@{0}", wanted.cluster);
    if !values(known, "current-context:").any(|value| value == context) {
        return Step::Keep(None);
    }
    let says = |key: &str, wanted: Option<&str>| {
        wanted.is_none_or(|wanted| values(known, key).next().is_none_or(|value| value == wanted))
    };
    let authority = wanted.authority.map(|pem| STANDARD.encode(pem));
    if !says("server:", wanted.server) || !says(AUTHORITY, authority.as_deref()) {
        return Step::Renew;
    }
    let end = values(known, CERTIFICATE)
        .next()
        .and_then(|data| STANDARD.decode(data).ok())
        .and_then(|pem| String::from_utf8(pem).ok())
        .and_then(|pem| not_after_ms(&pem));
    match end.map(|end| end.saturating_sub(RENEW_MS)) {
        Some(due) if due < now_ms => Step::Renew,
        due => Step::Keep(due.map(|due| due - now_ms)),
    }
}

/// The values of a key, on lines of their own, without quotes.
fn values<'a>(text: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines()
        .filter_map(move |line| line.trim_start_matches(['-', ' ']).strip_prefix(key))
        .map(|value| value.trim().trim_matches(['\'', '"']))
}

/// Whom it is for: namespace and name of the cluster, URL of its API server.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Namespace of the Cluster.
    pub namespace: &'a str,
    /// Name of the Cluster.
    pub cluster: &'a str,
    /// `https://host:port`.
    pub server: &'a str,
}

/// What the Secret of a cluster needs.
pub fn observe(host: &dyn Host, cluster: &str, server: Option<&str>) -> Result<Step, Refused> {
    let read = |secret: &str, key: &str| -> Result<Option<String>, Refused> {
        let found = host.secret(secret, key).optional()?;
        Ok(found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    };
    let known = read(&secret_name(cluster), KEY)?;
    let authority = match &known {
        Some(_) => read(&Purpose::ClusterCa.secret_name(cluster), "tls.crt")?,
        None => None,
    };
    let wanted = Wanted { cluster, server, authority: authority.as_deref() };
    Ok(decide(known.as_deref(), wanted, host.now_ms(), |pem| host.not_after_ms(pem).ok()))
}

fn secret_name(cluster: &str) -> String {
    format!("{cluster}-kubeconfig")
}

/// Creates or renews the Secret, as the step says.
pub fn write(
    cx: &mut Context<'_>,
    step: Step,
    target: Target<'_>,
    authority: &Pair,
    algorithm: Algorithm,
    owner: &Value,
) -> Result<(), Refused> {
    let name = secret_name(target.cluster);
    match step {
        Step::Keep(_) => {}
        Step::Create => {
            let value = issue(cx.host, target, authority, algorithm)?;
            let object = secret((target.namespace, target.cluster), &name, owner, &[(KEY, value.as_bytes())]);
            cx.out.create("create-kubeconfig", Place::Management, object);
        }
        Step::Renew => {
            let value = issue(cx.host, target, authority, algorithm)?;
            let merge = json!({"data": {KEY: STANDARD.encode(value)}});
            cx.out.patch("renew-kubeconfig", Place::Management, ObjectRef::new("v1", "Secret", name), merge);
            cx.out.event(
                "KubeconfigRenewed",
                "the kubeconfig was about to end, or led to another server or authority than the cluster's",
            );
        }
    }
    Ok(())
}

fn issue(host: &dyn Host, target: Target<'_>, authority: &Pair, algorithm: Algorithm) -> Result<String, Refused> {
    let subject = Subject {
        common_name: "kubernetes-admin".into(),
        organizations: vec!["system:masters".into()],
        ..Subject::default()
    };
    let client = host.issue_client(authority, &subject, algorithm, DAYS)?;
    Ok(render(target, &authority.certificate_pem, &client))
}

/// Names are quoted, because a cluster may be called `1e3` or `true`.
fn render(target: Target<'_>, ca_pem: &str, client: &Pair) -> String {
    let Target { cluster, server, .. } = target;
    let (ca, certificate, key) =
        (STANDARD.encode(ca_pem), STANDARD.encode(&client.certificate_pem), STANDARD.encode(&client.key_pem));
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: '{cluster}'
  cluster:
    {AUTHORITY} {ca}
    server: '{server}'
contexts:
- name: '{cluster}-admin@{cluster}'
  context:
    cluster: '{cluster}'
    user: '{cluster}-admin'
current-context: '{cluster}-admin@{cluster}'
preferences: {{}}
users:
- name: '{cluster}-admin'
  user:
    {CERTIFICATE} {certificate}
    client-key-data: {key}
"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn a_kubeconfig_of_ours_is_renewed_half_a_year_before_its_end_and_a_users_never() {
        let now = 1_700_000_000_000;
        let day = 86_400_000;
        let target = Target { namespace: "default", cluster: "1e3", server: "https://h:6443" };
        let client = Pair { certificate_pem: "pem".into(), key_pem: "key".into() };
        let ours = render(target, "ca", &client);
        let upstreams = ours.replace('\'', "");
        let users = ours.replace("-admin@", "-me@");
        let left = |days: u64| Step::Keep(Some(days * day - day / 2));
        for (what, known, server, authority, end, expected) in [
            ("none", None, "https://h:6443", "ca", now, Step::Create),
            ("ours, fresh", Some(&ours), "https://h:6443", "ca", now + 365 * day, left(183)),
            ("ours, old", Some(&ours), "https://h:6443", "ca", now + 180 * day, Step::Renew),
            ("ours, ended", Some(&ours), "https://h:6443", "ca", now - day, Step::Renew),
            ("ours, another server", Some(&ours), "https://i:6443", "ca", now + 365 * day, Step::Renew),
            ("ours, another authority", Some(&ours), "https://h:6443", "cb", now + 365 * day, Step::Renew),
            ("upstream's, old", Some(&upstreams), "https://h:6443", "ca", now + 180 * day, Step::Renew),
            ("the user's, old", Some(&users), "https://i:6443", "cb", now + day, Step::Keep(None)),
            ("not a kubeconfig", Some(&"x: [".to_owned()), "https://h:6443", "ca", now, Step::Keep(None)),
        ] {
            let wanted = Wanted { cluster: "1e3", server: Some(server), authority: Some(authority) };
            let step = decide(known.map(String::as_str), wanted, now, |pem| (pem == "pem").then_some(end));
            assert_eq!(step, expected, "{what}");
        }
        let read: Value = serde_saphyr::from_str(&ours).unwrap();
        assert_eq!(
            read["clusters"][0],
            json!({"name": "1e3", "cluster": {"certificate-authority-data": "Y2E=", "server": "https://h:6443"}})
        );
        assert_eq!(read["contexts"][0]["context"]["cluster"], "1e3");
    }
}
