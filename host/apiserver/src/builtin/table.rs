//! The table of built-in kinds: `table.txt`, made by `cargo xtask kinds`, read when first asked for.
//!
//! ```text
//! kind apps/v1 Deployment short=deploy in=all generation deployments namespaced status of=apps.v1.Deployment
//! body policy/v1 Eviction of=policy.v1.Eviction
//!
//! message apps.v1.DeploymentSpec
//! 1 replicas *int32
//! 2 selector *meta.v1.LabelSelector required
//! ```
//!
//! A field has its number on the wire, its JSON name (`-` where the fields of the inner message stand in this one's object), and
//! its type: `*` is told apart from its zero value, `[]` a list, `{}` a map from strings, `+` an inline message.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::message::{Field, FieldList, Link, Message, Shape, Type};

pub(super) static TEXT: &str = include_str!("table.txt");

/// What the server needs to know about a built-in kind, besides its fields.
#[derive(Default)]
pub struct BuiltinKind {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// API version, without the group.
    pub version: &'static str,
    /// Kind, such as `ConfigMap`.
    pub kind: &'static str,
    /// Resource name, such as `configmaps`.
    pub plural: &'static str,
    /// Singular resource name, such as `configmap`.
    pub singular: String,
    /// Names that kubectl expands, such as `cm`.
    pub short_names: Vec<&'static str>,
    /// Groups of resources that kubectl expands, such as `all`.
    pub categories: Vec<&'static str>,
    /// Lives in a namespace.
    pub namespaced: bool,
    /// Has the `status` subresource.
    pub has_status: bool,
    /// `metadata.generation` counts changes of the desired state.
    pub has_generation: bool,
    /// Objects are stored; others are answered at once and forgotten, such as reviews.
    pub stored: bool,
    pub(crate) message: Link,
}

#[derive(Default)]
pub(super) struct Table {
    pub(super) kinds: Vec<BuiltinKind>,
    /// Request bodies that are no kinds, such as an Eviction.
    pub(super) bodies: Vec<BuiltinKind>,
    /// Sorted by name.
    pub(super) messages: Vec<Message>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(TEXT));

impl Table {
    /// Reads a table. What it does not understand it leaves out: a test holds the whole of `table.txt` against what was read.
    pub(super) fn read(text: &'static str) -> Self {
        let names = text.lines().filter_map(|line| line.strip_prefix("message "));
        let links: HashMap<&str, Link> =
            names.enumerate().map(|(at, rest)| (rest.split(' ').next().unwrap_or_default(), Link(at))).collect();
        let mut table = Self::default();
        let mut fields = Vec::new();
        // From the last line on, so that fields are there when their message comes.
        for line in text.lines().rev() {
            let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
            match first {
                "kind" => table.kinds.extend(kind(rest, &links)),
                "body" => table.bodies.extend(kind(rest, &links)),
                "message" => {
                    fields.reverse();
                    fields.shrink_to_fit();
                    let (name, atomic) = rest.split_once(' ').unwrap_or((rest, ""));
                    let atomic = atomic == "atomic";
                    table.messages.push(Message { name, atomic, fields: std::mem::take(&mut fields) });
                }
                number => fields.extend(number.parse().ok().and_then(|number| field(number, rest, &links))),
            }
        }
        table.kinds.reverse();
        table.messages.reverse();
        table
    }
}

fn kind(line: &'static str, links: &HashMap<&str, Link>) -> Option<BuiltinKind> {
    let mut words = line.split(' ');
    let (group, version) = words.next().map(|version| version.split_once('/').unwrap_or(("", version)))?;
    let name = words.next()?;
    let mut row =
        BuiltinKind { group, version, kind: name, singular: name.to_lowercase(), stored: true, ..Default::default() };
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("short", names) => row.short_names = names.split(',').collect(),
            ("in", names) => row.categories = names.split(',').collect(),
            ("of", message) => row.message = *links.get(message)?,
            ("generation", _) => row.has_generation = true,
            ("namespaced", _) => row.namespaced = true,
            ("cluster", _) => row.namespaced = false,
            ("status", _) => row.has_status = true,
            ("answered", _) => row.stored = false,
            (plural, _) => row.plural = plural,
        }
    }
    Some(row)
}

fn field(number: u32, line: &'static str, links: &HashMap<&str, Link>) -> Option<Field> {
    let mut words = line.split(' ');
    let (name, ty) = (words.next()?, words.next()?);
    let (shape, ty) = [("*", Shape::Pointer), ("[]", Shape::Many), ("{}", Shape::Map), ("+", Shape::Inline)]
        .into_iter()
        .find_map(|(mark, shape)| Some((shape, ty.strip_prefix(mark)?)))
        .unwrap_or((Shape::One, ty));
    let ty = match Type::named(ty) {
        Some(own) => own,
        None => Type::Of(*links.get(ty)?),
    };
    let mut field = Field {
        number,
        name: if shape == Shape::Inline { "" } else { name },
        ty,
        shape,
        kept: false,
        required: false,
        list: FieldList::Atomic,
        atomic: false,
        merge: None,
        retain_keys: false,
        default: None,
    };
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("kept", _) => field.kept = true,
            ("required", _) => field.required = true,
            ("set", _) => field.list = FieldList::Set,
            ("keyed", keys) => field.list = FieldList::Keyed(keys),
            ("atomic", _) => field.atomic = true,
            ("merge", key) => field.merge = Some(key),
            ("retainKeys", _) => field.retain_keys = true,
            ("default", value) => field.default = Some(value),
            _ => return None,
        }
    }
    Some(field)
}

/// Stands for a name that is not in the table; a test makes sure that there is none.
static NOTHING: Message = Message { name: "", atomic: false, fields: Vec::new() };

impl Link {
    pub(crate) fn follow(self) -> &'static Message {
        TABLE.messages.get(self.0).unwrap_or(&NOTHING)
    }
}

/// Every built-in kind.
pub fn kinds() -> &'static [BuiltinKind] {
    &TABLE.kinds
}

/// The message of that name, such as `meta.v1.ObjectMeta`.
pub(crate) fn message(name: &str) -> &'static Message {
    let found = TABLE.messages.binary_search_by(|message| message.name.cmp(name));
    found.map_or(&NOTHING, |at| &TABLE.messages[at])
}

/// The message of a request body: a built-in kind, or one that only subresources and options use.
pub(crate) fn message_of(api_version: &str, kind: &str) -> Option<&'static Message> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let fits =
        |row: &&BuiltinKind| row.kind == kind && (row.version == "*" || row.version == version && row.group == group);
    TABLE.kinds.iter().chain(&TABLE.bodies).find(fits).map(|row| row.message.follow())
}
