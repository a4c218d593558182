//! A small POSIX-like shell over a [`Node`]: what bootstrap commands need, and an honest failure for the rest.
//!
//! Understood: lists (`;`, newline, `&&`, `||`), `!`, pipelines, `{ }`, `( )`, `if`, `for`, assignments, quotes, `$VAR`, `${VAR}`, `$?`,
//! `$(...)`, redirections `<`, `>`, `>>`, `2>`, `2>>`, `2>&1`, `1>&2`, `&>`. Anything else (functions, `&`, here-documents,
//! globs in effect) is a syntax error with exit code 2 or stays literal; nothing is ever ignored silently.
//! `set -e` ends the script at a command that fails (not within a condition or before `&&` and `||`). A file that is run by its
//! path must be a script for `sh` or `bash`.
//! A command is a built-in of [`commands`]; an unknown one is `sh: x: not found`, exit code 127.

mod account_commands;
mod commands;
mod file_commands;
mod image_commands;
mod parse;
mod service_commands;
mod test_command;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::files::{join, reason};
use crate::node::Node;
use parse::{AndOr, Command, List, Part, Pipeline, Redirect, RedirectTo, Word};

/// Deepest nesting of groups and substitutions.
const MAX_DEPTH: usize = 32;

/// Where output goes.
#[derive(Clone)]
pub enum Target {
    /// Collected in memory.
    Buffer(Arc<Mutex<Vec<u8>>>),
    /// Appended to a file.
    File(Arc<str>),
    /// To this process's own standard output or error.
    Inherit(Inherited),
    /// Dropped, as in `>/dev/null`.
    Null,
}

/// Streams of the process that runs the shell.
#[derive(Clone, Copy)]
pub enum Inherited {
    /// The process's standard output.
    Out,
    /// The process's standard error.
    Error,
}

impl Target {
    /// An empty buffer.
    pub fn buffer() -> Target {
        Target::Buffer(Arc::default())
    }

    /// What a buffer holds; nothing for the rest.
    pub fn collected(&self) -> Vec<u8> {
        if let Target::Buffer(buffer) = self { buffer.lock().clone() } else { Vec::new() }
    }

    fn write(&self, node: &dyn Node, text: &[u8]) -> std::io::Result<()> {
        use std::io::Write;
        match self {
            Target::Buffer(buffer) => buffer.lock().extend_from_slice(text),
            Target::File(path) => node.files().append(path, text)?,
            Target::Inherit(Inherited::Out) => std::io::stdout().write_all(text)?,
            Target::Inherit(Inherited::Error) => std::io::stderr().write_all(text)?,
            Target::Null => {}
        }
        Ok(())
    }
}

/// Standard streams of a command.
#[derive(Clone)]
pub struct Streams {
    /// All of standard input.
    pub input: Bytes,
    /// Standard output.
    pub out: Target,
    /// Standard error.
    pub error: Target,
}

/// A command about to run.
pub struct Invocation<'a> {
    /// The machine that it runs on.
    pub node: &'a dyn Node,
    /// Arguments without the command's name.
    pub arguments: &'a [String],
    /// Working directory: an absolute path on the machine.
    pub directory: &'a str,
    /// Environment variables.
    pub environment: &'a BTreeMap<String, String>,
    /// Its input, and where its output goes.
    pub streams: &'a Streams,
}

impl Invocation<'_> {
    /// Writes a line to standard output.
    pub fn say(&self, line: impl AsRef<str>) {
        self.write(&self.streams.out, line.as_ref());
    }

    /// Writes a line to standard error.
    pub fn complain(&self, line: impl AsRef<str>) {
        self.write(&self.streams.error, line.as_ref());
    }

    fn write(&self, target: &Target, line: &str) {
        if let Err(error) = target.write(self.node, format!("{line}\n").as_bytes()) {
            tracing::debug!(%error, "unable to write a command's output");
        }
    }

    /// An argument as a path of the node.
    pub fn path(&self, argument: &str) -> String {
        join(self.directory, argument)
    }
}

/// Runs `argv` (a program and its arguments, no shell syntax) and returns its exit code.
pub async fn execute(
    node: &dyn Node,
    argv: &[String],
    environment: BTreeMap<String, String>,
    directory: &str,
    streams: Streams,
) -> i32 {
    let mut shell = Shell::new(node, environment, directory);
    shell.run_words(argv.to_vec(), &streams).await
}

/// Runs a script and returns its exit code.
pub async fn run_script(
    node: &dyn Node,
    script: &str,
    environment: BTreeMap<String, String>,
    directory: &str,
    streams: Streams,
) -> i32 {
    let mut shell = Shell::new(node, environment, directory);
    shell.script(script, &streams).await
}

type Running<'a> = Pin<Box<dyn Future<Output = i32> + Send + 'a>>;

#[derive(Clone)]
struct Shell<'n> {
    node: &'n dyn Node,
    variables: BTreeMap<String, String>,
    status: i32,
    directory: String,
    exited: bool,
    fails_fast: bool,
    /// Within a condition, where a failure ends nothing.
    tested: bool,
    depth: usize,
}

impl<'n> Shell<'n> {
    fn new(node: &'n dyn Node, environment: BTreeMap<String, String>, directory: &str) -> Shell<'n> {
        Shell {
            node,
            variables: environment,
            status: 0,
            directory: directory.to_owned(),
            exited: false,
            fails_fast: false,
            tested: false,
            depth: 0,
        }
    }

    fn script<'a>(&'a mut self, script: &'a str, streams: &'a Streams) -> Running<'a> {
        Box::pin(async move {
            match parse::parse(script) {
                Ok(list) => self.list(&list, streams).await,
                Err(problem) => {
                    self.complain(streams, &format!("sh: syntax error: {problem}"));
                    self.status = 2;
                    2
                }
            }
        })
    }

    fn complain(&self, streams: &Streams, line: &str) {
        if let Err(error) = streams.error.write(self.node, format!("{line}\n").as_bytes()) {
            tracing::debug!(%error, "unable to write a shell's output");
        }
    }

    fn list<'a>(&'a mut self, list: &'a List, streams: &'a Streams) -> Running<'a> {
        Box::pin(async move {
            for AndOr { first, rest } in &list.0 {
                let tested = self.tested;
                self.tested = tested || !rest.is_empty() || first.negated;
                self.pipeline(first, streams).await;
                let mut last = rest.is_empty() && !first.negated;
                for (position, (on_success, pipeline)) in rest.iter().enumerate() {
                    if self.exited {
                        break;
                    }
                    if (self.status == 0) == *on_success {
                        last = position + 1 == rest.len() && !pipeline.negated;
                        self.tested = tested || !last;
                        self.pipeline(pipeline, streams).await;
                    }
                }
                self.tested = tested;
                if self.fails_fast && !tested && last && self.status != 0 {
                    self.exited = true;
                }
                if self.exited {
                    break;
                }
            }
            self.status
        })
    }

    async fn pipeline(&mut self, pipeline: &Pipeline, streams: &Streams) {
        let mut input = streams.input.clone();
        let last = pipeline.commands.len().saturating_sub(1);
        for (position, command) in pipeline.commands.iter().enumerate() {
            if position == last && last == 0 {
                self.status = self.command(command, streams.clone()).await;
                break;
            }
            let out = if position == last { streams.out.clone() } else { Target::buffer() };
            let stage = Streams { input: input.clone(), out: out.clone(), error: streams.error.clone() };
            let mut child = self.clone();
            self.status = child.command(command, stage).await;
            input = out.collected().into();
        }
        if pipeline.negated {
            self.status = i32::from(self.status == 0);
        }
    }

    fn command<'a>(&'a mut self, command: &'a Command, streams: Streams) -> Running<'a> {
        Box::pin(async move {
            if self.depth >= MAX_DEPTH {
                self.complain(&streams, "sh: nesting too deep");
                return 2;
            }
            self.depth += 1;
            let status = self.command_inner(command, streams).await;
            self.depth -= 1;
            status
        })
    }

    async fn command_inner(&mut self, command: &Command, streams: Streams) -> i32 {
        let redirects = match command {
            Command::Simple { redirects, .. } | Command::Group(_, redirects) | Command::Subshell(_, redirects) => {
                redirects
            }
            Command::If { redirects, .. } | Command::For { redirects, .. } => redirects,
        };
        let streams = match self.redirect(redirects, streams.clone()).await {
            Ok(streams) => streams,
            Err(problem) => {
                self.complain(&streams, &format!("sh: {problem}"));
                return 1;
            }
        };
        match command {
            Command::Simple { assignments, words, .. } => self.simple(assignments, words, &streams).await,
            Command::Group(list, _) => self.list(list, &streams).await,
            Command::Subshell(list, _) => self.clone().list(list, &streams).await,
            Command::If { branches, otherwise, .. } => {
                for (condition, then) in branches {
                    let tested = std::mem::replace(&mut self.tested, true);
                    let holds = self.list(condition, &streams).await == 0;
                    self.tested = tested;
                    if self.exited {
                        return self.status;
                    }
                    if holds {
                        return self.list(then, &streams).await;
                    }
                }
                self.status = 0;
                if let Some(list) = otherwise { self.list(list, &streams).await } else { 0 }
            }
            Command::For { variable, words, body, .. } => {
                let mut items = Vec::new();
                for word in words {
                    items.extend(self.expand(word, &streams).await);
                }
                self.status = 0;
                for item in items {
                    self.variables.insert(variable.clone(), item);
                    self.list(body, &streams).await;
                    if self.exited {
                        break;
                    }
                }
                self.status
            }
        }
    }

    async fn redirect(&mut self, redirects: &[Redirect], mut streams: Streams) -> Result<Streams, String> {
        for redirect in redirects {
            match &redirect.to {
                RedirectTo::Descriptor(descriptor) => {
                    let target = if *descriptor == 2 { streams.error.clone() } else { streams.out.clone() };
                    if redirect.descriptor == 2 { streams.error = target } else { streams.out = target }
                }
                RedirectTo::Input(word) => {
                    let path = self.path_of(word, &streams).await?;
                    streams.input = self
                        .node
                        .files()
                        .read(&path)
                        .map_err(|error| format!("can't open {path}: {}", reason(&error)))?;
                }
                RedirectTo::File { word, append } => {
                    let path = self.path_of(word, &streams).await?;
                    let target = match path.as_str() {
                        "/dev/null" => Target::Null,
                        "/dev/stdout" => streams.out.clone(),
                        "/dev/stderr" => streams.error.clone(),
                        _ => {
                            let files = self.node.files();
                            let opened = if *append {
                                files.append(&path, b"")
                            } else {
                                files.write(&path, Bytes::new(), 0o644)
                            };
                            opened.map_err(|error| format!("can't create {path}: {}", reason(&error)))?;
                            Target::File(path.into())
                        }
                    };
                    match redirect.descriptor {
                        2 => streams.error = target,
                        0 => (streams.out, streams.error) = (target.clone(), target),
                        _ => streams.out = target,
                    }
                }
            }
        }
        Ok(streams)
    }

    async fn path_of(&mut self, word: &Word, streams: &Streams) -> Result<String, String> {
        match self.expand(word, streams).await.as_slice() {
            [path] => Ok(join(&self.directory, path)),
            _ => Err("ambiguous redirect".to_owned()),
        }
    }

    async fn simple(&mut self, assignments: &[(String, Word)], words: &[Word], streams: &Streams) -> i32 {
        let mut argv = Vec::new();
        for word in words {
            argv.extend(self.expand(word, streams).await);
        }
        let mut assigned = Vec::new();
        for (name, word) in assignments {
            assigned.push((name.clone(), self.expand(word, streams).await.join(" ")));
        }
        if argv.is_empty() {
            self.variables.extend(assigned);
            return 0;
        }
        let before = self.variables.clone();
        self.variables.extend(assigned.iter().cloned());
        let status = self.run_words(argv, streams).await;
        for (name, _) in assigned {
            match before.get(&name) {
                Some(value) => self.variables.insert(name, value.clone()),
                None => self.variables.remove(&name),
            };
        }
        status
    }

    /// Runs a command whose words are expanded: what changes the shell itself here, the rest as a built-in.
    fn run_words<'a>(&'a mut self, argv: Vec<String>, streams: &'a Streams) -> Running<'a> {
        Box::pin(self.run_words_inner(argv, streams))
    }

    async fn run_words_inner(&mut self, mut argv: Vec<String>, streams: &Streams) -> i32 {
        while matches!(argv.first().map(String::as_str), Some("sudo" | "exec" | "command")) && argv.len() > 1 {
            argv.remove(0);
        }
        let Some((name, arguments)) = argv.split_first() else { return 0 };
        match crate::files::base_name(name) {
            "exit" => {
                self.exited = true;
                arguments.first().map_or(self.status, |code| code.parse().unwrap_or(2))
            }
            "cd" => {
                let path = join(&self.directory, arguments.first().map_or("/root", String::as_str));
                if self.node.files().stat(&path).ok().flatten().is_some_and(|found| found.is_directory()) {
                    self.directory = path;
                    0
                } else {
                    self.complain(streams, &format!("sh: cd: can't cd to {path}"));
                    2
                }
            }
            "export" => {
                for argument in arguments {
                    if let Some((name, value)) = argument.split_once('=') {
                        self.variables.insert(name.to_owned(), value.to_owned());
                    }
                }
                0
            }
            "set" => {
                for option in arguments {
                    match option.as_str() {
                        "-x" | "+x" => {}
                        "-e" | "-ex" | "-xe" => self.fails_fast = true,
                        "+e" => self.fails_fast = false,
                        _ => {
                            self.complain(streams, "sh: set: only -e and -x are supported by this shell");
                            return 2;
                        }
                    }
                }
                0
            }
            "env" => {
                let split = arguments.iter().position(|argument| !argument.contains('=')).unwrap_or(arguments.len());
                let (assigned, rest) = (&arguments[..split], arguments[split..].to_vec());
                let mut child = self.clone();
                child.variables.extend(
                    assigned.iter().filter_map(|a| a.split_once('=')).map(|(n, v)| (n.to_owned(), v.to_owned())),
                );
                if rest.is_empty() {
                    let listing: String =
                        child.variables.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
                    return i32::from(streams.out.write(self.node, listing.as_bytes()).is_err());
                }
                child.run_words(rest, streams).await
            }
            "sh" | "bash" | "ash" | "dash" => self.subshell(arguments, streams).await,
            base => {
                if let Some(status) = self.file(name, streams).await {
                    return status;
                }
                let invocation = Invocation {
                    node: self.node,
                    arguments,
                    directory: &self.directory,
                    environment: &self.variables,
                    streams,
                };
                match commands::run(base, &invocation).await {
                    Some(status) => status,
                    None => {
                        self.complain(streams, &format!("sh: {name}: not found"));
                        127
                    }
                }
            }
        }
    }

    /// A shell of its own for a script.
    fn child(&self, fails_fast: bool) -> Shell<'n> {
        Shell { fails_fast, tested: false, exited: false, ..self.clone() }
    }

    /// Runs a file that is called by its path, if there is one.
    async fn file(&mut self, name: &str, streams: &Streams) -> Option<i32> {
        let path = join(&self.directory, name);
        let files = self.node.files();
        let found = files.stat(&path).ok().flatten().filter(|found| name.contains('/') && !found.is_directory())?;
        let script = files.read_text(&path).ok()?;
        let interpreter = script.lines().next()?.strip_prefix("#!")?.trim();
        let program = interpreter.strip_prefix("/usr/bin/env ").unwrap_or(interpreter);
        let (program, flags) = program.split_once(' ').unwrap_or((program, ""));
        if found.mode & 0o111 == 0 {
            self.complain(streams, &format!("sh: {name}: Permission denied"));
            return Some(126);
        }
        if !matches!(crate::files::base_name(program), "sh" | "bash" | "ash" | "dash") {
            self.complain(streams, &format!("sh: {name}: cannot run a script for {interpreter}"));
            return Some(126);
        }
        Some(self.child(flags.contains('e')).script(&script, streams).await)
    }

    async fn subshell(&mut self, arguments: &[String], streams: &Streams) -> i32 {
        let options = arguments.iter().take_while(|a| a.starts_with('-')).count();
        let flags: String = arguments[..options].concat();
        let mut child = self.child(flags.contains('e'));
        if let Some(unknown) = flags.chars().find(|flag| !"-lcxe".contains(*flag)) {
            self.complain(streams, &format!("sh: unsupported option -{unknown}"));
            return 2;
        }
        let Some(operand) = arguments.get(options) else {
            let script = String::from_utf8_lossy(&streams.input).into_owned();
            return child.script(&script, streams).await;
        };
        if flags.contains('c') {
            return child.script(operand, streams).await;
        }
        let path = join(&self.directory, operand);
        match self.node.files().read_text(&path) {
            Ok(script) => child.script(&script, streams).await,
            Err(error) => {
                self.complain(streams, &format!("sh: can't open {operand}: {}", reason(&error)));
                127
            }
        }
    }

    /// A word's fields: unquoted expansions are split at white space.
    fn expand<'a>(
        &'a mut self,
        word: &'a Word,
        streams: &'a Streams,
    ) -> Pin<Box<dyn Future<Output = Vec<String>> + Send + 'a>> {
        Box::pin(async move {
            let mut fields: Vec<String> = Vec::new();
            let mut current: Option<String> = None;
            for part in &word.0 {
                let (value, quoted) = match part {
                    Part::Text(text) => {
                        current.get_or_insert_default().push_str(text);
                        continue;
                    }
                    Part::Variable { name, quoted } => (self.variable(name), *quoted),
                    Part::Substitution { script, quoted } => {
                        let out = Target::buffer();
                        let inner =
                            Streams { input: streams.input.clone(), out: out.clone(), error: streams.error.clone() };
                        let mut child = self.clone();
                        child.depth += 1;
                        self.status = if child.depth > MAX_DEPTH { 2 } else { child.script(script, &inner).await };
                        (String::from_utf8_lossy(&out.collected()).trim_end_matches('\n').to_owned(), *quoted)
                    }
                };
                if quoted {
                    current.get_or_insert_default().push_str(&value);
                    continue;
                }
                if value.starts_with(char::is_whitespace) {
                    fields.extend(current.take());
                }
                let mut pieces = value.split_whitespace().peekable();
                while let Some(piece) = pieces.next() {
                    current.get_or_insert_default().push_str(piece);
                    if pieces.peek().is_some() || value.ends_with(char::is_whitespace) {
                        fields.extend(current.take());
                    }
                }
            }
            fields.extend(current);
            fields
        })
    }

    fn variable(&self, name: &str) -> String {
        match name {
            "?" => self.status.to_string(),
            "HOSTNAME" => self.variables.get(name).cloned().unwrap_or_else(|| self.node.hostname()),
            "PWD" => self.directory.clone(),
            _ => self.variables.get(name).cloned().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests;
