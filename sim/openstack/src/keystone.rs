//! Keystone v3: tokens, the catalog, and as much of projects, users and application credentials as tests need.

use std::collections::{BTreeSet, HashMap};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::answer::{Answer, Outcome, Service};
use super::cloud::{Cloud, Scope, State, new_id, plain_id};
use super::request::Request;
use super::table::{Table, shown, text};

pub(super) const REGION: &str = "RegionOne";
/// Domain of all users and projects.
const DOMAIN: &str = "default";
const ROLES: [&str; 4] = ["admin", "member", "reader", "load-balancer_member"];

#[derive(Default)]
pub(super) struct Identity {
    pub projects: Table,
    pub users: Table,
    pub credentials: Table,
    /// Roles by user and project.
    grants: HashMap<(String, String), Vec<String>>,
    tokens: HashMap<String, Token>,
    /// Time that stands still; without one it passes.
    pub clock: Option<Timestamp>,
    /// Types of services that the catalog does not have.
    pub absent: BTreeSet<String>,
}

#[derive(Debug, Clone)]
struct Token {
    user: String,
    project: Option<String>,
    methods: Vec<String>,
    credential: Option<String>,
    expires: Timestamp,
}

impl Identity {
    /// Adds a project, and returns its id.
    pub fn add_project(&mut self, name: &str) -> String {
        let id = plain_id();
        self.projects.insert(json!({
            "id": id, "name": name, "domain_id": DOMAIN, "description": "", "enabled": true, "parent_id": DOMAIN,
            "is_domain": false, "tags": [], "options": {},
        }));
        id
    }

    /// Adds a project of this id, with a member and an application credential of this id and secret.
    pub fn add_tenant(&mut self, project: &str, credential: &str, secret: &str) {
        let name = self.add_project(project);
        let mut made = self.projects.remove(&name).unwrap_or_default();
        made["id"] = json!(project);
        self.projects.insert(made);
        let user = self.add_user(project, secret, project);
        for role in ["load-balancer_member", "member", "reader"] {
            self.grant(&user, project, role);
        }
        let id = self.add_credential(&user, project, credential, secret);
        let mut made = self.credentials.remove(&id).unwrap_or_default();
        made["id"] = json!(credential);
        self.credentials.insert(made);
    }

    /// Makes every token invalid.
    pub fn revoke_all(&mut self) {
        self.tokens.clear();
    }

    fn now(&self) -> Timestamp {
        self.clock.unwrap_or_else(Timestamp::now)
    }

    /// Adds a user, and returns its id.
    pub fn add_user(&mut self, name: &str, password: &str, project: &str) -> String {
        let id = plain_id();
        self.users.insert(json!({
            "id": id, "name": name, "domain_id": DOMAIN, "enabled": true, "default_project_id": project,
            "password_expires_at": null, "options": {}, "_password": password,
        }));
        id
    }

    /// Gives a user a role in a project.
    pub fn grant(&mut self, user: &str, project: &str, role: &str) {
        let roles = self.grants.entry((user.to_owned(), project.to_owned())).or_default();
        if !roles.iter().any(|given| given == role) {
            roles.push(role.to_owned());
        }
    }

    /// Adds an application credential, and returns its id.
    pub fn add_credential(&mut self, user: &str, project: &str, name: &str, secret: &str) -> String {
        let id = plain_id();
        let roles: Vec<Value> = self.roles(user, project).into_iter().map(|role| role_document(&role)).collect();
        self.credentials.insert(json!({
            "id": id, "name": name, "description": null, "user_id": user, "project_id": project, "system": null,
            "expires_at": null, "unrestricted": null, "roles": roles, "_secret": secret,
        }));
        id
    }

    fn roles(&self, user: &str, project: &str) -> Vec<String> {
        self.grants.get(&(user.to_owned(), project.to_owned())).cloned().unwrap_or_default()
    }

    /// Who a valid token is of.
    pub fn scope(&self, token: &str) -> Option<Scope> {
        let token = self.valid(token)?;
        let project = token.project.clone().unwrap_or_default();
        let admin = self.roles(&token.user, &project).iter().any(|role| role == "admin");
        Some(Scope { user: token.user.clone(), project, admin })
    }

    fn valid(&self, token: &str) -> Option<&Token> {
        let token = self.tokens.get(token).filter(|token| token.expires > self.now())?;
        // A credential that is gone takes its tokens along.
        let lives = token.credential.as_ref().is_none_or(|id| self.credentials.get(id).is_some());
        lives.then_some(token)
    }

    fn user(&self, given: &Value) -> Option<&Value> {
        match given["id"].as_str() {
            Some(id) => self.users.get(id),
            None => {
                let in_domain = given["domain"]["id"] == DOMAIN || given["domain"]["name"] == "Default";
                self.users.iter().find(|user| in_domain && user["name"] == given["name"])
            }
        }
    }
}

fn role_document(name: &str) -> Value {
    let options = if matches!(name, "admin" | "member" | "reader") { json!({ "immutable": true }) } else { json!({}) };
    json!({ "id": role_id(name), "name": name, "domain_id": null, "description": null, "options": options })
}

/// A role's id: always the same, so that no table of roles is needed.
fn role_id(name: &str) -> String {
    let position = ROLES.iter().position(|role| *role == name).unwrap_or(ROLES.len());
    format!("{position:032x}")
}

fn stamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string()
}

fn refused(status: u16, message: &str) -> Answer {
    Answer::failure(Service::Keystone, status, "", message)
}

fn malformed(what: &str) -> Answer {
    refused(
        400,
        &format!(
            "{what} The server could not comply with the request since it is either malformed or otherwise incorrect. The client is assumed to be in error."
        ),
    )
}

fn missing(what: &str, id: &str) -> Answer {
    refused(404, &format!("Could not find {what}: {id}."))
}

pub(super) fn answer(cloud: &Cloud, request: &Request) -> Answer {
    let outcome = cloud.with(|state| route(cloud, state, request));
    outcome.unwrap_or_else(|refusal| refusal).with("vary", "X-Auth-Token")
}

fn route(cloud: &Cloud, state: &mut State, request: &Request) -> Outcome {
    let (method, segments) = request.route();
    let root = format!("{}/identity", cloud.base);
    let version = || {
        json!({
            "id": "v3.14", "status": "stable", "updated": "2020-04-07T00:00:00Z",
            "links": [{ "rel": "self", "href": format!("{root}/v3/") }],
            "media-types": [{ "base": "application/json", "type": "application/vnd.openstack.identity-v3+json" }],
        })
    };
    match (method, segments.as_slice()) {
        ("GET", []) => {
            let body = json!({ "versions": { "values": [version()] } });
            return Ok(Answer::json(300, &body).with("location", format!("{root}/v3/")));
        }
        ("GET", ["v3"]) => return Ok(Answer::json(200, &json!({ "version": version() }))),
        ("POST", ["v3", "auth", "tokens"]) => return issue(cloud, state, request),
        _ => {}
    }
    let unauthorized = || Answer::unauthorized(Service::Keystone, &format!("{root}/v3"));
    let token = request.header("x-auth-token").unwrap_or_default();
    let scope = state.identity.scope(token).ok_or_else(unauthorized)?;
    let subject = request.header("x-subject-token").unwrap_or_default();
    match (method, segments.as_slice()) {
        ("GET" | "HEAD", ["v3", "auth", "tokens"]) => {
            let found = state.identity.valid(subject).cloned();
            let found = found.ok_or_else(|| refused(404, "Failed to validate token"))?;
            let body = json!({ "token": document(cloud, state, &found, request.value("nocatalog").is_none()) });
            Ok(Answer::json(200, &body).with("x-subject-token", subject))
        }
        ("DELETE", ["v3", "auth", "tokens"]) => {
            let found = state.identity.tokens.remove(subject);
            found.map(|_| Answer::empty(204)).ok_or_else(|| refused(404, "Failed to validate token"))
        }
        ("GET", ["v3", "auth", "catalog"]) => {
            Ok(Answer::json(200, &json!({ "catalog": catalog(cloud, &state.identity) })))
        }
        ("GET", ["v3", "auth", "projects"]) => {
            let granted = |project: &Value| !state.identity.roles(&scope.user, text(project, "id")).is_empty();
            let projects: Vec<Value> =
                state.identity.projects.iter().filter(|project| granted(project)).map(|p| shown(p, &[])).collect();
            Ok(Answer::json(200, &json!({ "projects": projects, "links": {} })))
        }
        (_, ["v3", "users", user, "application_credentials", rest @ ..]) => {
            credentials(state, &scope, request, user, rest)
        }
        (_, ["v3", rest @ ..]) if scope.admin => administer(state, request, rest),
        (_, ["v3", ..]) => Err(refused(403, "You are not authorized to perform the requested action.")),
        _ => Err(refused(404, "Not Found")),
    }
}

/// `POST /v3/auth/tokens`.
fn issue(cloud: &Cloud, state: &mut State, request: &Request) -> Outcome {
    let unauthorized = || Answer::unauthorized(Service::Keystone, &format!("{}/identity/v3", cloud.base));
    let body = request.json().ok_or_else(|| malformed("Expecting to find valid JSON in request body."))?;
    let auth = &body["auth"];
    if !auth.is_object() {
        return Err(malformed("Expecting to find auth in request body."));
    }
    let identity = &auth["identity"];
    let methods: Vec<String> = super::table::texts(identity, "methods").map(str::to_owned).collect();
    let mut scope = auth["scope"]["project"].clone();
    let (user, credential) = match methods.first().map(String::as_str) {
        Some("password") => {
            let given = &identity["password"]["user"];
            let user = state.identity.user(given).filter(|user| user["_password"] == given["password"]);
            (text(user.ok_or_else(unauthorized)?, "id").to_owned(), None)
        }
        Some("token") => {
            let id = text(&identity["token"], "id");
            let token = state.identity.valid(id);
            let token = token.ok_or_else(|| refused(404, "Could not recognize Fernet token"))?;
            if scope.is_null() {
                scope = json!({ "id": token.project });
            }
            (token.user.clone(), token.credential.clone())
        }
        Some("application_credential") => {
            let given = &identity["application_credential"];
            let found = match given["id"].as_str() {
                Some(id) => {
                    let gone = || missing("Application Credential", id);
                    state.identity.credentials.get(id).ok_or_else(gone)?
                }
                None => {
                    let user = state.identity.user(&given["user"]).ok_or_else(unauthorized)?;
                    let named = |found: &&Value| found["user_id"] == user["id"] && found["name"] == given["name"];
                    state.identity.credentials.iter().find(named).ok_or_else(unauthorized)?
                }
            };
            if found["_secret"] != given["secret"] {
                return Err(unauthorized());
            }
            if !auth["scope"].is_null() && auth["scope"]["project"]["id"] != found["project_id"] {
                return Err(unauthorized());
            }
            scope = json!({ "id": found["project_id"] });
            (text(found, "user_id").to_owned(), Some(text(found, "id").to_owned()))
        }
        _ => return Err(unauthorized()),
    };
    let project = match &scope {
        Value::Null => state.identity.users.get(&user).and_then(|user| user["default_project_id"].as_str()),
        given => {
            let named = |project: &&Value| match given["id"].as_str() {
                Some(id) => project["id"] == id,
                None => project["name"] == given["name"],
            };
            Some(text(state.identity.projects.iter().find(named).ok_or_else(unauthorized)?, "id"))
        }
    };
    let project = project.filter(|project| !project.is_empty()).map(str::to_owned);
    if project.as_ref().is_some_and(|project| state.identity.roles(&user, project).is_empty()) {
        return Err(unauthorized());
    }
    let lifetime = SignedDuration::try_from(cloud.token_lifetime).unwrap_or(SignedDuration::from_hours(1));
    let token = Token { user, project, methods, credential, expires: state.identity.now() + lifetime };
    let secret = format!("gAAAAA{}{}", plain_id(), plain_id());
    let body = json!({ "token": document(cloud, state, &token, request.value("nocatalog").is_none()) });
    state.identity.tokens.insert(secret.clone(), token);
    Ok(Answer::json(201, &body).with("x-subject-token", secret))
}

fn document(cloud: &Cloud, state: &State, token: &Token, with_catalog: bool) -> Value {
    let identity = &state.identity;
    let domain = json!({ "id": DOMAIN, "name": "Default" });
    let user = identity.users.get(&token.user).cloned().unwrap_or_default();
    let mut found = json!({
        "methods": token.methods,
        "user": { "domain": domain, "id": token.user, "name": user["name"], "password_expires_at": null },
        "audit_ids": [plain_id().get(..22)],
        "expires_at": stamp(token.expires), "issued_at": stamp(identity.now()),
    });
    if let Some(project) = token.project.as_ref().and_then(|id| identity.projects.get(id)) {
        let roles = identity.roles(&token.user, text(project, "id"));
        found["project"] = json!({ "domain": domain, "id": project["id"], "name": project["name"] });
        found["is_domain"] = json!(false);
        found["roles"] = roles.iter().map(|role| json!({ "id": role_id(role), "name": role })).collect();
        if with_catalog {
            found["catalog"] = catalog(cloud, identity);
        }
    }
    if let Some(credential) = token.credential.as_ref().and_then(|id| identity.credentials.get(id)) {
        found["application_credential"] =
            json!({ "id": credential["id"], "name": credential["name"], "restricted": true });
    }
    found
}

fn catalog(cloud: &Cloud, identity: &Identity) -> Value {
    let services = [
        ("identity", "keystone", "/identity/v3"),
        ("compute", "nova", "/compute/v2.1"),
        ("image", "glance", "/image"),
        ("network", "neutron", "/networking"),
        ("load-balancer", "octavia", "/load-balancer"),
        ("block-storage", "cinder", "/volume/v3"),
        ("volumev3", "cinderv3", "/volume/v3"),
    ];
    let endpoints = |path: &str, number: usize| -> Vec<Value> {
        let interfaces = ["public", "internal", "admin"].into_iter().enumerate();
        let endpoint = |(place, interface): (usize, &str)| {
            json!({
                "id": format!("{:032x}", number * 16 + place), "interface": interface, "region_id": REGION, "region": REGION,
                "url": format!("{}{path}", cloud.base),
            })
        };
        interfaces.map(endpoint).collect()
    };
    let offered = services.iter().filter(|(kind, ..)| !identity.absent.contains(*kind));
    let services = offered.enumerate().map(|(number, (kind, name, path))| {
        json!({ "id": format!("{:032x}", 4096 + number), "type": kind, "name": name, "endpoints": endpoints(path, number) })
    });
    services.collect()
}

fn credentials(state: &mut State, scope: &Scope, request: &Request, user: &str, rest: &[&str]) -> Outcome {
    if user != scope.user && !scope.admin {
        return Err(refused(403, "You are not authorized to perform the requested action."));
    }
    let identity = &mut state.identity;
    match (request.method.as_str(), rest) {
        ("POST", []) => {
            let body = request.json().unwrap_or_default();
            let given = &body["application_credential"];
            let name = given["name"].as_str().ok_or_else(|| malformed("'name' is a required property."))?;
            if identity.credentials.iter().any(|found| found["user_id"] == user && found["name"] == name) {
                return Err(refused(
                    409,
                    &format!(
                        "Conflict occurred attempting to store application_credential - Duplicate entry found with name {name}."
                    ),
                ));
            }
            let secret = given["secret"].as_str().map_or_else(new_id, str::to_owned);
            let id = identity.add_credential(user, &scope.project, name, &secret);
            let mut made = identity.credentials.get(&id).map(|made| shown(made, &[])).unwrap_or_default();
            made["secret"] = json!(secret);
            Ok(Answer::json(201, &json!({ "application_credential": made })))
        }
        ("GET", []) => {
            let all: Vec<Value> = identity
                .credentials
                .iter()
                .filter(|found| found["user_id"] == user)
                .map(|found| shown(found, &[]))
                .collect();
            Ok(Answer::json(200, &json!({ "application_credentials": all, "links": {} })))
        }
        ("GET", [id]) => {
            let found = identity.credentials.get(id).ok_or_else(|| missing("Application Credential", id))?;
            Ok(Answer::json(200, &json!({ "application_credential": shown(found, &[]) })))
        }
        ("DELETE", [id]) => {
            identity.credentials.remove(id).ok_or_else(|| missing("Application Credential", id))?;
            Ok(Answer::empty(204))
        }
        _ => Err(refused(404, "Not Found")),
    }
}

/// What only administrators may do.
fn administer(state: &mut State, request: &Request, rest: &[&str]) -> Outcome {
    let identity = &mut state.identity;
    let body = request.json().unwrap_or_default();
    let list = |key: &str, table: &Table| {
        let named = |found: &&Value| request.value("name").is_none_or(|name| found["name"] == name);
        let all: Vec<Value> = table.iter().filter(named).map(|found| shown(found, &[])).collect();
        Answer::json(200, &json!({ key: all, "links": {} }))
    };
    match (request.method.as_str(), rest) {
        ("GET", ["projects"]) => Ok(list("projects", &identity.projects)),
        ("GET", ["users"]) => Ok(list("users", &identity.users)),
        ("GET", ["roles"]) => {
            let roles: Vec<Value> = ROLES.iter().map(|role| role_document(role)).collect();
            Ok(Answer::json(200, &json!({ "roles": roles, "links": {} })))
        }
        ("POST", ["projects"]) => {
            let name = text(&body["project"], "name");
            let id = identity.add_project(name);
            let made = identity.projects.get(&id).map(|made| shown(made, &[]));
            Ok(Answer::json(201, &json!({ "project": made })))
        }
        ("POST", ["users"]) => {
            let given = &body["user"];
            let project = text(given, "default_project_id");
            let id = identity.add_user(text(given, "name"), text(given, "password"), project);
            let made = identity.users.get(&id).map(|made| shown(made, &[]));
            Ok(Answer::json(201, &json!({ "user": made })))
        }
        ("PUT", ["projects", project, "users", user, "roles", role]) => {
            let name = ROLES.iter().find(|name| role_id(name) == *role).ok_or_else(|| missing("role", role))?;
            identity.grant(user, project, name);
            if *name == "member" {
                identity.grant(user, project, "reader");
            }
            Ok(Answer::empty(204))
        }
        ("DELETE", ["projects", id]) => {
            identity.projects.remove(id).ok_or_else(|| missing("project", id))?;
            Ok(Answer::empty(204))
        }
        ("DELETE", ["users", id]) => {
            identity.users.remove(id).ok_or_else(|| missing("user", id))?;
            identity.tokens.retain(|_, token| token.user != *id);
            Ok(Answer::empty(204))
        }
        _ => Err(refused(404, "Not Found")),
    }
}
