//! `kubeadm reset`: the member of etcd leaves, and what init or join wrote goes.

use crate::files::{Files, reason};
use crate::kubeadm::kubeconfig::Kubeconfig;
use crate::kubeadm::{Failure, paths};
use crate::kubelet::Registration;
use crate::shell::Invocation;

/// Kubeconfigs that go.
const KUBECONFIGS: [&str; 6] = [
    paths::ADMIN,
    paths::SUPER_ADMIN,
    paths::KUBELET,
    paths::BOOTSTRAP_KUBELET,
    paths::CONTROLLER_MANAGER,
    paths::SCHEDULER,
];

/// Runs the phases of `kubeadm reset`. Its flags (`--force`, `--cri-socket`, ...) change nothing here.
pub(super) async fn reset(call: &Invocation<'_>) -> Result<(), Failure> {
    let files = call.node.files();
    if files.exists(paths::ETCD_MANIFEST) {
        leave_etcd(call).await.map_err(Failure::phase("remove-etcd-member"))?;
    }
    call.say("[reset] Stopping the kubelet service");
    let removed = remove(files).map_err(Failure::phase("cleanup-node"));
    call.node.wake_kubelet().await.map_err(Failure::phase("cleanup-node"))?;
    removed
}

async fn leave_etcd(call: &Invocation<'_>) -> Result<(), String> {
    let files = call.node.files();
    let name = Registration::read(call.node).map_or_else(|| call.node.hostname(), |registration| registration.name);
    let authority = Kubeconfig::load(files, paths::ADMIN)?.authority;
    call.say(format!("[reset] Removing the etcd member {name}"));
    call.node.leave_etcd(&authority, &name).await
}

fn remove(files: &dyn Files) -> Result<(), String> {
    let failed = |path: &str, error: std::io::Error| format!("unable to remove {path}: {}", reason(&error));
    for directory in [paths::MANIFESTS, paths::PKI, paths::ETCD_DATA, "/var/lib/kubelet"] {
        if files.exists(directory) {
            for name in files.list(directory).map_err(|error| failed(directory, error))? {
                let path = format!("{directory}/{name}");
                files.remove_all(&path).map_err(|error| failed(&path, error))?;
            }
        }
    }
    for path in KUBECONFIGS.into_iter().filter(|path| files.exists(path)) {
        files.remove(path).map_err(|error| failed(path, error))?;
    }
    Ok(())
}
