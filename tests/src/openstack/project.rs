//! A project of a test's own, so that nobody else's resources are in its lists.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Access, Cloud, shape};
use crate::objects::text;
use crate::wait;

const PASSWORD: &str = "of-a-test";
/// Between two looks at everything: real services have other work to do.
pub const LOOK: Duration = Duration::from_millis(500);

/// A project with one user, who has the roles of a CAPO user.
pub struct Project {
    /// Signed in as the admin.
    pub admin: Cloud,
    /// Signed in as the project's user.
    pub cloud: Cloud,
    /// How its user logs in.
    pub access: Access,
    /// Name of the project and of its user.
    pub name: String,
}

impl Project {
    /// A new one. Its name is made from the test's and something that is never used again.
    pub async fn new(admin: &Access, test: &str) -> Project {
        let name = format!("{test}-{}-{:04x}", std::process::id(), rand::random::<u16>());
        let authority = Cloud::log_in(admin).await;
        let project = json!({"project": {"name": name, "domain_id": "default"}});
        let project = authority.post("identity", "/projects", &project).await;
        let project_id = project["project"]["id"].as_str().expect("a project has an id");
        let user = json!({"user": {"name": name, "password": PASSWORD, "domain_id": "default", "default_project_id": project_id}});
        let user = authority.post("identity", "/users", &user).await;
        let user_id = user["user"]["id"].as_str().expect("a user has an id");
        for role in authority.list("identity", "/roles", "roles").await {
            if role["name"] == "member" || role["name"] == "load-balancer_member" {
                let role = role["id"].as_str().expect("a role has an id");
                let path = format!("/projects/{project_id}/users/{user_id}/roles/{role}");
                authority.put("identity", &path, &Value::Null).await;
            }
        }
        let access = Access::password(&admin.auth_url, &name, PASSWORD, &name);
        Project { admin: authority, cloud: Cloud::log_in(&access).await, access, name }
    }

    /// An application credential of its user: its id and how to log in with it.
    pub async fn application_credential(&self) -> Access {
        let path = format!("/users/{}/application_credentials", self.cloud.user_id);
        let body = json!({"application_credential": {"name": "capi", "secret": "of-a-test"}});
        let made = self.cloud.post("identity", &path, &body).await;
        let auth = json!({
            "application_credential_id": made["application_credential"]["id"],
            "application_credential_secret": "of-a-test",
        });
        Access { auth_url: self.access.auth_url.clone(), auth }
    }

    /// Everything that is in it, as `kind name`, sorted. What every project has from the start is left out.
    pub async fn resources(&self) -> Vec<String> {
        self.all().await.iter().map(|(kind, resource)| name(kind, resource)).collect()
    }

    /// Everything that is in it, in full: without what no two runs have to share, and with names in place of ids.
    pub async fn picture(&self) -> Value {
        let mut all = self.all().await;
        for (_, resource) in all.clone().iter().filter(|(kind, _)| *kind == "pool") {
            let path = format!("/v2/lbaas/pools/{}/members", text(resource, "/id"));
            let members = self.cloud.list("load-balancer", &path, "members").await;
            all.extend(members.into_iter().map(|member| ("member", member)));
        }
        let ids: Vec<(String, String)> =
            all.iter().map(|(kind, resource)| (text(resource, "/id").to_owned(), name(kind, resource))).collect();
        let mut picture: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        for (kind, mut resource) in all {
            let members = resource.as_object_mut().expect("resources are objects");
            // Made of addresses; and null where nothing was changed after it was made.
            for by_chance in ["dns_assignment", "updated_at"] {
                members.remove(by_chance);
            }
            let named = ids.iter().fold(resource.to_string(), |text, (id, name)| text.replace(id, name));
            picture.entry(kind).or_default().push(serde_json::from_str(&named).expect("names have no quotation marks"));
        }
        shape::normalized(&json!(picture))
    }

    /// Everything that is in it with its kind, sorted by kind and name.
    async fn all(&self) -> Vec<(&'static str, Value)> {
        let id = &self.cloud.project_id;
        let mut all = Vec::new();
        for (kind, service, path, key) in [
            ("server", "compute", "/servers/detail".to_owned(), "servers"),
            ("server group", "compute", "/os-server-groups".to_owned(), "server_groups"),
            ("network", "network", format!("/v2.0/networks?project_id={id}"), "networks"),
            ("subnet", "network", format!("/v2.0/subnets?project_id={id}"), "subnets"),
            ("router", "network", format!("/v2.0/routers?project_id={id}"), "routers"),
            ("port", "network", format!("/v2.0/ports?project_id={id}"), "ports"),
            ("trunk", "network", format!("/v2.0/trunks?project_id={id}"), "trunks"),
            ("floating IP", "network", format!("/v2.0/floatingips?project_id={id}"), "floatingips"),
            ("security group", "network", format!("/v2.0/security-groups?project_id={id}"), "security_groups"),
            ("load balancer", "load-balancer", format!("/v2/lbaas/loadbalancers?project_id={id}"), "loadbalancers"),
            ("listener", "load-balancer", format!("/v2/lbaas/listeners?project_id={id}"), "listeners"),
            ("pool", "load-balancer", format!("/v2/lbaas/pools?project_id={id}"), "pools"),
            ("monitor", "load-balancer", format!("/v2/lbaas/healthmonitors?project_id={id}"), "healthmonitors"),
            ("volume", "block-storage", format!("/{id}/volumes/detail"), "volumes"),
        ] {
            let path = if self.cloud.catalog[service].ends_with(id.as_str()) {
                path.replace(&format!("/{id}"), "")
            } else {
                path
            };
            let list = self.cloud.list(service, &path, key).await;
            let is_default = |resource: &Value| kind == "security group" && resource["name"] == "default";
            all.extend(list.into_iter().filter(|one| !is_default(one)).map(|one| (kind, one)));
        }
        all.sort_by_key(|(kind, resource)| name(kind, resource));
        all
    }

    /// How often each `kind name` is there.
    pub async fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for resource in self.resources().await {
            *counts.entry(resource).or_default() += 1;
        }
        counts
    }

    /// Waits until nothing is in it.
    pub async fn empty(&self) {
        wait::until_every(LOOK, &format!("nothing is left in project {}", self.name), async || {
            let left = self.resources().await;
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await;
    }

    /// Removes project and user, which have to be empty.
    pub async fn remove(self) {
        // Neutron's default group stays behind otherwise.
        for group in self.cloud.list("network", "/v2.0/security-groups", "security_groups").await {
            let id = group["id"].as_str().expect("a group has an id");
            self.admin.delete("network", &format!("/v2.0/security-groups/{id}")).await;
        }
        self.admin.delete("identity", &format!("/users/{}", self.cloud.user_id)).await;
        self.admin.delete("identity", &format!("/projects/{}", self.cloud.project_id)).await;
    }
}

/// `kind name`; of what has no name, the address or who it is for.
fn name(kind: &str, resource: &Value) -> String {
    let named = ["/name", "/floating_ip_address", "/device_owner"].map(|pointer| text(resource, pointer));
    format!("{kind} {}", named.into_iter().find(|name| !name.is_empty()).unwrap_or_default())
}
