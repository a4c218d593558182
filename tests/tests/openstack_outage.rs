//! Real services that are stopped and started again. They are everybody's, so nothing else may use them meanwhile: this is a test
//! binary of its own, and cargo runs one after another.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

use capwasm_tests::objects::{condition, is};
use capwasm_tests::openstack::{self, Bed, manifests};
use capwasm_tests::{guests, wait};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

const NAMESPACE: &str = "outage";

#[tokio::test]
async fn services_that_hang_or_end_and_come_back_only_delay() {
    let Some(admin) = openstack::real("openstack_outage::services_that_hang_or_end_and_come_back_only_delay") else {
        return;
    };
    let stack = Stack::of(openstack::clouds_yaml().parent().expect("a file is in a folder"));
    let bed = Bed::real(&admin, NAMESPACE).await;

    // Octavia takes orders, and nobody carries them out.
    let worker = stack.hang("octavia-worker");
    bed.create(manifests::cluster(NAMESPACE, "c", manifests::cluster_spec())).await;
    let waits = |object: &Value| condition(object, "APIEndpointReady").1 == "LoadBalancerNotReady";
    bed.objects.until("OpenStackCluster", "c", "it waits for the load balancer", waits).await;
    drop(worker);
    bed.cluster_ready("c").await;

    // Nova's API is not there at all.
    stack.end("nova-api");
    bed.create(manifests::machine(NAMESPACE, "c", "m", true, "", manifests::machine_spec())).await;
    let told =
        |object: &Value| !is(object, "Ready") && object["status"]["conditions"].to_string().contains("Unreachable");
    bed.objects.until("OpenStackServer", "m", "it says that Nova does not answer", told).await;
    stack.up();
    bed.machine_ready("m").await;

    // Nova takes orders, and nobody carries them out.
    let computes = ["nova-conductor", "nova-compute1", "nova-compute2", "nova-compute3"].map(|name| stack.hang(name));
    bed.create(manifests::machine(NAMESPACE, "c", "n", false, "", manifests::machine_spec())).await;
    let builds = |object: &Value| object["status"]["instanceState"] == "BUILD";
    bed.objects.until("OpenStackServer", "n", "it is built", builds).await;
    drop(computes);
    bed.machine_ready("n").await;
    for (resource, times) in bed.project.counts().await {
        assert_eq!(times, 1, "{resource} is there {times} times");
    }

    // Neutron ends in the middle of the deletion.
    bed.proxy.clear();
    bed.objects.delete("Cluster", "c").await;
    wait::until("the deletion has begun", async || {
        let has_begun = bed.proxy.calls().iter().any(|call| call.method == http::Method::DELETE);
        if has_begun { Ok(()) } else { Err("nothing was deleted".to_owned()) }
    })
    .await;
    stack.end("neutron");
    stack.up();
    bed.nothing_is_left().await;
    bed.end().await;
}

struct Stack {
    folder: PathBuf,
}

/// A service that is stopped until this is dropped.
struct Hangs(Pid);

impl Drop for Hangs {
    fn drop(&mut self) {
        kill_process_group(self.0, Signal::CONT).expect("its group is there");
    }
}

impl Stack {
    fn of(folder: &Path) -> Stack {
        Stack { folder: folder.to_owned() }
    }

    /// Each leads a process group of its own.
    fn group(&self, name: &str) -> Pid {
        let file = self.folder.join("run").join(format!("{name}.pid"));
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let id = text.split_whitespace().next().and_then(|id| id.parse().ok()).expect("a process id");
        Pid::from_raw(id).expect("a process id")
    }

    fn hang(&self, name: &str) -> Hangs {
        let group = self.group(name);
        kill_process_group(group, Signal::STOP).expect("its group is there");
        Hangs(group)
    }

    fn end(&self, name: &str) {
        kill_process_group(self.group(name), Signal::KILL).expect("its group is there");
    }

    /// Starts again what has ended.
    fn up(&self) {
        let mut command = Command::new(guests::root().join("tests/openstack/stack"));
        let output =
            command.arg("--folder").arg(&self.folder).args(["up", "--no-install"]).output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// A test that fails must not leave them as they are.
impl Drop for Stack {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.up();
        }
    }
}
