//! How to log in, as `clouds.yaml` says it.

use serde_json::{Value, json};

/// One cloud of a `clouds.yaml`.
#[derive(Clone, Debug)]
pub struct Access {
    /// URL of Keystone, which ends in `/v3`.
    pub auth_url: String,
    /// The member `auth` without the URL.
    pub auth: Value,
}

impl Access {
    /// The cloud of this name; panics when there is none.
    pub fn of(clouds_yaml: &str, name: &str) -> Access {
        let clouds: Value = serde_saphyr::from_str(clouds_yaml).expect("clouds.yaml is YAML");
        let mut auth = clouds["clouds"][name]["auth"].clone();
        let auth_url = auth["auth_url"].as_str().unwrap_or_else(|| panic!("there is no cloud {name}")).to_owned();
        auth.as_object_mut().expect("auth is a map").remove("auth_url");
        Access { auth_url, auth }
    }

    /// By password, in the default domain.
    pub fn password(auth_url: &str, user: &str, password: &str, project: &str) -> Access {
        let auth = json!({
            "username": user, "password": password, "project_name": project,
            "user_domain_name": "Default", "project_domain_name": "Default",
        });
        Access { auth_url: auth_url.to_owned(), auth }
    }

    /// The same through another address.
    pub fn at(&self, auth_url: &str) -> Access {
        Access { auth_url: auth_url.to_owned(), auth: self.auth.clone() }
    }

    /// `clouds.yaml` with this as the cloud `openstack`.
    pub fn clouds_yaml(&self) -> String {
        self.clouds_yaml_with(json!({}))
    }

    /// The same with more members of the cloud.
    pub fn clouds_yaml_with(&self, more: Value) -> String {
        let mut auth = self.auth.clone();
        auth["auth_url"] = self.auth_url.clone().into();
        let mut cloud =
            json!({"auth": auth, "region_name": "RegionOne", "interface": "public", "identity_api_version": 3});
        if auth.get("application_credential_secret").is_some() {
            cloud["auth_type"] = "v3applicationcredential".into();
        }
        for (key, value) in more.as_object().into_iter().flatten() {
            cloud[key] = value.clone();
        }
        // JSON is YAML.
        json!({"clouds": {"openstack": cloud}}).to_string()
    }

    /// Body of `POST /v3/auth/tokens`.
    pub fn request(&self) -> Value {
        let text = |name: &str| self.auth[name].as_str().unwrap_or_default();
        if self.auth.get("application_credential_id").is_some() {
            return json!({"auth": {"identity": {"methods": ["application_credential"], "application_credential": {
                "id": text("application_credential_id"), "secret": text("application_credential_secret"),
            }}}});
        }
        let domain = json!({"id": "default"});
        json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user": {
                "name": text("username"), "domain": domain, "password": text("password"),
            }}},
            "scope": {"project": {"name": text("project_name"), "domain": domain}},
        }})
    }
}
