//! The client of etcd against real etcd, and against simulated etcd: the same suite, so that the simulation is no more
//! lenient than what it stands for.
//!
//! Real etcd is the program that `CAPWASM_ETCD` names, or `etcd` on the path (Debian: etcd-server); where there is none the
//! tests say loudly that they were skipped.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod cluster;
mod real;
mod simulated;
mod suite;

use real::Real;
use simulated::Simulated;

const NAMES: [&str; 3] = ["node-a", "node-b", "node-c"];

macro_rules! both {
    ($real:ident, $simulated:ident, $suite:path) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $real() {
            let Some(program) = real::program(stringify!($real)) else { return };
            $suite(&Real::start(&program, &NAMES).await).await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $simulated() {
            $suite(&Simulated::start(&NAMES).await).await;
        }
    };
}

both!(
    members_of_real_etcd_agree_and_are_told_apart,
    members_of_simulated_etcd_agree_and_are_told_apart,
    suite::members_agree_and_are_told_apart
);
both!(real_etcd_moves_its_leader, simulated_etcd_moves_its_leader, suite::the_leader_moves);
both!(
    real_etcd_adds_learners_and_takes_them_out,
    simulated_etcd_adds_learners_and_takes_them_out,
    suite::learners_come_and_go
);
both!(
    real_etcd_goes_on_without_a_dead_member_as_long_as_a_majority_is_left,
    simulated_etcd_goes_on_without_a_dead_member_as_long_as_a_majority_is_left,
    suite::members_die
);
both!(
    real_etcd_goes_on_when_its_leader_is_removed,
    simulated_etcd_goes_on_when_its_leader_is_removed,
    suite::the_leader_is_removed
);
both!(
    real_etcd_is_not_talked_to_by_strangers,
    simulated_etcd_is_not_talked_to_by_strangers,
    suite::strangers_are_refused
);
