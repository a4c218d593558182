//! What the openstack-cluster chart renders for its three cases is accepted and becomes a cluster, on the fake.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use capwasm_tests::guests;
use capwasm_tests::objects::text;
use capwasm_tests::openstack::{Bed, manifests};
use capwasm_tests::sample::VERSION;
use serde_json::{Value, json};

struct Group {
    name: &'static str,
    flavor: &'static str,
    /// The autoscaler's bounds: the chart then leaves `replicas` out.
    bounds: Option<(u32, u32)>,
}

const ONE: &[Group] = &[Group { name: "group-1", flavor: "m1.small", bounds: None }];
const FULL: &[Group] = &[
    Group { name: "group-1", flavor: "m1.small", bounds: None },
    Group { name: "group-2", flavor: "m1.medium", bounds: Some((1, 3)) },
    Group { name: "group-3", flavor: "m1.medium", bounds: Some((0, 5)) },
];

#[tokio::test]
async fn the_base_case_becomes_a_cluster() {
    provision("chart-base", ONE, 4, |_| {}).await;
}

#[tokio::test]
async fn the_full_case_becomes_a_cluster_and_says_what_machines_of_an_empty_group_would_have() {
    // Three control-plane machines, and one worker for each group of which none was said to be empty.
    provision("chart-full", FULL, 5, |_| {}).await;
}

#[tokio::test]
async fn the_ovn_case_becomes_a_cluster_whose_balancer_keeps_sources() {
    let rules = json!([
        {"name": "node-ports-tcp", "direction": "ingress", "etherType": "IPv4", "protocol": "tcp", "portRangeMin": 30000,
            "portRangeMax": 32767, "remoteIPPrefix": "0.0.0.0/0", "description": "Node ports"},
        {"name": "node-ports-udp", "direction": "ingress", "etherType": "IPv4", "protocol": "udp", "portRangeMin": 30000,
            "portRangeMax": 32767, "remoteIPPrefix": "0.0.0.0/0", "description": "Node ports"},
    ]);
    provision("chart-ovn", ONE, 4, |cluster| {
        cluster["spec"]["apiServerLoadBalancer"]["provider"] = "ovn".into();
        cluster["spec"]["managedSecurityGroups"]["workerNodesSecurityGroupRules"] = rules.clone();
        cluster["spec"]["managedSecurityGroups"]["controlPlaneNodesSecurityGroupRules"] = rules.clone();
    })
    .await;
}

async fn provision(name: &str, groups: &[Group], machines: usize, change: impl Fn(&mut Value)) {
    let bed = Bed::fake(name).await;
    let external = bed.project.cloud.list("network", "/v2.0/networks?name=public", "networks").await;
    let fill = |file: &str, group: &Group| {
        let text = std::fs::read_to_string(guests::fixture_file(file)).unwrap();
        let text = text.replace("NAMESPACE", name).replace("EXTERNAL", external[0]["id"].as_str().unwrap());
        let text = text.replace("NAME", name).replace("VERSION", VERSION);
        let text = text.replace("GROUP", group.name).replace("FLAVOR", group.flavor);
        // Simulated nodes have the region in their providerID, which a machine has only when it is said.
        let text = text.replace("cloudName: openstack}", "cloudName: openstack, region: RegionOne}");
        serde_saphyr::from_multiple::<Value>(&text).unwrap()
    };
    let mut secret = manifests::identity(name, &bed.project.access.at(bed.proxy.auth_url()).clouds_yaml(), None);
    secret["metadata"]["name"] = format!("{name}-cloud-credentials").into();
    let mut documents = vec![secret];
    documents.extend(fill("openstack/chart.yaml", &groups[0]));
    for group in groups {
        let mut of_group = fill("openstack/chart-group.yaml", group);
        if let Some((least, most)) = group.bounds {
            let deployment = of_group.iter_mut().find(|document| document["kind"] == "MachineDeployment").unwrap();
            deployment["spec"].as_object_mut().unwrap().remove("replicas");
            deployment["metadata"]["annotations"] = json!({
                "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size": least.to_string(),
                "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": most.to_string(),
            });
        }
        documents.extend(of_group);
    }
    for document in &mut documents {
        document["metadata"]["namespace"] = name.into();
        if document["kind"] == "OpenStackCluster" {
            change(document);
        }
        bed.objects.create(document).await;
    }
    bed.available(name, machines).await;
    for group in groups {
        let template = format!("{name}-{}-4e5f6a7b", group.name);
        let known = |object: &Value| !text(object, "/status/capacity/cpu").is_empty();
        bed.objects.until("OpenStackMachineTemplate", &template, "its capacity is known", known).await;
    }
    let pool = format!("k8s-clusterapi-cluster-{name}-{name}-kubeapi-6443");
    let pools = bed.project.cloud.list("load-balancer", &format!("/v2/lbaas/pools?name={pool}"), "pools").await;
    let algorithm = if name == "chart-ovn" { "SOURCE_IP_PORT" } else { "ROUND_ROBIN" };
    assert_eq!(pools[0]["lb_algorithm"], algorithm);
    bed.objects.delete("Cluster", name).await;
    bed.objects.gone("Cluster", name).await;
    bed.project.empty().await;
    bed.end().await;
}
