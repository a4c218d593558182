//! Bootstrap configurations.

use serde_json::Value;

use super::Contract;
use crate::json;

/// Whether the bootstrap data is there.
pub fn data_secret_created(object: &Value, contract: Contract) -> bool {
    json::flag(object, data_secret_created_pointer(contract)) == Some(true)
}

/// Path of [`data_secret_created`], for messages.
pub fn data_secret_created_path(contract: Contract) -> &'static str {
    match contract {
        Contract::V1Beta1 => "status.ready",
        Contract::V1Beta2 => "status.initialization.dataSecretCreated",
    }
}

/// Name of the Secret with the data, in the object's namespace.
pub fn data_secret_name(object: &Value) -> Option<&str> {
    json::text(object, "/status/dataSecretName")
}

fn data_secret_created_pointer(contract: Contract) -> &'static str {
    match contract {
        Contract::V1Beta1 => "/status/ready",
        Contract::V1Beta2 => "/status/initialization/dataSecretCreated",
    }
}
