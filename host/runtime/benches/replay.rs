//! What recorded calls cost, made again by their component: `cargo bench --package capwasm-runtime --bench replay --
//! COMPONENT RECORDING…`. Prints the median and the quickest tenth of each; reads are answered by the tape, so that no cache
//! and no network is in the figures.

use std::error::Error;
use std::time::{Duration, Instant};

use capwasm_runtime::record::{self, Replay};
use capwasm_runtime::{Runtime, RuntimeOptions};

const ROUNDS: usize = 300;

/// More bytes than the caches of a core.
const CACHES: usize = 64 << 20;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let cold = std::env::args().any(|argument| argument == "--cold");
    let mut files = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let Some(component) = files.next() else {
        println!("recorded calls: not measured, none is named (a component, then its recordings)");
        return Ok(());
    };
    let mut caches = vec![0u8; if cold { CACHES } else { 0 }];
    let runtime = Runtime::new(RuntimeOptions::default())?;
    let bytes = std::fs::read(component)?;
    for file in files {
        let recording = record::read(std::fs::File::open(&file)?)?;
        let provider = runtime.load(&bytes, recording.limits.clone()).await?;
        let mut times: Vec<Duration> = Vec::with_capacity(ROUNDS);
        for round in 0..ROUNDS + ROUNDS / 5 {
            if cold {
                caches.iter_mut().step_by(64).for_each(|byte| *byte = byte.wrapping_add(1));
            }
            let started = Instant::now();
            let replayed = provider.replay(&recording, &Replay::Rehearse(record::Rehearsal::default())).await?;
            let took = started.elapsed();
            if let Some(divergence) = replayed.divergence {
                return Err(format!("{file}: {divergence}").into());
            }
            // The first fifth warms up.
            if round >= ROUNDS / 5 {
                times.push(took);
            }
        }
        times.sort_unstable();
        let (name, requests) = (recording.function.name(), recording.tape.len());
        println!(
            "{name}, {requests} requests: median {:.1?}, p10 {:.1?}  {file}",
            times[ROUNDS / 2],
            times[ROUNDS / 10]
        );
    }
    Ok(())
}
