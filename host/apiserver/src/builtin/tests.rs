#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::HashSet;

use super::message::{Message, Shape, Type};
use super::table::{TEXT, Table};
use super::{kinds, message};

#[test]
fn every_message_numbers_and_names_its_fields_once() {
    fn walk(message: &'static Message, seen: &mut HashSet<&'static str>) {
        assert_ne!(message.name, "", "a link to nowhere");
        if !seen.insert(message.name) {
            return;
        }
        let mut names = HashSet::new();
        let mut last = 0;
        for field in &message.fields {
            assert!(field.number > last, "{}: number {} after {last}", message.name, field.number);
            last = field.number;
            assert!(field.shape == Shape::Inline || names.insert(field.name), "{}: {} twice", message.name, field.name);
            if let Type::Of(inner) = field.ty {
                walk(inner.follow(), seen);
            }
        }
    }
    let mut seen = HashSet::new();
    for row in kinds() {
        walk(row.message.follow(), &mut seen);
    }
    assert!(seen.len() > 250, "{} messages", seen.len());
    for name in ["meta.v1.ObjectMeta", "meta.v1.DeleteOptions", "apiextensions.v1.JSONSchemaProps"] {
        assert_eq!(message(name).name, name);
    }
}

#[test]
fn every_line_of_the_table_is_understood() {
    let table = Table::read(TEXT);
    let starting = |word: &str| TEXT.lines().filter(|line| line.starts_with(word)).count();
    let fields = TEXT.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).count();
    assert_eq!(table.kinds.len(), starting("kind "));
    assert_eq!(table.bodies.len(), starting("body "));
    assert_eq!(table.messages.len(), starting("message "));
    assert_eq!(table.messages.iter().map(|message| message.fields.len()).sum::<usize>(), fields);
    assert!(table.messages.is_sorted_by_key(|message| message.name));
    for kind in table.kinds {
        assert!(!kind.plural.is_empty() && !kind.plural.contains('='), "{} {}", kind.kind, kind.plural);
    }
}
