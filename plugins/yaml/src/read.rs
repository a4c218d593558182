//! A YAML document as a small tree, with scalars as they were written.
//!
//! Built from the events of a parser, because the type of a scalar is decided by its place, not by its looks: a mode is
//! `0600`, and a password may be a number. Errors say where, and never quote a document that may be full of keys.

use std::collections::BTreeMap;

use granit_parser::{Event, Parser, ScalarStyle, Tag};

/// Levels of lists and mappings.
const DEEPEST: usize = 40;
/// Lists, mappings and scalars, counted again each time an alias repeats them.
const MOST_NODES: usize = 20_000;
/// A key whose mapping is taken over, where the mapping does not say otherwise.
const MERGE: &str = "<<";

/// A node of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Yaml {
    /// A scalar.
    Scalar {
        /// The text, after escape processing.
        text: String,
        /// Whether it might mean null, a number or a truth: neither quotes, nor a block, nor `!!str` say that it is text.
        plain: bool,
        /// Whether it is tagged `!!binary`.
        binary: bool,
    },
    /// A sequence.
    List(Vec<Yaml>),
    /// A mapping with distinct keys, in order.
    Map(Vec<(String, Yaml)>),
}

impl Yaml {
    /// Whether it is null: a plain scalar that is empty, `~` or `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Yaml::Scalar { text, plain: true, .. } if matches!(text.as_str(), "" | "~" | "null"))
    }

    /// A scalar as it was written.
    pub fn text(&self) -> Option<&str> {
        match self {
            Yaml::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    fn nodes(&self) -> usize {
        match self {
            Yaml::Scalar { .. } => 1,
            Yaml::List(items) => 1 + items.iter().map(Yaml::nodes).sum::<usize>(),
            Yaml::Map(fields) => 1 + fields.iter().map(|(_, value)| 1 + value.nodes()).sum::<usize>(),
        }
    }
}

/// The first document, with its merge keys resolved; none when there is nothing but comments. What comes after it is not read.
///
/// # Errors
/// Where and why it is refused.
pub fn first(text: &str) -> Result<Option<Yaml>, String> {
    let mut reader = Reader::new(text, true);
    loop {
        match reader.next()? {
            Event::StreamEnd => return Ok(None),
            Event::DocumentStart(..) => {
                let first = reader.next()?;
                return reader.node(first, 0).map(Some);
            }
            _ => {}
        }
    }
}

/// The only document; none when there is nothing but comments. Merge keys are refused: not every reader knows them.
///
/// # Errors
/// Where and why it is refused.
pub fn only(text: &str) -> Result<Option<Yaml>, String> {
    Reader::new(text, false).only()
}

/// The only document, with its merge keys resolved; none when there is nothing but comments.
///
/// # Errors
/// Where and why it is refused.
pub fn only_merged(text: &str) -> Result<Option<Yaml>, String> {
    Reader::new(text, true).only()
}

struct Reader<'a> {
    events: Parser<'a, granit_parser::StrInput<'a>>,
    anchors: BTreeMap<usize, Yaml>,
    nodes: usize,
    /// Whether merge keys are resolved.
    merges: bool,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, merges: bool) -> Reader<'a> {
        Reader { events: Parser::new_from_str(text), anchors: BTreeMap::new(), nodes: 0, merges }
    }

    fn only(mut self) -> Result<Option<Yaml>, String> {
        let mut root = None;
        loop {
            match self.next()? {
                Event::StreamEnd => return Ok(root),
                Event::StreamStart | Event::DocumentEnd => {}
                Event::DocumentStart(..) if root.is_none() => {
                    let first = self.next()?;
                    root = Some(self.node(first, 0)?);
                }
                _ => return Err("there is more than one document".to_owned()),
            }
        }
    }

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

    fn node(&mut self, event: Event<'a>, depth: usize) -> Result<Yaml, String> {
        self.count(1)?;
        if depth > DEEPEST {
            return Err(format!("lists and mappings are nested deeper than {DEEPEST}"));
        }
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let (binary, said) = kind(tag.as_deref())?;
                (Yaml::Scalar { text: text.into_owned(), plain: style == ScalarStyle::Plain && !said, binary }, anchor)
            }
            Event::SequenceStart(_, anchor, _) => (self.list(depth)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.map(depth)?, anchor),
            Event::Alias(anchor) => {
                let node = self.anchors.get(&anchor).cloned().ok_or("an alias names what it is part of")?;
                self.count(node.nodes())?;
                return Ok(node);
            }
            _ => return Err("the document ends too early".to_owned()),
        };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Yaml, String> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(Yaml::List(items)),
                event => items.push(self.node(event, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Yaml, String> {
        let mut fields: Vec<(String, Yaml)> = Vec::new();
        let mut merged = Vec::new();
        loop {
            let key = match self.next()? {
                Event::MappingEnd => break,
                Event::Scalar(text, ..) => text.into_owned(),
                _ => return Err("a key is not a word".to_owned()),
            };
            if key == MERGE && !self.merges {
                return Err("merge keys are not supported".to_owned());
            }
            if fields.iter().any(|(known, _)| *known == key) {
                return Err(format!("the key {key:?} occurs twice in one mapping"));
            }
            let event = self.next()?;
            match self.node(event, depth + 1)? {
                Yaml::List(maps) if key == MERGE => merged.extend(maps),
                map if key == MERGE => merged.push(map),
                value => fields.push((key, value)),
            }
        }
        for map in merged {
            let Yaml::Map(map) = map else { return Err("only mappings can be merged".to_owned()) };
            for (key, value) in map {
                if fields.iter().all(|(known, _)| *known != key) {
                    fields.push((key, value));
                }
            }
        }
        Ok(Yaml::Map(fields))
    }

    fn count(&mut self, nodes: usize) -> Result<(), String> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MOST_NODES { Err(format!("there are more than {MOST_NODES} nodes")) } else { Ok(()) }
    }
}

/// Whether a tag says that the text is binary, and whether it says that it is text. Other core tags change nothing here; a tag that
/// is not known might.
fn kind(tag: Option<&Tag>) -> Result<(bool, bool), String> {
    let Some(tag) = tag else { return Ok((false, false)) };
    match tag.suffix_in_namespace("tag:yaml.org,2002:").as_deref() {
        Some("binary") => Ok((true, false)),
        suffix if tag.is_yaml_core_schema() => Ok((false, suffix == Some("str"))),
        _ => Err("a tag is not known".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn text(text: &str) -> Yaml {
        Yaml::Scalar { text: text.to_owned(), plain: true, binary: false }
    }

    #[test]
    fn scalars_stay_as_they_were_written() {
        let Some(Yaml::Map(fields)) = only("a: 0600\nb: 'null'\nc: ~\nd:\n").unwrap() else { panic!("a mapping") };
        assert_eq!(fields[0].1, text("0600"));
        let nulls: Vec<bool> = fields.iter().map(|(_, value)| value.is_null()).collect();
        assert_eq!(nulls, [false, false, true, true]);
        let tagged = only("!!str null").unwrap();
        assert_eq!(tagged.map(|value| value.is_null()), Some(false));
        assert_eq!(only("# nothing\n").unwrap(), None);
    }

    #[test]
    fn aliases_repeat_what_they_name_within_limits() {
        let repeated = Yaml::List(vec![text("x"), text("x")]);
        assert_eq!(only("[&a x, *a]").unwrap(), Some(repeated));
        let bomb = (1..20).fold("- &a0 [x, x]\n".to_owned(), |text, n| {
            let before = n - 1;
            format!("{text}- &a{n} [*a{before}, *a{before}, *a{before}]\n")
        });
        assert!(only(&bomb).unwrap_err().contains("more than 20000"));
        assert!(only(&format!("{}{}", "[".repeat(100), "]".repeat(100))).unwrap_err().contains("deeper"));
    }

    #[test]
    fn merge_keys_take_over_what_the_mapping_does_not_say() {
        let merged = first("a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3\nc: {<<: [*a, {z: 4}]}\n--- *nothing").unwrap();
        let a = Yaml::Map(vec![("x".to_owned(), text("1")), ("y".to_owned(), text("2"))]);
        let b = Yaml::Map(vec![("y".to_owned(), text("3")), ("x".to_owned(), text("1"))]);
        let c = Yaml::Map(
            ["x", "y", "z"]
                .into_iter()
                .zip(["1", "2", "4"])
                .map(|(key, value)| (key.to_owned(), text(value)))
                .collect(),
        );
        let whole = [("a", a), ("b", b), ("c", c)].map(|(key, value)| (key.to_owned(), value));
        assert_eq!(merged, Some(Yaml::Map(whole.into())));
        assert_eq!(only_merged("{a: &a {x: 1}, b: {<<: *a}}"), only("{a: {x: 1}, b: {x: 1}}"));
        assert!(only_merged("--- {<<: {x: 1}}\n--- b").is_err());
        assert!(first("a: {<<: hunter2}").is_err());
    }

    #[test]
    fn what_is_broken_is_refused_without_quoting_it() {
        for bad in ["a: hunter2\na: hunter2", "? [a]\n: hunter2", "a: *hunter2", "a: {<<: hunter2}", "a: 'hunter2"] {
            for refused in [first(bad), only(bad)] {
                assert!(!refused.unwrap_err().contains("hunter2"), "{bad}");
            }
        }
    }

    #[test]
    fn what_could_be_misunderstood_is_refused() {
        for bad in ["a: 1\na: 2", "a: &x {<<: 1}", "--- a\n--- b", "? [a]\n: b", "a: !thing b", "a: *b", "- &a [*a]"] {
            assert!(only(bad).is_err(), "{bad}");
        }
    }
}
