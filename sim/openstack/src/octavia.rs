//! Octavia v2: load balancers and their parts. While something of a load balancer changes, all else of it is immutable.

mod create;
mod documents;
mod members;

use serde_json::{Map, Value, json};

use super::answer::{Answer, Outcome, Service};
use super::cloud::{Cloud, Quotas, Scope, State, now_plain};
use super::neutron;
use super::request::Request;
use super::table::{Table, items, merge, shown, text, texts};
pub(super) use documents::Part;
use documents::checked;

/// Load balancers and their parts.
#[derive(Default)]
pub(super) struct Balancing {
    pub balancers: Table,
    pub listeners: Table,
    pub pools: Table,
    /// Their pool is in `_pool`.
    pub members: Table,
    pub monitors: Table,
    pub flavors: Table,
    pub zones: Table,
    pub quotas: Quotas,
}

impl Balancing {
    fn table(&self, part: Part) -> &Table {
        match part {
            Part::Balancer => &self.balancers,
            Part::Listener => &self.listeners,
            Part::Pool => &self.pools,
            Part::Member => &self.members,
            Part::Monitor => &self.monitors,
        }
    }

    /// Parts of a kind, to be changed.
    pub fn table_mut(&mut self, part: Part) -> &mut Table {
        match part {
            Part::Balancer => &mut self.balancers,
            Part::Listener => &mut self.listeners,
            Part::Pool => &mut self.pools,
            Part::Member => &mut self.members,
            Part::Monitor => &mut self.monitors,
        }
    }

    fn find(&self, scope: &Scope, part: Part, id: &str) -> Result<&Value, Answer> {
        self.table(part).get(id).filter(|found| scope.owns(found)).ok_or_else(|| part.missing(id))
    }

    /// A part as it is shown, with its relations.
    fn view(&self, part: Part, found: &Value, fields: &[&str]) -> Value {
        let mut view = found.clone();
        let id = text(found, "id");
        let ids = |table: &Table, holds: &dyn Fn(&Value) -> bool| -> Value {
            table.ids(holds).into_iter().map(|id| json!({ "id": id })).collect()
        };
        view["tenant_id"] = found["project_id"].clone();
        let of_balancer = |one: &Value| text(one, "_balancer") == id;
        match part {
            Part::Balancer => {
                view["listeners"] = ids(&self.listeners, &of_balancer);
                view["pools"] = ids(&self.pools, &of_balancer);
            }
            Part::Listener => view["loadbalancers"] = json!([{ "id": found["_balancer"] }]),
            Part::Pool => {
                view["loadbalancers"] = json!([{ "id": found["_balancer"] }]);
                view["listeners"] = ids(&self.listeners, &|listener| text(listener, "default_pool_id") == id);
                view["members"] = ids(&self.members, &|member| text(member, "_pool") == id);
                let monitor = self.monitors.iter().find(|monitor| text(monitor, "_pool") == id);
                if let Some(monitor) = monitor {
                    view["healthmonitor_id"] = monitor["id"].clone();
                }
            }
            Part::Monitor => view["pools"] = json!([{ "id": found["_pool"] }]),
            Part::Member => {}
        }
        shown(&view, fields)
    }
}

fn refused(status: u16, message: &str) -> Answer {
    Answer::failure(Service::Octavia, status, "", message)
}

fn validation(message: &str) -> Answer {
    refused(400, &format!("Validation failure: {message}"))
}

fn not_found() -> Answer {
    Answer::json(404, &json!({ "code": 404, "title": "Not Found", "description": "" }))
}

pub(super) fn answer(cloud: &Cloud, scope: &Scope, request: &Request) -> Answer {
    cloud.with(|state| route(cloud, state, scope, request)).unwrap_or_else(|refusal| refusal)
}

fn route(cloud: &Cloud, state: &mut State, scope: &Scope, request: &Request) -> Outcome {
    let (method, segments) = request.route();
    let rest = match segments.as_slice() {
        [] => return Ok(Answer::json(200, &documents::versions(&cloud.base))),
        ["v2" | "v2.0", "lbaas", rest @ ..] => rest,
        _ => return Err(not_found()),
    };
    match (method, rest) {
        ("GET", ["providers"]) => {
            let provider = |(name, description): &(&str, &str)| json!({ "name": name, "description": description });
            let all: Vec<Value> = documents::PROVIDERS.iter().map(provider).collect();
            return Ok(Answer::json(200, &json!({ "providers": all })));
        }
        ("GET", ["flavors"]) => {
            let all: Vec<&Value> = state.balancing.flavors.iter().collect();
            return Ok(Answer::json(200, &json!({ "flavors": all, "flavors_links": [] })));
        }
        ("GET", ["availabilityzones"]) => {
            let all: Vec<&Value> = state.balancing.zones.iter().collect();
            return Ok(Answer::json(200, &json!({ "availability_zones": all, "availability_zones_links": [] })));
        }
        ("GET" | "PUT", ["quotas", project]) => return quotas(state, scope, request, project),
        (_, ["pools", pool, "members", rest @ ..]) => return members::route(cloud, state, scope, request, pool, rest),
        ("GET", ["loadbalancers", id, "status" | "statuses"]) => {
            let found = state.balancing.find(scope, Part::Balancer, id)?;
            return Ok(Answer::json(200, &documents::status_tree(&state.balancing, found)));
        }
        _ => {}
    }
    let Some((name, rest)) = rest.split_first() else { return Err(not_found()) };
    let part = Part::of(name).ok_or_else(not_found)?;
    match (method, rest) {
        ("GET", []) => list(cloud, &state.balancing, scope, request, part, &|_| true),
        ("POST", []) => {
            let given = given(request, part)?;
            let made = match part {
                Part::Balancer => create::balancer(cloud, state, scope, &given)?,
                Part::Listener => create::listener(cloud, state, scope, &given)?,
                Part::Pool => create::pool(cloud, state, scope, &given)?,
                Part::Monitor => create::monitor(cloud, state, scope, &given)?,
                Part::Member => return Err(not_found()),
            };
            Ok(Answer::json(201, &json!({ part.singular(): made })))
        }
        ("GET", [id]) => {
            let found = state.balancing.find(scope, part, id)?;
            let found = state.balancing.view(part, found, &request.values("fields"));
            Ok(Answer::json(200, &json!({ part.singular(): found })))
        }
        ("PUT", [id]) => {
            let found = state.balancing.find(scope, part, id)?;
            let balancer = balancer_of(&state.balancing, part, found);
            let given = given(request, part)?;
            checked(part, &given, "PUT")?;
            if part == Part::Balancer {
                settled(found)?;
            }
            begin(cloud, state, &balancer, &[(part, *id, "PENDING_UPDATE")])?;
            if let Some(found) = state.balancing.table_mut(part).get_mut(id) {
                merge(found, given);
                found["updated_at"] = json!(now_plain());
            }
            let found = state.balancing.find(scope, part, id)?;
            Ok(Answer::json(200, &json!({ part.singular(): state.balancing.view(part, found, &[]) })))
        }
        ("DELETE", [id]) => {
            let found = state.balancing.find(scope, part, id)?;
            let balancer = balancer_of(&state.balancing, part, found);
            if part == Part::Balancer {
                let cascade = request.value("cascade").is_some_and(|cascade| cascade.eq_ignore_ascii_case("true"));
                settled(found)?;
                let has_children = [&state.balancing.listeners, &state.balancing.pools]
                    .iter()
                    .any(|table| table.iter().any(|child| text(child, "_balancer") == *id));
                if has_children && !cascade {
                    return Err(validation(&format!("Cannot delete Load Balancer {id} - it has children")));
                }
            }
            begin(cloud, state, &balancer, &[(part, *id, "PENDING_DELETE")])?;
            Ok(Answer::empty(204))
        }
        _ => Err(not_found()),
    }
}

/// The part in a request's body.
fn given(request: &Request, part: Part) -> Result<Map<String, Value>, Answer> {
    let body = request.json().ok_or_else(|| refused(400, "Invalid input: the body is not JSON"))?;
    let given = body[part.singular()].as_object().cloned();
    given.ok_or_else(|| {
        refused(400, &format!("Invalid input for field/attribute {}. Mandatory field missing.", part.singular()))
    })
}

/// Whether a load balancer is in a state in which it can itself be changed.
fn settled(balancer: &Value) -> Result<(), Answer> {
    let status = text(balancer, "provisioning_status");
    if matches!(status, "ACTIVE" | "ERROR") {
        return Ok(());
    }
    Err(refused(409, &format!("Invalid state {status} of loadbalancer resource {}", text(balancer, "id"))))
}

fn balancer_of(state: &Balancing, part: Part, found: &Value) -> String {
    let of_pool = || state.pools.get(text(found, "_pool")).map(|pool| text(pool, "_balancer").to_owned());
    match part {
        Part::Balancer => text(found, "id").to_owned(),
        Part::Listener | Part::Pool => text(found, "_balancer").to_owned(),
        Part::Member | Part::Monitor => of_pool().unwrap_or_default(),
    }
}

/// Begins a change of a load balancer and says which of its parts change to what. Its end comes by itself.
///
/// # Errors
/// 409 when something of it changes already.
fn begin(cloud: &Cloud, state: &mut State, balancer: &str, changes: &[(Part, &str, &str)]) -> Result<(), Answer> {
    let found = state.balancing.balancers.get_mut(balancer).ok_or_else(|| Part::Balancer.missing(balancer))?;
    if !matches!(text(found, "provisioning_status"), "ACTIVE" | "ERROR") {
        let message = match changes.first() {
            // Members and monitors look at their pool first.
            Some((Part::Pool, pool, "PENDING_UPDATE")) => format!("Pool {pool} is immutable and cannot be updated."),
            _ => format!("Load Balancer {balancer} is immutable and cannot be updated."),
        };
        return Err(refused(409, &message));
    }
    found["provisioning_status"] = json!("PENDING_UPDATE");
    for (part, id, status) in changes {
        if let Some(found) = state.balancing.table_mut(*part).get_mut(id) {
            found["provisioning_status"] = json!(status);
        }
    }
    settle_later(cloud, balancer);
    Ok(())
}

fn settle_later(cloud: &Cloud, id: &str) {
    let balancer = id.to_owned();
    cloud.later(|delays| delays.load_balancer, id, move |cloud, state| settle(cloud, state, &balancer));
}

/// The end of a change: what was pending is active, or gone.
fn settle(cloud: &Cloud, state: &mut State, balancer: &str) {
    let gone = state
        .balancing
        .balancers
        .get(balancer)
        .is_none_or(|found| text(found, "provisioning_status") == "PENDING_DELETE");
    let now = now_plain();
    for part in [Part::Listener, Part::Pool, Part::Member, Part::Monitor] {
        let own: Vec<String> = {
            let balancing = &state.balancing;
            balancing.table(part).ids(|found| balancer_of(balancing, part, found) == balancer)
        };
        for id in own {
            let status =
                state.balancing.table(part).get(&id).map(|found| text(found, "provisioning_status").to_owned());
            match status.as_deref() {
                // A pool goes after what is in it, with the load balancer.
                Some("PENDING_DELETE") if part != Part::Pool => drop(state.balancing.table_mut(part).remove(&id)),
                Some("PENDING_CREATE" | "PENDING_UPDATE") => {
                    if let Some(found) = state.balancing.table_mut(part).get_mut(&id) {
                        found["provisioning_status"] = json!("ACTIVE");
                        found["updated_at"] = json!(now);
                        if part == Part::Monitor {
                            found["operating_status"] = json!("ONLINE");
                        }
                    }
                }
                _ => {}
            }
        }
    }
    let ending = |pool: &Value| {
        text(pool, "_balancer") == balancer && (gone || text(pool, "provisioning_status") == "PENDING_DELETE")
    };
    for pool in state.balancing.pools.ids(ending) {
        remove_pool(&mut state.balancing, &pool);
    }
    if gone {
        for listener in state.balancing.listeners.ids(|listener| text(listener, "_balancer") == balancer) {
            state.balancing.listeners.remove(&listener);
        }
        if let Some(found) = state.balancing.balancers.remove(balancer)
            && found["_own_port"] == true
        {
            neutron::release(&mut state.networking, text(&found, "vip_port_id"));
        }
        return;
    }
    if let Some(found) = state.balancing.balancers.get_mut(balancer) {
        found["provisioning_status"] = json!(if cloud.breaks() { "ERROR" } else { "ACTIVE" });
        found["updated_at"] = json!(now);
    }
}

fn remove_pool(state: &mut Balancing, pool: &str) {
    for member in state.members.ids(|member| text(member, "_pool") == pool) {
        state.members.remove(&member);
    }
    for monitor in state.monitors.ids(|monitor| text(monitor, "_pool") == pool) {
        state.monitors.remove(&monitor);
    }
    for listener in state.listeners.iter_mut().filter(|listener| text(listener, "default_pool_id") == pool) {
        listener["default_pool_id"] = Value::Null;
    }
    state.pools.remove(pool);
}

/// Parts for which `belongs`, as the query wants them.
fn list(
    cloud: &Cloud,
    state: &Balancing,
    scope: &Scope,
    request: &Request,
    part: Part,
    belongs: &dyn Fn(&Value) -> bool,
) -> Outcome {
    const STEERING: [&str; 7] = ["limit", "marker", "fields", "sort", "page_reverse", "tenant_id", "project_id"];
    const TAGS: [&str; 4] = ["tags", "tags-any", "not-tags", "not-tags-any"];
    let unknown = |name: &str| !STEERING.contains(&name) && !TAGS.contains(&name) && !part.has(name);
    if request.query.iter().any(|(name, _)| unknown(name)) {
        return Err(refused(400, "One or more arguments are either duplicate or invalid"));
    }
    let passes = |found: &Value| {
        request.query.iter().all(|(name, value)| match name.as_str() {
            "project_id" | "tenant_id" => text(found, "project_id") == value,
            "tags" => value.split(',').all(|tag| texts(found, "tags").any(|own| own == tag)),
            "tags-any" => value.split(',').any(|tag| texts(found, "tags").any(|own| own == tag)),
            "not-tags" => !value.split(',').all(|tag| texts(found, "tags").any(|own| own == tag)),
            "not-tags-any" => !value.split(',').any(|tag| texts(found, "tags").any(|own| own == tag)),
            "loadbalancer_id" => text(found, "_balancer") == value,
            name if STEERING.contains(&name) => true,
            name => match &found[name] {
                Value::String(own) => own == value,
                Value::Null => false,
                own => own.to_string().eq_ignore_ascii_case(value),
            },
        })
    };
    let mut found: Vec<&Value> =
        state.table(part).iter().filter(|found| scope.owns(found) && belongs(found) && passes(found)).collect();
    if let Some(marker) = request.value("marker") {
        let place = found.iter().position(|one| text(one, "id") == marker);
        found.drain(..place.map_or(0, |place| place + 1));
    }
    let mut links = Vec::new();
    if let Some(limit) = request.value("limit").and_then(|limit| limit.parse::<usize>().ok())
        && limit > 0
        && found.len() >= limit
    {
        found.truncate(limit);
        let last = found.last().map(|one| text(one, "id")).unwrap_or_default();
        let href = format!("{}{}?limit={limit}&marker={last}", cloud.base, request.path);
        links.push(json!({ "rel": "next", "href": href }));
    }
    let fields = request.values("fields");
    let all: Vec<Value> = found.into_iter().map(|found| state.view(part, found, &fields)).collect();
    Ok(Answer::json(200, &json!({ part.plural(): all, format!("{}_links", part.plural()): links })))
}

fn quotas(state: &mut State, scope: &Scope, request: &Request, project: &str) -> Outcome {
    let quotas = &mut state.balancing.quotas;
    let mut status = 200;
    if request.method == "PUT" {
        if !scope.admin {
            return Err(refused(403, "Policy does not allow this request to be performed."));
        }
        let body = request.json().unwrap_or_default();
        for (name, limit) in body["quota"].as_object().into_iter().flatten() {
            quotas.set(project, name, limit.as_i64().unwrap_or(-1));
        }
        status = 202;
    }
    let limits: Value =
        Part::ALL.iter().map(|part| (part.quota().to_owned(), json!(quotas.limit(project, part.quota())))).collect();
    Ok(Answer::json(status, &json!({ "quota": limits })))
}

/// A member: address, port, weight.
pub(super) type Target = (String, u16, u32);

/// Where a load balancer leads: by port the members.
pub(super) fn targets(state: &Balancing, balancer: &str) -> Vec<(u16, Vec<Target>)> {
    let listeners = state.listeners.iter().filter(|listener| text(listener, "_balancer") == balancer);
    let target = |listener: &Value| {
        let port = u16::try_from(listener["protocol_port"].as_u64()?).ok()?;
        let pool = text(listener, "default_pool_id");
        let member = |member: &Value| {
            let port = u16::try_from(member["protocol_port"].as_u64()?).ok()?;
            let weight = u32::try_from(member["weight"].as_u64().unwrap_or(1)).unwrap_or(1);
            Some((text(member, "address").to_owned(), port, weight))
        };
        let members = state.members.iter().filter(|member| text(member, "_pool") == pool);
        let members = members.filter(|member| text(member, "provisioning_status") != "PENDING_DELETE");
        Some((port, members.filter_map(member).collect()))
    };
    listeners.filter_map(target).collect()
}

/// Ids of what a relation names.
fn ids_of<'a>(found: &'a Value, relation: &str) -> Vec<&'a str> {
    items(found, relation).map(|one| text(one, "id")).collect()
}
