//! Label selectors: `app=web,tier in (a,b),!legacy,version>3`.

use serde_json::Value;

use super::SelectorError;

/// A conjunction of requirements; empty selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

/// One condition on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirement {
    /// `key in (..)`, `key=value`.
    In(String, Vec<String>),
    /// `key notin (..)`, `key!=value`: also true without the label.
    NotIn(String, Vec<String>),
    /// `key`.
    Exists(String),
    /// `!key`.
    Absent(String),
    /// `key>n`: both sides are integers.
    Greater(String, i64),
    /// `key<n`.
    Less(String, i64),
}

impl LabelSelector {
    /// Parses the text of a `labelSelector` query parameter.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut scan = Scanner { rest: text };
        let mut requirements = Vec::new();
        if scan.peek() == Token::End {
            return Ok(Self::default());
        }
        loop {
            requirements.push(scan.requirement()?);
            match scan.next() {
                Token::End => break,
                Token::Comma => {}
                other => return Err(other.unexpected("',' or end of string")),
            }
        }
        Ok(Self { requirements })
    }

    /// Whether an object with these `metadata.labels` is selected.
    pub fn matches(&self, labels: Option<&Value>) -> bool {
        let label = |key: &str| labels.and_then(|map| map.get(key)).and_then(Value::as_str);
        let number = |key: &str| label(key).and_then(|value| value.parse::<i64>().ok());
        self.requirements.iter().all(|requirement| match requirement {
            Requirement::In(key, values) => label(key).is_some_and(|found| values.iter().any(|value| value == found)),
            Requirement::NotIn(key, values) => {
                !label(key).is_some_and(|found| values.iter().any(|value| value == found))
            }
            Requirement::Exists(key) => label(key).is_some(),
            Requirement::Absent(key) => label(key).is_none(),
            Requirement::Greater(key, bound) => number(key).is_some_and(|found| found > *bound),
            Requirement::Less(key, bound) => number(key).is_some_and(|found| found < *bound),
        })
    }

    /// Whether everything is selected.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token<'a> {
    End,
    Comma,
    Open,
    Close,
    Not,
    Equals,
    NotEquals,
    Greater,
    Less,
    Word(&'a str),
}

impl Token<'_> {
    fn unexpected(&self, expected: &'static str) -> SelectorError {
        let found = match self {
            Token::End => "",
            Token::Comma => ",",
            Token::Open => "(",
            Token::Close => ")",
            Token::Not => "!",
            Token::Equals => "=",
            Token::NotEquals => "!=",
            Token::Greater => ">",
            Token::Less => "<",
            Token::Word(word) => word,
        };
        SelectorError::Syntax { found: found.to_owned(), expected }
    }
}

struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Token<'a> {
        Scanner { rest: self.rest }.next()
    }

    fn next(&mut self) -> Token<'a> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let fixed = [
            ("!=", Token::NotEquals),
            ("==", Token::Equals),
            ("=", Token::Equals),
            ("!", Token::Not),
            (",", Token::Comma),
            ("(", Token::Open),
            (")", Token::Close),
            (">", Token::Greater),
            ("<", Token::Less),
        ];
        for (text, token) in fixed {
            if let Some(rest) = self.rest.strip_prefix(text) {
                self.rest = rest;
                return token;
            }
        }
        let end = self.rest.find([' ', '\t', '\r', '\n', '=', '!', ',', '(', ')', '>', '<']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        if word.is_empty() { Token::End } else { Token::Word(word) }
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        match self.next() {
            Token::Not => Ok(Requirement::Absent(self.key()?)),
            Token::Word(word) => {
                let key = valid_key(word)?;
                match self.peek() {
                    Token::End | Token::Comma => Ok(Requirement::Exists(key)),
                    _ => self.operation(key),
                }
            }
            other => Err(other.unexpected("!, identifier, or 'end of string'")),
        }
    }

    fn key(&mut self) -> Result<String, SelectorError> {
        match self.next() {
            Token::Word(word) => valid_key(word),
            other => Err(other.unexpected("identifier")),
        }
    }

    fn operation(&mut self, key: String) -> Result<Requirement, SelectorError> {
        match self.next() {
            Token::Equals => Ok(Requirement::In(key, vec![self.value()?])),
            Token::NotEquals => Ok(Requirement::NotIn(key, vec![self.value()?])),
            Token::Greater => Ok(Requirement::Greater(key, self.integer()?)),
            Token::Less => Ok(Requirement::Less(key, self.integer()?)),
            Token::Word("in") => Ok(Requirement::In(key, self.values()?)),
            Token::Word("notin") => Ok(Requirement::NotIn(key, self.values()?)),
            other => Err(other.unexpected("in, notin, =, ==, !=, gt, lt")),
        }
    }

    /// A value may be empty: `key=` selects the empty value.
    fn value(&mut self) -> Result<String, SelectorError> {
        match self.peek() {
            Token::Word(word) => {
                self.next();
                valid_value(word)
            }
            Token::End | Token::Comma | Token::Close => Ok(String::new()),
            other => Err(other.unexpected("identifier")),
        }
    }

    fn integer(&mut self) -> Result<i64, SelectorError> {
        let text = self.value()?;
        text.parse().map_err(|_| SelectorError::NotInteger(text))
    }

    fn values(&mut self) -> Result<Vec<String>, SelectorError> {
        match self.next() {
            Token::Open => {}
            other => return Err(other.unexpected("'('")),
        }
        let mut values = Vec::new();
        loop {
            values.push(self.value()?);
            match self.next() {
                Token::Comma => {}
                Token::Close => return Ok(values),
                other => return Err(other.unexpected("',' or ')'")),
            }
        }
    }
}

/// `[prefix/]name`: the prefix a DNS subdomain of at most 253, the name of at most 63 characters.
fn valid_key(text: &str) -> Result<String, SelectorError> {
    let (prefix, name) = text.split_once('/').unwrap_or(("", text));
    let prefix_ok = prefix.len() <= 253
        && (!prefix.is_empty() || !text.contains('/'))
        && prefix.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.'));
    if prefix_ok && !name.is_empty() && is_label_name(name) {
        return Ok(text.to_owned());
    }
    Err(SelectorError::Label { what: "key", text: text.to_owned() })
}

fn valid_value(text: &str) -> Result<String, SelectorError> {
    if text.is_empty() || is_label_name(text) {
        return Ok(text.to_owned());
    }
    Err(SelectorError::Label { what: "value", text: text.to_owned() })
}

fn is_label_name(text: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    text.len() <= 63
        && edge(text.as_bytes().first())
        && edge(text.as_bytes().last())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}
