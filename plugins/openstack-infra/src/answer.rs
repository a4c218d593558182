//! Reading what a service answered.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::cloud::Failure;

/// The object under `key` of an answer of `service` (its name, for people).
pub fn decode_member<T: DeserializeOwned>(service: &str, mut answer: Value, key: &str) -> Result<T, Failure> {
    decode(service, answer.get_mut(key).map(Value::take).unwrap_or_default())
}

/// A whole answer, or one item of a list.
pub fn decode<T: DeserializeOwned>(service: &str, value: Value) -> Result<T, Failure> {
    // By reference, as specs are read: a second reader for every type would make the component larger.
    T::deserialize(&value).map_err(|error| Failure::garbled(&format!("read {service}'s answer"), error))
}

/// Services say null where they mean nothing.
pub fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
