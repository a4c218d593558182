//! Kubernetes structural schemas: parsed once, shared, walked without copying the object.
//!
//! A [`Schema`] is one node; children hang on `Arc`s, so that the built-in kinds share their common parts and
//! thousands of servers in one process share one set of CRD schemas (see [`Schema::shared`]). The passes over an
//! object are plain functions: [`prune`], then [`default`], then [`validate`].
//!
//! - **prune** drops what the schema does not declare and names it, for `fieldValidation`.
//! - **default** fills absent fields, and nulls where null is not allowed.
//! - **validate** checks types, limits, formats, list invariants and CEL rules, in the words that kubectl users know.
//!   On updates it ratchets: a value that did not change is not held against the writer.

mod cel;
mod checks;
mod cost;
mod defaulting;
mod error;
mod format;
mod kinds;
mod lists;
mod needs;
mod nulls;
mod openapi;
mod parse;
mod path;
mod pattern;
mod pruning;
mod rule;
mod structural;
mod validation;

use std::sync::Arc;

use serde_json::Value;

/// Bytes that the evaluation of one CEL rule may hold, besides the values that it looks at.
pub(crate) const CEL_HELD: usize = cost::HELD as usize;

pub use defaulting::default;
pub use error::{FieldError, SchemaError};
pub(crate) use format::duration_text_is_valid;
pub(crate) use kinds::object_meta;
pub use kinds::of_kind;
pub(crate) use nulls::drop_nulls;
pub use pruning::prune;
pub use validation::validate;

/// One node of a structural schema.
pub struct Schema {
    pub(crate) ty: Type,
    pub(crate) nullable: bool,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub(crate) preserve: bool,
    /// `x-kubernetes-embedded-resource`, or a root: `apiVersion`, `kind` and `metadata` are implied.
    pub(crate) resource: bool,
    /// Belongs to a built-in kind: nulls count as absent, as typed decoding has it.
    pub(crate) typed: bool,
    /// Whether a node at or below has a default.
    pub(crate) has_defaults: bool,
    /// Whether a node at or below has CEL rules.
    pub(crate) has_rules: bool,
    pub(crate) list: ListType,
    /// Server-side apply owns the object as a whole.
    pub(crate) atomic: bool,
    /// Sorted by name.
    pub(crate) properties: Box<[(Box<str>, Arc<Schema>)]>,
    /// Schema of the values under names that `properties` lacks.
    pub(crate) additional: Option<Arc<Schema>>,
    pub(crate) items: Option<Arc<Schema>>,
    pub(crate) required: Box<[Box<str>]>,
    pub(crate) default: Option<Box<Value>>,
    pub(crate) format: Option<Box<str>>,
    pub(crate) checks: Option<Box<checks::Checks>>,
    pub(crate) rules: Box<[rule::Rule]>,
    pub(crate) merge: Option<Merge>,
    pub(crate) description: Option<Box<str>>,
}

/// JSON types and the two unions that Kubernetes knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    /// `x-kubernetes-int-or-string`.
    IntOrString,
    /// A quantity of a built-in kind: text or number.
    Quantity,
    Any,
}

/// `x-kubernetes-list-type`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListType {
    Atomic,
    Set,
    Map(Box<[Box<str>]>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Merge {
    /// Lists are joined by this key, or as a set when it is empty; `None` replaces them.
    pub(crate) key: Option<&'static str>,
    pub(crate) retain_keys: bool,
}

impl Schema {
    /// Parses the `openAPIV3Schema` of a CRD version. Errors name every breach of the rules for structural schemas,
    /// every pattern and every CEL rule that does not compile.
    pub fn parse(openapi_v3_schema: &Value) -> Result<Schema, SchemaError> {
        parse::parse(openapi_v3_schema)
    }

    /// As [`Schema::parse`], but one instance serves all callers in the process that bring the same schema.
    pub fn shared(openapi_v3_schema: &Value) -> Result<Arc<Schema>, SchemaError> {
        parse::shared(openapi_v3_schema)
    }

    /// The schema as OpenAPI v3 JSON with the `x-kubernetes-*` extensions.
    pub fn to_openapi(&self) -> Value {
        openapi::to_openapi(self)
    }

    /// Schema of a declared property; `None` for values of a map, too.
    pub fn property(&self, name: &str) -> Option<&Schema> {
        self.properties
            .binary_search_by(|(key, _)| key.as_ref().cmp(name))
            .ok()
            .map(|at| self.properties[at].1.as_ref())
    }

    /// Schema of the value under `name`: of the property, else of the map's values.
    pub(crate) fn child(&self, name: &str) -> Option<&Schema> {
        self.property(name).or(self.additional.as_deref())
    }

    pub(crate) fn of(ty: Type) -> Schema {
        Schema {
            ty,
            nullable: false,
            preserve: false,
            resource: false,
            typed: false,
            has_defaults: false,
            has_rules: false,
            list: ListType::Atomic,
            atomic: false,
            properties: Box::default(),
            additional: None,
            items: None,
            required: Box::default(),
            default: None,
            format: None,
            checks: None,
            rules: Box::default(),
            merge: None,
            description: None,
        }
    }

    /// Sets what a node says about its subtree; must be called when its children are complete.
    pub(crate) fn seal(mut self) -> Schema {
        let mut defaults = self.default.is_some();
        let mut rules = !self.rules.is_empty();
        for child in self.properties.iter().map(|(_, child)| child).chain(&self.items).chain(&self.additional) {
            defaults |= child.has_defaults;
            rules |= child.has_rules;
        }
        self.has_defaults = defaults;
        self.has_rules = rules;
        self
    }
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schema")
            .field("type", &self.ty)
            .field("properties", &self.properties.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
