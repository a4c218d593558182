//! Container files as tar, as the archive endpoints of the engine read and write them.

use std::io::{self, Read};

use serde_json::{Value, json};

use capwasm_sim_node::files::{Attributes, Files, Kind, base_name, join, parent};

/// Bit of Go's `os.FileMode` for a directory.
const GO_DIRECTORY: u32 = 1 << 31;
/// Bit of Go's `os.FileMode` for a symbolic link.
const GO_LINK: u32 = 1 << 27;

/// Unpacks `archive` into the directory `at`, with modes and owners. What is there is replaced; a directory stays.
pub fn unpack(files: &dyn Files, at: &str, archive: &[u8]) -> io::Result<()> {
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let name = entry.path()?.to_string_lossy().into_owned();
        // `..` is resolved within the name, so none leads out of `at`.
        let path = join(at, join("/", &name).trim_start_matches('/'));
        if path == "/" || path == at {
            continue;
        }
        files.make_directories(parent(&path))?;
        let mode = entry.header().mode()? & 0o7777;
        match entry.header().entry_type() {
            tar::EntryType::Directory => {
                if !files.stat(&path)?.is_some_and(|found| found.is_directory()) {
                    clear(files, &path)?;
                    files.make_directory(&path, mode)?;
                }
                files.set_mode(&path, mode)?;
            }
            tar::EntryType::Regular | tar::EntryType::Continuous => {
                let mut content = Vec::new();
                entry.read_to_end(&mut content)?;
                clear(files, &path)?;
                files.write(&path, content.into(), mode)?;
                files.set_mode(&path, mode)?;
            }
            tar::EntryType::Symlink => {
                let target = entry.link_name()?.map(|target| target.to_string_lossy().into_owned()).unwrap_or_default();
                clear(files, &path)?;
                files.link(&path, &target)?;
                continue;
            }
            tar::EntryType::Link => {
                let target = entry.link_name()?.map(|target| target.to_string_lossy().into_owned()).unwrap_or_default();
                let content = files.read(&join(at, target.trim_start_matches('/')))?;
                clear(files, &path)?;
                files.write(&path, content, mode)?;
            }
            other => return Err(io::Error::other(format!("archive entry {name} has the unsupported type {other:?}"))),
        }
        let (uid, gid) = (entry.header().uid()?, entry.header().gid()?);
        files.set_owner(&path, u32::try_from(uid).unwrap_or(0), u32::try_from(gid).unwrap_or(0))?;
    }
    Ok(())
}

fn clear(files: &dyn Files, path: &str) -> io::Result<()> {
    if files.attributes(path)?.is_some() { files.remove_all(path) } else { Ok(()) }
}

/// Packs `path` with everything below; names begin with the path's last component, as `docker cp` expects.
pub fn pack(files: &dyn Files, path: &str) -> io::Result<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    let name = match base_name(path) {
        "" => ".",
        name => name,
    };
    add(files, &mut builder, path, name)?;
    builder.into_inner()
}

fn add(files: &dyn Files, builder: &mut tar::Builder<Vec<u8>>, path: &str, name: &str) -> io::Result<()> {
    let Some(found) = files.attributes(path)? else { return Ok(()) };
    let mut header = tar::Header::new_gnu();
    header.set_mode(found.mode);
    header.set_uid(found.uid.into());
    header.set_gid(found.gid.into());
    header.set_mtime(u64::try_from(found.mtime).unwrap_or(0));
    header.set_size(0);
    match found.kind {
        Kind::Directory => {
            header.set_entry_type(tar::EntryType::Directory);
            builder.append_data(&mut header, format!("{name}/"), io::empty())?;
            for child in files.list(path)? {
                add(files, builder, &join(path, &child), &format!("{name}/{child}"))?;
            }
        }
        Kind::File => {
            let content = files.read(path)?;
            header.set_entry_type(tar::EntryType::Regular);
            header.set_size(content.len() as u64);
            builder.append_data(&mut header, name, &content[..])?;
        }
        Kind::Link(target) => {
            header.set_entry_type(tar::EntryType::Symlink);
            builder.append_link(&mut header, name, target)?;
        }
    }
    Ok(())
}

/// The document of the header `X-Docker-Container-Path-Stat`.
pub fn path_stat(path: &str, found: &Attributes, mtime: &str) -> Value {
    let (bits, target) = match &found.kind {
        Kind::Directory => (GO_DIRECTORY, ""),
        Kind::File => (0, ""),
        Kind::Link(target) => (GO_LINK, target.as_str()),
    };
    json!({
        "name": if path == "/" { "/" } else { base_name(path) },
        "size": found.size,
        "mode": found.mode | bits,
        "mtime": mtime,
        "linkTarget": target,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use std::sync::Arc;

    use super::*;
    use capwasm_sim_node::files::MemoryFiles;

    #[test]
    fn what_is_packed_unpacks_with_modes_owners_and_links() {
        let source = MemoryFiles::new(Arc::default());
        let files: &dyn Files = &source;
        files.install("/capwasm/steps/0.exit", "0\n", 0o600).unwrap();
        files.set_owner("/capwasm/steps/0.exit", 3, 4).unwrap();
        files.make_directory("/capwasm/steps/0.started", 0o700).unwrap();
        files.link("/capwasm/link", "steps").unwrap();
        let long = format!("/capwasm/{}", "x".repeat(150));
        files.install(&long, "y", 0o644).unwrap();
        let tar = pack(files, "/capwasm").unwrap();

        let target = MemoryFiles::new(Arc::default());
        let files: &dyn Files = &target;
        unpack(files, "/", &tar).unwrap();
        assert_eq!(files.read_text("/capwasm/link/0.exit").unwrap(), "0\n");
        let found = files.stat("/capwasm/steps/0.exit").unwrap().unwrap();
        assert_eq!((found.mode, found.uid, found.gid), (0o600, 3, 4));
        assert_eq!(files.read_text(&long).unwrap(), "y");
    }

    #[test]
    fn names_cannot_leave_the_directory_by_dots() {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..14].copy_from_slice(b"../../etc/evil");
        header.set_size(1);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_cksum();
        builder.append(&header, &b"x"[..]).unwrap();
        let target = MemoryFiles::new(Arc::default());
        unpack(&target, "/x", &builder.into_inner().unwrap()).unwrap();
        let files: &dyn Files = &target;
        assert!(files.exists("/x/etc/evil") && !files.exists("/etc/evil"));
    }
}
