//! The built-in kinds that the server knows, and the messages they are made of.
//!
//! One table drives everything that must know these types: decoding protobuf requests, strategic merge, list types
//! of server-side apply, validation and OpenAPI. `cargo xtask kinds` makes it from what Kubernetes publishes; which kinds are in
//! it, and what is not published of them, is in `selection.txt`.

mod message;
mod table;

pub(crate) use message::{Field, FieldList, Message, Shape, Type};
pub use table::{BuiltinKind, kinds};
pub(crate) use table::{message, message_of};

#[cfg(test)]
mod tests;
