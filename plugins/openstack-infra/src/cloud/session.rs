//! A token of Keystone: what for, until when, and the catalog that comes with it.

use std::time::Duration;

use capwasm_api::time;
use capwasm_sdk::{Fault, Host, HttpRequest, HttpResponse};
use serde_json::{Value, json};

use super::catalog;
use super::entry::Entry;
use super::failure::{Failure, LONGEST_WHY, UNAUTHENTICATED, beginning};
use super::read_within;

/// Longer than any token is used: how much of its life is over is seen from the answer.
const LONGEST_USE: Duration = Duration::from_secs(24 * 3_600);

/// What a token and its catalog may take in bytes; those of a large cloud with many regions take one million.
const ROOM: usize = 12 << 20;

/// A token that is good for a project.
#[derive(Clone)]
pub struct Session {
    /// For `X-Auth-Token`.
    pub token: String,
    /// Id of the project that the token is scoped to.
    pub project: String,
    /// The service catalog that came with the token.
    pub catalog: Value,
    /// The cloud's region; empty when neither the identity nor the catalog says one.
    pub region: String,
    /// Whether half of its life is over.
    is_old: bool,
}

/// Whether an earlier token will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// While it has half of its life before it.
    Recent,
    /// A token is asked for anew.
    New,
}

impl Session {
    /// Gets a token. `region` is empty when neither the identity nor `clouds.yaml` names one.
    pub fn open(
        host: &dyn Host,
        entry: &Entry,
        trust: &Transport,
        region: &str,
        fresh: Freshness,
    ) -> Result<Session, Failure> {
        let ask = |max_age: Duration| {
            let request = HttpRequest::new("POST", format!("{}/auth/tokens", entry.auth_url))
                .header("accept", "application/json")
                .json(&json!({"auth": entry.auth}))
                .max_age(max_age);
            let act = format!("get a token of Keystone at {}", entry.auth_url);
            let response = host
                .http(&trust.over(request))
                .map_err(|refused| Failure::unanswered(&act, &entry.auth_url, &refused))?;
            read(&act, &response, region, host.now_ms() / 1_000)
        };
        match fresh {
            Freshness::New => ask(Duration::ZERO),
            Freshness::Recent => match ask(LONGEST_USE) {
                Ok(session) if session.is_old => ask(Duration::ZERO),
                // What was kept would be read again and again.
                Err(failure) if failure.is_garbled() => ask(Duration::ZERO),
                other => other,
            },
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transport {
    /// A CA to trust besides the system's, PEM.
    pub ca: Option<String>,
    /// Accepts any server certificate.
    pub insecure: bool,
}

impl Transport {
    /// The request with this CA and `insecure`.
    pub fn over(&self, request: HttpRequest) -> HttpRequest {
        HttpRequest { trust: self.ca.clone(), insecure: self.insecure, ..request }
    }
}

fn read(act: &str, response: &HttpResponse, region: &str, now: u64) -> Result<Session, Failure> {
    if response.status == 404 {
        let message = format!("unable to {act}: 404: there is no Keystone v3 at auth_url");
        return Err(Failure { status: Some(404), ..Failure::new(UNAUTHENTICATED, Fault::Invalid, message) });
    }
    if !(200..300).contains(&response.status) {
        return Err(Failure::rejected(act, response));
    }
    let token = response.headers.iter().find(|(name, _)| name == "x-subject-token").map(|(_, value)| value.clone());
    let token = token.ok_or_else(|| Failure::garbled(act, "there is no X-Subject-Token"))?;
    let mut body = read_within(act, &response.body, &mut { ROOM })?;
    let mut body = body.get_mut("token").map(Value::take).unwrap_or_default();
    let project = body.pointer("/project/id").and_then(Value::as_str).map(str::to_owned).ok_or_else(|| {
        let message = "the token is of no project: name one in clouds.yaml (project_id or project_name)";
        Failure::new(UNAUTHENTICATED, Fault::Invalid, message.to_owned())
    })?;
    let catalog = body.get_mut("catalog").map(Value::take).unwrap_or_default();
    let region = match (region, catalog::regions(&catalog).as_slice()) {
        ("", [only]) => (*only).to_owned(),
        ("", [_, _, ..]) => {
            let all = catalog::regions(&catalog).join(", ");
            let all = beginning(&all, LONGEST_WHY);
            let message =
                format!("the cloud has several regions ({all}): name one in identityRef.region or clouds.yaml");
            return Err(Failure::new("RegionNotSet", Fault::Invalid, message));
        }
        (region, _) => region.to_owned(),
    };
    let at = |name: &str| body.get(name).and_then(Value::as_str).and_then(time::parse);
    let is_old = match (at("issued_at"), at("expires_at")) {
        (Some(issued), Some(expires)) => now >= issued.saturating_add(expires.saturating_sub(issued) / 2),
        (None, Some(expires)) => now >= expires,
        // A token that never ends is renewed when it is refused.
        (_, None) => false,
    };
    Ok(Session { token, project, catalog, region, is_old })
}
