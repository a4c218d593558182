//! Order in which Machines are deleted when a set shrinks.

use capwasm_api::conditions;
use capwasm_api::names::{annotations, condition};
use capwasm_object::{json, meta};
use jiff::Timestamp;
use serde_json::Value;

const DELETING: f64 = 100.0;
const ASKED_FOR: f64 = 80.0;
const UNHEALTHY: f64 = 50.0;
const RANDOM: f64 = 20.0;
/// Age in days at which the priority by age reaches 63 % of its limit.
const DAYS: f64 = 10.0;

/// The `count` Machines to delete, in order; ties by name.
pub(super) fn choose<'a>(
    machines: impl IntoIterator<Item = &'a Value>,
    count: usize,
    order: Option<&str>,
    now: Timestamp,
) -> Vec<&'a Value> {
    let mut ranked: Vec<(f64, &Value)> =
        machines.into_iter().map(|machine| (priority(machine, order, now), machine)).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| meta::name(a.1).cmp(meta::name(b.1))));
    ranked.into_iter().take(count).map(|(_, machine)| machine).collect()
}

fn priority(machine: &Value, order: Option<&str>, now: Timestamp) -> f64 {
    if meta::is_deleting(machine) {
        return DELETING;
    }
    if meta::annotation(machine, annotations::DELETE_MACHINE).is_some() {
        return ASKED_FOR;
    }
    let unhealthy = json::text(machine, "/status/nodeRef/name").is_none()
        || conditions::is_false(machine, condition::NODE_HEALTHY)
        || conditions::is_false(machine, condition::HEALTH_CHECK_SUCCEEDED);
    if unhealthy {
        return UNHEALTHY;
    }
    let oldest = || {
        let created =
            json::text(machine, "/metadata/creationTimestamp").and_then(|created| created.parse::<Timestamp>().ok());
        let days = created.map_or(0.0, |created| now.duration_since(created).as_secs_f64() / 86_400.0).max(0.0);
        UNHEALTHY * (1.0 - (-days / DAYS).exp())
    };
    match order {
        Some("Oldest") => oldest(),
        Some("Newest") => UNHEALTHY - oldest(),
        _ => RANDOM,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn machines_go_in_the_order_that_upstream_has() {
        let healthy = |name: &str, created: &str| json!({"metadata": {"name": name, "creationTimestamp": created, "annotations": {}}, "status": {"nodeRef": {"name": "n"}}});
        let (old, new) = (healthy("old", "2026-01-01T00:00:00Z"), healthy("new", "2026-01-20T00:00:00Z"));
        let mut asked = healthy("z-asked", "2026-01-10T00:00:00Z");
        asked["metadata"]["annotations"] = json!({"cluster.x-k8s.io/delete-machine": ""});
        let mut sick = healthy("sick", "2026-01-10T00:00:00Z");
        sick["status"]["conditions"] = json!([{"type": "NodeHealthy", "status": "False"}]);
        let mut nodeless = healthy("nodeless", "2026-01-10T00:00:00Z");
        nodeless["status"] = json!({});
        let mut going = healthy("zz-going", "2026-01-10T00:00:00Z");
        going["metadata"]["deletionTimestamp"] = json!("2026-01-20T00:00:00Z");
        let all = [&old, &new, &asked, &sick, &nodeless, &going];
        let now = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(24 * 20_480);
        for (order, expected) in [
            (None, ["zz-going", "z-asked", "nodeless", "sick", "new", "old"]),
            (Some("Oldest"), ["zz-going", "z-asked", "nodeless", "sick", "old", "new"]),
            (Some("Newest"), ["zz-going", "z-asked", "nodeless", "sick", "new", "old"]),
        ] {
            let names: Vec<_> = choose(all, 6, order, now).into_iter().map(meta::name).collect();
            assert_eq!(names, expected, "{order:?}");
        }
        assert_eq!(choose(all, 2, None, now).len(), 2);
    }
}
