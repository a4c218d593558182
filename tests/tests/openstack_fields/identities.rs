//! Whose credentials are used, in every form in which they may be given.

use capwasm_tests::objects::{Objects, condition, text};
use capwasm_tests::openstack::{self, Access, Bed, Proxy, manifests};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::world::{make, secret};

const SHARED: &str = "shared-credentials";

/// Credentials for some namespaces.
pub fn identity() -> Value {
    json!({
        "secretRef": {"name": "cloud-config", "namespace": SHARED},
        "namespaceSelector": {
            "matchLabels": {"of-a-test": "yes"},
            "matchExpressions": [{"key": "tier", "operator": "In", "values": ["one", "two"]}],
        },
    })
}

/// A cluster by an identity, of as little as there can be.
pub fn cluster(identity: Value) -> Value {
    json!({
        "identityRef": identity, "disableExternalNetwork": true, "managedSubnets": [{"cidr": "10.50.0.0/28"}],
        "disableAPIServerFloatingIP": true, "apiServerFixedIP": "10.50.0.9",
    })
}

/// By a Secret of the cluster's namespace.
pub fn by_secret(name: &str) -> Value {
    json!({"type": "Secret", "name": name, "cloudName": "openstack", "region": "RegionOne"})
}

/// By an OpenStackClusterIdentity.
pub fn by_cluster_identity() -> Value {
    json!({"type": "ClusterIdentity", "name": "shared", "cloudName": "openstack", "region": "RegionOne"})
}

#[tokio::test]
async fn every_form_of_credentials_is_enough_for_a_cluster() {
    let test = "openstack_fields::every_form_of_credentials_is_enough_for_a_cluster";
    let Some(admin) = openstack::real(test) else { return };
    let bed = Bed::real(&admin, "forms").await;
    let (project, cloud) = (&bed.project, &bed.project.cloud);
    let tls = Proxy::start_tls(&project.access.auth_url);
    bed.grant(&[&bed.proxy.origin(), &tls.origin()], json!({"insecureTLS": true})).await;
    let here = |auth: Value| Access { auth_url: bed.proxy.auth_url().to_owned(), auth };
    let by_id = credential(&bed).await;
    let by_name = json!({
        "application_credential_name": "capi", "application_credential_secret": "of-a-test",
        "username": project.name, "user_domain_name": "Default",
    });
    let ids = json!({"user_id": cloud.user_id, "password": text(&project.access.auth, "/password"), "project_id": cloud.project_id});
    let token = json!({"token": cloud.token(), "project_id": cloud.project_id});
    let over_tls = project.access.at(tls.auth_url());
    let forms = [
        ("password", project.access.at(bed.proxy.auth_url()).clouds_yaml(), None),
        ("internal", project.access.at(bed.proxy.auth_url()).clouds_yaml_with(json!({"interface": "internal"})), None),
        ("ids", here(ids).clouds_yaml(), None),
        ("credential-id", by_id.at(bed.proxy.auth_url()).clouds_yaml(), None),
        ("credential-name", here(by_name).clouds_yaml(), None),
        ("token", here(token).clouds_yaml_with(json!({"auth_type": "v3token"})), None),
        ("authority", over_tls.clouds_yaml(), Some(tls.certificate())),
        ("unverified", over_tls.clouds_yaml_with(json!({"verify": false})), None),
    ];
    for (name, clouds, cacert) in &forms {
        secret(&bed, &format!("{name}-config"), clouds, *cacert).await;
        bed.create(manifests::cluster("forms", name, cluster(by_secret(&format!("{name}-config"))))).await;
    }
    for (name, ..) in &forms {
        bed.cluster_ready(name).await;
    }
    // Nobody whom the Secret does not name is trusted.
    secret(&bed, "untrusted-config", &over_tls.clouds_yaml(), None).await;
    bed.create(manifests::cluster("forms", "untrusted", cluster(by_secret("untrusted-config")))).await;
    let told = |object: &Value| condition(object, "OpenStackAuthenticationSucceeded").0 == "False";
    bed.objects.until("OpenStackCluster", "untrusted", "it trusts nobody", told).await;
    for (name, ..) in &forms {
        bed.objects.delete("Cluster", name).await;
    }
    bed.objects.delete("Cluster", "untrusted").await;
    for (name, ..) in &forms {
        bed.objects.gone("Cluster", name).await;
        bed.objects.delete("Secret", &format!("{name}-config")).await;
    }
    // It was never known whether it had anything: credentials that work let it go.
    let trusted = json!({"stringData": {"cacert": tls.certificate()}});
    bed.objects.merge("Secret", "untrusted-config", trusted).await;
    bed.objects.gone("Cluster", "untrusted").await;
    bed.objects.delete("Secret", "untrusted-config").await;
    bed.nothing_is_left().await;
    bed.end().await;
}

#[tokio::test]
async fn a_cluster_identity_serves_the_namespaces_that_it_selects() {
    let test = "openstack_fields::a_cluster_identity_serves_the_namespaces_that_it_selects";
    let Some(admin) = openstack::real(test) else { return };
    let bed = Bed::real(&admin, "selected").await;
    bed.grant(&[&bed.proxy.origin()], json!({"namespaces": [SHARED]})).await;
    let shared = Objects::in_new(bed.objects.client(), SHARED).await;
    let clouds = bed.project.access.at(bed.proxy.auth_url()).clouds_yaml();
    shared.create(&manifests::identity(SHARED, &clouds, None)).await;
    let other = Objects::in_new(bed.objects.client(), "not-selected").await;
    label(&bed, "selected", "two").await;
    label(&bed, "not-selected", "three").await;
    bed.objects
        .create(&json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackClusterIdentity",
            "metadata": {"name": "shared"}, "spec": identity(),
        }))
        .await;
    for objects in [&bed.objects, &other] {
        for object in manifests::cluster(objects.namespace(), "c", cluster(by_cluster_identity())) {
            objects.create(&object).await;
        }
    }
    bed.cluster_ready("c").await;
    let told = |object: &Value| condition(object, "OpenStackAuthenticationSucceeded").1 == "IdentityNotAllowed";
    other.until("OpenStackCluster", "c", "it is not allowed", told).await;
    label(&bed, "not-selected", "one").await;
    // Something that it watches: it need not wait until it would look again.
    other.merge("OpenStackCluster", "c", json!({"metadata": {"annotations": {"of-a-test": "now"}}})).await;
    other.until("OpenStackCluster", "c", "it is allowed", |object| capwasm_tests::objects::is(object, "Ready")).await;
    for objects in [&bed.objects, &other] {
        objects.delete("Cluster", "c").await;
        objects.gone("Cluster", "c").await;
    }
    bed.nothing_is_left().await;
    bed.end().await;
}

/// An application credential, with its user's roles: without them it gets those of a token, in which Keystone (2026.1) now and then
/// has one too many, which it then refuses.
async fn credential(bed: &Bed) -> Access {
    let cloud = &bed.project.cloud;
    let roles = json!([{"name": "member"}, {"name": "load-balancer_member"}]);
    let path = format!("/users/{}/application_credentials", cloud.user_id);
    let fields = json!({"name": "capi", "secret": "of-a-test", "roles": roles});
    let made = make(cloud, "identity", &path, "application_credential", fields).await;
    let auth = json!({"application_credential_id": made["id"], "application_credential_secret": "of-a-test"});
    Access { auth_url: bed.project.access.auth_url.clone(), auth }
}

async fn label(bed: &Bed, namespace: &str, tier: &str) {
    let namespaces: Api<Namespace> = Api::all(bed.objects.client());
    let labels = json!({"metadata": {"labels": {"of-a-test": "yes", "tier": tier}}});
    namespaces.patch(namespace, &PatchParams::default(), &Patch::Merge(labels)).await.unwrap();
}
