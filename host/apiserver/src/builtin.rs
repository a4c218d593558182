//! The built-in kinds that the server knows, and the messages they are made of.
//!
//! One table drives everything that must know these types: decoding protobuf requests, strategic merge, list types
//! of server-side apply, validation and OpenAPI. Kinds are rows of [`kinds`]; messages stand in the modules named
//! after their API groups. Schemas are built on first use and share their common parts.

mod admission;
mod apps;
mod authentication;
mod authorization;
mod autoscaling;
mod certificates;
mod coordination;
mod core;
mod crd;
mod discovery;
mod events;
mod kinds;
mod message;
mod meta;
mod node;
mod persistent_volume;
mod pod;
mod pod_status;
mod policy;
mod rbac;
mod schemas;
mod storage;
mod volume;

pub(crate) use kinds::message_of;
pub use kinds::{BuiltinKind, kinds};
pub(crate) use message::{Field, Message, Shape, Type};
pub(crate) use schemas::object_meta;
pub use schemas::schema_of;

pub(crate) use crd::JSON_SCHEMA_PROPS;

#[cfg(test)]
mod tests;
