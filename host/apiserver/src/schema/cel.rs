//! Evaluates CEL rules against an object.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine;
use kube_cel::KubeCelExt;
use kube_cel::cel::extractors::This;
use kube_cel::cel::objects::{Key, Map, OptionalValue};
use kube_cel::cel::{Context, ExecutionError, FunctionContext, Value as Cel};
use serde_json::Value;

use super::checks::{Shown, error};
use super::cost::{self, HELD, PER_OBJECT, PER_RULE, Size};
use super::error::{FieldError, FieldReason};
use super::lists::Continuation;
use super::needs::Needs;
use super::path::Path;
use super::rule::Rule;
use super::{Schema, Type, pattern};

thread_local! {
    /// Functions without variables. Costs more to build than a rule to run, and cannot be shared between threads.
    static FUNCTIONS: Context<'static> = functions();
}

fn functions() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function("dyn", |value: Cel| -> Result<Cel, ExecutionError> { Ok(value) });
    // Types are values in CEL; here they are their names.
    for name in super::rule::TYPES {
        context.add_variable_from_value(*name, Cel::String(Arc::new((*name).to_owned())));
    }
    context.add_function("type", |value: Cel| -> Result<Cel, ExecutionError> {
        Ok(Cel::String(Arc::new(type_name(&value).to_owned())))
    });
    // The stock function compiles its pattern on every call.
    context.add_function("matches", matches);
    context
}

fn type_name(value: &Cel) -> &'static str {
    match value {
        Cel::Bool(_) => "bool",
        Cel::Int(_) => "int",
        Cel::UInt(_) => "uint",
        Cel::Float(_) => "double",
        Cel::String(_) => "string",
        Cel::Bytes(_) => "bytes",
        Cel::List(_) => "list",
        Cel::Map(_) => "map",
        Cel::Null => "null_type",
        Cel::Timestamp(_) => "google.protobuf.Timestamp",
        Cel::Duration(_) => "google.protobuf.Duration",
        _ => "dyn",
    }
}

fn matches(
    context: &FunctionContext<'_, '_>,
    This(text): This<Arc<String>>,
    regex: Arc<String>,
) -> Result<bool, ExecutionError> {
    pattern::cached(&regex).map(|regex| regex.is_match(&text)).map_err(|message| context.error(message))
}

/// Runs every rule at and below `schema`, appending what fails.
pub(super) fn run(schema: &Schema, new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    FUNCTIONS.with(|functions| {
        let mut budget = PER_OBJECT;
        node(schema, new, old, &Path::ROOT, &mut Run { functions, budget: &mut budget, errors });
    });
}

struct Run<'a> {
    functions: &'a Context<'static>,
    budget: &'a mut f64,
    errors: &'a mut Vec<FieldError>,
}

fn node(schema: &Schema, new: &Value, old: Option<&Value>, path: &Path<'_>, run: &mut Run<'_>) {
    if !schema.has_rules || new.is_null() {
        return;
    }
    let old = old.filter(|old| !old.is_null());
    for rule in &schema.rules {
        evaluate(rule, schema, new, old, path, run);
    }
    match new {
        Value::Object(fields) => {
            let old = if schema.atomic { None } else { old };
            for (name, value) in fields {
                if let Some(child) = schema.child(name).filter(|child| child.has_rules) {
                    node(child, value, old.and_then(|old| old.get(name)), &path.field(name), run);
                }
            }
        }
        Value::Array(items) => {
            if let Some(child) = schema.items.as_deref().filter(|child| child.has_rules) {
                let continuation = Continuation::new(schema, old);
                for (index, item) in items.iter().enumerate() {
                    let old = continuation.as_ref().and_then(|lists| lists.of(item));
                    node(child, item, old, &path.index(index), run);
                }
            }
        }
        _ => {}
    }
}

fn evaluate(rule: &Rule, schema: &Schema, new: &Value, old: Option<&Value>, path: &Path<'_>, run: &mut Run<'_>) {
    if rule.transition && old.is_none() && !rule.optional_old_self {
        return;
    }
    // Ratcheting: a state rule holds nothing against a value that stayed as it was.
    if !rule.transition && old == Some(new) {
        return;
    }
    let mut size = Size::default();
    let bound_self = convert(Some(schema), new, &rule.self_needs, &mut size);
    let bound_old = old.map(|old| convert(Some(schema), old, &rule.old_needs, &mut size));
    let costs = [Some(&rule.expression), rule.message_expression.as_ref().map(|(_, text)| text)];
    let costs = costs.into_iter().flatten().map(|expression| cost::of(expression, size));
    let (steps, bytes) = costs.fold((0.0, 0.0_f64), |(steps, bytes), cost| (steps + cost.steps, bytes.max(cost.bytes)));
    *run.budget -= steps;
    if steps > PER_RULE || bytes > HELD || *run.budget < 0.0 {
        let detail = "validation failed due to running out of cost budget, no further validation rules will be run";
        report(rule, new, path, FieldReason::Invalid, detail, run);
        return;
    }
    let mut context = run.functions.new_inner_scope();
    context.add_variable_from_value("self", bound_self);
    if rule.optional_old_self {
        let optional = bound_old.map_or_else(OptionalValue::none, OptionalValue::of);
        context.add_variable_from_value("oldSelf", Cel::Opaque(Arc::new(optional)));
    } else if let Some(old) = bound_old {
        context.add_variable_from_value("oldSelf", old);
    }
    match Cel::resolve(&rule.expression, &context) {
        Ok(Cel::Bool(true)) => {}
        Ok(Cel::Bool(false)) => {
            let reason = rule.reason.unwrap_or(FieldReason::Invalid);
            report(rule, new, path, reason, &message(rule, &context), run);
        }
        Ok(_) => report(rule, new, path, FieldReason::Invalid, "rule did not evaluate to true or false", run),
        Err(cause) => {
            let detail = format!("rule evaluation error: {}: {cause}", rule.text);
            report(rule, new, path, FieldReason::Invalid, &detail, run);
        }
    }
}

fn message(rule: &Rule, context: &Context<'_>) -> String {
    if let Some((_, expression)) = &rule.message_expression
        && let Ok(Cel::String(text)) = Cel::resolve(expression, context)
        && !text.trim().is_empty()
        && !text.contains('\n')
    {
        return text.chars().take(5 << 10).collect();
    }
    match &rule.message {
        Some(message) => message.to_string(),
        None => format!("failed rule: {}", rule.text),
    }
}

fn report(rule: &Rule, new: &Value, path: &Path<'_>, reason: FieldReason, detail: &str, run: &mut Run<'_>) {
    let mut error = match reason {
        FieldReason::Required | FieldReason::Forbidden => error(path, reason, format_args!("{detail}")),
        _ => error(path, reason, format_args!("{}: {detail}", Shown(new))),
    };
    if let Some(field) = &rule.field_path {
        let base = if error.path == "<nil>" { "" } else { &error.path };
        error.path = format!("{base}{field}").trim_start_matches('.').to_owned();
    }
    run.errors.push(error);
}

/// Bytes that a value counts for besides its text.
const VALUE: usize = 16;

/// The needed part of a JSON value as CEL sees it, measuring it on the way.
fn convert(schema: Option<&Schema>, value: &Value, needs: &Needs, size: &mut Size) -> Cel {
    if *needs == Needs::Presence {
        return Cel::Bool(true);
    }
    size.whole += VALUE;
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => {
            size.number = size.number.max(number.as_f64().map_or(f64::INFINITY, f64::abs));
            let float = schema.is_some_and(|schema| schema.ty == Type::Number);
            match (number.as_i64(), number.as_u64()) {
                (Some(integer), _) if !float => Cel::Int(integer),
                (_, Some(integer)) if !float => Cel::UInt(integer),
                _ => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
            }
        }
        Value::String(text) => {
            size.longest_text = size.longest_text.max(text.len());
            size.whole += text.len();
            schema
                .and_then(|schema| convert_format(schema, text))
                .unwrap_or_else(|| Cel::String(Arc::new(text.clone())))
        }
        Value::Array(items) => {
            size.longest_list = size.longest_list.max(items.len());
            let item_schema = schema.and_then(|schema| schema.items.as_deref());
            Cel::List(Arc::new(items.iter().map(|item| convert(item_schema, item, &Needs::All, size)).collect()))
        }
        Value::Object(fields) => {
            size.longest_list = size.longest_list.max(fields.len());
            let is_map = schema.is_some_and(|schema| schema.additional.is_some() && schema.properties.is_empty());
            let mut map = HashMap::new();
            for (name, value) in fields {
                size.whole += name.len();
                size.longest_text = size.longest_text.max(if is_map { name.len() } else { 0 });
                // Keys of maps are data; only declared names are escaped.
                let name_in_cel = if is_map { name.clone() } else { escape(name) };
                if let Some(needs) = needs.under(&name_in_cel) {
                    let child = schema.and_then(|schema| schema.child(name));
                    map.insert(Key::String(Arc::new(name_in_cel)), convert(child, value, needs, size));
                }
            }
            Cel::Map(Map { map: Arc::new(map) })
        }
    }
}

fn convert_format(schema: &Schema, text: &str) -> Option<Cel> {
    if schema.ty != Type::String {
        return None;
    }
    match schema.format.as_deref()? {
        "date-time" => chrono::DateTime::parse_from_rfc3339(text).ok().map(Cel::Timestamp),
        "date" => chrono::DateTime::parse_from_rfc3339(&format!("{text}T00:00:00Z")).ok().map(Cel::Timestamp),
        "duration" => duration(text).map(Cel::Duration),
        "byte" => base64::engine::general_purpose::STANDARD.decode(text).ok().map(|bytes| Cel::Bytes(Arc::new(bytes))),
        _ => None,
    }
}

/// Parses Go's duration format.
fn duration(text: &str) -> Option<chrono::Duration> {
    if !super::duration_text_is_valid(text) {
        return None;
    }
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut nanos = 0f64;
    while let Some(digits) = rest.find(|char: char| !char.is_ascii_digit() && char != '.') {
        let number: f64 = rest[..digits].parse().ok()?;
        let after = &rest[digits..];
        let units =
            [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];
        let (unit, factor) = units.into_iter().find(|(unit, _)| after.starts_with(unit))?;
        nanos += number * factor;
        rest = &after[unit.len()..];
    }
    Some(chrono::Duration::nanoseconds(if negative { -nanos } else { nanos } as i64))
}

/// Escapes a field name as `x-kubernetes-validations` does.
fn escape(name: &str) -> String {
    const RESERVED: &[&str] = &[
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    if !name.contains(['.', '-', '/']) && !name.contains("__") {
        return name.to_owned();
    }
    name.replace("__", "__underscores__").replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__")
}
