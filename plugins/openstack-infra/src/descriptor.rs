//! What this provider says about itself.

use capwasm_sdk::Description;
use capwasm_sdk::api::descriptor::Descriptor;

/// Its kinds, and what it wants to be granted.
pub fn describe() -> Descriptor {
    Description::new("openstack-infra", env!("CARGO_PKG_VERSION")).build()
}
