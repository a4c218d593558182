//! The machines: clones, bootstrap data, containers, Nodes.

use std::collections::BTreeSet;

use capwasm_tests::binary;
use capwasm_tests::history;
use capwasm_tests::management::Management;
use capwasm_tests::objects::{flag, is, name_of, owner, secret_text, text};
use capwasm_tests::sample::is_provisioned;
use serde_json::{Value, json};

use crate::run::{CLUSTER, CONTROL_PLANE, WORKERS, run};

#[test]
fn r1_the_cluster_infrastructure_is_there_before_any_machine_is_created() {
    let run = run();
    let (lb, machines): (Vec<_>, Vec<_>) = run.created.iter().partition(|(name, _)| name == "path-lb");
    assert_eq!((lb.len(), machines.len()), (1, 3), "{:?}", run.containers);
    for machine in &machines {
        assert!(lb[0].1 < machine.1, "{lb:?} {machine:?}");
    }
    for machine in run.all("DockerMachine") {
        let made = run.first("DockerMachine", name_of(machine), |machine| is(machine, "ContainerProvisioned"));
        assert!(run.infrastructure_provisioned() < made.revision);
    }
}

#[test]
fn r2a_a_deployment_makes_as_many_machines_with_clones_of_its_templates() {
    let run = run();
    let machines = run.machines_of_workers();
    assert_eq!(machines.len(), 2);
    for kind in ["Machine", "DockerMachine", "KubeadmConfig"] {
        assert_eq!(run.all(kind).len(), 3, "{kind}: 1 for the control plane and 2 workers, ever");
    }
    let mut referenced = BTreeSet::new();
    for machine in &machines {
        assert!(flag(owner(machine, "MachineSet").unwrap(), "/controller"));
        for (kind, pointer, template) in [
            ("DockerMachine", "/spec/infrastructureRef/name", "DockerMachineTemplate"),
            ("KubeadmConfig", "/spec/bootstrap/configRef/name", "KubeadmConfigTemplate"),
        ] {
            let clone = run.first(kind, text(machine, pointer), |_| true);
            assert!(referenced.insert((kind, name_of(&clone.object).to_owned())), "each is referenced by one Machine");
            let template = &run.last(template, WORKERS)["spec"]["template"];
            let empty = json!({});
            let spec = |object: &Value| object.get("spec").filter(|spec| !spec.is_null()).unwrap_or(&empty).clone();
            assert_eq!(spec(&clone.object), spec(template), "{kind} as it was created");
            let last = run.last(kind, name_of(&clone.object));
            assert_eq!(owner(last, "Machine").unwrap()["uid"], machine["metadata"]["uid"]);
            assert_eq!(text(last, "/metadata/annotations/cluster.x-k8s.io~1cloned-from-name"), WORKERS);
        }
    }
}

#[test]
fn r3_g9_each_bootstrap_configuration_has_one_secret_that_belongs_to_it() {
    let run = run();
    for config in run.all("KubeadmConfig") {
        let name = text(config, "/status/dataSecretName");
        assert!(flag(config, "/status/initialization/dataSecretCreated"));
        let secret = run.last("Secret", name);
        assert!(secret_text(secret, "value").starts_with("#"), "cloud-config");
        assert_eq!(secret["type"], "cluster.x-k8s.io/secret");
        let owner = owner(secret, "KubeadmConfig").expect("G9: it goes with its configuration");
        assert_eq!((&owner["uid"], flag(owner, "/controller")), (&config["metadata"]["uid"], true));
        let ready =
            run.first("Cluster", CLUSTER, |cluster| flag(cluster, "/status/initialization/infrastructureProvisioned"));
        assert!(
            ready.revision < run.first("Secret", name, |_| true).revision,
            "R3: after the cluster's infrastructure"
        );
    }
}

#[test]
fn r4_g2_a_container_is_made_after_its_bootstrap_data_and_runs_exactly_that() {
    let run = run();
    for machine in run.all("Machine") {
        let name = text(machine, "/spec/bootstrap/dataSecretName");
        let secret = run.first("Secret", name, |_| true);
        let made = run.first("DockerMachine", text(machine, "/spec/infrastructureRef/name"), |machine| {
            is(machine, "ContainerProvisioned")
        });
        assert!(secret.revision < made.revision, "G2, R4a");
        let (_, files) =
            run.kubeadm_files.iter().find(|(container, _)| container == name_of(machine)).expect("R4b: its container");
        let (files, data) = (String::from_utf8_lossy(files), secret_text(&secret.object, "value"));
        let lines: Vec<&str> =
            files.lines().map(str::trim).filter(|line| line.len() > 30 && !line.contains('\0')).collect();
        assert!(!lines.is_empty(), "R4b: kubeadm's configuration is in the container");
        for line in lines {
            assert!(data.contains(line), "R4b: {line:?} of the container is not in the Secret");
        }
    }
}

#[test]
fn r5_g15_what_the_infrastructure_found_is_copied_to_the_machine_and_not_before() {
    let run = run();
    for machine in run.all("Machine") {
        let infrastructure = text(machine, "/spec/infrastructureRef/name");
        let provisioned = run.first("DockerMachine", infrastructure, is_provisioned);
        let docker = run.last("DockerMachine", infrastructure);
        assert_eq!(text(machine, "/spec/providerID"), text(docker, "/spec/providerID"));
        assert_eq!(text(machine, "/spec/providerID"), format!("docker:////{}", name_of(machine)));
        assert_eq!(machine["status"]["addresses"], docker["status"]["addresses"]);
        assert!(machine["status"]["addresses"].as_array().is_some_and(|addresses| !addresses.is_empty()));
        assert!(flag(machine, "/status/initialization/infrastructureProvisioned"));
        for version in history::of(&run.versions, "Machine", name_of(machine)) {
            if version.revision < provisioned.revision {
                assert!(text(&version.object, "/spec/providerID").is_empty());
                assert!(version.object.pointer("/status/addresses").is_none());
                assert!(!flag(&version.object, "/status/initialization/infrastructureProvisioned"));
            }
        }
    }
}

#[test]
fn r6_r7_g4_g14_workers_join_after_the_control_plane_is_initialized() {
    let run = run();
    let initialized = |object: &Value| flag(object, "/status/initialization/controlPlaneInitialized");
    let control_plane = run.first("KubeadmControlPlane", CONTROL_PLANE, initialized);
    let cluster =
        run.first("Cluster", CLUSTER, |cluster| flag(cluster, "/status/initialization/controlPlaneInitialized"));
    assert!(control_plane.revision < cluster.revision, "R7");
    for machine in run.machines_of_workers() {
        let secret = run.first("Secret", text(machine, "/spec/bootstrap/dataSecretName"), |_| true);
        assert!(control_plane.revision < secret.revision, "R6a: a worker's data need an initialized control plane");
    }
    assert_eq!(run.nodes.len(), 3, "R6b, G14: the kubeconfig of the Secret works and lists the nodes");
    for node in &run.nodes {
        let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref()).unwrap();
        assert!(conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True"));
        let identity = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
        assert!(run.all("Machine").iter().any(|machine| Some(text(machine, "/spec/providerID")) == identity));
    }
}

#[tokio::test]
async fn r8_get_kubeconfig_prints_the_secret() {
    run();
    let management = Management::shared();
    let objects = management.objects(CLUSTER).await;
    let kubeconfig = management.kubeconfig();
    let printed = binary::output(&[
        "get",
        "kubeconfig",
        CLUSTER,
        "--namespace",
        CLUSTER,
        "--kubeconfig",
        kubeconfig.to_str().unwrap(),
    ]);
    assert_eq!(printed, objects.kubeconfig(CLUSTER).await);
}

#[test]
fn g3_g10_g11_there_is_one_container_for_each_infrastructure_machine() {
    let run = run();
    let mut expected: Vec<String> = run.all("Machine").iter().map(|machine| name_of(machine).to_owned()).collect();
    expected.push("path-lb".to_owned());
    expected.sort();
    assert_eq!(run.containers, expected);
}
