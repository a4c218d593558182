//! Go's `text/template`, for files with `contentFormat: Template`.
//!
//! What a template is given is small: `.controlPlane.version`, where it is known. Of the language there is all that this
//! can need: text, comments, trimming, pipelines, variables, `if`, `with`, `range`, `define`, `template` and `block`,
//! `break` and `continue`, comparisons, `and`, `or`, `not`, `index`, `slice`, `len`, `print`, `println`, and `printf` with
//! the verbs `s v d q t x`. Floating-point and complex numbers, `call`, `html`, `js` and `urlquery` are refused by name.

mod evaluate;
mod functions;
mod lex;
mod parse;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

/// A value of a template.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// What a map does not have.
    Missing,
    /// A truth.
    Bool(bool),
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
    /// Sorted by key.
    Map(BTreeMap<String, Value>),
}

/// What templates are given.
#[derive(Clone, Debug)]
pub struct Data(Value);

impl Data {
    /// `.controlPlane.version` as it is (`v1.36.0`); no `.controlPlane` at all where the version is not known.
    pub fn new(control_plane_version: &str) -> Data {
        let mut root = BTreeMap::new();
        if !control_plane_version.is_empty() {
            let version = Value::Text(control_plane_version.to_owned());
            root.insert("controlPlane".to_owned(), Value::Map(BTreeMap::from([("version".to_owned(), version)])));
        }
        Data(Value::Map(root))
    }
}

/// The text that a template makes, or what is wrong with it.
pub fn render(template: &str, data: &Data) -> Result<String, String> {
    let parsed = parse::parse(template)?;
    evaluate::evaluate(&parsed, &data.0)
}
