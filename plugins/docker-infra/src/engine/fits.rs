//! Texts and lists of the engine that are kept, shown or asked for again: they may be no longer than any engine's are.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// Longest id, state, time or address in bytes.
const LONGEST: usize = 256;
/// Longest list: of the execs of a container, of which engines tell while they run. Each is asked for, and a call has 256 requests.
const MOST: usize = 128;

/// What may be too long.
pub trait Fits {
    /// Whether it is not.
    fn fits(&self) -> bool;
}

impl Fits for String {
    fn fits(&self) -> bool {
        self.len() <= LONGEST
    }
}

impl<T: Fits> Fits for Option<T> {
    fn fits(&self) -> bool {
        self.as_ref().is_none_or(T::fits)
    }
}

impl<T: Fits> Fits for Vec<T> {
    fn fits(&self) -> bool {
        self.len() <= MOST && self.iter().all(T::fits)
    }
}

/// For `deserialize_with`: refuses what does not fit.
pub fn fits<'de, D: Deserializer<'de>, T: Deserialize<'de> + Fits>(deserializer: D) -> Result<T, D::Error> {
    let value = T::deserialize(deserializer)?;
    if value.fits() { Ok(value) } else { Err(D::Error::custom("it is too long")) }
}
