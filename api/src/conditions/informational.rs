//! Finds changes of a status that are only for people.

use serde_json::{Map, Value};

use super::Status;
use crate::names::condition;

/// Fields that follow from other fields of the status.
const ABOUT: [&str; 4] = ["conditions", "lastUpdated", "observedGeneration", "phase"];

/// Field with the status in older versions.
const DEPRECATED: &str = "deprecated";

/// Whether the status differs only in what is for people: conditions that neither become nor cease to be True, the
/// phase, the observed generation, and fields and types of conditions in `besides`, which summarise other objects.
/// Nobody acts on these, so such a status may be written a little later. Metadata and spec are not compared: they are
/// written on their own.
pub fn is_informational(before: &Value, after: &Value, besides: &[&str]) -> bool {
    let (before, after) = (before.get("status"), after.get("status"));
    fn older<'a>(status: Option<&'a Value>, version: &str) -> Option<&'a Value> {
        status?.get(DEPRECATED)?.get(version)
    }
    let versions = [before, after].into_iter().filter_map(|status| status?.get(DEPRECATED)?.as_object());
    differs_for_people(before, after, besides)
        && versions
            .flat_map(Map::keys)
            .all(|version| differs_for_people(older(before, version), older(after, version), besides))
}

/// Whether two statuses, or what they say for an older version, differ for people alone.
fn differs_for_people(before: Option<&Value>, after: Option<&Value>, besides: &[&str]) -> bool {
    let skipped = |key: &str| key == DEPRECATED || ABOUT.contains(&key) || besides.contains(&key);
    let keys = [before, after].into_iter().filter_map(|status| status?.as_object()).flat_map(Map::keys);
    fn field<'a>(status: Option<&'a Value>, key: &str) -> Option<&'a Value> {
        status?.get(key).filter(|value| !value.is_null())
    }
    keys.filter(|key| !skipped(key)).all(|key| field(before, key) == field(after, key))
        && conditions(field(before, "conditions"), field(after, "conditions"), besides)
}

fn conditions(before: Option<&Value>, after: Option<&Value>, besides: &[&str]) -> bool {
    fn entries(list: Option<&Value>) -> impl Iterator<Item = (&str, Status)> + Clone {
        list.and_then(Value::as_array).into_iter().flatten().filter_map(|entry| {
            let name = entry.get("type")?.as_str().filter(|name| !name.is_empty())?;
            Some((name, Status::parse(entry.get("status").and_then(Value::as_str).unwrap_or_default())))
        })
    }
    let of = |list: Option<&Value>, name: &str| entries(list).find(|one| one.0 == name).map(|one| one.1);
    let mut told = entries(before).chain(entries(after)).filter(|(name, _)| !besides.contains(name));
    told.all(|(name, _)| match (of(before, name), of(after, name)) {
        // That a new machine is up to date is no news.
        (None, Some(Status::True)) => name == condition::UP_TO_DATE,
        (None, Some(_)) => true,
        (Some(_), None) => false,
        (from, to) => from == to || (from != Some(Status::True) && to != Some(Status::True)),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_people_alone_read_is_no_news() {
        let with = |conditions: &[(&str, &str, &str)], more: Value| {
            let list: Vec<Value> = conditions
                .iter()
                .map(|(name, status, reason)| json!({"type": name, "status": status, "reason": reason}))
                .collect();
            let mut object = json!({"metadata": {"name": "m"}, "status": {"conditions": list}});
            if let (Some(status), Value::Object(more)) = (object["status"].as_object_mut(), more) {
                status.extend(more);
            }
            object
        };
        let of = |conditions: &[(&str, &str, &str)]| with(conditions, json!({}));
        let rows = [
            ("nothing differs", of(&[("Ready", "True", "Ready")]), of(&[("Ready", "True", "Ready")]), true),
            (
                "the first status",
                json!({}),
                of(&[("Ready", "False", "NotReady"), ("NodeHealthy", "Unknown", "W")]),
                true,
            ),
            ("a reason", of(&[("Ready", "False", "A")]), of(&[("Ready", "False", "B")]), true),
            ("unknown becomes false", of(&[("Ready", "Unknown", "A")]), of(&[("Ready", "False", "B")]), true),
            ("false becomes true", of(&[("Ready", "False", "A")]), of(&[("Ready", "True", "B")]), false),
            ("true becomes unknown", of(&[("Ready", "True", "A")]), of(&[("Ready", "Unknown", "B")]), false),
            ("a new one holds", of(&[]), of(&[("Paused", "True", "P")]), false),
            ("a new machine is up to date", of(&[]), of(&[("UpToDate", "True", "U")]), true),
            (
                "a sum of what stands elsewhere",
                of(&[("ScalingUp", "True", "A")]),
                of(&[("ScalingUp", "False", "B")]),
                true,
            ),
            ("one is gone", of(&[("Ready", "False", "A")]), of(&[]), false),
            (
                "phase and generation",
                with(&[], json!({"phase": "Pending", "observedGeneration": 1})),
                with(
                    &[],
                    json!({"phase": "Provisioning", "observedGeneration": 2, "lastUpdated": "2026-01-01T00:00:00Z"}),
                ),
                true,
            ),
            ("a latch", with(&[], json!({})), with(&[], json!({"initialization": {"provisioned": true}})), false),
            ("a counter", with(&[], json!({"replicas": 1})), with(&[], json!({"replicas": 2})), false),
            ("a counter that nobody reads", with(&[], json!({"workers": 1})), with(&[], json!({"workers": 2})), true),
            (
                "older versions are told a reason",
                with(&[], json!({})),
                with(&[], json!({"deprecated": {"v1beta1": {"conditions": [{"type": "Ready", "status": "False"}]}}})),
                true,
            ),
            (
                "older versions are told that it is ready",
                with(&[], json!({})),
                with(&[], json!({"deprecated": {"v1beta1": {"conditions": [{"type": "Ready", "status": "True"}]}}})),
                false,
            ),
            ("null is absence", with(&[], json!({"x": null})), with(&[], json!({})), true),
        ];
        for (row, before, after, expected) in rows {
            assert_eq!(is_informational(&before, &after, &["ScalingUp", "workers"]), expected, "{row}");
        }
    }
}
