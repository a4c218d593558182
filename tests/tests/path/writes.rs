//! How many writes a machine costs.

use std::time::Duration;

use capwasm_tests::history::{self, History, Version};
use capwasm_tests::management::Management;
use capwasm_tests::objects::{condition, is, is_control_plane, name_of, text};
use capwasm_tests::sample::{Sample, is_provisioned};
use capwasm_tests::wait;
use serde_json::Value;

/// Whether the control plane has told the health of one of its Machines.
fn is_reported(machine: &Value) -> bool {
    condition(machine, "APIServerPodHealthy") != ("", "", "")
}

/// Whether a version of a Machine or DockerMachine tells people what it waits for, and nothing else.
fn tells_that_it_waits(before: &Value, after: &Value) -> bool {
    let written = |object: &Value| {
        let metadata = &object["metadata"];
        let kept = ["labels", "annotations", "finalizers", "ownerReferences"].map(|key| metadata.get(key).cloned());
        (kept, object.get("spec").cloned())
    };
    written(before) == written(after)
        && !is_provisioned(after)
        && text(after, "/status/nodeRef/name").is_empty()
        && !is_reported(after)
}

/// A status that tells people what is waited for, and a Machine's Node before the control plane has looked at it, are written by
/// themselves only after they have waited for a second: the writes of a slow machine, which come on top.
fn writes_of_slowness(versions: &[Version], machine: &str) -> usize {
    let waits = |kind: &str| {
        let seen = history::of(versions, kind, machine);
        seen.windows(2).filter(|pair| tells_that_it_waits(&pair[0].object, &pair[1].object)).count()
    };
    let told_alone = history::of(versions, "Machine", machine)
        .into_iter()
        .find(|seen| !text(&seen.object, "/status/nodeRef/name").is_empty())
        .is_some_and(|seen| is_control_plane(&seen.object) && !is_reported(&seen.object));
    waits("Machine") + waits("DockerMachine") + usize::from(told_alone)
}

#[tokio::test]
async fn every_machine_costs_at_most_twelve_writes() {
    const LONGEST_HOLD: Duration = Duration::from_secs(1);
    const MOST: usize = 12;
    let objects = Management::shared().objects("costs").await;
    let history = History::record(&objects).await;
    let sample = Sample::new("costs", 3, 2);
    sample.create(&objects).await;
    sample.provisioned(&objects).await;
    wait::until("every machine is available", async || {
        let machines = objects.list("Machine").await;
        let waits = machines.iter().find(|machine| !is(machine, "Available"));
        waits.map_or(Ok(()), |machine| Err(machine["status"].to_string()))
    })
    .await;
    let versions = history.complete(&objects).await;
    let mut above = Vec::new();
    for machine in objects.list("Machine").await {
        let name = name_of(&machine);
        let counts = ["Machine", "KubeadmConfig", "DockerMachine", "Secret"].map(|kind| {
            let count = history::of(&versions, kind, name).iter().filter(|seen| !seen.deleted).count();
            assert!(count > 0, "{kind} {name} is a machine's");
            (kind, count)
        });
        let created = history::first(&versions, "Machine", name, |_| true).at;
        let running = history::first(&versions, "Machine", name, |machine| text(machine, "/status/phase") == "Running");
        let took = running.at.saturating_duration_since(created);
        let more = if took < LONGEST_HOLD { 0 } else { writes_of_slowness(&versions, name) };
        let sum: usize = counts.iter().map(|(_, count)| count).sum();
        let line = format!("{name}: {sum} in {took:?}, {more} of them because it took so long: {counts:?}");
        println!("{line}");
        if sum - more > MOST {
            above.push(line);
        }
    }
    assert!(above.is_empty(), "{above:#?}");
}
