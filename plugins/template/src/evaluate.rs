//! From a tree to text.

use serde_json::Value;

use crate::functions::{self, sorted, truth};
use crate::parse::{Node, Operand, Pipe, Step, Template};
use crate::{Language, Missing, TemplateError};

/// The most nodes that are evaluated.
const STEPS: usize = 1_000_000;
/// The deepest chain of templates that call each other.
const DEEPEST: usize = 50;

pub fn evaluate(template: &Template, language: &Language, data: &Value) -> Result<String, TemplateError> {
    let variables = vec![(String::new(), data.clone())];
    let mut run = Run { template, language, out: String::new(), line: 1, steps: 0, variables };
    match run.nodes(&template.body, data, 0) {
        Ok(_) => Ok(run.out),
        Err(why) => Err(TemplateError { line: run.line, why }),
    }
}

struct Run<'a> {
    template: &'a Template,
    language: &'a Language,
    out: String,
    /// Of the node that was begun last.
    line: usize,
    steps: usize,
    /// The last one of a name counts.
    variables: Vec<(String, Value)>,
}

/// Whether a range goes on.
#[derive(Clone, Copy, PartialEq)]
enum Flow {
    On,
    Break,
    Continue,
}

impl Run<'_> {
    fn nodes(&mut self, nodes: &[Node], dot: &Value, depth: usize) -> Result<Flow, String> {
        if depth > DEEPEST {
            return Err("templates call each other too deeply".into());
        }
        for node in nodes {
            self.steps += 1;
            if self.steps > STEPS {
                return Err("the template does not come to an end".into());
            }
            let flow = self.node(node, dot, depth)?;
            if flow != Flow::On {
                return Ok(flow);
            }
        }
        Ok(Flow::On)
    }

    /// Nodes with variables of their own.
    fn scope(&mut self, nodes: &[Node], dot: &Value, depth: usize) -> Result<Flow, String> {
        let known = self.variables.len();
        let flow = self.nodes(nodes, dot, depth);
        self.variables.truncate(known);
        flow
    }

    fn node(&mut self, (line, step): &Node, dot: &Value, depth: usize) -> Result<Flow, String> {
        self.line = *line;
        match step {
            Step::Text(text) => self.write(text)?,
            Step::Action(pipe) => {
                let value = self.pipe(pipe, dot)?;
                if pipe.variables.is_empty() {
                    self.write(&functions::shown(&value))?;
                }
            }
            Step::If(pipe, body, otherwise) | Step::With(pipe, body, otherwise) => {
                let known = self.variables.len();
                let value = self.pipe(pipe, dot)?;
                let within = if matches!(step, Step::With(..)) { &value } else { dot };
                let flow = match truth(&value) {
                    true => self.scope(body, within, depth),
                    false => self.scope(otherwise, dot, depth),
                };
                self.variables.truncate(known);
                return flow;
            }
            Step::Range(pipe, body, otherwise) => {
                let known = self.variables.len();
                let flow = self.range(pipe, body, otherwise, dot, depth);
                self.variables.truncate(known);
                flow?;
            }
            Step::Template(name, pipe) => {
                let value = pipe.as_ref().map_or(Ok(Value::Null), |pipe| self.pipe(pipe, dot))?;
                let template = self.template;
                let body = template.defined.get(name).ok_or_else(|| format!("template {name:?} not defined"))?;
                // Another template sees only what it is given.
                let outer = std::mem::replace(&mut self.variables, vec![(String::new(), value.clone())]);
                let result = self.nodes(body, &value, depth + 1);
                self.variables = outer;
                result?;
            }
            Step::Break => return Ok(Flow::Break),
            Step::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::On)
    }

    fn range(
        &mut self,
        pipe: &Pipe,
        body: &[Node],
        otherwise: &[Node],
        dot: &Value,
        depth: usize,
    ) -> Result<Flow, String> {
        let over = self.value(pipe, dot)?;
        let items: Box<dyn Iterator<Item = (Value, Value)>> = match &over {
            Value::Object(map) => {
                Box::new(sorted(map).into_iter().map(|(key, value)| (Value::from(key.as_str()), value.clone())))
            }
            Value::Array(items) => Box::new(items.iter().enumerate().map(|(at, item)| (Value::from(at), item.clone()))),
            Value::Number(count) => {
                Box::new((0..count.as_i64().unwrap_or_default()).map(|at| (Value::from(at), Value::from(at))))
            }
            Value::Null => Box::new(std::iter::empty()),
            other => return Err(format!("range can't iterate over {}", functions::shown(other))),
        };
        let mut any = false;
        for (key, value) in items {
            any = true;
            let known = self.variables.len();
            match pipe.variables.as_slice() {
                [only] => self.set(only, value.clone(), pipe.declares)?,
                [first, second] => {
                    self.set(first, key, pipe.declares)?;
                    self.set(second, value.clone(), pipe.declares)?;
                }
                _ => {}
            }
            self.steps += 1;
            let flow = self.scope(body, &value, depth)?;
            self.variables.truncate(known);
            if flow == Flow::Break {
                break;
            }
            if self.steps > STEPS {
                return Err("the template does not come to an end".into());
            }
        }
        if any { Ok(Flow::On) } else { self.scope(otherwise, dot, depth) }
    }

    /// The value of a pipeline, given to its variable.
    fn pipe(&mut self, pipe: &Pipe, dot: &Value) -> Result<Value, String> {
        let value = self.value(pipe, dot)?;
        if let [name] = pipe.variables.as_slice() {
            self.set(name, value.clone(), pipe.declares)?;
        }
        Ok(value)
    }

    fn set(&mut self, name: &str, value: Value, declares: bool) -> Result<(), String> {
        if declares {
            self.variables.push((name.to_owned(), value));
            return Ok(());
        }
        match self.variables.iter_mut().rev().find(|(known, _)| known == name) {
            Some((_, known)) => {
                *known = value;
                Ok(())
            }
            None => Err(format!("undefined variable ${name}")),
        }
    }

    fn value(&mut self, pipe: &Pipe, dot: &Value) -> Result<Value, String> {
        let mut last = None;
        for command in &pipe.commands {
            last = Some(self.command(command, last, dot)?);
        }
        last.ok_or_else(|| "missing value for command".to_owned())
    }

    fn command(&mut self, command: &[Operand], last: Option<Value>, dot: &Value) -> Result<Value, String> {
        let (first, rest) = command.split_first().ok_or("missing value for command")?;
        let Operand::Function(name) = first else {
            return self.operand(first, dot);
        };
        // These two stop at the first argument that decides.
        if let "and" | "or" = name.as_str() {
            let mut value = None;
            for argument in rest {
                let found = self.operand(argument, dot)?;
                if truth(&found) == (name == "or") {
                    return Ok(found);
                }
                value = Some(found);
            }
            return last.or(value).ok_or_else(|| format!("wrong number of arguments for {name}"));
        }
        let mut arguments = Vec::with_capacity(rest.len() + 1);
        for argument in rest {
            arguments.push(self.operand(argument, dot)?);
        }
        arguments.extend(last);
        functions::call(name, &arguments, self.language)
    }

    fn operand(&mut self, operand: &Operand, dot: &Value) -> Result<Value, String> {
        match operand {
            Operand::Field(fields) => self.follow(dot, fields),
            Operand::Variable(name, fields) => {
                let found = self.variables.iter().rev().find(|(known, _)| known == name);
                let (_, value) = found.ok_or_else(|| format!("undefined variable ${name}"))?;
                self.follow(value, fields)
            }
            Operand::Constant(value) => Ok(value.clone()),
            Operand::Function(name) => functions::call(name, &[], self.language),
            Operand::Group(pipe, fields) => {
                let value = self.value(pipe, dot)?;
                self.follow(&value, fields)
            }
        }
    }

    fn write(&mut self, text: &str) -> Result<(), String> {
        if self.out.len() + text.len() > self.language.largest {
            return Err(format!("what it makes is larger than {} bytes", self.language.largest));
        }
        self.out.push_str(text);
        Ok(())
    }

    /// The field of a field; what is missing has no fields but missing ones.
    fn follow(&self, value: &Value, fields: &[String]) -> Result<Value, String> {
        let mut value = value;
        for field in fields {
            value = match value {
                Value::Object(map) => map.get(field).unwrap_or(&Value::Null),
                Value::Null => &Value::Null,
                other => return Err(format!("can't evaluate field {field} of {}", functions::shown(other))),
            };
            if value.is_null() && self.language.missing == Missing::Refused {
                return Err(format!("there is no field .{}", fields.join(".")));
            }
        }
        Ok(value.clone())
    }
}
