//! Every field of the OpenStack provider's kinds on real services: what they then say is what was asked for, what was there before
//! is untouched when all is deleted, and nothing else is left. [`coverage`] holds the list of fields against the CRDs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod balancer;
mod coverage;
mod endpoints;
mod given;
mod identities;
mod janitor;
mod machines;
mod ovn;
mod pools;
mod ports;
mod world;
