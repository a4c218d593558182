//! Bytes in JSON: `{"text": …}` where they are UTF-8, so that a person can read them, `{"base64": …}` otherwise. For
//! `#[serde(with = …)]` on anything that is made of a `Vec<u8>` and seen as `[u8]`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Written<'a> {
    Text(&'a str),
    Base64(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Read {
    Text(String),
    Base64(String),
}

/// Serializes bytes.
///
/// # Errors
/// The serializer's own.
pub fn serialize<S: Serializer>(bytes: impl AsRef<[u8]>, serializer: S) -> Result<S::Ok, S::Error> {
    let bytes = bytes.as_ref();
    match std::str::from_utf8(bytes) {
        Ok(text) => Written::Text(text),
        Err(_) => Written::Base64(STANDARD.encode(bytes)),
    }
    .serialize(serializer)
}

/// Deserializes bytes.
///
/// # Errors
/// When it is neither of the two, or no base64.
pub fn deserialize<'de, D: Deserializer<'de>, T: From<Vec<u8>>>(deserializer: D) -> Result<T, D::Error> {
    match Read::deserialize(deserializer)? {
        Read::Text(text) => Ok(text.into_bytes().into()),
        Read::Base64(text) => STANDARD.decode(text).map(Into::into).map_err(D::Error::custom),
    }
}
