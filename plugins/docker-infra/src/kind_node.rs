//! What kubeadm needs to work in an image of the kind project, whose nodes are containers and not machines.

use crate::cloud_config::CloudConfig;

/// Succeeds once systemd has brought up the container runtime.
pub const BOOTED: &str = "systemctl is-active --quiet containerd";

/// Checks of kubeadm that a container cannot pass.
const UNFIT_CHECKS: &str = "SystemVerification,Swap,FileContent--proc-sys-net-bridge-bridge-nf-call-iptables";
const INIT_CONFIGURATION: &str = "/run/kubeadm/kubeadm.yaml";
/// A container may not change the host's conntrack limits, so kube-proxy must not try.
const KUBE_PROXY: &str =
    "\n---\napiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nconntrack:\n  maxPerCore: 0\n";

/// Changes a cloud-config so that kubeadm succeeds in a privileged container.
pub fn adapt(config: &mut CloudConfig) {
    for command in &mut config.commands {
        for verb in ["kubeadm init ", "kubeadm join "] {
            if command.contains(verb) && !command.contains("--ignore-preflight-errors") {
                *command = command.replace(verb, &format!("{verb}--ignore-preflight-errors={UNFIT_CHECKS} "));
            }
        }
    }
    for file in config.files.iter_mut().filter(|file| file.path == INIT_CONFIGURATION) {
        if !String::from_utf8_lossy(&file.content).contains("KubeProxyConfiguration") {
            file.content.extend_from_slice(KUBE_PROXY.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::cloud_config::parse;

    #[test]
    fn kubeadm_is_told_what_a_container_cannot_do_once() {
        let text = b"write_files:\n- {path: /run/kubeadm/kubeadm.yaml, content: 'kind: InitConfiguration'}\nruncmd: [kubeadm init --config x, kubeadm join --ignore-preflight-errors=all, echo a]\n";
        let mut config = parse(text, "m").unwrap();
        adapt(&mut config);
        let adapted = config.clone();
        adapt(&mut config);
        assert_eq!(config, adapted);
        assert!(config.commands[0].starts_with("kubeadm init --ignore-preflight-errors=SystemVerification,"));
        assert_eq!(config.commands[1..], ["kubeadm join --ignore-preflight-errors=all", "echo a"]);
        assert!(config.files[0].content.ends_with(KUBE_PROXY.as_bytes()));
    }
}
