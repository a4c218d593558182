//! Internals for the fuzz targets in `fuzz/`. Not a stable API.

use capwasm_sdk::{Host, Problem};

use crate::cloud::Cloud;
use crate::identity::{IdentityKind, IdentityRef};

/// Gets a token for the entry `cloud` of the `clouds.yaml` in the Secret `credentials`.
///
/// # Errors
/// As [`Cloud::connect`] has them.
pub fn connect(host: &dyn Host, cloud: &str) -> Result<(), Problem> {
    let identity = IdentityRef {
        kind: IdentityKind::Secret,
        name: "credentials".to_owned(),
        cloud_name: cloud.to_owned(),
        region: None,
    };
    Cloud::connect(host, "default", &identity).map(drop)
}
