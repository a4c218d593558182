//! CRDs that replace others: when nothing is called narrower, whatever was valid is valid, and keeps all its fields.
//!
//! Who says what is valid is the embedded API server.

use arbitrary::{Result, Unstructured};
use capwasm_apiserver::fuzzing::created;
use capwasm_providers::fuzzing::narrowings;
use serde_json::{Map, Value, json};

use crate::json::{list, one_of, value};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const OPEN: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

pub fn run(data: &[u8]) {
    let _ = case(&mut Unstructured::new(data));
}

fn case(u: &mut Unstructured<'_>) -> Result<()> {
    let old = schema(u, 3)?;
    let mut new = old.clone();
    for _ in 0..u.int_in_range(1..=3)? {
        edit(u, &mut new)?;
    }
    let (live, wanted) = (crd(&old), crd(&new));
    let found = narrowings(&live, &wanted);
    assert_eq!(narrowings(&live, &live), Vec::<String>::new(), "it is narrower than itself: {old}");
    if !found.is_empty() {
        assert!(found.iter().all(|text| !text.is_empty()));
        return Ok(());
    }
    let (old, new) = (root(&old), root(&new));
    for _ in 0..4 {
        let object = json!({"spec": value(u, &NAMES, 3)?});
        let Ok(Some(stored)) = created(&old, &object) else { continue };
        let Ok(taken) = created(&new, &stored) else { return Ok(()) };
        let told = format!("{stored} is valid by\n{old}\nand this is not called narrower:\n{new}");
        let taken = taken.unwrap_or_else(|| panic!("{told}\nwhich refuses it"));
        assert!(holds(&taken, &stored), "{told}\nwhich makes it {taken}");
    }
    Ok(())
}

/// Whether everything of `part` is in `whole`. An object's null says no more than its absence.
fn holds(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(key, value)| whole.get(key).map_or(value.is_null(), |whole| value.is_null() || holds(whole, value))),
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| holds(whole, part))
        }
        (whole, part) => whole == part,
    }
}

fn root(spec: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": spec}})
}

fn crd(spec: &Value) -> Value {
    json!({"spec": {"group": "g", "scope": "Namespaced", "names": {"kind": "K", "plural": "ks"}, "versions": [
        {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": root(spec)}}]}})
}

/// A schema that is structural, most of the time.
fn schema(u: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    let mut schema = Map::new();
    match u.int_in_range(0..=if depth == 0 { 4 } else { 8 })? {
        0 => drop(schema.insert(INT_OR_STRING.into(), true.into())),
        1 => drop(schema.insert("type".into(), one_of(u, &["string", "boolean"])?.into())),
        2 => drop(schema.insert("type".into(), one_of(u, &["integer", "number"])?.into())),
        3 => drop(schema.insert(OPEN.into(), true.into())),
        4 => {
            schema.insert("type".into(), "object".into());
            schema.insert(OPEN.into(), true.into());
        }
        5 => {
            schema.insert("type".into(), "array".into());
            schema.insert("items".into(), self::schema(u, depth - 1)?);
        }
        6 => {
            schema.insert("type".into(), "object".into());
            schema.insert("additionalProperties".into(), self::schema(u, depth - 1)?);
        }
        _ => {
            schema.insert("type".into(), "object".into());
            let property = |u: &mut Unstructured<'_>| Ok((one_of(u, &NAMES)?.to_owned(), self::schema(u, depth - 1)?));
            schema.insert("properties".into(), list(u, 3, property)?.into_iter().collect::<Map<_, _>>().into());
        }
    }
    let mut schema = Value::Object(schema);
    for _ in 0..u.int_in_range(0..=2)? {
        demand(u, &mut schema)?;
    }
    Ok(schema)
}

/// Adds, changes or drops one demand.
fn demand(u: &mut Unstructured<'_>, schema: &mut Value) -> Result<()> {
    const NUMBERS: [&str; 8] =
        ["maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties", "maximum", "minimum"];
    let (key, value) = match u.int_in_range(0..=7)? {
        0 => ("nullable", u.arbitrary::<bool>()?.into()),
        1 => ("enum", list(u, 3, |u| value(u, &NAMES, 0))?.into()),
        2 => ("required", list(u, 2, |u| Ok(Value::from(one_of(u, &NAMES)?)))?.into()),
        3 => ("default", value(u, &NAMES, 1)?),
        4 => {
            (one_of(u, &["exclusiveMaximum", "exclusiveMinimum", OPEN, INT_OR_STRING])?, u.arbitrary::<bool>()?.into())
        }
        5 => (one_of(u, &["pattern", "format"])?, one_of(u, &["^a", "b$", "date", "int32"])?.into()),
        _ => (one_of(u, &NUMBERS)?, u.int_in_range(0..=3)?.into()),
    };
    let map = schema.as_object_mut().unwrap();
    if u.ratio(1, 3)? {
        map.remove(key);
    } else {
        map.insert(key.to_owned(), value);
    }
    Ok(())
}

/// Changes one place: a demand, a field, or all of it.
fn edit(u: &mut Unstructured<'_>, schema: &mut Value) -> Result<()> {
    if u.ratio(1, 10)? {
        *schema = self::schema(u, 1)?;
        return Ok(());
    }
    let below =
        ["items", "additionalProperties"].into_iter().find(|below| schema.get(below).is_some_and(Value::is_object));
    if let Some(below) = below.filter(|_| u.ratio(1, 2).unwrap_or(false)) {
        return edit(u, &mut schema[below]);
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut)
        && u.ratio(2, 3)?
    {
        let name = one_of(u, &NAMES)?;
        return match properties.get_mut(name) {
            Some(_) if u.ratio(1, 8)? => {
                properties.remove(name);
                Ok(())
            }
            Some(property) => edit(u, property),
            None => {
                properties.insert(name.to_owned(), self::schema(u, 1)?);
                Ok(())
            }
        };
    }
    if u.ratio(1, 8)? {
        let name = one_of(u, &NAMES)?;
        let property = self::schema(u, 1)?;
        schema["properties"] = json!({(name): property});
        return Ok(());
    }
    if u.ratio(1, 8)? {
        schema["additionalProperties"] = self::schema(u, 1)?;
        return Ok(());
    }
    demand(u, schema)
}
