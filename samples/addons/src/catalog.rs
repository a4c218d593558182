//! AddonCatalog: kept for as long as an Addon is made of it.

use capwasm_sdk::{Context, Fault, Problem, Selection, object};
use serde_json::{Value, json};

use crate::kinds::{API_VERSION, CatalogSpec, CatalogStatus, Entry, reference};

/// Writes into its status how many Addons are of the catalog.
pub fn reconcile(cx: &mut Context<'_>, catalog: &Value) -> Result<(), Problem> {
    let users = users(cx, catalog)?.len();
    cx.out.status(json!(CatalogStatus { users }));
    Ok(())
}

/// Waits for its users to go: the list wakes this object when one does.
pub fn delete(cx: &mut Context<'_>, catalog: &Value) -> Result<bool, Problem> {
    let users = users(cx, catalog)?;
    if users.is_empty() {
        return Ok(true);
    }
    let names: Vec<&str> = users.iter().map(object::name).collect();
    Err(Problem::waiting("InUse", format!("used by Addon {}", names.join(", "))))
}

fn users(cx: &Context<'_>, catalog: &Value) -> Result<Vec<Value>, Problem> {
    let mut addons = cx.host.lookup_list(&Selection::of(API_VERSION, "Addon"))?;
    addons.retain(|addon| object::text(addon, "/spec/catalog") == object::name(catalog));
    Ok(addons)
}

/// One addon of a catalog, read for another object, which is woken when the catalog appears or changes.
pub fn entry(cx: &Context<'_>, catalog: &str, addon: &str) -> Result<Entry, Problem> {
    let found = cx.host.lookup(&reference("AddonCatalog", catalog)).map_err(|refused| {
        let problem = Problem::from(refused);
        // Absent, it is waited for: say for what.
        let reason = if problem.fault == Fault::Waiting { "CatalogNotFound".to_owned() } else { problem.reason };
        Problem { reason, message: format!("AddonCatalog {catalog}: {}", problem.message), ..problem }
    })?;
    let spec: CatalogSpec = object::spec(&found)?;
    spec.addons
        .into_iter()
        .find(|entry| entry.name == addon)
        .ok_or_else(|| Problem::invalid("NotInCatalog", format!("AddonCatalog {catalog} has no addon {addon}")))
}
