//! Container Linux Config, as Flatcar's transpiler reads it, made into Ignition 2.3.0.
//!
//! Its sections `ignition`, `storage`, `systemd`, `networkd` and `passwd` are Ignition's own with other spellings. The
//! sections that stand for services (`etcd`, `flannel`, `docker`, `update`, `locksmith`) would be made into units and files;
//! these are refused, and so are `local` files, because there is no place to take them from. What is unknown or doubtful is
//! a warning, and in strict mode an error.

mod storage;
#[cfg(test)]
mod tests;
mod yaml;

use serde_json::{Map, Value, json};

/// One field: how it is spelled, how Ignition spells it, and what it holds.
pub(super) struct Field(&'static str, &'static str, Shape);

pub(super) enum Shape {
    Text,
    Flag,
    Number,
    Texts,
    Object(&'static [Field]),
    Objects(&'static [Field]),
    /// Whatever the function makes of it.
    Special(fn(&Value, &str, &mut Report) -> Option<Value>),
}

#[derive(Debug, Default)]
pub(super) struct Report {
    warnings: Vec<String>,
    errors: Vec<String>,
}

impl Report {
    pub(super) fn warn(&mut self, at: &str, what: &str) {
        self.warnings.push(format!("{at}: {what}"));
    }

    pub(super) fn fail(&mut self, at: &str, what: &str) {
        self.errors.push(format!("{at}: {what}"));
    }
}

const VERIFICATION: &[Field] = &[Field("hash", "hash", Shape::Special(hash))];
const SOURCE: &[Field] =
    &[Field("source", "source", Shape::Text), Field("verification", "verification", Shape::Object(VERIFICATION))];
const DROPINS: &[Field] = &[Field("name", "name", Shape::Text), Field("contents", "contents", Shape::Text)];

const ROOT: &[Field] = &[
    Field(
        "ignition",
        "ignition",
        Shape::Object(&[
            Field(
                "config",
                "config",
                Shape::Object(&[
                    Field("append", "append", Shape::Objects(SOURCE)),
                    Field("replace", "replace", Shape::Object(SOURCE)),
                ]),
            ),
            Field(
                "timeouts",
                "timeouts",
                Shape::Object(&[
                    Field("http_response_headers", "httpResponseHeaders", Shape::Number),
                    Field("http_total", "httpTotal", Shape::Number),
                ]),
            ),
            Field(
                "security",
                "security",
                Shape::Object(&[Field(
                    "tls",
                    "tls",
                    Shape::Object(&[Field(
                        "certificate_authorities",
                        "certificateAuthorities",
                        Shape::Objects(SOURCE),
                    )]),
                )]),
            ),
        ]),
    ),
    Field("storage", "storage", Shape::Object(storage::STORAGE)),
    Field(
        "systemd",
        "systemd",
        Shape::Object(&[Field(
            "units",
            "units",
            Shape::Objects(&[
                Field("name", "name", Shape::Text),
                Field("enable", "enable", Shape::Flag),
                Field("enabled", "enabled", Shape::Flag),
                Field("mask", "mask", Shape::Flag),
                Field("contents", "contents", Shape::Text),
                Field("dropins", "dropins", Shape::Objects(DROPINS)),
            ]),
        )]),
    ),
    Field(
        "networkd",
        "networkd",
        Shape::Object(&[Field(
            "units",
            "units",
            Shape::Objects(&[
                Field("name", "name", Shape::Text),
                Field("contents", "contents", Shape::Text),
                Field("dropins", "dropins", Shape::Objects(DROPINS)),
            ]),
        )]),
    ),
    Field(
        "passwd",
        "passwd",
        Shape::Object(&[
            Field(
                "users",
                "users",
                Shape::Objects(&[
                    Field("name", "name", Shape::Text),
                    Field("password_hash", "passwordHash", Shape::Text),
                    Field("ssh_authorized_keys", "sshAuthorizedKeys", Shape::Texts),
                    Field("uid", "uid", Shape::Number),
                    Field("gecos", "gecos", Shape::Text),
                    Field("home_dir", "homeDir", Shape::Text),
                    Field("no_create_home", "noCreateHome", Shape::Flag),
                    Field("primary_group", "primaryGroup", Shape::Text),
                    Field("groups", "groups", Shape::Texts),
                    Field("no_user_group", "noUserGroup", Shape::Flag),
                    Field("system", "system", Shape::Flag),
                    Field("no_log_init", "noLogInit", Shape::Flag),
                    Field("shell", "shell", Shape::Text),
                ]),
            ),
            Field(
                "groups",
                "groups",
                Shape::Objects(&[
                    Field("name", "name", Shape::Text),
                    Field("gid", "gid", Shape::Number),
                    Field("password_hash", "passwordHash", Shape::Text),
                    Field("system", "system", Shape::Flag),
                ]),
            ),
        ]),
    ),
    Field("etcd", "", Shape::Special(service)),
    Field("flannel", "", Shape::Special(service)),
    Field("docker", "", Shape::Special(service)),
    Field("update", "", Shape::Special(service)),
    Field("locksmith", "", Shape::Special(service)),
];

/// Ignition and warnings, or all that is wrong.
pub fn convert(text: &str, strict: bool) -> Result<(Value, Vec<String>), Vec<String>> {
    let read = yaml::values(text).map_err(|error| vec![format!("it is not YAML: {error}")])?;
    let mut report = Report::default();
    let made = match read {
        Value::Null => json!({}),
        Value::Object(map) => object(&map, "", ROOT, &mut report),
        _ => {
            report.fail("the document", "must be a map");
            Value::Null
        }
    };
    for unit in made.pointer("/systemd/units").and_then(Value::as_array).into_iter().flatten() {
        let enabled = ["enabled", "enable"].iter().any(|key| unit.get(key) == Some(&Value::Bool(true)));
        let contents = unit.get("contents").and_then(Value::as_str).unwrap_or_default();
        if enabled && !contents.is_empty() && !contents.lines().any(|line| line.trim() == "[Install]") {
            let name = unit.get("name").and_then(Value::as_str).unwrap_or_default();
            report.warn(&format!("unit {name}"), "is enabled, but has no section [Install], so that nothing starts it");
        }
    }
    if strict {
        report.errors.append(&mut report.warnings);
    }
    if report.errors.is_empty() { Ok((made, report.warnings)) } else { Err(report.errors) }
}

/// A map with the fields that are known; the others are warned about.
pub(super) fn object(map: &Map<String, Value>, at: &str, fields: &[Field], report: &mut Report) -> Value {
    let mut made = Map::new();
    for (key, value) in map {
        let at = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
        match fields.iter().find(|Field(name, ..)| name == key) {
            None => report.warn(&at, "is not known"),
            Some(_) if value.is_null() => {}
            Some(Field(_, name, shape)) => {
                if let Some(value) = shaped(value, &at, shape, report) {
                    made.insert((*name).to_owned(), value);
                }
            }
        }
    }
    Value::Object(made)
}

fn shaped(value: &Value, at: &str, shape: &Shape, report: &mut Report) -> Option<Value> {
    let made = match (shape, value) {
        (Shape::Special(make), value) => return make(value, at, report),
        (Shape::Text, Value::String(_)) | (Shape::Flag, Value::Bool(_)) => Some(value.clone()),
        // What looks like a number is a text all the same where a text is wanted.
        (Shape::Text, Value::Number(number)) => Some(json!(number.to_string())),
        (Shape::Text, Value::Bool(flag)) => Some(json!(flag.to_string())),
        (Shape::Number, Value::Number(number)) if number.is_i64() || number.is_u64() => Some(value.clone()),
        (Shape::Texts, Value::Array(items)) => {
            let items = items.iter().enumerate();
            items.map(|(n, item)| shaped(item, &format!("{at}[{n}]"), &Shape::Text, report)).collect()
        }
        (Shape::Object(fields), Value::Object(map)) => Some(object(map, at, fields, report)),
        (Shape::Objects(fields), Value::Array(items)) => {
            let items = items.iter().enumerate();
            items.map(|(n, item)| shaped(item, &format!("{at}[{n}]"), &Shape::Object(fields), report)).collect()
        }
        _ => None,
    };
    if made.is_none() {
        report.fail(
            at,
            match shape {
                Shape::Flag => "must be true or false",
                Shape::Number => "must be a whole number",
                Shape::Object(_) => "must be a map",
                Shape::Texts | Shape::Objects(_) => "must be a list",
                Shape::Text | Shape::Special(_) => "must be a text",
            },
        );
    }
    made
}

/// `{function: sha512, sum: …}` becomes `sha512-…`.
fn hash(value: &Value, at: &str, report: &mut Report) -> Option<Value> {
    let part = |key: &str| value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    match (part("function"), part("sum")) {
        (Some("sha512"), Some(sum)) if sum.len() == 128 && sum.bytes().all(|b| b.is_ascii_hexdigit()) => {
            Some(json!(format!("sha512-{sum}")))
        }
        _ => {
            report.fail(at, "must have the function sha512 and a sum of 128 hexadecimal digits");
            None
        }
    }
}

fn service(_: &Value, at: &str, report: &mut Report) -> Option<Value> {
    report.fail(at, "is not supported; write the units and files that you need");
    None
}
