//! Field selectors: `metadata.name=x,spec.nodeName!=y`.

use std::borrow::Cow;

use serde_json::Value;

use super::SelectorError;

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
    /// What the field is compared with.
    pub value: String,
    /// `=` when true, `!=` when false.
    pub equal: bool,
}

impl FieldSelector {
    /// Parses the text of a `fieldSelector` query parameter; `\` escapes `\`, `,` and `=` in values.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let terms = split(text).into_iter().filter(|term| !term.is_empty()).map(term).collect::<Result<_, _>>()?;
        Ok(Self { terms })
    }

    /// Whether the object is selected.
    pub fn matches(&self, object: &Value) -> bool {
        self.terms.iter().all(|term| (field(object, &term.path) == term.value) == term.equal)
    }

    /// Whether everything is selected.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// The comparisons, in the order of the text.
    pub fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    /// The value that `path` must equal, if the selector demands one: lets a list of one name be a lookup.
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

fn term(text: &str) -> Result<FieldTerm, SelectorError> {
    let at = text.find(['!', '=']).ok_or_else(|| SelectorError::Field(text.to_owned()))?;
    let (path, rest) = text.split_at(at);
    let (equal, value) = if let Some(value) = rest.strip_prefix("!=") {
        (false, value)
    } else if let Some(value) = rest.strip_prefix("==").or_else(|| rest.strip_prefix('=')) {
        (true, value)
    } else {
        return Err(SelectorError::Field(text.to_owned()));
    };
    if path.is_empty() {
        return Err(SelectorError::Field(text.to_owned()));
    }
    Ok(FieldTerm { path: path.to_owned(), value: unescape(value)?, equal })
}

fn unescape(text: &str) -> Result<String, SelectorError> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some(next @ ('\\' | ',' | '=')) => plain.push(next),
                _ => return Err(SelectorError::Escape(text.to_owned())),
            },
            '=' => return Err(SelectorError::Field(text.to_owned())),
            other => plain.push(other),
        }
    }
    Ok(plain)
}
