//! Shell syntax: from text to a tree. Pure.

/// Commands that run one after the other.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct List(pub Vec<AndOr>);

/// Pipelines joined by `&&` (true) and `||` (false).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AndOr {
    pub first: Pipeline,
    pub rest: Vec<(bool, Pipeline)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pipeline {
    pub negated: bool,
    pub commands: Vec<Command>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Command {
    Simple { assignments: Vec<(String, Word)>, words: Vec<Word>, redirects: Vec<Redirect> },
    Group(List, Vec<Redirect>),
    Subshell(List, Vec<Redirect>),
    If { branches: Vec<(List, List)>, otherwise: Option<List>, redirects: Vec<Redirect> },
    For { variable: String, words: Vec<Word>, body: List, redirects: Vec<Redirect> },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Redirect {
    /// 1, 2, or 0 for both (`&>`).
    pub descriptor: u8,
    pub to: RedirectTo,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum RedirectTo {
    File { word: Word, append: bool },
    Input(Word),
    Descriptor(u8),
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Word(pub Vec<Part>);

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    Text(String),
    Variable { name: String, quoted: bool },
    Substitution { script: String, quoted: bool },
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    /// A word, and its text when nothing in it was quoted or expanded (a keyword may be meant).
    Word(Word, Option<String>),
    Operator(&'static str),
    Redirect(u8, Arrow),
    Newline,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Arrow {
    In,
    Out,
    Append,
    Duplicate(u8),
}

const KEYWORDS: [&str; 9] = ["then", "elif", "else", "fi", "do", "done", "}", "esac", "in"];
const UNSUPPORTED: [&str; 5] = ["while", "until", "case", "function", "select"];

pub(super) fn parse(script: &str) -> Result<List, String> {
    let tokens = Lexer { text: script.chars().collect(), at: 0 }.tokens()?;
    let mut parser = Parser { tokens, at: 0 };
    let list = parser.list(&[])?;
    match parser.peek() {
        None => Ok(list),
        Some(token) => Err(format!("unexpected {}", describe(token))),
    }
}

fn describe(token: &Token) -> String {
    match token {
        Token::Word(_, Some(text)) => format!("\"{text}\""),
        Token::Word(..) => "word".to_owned(),
        Token::Operator(operator) => format!("\"{operator}\""),
        Token::Redirect(..) => "redirection".to_owned(),
        Token::Newline => "newline".to_owned(),
    }
}

struct Lexer {
    text: Vec<char>,
    at: usize,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    fn eat(&mut self, expected: &str) -> bool {
        let found = expected.chars().enumerate().all(|(ahead, c)| self.peek(ahead) == Some(c));
        if found {
            self.at += expected.chars().count();
        }
        found
    }

    fn tokens(mut self) -> Result<Vec<Token>, String> {
        let mut tokens = Vec::new();
        while let Some(c) = self.peek(0) {
            match c {
                '\\' if self.peek(1) == Some('\n') => self.at += 2,
                '\n' => {
                    self.at += 1;
                    tokens.push(Token::Newline);
                }
                c if c.is_whitespace() => self.at += 1,
                '#' => {
                    while self.peek(0).is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                _ => tokens.push(self.token()?),
            }
        }
        Ok(tokens)
    }

    fn token(&mut self) -> Result<Token, String> {
        if self.text[self.at..].starts_with(&['<', '<']) {
            return Err("here-documents are not supported".to_owned());
        }
        if self.eat("&>>") {
            return Ok(Token::Redirect(0, Arrow::Append));
        }
        if self.eat("&>") {
            return Ok(Token::Redirect(0, Arrow::Out));
        }
        let descriptor = match (self.peek(0), self.peek(1)) {
            (Some(digit @ ('1' | '2')), Some('>')) => {
                self.at += 1;
                if digit == '2' { 2 } else { 1 }
            }
            _ => 1,
        };
        for (text, arrow) in [
            (">&1", Arrow::Duplicate(1)),
            (">&2", Arrow::Duplicate(2)),
            (">>", Arrow::Append),
            (">", Arrow::Out),
            ("<", Arrow::In),
        ] {
            if self.eat(text) {
                return Ok(Token::Redirect(descriptor, arrow));
            }
        }
        for operator in ["&&", "||", ";;", ";", "|", "(", ")", "&"] {
            if self.eat(operator) {
                return match operator {
                    "&" => Err("background commands are not supported".to_owned()),
                    ";;" => Err("unexpected \";;\"".to_owned()),
                    operator => Ok(Token::Operator(operator)),
                };
            }
        }
        self.word()
    }

    fn word(&mut self) -> Result<Token, String> {
        let mut parts: Vec<Part> = Vec::new();
        let mut plain = true;
        let push = |parts: &mut Vec<Part>, text: &str| match parts.last_mut() {
            Some(Part::Text(last)) => last.push_str(text),
            _ => parts.push(Part::Text(text.to_owned())),
        };
        while let Some(c) = self.peek(0) {
            match c {
                c if c.is_whitespace() || ";|&<>()".contains(c) => break,
                '\\' => {
                    plain = false;
                    self.at += 1;
                    if let Some(next) = self.peek(0) {
                        self.at += 1;
                        if next != '\n' {
                            push(&mut parts, &next.to_string());
                        }
                    }
                }
                '\'' => {
                    plain = false;
                    self.at += 1;
                    let mut text = String::new();
                    loop {
                        match self.peek(0) {
                            None => return Err("unterminated quoted string".to_owned()),
                            Some('\'') => break,
                            Some(c) => text.push(c),
                        }
                        self.at += 1;
                    }
                    self.at += 1;
                    push(&mut parts, &text);
                }
                '"' => {
                    plain = false;
                    self.at += 1;
                    push(&mut parts, "");
                    self.double_quoted(&mut parts)?;
                }
                '$' => {
                    plain = false;
                    self.dollar(&mut parts, false)?;
                }
                '`' => return Err("backquotes are not supported, use $(...)".to_owned()),
                c => {
                    self.at += 1;
                    push(&mut parts, &c.to_string());
                }
            }
        }
        let text = match parts.as_slice() {
            [Part::Text(text)] if plain => Some(text.clone()),
            _ => None,
        };
        Ok(Token::Word(Word(parts), text))
    }

    fn double_quoted(&mut self, parts: &mut Vec<Part>) -> Result<(), String> {
        let push = |parts: &mut Vec<Part>, c: char| match parts.last_mut() {
            Some(Part::Text(last)) => last.push(c),
            _ => parts.push(Part::Text(c.to_string())),
        };
        loop {
            match self.peek(0) {
                None => return Err("unterminated quoted string".to_owned()),
                Some('"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some('\\') if self.peek(1).is_some_and(|c| "\"\\$`\n".contains(c)) => {
                    if let Some(c) = self.peek(1).filter(|c| *c != '\n') {
                        push(parts, c);
                    }
                    self.at += 2;
                }
                Some('$') => self.dollar(parts, true)?,
                Some('`') => return Err("backquotes are not supported, use $(...)".to_owned()),
                Some(c) => {
                    self.at += 1;
                    push(parts, c);
                }
            }
        }
    }

    fn dollar(&mut self, parts: &mut Vec<Part>, quoted: bool) -> Result<(), String> {
        self.at += 1;
        match self.peek(0) {
            Some('(') => {
                let start = self.at + 1;
                let mut depth = 0;
                while let Some(c) = self.peek(0) {
                    match c {
                        '(' => depth += 1,
                        ')' => depth -= 1,
                        _ => {}
                    }
                    self.at += 1;
                    if depth == 0 {
                        let script = self.text[start..self.at - 1].iter().collect();
                        parts.push(Part::Substitution { script, quoted });
                        return Ok(());
                    }
                }
                Err("unterminated $(".to_owned())
            }
            Some('{') => {
                let start = self.at + 1;
                while self.peek(0).is_some_and(|c| c != '}') {
                    self.at += 1;
                }
                let name: String = self.text.get(start..self.at).unwrap_or_default().iter().collect();
                self.at += 1;
                if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                    return Err(format!("bad substitution ${{{name}}}"));
                }
                parts.push(Part::Variable { name, quoted });
                Ok(())
            }
            Some('?') => {
                self.at += 1;
                parts.push(Part::Variable { name: "?".to_owned(), quoted });
                Ok(())
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let mut name = String::new();
                while let Some(c) = self.peek(0).filter(|c| c.is_ascii_alphanumeric() || *c == '_') {
                    name.push(c);
                    self.at += 1;
                }
                parts.push(Part::Variable { name, quoted });
                Ok(())
            }
            Some(c) if c.is_ascii_digit() || "@*#$!-".contains(c) => Err(format!("${c} is not supported")),
            _ => {
                parts.push(Part::Text("$".to_owned()));
                Ok(())
            }
        }
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn keyword(&self) -> Option<&str> {
        match self.peek() {
            Some(Token::Word(_, Some(text))) => Some(text),
            _ => None,
        }
    }

    fn operator(&mut self, expected: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Operator(operator)) if *operator == expected);
        self.at += usize::from(found);
        found
    }

    fn newlines(&mut self) {
        while matches!(self.peek(), Some(Token::Newline)) {
            self.at += 1;
        }
    }

    fn expect(&mut self, keyword: &str) -> Result<(), String> {
        if self.keyword() == Some(keyword) {
            self.at += 1;
            return Ok(());
        }
        let found = self.peek().map_or_else(|| "end of script".to_owned(), describe);
        Err(format!("unexpected {found} (expecting \"{keyword}\")"))
    }

    fn list(&mut self, until: &[&str]) -> Result<List, String> {
        let mut items = Vec::new();
        loop {
            while matches!(self.peek(), Some(Token::Newline)) || (!items.is_empty() && self.operator(";")) {
                if matches!(self.peek(), Some(Token::Newline)) {
                    self.at += 1;
                }
            }
            match self.peek() {
                None | Some(Token::Operator(")")) => break,
                Some(Token::Word(_, Some(text))) if until.contains(&text.as_str()) => break,
                Some(_) => {}
            }
            let first = self.pipeline()?;
            let mut rest = Vec::new();
            loop {
                let on_success = if self.operator("&&") {
                    true
                } else if self.operator("||") {
                    false
                } else {
                    break;
                };
                self.newlines();
                rest.push((on_success, self.pipeline()?));
            }
            items.push(AndOr { first, rest });
            match self.peek() {
                None | Some(Token::Newline | Token::Operator(";" | ")")) => {}
                Some(token) => return Err(format!("unexpected {}", describe(token))),
            }
        }
        Ok(List(items))
    }

    fn pipeline(&mut self) -> Result<Pipeline, String> {
        let negated = self.keyword() == Some("!");
        self.at += usize::from(negated);
        let mut commands = vec![self.command()?];
        while self.operator("|") {
            self.newlines();
            commands.push(self.command()?);
        }
        Ok(Pipeline { negated, commands })
    }

    fn command(&mut self) -> Result<Command, String> {
        if self.operator("(") {
            let list = self.list(&[])?;
            if !self.operator(")") {
                return Err("expecting \")\"".to_owned());
            }
            return Ok(Command::Subshell(list, self.redirects()?));
        }
        match self.keyword() {
            Some("{") => {
                self.at += 1;
                let list = self.list(&["}"])?;
                self.expect("}")?;
                Ok(Command::Group(list, self.redirects()?))
            }
            Some("if") => self.conditional(),
            Some("for") => self.repetition(),
            Some(word) if UNSUPPORTED.contains(&word) => Err(format!("\"{word}\" is not supported")),
            Some(word) if KEYWORDS.contains(&word) => Err(format!("unexpected \"{word}\"")),
            _ => self.simple(),
        }
    }

    fn conditional(&mut self) -> Result<Command, String> {
        self.at += 1;
        let mut branches = Vec::new();
        let mut otherwise = None;
        loop {
            let condition = self.list(&["then"])?;
            self.expect("then")?;
            branches.push((condition, self.list(&["elif", "else", "fi"])?));
            if self.keyword() == Some("elif") {
                self.at += 1;
                continue;
            }
            if self.keyword() == Some("else") {
                self.at += 1;
                otherwise = Some(self.list(&["fi"])?);
            }
            self.expect("fi")?;
            return Ok(Command::If { branches, otherwise, redirects: self.redirects()? });
        }
    }

    fn repetition(&mut self) -> Result<Command, String> {
        self.at += 1;
        let variable = self.keyword().ok_or("bad for loop variable")?.to_owned();
        self.at += 1;
        self.expect("in")?;
        let mut words = Vec::new();
        while let Some(Token::Word(word, _)) = self.peek() {
            words.push(word.clone());
            self.at += 1;
        }
        self.operator(";");
        self.newlines();
        self.expect("do")?;
        let body = self.list(&["done"])?;
        self.expect("done")?;
        Ok(Command::For { variable, words, body, redirects: self.redirects()? })
    }

    fn redirects(&mut self) -> Result<Vec<Redirect>, String> {
        let mut redirects = Vec::new();
        while let Some(Token::Redirect(descriptor, arrow)) = self.peek() {
            let (descriptor, arrow) = (*descriptor, *arrow);
            self.at += 1;
            let to = if let Arrow::Duplicate(of) = arrow {
                RedirectTo::Descriptor(of)
            } else {
                let Some(Token::Word(word, _)) = self.peek().cloned() else {
                    return Err("redirection without a file".to_owned());
                };
                self.at += 1;
                match arrow {
                    Arrow::In => RedirectTo::Input(word),
                    arrow => RedirectTo::File { word, append: arrow == Arrow::Append },
                }
            };
            redirects.push(Redirect { descriptor, to });
        }
        Ok(redirects)
    }

    fn simple(&mut self) -> Result<Command, String> {
        let (mut assignments, mut words, mut redirects) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            match self.peek() {
                Some(Token::Word(word, _)) => {
                    let word = word.clone();
                    self.at += 1;
                    if self.operator("(") {
                        return Err("functions are not supported".to_owned());
                    }
                    match assignment(&word).filter(|_| words.is_empty()) {
                        Some(assignment) => assignments.push(assignment),
                        None => words.push(word),
                    }
                }
                Some(Token::Redirect(..)) => redirects.extend(self.redirects()?),
                _ => break,
            }
        }
        if assignments.is_empty() && words.is_empty() && redirects.is_empty() {
            let found = self.peek().map_or_else(|| "end of script".to_owned(), describe);
            return Err(format!("unexpected {found}"));
        }
        Ok(Command::Simple { assignments, words, redirects })
    }
}

fn assignment(word: &Word) -> Option<(String, Word)> {
    let Some(Part::Text(text)) = word.0.first() else { return None };
    let (name, value) = text.split_once('=')?;
    let named =
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && name.starts_with(|c: char| !c.is_ascii_digit());
    if name.is_empty() || !named {
        return None;
    }
    let mut parts = vec![Part::Text(value.to_owned())];
    parts.extend_from_slice(&word.0[1..]);
    Some((name.to_owned(), Word(parts)))
}
