//! A small part of Go's template language: as much as load balancer configurations use.
//!
//! Understood: fields (`.A.B`), variables (`$x`, `$.A`, `$x := …`), strings, numbers, `true`, `false`, parentheses, pipelines,
//! `if`/`else if`/`else`, `range` over mappings and lists with variables and `else`, `with`, comments, trim marks, and the
//! functions `JoinHostPort`, `eq`, `ne`, `not`, `and`, `or`, `len`, `print`. Whatever else stands in a template is an error
//! that names its line. Mappings are walked in the order of their keys, as Go does.

mod evaluate;
mod parse;

use serde_json::Value;

/// Larger templates are refused.
const LARGEST: usize = 64 << 10;

/// Why a template cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("line {line} of the template: {why}")]
pub struct TemplateError {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong.
    pub why: String,
}

/// Fills in a template.
pub fn render(template: &str, data: &Value) -> Result<String, TemplateError> {
    if template.len() > LARGEST {
        return Err(TemplateError { line: 1, why: format!("it has more than {LARGEST} bytes") });
    }
    evaluate::run(&parse::parse(template)?, data)
}

#[cfg(test)]
mod tests;
