//! The vocabulary in which the built-in messages are written down.
//!
//! One row per field holds everything that the wire format, the schema, strategic merge and server-side
//! apply need to know about it, so the four cannot disagree.

/// A message type: the fields of a JSON object and their numbers on the wire.
pub(crate) struct Message {
    /// Package and type, such as `apps.v1.Deployment`.
    pub(crate) name: &'static str,
    /// Written as a whole by server-side apply.
    pub(crate) atomic: bool,
    /// Ascending by number.
    pub(crate) fields: Vec<Field>,
}

/// Index of a message in the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Link(pub(super) usize);

#[derive(Clone, Copy)]
pub(crate) struct Field {
    pub(crate) number: u32,
    /// JSON name; empty for [`Shape::Inline`].
    pub(crate) name: &'static str,
    pub(crate) ty: Type,
    pub(crate) shape: Shape,
    /// A zero value on the wire is kept in JSON.
    pub(crate) kept: bool,
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

/// `x-kubernetes-list-type` of a list.
#[derive(Clone, Copy)]
pub(crate) enum FieldList {
    Atomic,
    Set,
    /// `map`, with the key fields separated by commas.
    Keyed(&'static str),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Once; the zero value means absence.
    One,
    /// Once; absence differs from the zero value.
    Pointer,
    /// A JSON array.
    Many,
    /// A JSON object with strings as keys.
    Map,
    /// A nested message on the wire, whose fields stand directly in the parent's JSON object.
    Inline,
}

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
    Of(Link),
}

impl Type {
    /// The type of that name in the table, unless it is a message.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "string" => Self::String,
            "bool" => Self::Bool,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "double" => Self::Double,
            "bytes" => Self::Bytes,
            "time" => Self::Time,
            "microTime" => Self::MicroTime,
            "quantity" => Self::Quantity,
            "intOrString" => Self::IntOrString,
            "fields" => Self::Fields,
            "json" => Self::Json,
            "strings" => Self::Strings,
            "schemaOrArray" => Self::SchemaOrArray,
            "schemaOrBool" => Self::SchemaOrBool,
            "schemaOrStrings" => Self::SchemaOrStrings,
            _ => return None,
        })
    }
}
