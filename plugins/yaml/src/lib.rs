//! YAML for components, where every kilobyte counts: documents are read as small trees with limits, and JSON values are written
//! as YAML that every reader takes for the same.
//!
//! ```
//! use capwasm_yaml::{Yaml, read, write};
//! let Ok(Some(Yaml::Map(fields))) = read::only("mode: 0600") else { panic!("a mapping") };
//! assert_eq!(fields[0].1.text(), Some("0600"), "as it was written");
//! assert_eq!(write::document(&serde_json::json!({"mode": "0600"})), "mode: '0600'\n");
//! ```

pub mod read;
pub mod write;

pub use read::Yaml;
