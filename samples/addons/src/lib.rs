//! Addons: what is installed in which workload clusters.
//!
//! ```text
//! AddonSet ── one per Cluster and addon ──► Addon ── manifests ──► workload cluster
//!     └──────────── catalog ────────────────┴───► AddonCatalog
//! ```
//!
//! A sample of a provider that owns kinds of its own: every module holds one kind, and what a call needs is read anew each time.
//! Objects are found again by owner and label; the status only says to people what is.

mod addon;
mod admission;
mod catalog;
mod conversion;
mod kinds;
mod set;
#[cfg(test)]
mod tests;

use capwasm_sdk::descriptor::{Descriptor, Role};
use capwasm_sdk::{Admission, Context, Controller, Conversion, Description, Kind, Problem, Provider, object};
use serde_json::Value;

/// A provider of three kinds of its own, as a third party writes one.
pub struct Addons;

impl Provider for Addons {
    fn describe() -> Descriptor {
        let kind = |crd| Kind::new(Role::Controller, crd).admission();
        let description = Description::new("addons", env!("CARGO_PKG_VERSION"))
            .kind(kind(include_str!("../crds/addoncatalogs.json")).finalizer("addons.example.org/catalog"))
            .kind(kind(include_str!("../crds/addonsets.json")).finalizer("addons.example.org/set"))
            .kind(kind(include_str!("../crds/addons.json")).finalizer("addons.example.org/addon"))
            .reads("cluster.x-k8s.io", "Cluster")
            .reads(kinds::GROUP, "*")
            .writes(kinds::GROUP, "Addon")
            .workload_reads("", "Node");
        kinds::INSTALLED
            .iter()
            .fold(description, |description, (group, _, kind)| {
                description.workload_watches(group, kind).workload_writes(group, kind)
            })
            .build()
    }
}

impl Controller for Addons {
    fn reconcile(cx: &mut Context<'_>, object: &Value) -> Result<(), Problem> {
        match object::kind(object) {
            "AddonCatalog" => catalog::reconcile(cx, object),
            "AddonSet" => set::reconcile(cx, object),
            "Addon" => addon::reconcile(cx, object),
            other => Err(Problem::unsupported("UnknownKind", other)),
        }
    }

    fn delete(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem> {
        match object::kind(object) {
            "AddonCatalog" => catalog::delete(cx, object),
            "AddonSet" => set::delete(cx, object),
            "Addon" => addon::delete(cx, object),
            other => Err(Problem::unsupported("UnknownKind", other)),
        }
    }
}

impl Conversion for Addons {
    fn convert(object: Value, to: &str) -> Result<Value, Problem> {
        conversion::convert(object, to)
    }
}

impl Admission for Addons {
    fn default(object: Value, _: Option<&Value>) -> Result<Value, Problem> {
        Ok(admission::default(object))
    }

    fn validate(object: &Value, old: Option<&Value>) -> Result<Vec<String>, Problem> {
        admission::validate(object, old)
    }
}

capwasm_sdk::export_interfaces!(Addons: descriptor, controller, conversion, admission);
