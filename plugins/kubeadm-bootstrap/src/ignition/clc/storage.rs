//! The section `storage` of a Container Linux Config.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use super::{Field, Report, Shape, VERIFICATION, object};

const FILE_MODE: i64 = 0o644;
const DIRECTORY_MODE: i64 = 0o755;
const MIB: u64 = 1 << 20;

pub(super) const STORAGE: &[Field] = &[
    Field(
        "disks",
        "disks",
        Shape::Objects(&[
            Field("device", "device", Shape::Text),
            Field("wipe_table", "wipeTable", Shape::Flag),
            Field(
                "partitions",
                "partitions",
                Shape::Objects(&[
                    Field("label", "label", Shape::Special(label)),
                    Field("number", "number", Shape::Number),
                    Field("size", "sizeMiB", Shape::Special(mebibytes)),
                    Field("start", "startMiB", Shape::Special(mebibytes)),
                    Field("type_guid", "typeGuid", Shape::Special(type_guid)),
                    Field("guid", "guid", Shape::Text),
                ]),
            ),
        ]),
    ),
    Field(
        "raid",
        "raid",
        Shape::Objects(&[
            Field("name", "name", Shape::Text),
            Field("level", "level", Shape::Text),
            Field("devices", "devices", Shape::Texts),
            Field("spares", "spares", Shape::Number),
            Field("options", "options", Shape::Texts),
        ]),
    ),
    Field(
        "filesystems",
        "filesystems",
        Shape::Objects(&[
            Field("name", "name", Shape::Text),
            Field("path", "path", Shape::Text),
            Field(
                "mount",
                "mount",
                Shape::Object(&[
                    Field("device", "device", Shape::Text),
                    Field("format", "format", Shape::Text),
                    Field("wipe_filesystem", "wipeFilesystem", Shape::Flag),
                    Field("label", "label", Shape::Text),
                    Field("uuid", "uuid", Shape::Text),
                    Field("options", "options", Shape::Texts),
                    Field(
                        "create",
                        "create",
                        Shape::Object(&[
                            Field("force", "force", Shape::Flag),
                            Field("options", "options", Shape::Texts),
                        ]),
                    ),
                ]),
            ),
        ]),
    ),
    Field("files", "files", Shape::Special(files)),
    Field("directories", "directories", Shape::Special(directories)),
    Field("links", "links", Shape::Special(links)),
];

const OWNER: &[Field] = &[Field("id", "id", Shape::Number), Field("name", "name", Shape::Text)];

const FILE: &[Field] = &[
    Field("filesystem", "filesystem", Shape::Text),
    Field("path", "path", Shape::Text),
    Field("user", "user", Shape::Object(OWNER)),
    Field("group", "group", Shape::Object(OWNER)),
    Field("mode", "mode", Shape::Number),
    Field("contents", "contents", Shape::Special(contents)),
    Field("overwrite", "overwrite", Shape::Flag),
    Field("append", "append", Shape::Flag),
];

const DIRECTORY: &[Field] = &[
    Field("filesystem", "filesystem", Shape::Text),
    Field("path", "path", Shape::Text),
    Field("user", "user", Shape::Object(OWNER)),
    Field("group", "group", Shape::Object(OWNER)),
    Field("mode", "mode", Shape::Number),
    Field("overwrite", "overwrite", Shape::Flag),
];

const LINK: &[Field] = &[
    Field("filesystem", "filesystem", Shape::Text),
    Field("path", "path", Shape::Text),
    Field("user", "user", Shape::Object(OWNER)),
    Field("group", "group", Shape::Object(OWNER)),
    Field("hard", "hard", Shape::Flag),
    Field("target", "target", Shape::Text),
    Field("overwrite", "overwrite", Shape::Flag),
];

fn files(value: &Value, at: &str, report: &mut Report) -> Option<Value> {
    nodes(value, at, FILE, report, |file, at, report| {
        if !file.contains_key("mode") {
            if file.get("append") != Some(&Value::Bool(true)) {
                report.warn(at, "has no mode, 0644 is taken");
            }
            file.insert("mode".into(), json!(FILE_MODE));
        }
        file.entry("contents").or_insert_with(|| json!({"source": "data:,"}));
    })
}

fn directories(value: &Value, at: &str, report: &mut Report) -> Option<Value> {
    nodes(value, at, DIRECTORY, report, |directory, at, report| {
        if !directory.contains_key("mode") {
            report.warn(at, "has no mode, 0755 is taken");
            directory.insert("mode".into(), json!(DIRECTORY_MODE));
        }
    })
}

fn links(value: &Value, at: &str, report: &mut Report) -> Option<Value> {
    nodes(value, at, LINK, report, |link, at, report| {
        if !link.contains_key("target") {
            report.fail(at, "needs a target");
        }
    })
}

/// Entries of a file system, completed one by one.
fn nodes(
    value: &Value,
    at: &str,
    fields: &[Field],
    report: &mut Report,
    complete: fn(&mut Map<String, Value>, &str, &mut Report),
) -> Option<Value> {
    let Value::Array(items) = value else {
        report.fail(at, "must be a list");
        return None;
    };
    let mut made = Vec::with_capacity(items.len());
    for (n, item) in items.iter().enumerate() {
        let at = format!("{at}[{n}]");
        let Value::Object(map) = item else {
            report.fail(&at, "must be a map");
            continue;
        };
        let Value::Object(mut node) = object(map, &at, fields, report) else { continue };
        if !node.get("path").and_then(Value::as_str).is_some_and(|path| path.starts_with('/')) {
            report.fail(&at, "needs an absolute path");
        }
        node.entry("filesystem").or_insert_with(|| json!("root"));
        complete(&mut node, &at, report);
        made.push(Value::Object(node));
    }
    Some(Value::Array(made))
}

/// `inline` becomes a data URL, `remote` a source of its own.
fn contents(value: &Value, at: &str, report: &mut Report) -> Option<Value> {
    const CONTENTS: &[Field] = &[
        Field("inline", "inline", Shape::Text),
        Field("local", "local", Shape::Text),
        Field(
            "remote",
            "remote",
            Shape::Object(&[
                Field("url", "source", Shape::Text),
                Field("compression", "compression", Shape::Text),
                Field("verification", "verification", Shape::Object(VERIFICATION)),
            ]),
        ),
    ];
    let Value::Object(map) = value else {
        report.fail(at, "must be a map");
        return None;
    };
    let made = object(map, at, CONTENTS, report);
    match (made.get("inline").and_then(Value::as_str), made.get("local"), made.get("remote")) {
        (Some(text), None, None) => Some(json!({"source": format!("data:;base64,{}", STANDARD.encode(text))})),
        (None, None, Some(remote)) => Some(remote.clone()),
        (None, None, None) => Some(json!({"source": "data:,"})),
        (None, Some(_), None) => {
            report.fail(at, "local is not supported; use inline or remote");
            None
        }
        _ => {
            report.fail(at, "only one of inline, local and remote can be");
            None
        }
    }
}

fn label(value: &Value, at: &str, report: &mut Report) -> Option<Value> {
    let Some(label) = value.as_str() else {
        report.fail(at, "must be a text");
        return None;
    };
    if label.contains(':') {
        report.warn(at, "has a colon, which the tool that makes partitions cannot write");
    }
    if label.chars().count() > 36 {
        report.fail(at, "is longer than 36 characters");
    }
    Some(json!(label))
}

/// `10GiB` as a number of MiB.
fn mebibytes(value: &Value, at: &str, report: &mut Report) -> Option<Value> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    };
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit: Option<u64> = match text[end..].trim() {
        "B" => Some(1),
        "K" | "KB" | "KiB" => Some(1 << 10),
        "M" | "MB" | "MiB" => Some(1 << 20),
        "G" | "GB" | "GiB" => Some(1 << 30),
        "T" | "TB" | "TiB" => Some(1 << 40),
        _ => None,
    };
    let bytes = unit.and_then(|unit| text[..end].parse::<u64>().ok()?.checked_mul(unit));
    match bytes {
        Some(bytes) if bytes % MIB == 0 => Some(json!(bytes / MIB)),
        _ => {
            report.fail(at, "must be a size such as 10GiB, in whole MiB");
            None
        }
    }
}

fn type_guid(value: &Value, at: &str, report: &mut Report) -> Option<Value> {
    let Some(name) = value.as_str() else {
        report.fail(at, "must be a text");
        return None;
    };
    Some(json!(match name {
        "raid_containing_root" => "be9067b9-ea49-4f15-b4f6-f36f8c9e1818",
        "linux_filesystem_data" => "0fc63daf-8483-4772-8e79-3d69d8477de4",
        "swap_partition" => "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f",
        "raid_partition" => "a19d880f-05fc-4d3b-a006-743f0f84911e",
        guid => guid,
    }))
}
