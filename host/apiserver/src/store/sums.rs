//! Checksums of the few numbers that everything else depends on, beside them in `meta`: the revision, the names of keyspaces, how far
//! their histories reach.

use redb::{ReadableTable, Table};

const PREFIX: &str = "sum/";
const KEYSPACE: &str = "keyspace/";

/// The name under which a keyspace's number has its checksum.
pub(super) fn keyspace(name: &str) -> String {
    format!("{KEYSPACE}{name}")
}

/// The name under which the end of a keyspace's history has its checksum.
pub(super) fn compacted(id: u32) -> String {
    format!("compacted/{id}")
}

/// Writes the checksum of a number.
pub(super) fn write(meta: &mut Table<'_, &'static str, u64>, name: &str, value: u64) -> Result<(), redb::Error> {
    meta.insert(format!("{PREFIX}{name}").as_str(), of(name, value))?;
    Ok(())
}

/// Whether a number is the one that was written.
pub(super) fn confirm(
    meta: &impl ReadableTable<&'static str, u64>,
    name: &str,
    value: u64,
) -> Result<bool, redb::Error> {
    let found = meta.get(format!("{PREFIX}{name}").as_str())?;
    Ok(found.is_some_and(|sum| sum.value() == of(name, value)))
}

/// The keyspaces that have checksums, with these.
pub(super) fn keyspaces(meta: &impl ReadableTable<&'static str, u64>) -> Result<Vec<(String, u64)>, redb::Error> {
    let mut found = Vec::new();
    for entry in meta.iter()? {
        let (name, sum) = entry?;
        if let Some(name) = name.value().strip_prefix(PREFIX).and_then(|name| name.strip_prefix(KEYSPACE)) {
            found.push((name.to_owned(), sum.value()));
        }
    }
    Ok(found)
}

pub(super) fn of(name: &str, value: u64) -> u64 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(name.as_bytes());
    sum.update(&value.to_be_bytes());
    sum.finalize().into()
}
