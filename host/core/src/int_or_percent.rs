//! Integers or percentages, such as `maxSurge`.

use serde_json::Value;

/// Resolves `value` against `whole`; percentages are rounded up or down.
pub(crate) fn resolve(value: &Value, whole: i64, up: bool) -> i64 {
    let text = value.as_str().unwrap_or_default();
    match text.strip_suffix('%').and_then(|percent| percent.trim().parse::<i64>().ok()) {
        Some(percent) if up => whole.saturating_mul(percent).saturating_add(99) / 100,
        Some(percent) => whole.saturating_mul(percent) / 100,
        None => value.as_i64().or_else(|| text.parse().ok()).unwrap_or(0),
    }
    // No number of replicas is larger, and sums of these stay in range.
    .clamp(0, i64::from(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn percentages_are_rounded_as_asked() {
        for (value, up, expected) in [
            (json!(2), true, 2),
            (json!("2"), true, 2),
            (json!("40%"), true, 2),
            (json!("40%"), false, 1),
            (json!("100%"), false, 4),
            (json!(-1), false, 0),
            (json!("nonsense"), false, 0),
        ] {
            assert_eq!(resolve(&value, 4, up), expected, "{value}");
        }
    }
}
