//! Reading what a service answered.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::cloud::{Cloud, Failure, Service};

/// The object under `key` of an answer of a service.
pub fn decode_member<T: DeserializeOwned>(
    cloud: &Cloud<'_>,
    service: Service,
    mut answer: Value,
    key: &str,
) -> Result<T, Failure> {
    decode(cloud, service, answer.get_mut(key).map(Value::take).unwrap_or_default())
}

/// A whole answer, or one item of a list.
pub fn decode<T: DeserializeOwned>(cloud: &Cloud<'_>, service: Service, value: Value) -> Result<T, Failure> {
    // By reference, as specs are read: a second reader for every type would make the component larger.
    T::deserialize(&value).map_err(|error| cloud.garbled(service, error))
}

/// Services say null where they mean nothing.
pub fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
