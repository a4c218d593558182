//! What a provider call costs: a fresh instance, a 10 kB object in, a 3 kB status out, five host calls; and the same JSON
//! work without a component. Prints one line per figure.

use std::collections::BTreeMap;
use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use capwasm_contract::{Facts, Function};
use capwasm_runtime::{Call, Capabilities, Grants, Limits, Runtime, RuntimeOptions};
use capwasm_test_support::guests;
use serde_json::{Value, json};

const ROUNDS: usize = 5_000;

fn object() -> String {
    json!({
        "apiVersion": "infrastructure.fixture.example/v1beta2", "kind": "FixtureMachine",
        "metadata": {"name": "machine", "namespace": "default", "labels": {"a": "b"}},
        "spec": {"do": "typical", "padding": "z".repeat(6_700), "status": {"text": "y".repeat(2_900)}}
    })
    .to_string()
}

fn line(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 100];
    println!("{what}: median {:.1?}, p90 {:.1?}, p99 {:.1?}", at(50), at(90), at(99));
}

/// JSON work of guest and host in one call.
fn native(object: &str) -> Option<Value> {
    let object: Value = serde_json::from_str(black_box(object)).ok()?;
    let mut status = object["spec"]["status"].clone();
    status["observedAt"] = json!(1);
    status["clusters"] = json!(1);
    serde_json::from_str(&black_box(status.to_string())).ok()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::new(RuntimeOptions::default())?;
    let bytes = std::fs::read(guests::fixture("guest"))?;
    let started = Instant::now();
    let provider = runtime.load(&bytes, Limits::default()).await?;
    println!("component: {} bytes, loaded and compiled in {:.1?}", bytes.len(), started.elapsed());

    let (object, grants) = (object(), Arc::new(Grants::default()));
    let facts = Facts {
        now_ms: 1_900_000_000_000,
        attempt: 1,
        id: "bench".into(),
        related: BTreeMap::from([("cluster".to_owned(), vec!["{}".to_owned()])]),
        ..Facts::default()
    };
    let capabilities = Capabilities::none();
    let call = || Call {
        function: Function::MachineProvision,
        object: object.clone(),
        facts: facts.clone(),
        capabilities: capabilities.clone(),
        grants: grants.clone(),
        seed: 1,
        recorder: None,
    };

    let mut times = Vec::with_capacity(ROUNDS);
    for round in 0..ROUNDS + ROUNDS / 5 {
        let call = call();
        let started = Instant::now();
        let reply = provider.call(call).await?;
        let took = started.elapsed();
        reply.answer?;
        // The first fifth warms up.
        if round >= ROUNDS / 5 {
            times.push(took);
        }
    }
    line("provider call (fresh instance, 10 kB in, 3 kB out, 5 host calls)", times);

    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let started = Instant::now();
        black_box(native(&object)).ok_or("the object is not JSON")?;
        times.push(started.elapsed());
    }
    line("the same JSON work natively", times);
    Ok(())
}
