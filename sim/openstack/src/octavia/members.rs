//! Members of pools, one by one and all at once.

use serde_json::{Map, Value, json};

use super::create::{check_quota, fresh};
use super::documents::{Part, checked, member_defaults};
use super::{begin, given, list, not_found, refused};
use crate::answer::{Answer, Outcome};
use crate::cloud::{Cloud, Scope, State, now_plain};
use crate::request::Request;
use crate::table::{merge, text};

/// `/pools/{pool}/members`.
pub(super) fn route(
    cloud: &Cloud,
    state: &mut State,
    scope: &Scope,
    request: &Request,
    pool: &str,
    rest: &[&str],
) -> Outcome {
    let found = state.balancing.find(scope, Part::Pool, pool)?;
    let balancer = text(found, "_balancer").to_owned();
    let own = |member: &Value| text(member, "_pool") == pool;
    let find = |state: &State, id: &str| {
        let found = state.balancing.members.get(id).filter(|member| own(member));
        found.cloned().ok_or_else(|| Part::Member.missing(id))
    };
    // Members change with their pool, and so does the listener before it.
    let listeners = state.balancing.listeners.ids(|listener| text(listener, "default_pool_id") == pool);
    let begin = |state: &mut State, member: Option<(&str, &str)>| {
        let mut changes = vec![(Part::Pool, pool, "PENDING_UPDATE")];
        changes.extend(listeners.iter().map(|listener| (Part::Listener, listener.as_str(), "PENDING_UPDATE")));
        changes.extend(member.map(|(id, status)| (Part::Member, id, status)));
        begin(cloud, state, &balancer, &changes)
    };
    let shown = |state: &State, id: &str| {
        let found = state.balancing.members.get(id).map(|found| state.balancing.view(Part::Member, found, &[]));
        json!({ "member": found })
    };
    match (request.method.as_str(), rest) {
        ("GET", []) => list(cloud, &state.balancing, scope, request, Part::Member, &own),
        ("GET", [id]) => {
            find(state, id)?;
            Ok(Answer::json(200, &shown(state, id)))
        }
        ("POST", []) => {
            let given = given(request, Part::Member)?;
            checked(Part::Member, &given, "POST")?;
            if let Some(other) = same(state, pool, &given) {
                let message = format!(
                    "Another member on this pool is already using ip {} on protocol_port {}",
                    text(&other, "address"),
                    other["protocol_port"]
                );
                return Err(refused(409, &message));
            }
            check_quota(&state.balancing, &scope.project, Part::Member)?;
            begin(state, None)?;
            let id = insert(state, scope, pool, &given);
            Ok(Answer::json(201, &shown(state, &id)))
        }
        ("PUT", []) => {
            let body = request.json().unwrap_or_default();
            let wanted: Option<Vec<Map<String, Value>>> =
                body["members"].as_array().and_then(|all| all.iter().map(|one| one.as_object().cloned()).collect());
            let wanted = wanted.ok_or_else(|| refused(400, "Invalid input for field/attribute members."))?;
            for one in &wanted {
                checked(Part::Member, one, "POST")?;
            }
            begin(state, None)?;
            let additive = request.value("additive_only").is_some_and(|only| only.eq_ignore_ascii_case("true"));
            replace(state, scope, pool, &wanted, additive);
            Ok(Answer::empty(202))
        }
        ("PUT", [id]) => {
            find(state, id)?;
            let given = given(request, Part::Member)?;
            checked(Part::Member, &given, "PUT")?;
            begin(state, Some((id, "PENDING_UPDATE")))?;
            update(state, id, &given);
            Ok(Answer::json(200, &shown(state, id)))
        }
        ("DELETE", [id]) => {
            find(state, id)?;
            begin(state, Some((id, "PENDING_DELETE")))?;
            Ok(Answer::empty(204))
        }
        _ => Err(not_found()),
    }
}

/// The member of a pool with the same address and port.
fn same(state: &State, pool: &str, given: &Map<String, Value>) -> Option<Value> {
    let mut members = state.balancing.members.iter();
    let fits = |member: &&Value| {
        text(member, "_pool") == pool
            && member["address"] == given["address"]
            && member["protocol_port"] == given["protocol_port"]
    };
    members.find(fits).cloned()
}

fn insert(state: &mut State, scope: &Scope, pool: &str, given: &Map<String, Value>) -> String {
    let mut made = fresh(scope, given, member_defaults());
    if let Some(fields) = made.as_object_mut() {
        fields.remove("description");
    }
    made["_pool"] = json!(pool);
    let id = text(&made, "id").to_owned();
    state.balancing.members.insert(made);
    id
}

fn update(state: &mut State, id: &str, given: &Map<String, Value>) {
    if let Some(found) = state.balancing.members.get_mut(id) {
        merge(found, given.clone());
        found["provisioning_status"] = json!("PENDING_UPDATE");
        found["updated_at"] = json!(now_plain());
    }
}

/// Makes a pool's members be these; known ones by address and port.
fn replace(state: &mut State, scope: &Scope, pool: &str, wanted: &[Map<String, Value>], additive: bool) {
    let mut kept = Vec::new();
    for one in wanted {
        match same(state, pool, one) {
            Some(found) => {
                let id = text(&found, "id").to_owned();
                update(state, &id, one);
                kept.push(id);
            }
            None => kept.push(insert(state, scope, pool, one)),
        }
    }
    if additive {
        return;
    }
    for id in state.balancing.members.ids(|member| text(member, "_pool") == pool) {
        if !kept.contains(&id)
            && let Some(member) = state.balancing.members.get_mut(&id)
        {
            member["provisioning_status"] = json!("PENDING_DELETE");
        }
    }
}
