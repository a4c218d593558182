//! What a cluster costs in an engine that carries many: 50 single-node clusters in one process.
//!
//! `CAPWASM_SIM_CLUSTERS` changes the number. The figures are printed; the assertions only catch a cost that grows with the
//! number of clusters, or a thread per cluster.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::time::Instant;

use capwasm_sim_engine::testing::*;
use capwasm_sim_node::testing::*;

/// Clusters that form at the same time.
const AT_ONCE: usize = 10;

fn status(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_clusters_cost_no_thread_each_and_little_memory() {
    let count: u64 = std::env::var("CAPWASM_SIM_CLUSTERS").ok().and_then(|count| count.parse().ok()).unwrap_or(50);
    let directory = tempfile::tempdir().unwrap();
    let sim = Sim::prepared(directory.path()).await;
    // Certificates are the provider's work: they are not counted.
    let certificates: Vec<Certificates> = (0..count).map(|_| Certificates::generate()).collect();
    let first = 5.min(count);
    for (number, certificates) in certificates.iter().take(usize::try_from(first).unwrap()).enumerate() {
        cluster(&sim.docker, &format!("warm-{number}"), certificates).await;
    }
    let (memory, threads, start) = (status("VmRSS"), status("Threads"), Instant::now());
    let rest = &certificates[usize::try_from(first).unwrap()..];
    for (batch, certificates) in rest.chunks(AT_ONCE).enumerate() {
        let names: Vec<String> = (0..certificates.len()).map(|number| format!("c-{batch}-{number}")).collect();
        let clusters =
            names.iter().zip(certificates).map(|(name, certificates)| cluster(&sim.docker, name, certificates));
        futures::future::join_all(clusters).await;
    }
    let measured = count - first;
    let (grown, elapsed) = (status("VmRSS").saturating_sub(memory), start.elapsed());
    println!(
        "{measured} clusters, {AT_ONCE} at a time: {:.0} ms each, {} kB of memory each (engine, server and clients), {} kB in all, {} threads",
        elapsed.as_secs_f64() * 1e3 / measured as f64,
        grown / measured.max(1),
        status("VmRSS"),
        status("Threads"),
    );
    assert!(grown / measured.max(1) < 1024, "{} kB of memory per cluster", grown / measured.max(1));
    assert!(
        status("Threads") < threads + 20,
        "threads grow with clusters: {threads} before, {} after",
        status("Threads")
    );
    sim.stop().await;
}
