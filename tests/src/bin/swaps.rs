//! How long a swap takes on a running host: from the moment when a component lies in the provider folder until its WasmProvider says that it
//! serves. `capwasm up` beside this program, docker-infra (each round another component of it), a cold cache of compiled components
//! and a warm one. Prints one line per figure.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement that cannot be made ends with the reason")]

use std::path::Path;
use std::time::{Duration, Instant};

use capwasm_tests::binary;
use capwasm_tests::folder::Folder;
use capwasm_tests::management::Management;
use capwasm_tests::objects::{Objects, text};
use kube::runtime::wait::await_condition;

const ROUNDS: u8 = 10;
const FILE: &str = "docker-infra.wasm";

#[tokio::main]
async fn main() {
    let folder = Folder::new();
    let providers = folder.join("plugins");
    std::fs::create_dir(&providers).unwrap();
    for name in binary::PLUGINS {
        let file = format!("{name}.wasm");
        std::fs::copy(binary::provider_dir().join(&file), providers.join(&file)).unwrap();
    }
    let component = std::fs::read(providers.join(FILE)).unwrap();
    let management = Management::start_with(providers.clone());
    let objects = management.objects("default").await;
    let draft = folder.join("draft");
    let before = management.resident();
    for what in ["swap, cold", "swap, warm"] {
        let mut times = Vec::new();
        // The second time all of them are compiled already.
        for number in 0..ROUNDS {
            std::fs::write(&draft, [&component[..], &[0, 3, 1, b'n', number]].concat()).unwrap();
            times.push(swap(&objects, &draft, &providers.join(FILE)).await);
        }
        times.sort_unstable();
        println!("{what}: median {:.1?}, longest {:.1?}", times[times.len() / 2], times[times.len() - 1]);
    }
    let (before, after) = (before as f64 / 1e6, management.resident() as f64 / 1e6);
    println!(
        "component: {} bytes; host {before:.0} MB before {} swaps, {after:.0} MB after",
        component.len(),
        2 * ROUNDS
    );
}

async fn swap(objects: &Objects, draft: &Path, file: &Path) -> Duration {
    let old = objects.get("WasmProvider", "docker-infra").await;
    let old = text(&old, "/status/digest").to_owned();
    let api = objects.api("WasmProvider");
    let another = move |object: Option<&kube::api::DynamicObject>| {
        object.is_some_and(|object| object.data.pointer("/status/digest").is_some_and(|digest| *digest != old.as_str()))
    };
    // The watch is there before the file is.
    let served = tokio::spawn(await_condition(api, "docker-infra", another));
    tokio::time::sleep(Duration::from_millis(300)).await;
    let started = Instant::now();
    std::fs::rename(draft, file).unwrap();
    served.await.unwrap().unwrap();
    started.elapsed()
}
