//! From tokens to a tree.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::lex::{Piece, Token, pieces};
use crate::{Language, TemplateError, functions};

/// A template and those that it defines.
#[derive(Debug, Default)]
pub struct Template {
    pub body: Vec<Node>,
    /// Templates that `define` and `block` name.
    pub defined: BTreeMap<String, Vec<Node>>,
}

/// A part of a template, and the line that it begins on.
pub type Node = (usize, Step);

/// What a part of a template does.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names are the language's")]
pub enum Step {
    Text(String),
    Action(Pipe),
    If(Pipe, Vec<Node>, Vec<Node>),
    With(Pipe, Vec<Node>, Vec<Node>),
    Range(Pipe, Vec<Node>, Vec<Node>),
    Template(String, Option<Pipe>),
    Break,
    Continue,
}

/// A pipeline with its variables: `$x := a b | c`.
#[derive(Clone, Debug, Default)]
pub struct Pipe {
    /// Variables that take the value, one or, of a `range`, two.
    pub variables: Vec<String>,
    /// They are declared, not assigned to.
    pub declares: bool,
    /// Each gets the value of the one before it as its last argument.
    pub commands: Vec<Vec<Operand>>,
}

/// A part of a command.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names are the language's")]
pub enum Operand {
    Field(Vec<String>),
    Variable(String, Vec<String>),
    Constant(Value),
    Function(String),
    Group(Box<Pipe>, Vec<String>),
}

pub fn parse(text: &str, language: &Language) -> Result<Template, TemplateError> {
    let mut parser = Parser {
        language,
        pieces: pieces(text)?.into_iter(),
        line: 1,
        defined: BTreeMap::new(),
        variables: vec![BTreeSet::from([String::new()])],
        ranges: 0,
    };
    let read = parser.list(0).and_then(|(body, end)| match end {
        Closing::Eof => Ok(body),
        _ => Err("unexpected {{end}} or {{else}}".into()),
    });
    match read {
        Ok(body) => Ok(Template { body, defined: parser.defined }),
        Err(why) => Err(TemplateError { line: parser.line, why }),
    }
}

struct Parser<'a> {
    language: &'a Language,
    pieces: std::vec::IntoIter<(usize, Piece)>,
    /// Line of the piece that is being parsed.
    line: usize,
    defined: BTreeMap<String, Vec<Node>>,
    /// Variables that are known, scope in scope.
    variables: Vec<BTreeSet<String>>,
    /// Ranges around the present node.
    ranges: usize,
}

/// What ended a list of nodes.
enum Closing {
    Eof,
    End,
    /// With the tokens after `else`.
    Else(Vec<Token>),
}

/// Deeper nesting is refused, so that no template exhausts the stack.
const DEEPEST: usize = 60;

impl Parser<'_> {
    fn list(&mut self, depth: usize) -> Result<(Vec<Node>, Closing), String> {
        if depth > DEEPEST {
            return Err("nested too deeply".into());
        }
        let mut nodes = Vec::new();
        while let Some((line, piece)) = self.pieces.next() {
            self.line = line;
            let tokens = match piece {
                Piece::Text(text) => {
                    nodes.push((line, Step::Text(text)));
                    continue;
                }
                Piece::Action(tokens) => tokens,
            };
            let keyword = match tokens.first() {
                Some(Token::Word(word)) => word.clone(),
                Some(_) => String::new(),
                None => return Err("missing value for command".into()),
            };
            match keyword.as_str() {
                "end" => return alone(&tokens).map(|()| (nodes, Closing::End)),
                "else" => return Ok((nodes, Closing::Else(tokens[1..].to_vec()))),
                "if" | "with" | "range" => nodes.push((line, self.branch(&keyword, &tokens[1..], depth)?)),
                "define" | "block" => {
                    let Some(Token::Text(name)) = tokens.get(1) else {
                        return Err(format!("{keyword} needs a quoted name"));
                    };
                    if keyword == "define" && tokens.len() > 2 {
                        return Err("unexpected text after the name in define".into());
                    }
                    if keyword == "block" {
                        let pipe = self.pipe(&tokens[2..])?;
                        nodes.push((line, Step::Template(name.clone(), Some(pipe))));
                    }
                    let outer = std::mem::replace(&mut self.variables, vec![BTreeSet::from([String::new()])]);
                    let ranges = std::mem::take(&mut self.ranges);
                    let (body, end) = self.list(depth + 1)?;
                    (self.variables, self.ranges) = (outer, ranges);
                    if !matches!(end, Closing::End) {
                        return Err(format!("{keyword} {name:?} lacks its {{{{end}}}}"));
                    }
                    self.defined.insert(name.clone(), body);
                }
                "template" => {
                    let Some(Token::Text(name)) = tokens.get(1) else {
                        return Err("template needs a quoted name".into());
                    };
                    let pipe = if tokens.len() > 2 { Some(self.pipe(&tokens[2..])?) } else { None };
                    nodes.push((line, Step::Template(name.clone(), pipe)));
                }
                "break" | "continue" => {
                    alone(&tokens)?;
                    if self.ranges == 0 {
                        return Err(format!("{{{{{keyword}}}}} outside of {{{{range}}}}"));
                    }
                    nodes.push((line, if keyword == "break" { Step::Break } else { Step::Continue }));
                }
                _ => {
                    let pipe = self.pipe(&tokens)?;
                    self.declare(&pipe);
                    nodes.push((line, Step::Action(pipe)));
                }
            }
        }
        Ok((nodes, Closing::Eof))
    }

    fn branch(&mut self, keyword: &str, tokens: &[Token], depth: usize) -> Result<Step, String> {
        let ranges = keyword == "range";
        self.variables.push(BTreeSet::new());
        let pipe = self.pipe_of(tokens, ranges)?;
        self.declare(&pipe);
        self.ranges += usize::from(ranges);
        let (body, end) = self.list(depth + 1)?;
        self.ranges -= usize::from(ranges);
        let otherwise = match end {
            Closing::End => Vec::new(),
            Closing::Eof => return Err(format!("{keyword} lacks its {{{{end}}}}")),
            Closing::Else(tokens) => match tokens.first() {
                None => {
                    let (otherwise, end) = self.list(depth + 1)?;
                    if !matches!(end, Closing::End) {
                        return Err(format!("{keyword} lacks its {{{{end}}}}"));
                    }
                    otherwise
                }
                // `else if` shares the end of what it belongs to.
                Some(Token::Word(word)) if word == keyword && !ranges => {
                    vec![(self.line, self.branch(keyword, &tokens[1..], depth + 1)?)]
                }
                Some(_) => return Err("unexpected text after else".into()),
            },
        };
        self.variables.pop();
        Ok(match keyword {
            "if" => Step::If(pipe, body, otherwise),
            "with" => Step::With(pipe, body, otherwise),
            _ => Step::Range(pipe, body, otherwise),
        })
    }

    fn declare(&mut self, pipe: &Pipe) {
        if let (true, Some(scope)) = (pipe.declares, self.variables.last_mut()) {
            scope.extend(pipe.variables.iter().cloned());
        }
    }

    fn knows(&self, name: &str) -> bool {
        self.variables.iter().any(|scope| scope.contains(name))
    }

    fn pipe(&self, tokens: &[Token]) -> Result<Pipe, String> {
        self.pipe_of(tokens, false)
    }

    fn pipe_of(&self, mut tokens: &[Token], of_range: bool) -> Result<Pipe, String> {
        let mut pipe = Pipe::default();
        if let [
            Token::Variable(first, none),
            Token::Comma,
            Token::Variable(second, nothing),
            Token::Declare | Token::Assign,
            ..,
        ] = tokens
            && none.is_empty()
            && nothing.is_empty()
        {
            if !of_range {
                return Err("too many declarations".into());
            }
            pipe.variables = vec![first.clone(), second.clone()];
            pipe.declares = tokens[3] == Token::Declare;
            tokens = &tokens[4..];
        } else if let [Token::Variable(name, fields), Token::Declare | Token::Assign, ..] = tokens
            && fields.is_empty()
        {
            pipe.variables = vec![name.clone()];
            pipe.declares = tokens[1] == Token::Declare;
            tokens = &tokens[2..];
        }
        if let Some(unknown) = pipe.variables.iter().find(|name| !pipe.declares && !self.knows(name)) {
            return Err(format!("undefined variable ${unknown}"));
        }
        let mut rest = tokens.iter();
        pipe.commands = self.commands(&mut rest, 0)?;
        Ok(pipe)
    }

    /// Commands up to the end, or to the parenthesis that closes them.
    fn commands(&self, tokens: &mut std::slice::Iter<'_, Token>, depth: usize) -> Result<Vec<Vec<Operand>>, String> {
        if depth > DEEPEST {
            return Err("nested too deeply".into());
        }
        let mut commands = vec![Vec::new()];
        while let Some(token) = tokens.as_slice().first() {
            if matches!(token, Token::Close(_)) && depth > 0 {
                break;
            }
            tokens.next();
            let operand = match token {
                Token::Pipe => {
                    commands.push(Vec::new());
                    continue;
                }
                Token::Word(word) => match word.as_str() {
                    "true" => Operand::Constant(Value::Bool(true)),
                    "false" => Operand::Constant(Value::Bool(false)),
                    "nil" => Operand::Constant(Value::Null),
                    name => {
                        functions::check(name, self.language)?;
                        Operand::Function(name.to_owned())
                    }
                },
                Token::Field(fields) => Operand::Field(fields.clone()),
                Token::Variable(name, fields) if self.knows(name) => Operand::Variable(name.clone(), fields.clone()),
                Token::Variable(name, _) => return Err(format!("undefined variable ${name}")),
                Token::Text(text) => Operand::Constant(Value::from(text.as_str())),
                Token::Int(number) => Operand::Constant(Value::from(*number)),
                Token::Open => {
                    let inner = self.commands(tokens, depth + 1)?;
                    let Some(Token::Close(fields)) = tokens.next() else {
                        return Err("unclosed left parenthesis".into());
                    };
                    Operand::Group(Box::new(Pipe { commands: inner, ..Pipe::default() }), fields.clone())
                }
                other => return Err(format!("unexpected {other:?} in command")),
            };
            if let Some(command) = commands.last_mut() {
                command.push(operand);
            }
        }
        if commands.iter().any(Vec::is_empty) {
            return Err("missing value for command".into());
        }
        if commands.iter().skip(1).any(|command| !matches!(command.first(), Some(Operand::Function(_)))) {
            return Err("what follows a | must be a function".into());
        }
        if commands.iter().any(|it| it.len() > 1 && !matches!(it.first(), Some(Operand::Function(_)))) {
            return Err("can't give arguments to what is not a function".into());
        }
        Ok(commands)
    }
}

fn alone(tokens: &[Token]) -> Result<(), String> {
    if tokens.len() == 1 { Ok(()) } else { Err("unexpected text after a keyword".into()) }
}
