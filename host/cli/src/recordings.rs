//! Options of recordings.

use std::path::{Path, PathBuf};

use capwasm_providers::FileOptions;
use clap::Args;

/// Options of a host that records.
#[derive(Args, Clone, Debug)]
#[group(skip)]
pub struct Options {
    /// Record each call of every provider into this folder, for `capwasm replay` and `capwasm provider diff`. The files
    /// hold the tokens and keys that providers see. Without it, only calls of providers with `spec.record: true` are
    /// recorded, into `recordings` of the data folder.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Mebibytes of recordings that are kept; the oldest go first.
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    record_limit: u64,
}

impl Options {
    /// Files of recordings.
    pub fn files(&self, data_dir: &Path) -> FileOptions {
        FileOptions {
            folder: self.record.clone().unwrap_or_else(|| data_dir.join("recordings")),
            limit: self.record_limit.saturating_mul(1 << 20),
            all: self.record.is_some(),
        }
    }
}
