//! Conversion of every kind between all its versions: random objects of the definitions' own schemas go there and back.
//!
//! Nothing may be lost (round trips, edits in between), whatever comes out must be valid in the other version, and every
//! field of every schema must have taken part. Rules have tables of their own (`rules`, `hostile`).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "conversion/edits.rs"]
mod edits;
#[path = "conversion/generate.rs"]
mod generate;
#[path = "conversion/hostile.rs"]
mod hostile;
#[path = "conversion/kinds.rs"]
mod kinds;
#[path = "conversion/round_trips.rs"]
mod round_trips;
#[path = "conversion/rules.rs"]
mod rules;
#[path = "conversion/schema.rs"]
mod schema;

// The providers' rules need nothing but this crate; as dependencies they would turn the dependency direction around.
#[path = "../../plugins/docker-infra/src/conversion.rs"]
mod docker;
#[path = "../../plugins/kubeadm-bootstrap/src/conversion.rs"]
mod kubeadm_bootstrap;
#[path = "../../plugins/kubeadm-control-plane/src/conversion.rs"]
mod kubeadm_control_plane;
#[path = "../../plugins/openstack-infra/src/conversion.rs"]
mod openstack;
