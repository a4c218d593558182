//! The vocabulary in which the built-in messages are written down.
//!
//! One row per field holds everything that the wire format, the schema, strategic merge and server-side
//! apply need to know about it, so the four cannot disagree.

/// A message type: the fields of a JSON object and their numbers on the wire.
pub(crate) struct Message {
    /// Type name, as in the published API.
    pub(crate) name: &'static str,
    /// Written as a whole by server-side apply.
    pub(crate) atomic: bool,
    /// Ascending by number.
    pub(crate) fields: &'static [Field],
}

/// One field of a message.
#[derive(Clone, Copy)]
pub(crate) struct Field {
    pub(crate) number: u32,
    /// JSON name; empty for [`Shape::Inline`].
    pub(crate) name: &'static str,
    pub(crate) ty: Type,
    pub(crate) shape: Shape,
    /// A zero value on the wire is kept in JSON.
    pub(crate) kept: bool,
    /// Validation demands the field.
    pub(crate) required: bool,
    pub(crate) list: FieldList,
    /// A map or message that server-side apply writes as a whole.
    pub(crate) atomic: bool,
    /// Strategic merge joins lists instead of replacing them; by this key, or as a set when it is empty.
    pub(crate) merge: Option<&'static str>,
    /// Strategic merge honours `$retainKeys`.
    pub(crate) retain_keys: bool,
    /// Value of an absent field.
    pub(crate) default: Option<&'static str>,
}

/// How lists are owned by server-side apply.
#[derive(Clone, Copy)]
pub(crate) enum FieldList {
    /// As one value.
    Atomic,
    /// Item by item, items being scalars.
    Set,
    /// Item by item, items told apart by these fields.
    Keyed(&'static [&'static str]),
}

/// How often a field's type occurs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Once; the zero value means absence.
    One,
    /// Once; presence is told apart from the zero value.
    Pointer,
    /// A JSON array.
    Many,
    /// A JSON object with strings as keys.
    Map,
    /// A nested message on the wire, whose fields stand directly in the parent's JSON object.
    Inline,
}

/// What a field holds.
#[derive(Clone, Copy)]
pub(crate) enum Type {
    String,
    Bool,
    Int32,
    Int64,
    Double,
    /// Base64 in JSON.
    Bytes,
    /// RFC 3339 in seconds.
    Time,
    /// RFC 3339 in microseconds.
    MicroTime,
    /// Text or number in JSON, text on the wire.
    Quantity,
    IntOrString,
    /// `FieldsV1`: JSON text on the wire.
    Fields,
    /// Any JSON, as text on the wire.
    Json,
    /// A list of strings wrapped in a message, so that a map can hold it.
    Strings,
    /// One schema or a list of them.
    SchemaOrArray,
    /// A schema or a boolean.
    SchemaOrBool,
    /// A schema or a list of strings.
    SchemaOrStrings,
    Of(&'static Message),
}

pub(super) const fn message(name: &'static str, fields: &'static [Field]) -> Message {
    Message { name, atomic: false, fields }
}

pub(super) const fn atomic_message(name: &'static str, fields: &'static [Field]) -> Message {
    Message { name, atomic: true, fields }
}

const fn field(number: u32, name: &'static str, ty: Type, shape: Shape) -> Field {
    Field {
        number,
        name,
        ty,
        shape,
        kept: false,
        required: false,
        list: FieldList::Atomic,
        atomic: false,
        merge: None,
        retain_keys: false,
        default: None,
    }
}

pub(super) const fn one(number: u32, name: &'static str, ty: Type) -> Field {
    field(number, name, ty, Shape::One)
}

pub(super) const fn pointer(number: u32, name: &'static str, ty: Type) -> Field {
    field(number, name, ty, Shape::Pointer)
}

pub(super) const fn many(number: u32, name: &'static str, ty: Type) -> Field {
    field(number, name, ty, Shape::Many)
}

pub(super) const fn map(number: u32, name: &'static str, ty: Type) -> Field {
    field(number, name, ty, Shape::Map)
}

pub(super) const fn inline(number: u32, ty: Type) -> Field {
    field(number, "", ty, Shape::Inline)
}

impl Field {
    pub(super) const fn kept(mut self) -> Self {
        self.kept = true;
        self
    }

    pub(super) const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    pub(super) const fn set(mut self) -> Self {
        self.list = FieldList::Set;
        self
    }

    pub(super) const fn keyed(mut self, keys: &'static [&'static str]) -> Self {
        self.list = FieldList::Keyed(keys);
        self
    }

    pub(super) const fn atomic(mut self) -> Self {
        self.atomic = true;
        self
    }

    pub(super) const fn merge(mut self, key: &'static str) -> Self {
        self.merge = Some(key);
        self
    }

    pub(super) const fn merge_set(mut self) -> Self {
        self.merge = Some("");
        self
    }

    pub(super) const fn retain_keys(mut self) -> Self {
        self.retain_keys = true;
        self
    }

    pub(super) const fn default(mut self, value: &'static str) -> Self {
        self.default = Some(value);
        self
    }
}
