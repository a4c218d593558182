//! Field selectors, as they stand in `fieldSelector=`: `metadata.name=x,spec.nodeName!=y`.
//!
//! Parsed once per request and then matched against many objects. A field that is absent counts as the empty text.

use std::borrow::Cow;

use serde_json::Value;

/// Why a field selector is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldSelectorError {
    /// A term without an operator.
    #[error("invalid selector: '{0}'; can't understand '{0}'")]
    Term(String),
    /// A backslash before anything but `\`, `,` and `=`.
    #[error("invalid field selector: invalid escape sequence in '{0}'")]
    Escape(String),
}

/// A conjunction of comparisons of fields; empty selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<FieldTerm>,
}

/// One comparison. Which paths a kind supports is decided by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldTerm {
    /// Dotted path, such as `metadata.name`.
    pub path: String,
    /// Text that the field is compared with.
    pub value: String,
    /// `=` when true, `!=` when false.
    pub equal: bool,
}

impl FieldSelector {
    /// Parses the text of a `fieldSelector` query parameter; `\` escapes `\`, `,` and `=` in values.
    pub fn parse(text: &str) -> Result<Self, FieldSelectorError> {
        let terms = split(text).into_iter().filter(|term| !term.is_empty()).map(term).collect::<Result<_, _>>()?;
        Ok(Self { terms })
    }

    /// Whether all terms hold for `object`.
    pub fn matches(&self, object: &Value) -> bool {
        self.terms.iter().all(|term| (field(object, &term.path) == term.value) == term.equal)
    }

    /// Whether there are no terms.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// The comparisons, in the order of the text.
    pub fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    /// The value of an `=` term on `path`, if there is one: lets a list of one name be a lookup.
    pub fn exact(&self, path: &str) -> Option<&str> {
        self.terms.iter().find(|term| term.equal && term.path == path).map(|term| term.value.as_str())
    }
}

/// The field as text; absent, null and composite fields are empty.
fn field<'a>(object: &'a Value, path: &str) -> Cow<'a, str> {
    let mut at = object;
    for segment in path.split('.') {
        match at.get(segment) {
            Some(next) => at = next,
            None => return Cow::Borrowed(""),
        }
    }
    match at {
        Value::String(text) => Cow::Borrowed(text),
        Value::Bool(true) => Cow::Borrowed("true"),
        Value::Bool(false) => Cow::Borrowed("false"),
        Value::Number(number) => Cow::Owned(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => Cow::Borrowed(""),
    }
}

/// Splits at commas that are not escaped.
fn split(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' => {
                terms.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn term(text: &str) -> Result<FieldTerm, FieldSelectorError> {
    let at = text.find(['!', '=']).ok_or_else(|| FieldSelectorError::Term(text.to_owned()))?;
    let (path, rest) = text.split_at(at);
    let (equal, value) = if let Some(value) = rest.strip_prefix("!=") {
        (false, value)
    } else if let Some(value) = rest.strip_prefix("==").or_else(|| rest.strip_prefix('=')) {
        (true, value)
    } else {
        return Err(FieldSelectorError::Term(text.to_owned()));
    };
    if path.is_empty() {
        return Err(FieldSelectorError::Term(text.to_owned()));
    }
    Ok(FieldTerm { path: path.to_owned(), value: unescape(value)?, equal })
}

fn unescape(text: &str) -> Result<String, FieldSelectorError> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some(next @ ('\\' | ',' | '=')) => plain.push(next),
                _ => return Err(FieldSelectorError::Escape(text.to_owned())),
            },
            '=' => return Err(FieldSelectorError::Term(text.to_owned())),
            other => plain.push(other),
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use serde_json::json;

    use super::*;

    #[test]
    fn field_selectors_compare_dotted_paths_as_text() {
        let object = json!({"metadata": {"name": "a"}, "spec": {"n": 3, "on": true, "odd": "a,b=c\\"}});
        let table = [
            ("", true, "empty"),
            ("metadata.name=a", true, "equal"),
            ("metadata.name==a", true, "double equal"),
            ("metadata.name!=a", false, "not equal"),
            ("metadata.namespace=", true, "absent is empty"),
            ("spec.n=3,spec.on=true", true, "numbers and booleans as text"),
            ("spec.odd=a\\,b\\=c\\\\", true, "escapes"),
            ("spec=", true, "a composite is empty"),
        ];
        for (text, expected, name) in table {
            assert_eq!(FieldSelector::parse(text).unwrap().matches(&object), expected, "{name}");
        }
        assert_eq!(FieldSelector::parse("a!=b,metadata.name=x").unwrap().exact("metadata.name"), Some("x"));
        for text in ["a", "=b", "a=b=c", "a=\\x", "a!b", "a=\\"] {
            assert!(FieldSelector::parse(text).is_err(), "{text:?}");
        }
    }
}
