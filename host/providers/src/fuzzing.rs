//! Internals for the fuzz targets in `fuzz/`. Not a stable API.

pub use crate::belongings::{Belongings, Waiting};
pub use crate::crd::narrowings;
pub use crate::role::ServedKind;
pub use crate::write_back::{Ending, Subject, plan};
