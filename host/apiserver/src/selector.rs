//! Label and field selectors, as they stand in `labelSelector=` and `fieldSelector=`.
//!
//! Both are parsed once per request and then matched against many objects, so matching allocates nothing
//! for strings. A label requirement that excludes (`!=`, `notin`) matches objects that lack the label; a
//! field that is absent counts as the empty string.

mod field;
mod label;

pub use field::FieldSelector;
pub use label::LabelSelector;

/// A selector that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The text ended or went on where the grammar does not allow it.
    #[error("unable to parse requirement: found '{found}', expected: {expected}")]
    Syntax {
        /// What stood there; empty at the end of the text.
        found: String,
        /// What would have been allowed.
        expected: &'static str,
    },
    /// A label key or value that no object can carry.
    #[error("unable to parse requirement: invalid label {what} '{text}'")]
    Label {
        /// `key` or `value`.
        what: &'static str,
        /// The offending text.
        text: String,
    },
    /// `>` and `<` compare integers.
    #[error("for 'Gt', 'Lt' operators, the value must be an integer: '{0}'")]
    NotInteger(String),
    /// A field term without an operator.
    #[error("invalid selector: '{0}'; can't understand '{0}'")]
    Field(String),
    /// A backslash before anything but `\`, `,` and `=`.
    #[error("invalid field selector: invalid escape sequence in '{0}'")]
    Escape(String),
}

#[cfg(test)]
mod tests;
