//! End-to-end tests.

pub mod guests;
