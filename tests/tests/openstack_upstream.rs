//! Requests of Cluster API Provider OpenStack itself beside ours, on the same fake: a real kube-apiserver with upstream's manager,
//! and our host. Cluster API's core is played here for upstream.
//!
//! Upstream's manager has to be built first:
//!
//! ```sh
//! go mod download -json sigs.k8s.io/cluster-api-provider-openstack@v0.14.7   # says the folder of its source
//! cp -r FOLDER capo && cd capo && go build -mod=mod -o manager .
//! CAPWASM_CAPO=$PWD cargo test -p capwasm-tests --test openstack_upstream -- --nocapture
//! ```

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use capwasm_sim_openstack::{OpenStack, Options};
use capwasm_tests::api_server::{ADMIN, ApiServer};
use capwasm_tests::folder::Folder;
use capwasm_tests::management::free_address;
use capwasm_tests::objects::{Objects, is, text};
use capwasm_tests::openstack::{Access, Bed, Project, Proxy, manifests};
use capwasm_tests::{binary, sample, skip, wait};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

/// Longer than upstream's manager waits between two looks at anything.
const QUIET: Duration = Duration::from_secs(17);
const NAME: &str = "count";
const PLANE: &str = "count-cp-0";
const WORKER: &str = "count-md-0";

/// Reads and writes of each step, without requests for tokens.
type Counts = BTreeMap<&'static str, (usize, usize)>;

/// Counts what came since the last step, once nothing comes any more.
async fn counted(proxy: &Proxy, counts: &mut Counts, step: &'static str) {
    loop {
        let before = proxy.calls().len();
        tokio::time::sleep(QUIET).await;
        if proxy.calls().len() == before {
            break;
        }
    }
    let calls: Vec<_> = proxy.calls().into_iter().filter(|call| !call.is_token()).collect();
    let writes = calls.iter().filter(|call| call.is_write()).count();
    eprintln!("{step}: {:#?}", proxy.counts());
    counts.insert(step, (calls.len() - writes, writes));
    proxy.clear();
}

/// A step that changes nothing: somebody touches an object.
async fn touch(objects: &Objects, kind: &str, name: &str) {
    objects.merge(kind, name, json!({"metadata": {"annotations": {"touched": "once"}}})).await;
}

async fn ours() -> Counts {
    let bed = Bed::fake(NAME).await;
    let (objects, mut counts) = (&bed.objects, Counts::new());
    bed.create(manifests::cluster(NAME, NAME, manifests::cluster_spec())).await;
    bed.cluster_ready(NAME).await;
    counted(&bed.proxy, &mut counts, "1 cluster").await;
    touch(objects, "OpenStackCluster", NAME).await;
    counted(&bed.proxy, &mut counts, "2 cluster, unchanged").await;
    bed.create(manifests::machine(NAME, NAME, PLANE, true, "", manifests::machine_spec())).await;
    bed.machine_ready(PLANE).await;
    counted(&bed.proxy, &mut counts, "3 control-plane machine").await;
    bed.create(manifests::machine(NAME, NAME, WORKER, false, "", manifests::machine_spec())).await;
    bed.machine_ready(WORKER).await;
    counted(&bed.proxy, &mut counts, "4 worker").await;
    touch(objects, "OpenStackMachine", WORKER).await;
    counted(&bed.proxy, &mut counts, "5 worker, unchanged").await;
    for (machine, step) in [(WORKER, "6 worker's end"), (PLANE, "7 control-plane machine's end")] {
        objects.delete("Machine", machine).await;
        objects.gone("OpenStackMachine", machine).await;
        counted(&bed.proxy, &mut counts, step).await;
    }
    objects.delete("Cluster", NAME).await;
    objects.gone("OpenStackCluster", NAME).await;
    counted(&bed.proxy, &mut counts, "8 cluster's end").await;
    bed.end().await;
    counts
}

async fn upstreams(test: &str, source: &Path) -> Option<Counts> {
    let server = ApiServer::start(test).await?;
    let fake = OpenStack::start(Options::default()).await.unwrap();
    let project = Project::new(&Access::of(&fake.clouds_yaml(), "ost-admin"), NAME).await;
    let proxy = Proxy::start(&project.access.auth_url);
    let objects = Objects::in_new(server.client(ADMIN).await, NAME).await;
    install(&server, source).await;
    let folder = Folder::new();
    start(source, &server, &folder);
    objects.create(&manifests::identity(NAME, &project.access.at(proxy.auth_url()).clouds_yaml(), None)).await;

    let mut counts = Counts::new();
    let [mut infrastructure, cluster] = manifests::cluster(NAME, NAME, manifests::cluster_spec());
    let cluster = objects.create(&cluster).await;
    own(&mut infrastructure, &cluster, "Cluster");
    objects.create(&infrastructure).await;
    let ready = |object: &Value| is(object, "Ready") && sample::is_provisioned(object);
    objects.until("OpenStackCluster", NAME, "it is ready", ready).await;
    counted(&proxy, &mut counts, "1 cluster").await;
    touch(&objects, "OpenStackCluster", NAME).await;
    counted(&proxy, &mut counts, "2 cluster, unchanged").await;
    let status = Patch::Merge(json!({"status": {"initialization": {"infrastructureProvisioned": true}}}));
    objects.api("Cluster").patch_status(NAME, &PatchParams::default(), &status).await.unwrap();
    for (name, is_plane, step) in [(PLANE, true, "3 control-plane machine"), (WORKER, false, "4 worker")] {
        let [mut infrastructure, secret, machine] =
            manifests::machine(NAME, NAME, name, is_plane, "", manifests::machine_spec());
        objects.create(&secret).await;
        let machine = objects.create(&machine).await;
        own(&mut infrastructure, &machine, "Machine");
        objects.create(&infrastructure).await;
        objects.until("OpenStackMachine", name, "it is ready", ready).await;
        counted(&proxy, &mut counts, step).await;
    }
    touch(&objects, "OpenStackMachine", WORKER).await;
    counted(&proxy, &mut counts, "5 worker, unchanged").await;
    for (name, step) in [(WORKER, "6 worker's end"), (PLANE, "7 control-plane machine's end")] {
        objects.delete("OpenStackMachine", name).await;
        objects.gone("OpenStackMachine", name).await;
        objects.delete("Machine", name).await;
        counted(&proxy, &mut counts, step).await;
    }
    objects.delete("OpenStackCluster", NAME).await;
    objects.gone("OpenStackCluster", NAME).await;
    counted(&proxy, &mut counts, "8 cluster's end").await;
    drop(folder);
    fake.stop().await;
    Some(counts)
}

/// Core kinds, upstream's own, and the image kind that it watches.
async fn install(server: &ApiServer, source: &Path) {
    let mut texts = vec![binary::output(&["crds", "--core-only"])];
    for entry in std::fs::read_dir(source.join("config/crd/bases")).unwrap() {
        texts.push(std::fs::read_to_string(entry.unwrap().path()).unwrap());
    }
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let image = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "images.openstack.k-orc.cloud"},
        "spec": {
            "group": "openstack.k-orc.cloud", "scope": "Namespaced", "names": {"kind": "Image", "plural": "images"},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": any}}],
        },
    });
    texts.push(image.to_string());
    let api: Api<_> = Api::all(server.client(ADMIN).await);
    for text in texts {
        let definitions: Vec<
            k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
        > = serde_saphyr::from_multiple(&text).unwrap();
        for definition in definitions {
            let created = api.create(&PostParams::default(), &definition).await.unwrap();
            let name = created.metadata.name.unwrap();
            wait::until(&format!("{name} is established"), async || {
                let status = api.get(&name).await.unwrap().status.unwrap();
                let is = |it: &_| -> bool {
                    let it: &k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionCondition = it;
                    it.type_ == "Established" && it.status == "True"
                };
                if status.conditions.iter().flatten().any(is) { Ok(()) } else { Err("it is not".to_owned()) }
            })
            .await;
        }
    }
}

fn start(source: &Path, server: &ApiServer, folder: &Folder) {
    let log = std::fs::File::create(source.join("manager.log")).unwrap();
    let mut command = Command::new(source.join("manager"));
    // It serves its webhooks, which nobody asks, and ends with the folder that it has a path in.
    let served = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("tls.crt"), served.cert.pem()).unwrap();
    std::fs::write(folder.join("tls.key"), served.signing_key.serialize_pem()).unwrap();
    let port = free_address().rsplit_once(':').unwrap().1.to_owned();
    command.arg("--kubeconfig").arg(server.kubeconfig(ADMIN)).arg("--webhook-cert-dir").arg(folder.path());
    command.arg(format!("--webhook-port={port}")).args(["--leader-elect=false", "--insecure-diagnostics"]);
    command.arg(format!("--diagnostics-address={}", free_address())).arg(format!("--health-addr={}", free_address()));
    command.args(
        ["StorageVersionMigration", "CleanupManagedFields"].map(|it| format!("--skip-crd-migration-phases={it}")),
    );
    drop(command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap());
}

fn own(object: &mut Value, owner: &Value, kind: &str) {
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }]);
    object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] = NAME.into();
    assert!(!text(owner, "/metadata/uid").is_empty());
}

#[tokio::test]
async fn no_step_needs_more_requests_than_upstreams() {
    let test = "openstack_upstream::no_step_needs_more_requests_than_upstreams";
    if !skip::part("upstream", test) {
        return;
    }
    let Some(source) = std::env::var_os("CAPWASM_CAPO").map(PathBuf::from) else {
        return skip::skip(
            test,
            "it takes ten minutes and upstream's manager, built as tests/openstack_upstream.rs says (CAPWASM_CAPO)",
        );
    };
    let Some(theirs) = upstreams(test, &source).await else { return };
    let ours = ours().await;
    println!("| step | ours: reads, writes | upstream's: reads, writes |\n|---|---|---|");
    for (step, (reads, writes)) in &theirs {
        let (our_reads, our_writes) = ours.get(step).copied().unwrap_or_default();
        println!("| {step} | {our_reads}, {our_writes} | {reads}, {writes} |");
    }
    for (step, (reads, writes)) in &ours {
        let (their_reads, their_writes) = theirs[step];
        assert!(reads + writes <= their_reads + their_writes, "{step}: more than upstream's");
        assert!(*writes <= their_writes, "{step}: more writes than upstream's");
    }
}
