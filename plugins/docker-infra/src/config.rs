//! The provider's configuration: `spec.configuration` of its WasmProvider.

use capwasm_sdk::{Host, Problem};
use serde::Deserialize;

/// What can be configured; everything has a default.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Configuration {
    /// The engine's network that all containers join.
    pub network: String,
    pub images: Images,
    /// Whether machines run as real nodes need it: privileged, with systemd and containerd inside.
    pub privileged: bool,
    /// Address of the engine's machine at which the API servers' ports are published; empty publishes none.
    pub publish: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Images {
    /// Of machines; `{version}` is the machine's Kubernetes version.
    pub node: String,
    pub load_balancer: String,
}

impl Default for Configuration {
    fn default() -> Configuration {
        Configuration {
            network: "kind".to_owned(),
            images: Images::default(),
            privileged: true,
            publish: "127.0.0.1".to_owned(),
        }
    }
}

impl Default for Images {
    fn default() -> Images {
        Images {
            node: "kindest/node:{version}".to_owned(),
            load_balancer: "kindest/haproxy:v20230606-42a2262b".to_owned(),
        }
    }
}

impl Configuration {
    /// From the host. A word that is not known is an error, because it is a typing error.
    pub fn load(host: &dyn Host) -> Result<Configuration, Problem> {
        serde_json::from_value(host.configuration()).map_err(|error| {
            Problem::invalid("BadConfiguration", format!("spec.configuration of the WasmProvider: {error}"))
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use capwasm_sdk::{Fault, test::TestHost};
    use serde_json::json;

    #[test]
    fn what_is_not_configured_has_a_default_and_what_is_unknown_is_refused() {
        let load = |value| Configuration::load(&TestHost::new().configuration(value));
        assert_eq!(load(json!({})).unwrap(), Configuration::default());
        let partly = load(json!({"images": {"node": "n"}, "privileged": false})).unwrap();
        assert_eq!((partly.images.node.as_str(), partly.privileged, partly.network.as_str()), ("n", false, "kind"));
        assert_eq!(partly.images.load_balancer, Images::default().load_balancer);
        for bad in [json!({"netwrok": "x"}), json!({"privileged": "yes"}), json!("x")] {
            assert_eq!(load(bad).unwrap_err().fault, Fault::Invalid);
        }
    }
}
