//! Users and groups: `/etc/passwd`, `/etc/group` and `/etc/shadow` as the real tools keep them.

use super::Invocation;
use crate::files::{Files, reason};

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";
const SHADOW: &str = "/etc/shadow";
/// First number of an ordinary user or group, and of one of the system.
const FIRST: u32 = 1000;
const FIRST_OF_SYSTEM: u32 = 100;

/// A file of lines with fields between colons.
struct Table<'a> {
    files: &'a dyn Files,
    path: &'static str,
    mode: u32,
    rows: Vec<Vec<String>>,
}

impl<'a> Table<'a> {
    fn open(files: &'a dyn Files, path: &'static str) -> Table<'a> {
        // Without the file there is root, as on every node.
        let default = match path {
            PASSWD => "root:x:0:0:root:/root:/bin/bash\n",
            GROUP => "root:x:0:\n",
            _ => "root:*:19000:0:99999:7:::\n",
        };
        let text = files.read_text(path).unwrap_or_else(|_| default.to_owned());
        let rows = text.lines().map(|line| line.split(':').map(str::to_owned).collect()).collect();
        Table { files, path, mode: if path == SHADOW { 0o640 } else { 0o644 }, rows }
    }

    fn row(&mut self, name: &str) -> Option<&mut Vec<String>> {
        self.rows.iter_mut().find(|row| row.first().is_some_and(|first| first == name))
    }

    fn next_number(&self, system: bool) -> u32 {
        let first = if system { FIRST_OF_SYSTEM } else { FIRST };
        let taken =
            |number: u32| self.rows.iter().any(|row| row.get(2).is_some_and(|field| *field == number.to_string()));
        (first..).find(|number| !taken(*number)).unwrap_or(first)
    }

    fn add(&mut self, fields: &[&str]) {
        self.rows.push(fields.iter().map(|&field| field.to_owned()).collect());
    }

    fn save(&self) -> Result<(), String> {
        let text: String = self.rows.iter().map(|row| row.join(":") + "\n").collect();
        self.files.install(self.path, text, self.mode).map_err(|error| format!("{}: {}", self.path, reason(&error)))
    }
}

/// Options with a value, options without one, and the name at the end.
struct Parsed {
    given: Vec<(char, String)>,
    name: String,
}

impl Parsed {
    fn of(command: &str, call: &Invocation<'_>, valued: &str, plain: &str) -> Result<Parsed, i32> {
        let (mut given, mut name) = (Vec::new(), None);
        let mut arguments = call.arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.strip_prefix('-').filter(|rest| !rest.is_empty()) {
                None => name = Some(argument.clone()),
                Some(letters) => {
                    for (position, letter) in letters.char_indices() {
                        if valued.contains(letter) {
                            let inline = &letters[position + letter.len_utf8()..];
                            let value =
                                if inline.is_empty() { arguments.next().cloned() } else { Some(inline.to_owned()) };
                            let Some(value) = value else {
                                call.complain(format!("{command}: option requires an argument -- '{letter}'"));
                                return Err(2);
                            };
                            given.push((letter, value));
                            break;
                        }
                        if !plain.contains(letter) {
                            call.complain(format!("{command}: invalid option -- '{letter}'"));
                            return Err(2);
                        }
                        given.push((letter, String::new()));
                    }
                }
            }
        }
        match name {
            Some(name) if !name.contains([':', '\n', '/']) => Ok(Parsed { given, name }),
            _ => {
                call.complain(format!("{command}: a valid name is needed"));
                Err(2)
            }
        }
    }

    fn get(&self, letter: char) -> Option<&str> {
        self.given.iter().rev().find(|(given, _)| *given == letter).map(|(_, value)| value.as_str())
    }

    fn has(&self, letter: char) -> bool {
        self.get(letter).is_some()
    }
}

fn finish(call: &Invocation<'_>, command: &str, outcome: Result<(), String>) -> i32 {
    match outcome {
        Ok(()) => 0,
        Err(problem) => {
            call.complain(format!("{command}: {problem}"));
            1
        }
    }
}

/// Puts a user into groups that exist.
fn join_groups(files: &dyn Files, user: &str, groups: &str) -> Result<(), String> {
    let mut table = Table::open(files, GROUP);
    for group in groups.split(',').filter(|group| !group.is_empty()) {
        let row = table.row(group).ok_or_else(|| format!("group '{group}' does not exist"))?;
        row.resize(4, String::new());
        let members = &mut row[3];
        if !members.split(',').any(|member| member == user) {
            if !members.is_empty() {
                members.push(',');
            }
            members.push_str(user);
        }
    }
    table.save()
}

pub(super) fn id(call: &Invocation<'_>) -> i32 {
    let operands: Vec<&String> = call.arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let name = operands.first().map_or("root", |name| name.as_str());
    let mut table = Table::open(call.node.files(), PASSWD);
    let Some(row) = table.row(name) else {
        call.complain(format!("id: '{name}': no such user"));
        return 1;
    };
    let field = |at: usize| row.get(at).cloned().unwrap_or_default();
    match call.arguments.iter().find(|argument| argument.starts_with('-')).map(String::as_str) {
        Some("-u") => call.say(field(2)),
        Some("-g") => call.say(field(3)),
        Some("-un") => call.say(name),
        Some(option) => {
            call.complain(format!("id: unrecognized option '{option}'"));
            return 1;
        }
        None => call.say(format!("uid={}({name}) gid={}", field(2), field(3))),
    }
    0
}

pub(super) fn groupadd(call: &Invocation<'_>) -> i32 {
    let parsed = match Parsed::of("groupadd", call, "g", "fr") {
        Ok(parsed) => parsed,
        Err(status) => return status,
    };
    let mut table = Table::open(call.node.files(), GROUP);
    if table.row(&parsed.name).is_some() {
        if parsed.has('f') {
            return 0;
        }
        call.complain(format!("groupadd: group '{}' already exists", parsed.name));
        return 9;
    }
    let number = parsed.get('g').map_or_else(|| table.next_number(parsed.has('r')).to_string(), str::to_owned);
    table.add(&[&parsed.name, "x", &number, ""]);
    finish(call, "groupadd", table.save())
}

pub(super) fn useradd(call: &Invocation<'_>) -> i32 {
    let parsed = match Parsed::of("useradd", call, "cdsgGup", "mMrN") {
        Ok(parsed) => parsed,
        Err(status) => return status,
    };
    if Table::open(call.node.files(), PASSWD).row(&parsed.name).is_some() {
        call.complain(format!("useradd: user '{}' already exists", parsed.name));
        return 9;
    }
    finish(call, "useradd", add_user(call.node.files(), &parsed))
}

/// The numbers of an owner as chown takes it: `user`, `user:group`, `user:` (the user's own group) or `:group`; what is not said
/// is none. The text that names nobody is the error.
pub(super) fn owner(files: &dyn Files, text: &str) -> Result<(Option<u32>, Option<u32>), String> {
    let (user, group) = text.split_once(':').map_or((text, None), |(user, group)| (user, Some(group)));
    let field = |path: &'static str, name: &str, field: usize| {
        let table = Table::open(files, path).row(name).and_then(|row| row.get(field)?.parse().ok());
        table.or_else(|| name.parse().ok())
    };
    let uid = match user {
        "" => None,
        user => Some(field(PASSWD, user, 2).ok_or_else(|| format!("invalid user: '{text}'"))?),
    };
    let gid = match group {
        None => None,
        Some("") => field(PASSWD, user, 3),
        Some(group) => Some(field(GROUP, group, 2).ok_or_else(|| format!("invalid group: '{text}'"))?),
    };
    Ok((uid, gid))
}

fn add_user(files: &dyn Files, parsed: &Parsed) -> Result<(), String> {
    let name = &parsed.name;
    let mut groups = Table::open(files, GROUP);
    let group = match parsed.get('g') {
        Some(given) if given.parse::<u32>().is_ok() => given.to_owned(),
        Some(given) => {
            let row = groups.row(given).ok_or_else(|| format!("group '{given}' does not exist"))?;
            row.get(2).cloned().unwrap_or_default()
        }
        None => {
            let number = groups.next_number(parsed.has('r')).to_string();
            groups.add(&[name, "x", &number, ""]);
            groups.save()?;
            number
        }
    };
    let mut users = Table::open(files, PASSWD);
    let number = parsed.get('u').map_or_else(|| users.next_number(parsed.has('r')).to_string(), str::to_owned);
    let home = parsed.get('d').map_or_else(|| format!("/home/{name}"), str::to_owned);
    users.add(&[
        name,
        "x",
        &number,
        &group,
        parsed.get('c').unwrap_or_default(),
        &home,
        parsed.get('s').unwrap_or("/bin/sh"),
    ]);
    users.save()?;
    let mut shadow = Table::open(files, SHADOW);
    shadow.add(&[name, parsed.get('p').unwrap_or("!"), "19000", "0", "99999", "7", "", "", ""]);
    shadow.save()?;
    if parsed.has('m') {
        let failed = |error: std::io::Error| format!("cannot create directory {home}: {}", reason(&error));
        files.make_directories(&home).map_err(failed)?;
        let owner = number.parse().ok().zip(group.parse().ok());
        if let Some((user, group)) = owner {
            files.set_owner(&home, user, group).map_err(failed)?;
        }
    }
    join_groups(files, name, parsed.get('G').unwrap_or_default())
}

pub(super) fn usermod(call: &Invocation<'_>) -> i32 {
    let parsed = match Parsed::of("usermod", call, "Gps", "aLU") {
        Ok(parsed) => parsed,
        Err(status) => return status,
    };
    let files = call.node.files();
    if Table::open(files, PASSWD).row(&parsed.name).is_none() {
        call.complain(format!("usermod: user '{}' does not exist", parsed.name));
        return 6;
    }
    let change = || {
        if let Some(groups) = parsed.get('G') {
            join_groups(files, &parsed.name, groups)?;
        }
        if let Some(shell) = parsed.get('s') {
            let mut table = Table::open(files, PASSWD);
            if let Some(row) = table.row(&parsed.name) {
                row.resize(7, String::new());
                shell.clone_into(&mut row[6]);
            }
            table.save()?;
        }
        let hash = |old: &str| match parsed.get('p') {
            Some(given) => given.to_owned(),
            None if parsed.has('L') && !old.starts_with('!') => format!("!{old}"),
            None if parsed.has('U') => old.trim_start_matches('!').to_owned(),
            None => old.to_owned(),
        };
        set_hash(files, &parsed.name, hash)
    };
    finish(call, "usermod", change())
}

fn set_hash(files: &dyn Files, name: &str, hash: impl Fn(&str) -> String) -> Result<(), String> {
    let mut table = Table::open(files, SHADOW);
    if table.row(name).is_none() {
        table.add(&[name, "!", "19000", "0", "99999", "7", "", "", ""]);
    }
    if let Some(field) = table.row(name).and_then(|row| row.get_mut(1)) {
        *field = hash(field);
    }
    table.save()
}

pub(super) fn passwd(call: &Invocation<'_>) -> i32 {
    let parsed = match Parsed::of("passwd", call, "", "luq") {
        Ok(parsed) => parsed,
        Err(status) => return status,
    };
    if !parsed.has('l') && !parsed.has('u') {
        call.complain("passwd: only -l and -u are supported on a capwasm simulated node");
        return 2;
    }
    let locks = parsed.has('l');
    let hash = |old: &str| {
        let plain = old.trim_start_matches('!');
        if locks { format!("!{plain}") } else { plain.to_owned() }
    };
    finish(call, "passwd", set_hash(call.node.files(), &parsed.name, hash))
}
