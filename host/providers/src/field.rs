//! Paths of the contract's fields in an object.

use std::fmt;

use capwasm_api::contract::{BootstrapConfig, Contract, ControlPlane, InfrastructureMachine, Milestone};
use capwasm_object::json;
use serde_json::Value;

pub const ENDPOINT_HOST: Field = Field("spec.controlPlaneEndpoint.host");
/// Go writes 0 for an unknown port.
pub const ENDPOINT_PORT: Field = Field("spec.controlPlaneEndpoint.port");
/// Identity of the machine at its provider, equal to `spec.providerID` of its Node.
pub const PROVIDER_ID: Field = Field("spec.providerID");
/// Name of the bootstrap data Secret in the object's namespace.
pub const DATA_SECRET_NAME: Field = Field("status.dataSecretName");
/// Provisioned, in contract v1beta1; some other kinds have it as well.
pub const READY: Field = Field("status.ready");

/// Infrastructure is provisioned.
pub fn provisioned(contract: Contract) -> Field {
    Field(InfrastructureMachine::flag(contract))
}

/// Bootstrap data is created.
pub fn data_secret_created(contract: Contract) -> Field {
    Field(BootstrapConfig::flag(contract))
}

/// The control plane's first API server has answered.
pub fn initialized(contract: Contract) -> Field {
    Field(ControlPlane::flag(contract))
}

/// Dotted path, such as `status.initialization.provisioned`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field(pub &'static str);

impl Field {
    /// The value; null counts as present.
    pub fn get(self, object: &Value) -> Option<&Value> {
        self.0.split('.').try_fold(object, |at, key| at.get(key))
    }

    /// The text, unless it is empty.
    pub fn text(self, object: &Value) -> Option<&str> {
        self.get(object)?.as_str().filter(|text| !text.is_empty())
    }

    pub fn is_true(self, object: &Value) -> bool {
        self.get(object).and_then(Value::as_bool) == Some(true)
    }

    /// Sets the value and creates missing parents; null removes it.
    pub fn set(self, object: &mut Value, value: impl Into<Value>) {
        let keys: Vec<&str> = self.0.split('.').collect();
        json::set(object, &keys, value);
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_field_is_read_where_it_was_written() {
        let (ready, name) = (Field("status.initialization.provisioned"), Field("status.dataSecretName"));
        let mut object = json!({"status": null});
        assert!(!ready.is_true(&object) && name.text(&object).is_none());
        ready.set(&mut object, true);
        name.set(&mut object, "a");
        assert_eq!(object, json!({"status": {"initialization": {"provisioned": true}, "dataSecretName": "a"}}));
        assert!(ready.is_true(&object) && name.text(&object) == Some("a"));
        name.set(&mut object, "");
        ready.set(&mut object, Value::Null);
        assert_eq!((name.text(&object), ready.get(&object)), (None, None));
        assert_eq!(ready.to_string(), "status.initialization.provisioned");
    }
}
