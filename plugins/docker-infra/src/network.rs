//! The network that all containers join. It is shared by clusters: whoever is first makes it, whoever is last removes it.

use capwasm_api::names::fingerprint;
use capwasm_sdk::Problem;
use serde_json::{Value, json};

use crate::engine::{Creation, Engine, EngineError};
use crate::family::{Families, Family};
use crate::kinds::NETWORK_LABEL;
use crate::ownership::unanswered;

/// How many ranges of IPv6 addresses are tried: another network may have taken one.
const RANGES: u32 = 3;

/// Makes sure that the network is there and has the families. A network with IPv6 serves clusters of every family, so that
/// is tried first.
pub fn ensure(engine: &Engine<'_>, name: &str, families: &Families) -> Result<(), Problem> {
    for attempt in 0..=RANGES {
        if let Some(network) = engine.network(name)? {
            if families.has(Family::V6) && !network.enable_ipv6 {
                let message = format!(
                    "the cluster wants IPv6, and the network {name} has none: remove it, or configure another one"
                );
                return Err(Problem::invalid("NetworkWithoutIPv6", message));
            }
            return Ok(());
        }
        let ipv6 = attempt < RANGES;
        match engine.create_network(&body(name, ipv6.then_some(attempt))) {
            Ok(Creation::Created) => return Ok(()),
            // Another cluster was quicker: look again.
            Ok(Creation::NameTaken) => {}
            Err(error @ EngineError::Rejected { .. }) if !error.is_unanswered() => {
                // The range is taken, or the engine's machine has no IPv6.
                let last = if families.has(Family::V6) { RANGES - 1 } else { RANGES };
                if attempt >= last {
                    return Err(error.into());
                }
            }
            Err(error) => return Err(unanswered(error)),
        }
    }
    Err(Problem::transient("NetworkUnstable", format!("the network {name} does not stay; is somebody removing it?")))
}

fn body(name: &str, range: Option<u32>) -> Value {
    let labels = json!({NETWORK_LABEL: name});
    match range {
        Some(attempt) => json!({
            "Name": name, "Driver": "bridge", "CheckDuplicate": true, "Labels": labels,
            "EnableIPv6": true, "IPAM": {"Config": [{"Subnet": range_of(name, attempt)}]},
        }),
        None => json!({"Name": name, "Driver": "bridge", "CheckDuplicate": true, "Labels": labels}),
    }
}

/// A range of unique local addresses that follows from the name.
fn range_of(name: &str, attempt: u32) -> String {
    let print = fingerprint(&format!("{name}/{attempt}"));
    let part = |at: usize| print.get(at..at + 4).unwrap_or("0").trim_start_matches('0').to_owned();
    let part = |at| Some(part(at)).filter(|part: &String| !part.is_empty()).unwrap_or_else(|| "0".to_owned());
    format!("fc00:{}:{}:{}::/64", part(0), part(4), part(8))
}

/// Removes the network if this provider made it and no container runs in it.
pub fn release(engine: &Engine<'_>, name: &str) -> Result<(), EngineError> {
    match engine.network(name)? {
        Some(network) if network.label(NETWORK_LABEL) == Some(name) && !network.is_used() => {
            engine.remove_network(name)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn a_name_has_its_own_ranges() {
        let ranges: Vec<String> = (0..RANGES).map(|attempt| range_of("kind", attempt)).collect();
        for range in &ranges {
            let address = range.strip_suffix("/64").unwrap();
            assert!(address.parse::<std::net::Ipv6Addr>().is_ok(), "{range}");
        }
        assert_eq!(ranges.iter().collect::<std::collections::BTreeSet<_>>().len(), ranges.len());
        assert_ne!(range_of("kind", 0), range_of("other", 0));
    }
}
