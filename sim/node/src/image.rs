//! Images for a real Docker engine without a registry: `capwasm-node` and the libraries that it is linked with, imported as
//! one layer through the Docker API.

use std::path::{Path, PathBuf};

use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::container::{COMMANDS, VERSION_VARIABLE};
use capwasm_sim_service::docker::{Docker, DockerError};

/// Where the program lies in the image.
const PROGRAM: &str = "bin/capwasm-node";
/// Directories that a node expects.
const DIRECTORIES: [&str; 17] = [
    "bin",
    "dev",
    "etc",
    "etc/kubernetes",
    "etc/kubernetes/manifests",
    "opt",
    "proc",
    "root",
    "run",
    "sys",
    "tmp",
    "usr",
    "usr/local",
    "usr/local/etc",
    "usr/local/etc/haproxy",
    "var",
    "var/lib",
];

/// What a container of an image is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour<'a> {
    /// A node that pretends to be of a Kubernetes version (`v1.34.0`).
    Node(&'a str),
    /// A load balancer, which runs `capwasm-node haproxy`.
    Balancer,
}

/// Why an image could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A file that belongs into it cannot be read.
    #[error("unable to read {0}")]
    Read(PathBuf, #[source] std::io::Error),
    /// The dynamic linker's list cannot be had.
    #[error("unable to list the libraries of {0}: {1}")]
    Libraries(PathBuf, String),
    /// The archive could not be written.
    #[error("unable to write the image's archive")]
    Archive(#[source] std::io::Error),
    /// The engine could not be reached, or refused.
    #[error("unable to import the image")]
    Docker(#[from] DockerError),
    /// The engine took the archive and then failed.
    #[error("the engine could not import the image: {0}")]
    Import(String),
}

/// Imports an image `repository:tag` made of the program `binary` (a build of `capwasm-node`) into an engine.
///
/// # Errors
/// See [`ImageError`].
pub async fn load(
    docker: &Docker,
    binary: &Path,
    repository: &str,
    tag: &str,
    flavour: Flavour<'_>,
) -> Result<(), ImageError> {
    let layer = layer(binary, &libraries(binary).await?)?;
    let mut changes = Vec::new();
    match flavour {
        Flavour::Node(version) => {
            changes.push(r#"ENTRYPOINT ["/bin/capwasm-node","node"]"#.to_owned());
            changes.push(format!("ENV {VERSION_VARIABLE}={version}"));
        }
        Flavour::Balancer => changes.push(r#"ENTRYPOINT ["/bin/capwasm-node","haproxy"]"#.to_owned()),
    }
    changes.push("ENV PATH=/bin".to_owned());
    changes.push("LABEL capwasm.dev/simulated=true".to_owned());
    let mut path = format!("/v1.41/images/create?fromSrc=-&repo={}&tag={}", encode(repository), encode(tag));
    for change in &changes {
        path.push_str("&changes=");
        path.push_str(&encode(change));
    }
    let answer = docker.archive(Method::POST, &path, layer).await?;
    // Progress comes as one document per line; a failure in its midst still has status 200.
    let failure = answer
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|line| line["error"].as_str().map(str::to_owned));
    failure.map_or(Ok(()), |failure| Err(ImageError::Import(failure)))
}

/// All but what RFC 3986 leaves as it is.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Shared libraries of a program, with the dynamic linker, as `ldd` resolves them; none for a static one.
async fn libraries(binary: &Path) -> Result<Vec<PathBuf>, ImageError> {
    let failed = |problem: String| ImageError::Libraries(binary.to_owned(), problem);
    let output =
        tokio::process::Command::new("ldd").arg(binary).output().await.map_err(|error| failed(error.to_string()))?;
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if out.contains("statically linked") || error.contains("not a dynamic executable") {
        return Ok(Vec::new());
    }
    if !output.status.success() || out.contains("not found") {
        return Err(failed(format!("{out}{error}").trim().to_owned()));
    }
    Ok(parse_libraries(&out))
}

fn parse_libraries(listing: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let target = line.split_once("=>").map_or(line, |(_, target)| target);
        target.split_whitespace().next().filter(|path| path.starts_with('/')).map(PathBuf::from)
    };
    listing.lines().filter_map(path).collect()
}

fn layer(binary: &Path, libraries: &[PathBuf]) -> Result<Vec<u8>, ImageError> {
    let mut builder = tar::Builder::new(Vec::new());
    for directory in DIRECTORIES {
        let mut header = header(tar::EntryType::Directory, if directory == "tmp" { 0o1777 } else { 0o755 }, 0);
        builder.append_data(&mut header, format!("{directory}/"), std::io::empty()).map_err(ImageError::Archive)?;
    }
    let mut add = |path: &Path, name: &str| -> Result<(), ImageError> {
        let content = std::fs::read(path).map_err(|error| ImageError::Read(path.to_owned(), error))?;
        let mut header = header(tar::EntryType::Regular, 0o755, content.len() as u64);
        builder.append_data(&mut header, name, content.as_slice()).map_err(ImageError::Archive)
    };
    add(binary, PROGRAM)?;
    for library in libraries {
        add(library, library.to_string_lossy().trim_start_matches('/'))?;
    }
    for command in COMMANDS {
        let mut header = header(tar::EntryType::Symlink, 0o777, 0);
        builder.append_link(&mut header, format!("bin/{command}"), "capwasm-node").map_err(ImageError::Archive)?;
    }
    builder.into_inner().map_err(ImageError::Archive)
}

fn header(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn libraries_and_the_linker_are_found_in_the_listing() {
        let listing = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let expected = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from);
        assert_eq!(parse_libraries(listing), expected);
    }
}
