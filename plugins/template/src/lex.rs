//! From text to pieces: literal text, and the tokens of each `{{ action }}`.

use crate::TemplateError;

/// A part of a template.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Text(String),
    /// What stands between the braces.
    Action(Vec<Token>),
}

/// A part of an action.
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// A keyword or a function.
    Word(String),
    /// `.a.b`; empty for the dot alone.
    Field(Vec<String>),
    /// `$x.a`; the name is empty for `$` alone.
    Variable(String, Vec<String>),
    /// A string, quoted or raw.
    Text(String),
    /// A whole number or a character.
    Int(i64),
    /// `(`
    Open,
    /// `)`, with the fields after it.
    Close(Vec<String>),
    /// `|`
    Pipe,
    /// `,`
    Comma,
    /// `:=`
    Declare,
    /// `=`
    Assign,
}

/// Splits a template; each piece comes with the line that it begins on, counted from 1.
pub fn pieces(template: &str) -> Result<Vec<(usize, Piece)>, TemplateError> {
    let (mut pieces, mut line) = (Vec::new(), 1);
    split(template, &mut pieces, &mut line).map_err(|why| TemplateError { line, why })?;
    Ok(pieces)
}

/// `line` is where it is, also when something is wrong.
fn split(template: &str, pieces: &mut Vec<(usize, Piece)>, line: &mut usize) -> Result<(), String> {
    let (mut rest, mut counted) = (template, 0);
    let mut trim_start = false;
    while let Some(at) = rest.find("{{") {
        let begins = template.len() - rest.len() + at;
        *line += template[counted..begins].matches('\n').count();
        counted = begins;
        let mut text = &rest[..at];
        let mut action = &rest[at + 2..];
        if trim_start {
            text = text.trim_start_matches(BLANK);
        }
        if let Some(after) = action.strip_prefix('-')
            && after.starts_with(BLANK)
        {
            action = after;
            text = text.trim_end_matches(BLANK);
        }
        if !text.is_empty() {
            pieces.push((*line, Piece::Text(text.to_owned())));
        }
        let trimmed = action.trim_start_matches(BLANK);
        if let Some(comment) = trimmed.strip_prefix("/*") {
            let end = comment.find("*/").ok_or("unclosed comment")?;
            let after = &comment[end + 2..];
            let blank = after.trim_start_matches(BLANK);
            (rest, trim_start) = match (after.strip_prefix("}}"), blank.strip_prefix("-}}")) {
                (Some(rest), _) => (rest, false),
                (None, Some(rest)) if blank.len() < after.len() => (rest, true),
                _ => return Err("comment ends before closing delimiter".into()),
            };
            continue;
        }
        let (tokens, after, trims) = action_tokens(action)?;
        pieces.push((*line, Piece::Action(tokens)));
        (rest, trim_start) = (after, trims);
    }
    let text = if trim_start { rest.trim_start_matches(BLANK) } else { rest };
    if !text.is_empty() {
        pieces.push((*line, Piece::Text(text.to_owned())));
    }
    Ok(())
}

const BLANK: [char; 4] = [' ', '\t', '\r', '\n'];

/// The tokens of an action, the template after it, and whether its text is trimmed at the start.
fn action_tokens(action: &str) -> Result<(Vec<Token>, &str, bool), String> {
    let mut tokens = Vec::new();
    let mut rest = action;
    loop {
        let blank = rest.len() != rest.trim_start_matches(BLANK).len();
        rest = rest.trim_start_matches(BLANK);
        if let Some(after) = rest.strip_prefix("}}") {
            return Ok((tokens, after, false));
        }
        if let Some(after) = rest.strip_prefix("-}}").filter(|_| blank) {
            return Ok((tokens, after, true));
        }
        let mut chars = rest.chars();
        let Some(first) = chars.next() else { return Err("unclosed action".into()) };
        let after = chars.as_str();
        let (token, left) = match first {
            '(' => (Token::Open, after),
            ')' => {
                let (fields, left) = fields(after)?;
                (Token::Close(fields), left)
            }
            '|' => (Token::Pipe, after),
            ',' => (Token::Comma, after),
            '=' => (Token::Assign, after),
            ':' => (Token::Declare, after.strip_prefix('=').ok_or("expected :=")?),
            '"' => quoted(after)?,
            '`' => {
                let end = after.find('`').ok_or("unterminated raw quoted string")?;
                (Token::Text(after[..end].to_owned()), &after[end + 1..])
            }
            '\'' => character(after)?,
            '$' => {
                let (name, left) = word(after);
                let (fields, left) = fields(left)?;
                (Token::Variable(name.to_owned(), fields), left)
            }
            '.' if !after.starts_with(|c: char| c.is_ascii_digit()) => {
                let (fields, left) = fields(rest)?;
                match fields.is_empty() {
                    true => (Token::Field(fields), after),
                    false => (Token::Field(fields), left),
                }
            }
            c if c.is_ascii_digit() || c == '-' || c == '+' || c == '.' => number(rest)?,
            c if is_word(c) => {
                let (word, left) = word(rest);
                (Token::Word(word.to_owned()), left)
            }
            c => return Err(format!("unexpected {c:?} in action")),
        };
        tokens.push(token);
        rest = left;
    }
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn word(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c| !is_word(c)).unwrap_or(text.len()))
}

/// `.a.b` at the start of a text.
fn fields(mut text: &str) -> Result<(Vec<String>, &str), String> {
    let mut fields = Vec::new();
    while let Some(after) = text.strip_prefix('.') {
        let (name, left) = word(after);
        if name.is_empty() {
            // The dot alone, where there is no field before it.
            return if fields.is_empty() { Ok((fields, text)) } else { Err("unexpected . after field".into()) };
        }
        fields.push(name.to_owned());
        text = left;
    }
    Ok((fields, text))
}

fn number(text: &str) -> Result<(Token, &str), String> {
    let sign = usize::from(text.starts_with(['-', '+']));
    let end = text[sign..].find(|c: char| !is_word(c) && c != '.').map_or(text.len(), |end| end + sign);
    let (digits, left) = (text[sign..end].replace('_', ""), &text[end..]);
    let parsed = match (digits.get(..2), digits.get(2..)) {
        (Some("0x" | "0X"), Some(hex)) => i64::from_str_radix(hex, 16),
        (Some("0o" | "0O"), Some(octal)) => i64::from_str_radix(octal, 8),
        (Some("0b" | "0B"), Some(binary)) => i64::from_str_radix(binary, 2),
        _ if digits.len() > 1 && digits.starts_with('0') => i64::from_str_radix(&digits, 8),
        _ => digits.parse(),
    };
    let number =
        parsed.map_err(|_| format!("{} is not a whole number; other numbers are not supported", &text[..end]))?;
    Ok((Token::Int(if text.starts_with('-') { number.wrapping_neg() } else { number }), left))
}

fn quoted(text: &str) -> Result<(Token, &str), String> {
    let mut out = String::new();
    let mut rest = text;
    loop {
        let mut chars = rest.chars();
        match chars.next() {
            None | Some('\n') => return Err("unterminated quoted string".into()),
            Some('"') => return Ok((Token::Text(out), chars.as_str())),
            Some('\\') => {
                let (c, left) = escape(chars.as_str())?;
                out.push(c);
                rest = left;
            }
            Some(c) => {
                out.push(c);
                rest = chars.as_str();
            }
        }
    }
}

fn character(text: &str) -> Result<(Token, &str), String> {
    let mut chars = text.chars();
    let (c, left) = match chars.next() {
        Some('\\') => escape(chars.as_str())?,
        Some(c) if c != '\'' && c != '\n' => (c, chars.as_str()),
        _ => return Err("unterminated character constant".into()),
    };
    let left = left.strip_prefix('\'').ok_or("unterminated character constant")?;
    Ok((Token::Int(i64::from(u32::from(c))), left))
}

/// What stands after a backslash.
fn escape(text: &str) -> Result<(char, &str), String> {
    let mut chars = text.chars();
    let first = chars.next().ok_or("unterminated escape")?;
    let rest = chars.as_str();
    let coded = |length: usize| {
        let digits = rest.get(..length).ok_or("short escape")?;
        let code = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32).ok_or("malformed escape")?;
        Ok::<_, String>((code, &rest[length..]))
    };
    Ok(match first {
        'n' => ('\n', rest),
        't' => ('\t', rest),
        'r' => ('\r', rest),
        'a' => ('\u{7}', rest),
        'b' => ('\u{8}', rest),
        'f' => ('\u{c}', rest),
        'v' => ('\u{b}', rest),
        '\\' | '"' | '\'' => (first, rest),
        // Bytes beyond ASCII would have to be put together to characters.
        'x' => coded(2).and_then(|(c, rest)| {
            if c.is_ascii() { Ok((c, rest)) } else { Err("\\x beyond ASCII is not supported; use \\u".into()) }
        })?,
        'u' => coded(4)?,
        'U' => coded(8)?,
        other => return Err(format!("unknown escape \\{other}")),
    })
}
