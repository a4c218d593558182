//! An upper bound for the work of a CEL expression.
//!
//! The interpreter has no budget of its own, so an expression runs only if the bound for this very value is
//! affordable. The bound multiplies the length of the longest list at every nested loop and counts string work by
//! the longest string; anything that can grow values inside a loop counts as another factor.

use kube_cel::cel::common::ast::{Expr, LiteralValue};
use kube_cel::cel::parser::Expression;

use super::needs::children;

/// Steps that one rule may take on one value; a step is some 100 ns.
pub(super) const PER_RULE: f64 = 1e7;
/// Steps that all rules together may take on one object.
pub(super) const PER_OBJECT: f64 = 4e7;

/// Measures of the bound values.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Size {
    /// Items of the longest list or map.
    pub(super) longest_list: usize,
    /// Bytes of the longest string.
    pub(super) longest_text: usize,
}

/// Upper bound of an evaluation, in steps.
pub(super) fn bound(expression: &Expression, size: Size) -> f64 {
    match &expression.expr {
        Expr::Comprehension(loops) => {
            let rounds = (size.longest_list as f64).max(literal_rounds(&loops.iter_range)).max(1.0);
            let body = bound(&loops.loop_cond, size) + bound(&loops.loop_step, size) + 1.0;
            let growth = 1.0 + joins(&loops.loop_step) as f64;
            bound(&loops.iter_range, size)
                + bound(&loops.accu_init, size)
                + rounds * body * growth
                + bound(&loops.result, size)
        }
        Expr::Call(call) => {
            let text = size.longest_text as f64 / 16.0;
            let mut inner = 1.0;
            children(expression, &mut |child| inner += bound(child, size));
            match call.func_name.as_str() {
                "replace" | "join" | "format" | "split" | "flatten" | "findAll" | "lists.range" | "range" => {
                    inner * (1.0 + text + size.longest_list as f64)
                }
                name if name.starts_with(|first: char| first.is_ascii_alphabetic()) => inner + text,
                "_==_" | "_!=_" | "_+_" | "@in" => inner + text + size.longest_list as f64 / 4.0,
                _ => inner,
            }
        }
        _ => {
            let mut inner = 1.0;
            children(expression, &mut |child| inner += bound(child, size));
            inner
        }
    }
}

/// Rounds that literals alone can cause: the length of a list, or the size of a number given to a range.
fn literal_rounds(expression: &Expression) -> f64 {
    let mut rounds: f64 = match &expression.expr {
        Expr::List(list) => list.elements.len() as f64,
        Expr::Map(map) => map.entries.len() as f64,
        Expr::Literal(LiteralValue::Int(number)) => (*number.inner() as f64).abs(),
        Expr::Literal(LiteralValue::String(text)) => text.inner().len() as f64,
        _ => 1.0,
    };
    children(expression, &mut |child| rounds = rounds.max(literal_rounds(child)));
    rounds
}

/// Concatenations (`+`) in a loop body.
fn joins(expression: &Expression) -> usize {
    let mut count = match &expression.expr {
        Expr::Call(call) if call.func_name == "_+_" => 1,
        _ => 0,
    };
    children(expression, &mut |child| count += joins(child));
    count
}
