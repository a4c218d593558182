//! What a KubeadmConfig needs next, as a pure function of what was observed.

use crate::config::{Cluster, Config, Machine};
use crate::discovery;
use crate::kubeadm::Member;

/// The stage that a KubeadmConfig is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The data is there and nothing has to be kept alive.
    Settled,
    /// The data is there; its token has to stay valid until the machine has joined.
    KeepToken,
    /// Nobody can join yet.
    AwaitControlPlane,
    /// The machine may become the cluster's first.
    Init,
    /// The machine joins.
    Join(Member),
}

/// Decides the stage.
pub fn stage(config: &Config, machine: &Machine, cluster: &Cluster) -> Stage {
    if config.has_data {
        let joins_by_token = discovery::token(&config.discovery()).is_some();
        return if joins_by_token && !machine.has_node { Stage::KeepToken } else { Stage::Settled };
    }
    match (cluster.initialized, machine.control_plane) {
        (true, true) => Stage::Join(Member::ControlPlane),
        (true, false) => Stage::Join(Member::Worker),
        (false, true) => Stage::Init,
        (false, false) => Stage::AwaitControlPlane,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn the_stage_follows_from_data_role_and_initialization() {
        for (what, has_data, token, control_plane, initialized, has_node, expected) in [
            ("the first control plane machine", false, false, true, false, false, Stage::Init),
            ("a worker before initialization", false, false, false, false, false, Stage::AwaitControlPlane),
            ("a further control plane machine", false, false, true, true, false, Stage::Join(Member::ControlPlane)),
            ("a worker", false, false, false, true, false, Stage::Join(Member::Worker)),
            ("a worker whose token was persisted", false, true, false, true, false, Stage::Join(Member::Worker)),
            ("data handed out, not joined", true, true, false, true, false, Stage::KeepToken),
            ("data handed out and joined", true, true, false, true, true, Stage::Settled),
            ("data of an initialization", true, false, true, false, false, Stage::Settled),
        ] {
            let mut config = Config { has_data, ..Config::default() };
            if token {
                config
                    .spec
                    .join_configuration
                    .insert("discovery".into(), json!({"bootstrapToken": {"token": "abcdef.0123456789abcdef"}}));
            }
            let machine = Machine { control_plane, has_node, ..Machine::default() };
            let cluster = Cluster { initialized, ..Cluster::default() };
            assert_eq!(stage(&config, &machine, &cluster), expected, "{what}");
        }
    }
}
