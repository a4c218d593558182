//! Go's `text/template` for components, where every kilobyte counts.
//!
//! Of the language there is text, comments, trimming, pipelines, variables, `if`, `with`, `range`, `define`, `template` and
//! `block`, `break` and `continue`, comparisons, `and`, `or`, `not`, `index`, `slice`, `len`, `print`, `println`, and `printf`
//! with the verbs `s v d q t x`, and what the caller adds. Floating-point and complex numbers, `call`, `html`, `js` and `urlquery`
//! are refused by name. Values are JSON, and null is what a mapping does not have. Mappings are walked in the order of their
//! keys, as Go does. Whatever a template holds, it neither panics nor runs on.
//!
//! ```
//! use capwasm_template::{Language, Missing};
//! use serde_json::{Value, json};
//!
//! fn shout(arguments: &[Value]) -> Result<Value, String> {
//!     let [Value::String(text)] = arguments else { return Err("shout takes one text".to_owned()) };
//!     Ok(json!(text.to_uppercase()))
//! }
//! let language = Language { functions: &[("shout", shout)], missing: Missing::Refused, largest: 1 << 16 };
//! let made = language.render("Hello, {{ shout .Name }}!", &json!({"Name": "world"}));
//! assert_eq!(made.as_deref(), Ok("Hello, WORLD!"));
//! ```

mod evaluate;
mod functions;
mod lex;
mod parse;
#[cfg(test)]
mod tests;

use serde_json::Value;

/// A function of templates: from its arguments, a piped value last, to its value, or to what is wrong with them.
pub type Function = fn(&[Value]) -> Result<Value, String>;

/// What a field that a mapping does not have is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Not true, and shown as `<no value>`: Go's default.
    NoValue,
    /// An error: Go's `missingkey=error`.
    Refused,
}

/// What a template may call, and how strict it is.
#[derive(Clone, Copy, Debug)]
pub struct Language {
    /// Functions besides Go's own, by name.
    pub functions: &'static [(&'static str, Function)],
    /// What a field that is not there is.
    pub missing: Missing,
    /// Bytes that a template may have, and that it may make.
    pub largest: usize,
}

/// Why a template makes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// The line where it was seen, counted from 1.
    pub line: usize,
    /// What is wrong there, as text after `line N:`.
    pub why: String,
}

impl std::fmt::Display for TemplateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {} of the template: {}", self.line, self.why)
    }
}

impl std::error::Error for TemplateError {}

impl Language {
    /// The text that a template makes of `data`.
    ///
    /// # Errors
    /// Where the template is wrong, and why; also when it or its text is larger than [`Language::largest`], nested too deeply, or
    /// does not come to an end.
    pub fn render(&self, template: &str, data: &Value) -> Result<String, TemplateError> {
        if template.len() > self.largest {
            return Err(TemplateError { line: 1, why: format!("it has more than {} bytes", self.largest) });
        }
        let parsed = parse::parse(template, self)?;
        evaluate::evaluate(&parsed, self, data)
    }

    fn function(&self, name: &str) -> Option<Function> {
        self.functions.iter().find(|(known, _)| *known == name).map(|(_, function)| *function)
    }
}
