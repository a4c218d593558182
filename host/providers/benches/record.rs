//! What recording adds to a provider call: the same call recorded into memory, into files, and not at all, by turns. Prints
//! one line per figure.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use capwasm_contract::descriptor::KindPattern;
use capwasm_contract::{Facts, Function, ObjectRef, Refused, Selection};
use capwasm_providers::{FileOptions, RecordingMetrics, Recordings};
use capwasm_runtime::record::Recorder;
use capwasm_runtime::{Call, Capabilities, Grants, Limits, Lookup, Runtime, RuntimeOptions};
use capwasm_test_support::guests;
use prometheus_client::registry::Registry;
use serde_json::json;

const ROUNDS: usize = 5_000;

struct Objects(String);

#[async_trait]
impl Lookup for Objects {
    async fn get(&self, _: &ObjectRef) -> Result<String, Refused> {
        Ok(self.0.clone())
    }

    async fn list(&self, _: &Selection) -> Result<Vec<String>, Refused> {
        Ok(vec![self.0.clone()])
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::new(RuntimeOptions::default())?;
    let provider = runtime.load(&std::fs::read(guests::fixture("guest"))?, Limits::default()).await?;
    let folder = tempfile::tempdir()?;
    let mut registry = Registry::default();
    let options = FileOptions { folder: folder.path().join("recordings"), limit: 64 << 20, all: true };
    let files = Recordings::new(Some(options), RecordingMetrics::register(&mut registry))?;
    let memory = Recordings::new(None, RecordingMetrics::default())?;
    let ways: [(&str, Option<Arc<dyn Recorder>>); 3] = [
        ("not recorded", None),
        ("recorded into memory", memory.recorder("fixture", false, true)),
        ("recorded into files", files.recorder("fixture", false, false)),
    ];

    // 10 kB in; either 3 kB of status out, or a read of 3 kB that is on the tape and in the status.
    let padding = "z".repeat(6_700);
    let object = |spec: serde_json::Value| {
        json!({
            "apiVersion": "infrastructure.fixture.example/v1beta2", "kind": "FixtureMachine",
            "metadata": {"name": "machine", "namespace": "default"}, "spec": spec
        })
        .to_string()
    };
    let calls = [
        (
            "five host calls",
            object(json!({"do": "typical", "padding": padding, "status": {"text": "y".repeat(2_900)}})),
        ),
        (
            "a read of 3 kB",
            object(json!({"do": "get", "padding": padding + &"z".repeat(2_900),
                "apiVersion": "v1", "kind": "ConfigMap", "name": "n"})),
        ),
    ];
    let reads = vec![KindPattern { group: String::new(), kind: "ConfigMap".into() }];
    let grants = Arc::new(Grants { reads, ..Grants::default() });
    let lookup = Arc::new(Objects(json!({"data": {"text": "y".repeat(2_900)}}).to_string()));
    let capabilities = Capabilities { lookup, ..Capabilities::none() };
    for (what, object) in calls {
        let mut times = vec![Vec::with_capacity(ROUNDS); ways.len()];
        for round in 0..ROUNDS + ROUNDS / 5 {
            for ((_, recorder), times) in ways.iter().zip(&mut times) {
                let call = Call {
                    function: Function::MachineProvision,
                    object: object.clone(),
                    facts: Facts { now_ms: 1_900_000_000_000, attempt: 1, id: "bench".into(), ..Facts::default() },
                    capabilities: capabilities.clone(),
                    grants: grants.clone(),
                    seed: 1,
                    recorder: recorder.clone(),
                };
                let started = Instant::now();
                let reply = provider.call(call).await?;
                let took = started.elapsed();
                reply.answer?;
                // The first fifth warms up.
                if round >= ROUNDS / 5 {
                    times.push(took);
                }
            }
        }
        let plain = median(&mut times[0]);
        for ((way, _), times) in ways.iter().zip(&mut times) {
            let median = median(times);
            let added = (median.as_secs_f64() - plain.as_secs_f64()) * 1e6;
            println!("a call with {what}, {way}: median {median:.1?}, {added:+.1} µs");
        }
    }
    files.close().await;
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    text.lines().filter(|line| line.starts_with("capwasm_recordings_total")).for_each(|line| println!("{line}"));
    Ok(())
}
