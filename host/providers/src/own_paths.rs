//! Paths outside of status that a descriptor declares as the provider's own, and the guest's fields at them.
//!
//! Other fields are reported in a few short texts, whatever their number: a guest decides how many and how long they
//! are.

use capwasm_reconcile::Event;
use serde_json::Value;

/// Dropped paths that are reported by name.
const REPORTED: usize = 5;
/// Longest reported path in bytes, before it is escaped.
const PATH_BYTES: usize = 128;

/// Own paths as lists of keys. None lies below another.
#[derive(Clone, Debug, Default)]
pub struct OwnPaths(Vec<Vec<String>>);

impl OwnPaths {
    /// From dotted paths of a descriptor: `spec.providerID`, `metadata.annotations.example.org/size`.
    pub fn new(declared: &[String]) -> Self {
        let mut paths: Vec<Vec<String>> = declared.iter().map(|path| keys(path)).collect();
        paths.sort_unstable();
        // What lies below another comes right after it, or after what else lies there.
        paths.dedup_by(|below, above| below.starts_with(above));
        Self(paths)
    }

    /// The fields at own paths.
    pub fn declared<'a>(&'a self, fields: &'a Value) -> impl Iterator<Item = (&'a [String], &'a Value)> {
        let at = move |path: &Vec<String>| path.iter().try_fold(fields, |at, key| at.get(key));
        self.0.iter().filter_map(move |path| Some((path.as_slice(), at(path)?)))
    }

    /// Reports the leaves elsewhere.
    pub fn undeclared(&self, fields: &Value, report: &mut Dropped) {
        let own: Vec<&[String]> = self.0.iter().map(Vec::as_slice).collect();
        walk(fields, &own, &mut Vec::new(), report);
    }
}

/// Visits the leaves below `path` until the report is full; `own` is relative to it.
fn walk<'a>(value: &'a Value, own: &[&[String]], path: &mut Vec<&'a str>, report: &mut Dropped) {
    let Some(map) = value.as_object() else { return report.push(path.iter().copied()) };
    for (key, value) in map {
        if report.more {
            return;
        }
        let below: Vec<&[String]> = own
            .iter()
            .filter_map(|own| own.split_first().filter(|(first, _)| *first == key))
            .map(|own| own.1)
            .collect();
        if below.iter().any(|rest| rest.is_empty()) {
            continue;
        }
        path.push(key);
        walk(value, &below, path, report);
        path.pop();
    }
}

/// Dropped paths: the first few, shortened.
#[derive(Clone, Debug, Default)]
pub struct Dropped {
    paths: Vec<String>,
    more: bool,
}

impl Dropped {
    pub fn push<'a>(&mut self, keys: impl Iterator<Item = &'a str>) {
        if self.paths.len() == REPORTED {
            self.more = true;
            return;
        }
        let mut path = String::new();
        for (place, key) in keys.enumerate() {
            path.push_str(if place == 0 { "" } else { "." });
            path.push_str(&key[..key.floor_char_boundary(PATH_BYTES + 4)]);
            if path.len() > PATH_BYTES {
                path.truncate(path.floor_char_boundary(PATH_BYTES));
                path.push('…');
                break;
            }
        }
        self.paths.push(path.escape_debug().to_string());
    }

    /// The event that reports them; `None` when nothing was dropped.
    pub fn event(&self) -> Option<Event> {
        let paths = self.paths.join(", ");
        let more = if self.more { " and more" } else { "" };
        let message = format!(
            "the provider set {paths}{more}, which its descriptor does not declare as its own, or the host's; dropped"
        );
        (!self.paths.is_empty()).then(|| Event::warning("PathNotOwned", message))
    }
}

/// The keys of a declared path. Names of labels and annotations contain dots themselves.
fn keys(declared: &str) -> Vec<String> {
    for map in ["labels", "annotations"] {
        if let Some(name) =
            declared.strip_prefix("metadata.").and_then(|rest| rest.strip_prefix(map)?.strip_prefix('.'))
        {
            return ["metadata", map, name].map(str::to_owned).to_vec();
        }
    }
    declared.split('.').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn own(paths: &[&str]) -> OwnPaths {
        OwnPaths::new(&paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn fields_are_parted_by_declared_paths() {
        let declared = own(&["spec.a.b", "spec.size", "spec.a", "spec.size", "metadata.labels.x/y.z"]);
        let fields = json!({"spec": {"a": {"b": 1, "c": 2}, "size": null, "other": {"d": [1], "e": {}}},
            "metadata": {"labels": {"x/y.z": "1", "x": "2"}}});
        let found: Vec<(String, &Value)> =
            declared.declared(&fields).map(|(path, value)| (path.join("|"), value)).collect();
        let expected = [
            ("metadata|labels|x/y.z".to_owned(), &json!("1")),
            ("spec|a".to_owned(), &json!({"b": 1, "c": 2})),
            ("spec|size".to_owned(), &Value::Null),
        ];
        assert_eq!(found, expected);
        let mut dropped = Dropped::default();
        declared.undeclared(&fields, &mut dropped);
        assert_eq!(
            (dropped.paths.as_slice(), dropped.more),
            (&["metadata.labels.x".into(), "spec.other.d".into()][..], false)
        );
    }

    /// 88 KiB made 238 MiB once: the path of each leaf was kept, and each path is as long as the keys above it.
    #[test]
    fn what_a_hostile_guest_sets_is_reported_in_a_few_short_paths() {
        let declared = own(&["spec.size"]);
        let leaves: Value =
            (0..50_000).map(|leaf| (format!("{leaf}"), json!(1))).collect::<serde_json::Map<_, _>>().into();
        let wide = json!({("ü\u{1b}\n".repeat(500_000)): leaves.clone()});
        let above = |below, _| Value::Object([("k".repeat(10_000), below)].into_iter().collect());
        let deep = (0..100).fold(leaves.clone(), above);
        let mut spread = leaves;
        spread["spec"] = json!({"size": 4});
        for (name, fields) in [("wide", wide), ("deep", deep), ("spread", spread)] {
            let mut dropped = Dropped::default();
            declared.undeclared(&fields, &mut dropped);
            let event = dropped.event().map(|event| event.message).unwrap_or_default();
            assert!(dropped.more && dropped.paths.len() == REPORTED, "{name}: {event}");
            assert!(event.len() < 4_000 && !event.contains(char::is_control), "{name}: {} bytes", event.len());
        }
    }
}
