//! Templates of files (`contentFormat: Template`): what they are given, and how they are filled in.

use capwasm_template::{Language, Missing};
use serde_json::{Value, json};

/// A MiB is more than any machine's data may have.
const LANGUAGE: Language = Language { functions: &[], missing: Missing::NoValue, largest: 1 << 20 };

/// The values that templates of files see.
#[derive(Clone, Debug)]
pub struct Data(Value);

impl Data {
    /// `.controlPlane.version` as it is (`v1.36.0`); no `.controlPlane` at all where the version is not known.
    pub fn new(control_plane_version: &str) -> Data {
        Data(match control_plane_version {
            "" => json!({}),
            version => json!({"controlPlane": {"version": version}}),
        })
    }
}

/// The text that a template makes, or what is wrong with it.
pub fn render(template: &str, data: &Data) -> Result<String, String> {
    LANGUAGE.render(template, &data.0).map_err(|error| error.why)
}
