//! What the fuzz targets in `fuzz/` need of the inside. No API: it changes as they do.

pub use crate::crd::narrowings;
pub use crate::write_back::{Contract, WriteBack, answered, failed, paused, waiting};
