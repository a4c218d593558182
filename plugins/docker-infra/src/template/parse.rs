//! From text to a tree.

use serde_json::Value;

use super::TemplateError;

/// Deepest nesting of blocks and parentheses.
const DEEPEST: usize = 32;

/// A piece of a template.
#[derive(Debug)]
pub enum Node {
    /// As it is.
    Text(String),
    /// A pipeline's value.
    Print(Pipeline),
    /// `$x := …`.
    Assign(String, Pipeline),
    /// `if` and `with`; the flag says that `.` becomes the value.
    If { when: Pipeline, with: bool, then: Vec<Node>, otherwise: Vec<Node> },
    /// `range`; names of the key's and the element's variable.
    Range { key: Option<String>, element: Option<String>, over: Pipeline, body: Vec<Node>, otherwise: Vec<Node> },
}

/// Calls; the value of one is the last argument of the next.
#[derive(Debug)]
pub struct Pipeline {
    pub line: usize,
    pub calls: Vec<Call>,
}

/// A value, or a function and its arguments.
#[derive(Debug)]
pub struct Call {
    pub function: Option<String>,
    pub arguments: Vec<Operand>,
}

/// What stands for a value.
#[derive(Debug)]
pub enum Operand {
    /// `.A.B`, or `.` alone.
    Field(Vec<String>),
    /// `$x.A`; the name of `$` is empty.
    Variable(String, Vec<String>),
    /// A string, a number, `true` or `false`.
    Literal(Value),
    /// In parentheses.
    Nested(Pipeline),
}

/// A whole template.
pub fn parse(text: &str) -> Result<Vec<Node>, TemplateError> {
    let mut reader = Reader { pieces: split(text)?.into_iter(), line: 1 };
    let (nodes, end) = reader.block(0)?;
    match end {
        Stop::Text => Ok(nodes),
        _ => Err(reader.error("'end' or 'else' without a block")),
    }
}

enum Piece {
    Text(String),
    Action(usize, String),
}

/// Text and actions, with trim marks carried out and comments gone.
fn split(text: &str) -> Result<Vec<Piece>, TemplateError> {
    let (mut pieces, mut rest, mut line, mut trim) = (Vec::new(), text, 1, false);
    loop {
        let (before, after) = match rest.split_once("{{") {
            Some((before, after)) => (before, Some(after)),
            None => (rest, None),
        };
        let opens_trimming = after.is_some_and(|after| after.starts_with("- ") || after.starts_with("-\n"));
        let mut shown = if trim { before.trim_start() } else { before };
        if opens_trimming {
            shown = shown.trim_end();
        }
        if !shown.is_empty() {
            pieces.push(Piece::Text(shown.to_owned()));
        }
        line += before.matches('\n').count();
        let Some(after) = after else { return Ok(pieces) };
        let (action, next) =
            after.split_once("}}").ok_or_else(|| TemplateError { line, why: "'{{' without '}}'".to_owned() })?;
        trim = action.ends_with(" -") || action.ends_with("\n-");
        let start = usize::from(opens_trimming);
        let end = action.len().saturating_sub(usize::from(trim)).max(start);
        let inner = action.get(start..end).unwrap_or_default().trim();
        if !(inner.starts_with("/*") && inner.ends_with("*/")) {
            pieces.push(Piece::Action(line, inner.to_owned()));
        }
        line += action.matches('\n').count();
        rest = next;
    }
}

/// How a block ended.
enum Stop {
    /// With the text.
    Text,
    /// With `end`.
    End,
    /// With `else`; the rest of the action: empty, or `if …`.
    Else(String),
}

struct Reader {
    pieces: std::vec::IntoIter<Piece>,
    line: usize,
}

impl Reader {
    fn error(&self, why: impl Into<String>) -> TemplateError {
        TemplateError { line: self.line, why: why.into() }
    }

    fn block(&mut self, depth: usize) -> Result<(Vec<Node>, Stop), TemplateError> {
        if depth > DEEPEST {
            return Err(self.error("blocks are nested too deep"));
        }
        let mut nodes = Vec::new();
        while let Some(piece) = self.pieces.next() {
            let (line, action) = match piece {
                Piece::Text(text) => {
                    nodes.push(Node::Text(text));
                    continue;
                }
                Piece::Action(line, action) => (line, action),
            };
            self.line = line;
            let (word, rest) = action.split_once(char::is_whitespace).unwrap_or((action.as_str(), ""));
            match word {
                "end" => return Ok((nodes, Stop::End)),
                "else" => return Ok((nodes, Stop::Else(rest.trim().to_owned()))),
                "if" | "with" => nodes.push(self.condition(word == "with", rest, depth)?),
                "range" => nodes.push(self.range(rest, depth)?),
                "define" | "template" | "block" | "break" | "continue" => {
                    return Err(self.error(format!("'{word}' is not known here")));
                }
                _ => nodes.push(match assignment(&action) {
                    Some((name, value)) => Node::Assign(name.to_owned(), self.pipeline(value)?),
                    None => Node::Print(self.pipeline(&action)?),
                }),
            }
        }
        Ok((nodes, Stop::Text))
    }

    fn condition(&mut self, with: bool, text: &str, depth: usize) -> Result<Node, TemplateError> {
        let when = self.pipeline(text)?;
        let (then, end) = self.block(depth + 1)?;
        let otherwise = match end {
            Stop::End => Vec::new(),
            Stop::Else(rest) => match rest.strip_prefix("if ") {
                // Its 'end' is ours.
                Some(rest) => vec![self.condition(false, rest, depth + 1)?],
                None => self.last(depth)?,
            },
            Stop::Text => return Err(self.error("a block has no 'end'")),
        };
        Ok(Node::If { when, with, then, otherwise })
    }

    fn range(&mut self, text: &str, depth: usize) -> Result<Node, TemplateError> {
        let (key, element, over) = match text.split_once(":=") {
            None => (None, None, text),
            Some((names, over)) => {
                let names: Vec<&str> = names.split(',').map(str::trim).collect();
                let variable = |name: &str| name.strip_prefix('$').map(str::to_owned);
                match names.as_slice() {
                    [element] => (None, variable(element), over),
                    [key, element] => (variable(key), variable(element), over),
                    _ => return Err(self.error("'range' has more than two variables")),
                }
            }
        };
        let over = self.pipeline(over)?;
        let (body, end) = self.block(depth + 1)?;
        let otherwise = match end {
            Stop::End => Vec::new(),
            Stop::Else(_) => self.last(depth)?,
            Stop::Text => return Err(self.error("a block has no 'end'")),
        };
        Ok(Node::Range { key, element, over, body, otherwise })
    }

    /// The block after the last `else`.
    fn last(&mut self, depth: usize) -> Result<Vec<Node>, TemplateError> {
        match self.block(depth + 1)? {
            (nodes, Stop::End) => Ok(nodes),
            _ => Err(self.error("an 'else' has no 'end'")),
        }
    }

    fn pipeline(&self, text: &str) -> Result<Pipeline, TemplateError> {
        let tokens = tokens(text).map_err(|why| self.error(why))?;
        let mut tokens = tokens.into_iter().peekable();
        let pipeline = pipeline(&mut tokens, self.line, 0).map_err(|why| self.error(why))?;
        match tokens.next() {
            None => Ok(pipeline),
            Some(_) => Err(self.error("a parenthesis too many")),
        }
    }
}

fn assignment(action: &str) -> Option<(&str, &str)> {
    let (name, value) = action.split_once("=")?;
    let name = name.trim_end_matches(':').trim().strip_prefix('$')?;
    name.chars().all(|letter| letter.is_alphanumeric() || letter == '_').then_some((name, value))
}

#[derive(Debug, PartialEq)]
enum Token {
    Word(String),
    Literal(Value),
    Pipe,
    Open,
    Close,
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let (mut tokens, mut rest) = (Vec::new(), text.trim());
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '|' | '(' | ')' => {
                tokens.push(match first {
                    '|' => Token::Pipe,
                    '(' => Token::Open,
                    _ => Token::Close,
                });
                1
            }
            '"' => {
                let mut escaped = false;
                let end = rest.char_indices().skip(1).find(|(_, letter)| {
                    let ends = *letter == '"' && !escaped;
                    escaped = *letter == '\\' && !escaped;
                    ends
                });
                let end = end.ok_or("a string does not end")?.0 + 1;
                let text = rest.get(..end).unwrap_or_default();
                tokens.push(Token::Literal(serde_json::from_str(text).map_err(|_| "a string has a strange escape")?));
                end
            }
            '`' => {
                let end = rest.get(1..).and_then(|tail| tail.find('`')).ok_or("a string does not end")?;
                tokens.push(Token::Literal(rest.get(1..=end).unwrap_or_default().into()));
                end + 2
            }
            _ => {
                let end = rest.find(|letter: char| letter.is_whitespace() || "|()\"`".contains(letter));
                let word = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
                tokens.push(match (word, word.parse::<i64>()) {
                    ("true", _) => Token::Literal(true.into()),
                    ("false", _) => Token::Literal(false.into()),
                    (_, Ok(number)) => Token::Literal(number.into()),
                    _ => Token::Word(word.to_owned()),
                });
                word.len()
            }
        };
        rest = rest.get(length..).unwrap_or_default().trim_start();
    }
    Ok(tokens)
}

fn pipeline(
    tokens: &mut std::iter::Peekable<std::vec::IntoIter<Token>>,
    line: usize,
    depth: usize,
) -> Result<Pipeline, String> {
    if depth > DEEPEST {
        return Err("parentheses are nested too deep".to_owned());
    }
    let mut calls = vec![Call { function: None, arguments: Vec::new() }];
    while let Some(token) = tokens.next_if(|token| *token != Token::Close) {
        let Some(call) = calls.last_mut() else { break };
        match token {
            Token::Pipe => calls.push(Call { function: None, arguments: Vec::new() }),
            Token::Open => {
                call.arguments.push(Operand::Nested(pipeline(tokens, line, depth + 1)?));
                if tokens.next() != Some(Token::Close) {
                    return Err("a parenthesis is not closed".to_owned());
                }
            }
            Token::Literal(value) => call.arguments.push(Operand::Literal(value)),
            Token::Word(word) => match path(&word) {
                Some(operand) => call.arguments.push(operand),
                None if call.arguments.is_empty() && call.function.is_none() => call.function = Some(word),
                None => return Err(format!("'{word}' is not a value")),
            },
            Token::Close => {}
        }
    }
    if calls.iter().any(|call| call.function.is_none() && call.arguments.len() != 1) {
        return Err("an action is neither one value nor a function with its arguments".to_owned());
    }
    Ok(Pipeline { line, calls })
}

/// A field or variable.
fn path(word: &str) -> Option<Operand> {
    let parts =
        |text: &str| -> Vec<String> { text.split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect() };
    if let Some(fields) = word.strip_prefix('.') {
        return Some(Operand::Field(parts(fields)));
    }
    let variable = word.strip_prefix('$')?;
    let (name, fields) = variable.split_once('.').unwrap_or((variable, ""));
    Some(Operand::Variable(name.to_owned(), parts(fields)))
}
