//! Hosts that record: one provider because its spec says so, through kills and a full disk; and all of `capwasm run`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use capwasm_runtime::record::{self, Recording};
use capwasm_tests::binary::{self, output, run};
use capwasm_tests::folder::Folder;
use capwasm_tests::guests::fixture;
use capwasm_tests::management::{self, Management, Process};
use capwasm_tests::objects::{Objects, is};
use capwasm_tests::{skip, wait};
use serde_json::{Value, json};

use crate::recorded::{fill, path, said};

const GROUP: &str = "infrastructure.fixture.example";

/// A host whose fixture provider is recorded because its spec says so.
struct OneRecorded {
    folder: Folder,
    management: Management,
    objects: Objects,
}

impl OneRecorded {
    async fn start() -> OneRecorded {
        let folder = Folder::new();
        let providers = folder.join("plugins");
        std::fs::create_dir(&providers).unwrap();
        fill(&providers);
        let management = Management::start_with(providers);
        let objects = management.objects("default").await;
        install(&objects).await;
        OneRecorded { folder, management, objects }
    }

    fn recordings(&self) -> PathBuf {
        self.management.data_dir().join("recordings")
    }

    fn counted(&self, result: &str) -> u64 {
        self.management.metric(&format!("capwasm_recordings_total{{provider=\"fixture\",result=\"{result}\"}}"))
    }

    /// Makes another lease, which has to be called whatever happens to its recording.
    async fn lease(&self, name: &str) {
        self.objects.create(&lease(name)).await;
        leased(&self.objects, name).await;
    }
}

/// Installs the fixture provider with `spec.record`.
async fn install(objects: &Objects) {
    let provider = json!({"apiVersion": "capwasm.dev/v1alpha1", "kind": "WasmProvider", "metadata": {"name": "fixture"},
        "spec": {"source": {"file": "fixture.wasm"}, "crdGroups": [GROUP], "record": true,
            "grants": {"endpoints": {"engine": {"unix": "/nonexistent/engine.sock"}}}}});
    objects.create(&provider).await;
    objects.until("WasmProvider", "fixture", "it serves", |provider| is(provider, "Ready")).await;
}

fn lease(name: &str) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "FixtureLease", "metadata": {"name": name, "namespace": "default"}, "spec": {}})
}

async fn leased(objects: &Objects, name: &str) {
    wait::until(&format!("{name} is leased"), async || {
        match objects.find_at(&format!("{GROUP}/v1alpha1"), "FixtureLease", name).await {
            Some(object) if object["status"].to_string().contains("Resting") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// Whole recordings of a folder, by name; a file that is none fails the test.
fn whole(folder: &Path) -> Vec<(PathBuf, Recording)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.retain(|file| !file.file_name().unwrap().to_str().unwrap().starts_with('.'));
    let read = |file: &PathBuf| {
        record::read(std::fs::File::open(file).unwrap()).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    };
    files.iter().map(|file| (file.clone(), read(file))).collect()
}

/// Part 6 of the lifecycle: `spec.record`, with the real binary.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_provider_is_recorded_and_neither_a_kill_nor_a_full_disk_costs_more_than_recordings() {
    let host = OneRecorded::start().await;
    host.lease("first").await;
    wait::until("the call is in a file", async || {
        if whole(&host.recordings()).is_empty() { Err("there is none".to_owned()) } else { Ok(()) }
    })
    .await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&host.recordings()), 0o700);
    let (file, recording) = whole(&host.recordings()).remove(0);
    assert_eq!((mode(&file), recording.provider.as_str()), (0o600, "fixture"));
    let providers = host.folder.join("plugins");
    let again = output(&["replay", path(&file), "--provider-dir", path(&providers)]);
    assert!(again.contains("replayed  the same"), "{again}");

    // Killed while it writes, again and again: what has a name is whole.
    for round in 0..3 {
        let changes = async {
            for n in 0.. {
                host.objects
                    .merge_at(
                        &format!("{GROUP}/v1alpha1"),
                        "FixtureLease",
                        "first",
                        json!({"spec": {"value": round * 1_000 + n}}),
                    )
                    .await;
            }
        };
        let before = whole(&host.recordings()).len();
        let recorded = wait::until("calls are recorded", async || {
            let now = whole(&host.recordings()).len();
            if now >= before + 5 { Ok(()) } else { Err(format!("{before} became {now}")) }
        });
        tokio::select! {
            () = changes => {}
            () = recorded => {}
        }
        host.management.kill();
        assert!(whole(&host.recordings()).len() >= before + 5);
        host.management.restart();
        leased(&host.objects, "first").await;
    }
    let draft = host.recordings().join(".0000000000001-000001-fixture-x.json.part");
    std::fs::write(&draft, "{").unwrap();
    let diff = run(&["provider", "diff", "fixture", path(&fixture("guest")), "--recordings", path(&host.recordings())]);
    assert!(diff.status.success(), "{}", said(&diff));

    // A file where the folder should be.
    host.management.kill();
    std::fs::remove_dir_all(host.recordings()).unwrap();
    std::fs::write(host.recordings(), "").unwrap();
    host.management.restart();
    host.lease("without-a-folder").await;
    let lost = async |more: u64| {
        wait::until("recordings are lost", async || match host.counted("Failed") {
            failed if failed > more => Ok(()),
            failed => Err(format!("{failed}")),
        })
        .await;
    };
    lost(0).await;
    let told = || std::fs::read_to_string(host.management.log()).unwrap().matches("recordings are lost").count();
    assert_eq!(told(), 1, "once, not for each call");
    std::fs::remove_file(host.recordings()).unwrap();
    let written = host.counted("Written");
    host.lease("with-a-folder").await;
    wait::until("it goes on by itself", async || match host.counted("Written") {
        now if now > written => Ok(()),
        now => Err(format!("{now}")),
    })
    .await;

    // A full disk.
    std::fs::remove_dir_all(host.recordings()).unwrap();
    std::fs::DirBuilder::new().create(host.recordings()).unwrap();
    let Some(_small) = Small::mount(host.recordings()) else {
        return skip::skip("replay::a full disk", "nothing can be mounted here");
    };
    let failed = host.counted("Failed");
    for n in 0..12 {
        host.lease(&format!("on-a-full-disk-{n}")).await;
    }
    lost(failed).await;
    assert!(!whole(&host.recordings()).is_empty(), "what fitted is whole");
    let parts = |entry: &std::io::Result<std::fs::DirEntry>| {
        entry.as_ref().is_ok_and(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with('.')))
    };
    wait::until("nothing is left of what did not fit", async || {
        let left = std::fs::read_dir(host.recordings()).unwrap().filter(parts).count();
        if left == 0 { Ok(()) } else { Err(format!("{left} drafts")) }
    })
    .await;
    let log = std::fs::read_to_string(host.management.log()).unwrap();
    assert_eq!(log.matches("No space left on device").count(), 1, "it is told, once");
}

/// A file system of four pages.
struct Small(PathBuf);

impl Small {
    fn mount(at: PathBuf) -> Option<Small> {
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", "size=16k,mode=0700", "tmpfs"]).arg(&at).output();
        done.is_ok_and(|done| done.status.success()).then_some(Small(at))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// Part 6 of the lifecycle: `--record DIR` of `capwasm run`, with the real binary; that of `up` is what the other tests replay.
#[tokio::test]
async fn a_host_on_another_api_server_records_what_replays_exactly() {
    let folder = Folder::new();
    let mut server = Command::new(binary::capwasm());
    server.arg("apiserver").arg("--data-dir").arg(folder.join("server")).args(["--listen", "127.0.0.1:0"]);
    server.arg("--kubeconfig").arg(folder.join("kubeconfig"));
    let server = Process::spawn(server, &folder.join("server.log"), "capwasm apiserver is ready on");
    let (providers, recordings, data) = (folder.join("plugins"), folder.join("made/recordings"), folder.join("data"));
    std::fs::create_dir(&providers).unwrap();
    fill(&providers);
    management::give_compiled(&data.join("aot"));
    let mut host = Command::new(binary::capwasm());
    host.arg("run").arg("--kubeconfig").arg(folder.join("kubeconfig")).args(["--engine", "sim"]);
    host.arg("--data-dir").arg(&data).arg("--provider-dir").arg(&providers).arg("--record").arg(&recordings);
    host.args(["--diagnostics", &management::free_address()]);
    let host = Process::spawn(host, &folder.join("run.log"), "capwasm runs");
    let objects = Objects::in_new(management::client(&folder.join("kubeconfig")).await, "default").await;
    install(&objects).await;
    objects.create(&lease("one")).await;
    leased(&objects, "one").await;
    // What is queued is written before the end.
    assert!(host.stop(), "SIGTERM ends it in order");
    server.kill();
    let recorded = whole(&recordings);
    assert!(recorded.iter().any(|(_, recording)| recording.provider == "fixture"), "{}", recorded.len());
    for (file, _) in &recorded {
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
        let again = output(&["replay", path(file), "--provider-dir", path(&providers)]);
        assert!(again.contains("replayed  the same"), "{again}");
    }
}
