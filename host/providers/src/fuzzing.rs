//! What the fuzz targets in `fuzz/` need of the inside. No API: it changes as they do.

pub use crate::belongings::{Belongings, Waiting};
pub use crate::crd::narrowings;
pub use crate::role::ServedKind;
pub use crate::write_back::{Ending, Subject, plan};
