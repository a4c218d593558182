//! The provider {{name}}: a kind of its own.
//!
//! The host calls these functions whenever the object, or something that they read, changed; and again from the start after a crash.
//! Nothing is remembered between calls but the objects.

mod kinds;
#[cfg(test)]
mod tests;

use capwasm_sdk::descriptor::{Descriptor, Role};
use capwasm_sdk::{Context, Controller, Description, Kind, ObjectRef, Optional, Place, Problem, Provider, Selection, object};
use kinds::{Spec, Status};
use serde_json::{Value, json};

/// On every copy: the uid of the object that it was made for.
const LABEL: &str = "{{name}}.example.org/uid";

/// The provider.
pub struct {{Name}};

impl Provider for {{Name}} {
    fn describe() -> Descriptor {
        Description::new("{{name}}", env!("CARGO_PKG_VERSION"))
            .kind(
                Kind::new(Role::Controller, include_str!("../crds/{{plural}}.json"))
                    .finalizer("{{name}}.example.org/copies"),
            )
            .reads("", "ConfigMap")
            .writes("", "ConfigMap")
            .build()
    }
}

impl Controller for {{Name}} {
    fn reconcile(cx: &mut Context<'_>, object: &Value) -> Result<(), Problem> {
        let spec: Spec = object::spec(object)?;
        // Absent, it is waited for: having asked for it is enough to be called again when it appears.
        let source = cx.host.lookup(&config_map(&spec.source))?;
        for copy in mine(cx, object)?.iter().filter(|copy| !spec.copies.iter().any(|name| name == object::name(copy))) {
            cx.out.delete("remove", Place::Management, config_map(object::name(copy)), None);
        }
        for name in &spec.copies {
            refuse_anothers(cx, object, name)?;
            let copy = json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": name,
                    "labels": {LABEL: object::uid(object)},
                    "ownerReferences": [object::owner_reference(object)],
                },
                "data": source.get("data"),
            });
            cx.out.apply(format!("copy {name}"), Place::Management, copy);
        }
        cx.out.status(json!(Status { copies: spec.copies.len() }));
        Ok(())
    }

    fn delete(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem> {
        let copies = mine(cx, object)?;
        for copy in &copies {
            cx.out.delete("remove", Place::Management, config_map(object::name(copy)), None);
        }
        Ok(copies.is_empty())
    }
}

/// The copies that there are, found by their label: state is never kept anywhere else.
fn mine(cx: &Context<'_>, object: &Value) -> Result<Vec<Value>, Problem> {
    let copies = Selection::of("v1", "ConfigMap").labelled(format!("{LABEL}={}", object::uid(object)));
    Ok(cx.host.lookup_list(&copies)?)
}

/// A ConfigMap of that name which somebody else made is not written over.
fn refuse_anothers(cx: &Context<'_>, object: &Value, name: &str) -> Result<(), Problem> {
    match cx.host.lookup(&config_map(name)).optional()? {
        Some(found) if object::label(&found, LABEL) != Some(object::uid(object)) => {
            let message = format!("ConfigMap {name} is not a copy: remove it, or name another in spec.copies");
            Err(Problem::invalid("NameTaken", message))
        }
        _ => Ok(()),
    }
}

fn config_map(name: &str) -> ObjectRef {
    ObjectRef::new("v1", "ConfigMap", name)
}

capwasm_sdk::export_interfaces!({{Name}}: descriptor, controller);
