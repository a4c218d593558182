//! The grammar of selectors as text.

use std::{collections::BTreeSet, sync::Arc};

use super::{Requirement, SelectorError};

/// Parses requirements, in order.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    let mut scan = Scanner { rest: text };
    let mut requirements = Vec::new();
    if scan.peek() == Token::End {
        return Ok(requirements);
    }
    loop {
        requirements.push(scan.requirement()?);
        match scan.next() {
            Token::End => return Ok(requirements),
            Token::Comma => {}
            other => return Err(other.unexpected("',' or end of string")),
        }
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

    fn key(&mut self) -> Result<Arc<str>, SelectorError> {
        match self.next() {
            Token::Word(word) => valid_key(word),
            other => Err(other.unexpected("identifier")),
        }
    }

    fn operation(&mut self, key: Arc<str>) -> Result<Requirement, SelectorError> {
        match self.next() {
            Token::Equals => Ok(Requirement::Equals(key, self.value()?)),
            Token::NotEquals => Ok(Requirement::NotIn(key, [self.value()?].into())),
            Token::Greater => Ok(Requirement::Greater(key, self.integer()?)),
            Token::Less => Ok(Requirement::Less(key, self.integer()?)),
            Token::Word("in") => Ok(Requirement::In(key, self.values()?)),
            Token::Word("notin") => Ok(Requirement::NotIn(key, self.values()?)),
            other => Err(other.unexpected("in, notin, =, ==, !=, gt, lt")),
        }
    }

    /// A value may be empty: `key=` selects the empty value.
    fn value(&mut self) -> Result<Arc<str>, SelectorError> {
        match self.peek() {
            Token::Word(word) => {
                self.next();
                valid_value(word)
            }
            Token::End | Token::Comma | Token::Close => Ok("".into()),
            other => Err(other.unexpected("identifier")),
        }
    }

    fn integer(&mut self) -> Result<i64, SelectorError> {
        let text = self.value()?;
        text.parse().map_err(|_| SelectorError::NotInteger(text.to_string()))
    }

    fn values(&mut self) -> Result<BTreeSet<Arc<str>>, SelectorError> {
        match self.next() {
            Token::Open => {}
            other => return Err(other.unexpected("'('")),
        }
        let mut values = BTreeSet::new();
        loop {
            values.insert(self.value()?);
            match self.next() {
                Token::Comma => {}
                Token::Close => return Ok(values),
                other => return Err(other.unexpected("',' or ')'")),
            }
        }
    }
}

/// `[prefix/]name`: the prefix a DNS subdomain of at most 253, the name of at most 63 characters.
fn valid_key(text: &str) -> Result<Arc<str>, SelectorError> {
    let (prefix, name) = text.split_once('/').unwrap_or(("", text));
    let prefix_ok = prefix.len() <= 253
        && (!prefix.is_empty() || !text.contains('/'))
        && prefix.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.'));
    if prefix_ok && !name.is_empty() && is_label_name(name) {
        return Ok(text.into());
    }
    Err(SelectorError::Label { what: "key", text: text.to_owned() })
}

fn valid_value(text: &str) -> Result<Arc<str>, SelectorError> {
    if text.is_empty() || is_label_name(text) {
        return Ok(text.into());
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
