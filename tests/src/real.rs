//! The real kubeadm, and images in which it makes a real control plane: API server, controller manager, scheduler and etcd
//! run as processes of the container, and only the kubelet is stood in for. See `tests/kubeadm`.

use std::fs;
use std::path::{Path, PathBuf};

use capwasm_sim_service::docker::Docker;
use http::Method;

use crate::{guests, skip};

/// Repository of the images, whose tags are Kubernetes versions.
pub const REPOSITORY: &str = "capwasm-tests/control-plane";

/// A Kubernetes version of which there is a whole control plane.
pub struct Release {
    /// Its folder in `tests/kubeadm`.
    pub folder: &'static str,
    /// As the folder's `go.mod` has it.
    pub version: &'static str,
}

/// The newest release.
pub const NEWER: Release = Release { folder: "v1.36", version: "v1.36.3" };
/// The release before it.
pub const OLDER: Release = Release { folder: "v1.35", version: "v1.35.4" };

/// By which names the one program is called.
const PROGRAMS: [&str; 5] = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd", "node"];
const DIRECTORIES: [&str; 12] =
    ["bin", "dev", "etc", "opt", "opt/capwasm", "proc", "root", "run", "sys", "tmp", "var/lib", "var/log"];
/// What the steps of a bootstrap and the image's own scripts call.
const APPLETS: [&str; 19] = [
    "sh", "cat", "cp", "chmod", "chown", "cut", "echo", "grep", "kill", "ls", "mkdir", "mv", "rm", "sed", "sleep",
    "tail", "test", "touch", "true",
];

/// The folder of the built programs of a version (`v1.36`); otherwise `test` is told to be skipped.
pub fn kubeadm(version: &str, test: &str) -> Option<PathBuf> {
    if !skip::part("kubeadm", test) {
        return None;
    }
    let folder = std::env::var_os("CAPWASM_KUBEADM").map(PathBuf::from);
    let program = folder.unwrap_or_else(|| crate::binary::target().join("kubeadm")).join(version).join("kubeadm");
    if !program.is_file() {
        skip::skip(test, &format!("{} is not there: run `cargo xtask setup --kubeadm`", program.display()));
        return None;
    }
    Some(program)
}

impl Release {
    /// Name of the node image, with its tag.
    pub fn image(&self) -> String {
        format!("{REPOSITORY}:{}", self.version)
    }

    /// Imports the image into an engine. False when it cannot be made here; `test` is told to be skipped then.
    pub async fn load(&self, docker: &Docker, test: &str) -> bool {
        let Some(program) = kubeadm(self.folder, test) else { return false };
        if !skip::busybox(test) {
            return false;
        }
        let (repository, tag) = (REPOSITORY.replace('/', "%2F"), self.version);
        let changes = "&changes=ENTRYPOINT%20%5B%22%2Fopt%2Fcapwasm%2Fnode%22%5D&changes=ENV%20PATH%3D%2Fbin";
        let path = format!("/v1.41/images/create?fromSrc=-&repo={repository}&tag={tag}{changes}");
        let layer = layer(&program, Path::new(skip::BUSYBOX));
        let answer = docker.archive(Method::POST, &path, layer).await.expect("the engine imports");
        assert!(!answer.contains("\"error\""), "{answer}");
        true
    }
}

fn layer(program: &Path, busybox: &Path) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for directory in DIRECTORIES {
        let mut header = header(tar::EntryType::Directory, if directory == "tmp" { 0o1777 } else { 0o755 }, 0);
        tar.append_data(&mut header, format!("{directory}/"), std::io::empty()).expect("a directory");
    }
    let script = guests::root().join("tests/kubeadm/control-plane/image/kubeadm");
    let read =
        |path: &Path| fs::read(path).unwrap_or_else(|error| panic!("unable to read {}: {error}", path.display()));
    let files = [
        ("opt/capwasm/kubeadm", read(program)),
        ("bin/busybox", read(busybox)),
        ("bin/kubeadm", read(&script)),
        ("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n".to_vec()),
        ("etc/group", b"root:x:0:\n".to_vec()),
    ];
    for (name, content) in files {
        let mut header = header(tar::EntryType::Regular, 0o755, content.len() as u64);
        tar.append_data(&mut header, name, content.as_slice()).expect("a file");
    }
    let links = APPLETS.iter().map(|name| (format!("bin/{name}"), "busybox"));
    let links = links.chain(PROGRAMS.iter().map(|name| (format!("opt/capwasm/{name}"), "kubeadm")));
    for (name, to) in links {
        tar.append_link(&mut header(tar::EntryType::Symlink, 0o777, 0), name, to).expect("a link");
    }
    tar.into_inner().expect("an archive")
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
