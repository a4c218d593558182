//! Bootstrap configurations.

use capwasm_object::json;
use serde_json::Value;

use super::{Contract, Milestone, Report};

/// Report of a bootstrap configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BootstrapConfig {
    /// Whether the bootstrap data Secret is created.
    pub created: bool,
    /// Name of the Secret in the object's namespace.
    pub secret_name: Option<String>,
}

impl Report for BootstrapConfig {
    fn read(object: &Value, contract: Contract) -> BootstrapConfig {
        let created = match contract {
            Contract::V1Beta1 => "/status/ready",
            Contract::V1Beta2 => "/status/initialization/dataSecretCreated",
        };
        BootstrapConfig {
            created: json::flag(object, created) == Some(true),
            secret_name: json::text(object, "/status/dataSecretName").map(str::to_owned),
        }
    }
}

impl Milestone for BootstrapConfig {
    fn flag(contract: Contract) -> &'static str {
        match contract {
            Contract::V1Beta1 => "status.ready",
            Contract::V1Beta2 => "status.initialization.dataSecretCreated",
        }
    }
}
