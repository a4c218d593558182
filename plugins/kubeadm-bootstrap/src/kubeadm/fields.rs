//! Cluster API's own spellings of kubeadm's fields, and what newer versions of kubeadm brought.

use capwasm_api::time;
use capwasm_sdk::Problem;
use serde_json::{Map, Value, json};

use crate::version::{Minor, Version};

/// `invalid` for what the version's kubeadm cannot do whatever its API version.
pub fn check(configuration: &Map<String, Value>, version: &Version) -> Result<(), Problem> {
    let algorithm = configuration.get("encryptionAlgorithm").and_then(Value::as_str);
    if algorithm == Some("ECDSA-P384") && !version.is_at_least(Minor::ECDSA_P384) {
        return Err(version.lacks(
            "spec.clusterConfiguration.encryptionAlgorithm ECDSA-P384",
            Minor::ECDSA_P384,
            "; ECDSA-P256 is known from v1.31 on",
        ));
    }
    Ok(())
}

/// A ClusterConfiguration with its durations as kubeadm reads them.
pub fn cluster(configuration: &mut Map<String, Value>) {
    days_to_duration(configuration, "caCertificateValidityPeriod");
    days_to_duration(configuration, "certificateValidityPeriod");
}

/// An InitConfiguration with its durations as kubeadm reads them.
pub fn init(init: &mut Map<String, Value>, now_ms: u64) -> Result<(), Problem> {
    if let Some(Value::Array(tokens)) = init.get_mut("bootstrapTokens") {
        for (at, token) in tokens.iter_mut().filter_map(Value::as_object_mut).enumerate() {
            let wrong = |what: &str| {
                Problem::invalid("InvalidConfiguration", format!("spec.initConfiguration.bootstrapTokens[{at}] {what}"))
            };
            // kubeadm fills in a time to live wherever there is none, and then refuses to have `expires` as well.
            if let Some(expires) = token.remove("expires") {
                if token.contains_key("ttlSeconds") {
                    return Err(wrong("has both expires and ttlSeconds; leave one out"));
                }
                let end =
                    expires.as_str().and_then(time::parse).ok_or_else(|| wrong("has an expires that is no time"))?;
                let left = end.saturating_mul(1000).saturating_sub(now_ms) / 1000;
                if left == 0 {
                    return Err(wrong("has expired"));
                }
                token.insert("ttlSeconds".into(), json!(left));
            }
            seconds_to_durations(token);
        }
    }
    timeouts(init);
    Ok(())
}

/// A JoinConfiguration with its durations as kubeadm reads them.
pub fn join(join: &mut Map<String, Value>) {
    timeouts(join);
}

/// `60` as a duration that Go reads.
pub fn seconds(value: i64) -> Value {
    json!(format!("{value}s"))
}

fn timeouts(configuration: &mut Map<String, Value>) {
    if let Some(Value::Object(timeouts)) = configuration.get_mut("timeouts") {
        seconds_to_durations(timeouts);
    }
}

/// `ttlSeconds: 60` becomes `ttl: 60s`.
fn seconds_to_durations(fields: &mut Map<String, Value>) {
    let found: Vec<_> = fields
        .iter()
        .filter_map(|(key, value)| Some((key.clone(), key.strip_suffix("Seconds")?.to_owned(), value.as_i64()?)))
        .collect();
    for (old, new, value) in found {
        fields.remove(&old);
        fields.insert(new, seconds(value));
    }
}

/// `certificateValidityPeriodDays: 30` becomes `certificateValidityPeriod: 720h`.
fn days_to_duration(fields: &mut Map<String, Value>, name: &str) {
    if let Some(days) = fields.remove(&format!("{name}Days")).as_ref().and_then(Value::as_i64) {
        fields.insert(name.to_owned(), json!(format!("{}h", days.saturating_mul(24))));
    }
}
