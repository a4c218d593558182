//! From a tree and data to text.

use serde_json::Value;

use super::TemplateError;
use super::parse::{Call, Node, Operand, Pipeline};

/// Longer output is refused.
const LARGEST: usize = 256 << 10;

/// The text of a template.
pub fn run(nodes: &[Node], data: &Value) -> Result<String, TemplateError> {
    let mut scope = Scope { root: data, variables: Vec::new(), out: String::new() };
    scope.nodes(nodes, data)?;
    Ok(scope.out)
}

struct Scope<'a> {
    root: &'a Value,
    /// The last one of a name counts.
    variables: Vec<(String, Value)>,
    out: String,
}

impl Scope<'_> {
    fn nodes(&mut self, nodes: &[Node], dot: &Value) -> Result<(), TemplateError> {
        for node in nodes {
            match node {
                Node::Text(text) => self.out.push_str(text),
                Node::Print(pipeline) => {
                    let value = self.value(pipeline, dot)?;
                    self.out.push_str(&text(&value));
                }
                Node::Assign(name, pipeline) => {
                    let value = self.value(pipeline, dot)?;
                    self.variables.push((name.clone(), value));
                }
                Node::If { when, with, then, otherwise } => {
                    let value = self.value(when, dot)?;
                    let known = self.variables.len();
                    match is_true(&value) {
                        true if *with => self.nodes(then, &value)?,
                        true => self.nodes(then, dot)?,
                        false => self.nodes(otherwise, dot)?,
                    }
                    self.variables.truncate(known);
                }
                Node::Range { key, element, over, body, otherwise } => {
                    let value = self.value(over, dot)?;
                    let entries = entries(&value, over.line)?;
                    if entries.is_empty() {
                        self.nodes(otherwise, dot)?;
                    }
                    let known = self.variables.len();
                    for (name, entry) in entries {
                        self.variables.extend(key.iter().map(|key| (key.clone(), name.clone())));
                        self.variables.extend(element.iter().map(|element| (element.clone(), entry.clone())));
                        self.nodes(body, &entry)?;
                        self.variables.truncate(known);
                    }
                }
            }
            if self.out.len() > LARGEST {
                return Err(TemplateError { line: 1, why: format!("it makes more than {LARGEST} bytes") });
            }
        }
        Ok(())
    }

    fn value(&self, pipeline: &Pipeline, dot: &Value) -> Result<Value, TemplateError> {
        let mut last = None;
        for call in &pipeline.calls {
            last = Some(self.call(call, dot, last, pipeline.line)?);
        }
        Ok(last.unwrap_or_default())
    }

    fn call(&self, call: &Call, dot: &Value, piped: Option<Value>, line: usize) -> Result<Value, TemplateError> {
        let mut arguments =
            call.arguments.iter().map(|operand| self.operand(operand, dot, line)).collect::<Result<Vec<Value>, _>>()?;
        match &call.function {
            Some(function) => {
                arguments.extend(piped);
                apply(function, &arguments).map_err(|why| TemplateError { line, why })
            }
            None if piped.is_some() => Err(TemplateError { line, why: "a value is piped into no function".to_owned() }),
            None => Ok(arguments.pop().unwrap_or_default()),
        }
    }

    fn operand(&self, operand: &Operand, dot: &Value, line: usize) -> Result<Value, TemplateError> {
        match operand {
            Operand::Literal(value) => Ok(value.clone()),
            Operand::Nested(pipeline) => self.value(pipeline, dot),
            Operand::Field(path) => field(dot, path, line),
            Operand::Variable(name, path) if name.is_empty() => field(self.root, path, line),
            Operand::Variable(name, path) => {
                let found = self.variables.iter().rev().find(|(known, _)| known == name);
                let (_, value) =
                    found.ok_or_else(|| TemplateError { line, why: format!("the variable ${name} is not known") })?;
                field(value, path, line)
            }
        }
    }
}

fn field(value: &Value, path: &[String], line: usize) -> Result<Value, TemplateError> {
    let mut value = value;
    for part in path {
        value = value
            .get(part)
            .ok_or_else(|| TemplateError { line, why: format!("there is no field .{}", path.join(".")) })?;
    }
    Ok(value.clone())
}

fn entries(value: &Value, line: usize) -> Result<Vec<(Value, Value)>, TemplateError> {
    match value {
        Value::Array(items) => Ok(items.iter().enumerate().map(|(at, item)| (Value::from(at), item.clone())).collect()),
        Value::Object(fields) => {
            let mut entries: Vec<(Value, Value)> =
                fields.iter().map(|(name, value)| (Value::from(name.as_str()), value.clone())).collect();
            entries.sort_by(|(left, _), (right, _)| left.as_str().cmp(&right.as_str()));
            Ok(entries)
        }
        Value::Null => Ok(Vec::new()),
        _ => Err(TemplateError { line, why: "'range' is over neither a list nor a mapping".to_owned() }),
    }
}

fn apply(function: &str, arguments: &[Value]) -> Result<Value, String> {
    let wrong = || format!("{function} has {} arguments, which is not what it takes", arguments.len());
    Ok(match (function, arguments) {
        ("JoinHostPort", [host, port]) => {
            let (host, port) = (text(host), text(port));
            if host.contains([':', '%']) { format!("[{host}]:{port}") } else { format!("{host}:{port}") }.into()
        }
        ("eq", [first, others @ ..]) if !others.is_empty() => others.iter().any(|other| other == first).into(),
        ("ne", [left, right]) => (left != right).into(),
        ("not", [value]) => (!is_true(value)).into(),
        // The argument that decides, as Go has it.
        ("and", [.., last]) => arguments.iter().find(|value| !is_true(value)).unwrap_or(last).clone(),
        ("or", [.., last]) => arguments.iter().find(|value| is_true(value)).unwrap_or(last).clone(),
        ("len", [Value::Array(items)]) => items.len().into(),
        ("len", [Value::Object(fields)]) => fields.len().into(),
        ("len", [Value::String(text)]) => text.len().into(),
        ("print", _) => arguments.iter().map(text).collect::<String>().into(),
        ("JoinHostPort" | "eq" | "ne" | "not" | "and" | "or" | "len", _) => return Err(wrong()),
        _ => return Err(format!("the function {function} is not known here")),
    })
}

fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<no value>".to_owned(),
        other => other.to_string(),
    }
}
