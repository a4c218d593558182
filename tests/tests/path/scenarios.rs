//! Clusters of their own: another order, a pause, an endpoint of the user's, scaling, deletion.

use capwasm_tests::history::History;
use capwasm_tests::management::Management;
use capwasm_tests::objects::{condition, flag, is, name_of, text};
use capwasm_tests::sample::Sample;
use capwasm_tests::wait;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use crate::run::{STEADY, endpoint, has_finalizer};

#[tokio::test]
async fn c20_the_order_of_creation_does_not_matter() {
    let management = Management::shared();
    let objects = management.objects("order").await;
    let mut sample = Sample::new("order", 1, 1);
    // Each document before everything that it refers to.
    sample.documents.sort_by_key(|document| match document["kind"].as_str().unwrap() {
        "Cluster" => 0,
        "MachineDeployment" => 1,
        "KubeadmControlPlane" => 2,
        "DockerCluster" => 4,
        _ => 3,
    });
    for document in &sample.documents {
        objects.create(document).await;
        let looked_at = objects.get("Cluster", "order").await;
        objects
            .until("Cluster", "order", "it was looked at", |cluster| !text(cluster, "/status/phase").is_empty())
            .await;
        assert!(!flag(&looked_at, "/status/initialization/infrastructureProvisioned"));
    }
    sample.provisioned(&objects).await;
}

#[tokio::test]
async fn c9_nothing_is_provisioned_while_the_object_or_its_cluster_is_paused() {
    let management = Management::shared();
    let objects = management.objects("paused").await;
    let mut sample = Sample::new("paused", 1, 0);
    sample.document("Cluster")["spec"]["paused"] = json!(true);
    sample.document("DockerCluster")["metadata"]["annotations"] = json!({"cluster.x-k8s.io/paused": ""});
    sample.create(&objects).await;
    let paused = |object: &Value| is(object, "Paused");
    objects.until("Cluster", "paused", "it says that it is paused", paused).await;
    wait::unchanged("a paused cluster", STEADY / 2, async || objects.versions().await).await;

    objects.merge("Cluster", "paused", json!({"spec": {"paused": false}})).await;
    objects.until("DockerCluster", "paused", "its own annotation still pauses it", paused).await;
    let engine = management.engine();
    wait::unchanged("what a paused provider made", STEADY / 2, async || engine.containers("paused").await).await;
    assert_eq!(engine.containers("paused").await, Vec::<String>::new());
    assert!(!has_finalizer(&objects.get("DockerCluster", "paused").await));

    let unpause = json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": null}}});
    objects.merge("DockerCluster", "paused", unpause).await;
    sample.provisioned(&objects).await;
}

#[tokio::test]
async fn c17_an_endpoint_that_the_user_gave_is_never_overwritten() {
    let objects = Management::shared().objects("endpoint").await;
    let mut sample = Sample::new("endpoint", 1, 0);
    sample.document("Cluster")["spec"]["controlPlaneEndpoint"] = json!({"host": "api.example.org", "port": 1234});
    let cluster = sample.take("Cluster").remove(0);
    objects.create(&cluster).await;
    objects.create(&sample.take("DockerCluster").remove(0)).await;
    let provisioned = |cluster: &Value| flag(cluster, "/status/initialization/infrastructureProvisioned");
    let cluster = objects.until("Cluster", "endpoint", "its infrastructure is provisioned", provisioned).await;
    assert_eq!(endpoint(&cluster), Some(("api.example.org".to_owned(), 1234)));
    assert_ne!(endpoint(&objects.get("DockerCluster", "endpoint").await), endpoint(&cluster));
    sample.delete(&objects).await;
}

#[tokio::test]
async fn c18_failure_domains_are_copied_from_the_infrastructure() {
    let objects = Management::shared().objects("domains").await;
    let mut sample = Sample::new("domains", 1, 0);
    let domains = json!([{"name": "fd1", "controlPlane": true}, {"name": "fd2", "controlPlane": false}]);
    sample.document("DockerCluster")["spec"] = json!({"failureDomains": domains});
    sample.create(&objects).await;
    let cluster = sample.provisioned(&objects).await;
    assert_eq!(cluster["status"]["failureDomains"], domains);
    let machine = objects.list("Machine").await.remove(0);
    assert_eq!(text(&machine, "/status/failureDomain"), "fd1", "R5: the control plane goes where it may: {machine}");
}

#[tokio::test]
async fn r2b_r4a_a_bare_machine_gets_no_clones_and_no_container_before_its_bootstrap_data() {
    let management = Management::shared();
    let objects = management.objects("bare").await;
    let sample = Sample::new("bare", 1, 0);
    sample.create(&objects).await;
    sample.provisioned(&objects).await;
    let reference = |group: &str, kind: &str| json!({"apiGroup": format!("{group}.cluster.x-k8s.io"), "kind": kind, "name": "bare-worker"});
    objects
        .create(&json!({"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig",
            "metadata": {"name": "bare-worker", "namespace": "bare", "annotations": {"cluster.x-k8s.io/paused": ""}}}))
        .await;
    objects
        .create(&json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DockerMachine",
            "metadata": {"name": "bare-worker", "namespace": "bare"}, "spec": {}}))
        .await;
    objects
        .create(&json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {"name": "bare-worker", "namespace": "bare"},
            "spec": {"clusterName": "bare", "version": "v1.34.0", "infrastructureRef": reference("infrastructure", "DockerMachine"),
                "bootstrap": {"configRef": reference("bootstrap", "KubeadmConfig")}}}))
        .await;
    objects
        .until("DockerMachine", "bare-worker", "it waits for its data", |machine| {
            condition(machine, "Ready").0 == "False"
        })
        .await;
    let engine = management.engine();
    let containers = wait::unchanged("the containers", STEADY / 2, async || engine.containers("bare").await).await;
    assert_eq!(containers.len(), 2, "R4a: {containers:?}");
    assert_eq!(objects.names("DockerMachine").await.len(), 2, "R2b: no clone is made");
    assert_eq!(objects.names("KubeadmConfig").await.len(), 2, "R2b: no clone is made");

    let unpause = json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": null}}});
    objects.merge("KubeadmConfig", "bare-worker", unpause).await;
    let running = |machine: &Value| text(machine, "/status/phase") == "Running";
    objects.until("Machine", "bare-worker", "it runs once its data are there", running).await;
    assert_eq!(engine.containers("bare").await.len(), 3);
}

#[tokio::test]
async fn r2c_a_changed_template_is_for_later_clones_and_scaling_is_exact() {
    let management = Management::shared();
    let objects = management.objects("scale").await;
    let mut sample = Sample::new("scale", 1, 1);
    sample.create(&objects).await;
    sample.provisioned(&objects).await;
    let of_workers = async || {
        let mut configs = objects.list("KubeadmConfig").await;
        configs.retain(|config| !name_of(config).starts_with("scale-control-plane"));
        configs
    };
    let first = of_workers().await.remove(0);
    let commands = json!(["echo later"]);
    objects
        .merge(
            "KubeadmConfigTemplate",
            "scale-md-0",
            json!({"spec": {"template": {"spec": {"preKubeadmCommands": commands}}}}),
        )
        .await;
    objects.merge("MachineDeployment", "scale-md-0", json!({"spec": {"replicas": 2}})).await;
    sample.machines = 3;
    sample.provisioned(&objects).await;
    let configs = of_workers().await;
    assert_eq!(configs.len(), 2);
    for config in &configs {
        if name_of(config) == name_of(&first) {
            assert_eq!(config["spec"], first["spec"], "R2c: what exists stays as it is");
        } else {
            assert_eq!(config["spec"]["preKubeadmCommands"], commands, "R2c: later clones have it");
        }
    }

    objects.merge("MachineDeployment", "scale-md-0", json!({"spec": {"replicas": 0}})).await;
    sample.machines = 1;
    sample.provisioned(&objects).await;
    let engine = management.engine();
    wait::until("containers and clones of the workers are gone", async || {
        let left = (engine.containers("scale").await, objects.names("DockerMachine").await, of_workers().await.len());
        if left.0.len() == 2 && left.1.len() == 1 && left.2 == 0 { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
}

#[tokio::test]
async fn r6_three_control_plane_machines_join_one_cluster() {
    let objects = Management::shared().objects("three").await;
    let sample = Sample::new("three", 3, 0);
    sample.create(&objects).await;
    sample.provisioned(&objects).await;
    let nodes: Api<Node> = Api::all(objects.workload("three").await);
    let names: Vec<_> = nodes
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .into_iter()
        .filter_map(|node| node.metadata.name)
        .collect();
    assert_eq!(names, objects.names("Machine").await);
}

#[tokio::test]
async fn g6_g9_deletion_goes_backwards_and_leaves_nothing_but_events() {
    let management = Management::shared();
    let objects = management.objects("gone").await;
    let sample = Sample::new("gone", 1, 2);
    sample.create(&objects).await;
    sample.provisioned(&objects).await;
    let history = History::record(&objects).await;
    sample.delete(&objects).await;
    let engine = management.engine();
    wait::until("nothing is left", async || {
        let left = (objects.versions().await, engine.containers("gone").await);
        if left.0.is_empty() && left.1.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
    let ended = wait::until("the watch delivers the end of the Cluster", async || {
        let versions = history.so_far();
        let ended = |kind: &str| {
            versions
                .iter()
                .filter(|seen| seen.kind == kind && seen.deleted)
                .map(|seen| seen.revision)
                .collect::<Vec<_>>()
        };
        match ended("Cluster").as_slice() {
            [cluster] => Ok((ended("Machine"), ended("KubeadmControlPlane"), ended("DockerCluster"), *cluster)),
            _ => Err("it is not there".to_owned()),
        }
    })
    .await;
    let (machines, control_planes, infrastructure, cluster) = ended;
    assert_eq!((machines.len(), control_planes.len(), infrastructure.len()), (3, 1, 1));
    assert!(machines.iter().all(|machine| *machine < control_planes[0]), "machines, then the control plane");
    assert!(
        control_planes[0] < infrastructure[0] && infrastructure[0] < cluster,
        "then the infrastructure, then the Cluster"
    );
}
