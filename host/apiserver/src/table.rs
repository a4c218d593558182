//! `meta.k8s.io/v1` Tables: what `kubectl get` prints.
//!
//! Custom resources describe their columns with a JSONPath each; built-in kinds have theirs computed here. Cells are
//! JSON values; ages are written as kubectl writes durations.

mod builtin;
mod duration;
mod jsonpath;

use serde_json::{Map, Value, json};

pub use duration::human_duration;

use self::jsonpath::JsonPath;

/// What a row carries beside its cells: the query parameter `includeObject`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncludeObject {
    /// Cells only.
    None,
    /// The object's `PartialObjectMetadata`.
    Metadata,
    /// The whole object.
    Object,
}

/// Column of a Table, with the function that computes its cells.
pub struct Column {
    name: String,
    ty: String,
    format: String,
    description: String,
    priority: i64,
    cell: Cell,
}

enum Cell {
    /// Computed from the object and the present time, in seconds since 1970.
    Computed(fn(&Value, i64) -> Value),
    /// The value at a JSONPath, formatted by the column's type.
    Path(JsonPath),
    /// A JSONPath that does not parse; its cells stay empty, as upstream has it.
    Unreadable,
}

/// The columns of a kind. Columns of a CRD version (`additionalPrinterColumns`) follow the name.
pub fn columns_for(group: &str, version: &str, kind: &str, crd_columns: Option<&Value>) -> Vec<Column> {
    let declared = crd_columns.and_then(Value::as_array).filter(|columns| !columns.is_empty());
    if let Some(declared) = declared {
        let mut columns = vec![builtin::name_column()];
        columns.extend(declared.iter().map(custom));
        return columns;
    }
    builtin::columns(group, version, kind)
}

fn custom(declared: &Value) -> Column {
    let text = |key: &str| declared.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    Column {
        name: text("name"),
        ty: text("type"),
        format: text("format"),
        description: text("description"),
        priority: declared.get("priority").and_then(Value::as_i64).unwrap_or(0),
        cell: JsonPath::parse(&text("jsonPath")).map_or(Cell::Unreadable, Cell::Path),
    }
}

/// The row of an object. `now` is RFC 3339.
pub fn row(columns: &[Column], item: &Value, now: &str, include_object: IncludeObject) -> Value {
    let now = now.parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_second);
    let cells: Vec<Value> = columns.iter().map(|column| column.cell(item, now)).collect();
    let mut row = Map::new();
    row.insert("cells".to_owned(), Value::Array(cells));
    match include_object {
        IncludeObject::None => {}
        IncludeObject::Object => {
            row.insert("object".to_owned(), item.clone());
        }
        IncludeObject::Metadata => {
            let metadata = item.get("metadata").cloned().unwrap_or_else(|| json!({}));
            let partial =
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata});
            row.insert("object".to_owned(), partial);
        }
    }
    Value::Object(row)
}

/// The definitions of columns.
pub fn definitions(columns: &[Column]) -> Vec<Value> {
    columns.iter().map(Column::definition).collect()
}

/// Makes a Table of objects. `now` is RFC 3339; `with_columns` is false for the later events of a watch.
pub fn render(
    columns: &[Column],
    items: &[Value],
    now: &str,
    with_columns: bool,
    include_object: IncludeObject,
) -> Value {
    let rows: Vec<Value> = items.iter().map(|item| row(columns, item, now, include_object)).collect();
    let definitions = if with_columns { definitions(columns) } else { Vec::new() };
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "columnDefinitions": definitions, "rows": rows})
}

impl Column {
    fn definition(&self) -> Value {
        json!({"name": self.name, "type": self.ty, "format": self.format, "description": self.description, "priority": self.priority})
    }

    fn cell(&self, item: &Value, now: i64) -> Value {
        match &self.cell {
            Cell::Computed(compute) => compute(item, now),
            Cell::Path(path) => printed(&self.ty, &path.find(item), now),
            Cell::Unreadable => Value::Null,
        }
    }
}

/// Formats what a JSONPath found by the column's type; an empty cell when it found nothing.
fn printed(ty: &str, found: &[&Value], now: i64) -> Value {
    let Some(first) = found.first().copied() else { return Value::Null };
    match ty {
        "integer" => match first {
            Value::Number(number) => number
                .as_i64()
                .map_or_else(|| json!(number.as_f64().map(|float| float as i64)), |integer| json!(integer)),
            Value::String(text) => text.parse::<i64>().map_or(Value::Null, |integer| json!(integer)),
            _ => Value::Null,
        },
        "number" => match first {
            Value::Number(_) => first.clone(),
            Value::String(text) => text.parse::<f64>().map_or(Value::Null, |float| json!(float)),
            _ => Value::Null,
        },
        "boolean" => match first {
            Value::Bool(_) => first.clone(),
            Value::String(text) => text.parse::<bool>().map_or(Value::Null, |value| json!(value)),
            _ => Value::Null,
        },
        "date" => match first.as_str().map(str::parse::<jiff::Timestamp>) {
            Some(Ok(time)) => json!(human_duration(now - time.as_second())),
            Some(Err(_)) => json!("<invalid>"),
            None => Value::Null,
        },
        _ => {
            let texts: Vec<String> = found
                .iter()
                .map(|value| match value {
                    Value::String(text) => text.clone(),
                    Value::Null => String::new(),
                    other => other.to_string(),
                })
                .collect();
            json!(texts.join(" "))
        }
    }
}

#[cfg(test)]
mod tests;
