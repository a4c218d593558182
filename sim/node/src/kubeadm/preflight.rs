//! Checks before anything is changed.

use crate::files::Files;
use crate::kubeadm::{Failure, Flags, paths};

/// A failed check and its message.
type Finding = (String, String);

fn absent(findings: &mut Vec<Finding>, files: &dyn Files, path: &str) {
    if files.exists(path) {
        findings.push((format!("FileAvailable-{}", path.replace('/', "-")), format!("{path} already exists")));
    }
}

fn empty(findings: &mut Vec<Finding>, files: &dyn Files, path: &str) {
    if files.list(path).is_ok_and(|names| !names.is_empty()) {
        findings.push((format!("DirAvailable-{}", path.replace('/', "-")), format!("{path} is not empty")));
    }
}

/// What stands against `kubeadm init`.
pub(super) fn init(files: &dyn Files) -> Vec<Finding> {
    let mut findings = Vec::new();
    // Others' static pods, kube-vip's say, may be there already.
    for name in ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"] {
        absent(&mut findings, files, &format!("{}/{name}.yaml", paths::MANIFESTS));
    }
    empty(&mut findings, files, "/var/lib/etcd");
    findings
}

/// What stands against `kubeadm join`.
pub(super) fn join(files: &dyn Files, control_plane: bool, ca_path: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    absent(&mut findings, files, paths::KUBELET);
    absent(&mut findings, files, paths::BOOTSTRAP_KUBELET);
    if !control_plane {
        absent(&mut findings, files, ca_path);
    }
    findings
}

/// Judges findings: those that the user ignores become warnings.
pub(super) fn judge(findings: Vec<Finding>, flags: &Flags, configured: &[String]) -> Result<Vec<String>, Failure> {
    let ignored = |name: &str| {
        let mut asked = flags.ignored_checks.iter().chain(configured);
        asked.any(|asked| asked.eq_ignore_ascii_case("all") || asked.eq_ignore_ascii_case(name))
    };
    let (warnings, errors): (Vec<_>, Vec<_>) = findings.into_iter().partition(|(name, _)| ignored(name));
    if errors.is_empty() {
        return Ok(warnings.into_iter().map(|(name, message)| format!("\t[WARNING {name}]: {message}")).collect());
    }
    let lines: String = errors.into_iter().map(|(name, message)| format!("\t[ERROR {name}]: {message}\n")).collect();
    Err(Failure::Phase {
        phase: "preflight",
        message: format!(
            "[preflight] Some fatal errors occurred:\n{lines}[preflight] If you know what you are doing, you can make a check non-fatal with `--ignore-preflight-errors=...`"
        ),
    })
}
