//! `test` and `[`.

use super::Invocation;
use crate::files::Kind;

/// Exit code 0 when the expression holds, 1 when not, 2 when it cannot be understood.
pub(super) fn run(name: &str, call: &Invocation<'_>) -> i32 {
    let mut words: Vec<&str> = call.arguments.iter().map(String::as_str).collect();
    if name == "[" && words.pop() != Some("]") {
        call.complain("[: missing ]");
        return 2;
    }
    match evaluate(call, &words) {
        Ok(holds) => i32::from(!holds),
        Err(problem) => {
            call.complain(format!("{name}: {problem}"));
            2
        }
    }
}

fn evaluate(call: &Invocation<'_>, words: &[&str]) -> Result<bool, String> {
    if let Some(at) = words.iter().position(|word| *word == "-o") {
        return Ok(evaluate(call, &words[..at])? || evaluate(call, &words[at + 1..])?);
    }
    if let Some(at) = words.iter().position(|word| *word == "-a") {
        return Ok(evaluate(call, &words[..at])? && evaluate(call, &words[at + 1..])?);
    }
    match words {
        [] => Ok(false),
        ["!", rest @ ..] => Ok(!evaluate(call, rest)?),
        [word] => Ok(!word.is_empty()),
        [operator, operand] => unary(call, operator, operand),
        [left, operator, right] => binary(left, operator, right),
        _ => Err("too many arguments".to_owned()),
    }
}

fn unary(call: &Invocation<'_>, operator: &str, operand: &str) -> Result<bool, String> {
    let path = call.path(operand);
    let followed = || call.node.files().stat(&path).ok().flatten();
    Ok(match operator {
        "-z" => operand.is_empty(),
        "-n" => !operand.is_empty(),
        "-e" => followed().is_some(),
        "-f" => followed().is_some_and(|found| found.kind == Kind::File),
        "-d" => followed().is_some_and(|found| found.is_directory()),
        "-s" => followed().is_some_and(|found| found.size > 0),
        "-r" | "-w" => followed().is_some(),
        "-x" => followed().is_some_and(|found| found.mode & 0o111 != 0),
        "-L" | "-h" => {
            matches!(call.node.files().attributes(&path), Ok(Some(found)) if matches!(found.kind, Kind::Link(_)))
        }
        _ => return Err(format!("{operator}: unknown operator")),
    })
}

fn binary(left: &str, operator: &str, right: &str) -> Result<bool, String> {
    let number = |text: &str| text.trim().parse::<i64>().map_err(|_| format!("{text}: bad number"));
    Ok(match operator {
        "=" | "==" => left == right,
        "!=" => left != right,
        "-eq" => number(left)? == number(right)?,
        "-ne" => number(left)? != number(right)?,
        "-lt" => number(left)? < number(right)?,
        "-le" => number(left)? <= number(right)?,
        "-gt" => number(left)? > number(right)?,
        "-ge" => number(left)? >= number(right)?,
        _ => return Err(format!("{operator}: unknown operator")),
    })
}
