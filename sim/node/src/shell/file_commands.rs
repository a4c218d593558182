//! Commands on files.

use std::io;

use super::{Invocation, account_commands};
use crate::files::{Files, Kind, base_name, join, parent, reason};

/// Splits arguments into single-letter flags and operands; long options and unknown letters are complaints.
fn options<'a>(name: &str, call: &'a Invocation<'_>, known: &str) -> Result<(String, Vec<&'a str>), i32> {
    let (mut flags, mut operands, mut only_operands) = (String::new(), Vec::new(), false);
    for argument in call.arguments {
        match argument.as_str() {
            "--" if !only_operands => only_operands = true,
            option if !only_operands && option.len() > 1 && option.starts_with('-') => {
                if let Some(unknown) = option[1..].chars().find(|flag| !known.contains(*flag)) {
                    call.complain(format!("{name}: unrecognized option '-{unknown}'"));
                    return Err(1);
                }
                flags.push_str(&option[1..]);
            }
            operand => operands.push(operand),
        }
    }
    Ok((flags, operands))
}

/// Applies `act` to every operand and complains about each failure.
fn each(
    call: &Invocation<'_>,
    name: &str,
    verb: &str,
    operands: &[&str],
    mut act: impl FnMut(&str) -> io::Result<()>,
) -> i32 {
    if operands.is_empty() {
        call.complain(format!("{name}: missing operand"));
        return 1;
    }
    let mut status = 0;
    for operand in operands {
        if let Err(error) = act(&call.path(operand)) {
            call.complain(format!("{name}: cannot {verb} '{operand}': {}", reason(&error)));
            status = 1;
        }
    }
    status
}

pub(super) fn mkdir(call: &Invocation<'_>) -> i32 {
    let mut arguments: Vec<String> = call.arguments.to_vec();
    let mut mode = 0o755;
    if let Some(at) = arguments.iter().position(|argument| argument == "-m") {
        match arguments.get(at + 1).and_then(|mode| u32::from_str_radix(mode, 8).ok()) {
            Some(given) => mode = given,
            None => {
                call.complain("mkdir: invalid mode");
                return 1;
            }
        }
        arguments.drain(at..=at + 1);
    }
    let call = Invocation { arguments: &arguments, ..*call };
    let (flags, operands) = match options("mkdir", &call, "pv") {
        Ok(parsed) => parsed,
        Err(status) => return status,
    };
    let files = call.node.files();
    each(&call, "mkdir", "create directory", &operands, |path| {
        if !flags.contains('p') {
            return files.make_directory(path, mode);
        }
        files.make_directories(parent(path))?;
        match files.stat(path)? {
            Some(found) if found.is_directory() => Ok(()),
            Some(_) => Err(io::ErrorKind::AlreadyExists.into()),
            None => files.make_directory(path, mode),
        }
    })
}

pub(super) fn touch(call: &Invocation<'_>) -> i32 {
    let (_, operands) = match options("touch", call, "") {
        Ok(parsed) => parsed,
        Err(status) => return status,
    };
    each(call, "touch", "touch", &operands, |path| call.node.files().append(path, b""))
}

pub(super) fn rm(call: &Invocation<'_>) -> i32 {
    let (flags, operands) = match options("rm", call, "rRf") {
        Ok(parsed) => parsed,
        Err(status) => return status,
    };
    let (recursive, force) = (flags.contains(['r', 'R']), flags.contains('f'));
    if force && operands.is_empty() {
        return 0;
    }
    let files = call.node.files();
    each(call, "rm", "remove", &operands, |path| match files.attributes(path)? {
        None if force => Ok(()),
        None => Err(io::ErrorKind::NotFound.into()),
        Some(found) if found.is_directory() && !recursive => Err(io::ErrorKind::IsADirectory.into()),
        Some(_) => files.remove_all(path),
    })
}

pub(super) fn cat(call: &Invocation<'_>) -> i32 {
    let mut status = 0;
    let inputs: &[String] = if call.arguments.is_empty() { &["-".to_owned()] } else { call.arguments };
    for operand in inputs {
        let content =
            if operand == "-" { Ok(call.streams.input.clone()) } else { call.node.files().read(&call.path(operand)) };
        match content.and_then(|content| call.streams.out.write(call.node, &content)) {
            Ok(()) => {}
            Err(error) => {
                call.complain(format!("cat: {operand}: {}", reason(&error)));
                status = 1;
            }
        }
    }
    status
}

pub(super) fn tail(call: &Invocation<'_>) -> i32 {
    let (mut bytes, mut count, mut path) = (false, 10, None);
    let mut arguments = call.arguments.iter();
    while let Some(argument) = arguments.next() {
        let (option, inline) = argument.split_at(argument.len().min(2));
        match option {
            "-c" | "-n" => {
                bytes = option == "-c";
                let text = if inline.is_empty() { arguments.next().map_or("", String::as_str) } else { inline };
                let Ok(number) = text.parse() else {
                    call.complain(format!("tail: invalid number of bytes or lines: '{text}'"));
                    return 1;
                };
                count = number;
            }
            _ if argument.len() > 1 && argument.starts_with('-') => {
                call.complain(format!("tail: unrecognized option '{argument}'"));
                return 1;
            }
            _ => path = Some(argument),
        }
    }
    let content = match path {
        Some(path) => call.node.files().read(&call.path(path)),
        None => Ok(call.streams.input.clone()),
    };
    let shown = content.and_then(|content| call.streams.out.write(call.node, last(&content, bytes, count)));
    match shown {
        Ok(()) => 0,
        Err(error) => {
            call.complain(format!("tail: cannot open '{}': {}", path.map_or("-", String::as_str), reason(&error)));
            1
        }
    }
}

/// The last bytes or lines.
fn last(content: &[u8], bytes: bool, count: usize) -> &[u8] {
    let start = if bytes {
        content.len().saturating_sub(count)
    } else {
        let text = content.strip_suffix(b"\n").unwrap_or(content);
        let breaks = text.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
        match count.checked_sub(1) {
            Some(skip) => breaks.map(|(at, _)| at + 1).nth(skip).unwrap_or(0),
            None => content.len(),
        }
    };
    &content[start..]
}

pub(super) fn ls(call: &Invocation<'_>) -> i32 {
    let (flags, mut operands) = match options("ls", call, "1aAl") {
        Ok(parsed) => parsed,
        Err(status) => return status,
    };
    if operands.is_empty() {
        operands.push(".");
    }
    let files = call.node.files();
    each(call, "ls", "access", &operands, |path| {
        let found = files.stat(path)?.ok_or(io::ErrorKind::NotFound)?;
        let names = if found.is_directory() { files.list(path)? } else { vec![base_name(path).to_owned()] };
        for name in names.iter().filter(|name| flags.contains(['a', 'A']) || !name.starts_with('.')) {
            call.say(name);
        }
        Ok(())
    })
}

pub(super) fn tee(call: &Invocation<'_>) -> i32 {
    let (flags, operands) = match options("tee", call, "a") {
        Ok(parsed) => parsed,
        Err(status) => return status,
    };
    let input = &call.streams.input;
    let files = call.node.files();
    let failed = call.streams.out.write(call.node, input).is_err();
    let append = flags.contains('a');
    i32::from(failed)
        | each(call, "tee", "open", &operands, |path| {
            if append { files.append(path, input) } else { files.write(path, input.clone(), 0o644) }
        })
}

pub(super) fn ln(call: &Invocation<'_>) -> i32 {
    let (flags, operands) = match options("ln", call, "sfn") {
        Ok(parsed) => parsed,
        Err(status) => return status,
    };
    let [target, name] = operands.as_slice() else {
        call.complain("ln: expecting a target and a link name");
        return 1;
    };
    let files = call.node.files();
    if !flags.contains('s') {
        // A copy in its place: nothing here tells two names of a file from two files.
        return each(call, "ln", "create hard link", &[name], |path| {
            let source = call.path(target);
            if files.attributes(path)?.is_some() {
                if !flags.contains('f') {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                files.remove(path)?;
            }
            copy(files, &source, path, false, true)
        });
    }
    each(call, "ln", "create symbolic link", &[name], |path| {
        if flags.contains('f') && files.attributes(path)?.is_some() {
            files.remove(path)?;
        }
        files.link(path, target)
    })
}

pub(super) fn chmod(call: &Invocation<'_>) -> i32 {
    let (flags, operands) = match options("chmod", call, "R") {
        Ok(parsed) => parsed,
        Err(status) => return status,
    };
    let Some((mode, paths)) = operands.split_first() else {
        call.complain("chmod: missing operand");
        return 1;
    };
    let symbolic = match *mode {
        "+x" | "a+x" | "u+x" => true,
        mode if u32::from_str_radix(mode, 8).is_ok_and(|mode| mode <= 0o7777) => false,
        mode => {
            call.complain(format!("chmod: invalid mode: '{mode}'"));
            return 1;
        }
    };
    let octal = u32::from_str_radix(mode, 8).unwrap_or(0);
    let bits = if *mode == "u+x" { 0o100 } else { 0o111 };
    let files = call.node.files();
    each(call, "chmod", "change mode of", paths, |path| {
        walk(files, path, flags.contains('R'), &mut |path| {
            let old = files.stat(path)?.ok_or(io::ErrorKind::NotFound)?;
            files.set_mode(path, if symbolic { old.mode | bits } else { octal })
        })
    })
}

pub(super) fn chown(call: &Invocation<'_>) -> i32 {
    let (flags, operands) = match options("chown", call, "R") {
        Ok(parsed) => parsed,
        Err(status) => return status,
    };
    let Some((owner, paths)) = operands.split_first() else {
        call.complain("chown: missing operand");
        return 1;
    };
    let files = call.node.files();
    let (user, group) = match account_commands::owner(files, owner) {
        Ok(owner) => owner,
        Err(problem) => {
            call.complain(format!("chown: {problem}"));
            return 1;
        }
    };
    each(call, "chown", "change owner of", paths, |path| {
        walk(files, path, flags.contains('R'), &mut |path| {
            let old = files.stat(path)?.ok_or(io::ErrorKind::NotFound)?;
            files.set_owner(path, user.unwrap_or(old.uid), group.unwrap_or(old.gid))
        })
    })
}

fn walk(files: &dyn Files, path: &str, recursive: bool, act: &mut dyn FnMut(&str) -> io::Result<()>) -> io::Result<()> {
    act(path)?;
    if recursive && files.attributes(path)?.is_some_and(|found| found.is_directory()) {
        for name in files.list(path)? {
            walk(files, &join(path, &name), true, act)?;
        }
    }
    Ok(())
}

pub(super) fn mv(call: &Invocation<'_>) -> i32 {
    let (_, operands) = match options("mv", call, "f") {
        Ok(parsed) => parsed,
        Err(status) => return status,
    };
    let files = call.node.files();
    into_place(call, "mv", &operands, &mut |from, to| files.rename(from, to))
}

pub(super) fn cp(call: &Invocation<'_>) -> i32 {
    let (flags, operands) = match options("cp", call, "aRrpfdv") {
        Ok(parsed) => parsed,
        Err(status) => return status,
    };
    let recursive = flags.contains(['a', 'R', 'r']);
    let keep = flags.contains(['a', 'p']);
    // `cp -a dir/. target` copies what the directory holds.
    if let [from, to] = operands.as_slice()
        && (from.ends_with("/.") || *from == ".")
        && recursive
    {
        let files = call.node.files();
        let (from, to) = (call.path(from), call.path(to));
        return each(call, "cp", "copy to", &[&to], |to| {
            files.make_directories(to)?;
            files
                .list(&from)?
                .iter()
                .try_for_each(|name| copy(files, &join(&from, name), &join(to, name), recursive, keep))
        });
    }
    let files = call.node.files();
    into_place(call, "cp", &operands, &mut |from, to| copy(files, from, to, recursive, keep))
}

/// The common shape of `cp` and `mv`: several sources into a directory, or one to a name.
fn into_place(
    call: &Invocation<'_>,
    name: &str,
    operands: &[&str],
    act: &mut dyn FnMut(&str, &str) -> io::Result<()>,
) -> i32 {
    let Some((to, sources)) = operands.split_last().filter(|(_, sources)| !sources.is_empty()) else {
        call.complain(format!("{name}: missing file operand"));
        return 1;
    };
    let files = call.node.files();
    let directory = call.path(to);
    let inside = files.stat(&directory).ok().flatten().is_some_and(|found| found.is_directory());
    if sources.len() > 1 && !inside {
        call.complain(format!("{name}: target '{to}' is not a directory"));
        return 1;
    }
    each(call, name, "stat", sources, |from| {
        files.attributes(from)?.ok_or(io::ErrorKind::NotFound)?;
        let place = if inside { join(&directory, base_name(from)) } else { directory.clone() };
        act(from, &place)
    })
}

fn copy(files: &dyn Files, from: &str, to: &str, recursive: bool, keep: bool) -> io::Result<()> {
    let found = files.attributes(from)?.ok_or(io::ErrorKind::NotFound)?;
    match &found.kind {
        Kind::Directory if !recursive => return Err(io::Error::other("is a directory (not copied without -r)")),
        Kind::Directory => {
            if !files.stat(to)?.is_some_and(|found| found.is_directory()) {
                files.make_directory(to, found.mode)?;
            }
            for name in files.list(from)? {
                copy(files, &join(from, &name), &join(to, &name), recursive, keep)?;
            }
        }
        Kind::Link(target) if recursive => {
            if files.attributes(to)?.is_some() {
                files.remove(to)?;
            }
            return files.link(to, target);
        }
        Kind::File | Kind::Link(_) => {
            let mode = files.stat(from)?.map_or(found.mode, |found| found.mode);
            files.write(to, files.read(from)?, mode)?;
        }
    }
    if keep {
        files.set_mode(to, found.mode)?;
        files.set_owner(to, found.uid, found.gid)?;
    }
    Ok(())
}
