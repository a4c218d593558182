//! Conversion of every kind between all its versions: random objects of the definitions' own schemas go there and back.
//!
//! Nothing may be lost (round trips, edits in between), whatever comes out must be valid in the other version, and every
//! field of every schema must have taken part. Rules have tables of their own (`rules`, `hostile`).
//!
//! A crate of its own, because it needs the kinds of core and of all bundled providers, and nothing else.

#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod edits;
mod generate;
mod hostile;
mod kinds;
mod round_trips;
mod rules;
mod schema;
