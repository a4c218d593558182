//! Label selectors of the equality kind, as kubectl takes them: `a=b,c!=d,e,!f`.

use serde_json::Value;

use crate::object;

/// One requirement on a label.
pub enum Requirement {
    /// `name=value`.
    Equals(String, String),
    /// `name!=value`.
    Differs(String, String),
    /// `name`.
    Exists(String),
    /// `!name`.
    Absent(String),
}

/// None for what is not a selector of this kind.
pub fn parse(text: &str) -> Option<Vec<Requirement>> {
    let terms = text.split(',').map(str::trim).filter(|term| !term.is_empty());
    terms.map(requirement).collect()
}

fn requirement(term: &str) -> Option<Requirement> {
    if term.contains(['(', ')', ' ']) {
        return None;
    }
    let requirement = if let Some((name, value)) = term.split_once("!=") {
        Requirement::Differs(name.to_owned(), value.to_owned())
    } else if let Some((name, value)) = term.split_once('=') {
        Requirement::Equals(name.to_owned(), value.trim_start_matches('=').to_owned())
    } else if let Some(name) = term.strip_prefix('!') {
        Requirement::Absent(name.to_owned())
    } else {
        Requirement::Exists(term.to_owned())
    };
    Some(requirement)
}

/// Whether the object's labels meet all requirements.
pub fn matches(requirements: &[Requirement], candidate: &Value) -> bool {
    requirements.iter().all(|requirement| match requirement {
        Requirement::Equals(name, value) => object::label(candidate, name) == Some(value),
        Requirement::Differs(name, value) => object::label(candidate, name) != Some(value),
        Requirement::Exists(name) => object::label(candidate, name).is_some(),
        Requirement::Absent(name) => object::label(candidate, name).is_none(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn labels_are_selected_as_kubectl_does() {
        let object = json!({"metadata": {"labels": {"a": "b", "e": ""}}});
        for (text, expected) in [
            ("", true),
            ("a=b", true),
            ("a==b", true),
            ("a=c", false),
            ("a!=c", true),
            ("a!=b", false),
            ("e", true),
            ("x", false),
            ("!x", true),
            ("!e", false),
            ("a=b,!e", false),
        ] {
            assert_eq!(matches(&parse(text).unwrap(), &object), expected, "{text}");
        }
        assert!(parse("a in (b)").is_none());
    }
}
