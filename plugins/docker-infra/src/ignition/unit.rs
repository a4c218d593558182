//! Units of systemd: their files, and what running them means in a container.

use super::{IgnitionError, UNITS, bad, config};
use crate::recipe::{File, Recipe, Step, quote};
use crate::tar::Attributes;

/// Adds a unit's files, and steps when it is enabled.
pub fn add(recipe: &mut Recipe, unit: config::Unit, systemd: bool) -> Result<(), IgnitionError> {
    let name = unit.name.as_str();
    check(name)?;
    if !unit.contents.is_empty() {
        recipe.files.push(file(format!("{UNITS}/{name}"), &unit.contents));
    }
    for dropin in &unit.dropins {
        check(&dropin.name)?;
        recipe.files.push(file(format!("{UNITS}/{name}.d/{}", dropin.name), &dropin.contents));
    }
    if unit.mask {
        recipe.commands.push(Step::command(format!("ln -sfn /dev/null {UNITS}/{name}")));
        return Ok(());
    }
    if !unit.enabled.unwrap_or(unit.enable) {
        return Ok(());
    }
    let whole: String = unit.dropins.iter().fold(unit.contents.clone(), |all, dropin| all + "\n" + &dropin.contents);
    match commands(&whole) {
        Some(lines) if lines.is_empty() => {}
        Some(lines) => {
            let all = lines.iter().map(|line| line.script.as_str()).collect::<Vec<_>>().join(" &&\n");
            let shown = lines.iter().map(|line| line.title.as_str()).collect::<Vec<_>>().join(" && ");
            let script = match conditions(&whole) {
                // As systemd does it: a unit whose condition fails is skipped, and that is no error.
                Some(test) => format!("if {test}; then\n{all}\nfi"),
                None => all,
            };
            recipe.commands.push(Step::titled(format!("{name}: {shown}"), script));
        }
        // Disks and mounts of a container are the engine's.
        None if systemd && !name.ends_with(".mount") && !name.ends_with(".swap") => {
            recipe.commands.push(Step::command(enable(name, unit.contents.is_empty())));
        }
        None => recipe.ignored.push(format!("systemd.units {name}")),
    }
    Ok(())
}

/// A unit that the document does not bring may not be in the image: that is no reason to fail.
fn enable(name: &str, of_image: bool) -> String {
    let script = format!("systemctl daemon-reload && systemctl enable --now {name}");
    if of_image { format!("if systemctl cat {name} >/dev/null 2>&1; then {script}; fi") } else { script }
}

fn check(name: &str) -> Result<(), IgnitionError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@:\\".contains(&byte);
    if name.is_empty() || name.starts_with(['.', '-']) || !name.bytes().all(is_plain) {
        return Err(bad("unit", name, "the name has strange letters"));
    }
    Ok(())
}

fn file(path: String, contents: &str) -> File {
    File {
        path,
        content: contents.as_bytes().to_vec(),
        attributes: Attributes::root(0o644),
        named_owner: None,
        append: false,
    }
}

/// Values of a key, with continued lines joined; an empty value forgets those before it, as in systemd.
fn values<'a>(text: &'a str, key: &'a str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let mut found: Vec<String> = Vec::new();
    for line in joined.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        if let Some((name, value)) = line.split_once('=')
            && name.trim() == key
        {
            match value.trim() {
                "" => found.clear(),
                value => found.push(value.to_owned()),
            }
        }
    }
    found
}

/// The command lines of a unit that ends by itself, in order; none of one that stays. Its environment, where passwords
/// stand, is in no title.
fn commands(text: &str) -> Option<Vec<Step>> {
    if values(text, "Type").last().map(String::as_str) != Some("oneshot") {
        return None;
    }
    let environment: String = values(text, "Environment")
        .iter()
        .flat_map(|line| words(line))
        .filter_map(|pair| pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())))
        .filter(|(name, _)| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
        .map(|(name, value)| format!("{name}={} ", quote(&value)))
        .collect();
    let lines = ["ExecStartPre", "ExecStart", "ExecStartPost"].into_iter().flat_map(|key| values(text, key));
    Some(
        lines
            .map(|line| {
                let (prefix, command) = line.split_at(line.find(|letter| !"-+!@:".contains(letter)).unwrap_or(0));
                let words: Vec<String> = words(command).iter().map(|word| quote(word)).collect();
                let title = words.join(" ");
                let script = format!("{environment}{title}");
                // A failure that the unit does not mind.
                let script = if prefix.contains('-') { format!("{{ {script} || true; }}") } else { script };
                Step { title, script }
            })
            .collect(),
    )
}

/// What must be there for the unit to run, as a test for the shell.
fn conditions(text: &str) -> Option<String> {
    // Of those with a bar, one is enough; all of the others must hold.
    let (mut all, mut any) = (Vec::new(), Vec::new());
    for path in values(text, "ConditionPathExists") {
        let (tests, path) = match path.strip_prefix('|') {
            Some(path) => (&mut any, path.trim_start()),
            None => (&mut all, path.as_str()),
        };
        tests.push(match path.strip_prefix('!') {
            Some(path) => format!("test ! -e {}", quote(path.trim_start())),
            None => format!("test -e {}", quote(path)),
        });
    }
    if !any.is_empty() {
        all.push(format!("{{ {}; }}", any.join(" || ")));
    }
    (!all.is_empty()).then(|| all.join(" && "))
}

/// Words of a command line, with quotes as systemd has them.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut open, mut any) = (Vec::new(), String::new(), None, false);
    for letter in line.chars() {
        match (open, letter) {
            (None, '"' | '\'') => (open, any) = (Some(letter), true),
            (Some(quote), _) if quote == letter => open = None,
            (None, letter) if letter.is_whitespace() => {
                if any {
                    words.push(std::mem::take(&mut word));
                }
                any = false;
            }
            (_, letter) => {
                word.push(letter);
                any = true;
            }
        }
    }
    if any {
        words.push(word);
    }
    words
}
