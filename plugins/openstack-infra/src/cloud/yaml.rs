//! `clouds.yaml` as JSON. Scalars stay the text that was written, because what they mean is decided by their place: a
//! password may look like a number.

use std::collections::BTreeMap;

use granit_parser::{Event, Parser, ScalarStyle, StrInput};
use serde_json::{Map, Value};

/// Levels of lists and mappings.
const DEEPEST: usize = 16;
/// Lists, mappings and scalars, counted again each time an alias repeats them.
const MOST_NODES: usize = 20_000;
/// A key whose mapping is taken over, where the mapping does not say otherwise.
const MERGE: &str = "<<";

/// The first document: every scalar a string, but for a plain `null`, `~` or nothing. The error never quotes values.
pub fn parse(text: &str) -> Result<Value, String> {
    let mut reader = Reader { events: Parser::new_from_str(text), anchors: BTreeMap::new(), nodes: 0 };
    loop {
        match reader.next()? {
            Event::StreamEnd => return Ok(Value::Null),
            Event::DocumentStart(..) => {
                let first = reader.next()?;
                return reader.node(first, 0);
            }
            _ => {}
        }
    }
}

struct Reader<'a> {
    events: Parser<'a, StrInput<'a>>,
    anchors: BTreeMap<usize, Value>,
    nodes: usize,
}

impl<'a> Reader<'a> {
    /// The next event that is no comment: those come where anything in the same build wants them.
    fn next(&mut self) -> Result<Event<'a>, String> {
        loop {
            match self.events.next() {
                Some(Ok((Event::Comment(..), _))) => {}
                Some(Ok((event, _))) => return Ok(event),
                Some(Err(error)) => {
                    let at = error.marker();
                    return Err(format!("line {}, column {} is not YAML", at.line(), at.col() + 1));
                }
                None => return Ok(Event::StreamEnd),
            }
        }
    }

    fn node(&mut self, event: Event<'a>, depth: usize) -> Result<Value, String> {
        self.count(1)?;
        if depth > DEEPEST {
            return Err(format!("lists and mappings are nested deeper than {DEEPEST}"));
        }
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, _) => {
                let nothing = style == ScalarStyle::Plain && matches!(text.as_ref(), "" | "~" | "null");
                (if nothing { Value::Null } else { Value::String(text.into_owned()) }, anchor)
            }
            Event::SequenceStart(_, anchor, _) => (self.list(depth)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.map(depth)?, anchor),
            Event::Alias(anchor) => {
                let node = self.anchors.get(&anchor).cloned().ok_or("an alias names what it is part of")?;
                self.count(count(&node))?;
                return Ok(node);
            }
            _ => return Err("the document ends too early".to_owned()),
        };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Value, String> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(Value::Array(items)),
                event => items.push(self.node(event, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, String> {
        let mut fields = Map::new();
        let mut merged = Vec::new();
        loop {
            let key = match self.next()? {
                Event::MappingEnd => break,
                Event::Scalar(text, ..) => text.into_owned(),
                _ => return Err("a key is not a word".to_owned()),
            };
            let event = self.next()?;
            let value = self.node(event, depth + 1)?;
            match value {
                Value::Array(maps) if key == MERGE => merged.extend(maps),
                map if key == MERGE => merged.push(map),
                value => {
                    if fields.insert(key.clone(), value).is_some() {
                        return Err(format!("the key {key:?} occurs twice in one mapping"));
                    }
                }
            }
        }
        for map in merged {
            let Value::Object(map) = map else { return Err("only mappings can be merged".to_owned()) };
            for (key, value) in map {
                fields.entry(key).or_insert(value);
            }
        }
        Ok(Value::Object(fields))
    }

    fn count(&mut self, nodes: usize) -> Result<(), String> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MOST_NODES { Err(format!("there are more than {MOST_NODES} nodes")) } else { Ok(()) }
    }
}

fn count(node: &Value) -> usize {
    match node {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(|value| 1 + count(value)).sum::<usize>(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn scalars_are_text_as_it_was_written() {
        let text = "# comment\na: 0600\nb: 'null'\nc: ~\nd:\ne: [1, \"x\"]\nf: true\n";
        let value = json!({"a": "0600", "b": "null", "c": null, "d": null, "e": ["1", "x"], "f": "true"});
        assert_eq!(parse(text).unwrap(), value);
        assert_eq!(parse("# nothing\n").unwrap(), Value::Null);
    }

    #[test]
    fn aliases_repeat_and_merge_within_limits() {
        let merged = parse("a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3\n").unwrap();
        assert_eq!(merged["b"], json!({"x": "1", "y": "3"}));
        let bomb = (1..20).fold("- &a0 [x, x]\n".to_owned(), |text, n| {
            let before = n - 1;
            format!("{text}- &a{n} [*a{before}, *a{before}, *a{before}]\n")
        });
        assert!(parse(&bomb).unwrap_err().contains("more than 20000"));
        assert!(parse(&format!("{}{}", "[".repeat(100), "]".repeat(100))).unwrap_err().contains("deeper"));
    }

    #[test]
    fn what_is_broken_is_refused_without_quoting_it() {
        for bad in ["a: hunter2\na: hunter2", "? [a]\n: hunter2", "a: *hunter2", "a: {<<: hunter2}", "a: 'hunter2"] {
            assert!(!parse(bad).unwrap_err().contains("hunter2"), "{bad}");
        }
    }
}
