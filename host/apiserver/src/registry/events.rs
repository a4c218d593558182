//! Events of `v1` and `events.k8s.io/v1` are the same objects under different field names.

use serde_json::Value;

/// Field names in `v1` and in `events.k8s.io/v1`.
const RENAMED: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

pub(super) fn convert(mut event: Value, to: &str) -> Value {
    let Some(fields) = event.as_object_mut() else { return event };
    for (core, modern) in RENAMED {
        let (from, onto) = if to == "v1" { (modern, core) } else { (core, modern) };
        if let Some(value) = fields.remove(*from) {
            fields.insert((*onto).to_owned(), value);
        }
    }
    fields.insert("apiVersion".to_owned(), Value::from(to));
    event
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_survives_the_way_there_and_back() {
        let core = json!({"apiVersion": "v1", "kind": "Event", "reason": "R", "message": "m", "involvedObject": {"name": "x"}, "count": 2});
        let modern = convert(core.clone(), "events.k8s.io/v1");
        assert_eq!(modern["note"], "m");
        assert_eq!(modern["regarding"]["name"], "x");
        assert_eq!(convert(modern, "v1"), core);
    }
}
