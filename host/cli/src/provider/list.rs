//! `capwasm provider list`: prints the installed providers.

use anyhow::{Context, Result};
use capwasm_api::conditions;
use capwasm_object::{json, meta};
use capwasm_providers::wasm_provider;
use clap::Args;
use comfy_table::Table;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use serde_json::Value;

use crate::kubeconfig::Connection;
use crate::output::Output;

/// Options of `capwasm provider list`.
#[derive(Args)]
pub struct List {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    output: Output,
}

pub async fn list(options: List) -> Result<()> {
    let client = options.connection.client().await?;
    let gvk = GroupVersionKind::gvk(wasm_provider::GROUP, "v1alpha1", wasm_provider::KIND);
    let api: Api<DynamicObject> = Api::all_with(client, &ApiResource::from_gvk(&gvk));
    let found = api
        .list(&ListParams::default())
        .await
        .context("unable to list WasmProviders: does capwasm run on this cluster?")?;
    let objects: Vec<Value> = found.items.iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
    options.output.print(&objects, |objects| table(objects))
}

fn table(objects: &[Value]) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_header([
        "NAME", "VERSION", "DIGEST", "READY", "UPTODATE", "CALLS", "MEDIAN", "TRAPS", "MEMORY", "ROLES", "GRANTS",
        "KINDS", "REASON",
    ]);
    for object in objects {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("-").to_owned();
        let number = |pointer: &str| json::number(object, pointer);
        let digest = text("/status/digest");
        table.add_row([
            text("/metadata/name"),
            text("/status/version"),
            digest.get(..19).unwrap_or(&digest).to_owned(),
            conditions::get(object, "Ready").map_or("-", |ready| ready.status.as_str()).to_owned(),
            conditions::get(object, "UpToDate").map_or("-", |late| late.status.as_str()).to_owned(),
            number("/status/calls/count").map_or("-".to_owned(), |count| count.to_string()),
            number("/status/calls/medianMicroseconds")
                .map_or("-".to_owned(), |median| format!("{:.1} ms", median as f64 / 1e3)),
            number("/status/calls/traps").map_or("-".to_owned(), |traps| traps.to_string()),
            number("/status/calls/memoryPeakBytes")
                .map_or("-".to_owned(), |peak| format!("{:.1} MB", peak as f64 / 1e6)),
            roles(object).join(","),
            grants(object).join(","),
            json::items(object, "/status/kinds").iter().map(meta::kind).collect::<Vec<_>>().join(","),
            reason(object),
        ]);
    }
    format!("{table}\n")
}

/// Why it is not ready or not up to date.
fn reason(provider: &Value) -> String {
    let wrong = |name: &str| conditions::get(provider, name).filter(|condition| condition.status.as_str() != "True");
    match wrong("Ready").or_else(|| wrong("UpToDate")) {
        Some(condition) if condition.message.is_empty() => condition.reason,
        Some(condition) => format!("{}: {}", condition.reason, condition.message),
        None => String::new(),
    }
}

/// Roles of its kinds, except templates.
fn roles(provider: &Value) -> Vec<String> {
    let kinds = json::items(provider, "/status/kinds");
    let mut roles: Vec<String> = kinds
        .iter()
        .filter_map(|kind| kind["role"].as_str())
        .filter(|role| *role != "template")
        .map(str::to_owned)
        .collect();
    if json::flag(provider, "/status/converts") == Some(true) {
        roles.push("conversion".to_owned());
    }
    if kinds.iter().any(|kind| kind.get("admission").is_some()) {
        roles.push("admission".to_owned());
    }
    roles.sort();
    roles.dedup();
    roles
}

/// Granted capabilities by name; named endpoints one by one.
fn grants(provider: &Value) -> Vec<String> {
    let Some(granted) = provider.pointer("/spec/grants").and_then(Value::as_object) else { return Vec::new() };
    let mut names = Vec::new();
    for (name, grant) in granted {
        match grant {
            Value::Bool(true) => names.push(name.clone()),
            Value::Object(endpoints) => names.extend(endpoints.keys().map(|endpoint| format!("{name}:{endpoint}"))),
            Value::Array(list) if !list.is_empty() => names.push(name.clone()),
            _ => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn roles_and_grants_are_listed_once_by_name() {
        let provider = json!({
            "spec": {"grants": {
                "endpoints": {"docker": {}}, "reads": [{"kind": "A"}], "writes": [], "pki": false, "etcd": true}},
            "status": {"converts": true, "kinds": [
                {"role": "template"}, {"role": "infrastructure-machine-pool"}, {"role": "bootstrap"}, {"role": "bootstrap"}]},
        });
        assert_eq!(roles(&provider), ["bootstrap", "conversion", "infrastructure-machine-pool"]);
        assert_eq!(grants(&provider), ["endpoints:docker", "etcd", "reads"]);
    }
}
