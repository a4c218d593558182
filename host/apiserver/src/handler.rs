//! HTTP requests: authentication, authorisation, routing, encoding.

mod authentication;
mod authorization;
mod body;
pub(crate) mod decode;
mod discovery;
mod dispatch;
mod negotiation;
mod openapi;
mod port_forward;
mod read;
mod reviews;
mod stream;
mod write;

pub(crate) use authentication::authenticate;
pub use body::Body;
pub use dispatch::version_info;
pub(crate) use dispatch::{Call, authorize, document, handle, refuse};
