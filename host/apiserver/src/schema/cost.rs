//! An upper bound for the work and the memory of a CEL expression.
//!
//! The interpreter has no budget of its own, so an expression runs only if the bound for these very values is affordable. Each part
//! of an expression is estimated with what is known of its values: how long they are and what their items are. A loop is followed for
//! two rounds, which tell how what it gathers goes on growing.

use std::rc::Rc;

use kube_cel::cel::common::ast::{Expr, LiteralValue};
use kube_cel::cel::parser::Expression;

use super::needs::children;

/// Steps that one rule may take on one value; a step is some 100 ns.
pub(super) const PER_RULE: f64 = 1e7;
/// Steps that all rules together may take on one object.
pub(super) const PER_OBJECT: f64 = 4e7;
/// Bytes that the evaluation of one rule may hold, besides the values that it looks at.
pub(super) const HELD: f64 = (32 << 20) as f64;

/// Bytes of an item in a list, and of an entry of a map.
const ITEM: f64 = 64.0;
/// Bytes that are copied or compared in a step.
const BYTES_A_STEP: f64 = 16.0;

/// Measures of the bound values.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Size {
    /// Items of the longest list or map.
    pub(super) longest_list: usize,
    /// Bytes of the longest string.
    pub(super) longest_text: usize,
    /// Bytes of all strings, and some for each value.
    pub(super) whole: usize,
    /// The number furthest from 0.
    pub(super) number: f64,
}

/// What an evaluation takes at most.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    pub(super) steps: f64,
    /// Bytes held at the same time.
    pub(super) bytes: f64,
}

/// Upper bound of an evaluation.
pub(super) fn of(expression: &Expression, size: Size) -> Cost {
    let bound = Shape {
        text: size.longest_text as f64,
        items: size.longest_list as f64,
        whole: size.whole as f64,
        number: size.number,
        ..Shape::default()
    };
    let Estimate { steps, peak, .. } = estimate(expression, &Scope { name: "", shape: &bound, outer: None });
    Cost { steps, bytes: peak }
}

/// Upper bounds of a value.
#[derive(Debug, Clone, Default)]
struct Shape {
    /// Bytes, if it is a text.
    text: f64,
    /// Items, if it is a list or a map.
    items: f64,
    /// Bytes when it is written out.
    whole: f64,
    /// Distance from 0, if it is a number.
    number: f64,
    /// Whether it was made by the expression.
    fresh: bool,
    /// Bytes that its items hold, as far as they were made by the expression.
    below: f64,
    /// Its items or fields; `None`: they are like itself, as those of the bound values.
    item: Option<Rc<Shape>>,
}

impl Shape {
    fn scalar() -> Self {
        Self { whole: BYTES_A_STEP, number: 1.0, ..Self::default() }
    }

    fn text(bytes: f64) -> Self {
        Self { text: bytes, whole: bytes + BYTES_A_STEP, fresh: true, ..Self::default() }
    }

    fn list(items: f64, item: Self, below: f64) -> Self {
        Self {
            items,
            whole: items * (item.whole + BYTES_A_STEP),
            fresh: true,
            below,
            item: Some(Rc::new(item)),
            ..Self::default()
        }
    }

    /// An item or a field of it. It is shared with it, so nothing more is held.
    fn item(&self) -> Self {
        let item = self.item.as_deref().unwrap_or(self);
        Self { fresh: false, below: 0.0, ..item.clone() }
    }

    /// An item, of as many: together they are no larger than the whole, however it is divided among them, and what is done with each
    /// adds up.
    fn share_of(&self, items: f64) -> Self {
        let item = self.item();
        Self { whole: item.whole.min(self.whole / items), ..item }
    }

    /// Any value within it, however deep.
    fn any_item(&self) -> Self {
        let item = self.item();
        if self.item.is_none() { item } else { item.or(&item.any_item()) }
    }

    /// Bytes that were allocated for it.
    fn held(&self) -> f64 {
        if self.fresh { self.text + ITEM * self.items + self.below } else { self.below }
    }

    fn length(&self) -> f64 {
        self.text.max(self.items)
    }

    /// One of both.
    fn or(&self, other: &Self) -> Self {
        let item = match (&self.item, &other.item) {
            (None, None) => None,
            _ => Some(Rc::new(self.item().or(&other.item()))),
        };
        self.with(other, f64::max, item)
    }

    fn with(&self, other: &Self, both: impl Fn(f64, f64) -> f64, item: Option<Rc<Self>>) -> Self {
        Self {
            text: both(self.text, other.text),
            items: both(self.items, other.items),
            whole: both(self.whole, other.whole),
            number: both(self.number, other.number),
            fresh: self.fresh || other.fresh,
            below: both(self.below, other.below),
            item,
        }
    }

    /// After `rounds` of a loop that made `first` of it, and `second` of that.
    fn grown(&self, first: &Self, second: &Self, rounds: f64) -> Self {
        let grown = |zero: f64, one: f64, two: f64| {
            let (before, after) = (one - zero, two - one);
            match () {
                () if after <= 0.0 => zero.max(one),
                () if after <= before * 1.001 => zero + rounds * before,
                // It grows by more each round: nobody can pay for that.
                () => f64::INFINITY,
            }
        };
        let item = match (&first.item, &second.item) {
            (Some(first), Some(second)) => Some(Rc::new(first.grown(second, second, 1.0).or(second))),
            _ => second.item.clone(),
        };
        Self {
            text: grown(self.text, first.text, second.text),
            items: grown(self.items, first.items, second.items),
            whole: grown(self.whole, first.whole, second.whole),
            number: grown(self.number, first.number, second.number),
            fresh: first.fresh || second.fresh,
            below: grown(self.below, first.below, second.below),
            item,
        }
    }
}

/// Variables of loops; the outermost scope is that of `self` and `oldSelf`.
struct Scope<'a> {
    name: &'a str,
    shape: &'a Shape,
    outer: Option<&'a Scope<'a>>,
}

impl Scope<'_> {
    fn find(&self, name: &str) -> &Shape {
        match self.outer {
            Some(outer) if self.name != name => outer.find(name),
            _ => self.shape,
        }
    }
}

struct Estimate {
    shape: Shape,
    steps: f64,
    /// Bytes held at the same time on the way.
    peak: f64,
}

fn estimate(expression: &Expression, scope: &Scope<'_>) -> Estimate {
    let within = |child: &Expression| estimate(child, scope);
    match &expression.expr {
        Expr::Literal(literal) => Estimate { shape: of_literal(literal), steps: 1.0, peak: 0.0 },
        Expr::Ident(name) => Estimate { shape: scope.find(name).clone(), steps: 1.0, peak: 0.0 },
        Expr::Select(select) => {
            let operand = within(&select.operand);
            let shape = if select.test { Shape::scalar() } else { operand.shape.item() };
            Estimate { shape, steps: operand.steps + 1.0, peak: operand.peak }
        }
        Expr::Call(call) => {
            let arguments: Vec<Estimate> =
                call.target.iter().map(|target| within(target)).chain(call.args.iter().map(within)).collect();
            let shapes: Vec<&Shape> = arguments.iter().map(|argument| &argument.shape).collect();
            let (shape, steps) = of_call(&call.func_name, &shapes);
            let held = if shape.fresh { shape.held() } else { 0.0 };
            Estimate {
                steps: arguments.iter().map(|argument| argument.steps).sum::<f64>() + steps + 1.0,
                peak: arguments.iter().map(|argument| argument.peak).sum::<f64>() + held,
                shape,
            }
        }
        Expr::Comprehension(loops) => {
            let (range, start) = (within(&loops.iter_range), within(&loops.accu_init));
            let rounds = range.shape.items.max(1.0);
            let item = range.shape.share_of(rounds);
            let second = item.or(&Shape { number: rounds, ..Shape::scalar() });
            let first_variable = Scope { name: &loops.iter_var, shape: &item, outer: Some(scope) };
            let inner = match &loops.iter_var2 {
                Some(name) => &Scope { name, shape: &second, outer: Some(&first_variable) },
                None => &first_variable,
            };
            let with = |gathered: &Shape, part: &Expression| {
                estimate(part, &Scope { name: &loops.accu_var, shape: gathered, outer: Some(inner) })
            };
            let one = with(&start.shape, &loops.loop_step);
            let two = with(&one.shape, &loops.loop_step);
            let gathered = start.shape.grown(&one.shape, &two.shape, rounds);
            let (condition, step) = (with(&gathered, &loops.loop_cond), with(&gathered, &loops.loop_step));
            let result = with(&gathered, &loops.result);
            Estimate {
                steps: range.steps + start.steps + rounds * (condition.steps + step.steps + 1.0) + result.steps,
                // What is gathered replaces what was gathered before: a round holds both.
                peak: range.peak + start.peak + gathered.held() + condition.peak.max(step.peak).max(result.peak),
                shape: result.shape,
            }
        }
        Expr::List(_) | Expr::Map(_) | Expr::Struct(_) | Expr::Unspecified => {
            let mut parts: Vec<Estimate> = Vec::new();
            children(expression, &mut |child| parts.push(within(child)));
            let item = parts.iter().fold(Shape::default(), |item, part| item.or(&part.shape));
            let below = parts.iter().map(|part| part.shape.held()).sum();
            let shape = Shape::list(parts.len() as f64, item, below);
            Estimate {
                steps: parts.iter().map(|part| part.steps).sum::<f64>() + 1.0,
                peak: parts.iter().map(|part| part.peak).sum::<f64>() + shape.held(),
                shape,
            }
        }
    }
}

fn of_literal(literal: &LiteralValue) -> Shape {
    match literal {
        LiteralValue::Int(number) => Shape { number: (*number.inner() as f64).abs(), ..Shape::scalar() },
        LiteralValue::UInt(number) => Shape { number: *number.inner() as f64, ..Shape::scalar() },
        LiteralValue::Double(number) => Shape { number: number.inner().abs(), ..Shape::scalar() },
        LiteralValue::String(text) => Shape { fresh: false, ..Shape::text(text.inner().len() as f64) },
        LiteralValue::Bytes(bytes) => Shape { fresh: false, ..Shape::text(bytes.inner().len() as f64) },
        _ => Shape::scalar(),
    }
}

/// The result of a function or operator, and its steps besides those of the arguments.
fn of_call(name: &str, arguments: &[&Shape]) -> (Shape, f64) {
    let none = Shape::default();
    let at = |place: usize| arguments.get(place).copied().unwrap_or(&none);
    let any = arguments.iter().fold(Shape::default(), |any, shape| any.or(shape));
    let text = |bytes: f64| (Shape::text(bytes), bytes / BYTES_A_STEP);
    match name.rsplit('.').next().unwrap_or(name) {
        "_+_" => {
            let (left, right) = (at(0), at(1));
            let item = match (&left.item, &right.item) {
                (None, None) => None,
                _ => Some(Rc::new(left.item().or(&right.item()))),
            };
            let sum = Shape { fresh: true, ..left.with(right, |left, right| left + right, item) };
            let steps = (sum.text + sum.items) / BYTES_A_STEP;
            (sum, steps)
        }
        "_-_" => (Shape { number: at(0).number + at(1).number, ..Shape::scalar() }, 0.0),
        "_*_" => (Shape { number: at(0).number * at(1).number, ..Shape::scalar() }, 0.0),
        "_[_]" | "_[?_]" | "_?._" => (at(0).item(), 0.0),
        "_?_:_" => (at(1).or(at(2)), 0.0),
        "_==_" | "_!=_" => (Shape::scalar(), at(0).whole.min(at(1).whole) / BYTES_A_STEP),
        "@in" | "_in_" => {
            let each = at(0).whole.min(at(1).item().whole) / BYTES_A_STEP;
            (Shape::scalar(), at(1).items * (0.25 + each.min(at(1).whole)).min(1.0 + each))
        }
        "size" => (Shape { number: at(0).length(), ..Shape::scalar() }, 0.0),
        "range" => (Shape::list(at(arguments.len().saturating_sub(1)).number, Shape::scalar(), 0.0), any.number),
        "join" => text(at(0).items * (at(0).item().text + at(1).text)),
        "replace" => text(at(0).text + (at(0).text + 1.0) * at(2).text),
        "format" => text(at(0).text + 4.0 * at(1).whole + ITEM * at(1).items),
        "split" | "findAll" => {
            let bytes = at(0).text;
            let parts = Shape {
                whole: 2.0 * bytes,
                ..Shape::list(bytes + 1.0, Shape { fresh: false, ..Shape::text(bytes) }, bytes)
            };
            (parts, bytes)
        }
        // However deep it goes: every value within counts for a step's bytes of the whole.
        "flatten" => (Shape::list(at(0).whole / BYTES_A_STEP, at(0).any_item(), 0.0), at(0).whole / BYTES_A_STEP),
        "distinct" | "equivalent" | "intersects" | "contains" | "isSorted" | "sort" => {
            let pairs = at(0).items * arguments.iter().skip(1).fold(at(0).items, |most, shape| most.max(shape.items));
            let each = 0.25 + at(0).item().whole / BYTES_A_STEP;
            (any.clone(), any.text / BYTES_A_STEP + if pairs > 0.0 { pairs * each } else { 0.0 })
        }
        // Their numbers may come from texts.
        "int" | "uint" | "double" | "asInteger" | "asApproximateFloat" | "bitShiftLeft" => {
            let number = if any.text > 0.0 || name.ends_with("bitShiftLeft") { f64::INFINITY } else { any.number };
            (Shape { number, ..Shape::scalar() }, any.text / BYTES_A_STEP)
        }
        "sum" => (Shape { number: at(0).items * at(0).item().number, ..at(0).item() }, at(0).items),
        // Nothing that they return is much longer than what they get, or it is an item of that.
        other if other.starts_with(|first: char| first.is_ascii_alphabetic()) => {
            let longer = Shape {
                text: 2.0 * any.text + ITEM,
                whole: 2.0 * any.whole + ITEM,
                fresh: true,
                ..any.or(&any.item())
            };
            (longer, (any.text + any.items) / BYTES_A_STEP)
        }
        _ => (Shape { number: any.number, ..Shape::scalar() }, 0.0),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use kube_cel::cel::parser::Parser;

    use super::*;

    fn cost(text: &str, size: Size) -> Cost {
        of(&Parser::new().enable_optional_syntax(true).parse(text).unwrap(), size)
    }

    fn affordable(text: &str) -> bool {
        let size = Size { longest_list: 100, longest_text: 253, whole: 20_000, number: 1e6 };
        let Cost { steps, bytes } = cost(text, size);
        steps <= PER_RULE && bytes <= HELD
    }

    #[test]
    fn what_multiplies_is_refused_and_what_adds_is_not() {
        let maps =
            |count: usize, body: &str| format!("self.list{}.size() > 0", format!(".map(x, {body})").repeat(count));
        let rows = [
            ("a comparison", "self.a == oldSelf.a".to_owned(), true),
            ("a walk", "self.all(x, x.name != '' && x.items.all(y, y in ['a', 'b']))".to_owned(), true),
            ("pairs", "self.all(x, self.exists_one(y, x.name == y.name))".to_owned(), true),
            ("names in a row", "self.map(x, x.name + '.' + x.domain).join(',').size() < 4096".to_owned(), true),
            ("a few maps", maps(5, "x + 'a'"), true),
            ("maps that double", maps(20, "x + x + x + x"), false),
            ("16 maps", maps(16, "x + x + x + x"), false),
            ("maps of lists", maps(12, "[x, x]"), true),
            ("text of maps of lists", format!("'%s'.format([self.list{}]) != ''", ".map(x, [x, x])".repeat(30)), false),
            (
                "joined and split",
                "self.join('').replace('', self.join('')).split('').join(self.join('')) != ''".to_owned(),
                false,
            ),
            ("a range", "lists.range(1000).all(x, x >= 0)".to_owned(), true),
            ("a range of a value", "lists.range(self.number).all(x, x >= 0)".to_owned(), false),
            ("a range of a text", "lists.range(int(self.text)).size() > 0".to_owned(), false),
            ("a range of a product", "lists.range(self.number * self.number).size() > 0".to_owned(), false),
            ("loops within loops", "self.all(a, self.all(b, self.all(c, self.all(d, a != b))))".to_owned(), false),
            ("upper case", "self.name.upperAscii().lowerAscii().trim() == self.name".to_owned(), true),
        ];
        for (row, text, expected) in rows {
            let size = Size { longest_list: 100, longest_text: 253, whole: 20_000, number: 1e6 };
            assert_eq!(affordable(&text), expected, "{row}: {:?}", cost(&text, size));
        }
    }

    /// The bound counted a step for each round of these, and 4^20 bytes were asked for.
    #[test]
    fn twenty_maps_that_add_what_they_have_hold_more_than_there_is() {
        let text = format!("self{} != []", ".map(x, x + x + x + x)".repeat(20));
        assert!(cost(&text, Size { longest_list: 1, longest_text: 1, whole: 17, number: 0.0 }).bytes > 1e12);
    }
}
