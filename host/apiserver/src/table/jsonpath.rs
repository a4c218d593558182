//! The part of JSONPath that printer columns use: fields, indices, `[*]` and filters with comparisons.

use serde_json::Value;

pub(super) struct JsonPath {
    steps: Vec<Step>,
}

enum Step {
    Field(String),
    Index(i64),
    All,
    /// Items that have the relative path, or whose value at it compares so with the literal.
    Filter(Vec<Step>, Option<(Comparison, Value)>),
}

#[derive(Clone, Copy)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPath {
    /// `None` when the text is no supported path.
    pub(super) fn parse(text: &str) -> Option<JsonPath> {
        let text = text.trim();
        let text = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
        let text = text.strip_prefix('$').unwrap_or(text);
        let mut parser = Parser { rest: text };
        let steps = parser.steps(0)?;
        (parser.rest.is_empty() && !steps.is_empty()).then_some(JsonPath { steps })
    }

    pub(super) fn find<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        follow(&self.steps, object)
    }
}

fn follow<'a>(steps: &[Step], object: &'a Value) -> Vec<&'a Value> {
    let mut found = vec![object];
    for step in steps {
        found = found.into_iter().flat_map(|value| step.apply(value)).collect();
    }
    found
}

impl Step {
    fn apply<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Step::Field(name) => value.get(name).into_iter().collect(),
            Step::Index(index) => {
                let Some(items) = value.as_array() else { return Vec::new() };
                let at = if *index < 0 { index + items.len() as i64 } else { *index };
                usize::try_from(at).ok().and_then(|at| items.get(at)).into_iter().collect()
            }
            Step::All => children(value),
            Step::Filter(path, condition) => {
                children(value).into_iter().filter(|item| passes(item, path, condition.as_ref())).collect()
            }
        }
    }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => Vec::new(),
    }
}

fn passes(item: &Value, path: &[Step], condition: Option<&(Comparison, Value)>) -> bool {
    let Some(found) = follow(path, item).first().copied() else { return false };
    let Some((comparison, literal)) = condition else { return true };
    let order = match (found, literal) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => left.as_f64().partial_cmp(&right.as_f64()),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        _ => None,
    };
    match (comparison, order) {
        (Comparison::NotEqual, None) => true,
        (_, None) => false,
        (Comparison::Equal, Some(order)) => order.is_eq(),
        (Comparison::NotEqual, Some(order)) => order.is_ne(),
        (Comparison::Less, Some(order)) => order.is_lt(),
        (Comparison::LessOrEqual, Some(order)) => order.is_le(),
        (Comparison::Greater, Some(order)) => order.is_gt(),
        (Comparison::GreaterOrEqual, Some(order)) => order.is_ge(),
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn steps(&mut self, depth: usize) -> Option<Vec<Step>> {
        let mut steps = Vec::new();
        loop {
            if let Some(rest) = self.rest.strip_prefix('.') {
                self.rest = rest;
                if self.eat("*") {
                    steps.push(Step::All);
                } else if !self.rest.starts_with('[') {
                    steps.push(Step::Field(self.name()?));
                }
            } else if self.eat("[") {
                steps.push(self.bracket(depth)?);
            } else {
                return Some(steps);
            }
        }
    }

    fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// A field name; a backslash takes the next character as it is, which is how keys with dots are written.
    fn name(&mut self) -> Option<String> {
        let mut name = String::new();
        let mut chars = self.rest.char_indices();
        let mut end = self.rest.len();
        while let Some((at, char)) = chars.next() {
            match char {
                '\\' => name.push(chars.next()?.1),
                '.' | '[' | ']' | ')' | '=' | '!' | '<' | '>' | ' ' | '{' | '}' | '*' | '(' => {
                    end = at;
                    break;
                }
                other => name.push(other),
            }
        }
        self.rest = &self.rest[end..];
        (!name.is_empty()).then_some(name)
    }

    fn bracket(&mut self, depth: usize) -> Option<Step> {
        if self.eat("*]") {
            return Some(Step::All);
        }
        if self.eat("?(") {
            return self.filter(depth);
        }
        if self.rest.starts_with(['\'', '"']) {
            let name = self.quoted()?;
            return self.eat("]").then_some(Step::Field(name));
        }
        let (index, rest) = self.rest.split_once(']')?;
        self.rest = rest;
        index.trim().parse().ok().map(Step::Index)
    }

    fn filter(&mut self, depth: usize) -> Option<Step> {
        // Filters in filters serve nobody, and would recurse as deep as the text is long.
        if depth > 0 || !self.eat("@") {
            return None;
        }
        let path = self.steps(depth + 1)?;
        self.rest = self.rest.trim_start();
        let comparisons = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let comparison = comparisons.into_iter().find(|(text, _)| self.eat(text)).map(|(_, comparison)| comparison);
        let condition = match comparison {
            Some(comparison) => {
                self.rest = self.rest.trim_start();
                Some((comparison, self.literal()?))
            }
            None => None,
        };
        self.rest = self.rest.trim_start();
        self.eat(")]").then_some(Step::Filter(path, condition))
    }

    fn literal(&mut self) -> Option<Value> {
        if self.rest.starts_with(['\'', '"']) {
            return self.quoted().map(Value::String);
        }
        let end = self.rest.find([')', ' '])?;
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        serde_json::from_str(text).ok()
    }

    /// A quoted text; a backslash takes the next character as it is, in keys with dots as CRDs write them.
    fn quoted(&mut self) -> Option<String> {
        let mut chars = self.rest.char_indices();
        let (_, quote) = chars.next()?;
        let mut text = String::new();
        loop {
            match chars.next()? {
                (_, '\\') => text.push(chars.next()?.1),
                (at, end) if end == quote => {
                    self.rest = &self.rest[at + end.len_utf8()..];
                    return Some(text);
                }
                (_, other) => text.push(other),
            }
        }
    }
}
