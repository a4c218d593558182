//! JSON out of the fuzzer's bytes: new values, and changes of a given one.

use arbitrary::{Result, Unstructured};
use serde_json::{Map, Value};

pub fn one_of<'a, T: ?Sized>(u: &mut Unstructured<'_>, of: &[&'a T]) -> Result<&'a T> {
    u.choose(of).copied()
}

/// A short text: one of `words` most of the time.
pub fn text(u: &mut Unstructured<'_>, words: &[&str]) -> Result<String> {
    if words.is_empty() || u.ratio(1, 8)? {
        return Ok(u.arbitrary::<&str>()?.chars().take(24).collect());
    }
    Ok(one_of(u, words)?.to_owned())
}

/// A list of at most `most`.
pub fn list<T>(
    u: &mut Unstructured<'_>,
    most: usize,
    mut item: impl FnMut(&mut Unstructured<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let count = u.int_in_range(0..=most)?;
    (0..count).map(|_| item(u)).collect()
}

/// A value whose keys and texts are mostly `words`.
pub fn value(u: &mut Unstructured<'_>, words: &[&str], depth: usize) -> Result<Value> {
    Ok(match u.int_in_range(0..=if depth == 0 { 4 } else { 7 })? {
        0 => Value::Null,
        1 => Value::Bool(u.arbitrary()?),
        2 => Value::from(u.int_in_range(-2_i64..=300)?),
        3 | 4 => Value::String(text(u, words)?),
        5 => list(u, 3, |u| value(u, words, depth - 1))?.into(),
        _ => Value::Object(object(u, words, depth)?),
    })
}

/// As [`value`], but always an object.
pub fn object(u: &mut Unstructured<'_>, words: &[&str], depth: usize) -> Result<Map<String, Value>> {
    let entry = |u: &mut Unstructured<'_>| Ok((text(u, words)?, value(u, words, depth.saturating_sub(1))?));
    Ok(list(u, 4, entry)?.into_iter().collect())
}

/// Changes one place within `value`: another value, none, or one more.
pub fn mutate(u: &mut Unstructured<'_>, value: &mut Value, words: &[&str]) -> Result<()> {
    let mut at = value;
    loop {
        let children = at.as_object().map_or(0, Map::len) + at.as_array().map_or(0, Vec::len);
        if children == 0 || u.ratio(1, 5)? {
            break;
        }
        let index = u.choose_index(children)?;
        at = match at {
            Value::Object(map) => map.values_mut().nth(index).unwrap(),
            Value::Array(list) => &mut list[index],
            _ => unreachable!("only these have children"),
        };
    }
    match at {
        Value::Object(map) if u.arbitrary()? => {
            let key = text(u, words)?;
            if u.arbitrary()? {
                map.remove(&key);
            } else {
                map.insert(key, self::value(u, words, 2)?);
            }
        }
        Value::Array(list) if u.arbitrary()? => match list.first().cloned() {
            Some(first) if u.arbitrary()? => list.push(first),
            _ => {
                list.pop();
            }
        },
        Value::String(text) if u.arbitrary()? => {
            let at = (0..=text.len())
                .filter(|at| text.is_char_boundary(*at))
                .nth(u.choose_index(text.len() + 1)?.min(text.chars().count()));
            text.insert_str(at.unwrap_or(0), &self::text(u, words)?);
        }
        at => *at = self::value(u, words, 2)?,
    }
    Ok(())
}
