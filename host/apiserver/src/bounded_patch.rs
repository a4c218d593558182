//! JSON patches (RFC 6902) from clients: the crate `json-patch` applies them, and this bounds what they can make of an object.
//!
//! A few `copy` operations could double an object again and again, and `copy` and `move` nest it ever deeper. Each is looked at
//! before it is carried out.

use serde_json::Value;

use crate::registry::{NESTING, nests_beyond, too_deep};
use crate::status::ApiError;

/// Most operations in one patch, as upstream's.
pub const OPERATIONS: usize = 10_000;

/// Most bytes that the `copy` and `move` operations of one patch may take: as many as a request may have. Upstream allows 100 MiB
/// of copies, and then refuses to store what came of them.
pub const TAKEN: usize = 3 << 20;

/// Why a patch was not applied.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// More than [`OPERATIONS`].
    #[error("a JSON patch may have at most {} operations", OPERATIONS)]
    TooManyOperations,
    /// More than [`TAKEN`].
    #[error("a JSON patch may copy and move at most {} bytes", TAKEN)]
    TakesTooMuch,
    /// The object would be nested too deep to be read again.
    #[error("the object is nested deeper than {} levels", NESTING)]
    NestsTooDeep,
    /// An operation that does not go with the object.
    #[error(transparent)]
    Operation(json_patch::PatchError),
}

/// A patch of at most [`OPERATIONS`] operations.
#[derive(Clone, Debug)]
pub struct BoundedPatch(json_patch::Patch);

impl TryFrom<json_patch::Patch> for BoundedPatch {
    type Error = PatchError;

    fn try_from(patch: json_patch::Patch) -> Result<Self, PatchError> {
        if patch.0.len() > OPERATIONS { Err(PatchError::TooManyOperations) } else { Ok(Self(patch)) }
    }
}

impl BoundedPatch {
    /// Carries out one operation after the other.
    ///
    /// # Errors
    /// When one cannot be carried out, or would make too much of the object; those before it have changed it then.
    pub fn apply(&self, object: &mut Value) -> Result<(), PatchError> {
        use json_patch::PatchOperation::{Add, Copy, Move, Remove, Replace, Test};
        let mut taken = 0;
        for (at, operation) in self.0.iter().enumerate() {
            let value = match operation {
                Add(add) => Some(&add.value),
                Replace(replace) => Some(&replace.value),
                Copy(copy) => object.pointer(copy.from.as_str()),
                Move(from) => object.pointer(from.from.as_str()),
                Remove(_) | Test(_) => None,
            };
            if matches!(operation, Copy(_) | Move(_)) {
                taken += value.map_or(0, |value| value.to_string().len());
                if taken > TAKEN {
                    return Err(PatchError::TakesTooMuch);
                }
            }
            let depth = operation.path().as_str().matches('/').count();
            if value.is_some_and(|value| depth > NESTING || nests_beyond(value, NESTING - depth)) {
                return Err(PatchError::NestsTooDeep);
            }
            json_patch::patch(object, std::slice::from_ref(operation)).map_err(|mut error| {
                error.operation = at;
                PatchError::Operation(error)
            })?;
        }
        Ok(())
    }
}

impl From<PatchError> for ApiError {
    fn from(error: PatchError) -> Self {
        match error {
            PatchError::TooManyOperations | PatchError::TakesTooMuch => {
                Self::new(413, "RequestEntityTooLarge", error.to_string())
            }
            PatchError::NestsTooDeep => too_deep(),
            PatchError::Operation(error) => {
                let message = format!("the server rejected our request due to an error in our request: {error}");
                Self::new(422, "Invalid", message)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_patch_makes_of_an_object_is_bounded() {
        let doubling = |times: usize| -> Vec<Value> {
            (0..times).map(|n| json!({"op": "copy", "from": "/data", "path": format!("/data/c{n}")})).collect()
        };
        let tests = |count: usize| vec![json!({"op": "test", "path": "/data/k", "value": "x"}); count];
        let chain = (0..100).fold(json!([]), |inner, _| json!([inner]));
        let nesting = vec![
            json!({"op": "add", "path": "/x", "value": chain}),
            json!({"op": "copy", "from": "/x", "path": format!("/x{}/0", "/0".repeat(100))}),
        ];
        for (what, operations, expected) in [
            ("as many operations as there may be", tests(OPERATIONS), Ok(())),
            ("one more", tests(OPERATIONS + 1), Err("a JSON patch may have at most 10000 operations")),
            ("a few copies", doubling(4), Ok(())),
            ("copies without end", doubling(40), Err("a JSON patch may copy and move at most 3145728 bytes")),
            ("nested without end", nesting, Err("the object is nested deeper than 127 levels")),
            (
                "an operation that does not fit",
                [tests(1), vec![json!({"op": "remove", "path": "/none"})]].concat(),
                Err("operation '/1' failed at path '/none': path is invalid"),
            ),
        ] {
            let mut object = json!({"data": {"k": "x"}});
            let patch: json_patch::Patch = serde_json::from_value(json!(operations)).unwrap();
            let patched = BoundedPatch::try_from(patch).and_then(|patch| patch.apply(&mut object));
            assert_eq!(patched.map_err(|error| error.to_string()), expected.map_err(str::to_owned), "{what}");
        }
    }
}
