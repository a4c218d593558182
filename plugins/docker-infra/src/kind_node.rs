//! What kubeadm needs to work in an image of the kind project, whose nodes are containers and not machines.

use crate::recipe::{File, Recipe};

/// Succeeds once systemd has brought up the container runtime.
pub const BOOTED: &str = "systemctl is-active --quiet containerd";

/// Checks of kubeadm that a container cannot pass.
const UNFIT_CHECKS: &str = "SystemVerification,Swap,FileContent--proc-sys-net-bridge-bridge-nf-call-iptables";
/// Where cloud-config and Ignition put the configuration of `kubeadm init`.
const INIT_CONFIGURATIONS: [&str; 2] = ["/run/kubeadm/kubeadm.yaml", "/etc/kubeadm.yml"];
/// Where Ignition puts the commands.
const SCRIPT: &str = "/etc/kubeadm.sh";
/// A container may not change the host's conntrack limits, so kube-proxy must not try.
const KUBE_PROXY: &str =
    "\n---\napiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nconntrack:\n  maxPerCore: 0\n";

/// Changes a recipe so that kubeadm succeeds in a privileged container.
pub fn adapt(recipe: &mut Recipe) {
    for step in &mut recipe.commands {
        step.script = tolerant(&step.script);
    }
    for file in &mut recipe.files {
        if file.path == SCRIPT {
            file.content = tolerant(&String::from_utf8_lossy(&file.content)).into_bytes();
        }
        if INIT_CONFIGURATIONS.contains(&file.path.as_str()) && is_init(file) {
            file.content.extend_from_slice(KUBE_PROXY.as_bytes());
        }
    }
}

/// Ignition's configuration of `kubeadm join` has the same name, and needs nothing.
fn is_init(file: &File) -> bool {
    let text = String::from_utf8_lossy(&file.content);
    !text.contains("KubeProxyConfiguration") && !text.contains("kind: JoinConfiguration")
}

/// The script with its calls of kubeadm told what to overlook.
fn tolerant(script: &str) -> String {
    if script.contains("--ignore-preflight-errors") {
        return script.to_owned();
    }
    ["kubeadm init ", "kubeadm join "].into_iter().fold(script.to_owned(), |script, verb| {
        script.replace(verb, &format!("{verb}--ignore-preflight-errors={UNFIT_CHECKS} "))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::{cloud_config, ignition};

    #[test]
    fn kubeadm_is_told_what_a_container_cannot_do_once() {
        let text = b"write_files:\n- {path: /run/kubeadm/kubeadm.yaml, content: 'kind: InitConfiguration'}\nruncmd: [kubeadm init --config x, kubeadm join --ignore-preflight-errors=all, echo a]\n";
        let mut recipe = cloud_config::parse(text, "m").unwrap();
        adapt(&mut recipe);
        let adapted = recipe.clone();
        adapt(&mut recipe);
        assert_eq!(recipe, adapted);
        let scripts: Vec<&str> = recipe.commands.iter().map(|step| step.script.as_str()).collect();
        assert!(scripts[0].starts_with("kubeadm init --ignore-preflight-errors=SystemVerification,"));
        assert_eq!(scripts[1..], ["kubeadm join --ignore-preflight-errors=all", "echo a"]);
        assert!(recipe.files[0].content.ends_with(KUBE_PROXY.as_bytes()));
    }

    #[test]
    fn the_same_holds_for_ignition() {
        let text = br#"{"ignition": {"version": "2.3.0"}, "storage": {"files": [
            {"path": "/etc/kubeadm.sh", "contents": {"source": "data:,kubeadm%20join%20--config%20x"}},
            {"path": "/etc/kubeadm.yml", "contents": {"source": "data:,kind:%20JoinConfiguration"}}]}}"#;
        let mut recipe = ignition::parse(text, true).unwrap();
        adapt(&mut recipe);
        assert!(recipe.files[0].content.starts_with(b"kubeadm join --ignore-preflight-errors="));
        assert_eq!(recipe.files[1].content, b"kind: JoinConfiguration");
    }
}
