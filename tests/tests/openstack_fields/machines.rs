//! Servers with their disks, groups, keys, hints and metadata; and what a template says of machines that are not there yet.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capwasm_tests::objects::text;
use capwasm_tests::openstack::{self, Bed, manifests};
use serde_json::{Value, json};

use crate::world::{make, only, remove};

/// Resources of OpenStack that the test made before the cluster.
#[derive(Default)]
pub struct Given {
    flavor: String,
    image: String,
    group: String,
    volumes: String,
}

/// From a volume, with all that Nova takes; everything by id.
pub fn by_id(given: &Given) -> Value {
    json!({
        "identityRef": {"type": "Secret", "name": "cloud-config", "cloudName": "openstack", "region": "RegionOne"},
        "flavorID": given.flavor,
        "image": {"id": given.image},
        "serverGroup": {"id": given.group},
        "sshKeyName": "of-a-test",
        "configDrive": true,
        "serverMetadata": [{"key": "made", "value": "by a test"}, {"key": "second", "value": "2"}],
        "tags": ["of-a-machine"],
        "rootVolume": {"sizeGiB": 20, "type": given.volumes, "availabilityZone": {"from": "Machine"}},
        "additionalBlockDevices": [
            {"name": "etcd", "sizeGiB": 1, "storage": {"type": "Volume", "volume": {
                "type": given.volumes, "availabilityZone": {"from": "Name", "name": "az2"}}}},
            {"name": "data", "sizeGiB": 2, "storage": {"type": "Volume"}},
        ],
        "schedulerHintAdditionalProperties": [
            {"name": "text", "value": {"type": "String", "string": "a hint"}},
            {"name": "count", "value": {"type": "Number", "number": 3}},
            {"name": "yes", "value": {"type": "Bool", "bool": true}},
        ],
    })
}

/// From a local disk with another beside it; everything by name.
pub fn by_name(given: &Given) -> Value {
    json!({
        "identityRef": manifests::identity_ref(),
        "flavor": given.flavor,
        "image": {"filter": {"name": "node-image", "tags": [given.image]}},
        "serverGroup": {"filter": {"name": "of-a-test"}},
        "rootVolume": null,
        "additionalBlockDevices": [{"name": "scratch", "sizeGiB": 3, "storage": {"type": "Local"}}],
    })
}

/// A volume in a zone that has a name.
pub fn by_image(given: &Given) -> Value {
    json!({
        "identityRef": manifests::identity_ref(),
        "flavor": "m1.tiny",
        "image": {"imageRef": {"name": "of-orc"}},
        "rootVolume": {"sizeGiB": 4, "type": given.volumes, "availabilityZone": {"name": "az2"}},
    })
}

#[tokio::test]
async fn servers_are_as_the_fields_say_and_templates_tell_what_they_would_have() {
    let test = "openstack_fields::servers_are_as_the_fields_say_and_templates_tell_what_they_would_have";
    let Some(admin) = openstack::real(test) else { return };
    let bed = Bed::real(&admin, "servers").await;
    let (cloud, authority) = (&bed.project.cloud, &bed.project.admin);
    let name = bed.project.name.clone();
    let group = json!({"name": "of-a-test", "policies": ["soft-anti-affinity"]});
    let group = make(cloud, "compute", "/os-server-groups", "server_group", group).await;
    make(cloud, "compute", "/os-keypairs", "keypair", json!({"name": "of-a-test"})).await;
    let flavor = json!({"name": name, "vcpus": 3, "ram": 3072, "disk": 7, "OS-FLV-EXT-DATA:ephemeral": 5});
    let flavor = make(authority, "compute", "/flavors", "flavor", flavor).await;
    let kinds = format!("/{}/types", authority.project_id);
    let kind = make(authority, "block-storage", &kinds, "volume_type", json!({"name": name})).await;
    let image = only(cloud, "image", "/v2/images?name=node-image", "images").await;
    let given = Given {
        flavor: text(&flavor, "/id").to_owned(),
        image: text(&image, "/id").to_owned(),
        group: text(&group, "/id").to_owned(),
        volumes: name.clone(),
    };
    // What a filter finds it by.
    let tag = format!("/v2/images/{}/tags/{name}", given.image);
    authority.put("image", &tag, &Value::Null).await;
    let named = Given { flavor: name.clone(), image: name.clone(), volumes: name.clone(), ..Given::default() };
    bed.create([orc(), orc_image(&given)]).await;

    let spec = json!({
        "identityRef": manifests::identity_ref(), "disableExternalNetwork": true, "managedSubnets": [{"cidr": "10.48.0.0/24"}],
        "disableAPIServerFloatingIP": true, "apiServerFixedIP": "10.48.0.100", "tags": ["of-a-test"],
    });
    bed.create(manifests::cluster("servers", "c", spec)).await;
    bed.create(manifests::machine("servers", "c", "i", false, "az2", by_id(&given))).await;
    bed.create(manifests::machine("servers", "c", "n", false, "az1", by_name(&named))).await;
    bed.create(manifests::machine("servers", "c", "o", false, "", by_image(&named))).await;
    let cluster = bed.objects.get("Cluster", "c").await;
    let owner = json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": cluster["metadata"]["uid"]}]);
    let template = json!({
        "apiVersion": manifests::V1BETA1, "kind": "OpenStackMachineTemplate",
        "metadata": {"name": "t", "namespace": "servers", "ownerReferences": owner},
        "spec": {"template": {"spec": by_name(&named)}},
    });
    bed.create([template]).await;

    let machine = bed.machine_ready("i").await;
    by_id_is_as_wanted(&bed, &machine, &given).await;
    let machine = bed.machine_ready("n").await;
    let server = server(&bed, &machine).await;
    assert_eq!((&server["flavor"]["original_name"], &server["image"]["id"]), (&json!(name), &image["id"]));
    assert_eq!(server["server_groups"], json!([given.group]));
    assert_eq!(server["os-extended-volumes:volumes_attached"], json!([]));
    bed.machine_ready("o").await;
    let server = bed.objects.get("OpenStackServer", "o").await;
    assert_eq!(server["status"]["resolved"]["imageID"], given.image.as_str());
    let volume = volume(&bed, "o-root").await;
    assert_eq!(volume["volume_image_metadata"]["image_id"], image["id"]);
    assert_eq!((&volume["size"], &volume["availability_zone"]), (&json!(4), &json!("az2")));

    let told = |object: &Value| !object["status"]["capacity"].is_null() && !object["status"]["nodeInfo"].is_null();
    let template = bed.objects.until("OpenStackMachineTemplate", "t", "it says what machines have", told).await;
    let capacity = json!({"cpu": "3", "memory": "3072Mi", "ephemeral-storage": "5Gi", "storage": "7Gi"});
    assert_eq!(template["status"]["capacity"], capacity);
    assert_eq!(template["status"]["nodeInfo"], json!({"operatingSystem": "linux"}));

    bed.objects.delete("OpenStackMachineTemplate", "t").await;
    bed.objects.delete("Cluster", "c").await;
    bed.objects.gone("Cluster", "c").await;
    remove(cloud, "compute", "/os-server-groups", &[&group]).await;
    bed.nothing_is_left().await;
    authority.delete("image", &tag).await;
    remove(authority, "compute", "/flavors", &[&flavor]).await;
    remove(authority, "block-storage", &kinds, &[&kind]).await;
    bed.end().await;
}

async fn by_id_is_as_wanted(bed: &Bed, machine: &Value, given: &Given) {
    let server = server(bed, machine).await;
    assert_eq!(text(machine, "/spec/providerID"), format!("openstack://RegionOne/{}", text(&server, "/id")));
    assert_eq!((&server["key_name"], &server["config_drive"]), (&json!("of-a-test"), &json!("True")));
    assert_eq!(server["metadata"], json!({"made": "by a test", "second": "2"}));
    assert_eq!(server["OS-EXT-AZ:availability_zone"], "az2");
    assert_eq!(server["server_groups"], json!([given.group]));
    let mut tags: Vec<&str> = server["tags"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    tags.sort_unstable();
    assert_eq!(tags, ["of-a-machine", "of-a-test"]);
    let hints = &server["scheduler_hints"];
    assert_eq!(hints["group"], json!([given.group]));
    // Nova keeps lists of texts.
    for (name, value) in [("text", "a hint"), ("count", "3"), ("yes", "True")] {
        assert_eq!(hints[name], json!([value]), "{name}");
    }
    let data = STANDARD.decode(text(&server, "/OS-EXT-SRV-ATTR:user_data")).unwrap();
    assert_eq!(String::from_utf8(data).unwrap(), manifests::USER_DATA);
    let attached = server["os-extended-volumes:volumes_attached"].as_array().unwrap();
    assert!(
        attached.len() == 3 && attached.iter().all(|volume| volume["delete_on_termination"] == true),
        "{attached:?}"
    );
    for (name, size, kind, zone) in [
        ("i-root", 20, given.volumes.as_str(), "az2"),
        ("i-etcd", 1, given.volumes.as_str(), "az2"),
        ("i-data", 2, "__DEFAULT__", "nova"),
    ] {
        let volume = volume(bed, name).await;
        let is = (&volume["size"], &volume["volume_type"], &volume["availability_zone"]);
        assert_eq!(is, (&json!(size), &json!(kind), &json!(zone)), "{name}");
        assert_eq!(volume["attachments"][0]["server_id"], server["id"], "{name}");
    }
    assert_eq!(volume(bed, "i-root").await["bootable"], "true");
}

/// As an administrator sees it, with what only newer versions of Nova's API say.
async fn server(bed: &Bed, machine: &Value) -> Value {
    let path = format!("/servers/{}", text(machine, "/status/instanceID"));
    bed.project.admin.get_compute("2.100", &path).await["server"].clone()
}

async fn volume(bed: &Bed, name: &str) -> Value {
    let path = format!("/{}/volumes/detail?name={name}", bed.project.cloud.project_id);
    only(&bed.project.cloud, "block-storage", &path, "volumes").await
}

/// What is needed of the OpenStack Resource Controller, which is not here: the kind of its images.
fn orc() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "images.openstack.k-orc.cloud"},
        "spec": {"group": "openstack.k-orc.cloud", "scope": "Namespaced", "names": {"kind": "Image", "plural": "images"}, "versions": [{
            "name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
        }]},
    })
}

fn orc_image(given: &Given) -> Value {
    json!({
        "apiVersion": "openstack.k-orc.cloud/v1alpha1", "kind": "Image", "metadata": {"name": "of-orc", "namespace": "servers"},
        "spec": {}, "status": {"id": given.image, "conditions": [{"type": "Available", "status": "True"}]},
    })
}
