//! What a KubeadmConfig needs next, as a pure function of what was observed.

use capwasm_kubeadm::discovery;

use crate::config::{Cluster, Config, Machine};
use crate::kubeadm::Member;

/// The stage that a KubeadmConfig is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The data is there and no token has to be kept alive.
    Settled,
    /// The data is there; its token has to stay valid until the machine has joined.
    KeepToken,
    /// The data of a pool is there; its token, and with it the data, is replaced from time to time.
    KeepPool,
    /// The machine has its data, but the KubeadmConfig does not know it: its status was lost on the way.
    Restored,
    /// The control plane is not initialized, so that nobody can join yet.
    AwaitControlPlane,
    /// The machine may become the cluster's first.
    Init,
    /// The machine joins.
    Join(Member),
}

/// What a pass has to do for this machine.
pub fn stage(config: &Config, machine: &Machine, cluster: &Cluster) -> Stage {
    if config.has_data {
        let joins_by_token = discovery::token(&config.discovery()).is_some();
        return match (joins_by_token, machine.pool, machine.has_node) {
            (true, true, _) => Stage::KeepPool,
            (true, false, false) => Stage::KeepToken,
            _ => Stage::Settled,
        };
    }
    if machine.data_secret == config.name && !config.name.is_empty() {
        return Stage::Restored;
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
        let machine = || Machine { name: "m".into(), ..Machine::default() };
        let control_plane = || Machine { control_plane: true, ..machine() };
        let joined = || Machine { has_node: true, ..machine() };
        let pool = || Machine { pool: true, ..machine() };
        let restored = || Machine { data_secret: "c".into(), ..machine() };
        let other = || Machine { data_secret: "other".into(), ..machine() };
        for (what, has_data, token, machine, initialized, expected) in [
            ("the first control plane machine", false, false, control_plane(), false, Stage::Init),
            ("a worker before initialization", false, false, machine(), false, Stage::AwaitControlPlane),
            ("a pool before initialization", false, false, pool(), false, Stage::AwaitControlPlane),
            ("a further control plane machine", false, false, control_plane(), true, Stage::Join(Member::ControlPlane)),
            ("a worker", false, false, machine(), true, Stage::Join(Member::Worker)),
            ("a pool", false, false, pool(), true, Stage::Join(Member::Worker)),
            ("a worker whose token was persisted", false, true, machine(), true, Stage::Join(Member::Worker)),
            ("data handed out, not joined", true, true, machine(), true, Stage::KeepToken),
            ("data handed out and joined", true, true, joined(), true, Stage::Settled),
            ("data of an initialization", true, false, control_plane(), false, Stage::Settled),
            ("data of a pool", true, true, pool(), true, Stage::KeepPool),
            ("data of a pool that joins by file", true, false, pool(), true, Stage::Settled),
            ("status lost after a move", false, true, restored(), true, Stage::Restored),
            ("a Secret of another's", false, true, other(), true, Stage::Join(Member::Worker)),
        ] {
            let mut config = Config { name: "c".into(), has_data, ..Config::default() };
            if token {
                config
                    .spec
                    .join_configuration
                    .insert("discovery".into(), json!({"bootstrapToken": {"token": "abcdef.0123456789abcdef"}}));
            }
            let cluster = Cluster { initialized, ..Cluster::default() };
            assert_eq!(stage(&config, &machine, &cluster), expected, "{what}");
        }
    }

    #[test]
    fn a_pool_has_joined_when_it_has_as_many_nodes_as_replicas() {
        for (pool, joined) in [
            (json!({"spec": {"replicas": 2}, "status": {"nodeRefs": [{"name": "a"}, {"name": "b"}]}}), true),
            (json!({"spec": {"replicas": 2}, "status": {"nodeRefs": [{"name": "a"}]}}), false),
            (json!({"spec": {}, "status": {"nodeRefs": [{"name": "a"}]}}), true),
            (json!({"spec": {"replicas": 0}}), true),
            (json!({}), false),
        ] {
            assert_eq!(Machine::read_pool(&pool).has_node, joined, "{pool}");
        }
    }
}
