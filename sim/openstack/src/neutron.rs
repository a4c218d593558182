//! Neutron v2.0: what all its resources have in common. Each kind has its own rules in a module below.

mod attributes;
mod extensions;
mod networks;
mod ports;
mod routers;
mod security_groups;
mod trunks;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::answer::{Answer, Outcome, Service};
use super::cloud::{Cloud, Quotas, Scope, new_id, now};
use super::request::Request;
use super::table::{Table, items, shown, text, texts};
use attributes::{Kind, checked};
pub(super) use ports::{bind, release, unbind};
pub(super) use routers::floating_address;

/// Networks and what is in them.
#[derive(Default)]
pub(super) struct Networking {
    pub networks: Table,
    pub subnets: Table,
    pub ports: Table,
    pub routers: Table,
    pub groups: Table,
    pub rules: Table,
    pub floating: Table,
    pub trunks: Table,
    pub quotas: Quotas,
    /// Aliases of extensions that are not there.
    pub absent: BTreeSet<String>,
}

impl Networking {
    pub fn table(&self, kind: Kind) -> &Table {
        match kind {
            Kind::Network => &self.networks,
            Kind::Subnet => &self.subnets,
            Kind::Port => &self.ports,
            Kind::Router => &self.routers,
            Kind::SecurityGroup => &self.groups,
            Kind::SecurityGroupRule => &self.rules,
            Kind::FloatingIp => &self.floating,
            Kind::Trunk => &self.trunks,
        }
    }

    /// As [`Networking::table`], to be changed.
    pub fn table_mut(&mut self, kind: Kind) -> &mut Table {
        match kind {
            Kind::Network => &mut self.networks,
            Kind::Subnet => &mut self.subnets,
            Kind::Port => &mut self.ports,
            Kind::Router => &mut self.routers,
            Kind::SecurityGroup => &mut self.groups,
            Kind::SecurityGroupRule => &mut self.rules,
            Kind::FloatingIp => &mut self.floating,
            Kind::Trunk => &mut self.trunks,
        }
    }

    /// A resource that this project sees.
    pub fn find(&self, scope: &Scope, kind: Kind, id: &str) -> Result<&Value, Answer> {
        let found = self.table(kind).get(id).filter(|found| self.sees(scope, kind, found));
        found.ok_or_else(|| kind.missing(id))
    }

    fn sees(&self, scope: &Scope, kind: Kind, found: &Value) -> bool {
        let public = |network: &Value| network["shared"] == true || network["router:external"] == true;
        scope.owns(found)
            || match kind {
                Kind::Network => public(found),
                Kind::Subnet => self.networks.get(text(found, "network_id")).is_some_and(public),
                _ => false,
            }
    }

    /// A resource as it is shown.
    pub fn view(&self, scope: &Scope, kind: Kind, found: &Value, fields: &[&str]) -> Value {
        let mut found = found.clone();
        found["tenant_id"] = found["project_id"].clone();
        match kind {
            Kind::Network => {
                found["subnets"] = json!(networks::subnets_of(self, text(&found, "id")));
                if found["router:external"] != true
                    && let Some(fields) = found.as_object_mut()
                {
                    fields.remove("is_default");
                }
            }
            Kind::SecurityGroup => {
                let id = text(&found, "id").to_owned();
                let rules = self.rules.iter().filter(|rule| text(rule, "security_group_id") == id);
                let within = |rule: &Value| {
                    let mut shown = self.view(scope, Kind::SecurityGroupRule, rule, &[]);
                    shown["tags"] = json!([]);
                    shown["standard_attr_id"] = rule["_number"].clone();
                    shown
                };
                let rules: Vec<Value> = rules.map(within).collect();
                found["security_group_rules"] = json!(rules);
            }
            Kind::FloatingIp => found["port_details"] = routers::port_details(self, &found),
            Kind::Port => found["dns_assignment"] = ports::dns_assignment(&found),
            _ => {}
        }
        if !scope.admin
            && let Some(all) = found.as_object_mut()
        {
            all.retain(|name, _| !kind.is_hidden(name));
        }
        shown(&found, fields)
    }

    /// Checks that one more fits into the quota.
    pub fn check_quota(&self, project: &str, kind: Kind) -> Result<(), Answer> {
        let quota = kind.quota();
        if self.quotas.allows(project, quota, self.table(kind).count(project)) {
            return Ok(());
        }
        Err(refused(409, "OverQuota", &format!("Quota exceeded for resources: ['{quota}'].")))
    }

    /// Marks a resource as changed.
    pub fn touch(&mut self, kind: Kind, id: &str) {
        if let Some(found) = self.table_mut(kind).get_mut(id) {
            let revision = found["revision_number"].as_u64().unwrap_or(0) + 1;
            found["revision_number"] = json!(revision);
            found["updated_at"] = json!(now());
        }
    }
}

/// A refusal in Neutron's words.
fn refused(status: u16, kind: &str, message: &str) -> Answer {
    Answer::failure(Service::Neutron, status, kind, message)
}

fn bad_request(message: &str) -> Answer {
    refused(400, "HTTPBadRequest", message)
}

fn invalid_input(message: &str) -> Answer {
    refused(400, "InvalidInput", &format!("Invalid input for operation: {message}"))
}

/// What every resource has when it is made.
fn fresh(project: &str) -> Value {
    let now = now();
    json!({
        "id": new_id(), "project_id": project, "name": "", "description": "", "tags": [], "created_at": now, "updated_at": now,
        "revision_number": 0,
    })
}

pub(super) fn answer(cloud: &Cloud, scope: &Scope, request: &Request) -> Answer {
    let outcome = cloud.with(|state| route(cloud, &mut state.networking, scope, request));
    outcome.unwrap_or_else(|refusal| refusal)
}

fn not_found() -> Answer {
    refused(404, "HTTPNotFound", "The resource could not be found.")
}

fn route(cloud: &Cloud, state: &mut Networking, scope: &Scope, request: &Request) -> Outcome {
    let (method, segments) = request.route();
    let rest = match segments.as_slice() {
        [] => {
            let link = json!([{ "rel": "self", "href": format!("{}/networking/v2.0/", cloud.base) }]);
            let versions = json!({ "versions": [{ "id": "v2.0", "status": "CURRENT", "links": link }] });
            return Ok(Answer::json(200, &versions));
        }
        ["v2.0", rest @ ..] => rest,
        _ => return Err(not_found()),
    };
    match (method, rest) {
        ("GET", ["extensions"]) => return Ok(extensions::list(&state.absent)),
        ("GET", ["extensions", alias]) => return extensions::show(&state.absent, alias),
        (_, ["quotas", project, rest @ ..]) => return quotas(state, scope, request, project, rest),
        ("PUT", ["routers", id, action]) => return routers::act(state, scope, request, id, action),
        ("PUT" | "GET", ["trunks", id, action]) if *action != "tags" => {
            return trunks::act(state, scope, request, id, action);
        }
        _ => {}
    }
    let Some((name, rest)) = rest.split_first() else { return Err(not_found()) };
    let kind = Kind::of(name).ok_or_else(not_found)?;
    match (method, rest) {
        ("GET", []) => list(cloud, state, scope, request, kind),
        ("POST", []) => create(state, scope, request, kind),
        ("GET", [id]) => {
            let found = state.find(scope, kind, id)?;
            let found = state.view(scope, kind, found, &request.values("fields"));
            Ok(Answer::json(200, &json!({ kind.singular(): found })))
        }
        ("PUT", [id]) => update(state, scope, request, kind, id),
        ("DELETE", [id]) => {
            let found = state.find(scope, kind, id)?;
            if !scope.owns(found) {
                return Err(forbidden("delete", kind, None));
            }
            match kind {
                Kind::Network => networks::delete(state, id)?,
                Kind::Subnet => networks::delete_subnet(state, id)?,
                Kind::Port => ports::delete(state, id)?,
                Kind::Router => routers::delete(state, id)?,
                Kind::SecurityGroup => security_groups::delete(state, scope, id)?,
                Kind::FloatingIp => routers::delete_floating(state, id),
                Kind::SecurityGroupRule | Kind::Trunk => drop(state.table_mut(kind).remove(id)),
            }
            Ok(Answer::empty(204))
        }
        (_, [id, "tags", rest @ ..]) => tags(state, scope, request, kind, id, rest),
        _ => Err(not_found()),
    }
}

fn forbidden(act: &str, kind: Kind, attribute: Option<&str>) -> Answer {
    let rule = format!("rule:{act}_{}", kind.singular());
    let message = match attribute {
        Some(attribute) => format!("({rule} and {rule}:{attribute}) is disallowed by policy"),
        None => format!("{rule} is disallowed by policy"),
    };
    refused(403, "PolicyNotAuthorized", &message)
}

/// The body's resource, or resources when it has the plural.
fn given(request: &Request, kind: Kind) -> Result<(Vec<Map<String, Value>>, bool), Answer> {
    let body = request.json().filter(|body| !body.is_null());
    let body = body.ok_or_else(|| bad_request("Body contains invalid data"))?;
    if let Some(all) = body[kind.plural()].as_array() {
        let all: Option<Vec<_>> = all.iter().map(|one| one.as_object().cloned()).collect();
        return Ok((all.ok_or_else(|| bad_request("Body contains invalid data"))?, true));
    }
    match body[kind.singular()].as_object() {
        Some(one) => Ok((vec![one.clone()], false)),
        None => Err(bad_request(&format!("Unable to find '{}' in request body", kind.singular()))),
    }
}

fn create(state: &mut Networking, scope: &Scope, request: &Request, kind: Kind) -> Outcome {
    let (all, bulk) = given(request, kind)?;
    let mut made: Vec<Value> = Vec::new();
    for one in all {
        let outcome = checked(kind, one, "POST", scope).and_then(|one| create_one(state, scope, kind, &one));
        match outcome {
            Ok(one) => made.push(one),
            Err(refusal) => {
                // All or none.
                for one in &made {
                    state.table_mut(kind).remove(text(one, "id"));
                }
                return Err(refusal);
            }
        }
    }
    let body = if bulk { json!({ kind.plural(): made }) } else { json!({ kind.singular(): made.first() }) };
    Ok(Answer::json(201, &body))
}

fn create_one(state: &mut Networking, scope: &Scope, kind: Kind, given: &Map<String, Value>) -> Result<Value, Answer> {
    let named = given.get("project_id").or_else(|| given.get("tenant_id")).and_then(Value::as_str);
    let project = named.unwrap_or(&scope.project).to_owned();
    if project != scope.project && !scope.admin {
        return Err(forbidden("create", kind, Some("tenant_id")));
    }
    let made = match kind {
        Kind::Network => networks::create(state, &project, given)?,
        Kind::Subnet => networks::create_subnet(state, scope, &project, given)?,
        Kind::Port => ports::create(state, scope, &project, given)?,
        Kind::Router => routers::create(state, scope, &project, given)?,
        Kind::SecurityGroup => security_groups::create(state, &project, given)?,
        Kind::SecurityGroupRule => security_groups::create_rule(state, scope, given)?,
        Kind::FloatingIp => return routers::create_floating(state, scope, &project, given),
        Kind::Trunk => trunks::create(state, scope, &project, given)?,
    };
    let made = state.table(kind).get(&made).cloned().unwrap_or_default();
    let mut shown = state.view(scope, kind, &made, &[]);
    if kind == Kind::Network {
        // Told of a network that is not external at its creation only.
        shown["is_default"] = made["is_default"].clone();
    }
    Ok(shown)
}

fn update(state: &mut Networking, scope: &Scope, request: &Request, kind: Kind, id: &str) -> Outcome {
    let found = state.find(scope, kind, id)?;
    if !scope.owns(found) {
        return Err(forbidden("update", kind, None));
    }
    let (mut all, _) = given(request, kind)?;
    let given = checked(kind, all.pop().unwrap_or_default(), "PUT", scope)?;
    match kind {
        Kind::Subnet => networks::update_subnet(state, id, &given)?,
        Kind::Port => ports::update(state, scope, id, &given)?,
        Kind::Router => routers::update(state, scope, id, &given)?,
        Kind::FloatingIp => {
            let body = routers::update_floating(state, scope, id, &given)?;
            return Ok(Answer::json(200, &json!({ kind.singular(): body })));
        }
        _ => {
            if let Some(found) = state.table_mut(kind).get_mut(id) {
                super::table::merge(found, given);
            }
        }
    }
    state.touch(kind, id);
    let found = state.table(kind).get(id).cloned().unwrap_or_default();
    Ok(Answer::json(200, &json!({ kind.singular(): state.view(scope, kind, &found, &[]) })))
}

fn list(cloud: &Cloud, state: &mut Networking, scope: &Scope, request: &Request, kind: Kind) -> Outcome {
    if kind == Kind::SecurityGroup || kind == Kind::SecurityGroupRule {
        security_groups::default_of(state, &scope.project);
    }
    const STEERING: [&str; 7] = ["fields", "limit", "marker", "page_reverse", "sort_key", "sort_dir", "tenant_id"];
    let unknown: Vec<String> = request
        .query
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| !STEERING.contains(name) && !TAG_FILTERS.contains(name) && !kind.has(name))
        .map(|name| format!("'{name}'"))
        .collect();
    if !unknown.is_empty() {
        return Err(bad_request(&format!("[{}] is invalid attribute for filtering", unknown.join(", "))));
    }
    let mut found: Vec<Value> = state
        .table(kind)
        .iter()
        .filter(|one| state.sees(scope, kind, one))
        .map(|one| state.view(scope, kind, one, &[]))
        .filter(|one| passes(one, request))
        .collect();
    if let Some(key) = request.value("sort_key") {
        found.sort_by(|a, b| text(a, key).cmp(text(b, key)));
        if request.value("sort_dir") == Some("desc") {
            found.reverse();
        }
    }
    if let Some(marker) = request.value("marker") {
        let place = found.iter().position(|one| text(one, "id") == marker);
        let place = place.ok_or_else(|| kind.missing(marker))?;
        found.drain(..=place);
    }
    let mut body = json!({});
    if let Some(limit) = request.value("limit").and_then(|limit| limit.parse::<usize>().ok())
        && limit > 0
        && found.len() > limit
    {
        found.truncate(limit);
        let last = found.last().map(|one| text(one, "id")).unwrap_or_default();
        let kept = request.query.iter().filter(|(name, _)| name != "marker");
        let query =
            form_urlencoded::Serializer::new(String::new()).extend_pairs(kept).append_pair("marker", last).finish();
        let href = format!("{}{}?{query}", cloud.base, request.path);
        body[format!("{}_links", kind.plural())] = json!([{ "rel": "next", "href": href }]);
    }
    let fields = request.values("fields");
    body[kind.plural()] = found.iter().map(|one| shown(one, &fields)).collect();
    Ok(Answer::json(200, &body))
}

const TAG_FILTERS: [&str; 4] = ["tags", "tags-any", "not-tags", "not-tags-any"];

/// Whether a resource passes the query's filters: the values of one are alternatives, all filters must hold.
fn passes(found: &Value, request: &Request) -> bool {
    let mut names: Vec<&str> = request.query.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().all(|name| {
        let values = request.values(name);
        if TAG_FILTERS.contains(&name) {
            let wanted: Vec<&str> = values.iter().flat_map(|value| value.split(',')).collect();
            let has = |tag: &&str| texts(found, "tags").any(|own| own == *tag);
            let (all, any) = (wanted.iter().all(has), wanted.iter().any(has));
            return match name {
                "tags" => all,
                "tags-any" => any,
                "not-tags" => !all,
                _ => !any,
            };
        }
        match name {
            "fields" | "limit" | "marker" | "page_reverse" | "sort_key" | "sort_dir" => true,
            "fixed_ips" => values.iter().any(|value| {
                let (field, value) = value.split_once('=').unwrap_or(("ip_address", value));
                items(found, "fixed_ips").any(|fixed| text(fixed, field) == value)
            }),
            name => values.iter().any(|value| matches(&found[name], value)),
        }
    })
}

fn matches(found: &Value, wanted: &str) -> bool {
    match found {
        Value::Null => wanted.is_empty() || wanted == "None",
        Value::Bool(is) => matches!(wanted.to_ascii_lowercase().as_str(), "true" | "1") == *is,
        Value::Number(number) => number.to_string() == wanted,
        Value::String(text) => text == wanted,
        Value::Array(all) => all.iter().any(|one| matches(one, wanted)),
        Value::Object(_) => false,
    }
}

fn tags(state: &mut Networking, scope: &Scope, request: &Request, kind: Kind, id: &str, rest: &[&str]) -> Outcome {
    let missing =
        || refused(404, "TagResourceNotFound", &format!("Resource {} {id} could not be found.", kind.plural()));
    let found = state.find(scope, kind, id).map_err(|_| missing())?;
    let before: Vec<String> = texts(found, "tags").map(str::to_owned).collect();
    let mut after = before.clone();
    let answer = match (request.method.as_str(), rest) {
        ("GET", []) => return Ok(Answer::json(200, &json!({ "tags": before }))),
        ("GET", [tag]) => {
            let has = before.iter().any(|own| own == tag);
            return if has { Ok(Answer::empty(204)) } else { Err(tag_missing(tag)) };
        }
        ("PUT", []) => {
            let body = request.json().unwrap_or_default();
            let wanted = body["tags"].as_array();
            let wanted = wanted.ok_or_else(|| invalid_input("Invalid input for tags. Reason: not a list."))?;
            after = wanted.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            if let Some(long) = after.iter().find(|tag| tag.len() > 255) {
                return Err(invalid_input(&format!("'{long}' exceeds maximum length of 255.")));
            }
            let twice = after.iter().enumerate().find(|(place, tag)| after[..*place].contains(tag));
            if let Some((_, tag)) = twice {
                return Err(invalid_input(&format!("Duplicate items in the list: '{tag}'.")));
            }
            Answer::json(200, &json!({ "tags": after }))
        }
        ("PUT", [tag]) => {
            if !after.iter().any(|own| own == tag) {
                after.push((*tag).to_owned());
            }
            Answer::json(201, &Value::Null)
        }
        ("DELETE", []) => {
            after.clear();
            Answer::empty(204)
        }
        ("DELETE", [tag]) => {
            after.retain(|own| own != tag);
            if after.len() == before.len() {
                return Err(tag_missing(tag));
            }
            Answer::empty(204)
        }
        _ => return Err(not_found()),
    };
    if let Some(found) = state.table_mut(kind).get_mut(id) {
        found["tags"] = json!(after);
    }
    state.touch(kind, id);
    Ok(answer)
}

fn tag_missing(tag: &str) -> Answer {
    refused(404, "TagNotFound", &format!("Tag {tag} could not be found."))
}

fn quotas(state: &mut Networking, scope: &Scope, request: &Request, project: &str, rest: &[&str]) -> Outcome {
    const NAMES: [&str; 8] =
        ["network", "subnet", "port", "router", "floatingip", "security_group", "security_group_rule", "trunk"];
    let project = project.trim_end_matches(".json");
    if project != scope.project && !scope.admin {
        return Err(refused(403, "PolicyNotAuthorized", "rule:get_quota is disallowed by policy"));
    }
    let limits = |state: &Networking| -> Value {
        NAMES.iter().map(|name| ((*name).to_owned(), json!(state.quotas.limit(project, name)))).collect()
    };
    match (request.method.as_str(), rest) {
        ("GET", []) => Ok(Answer::json(200, &json!({ "quota": limits(state) }))),
        ("GET", ["details" | "details.json"]) => {
            let detail = |kind: Kind| {
                let used = state.table(kind).count(project);
                let limit = state.quotas.limit(project, kind.quota());
                (kind.quota().to_owned(), json!({ "limit": limit, "used": used, "reserved": 0 }))
            };
            let details: Value = Kind::ALL.into_iter().map(detail).collect();
            Ok(Answer::json(200, &json!({ "quota": details })))
        }
        ("PUT", []) if scope.admin => {
            let body = request.json().unwrap_or_default();
            for (name, limit) in body["quota"].as_object().into_iter().flatten() {
                let limit = limit.as_i64().filter(|_| NAMES.contains(&name.as_str()));
                let limit = limit.ok_or_else(|| bad_request(&format!("Unrecognized attribute(s) '{name}'")))?;
                state.quotas.set(project, name, limit);
            }
            Ok(Answer::json(200, &json!({ "quota": limits(state) })))
        }
        ("DELETE", []) if scope.admin => {
            state.quotas.clear(project);
            Ok(Answer::empty(204))
        }
        ("PUT" | "DELETE", []) => Err(refused(403, "PolicyNotAuthorized", "rule:update_quota is disallowed by policy")),
        _ => Err(not_found()),
    }
}

pub(super) use attributes::Kind as NetworkKind;
pub(super) use networks::create as create_network;
pub(super) use networks::create_subnet;
pub(super) use ports::create as create_port;
