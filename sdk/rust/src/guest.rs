//! Inside a component: the contract's imports behind [`Host`](crate::Host), and the roles' exports in front of the
//! traits. Compiled for WebAssembly only.

pub mod bindings;
mod convert;
mod exports;
mod imports;

pub use exports::Guest;
