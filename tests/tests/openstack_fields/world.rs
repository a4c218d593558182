//! What the tests here share: resources that a user made before, and short ways to ask the services.

use capwasm_tests::objects::text;
use capwasm_tests::openstack::{Access, Bed, Cloud, manifests};
use capwasm_tests::wait;
use http::Method;
use serde_json::{Value, json};

/// Secret of [`administrator`]'s credentials.
const ADMINISTRATOR: &str = "administrator-config";

pub fn administrator_ref() -> Value {
    json!({"name": ADMINISTRATOR, "cloudName": "openstack", "region": "RegionOne"})
}

/// `spec` of a machine with more fields.
pub fn machine_spec(more: Value) -> Value {
    with(manifests::machine_spec(), more)
}

/// `base` with the members of `more`.
pub fn with(mut base: Value, more: Value) -> Value {
    for (key, value) in more.as_object().expect("an object") {
        base[key] = value.clone();
    }
    base
}

/// Makes a resource and returns it.
pub async fn make(cloud: &Cloud, service: &str, path: &str, kind: &str, fields: Value) -> Value {
    cloud.post(service, path, &json!({kind: fields})).await[kind].clone()
}

/// Makes a resource of Neutron with tags, and returns it with them.
pub async fn tagged(cloud: &Cloud, kind: &str, fields: Value, tags: &[&str]) -> Value {
    let many = format!("{kind}s").replace('-', "_");
    let path = format!("/v2.0/{}", many.replace('_', "-"));
    let made = make(cloud, "network", &path, &kind.replace('-', "_"), fields).await;
    let path = format!("{path}/{}", text(&made, "/id"));
    if !tags.is_empty() {
        cloud.put("network", &format!("{path}/tags"), &json!({"tags": tags})).await;
    }
    cloud.get("network", &path).await[kind.replace('-', "_")].clone()
}

/// The only one that is listed.
pub async fn only(cloud: &Cloud, service: &str, path: &str, key: &str) -> Value {
    let list = cloud.list(service, path, key).await;
    assert_eq!(list.len(), 1, "{path}: {list:?}");
    list[0].clone()
}

/// The only resource of Neutron (`networks`, `floatingips`, …) that matches a query.
pub async fn neutron(bed: &Bed, many: &str, query: &str) -> Value {
    let path = format!("/v2.0/{}?project_id={}&{query}", many.replace('_', "-"), bed.project.cloud.project_id);
    only(&bed.project.cloud, "network", &path, many).await
}

/// The only resource of Octavia (`loadbalancers`, `listeners`, …) that has a name.
pub async fn octavia(bed: &Bed, many: &str, name: &str) -> Value {
    only(&bed.project.cloud, "load-balancer", &format!("/v2/lbaas/{many}?name={name}"), many).await
}

/// The only member of a pool, when it has come: the cluster makes it after the machine is ready.
pub async fn member(bed: &Bed, pool: &Value) -> Value {
    let path = format!("/v2/lbaas/pools/{}/members", text(pool, "/id"));
    wait::until("the pool has one member", async || {
        let members = bed.project.cloud.list("load-balancer", &path, "members").await;
        match members.as_slice() {
            [member] => Ok(member.clone()),
            other => Err(format!("{other:?}")),
        }
    })
    .await
}

pub async fn public(cloud: &Cloud) -> Value {
    only(cloud, "network", "/v2.0/networks?name=public", "networks").await
}

/// A free address of the external network, which stays the project's.
pub async fn floating_ip(bed: &Bed, description: &str) -> Value {
    let network = public(&bed.project.cloud).await;
    let fields = json!({"floating_network_id": network["id"], "description": description});
    tagged(&bed.project.cloud, "floatingip", fields, &["kept"]).await
}

/// Takes away what a test made before.
pub async fn remove(cloud: &Cloud, service: &str, path: &str, resources: &[&Value]) {
    for resource in resources {
        cloud.delete(service, &format!("{path}/{}", text(resource, "/id"))).await;
    }
}

/// A Secret with the credentials of an administrator in the test's own project: some fields of Neutron are theirs
/// alone, or those of services.
pub async fn administrator(bed: &Bed, admin: &Access) {
    let (authority, project) = (&bed.project.admin, &bed.project.cloud.project_id);
    for role in authority.list("identity", "/roles", "roles").await {
        if ["admin", "member", "service", "load-balancer_admin"].contains(&text(&role, "/name")) {
            let path = format!("/projects/{project}/users/{}/roles/{}", authority.user_id, text(&role, "/id"));
            authority.put("identity", &path, &Value::Null).await;
        }
    }
    let mut access = admin.at(bed.proxy.auth_url());
    access.auth["project_name"] = bed.project.name.clone().into();
    secret(bed, ADMINISTRATOR, &access.clouds_yaml(), None).await;
}

/// The same as of the [`Bed`], after the credentials of [`administrator`] have gone.
pub async fn nothing_is_left(bed: &Bed) {
    bed.objects.delete("Secret", ADMINISTRATOR).await;
    bed.nothing_is_left().await;
}

/// A Secret with credentials, in the namespace of the test.
pub async fn secret(bed: &Bed, name: &str, clouds_yaml: &str, cacert: Option<&str>) {
    let mut secret = manifests::identity(bed.objects.namespace(), clouds_yaml, cacert);
    secret["metadata"]["name"] = name.into();
    bed.objects.create(&secret).await;
}

/// A resource of Neutron as it was made, without what changes whenever somebody uses it.
pub async fn as_it_is(cloud: &Cloud, many: &str, kind: &str, resource: &Value) -> Value {
    let path = format!("/v2.0/{}/{}", many.replace('_', "-"), text(resource, "/id"));
    let mut found = cloud.get("network", &path).await[kind].clone();
    for passing in ["updated_at", "revision_number", "status"] {
        found.as_object_mut().expect("an object").remove(passing);
    }
    found
}

/// Writes to networks, subnets and routers, as `METHOD path`, but for the interfaces of a router.
pub fn writes_to_networks(bed: &Bed) -> Vec<String> {
    let is_one = |path: &str| ["/networks", "/subnets", "/routers"].iter().any(|kind| path.contains(kind));
    let calls =
        bed.proxy.calls().into_iter().filter(|call| {
            call.method != Method::GET && is_one(&call.path) && !call.path.ends_with("_router_interface")
        });
    calls.map(|call| format!("{} {}", call.method, call.path)).collect()
}
