//! One entry of `clouds.yaml`: how to get a token, and which endpoints to use.

use capwasm_sdk::Problem;
use serde_json::{Map, Value, json};

use super::{Service, yaml};

/// Reason of what is wrong with `clouds.yaml`.
const INVALID: &str = "InvalidCloudsYaml";

/// One cloud of `clouds.yaml`.
#[derive(Clone, PartialEq)]
pub struct Entry {
    /// With its version: `https://…/v3`.
    pub auth_url: String,
    /// `auth` of the body of a request for a token.
    pub auth: Value,
    /// Empty when the entry names none.
    pub region: String,
    /// Of the catalog: `public`, `internal` or `admin`.
    pub interface: String,
    /// Whether who serves TLS is verified.
    pub verify: bool,
    /// A CA that stands in the entry itself.
    pub ca: Option<String>,
    /// Endpoints to use instead of the catalog's.
    overrides: Map<String, Value>,
}

impl Entry {
    /// The entry `cloud` of a `clouds.yaml`.
    ///
    /// # Errors
    /// Invalid; messages name fields and never quote secrets.
    pub fn read(clouds: &[u8], cloud: &str) -> Result<Entry, Problem> {
        let text = std::str::from_utf8(clouds).map_err(|_| invalid("clouds.yaml is not UTF-8"))?;
        let document = yaml::parse(text).map_err(|why| invalid(format!("clouds.yaml: {why}")))?;
        let entry = document.get("clouds").and_then(|clouds| clouds.get(cloud)).and_then(Value::as_object);
        let entry = entry.ok_or_else(|| invalid(format!("clouds.yaml has no clouds.{cloud}")))?;
        let fields = Fields { cloud, entry, auth: entry.get("auth").and_then(Value::as_object) };
        let verify = !is_false(fields.text("verify")) && !is_true(fields.text("insecure"));
        let interface = fields.text("interface").or(fields.text("endpoint_type")).unwrap_or("public");
        Ok(Entry {
            auth_url: identity_root(fields.wanted("auth_url")?),
            auth: fields.authentication()?,
            region: fields.region().to_owned(),
            interface: interface.strip_suffix("URL").unwrap_or(interface).to_owned(),
            verify,
            ca: fields.text("cacert").filter(|ca| ca.contains("-----BEGIN")).map(str::to_owned),
            overrides: entry.clone().into_iter().filter(|(key, _)| key.ends_with("_endpoint_override")).collect(),
        })
    }

    /// The endpoint that the entry names for a service.
    pub fn endpoint(&self, service: Service) -> Option<&str> {
        let of = |kind: &str| self.overrides.get(&format!("{}_endpoint_override", kind.replace('-', "_")))?.as_str();
        service.types().iter().find_map(|kind| of(kind))
    }
}

/// An entry's fields and those of its `auth`.
struct Fields<'a> {
    cloud: &'a str,
    entry: &'a Map<String, Value>,
    auth: Option<&'a Map<String, Value>>,
}

impl<'a> Fields<'a> {
    /// A field of `auth`, or of the entry itself, where some tools look as well.
    fn text(&self, name: &str) -> Option<&'a str> {
        let of = |fields: &'a Map<String, Value>| fields.get(name)?.as_str().filter(|text| !text.is_empty());
        self.auth.and_then(of).or_else(|| of(self.entry))
    }

    fn wanted(&self, name: &str) -> Result<&'a str, Problem> {
        self.text(name).ok_or_else(|| self.missing(name))
    }

    fn missing(&self, what: &str) -> Problem {
        invalid(format!("clouds.yaml: clouds.{}.auth needs {what}", self.cloud))
    }

    fn region(&self) -> &'a str {
        let first = || match self.entry.get("regions")?.as_array()?.first()? {
            Value::String(name) => Some(name.as_str()),
            region => region.get("name")?.as_str(),
        };
        self.text("region_name").or_else(first).unwrap_or_default()
    }

    /// The `auth` object of Keystone v3, by `auth_type` or, without one, by what is there.
    fn authentication(&self) -> Result<Value, Problem> {
        match self.text("auth_type") {
            Some("password" | "v3password") => self.password(),
            Some("token" | "v3token") => self.token(),
            Some("v3applicationcredential") => self.application_credential(),
            Some(other) => Err(invalid(format!(
                "clouds.yaml: clouds.{}.auth_type is {other:?}: use password, token or v3applicationcredential",
                self.cloud
            ))),
            None if self.text("application_credential_secret").is_some() => self.application_credential(),
            None if self.text("token").is_some() => self.token(),
            None => self.password(),
        }
    }

    fn password(&self) -> Result<Value, Problem> {
        let mut user = self.user()?;
        user.insert("password".to_owned(), self.wanted("password")?.into());
        Ok(self.scoped(json!({"identity": {"methods": ["password"], "password": {"user": user}}})))
    }

    fn token(&self) -> Result<Value, Problem> {
        let token = self.wanted("token")?;
        Ok(self.scoped(json!({"identity": {"methods": ["token"], "token": {"id": token}}})))
    }

    /// Its project is part of it, so that it has no scope.
    fn application_credential(&self) -> Result<Value, Problem> {
        let mut credential = Map::new();
        match (self.text("application_credential_id"), self.text("application_credential_name")) {
            (Some(id), _) => {
                credential.insert("id".to_owned(), id.into());
            }
            (None, Some(name)) => {
                credential.insert("name".to_owned(), name.into());
                credential.insert("user".to_owned(), self.user()?.into());
            }
            (None, None) => return Err(self.missing("application_credential_id or application_credential_name")),
        }
        credential.insert("secret".to_owned(), self.wanted("application_credential_secret")?.into());
        Ok(json!({"identity": {"methods": ["application_credential"], "application_credential": credential}}))
    }

    fn user(&self) -> Result<Map<String, Value>, Problem> {
        let mut user = Map::new();
        match (self.text("user_id"), self.text("username")) {
            (Some(id), _) => {
                user.insert("id".to_owned(), id.into());
            }
            (None, Some(name)) => {
                user.insert("name".to_owned(), name.into());
                let domain = self.domain("user").ok_or_else(|| {
                    self.missing("user_domain_name or user_domain_id, because username is unique in its domain only")
                })?;
                user.insert("domain".to_owned(), domain);
            }
            (None, None) => return Err(self.missing("username or user_id")),
        }
        Ok(user)
    }

    /// Of the user or project: its own, the common one, or the default.
    fn domain(&self, of: &str) -> Option<Value> {
        let id = self.text(&format!("{of}_domain_id"));
        let name = self.text(&format!("{of}_domain_name"));
        match (id, name) {
            (Some(id), _) => Some(json!({"id": id})),
            (None, Some(name)) => Some(json!({"name": name})),
            (None, None) => match (self.text("domain_id"), self.text("domain_name"), self.text("default_domain")) {
                (Some(id), ..) | (None, None, Some(id)) => Some(json!({"id": id})),
                (None, Some(name), _) => Some(json!({"name": name})),
                (None, None, None) => None,
            },
        }
    }

    /// With the project as scope. Without one Keystone takes the user's default project, if there is any.
    fn scoped(&self, mut auth: Value) -> Value {
        let id = self.text("project_id").or(self.text("tenant_id"));
        let name = self.text("project_name").or(self.text("tenant_name"));
        let project = match (id, name) {
            (Some(id), _) => json!({"id": id}),
            (None, Some(name)) => {
                let domain = self.domain("project").or_else(|| self.domain("user"));
                domain.map_or_else(|| json!({"name": name}), |domain| json!({"name": name, "domain": domain}))
            }
            (None, None) => return auth,
        };
        if let Some(auth) = auth.as_object_mut() {
            auth.insert("scope".to_owned(), json!({"project": project}));
        }
        auth
    }
}

/// Keystone's root, with the version that is spoken.
fn identity_root(auth_url: &str) -> String {
    let root = auth_url.trim_end_matches('/');
    if root.ends_with("/v3") { root.to_owned() } else { format!("{root}/v3") }
}

fn is_false(text: Option<&str>) -> bool {
    text.is_some_and(|text| ["false", "no", "off", "0"].iter().any(|word| text.eq_ignore_ascii_case(word)))
}

fn is_true(text: Option<&str>) -> bool {
    text.is_some_and(|text| ["true", "yes", "on", "1"].iter().any(|word| text.eq_ignore_ascii_case(word)))
}

fn invalid(message: impl Into<String>) -> Problem {
    Problem::invalid(INVALID, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn read(auth: &str, rest: &str) -> Result<Entry, Problem> {
        let auth: String = auth.split(' ').map(|field| format!("      {}\n", field.replacen(':', ": ", 1))).collect();
        let rest: String =
            rest.split_whitespace().map(|field| format!("    {}\n", field.replacen(':', ": ", 1))).collect();
        Entry::read(format!("clouds:\n  c:\n    auth:\n      auth_url: http://k/\n{auth}{rest}").as_bytes(), "c")
    }

    #[test]
    fn every_way_to_authenticate_becomes_its_request() {
        let password = |user: Value| json!({"methods": ["password"], "password": {"user": user}});
        let credential =
            |credential: Value| json!({"methods": ["application_credential"], "application_credential": credential});
        let by_name = |domain: Value| password(json!({"name": "u", "domain": domain, "password": "p"}));
        let table = [
            (
                "username:u password:p user_domain_name:D project_name:x project_domain_id:pd",
                "",
                by_name(json!({"name": "D"})),
                json!({"project": {"name": "x", "domain": {"id": "pd"}}}),
            ),
            (
                "username:u password:p user_domain_id:d project_id:x",
                "auth_type:v3password",
                by_name(json!({"id": "d"})),
                json!({"project": {"id": "x"}}),
            ),
            (
                "username:u password:p domain_name:D project_name:x",
                "auth_type:password",
                by_name(json!({"name": "D"})),
                json!({"project": {"name": "x", "domain": {"name": "D"}}}),
            ),
            (
                "username:u password:p default_domain:default tenant_name:x",
                "",
                by_name(json!({"id": "default"})),
                json!({"project": {"name": "x", "domain": {"id": "default"}}}),
            ),
            (
                "username:u password:p user_domain_name:D project_name:x",
                "",
                by_name(json!({"name": "D"})),
                json!({"project": {"name": "x", "domain": {"name": "D"}}}),
            ),
            ("user_id:u password:p", "", password(json!({"id": "u", "password": "p"})), Value::Null),
            (
                "token:t project_id:x",
                "auth_type:v3token",
                json!({"methods": ["token"], "token": {"id": "t"}}),
                json!({"project": {"id": "x"}}),
            ),
            ("token:t", "auth_type:token", json!({"methods": ["token"], "token": {"id": "t"}}), Value::Null),
            (
                "application_credential_id:a application_credential_secret:s",
                "auth_type:v3applicationcredential",
                credential(json!({"id": "a", "secret": "s"})),
                Value::Null,
            ),
            (
                "application_credential_name:n username:u user_domain_name:D application_credential_secret:s",
                "",
                credential(json!({"name": "n", "secret": "s", "user": {"name": "u", "domain": {"name": "D"}}})),
                Value::Null,
            ),
            (
                "application_credential_name:n user_id:u application_credential_secret:s project_id:ignored",
                "",
                credential(json!({"name": "n", "secret": "s", "user": {"id": "u"}})),
                Value::Null,
            ),
        ];
        for (auth, rest, identity, scope) in table {
            let entry = read(auth, rest).unwrap();
            assert_eq!((&entry.auth["identity"], &entry.auth["scope"]), (&identity, &scope), "{auth}");
        }
    }

    #[test]
    fn what_is_missing_or_unknown_is_named_and_no_secret_is_quoted() {
        for (auth, rest, named) in [
            ("username:u user_domain_name:D", "", "password"),
            ("password:hunter2", "", "username or user_id"),
            ("username:u password:hunter2", "", "user_domain_name"),
            ("token:hunter2", "auth_type:v3oidcpassword", "v3oidcpassword"),
            ("application_credential_secret:hunter2", "", "application_credential_id"),
            ("application_credential_id:a", "auth_type:v3applicationcredential", "application_credential_secret"),
        ] {
            let Err(problem) = read(auth, rest) else { panic!("{auth} is accepted") };
            assert!(problem.message.contains(named) && !problem.message.contains("hunter2"), "{}", problem.message);
        }
        let other = Entry::read(b"clouds: {a: {}}", "c").err().unwrap();
        assert!(other.message.contains("clouds.c"), "{}", other.message);
        assert!(Entry::read(b"\xff", "c").is_err() && Entry::read(b"clouds: [", "c").is_err());
    }

    #[test]
    fn region_interface_verification_and_endpoints_have_their_usual_spellings() {
        let entry = read("user_id:u password:p", "").unwrap();
        assert_eq!((entry.auth_url.as_str(), entry.region.as_str()), ("http://k/v3", ""));
        assert_eq!((entry.interface.as_str(), entry.verify, entry.ca), ("public", true, None));
        let entry =
            read("user_id:u password:p", "region_name:R regions:[A,B] interface:internal verify:False").unwrap();
        assert_eq!((entry.region.as_str(), entry.interface.as_str(), entry.verify), ("R", "internal", false));
        let entry = read("user_id:u password:p", "regions:[A,B] endpoint_type:adminURL insecure:true").unwrap();
        assert_eq!((entry.region.as_str(), entry.interface.as_str(), entry.verify), ("A", "admin", false));
        let overrides = "compute_endpoint_override:http://n/v2.1 block_storage_endpoint_override:http://c/v3/p \
                         load_balancer_endpoint_override:http://o";
        let entry = read("user_id:u password:p", overrides).unwrap();
        assert_eq!(entry.endpoint(Service::Compute), Some("http://n/v2.1"));
        assert_eq!(entry.endpoint(Service::Volume), Some("http://c/v3/p"));
        assert_eq!(entry.endpoint(Service::LoadBalancer), Some("http://o"));
        assert_eq!(entry.endpoint(Service::Image), None);
        let named = b"clouds: {c: {auth: {auth_url: u, user_id: u, password: p}, regions: [{name: N}, M]}}";
        assert_eq!(Entry::read(named, "c").unwrap().region, "N");
        for (given, root) in
            [("https://k:5000/v3/", "https://k:5000/v3"), ("https://k/identity", "https://k/identity/v3")]
        {
            assert_eq!(identity_root(given), root);
        }
    }
}
