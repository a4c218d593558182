//! `capwasm provider`: what a component is, and what runs.

mod diff;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use capwasm_api::descriptor::Wants;
use capwasm_providers::wasm_provider;
use capwasm_runtime::{Limits, Runtime, RuntimeOptions};
use clap::{Args, Subcommand};
use comfy_table::Table;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use serde::Serialize;
use serde_json::Value;

use crate::kubeconfig::Connection;
use crate::output::Output;

/// Subcommands of `capwasm provider`.
#[derive(Subcommand)]
pub enum Command {
    /// Roles, contract version, kinds, wanted capabilities and size of a component.
    Inspect(Inspect),
    /// The providers of a running host.
    List(List),
    /// What another component would have done otherwise in recorded calls, without any effect.
    Diff(diff::Options),
}

/// Options of `capwasm provider inspect`.
#[derive(Args)]
pub struct Inspect {
    /// The component.
    file: PathBuf,
    #[command(flatten)]
    output: Output,
}

/// Options of `capwasm provider list`.
#[derive(Args)]
pub struct List {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    output: Output,
}

/// Runs a subcommand.
pub async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Inspect(options) => inspect(options).await?,
        Command::List(options) => list(options).await?,
        Command::Diff(options) => return diff::run(options).await,
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inspected {
    name: String,
    version: String,
    contract: String,
    digest: String,
    size_bytes: usize,
    kinds: Vec<Value>,
    /// Whether it converts between the API versions of its kinds.
    converts: bool,
    wants: Wants,
}

async fn inspect(options: Inspect) -> Result<()> {
    let bytes = std::fs::read(&options.file).with_context(|| format!("unable to read {}", options.file.display()))?;
    let runtime = Runtime::new(RuntimeOptions::default())?;
    let provider = runtime
        .load(&bytes, Limits::default())
        .await
        .with_context(|| format!("{} is not a provider", options.file.display()))?;
    let descriptor = provider.descriptor();
    let inspected = Inspected {
        name: descriptor.name.clone(),
        version: descriptor.version.clone(),
        contract: descriptor.contract.clone(),
        digest: provider.digest().to_owned(),
        size_bytes: provider.size(),
        kinds: descriptor
            .kinds
            .iter()
            .map(|kind| serde_json::json!({"group": kind.group, "kind": kind.kind, "version": kind.version, "role": kind.role}))
            .collect(),
        converts: provider.converts(),
        wants: descriptor.wants.clone(),
    };
    options.output.print(&inspected, people)
}

fn people(provider: &Inspected) -> String {
    let mut text = format!(
        "{} {} (contract {})\ndigest  {}\nsize    {:.2} MB\nkinds\n",
        provider.name,
        provider.version,
        provider.contract,
        provider.digest,
        provider.size_bytes as f64 / 1e6
    );
    let part = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    for kind in &provider.kinds {
        text += &format!(
            "  {:32} {:27} {}/{}\n",
            part(kind, "kind"),
            part(kind, "role"),
            part(kind, "group"),
            part(kind, "version")
        );
    }
    if provider.converts {
        text += "converts between the API versions of its kinds\n";
    }
    text += "wants\n";
    let wants = &provider.wants;
    let kinds = |list: &[capwasm_api::descriptor::KindPattern]| {
        list.iter()
            .map(|kind| if kind.group.is_empty() { kind.kind.clone() } else { format!("{}.{}", kind.kind, kind.group) })
            .collect()
    };
    let lists: [(&str, Vec<String>); 7] = [
        ("endpoints", wants.endpoints.clone()),
        ("origins", wants.origins.clone()),
        ("reads", kinds(&wants.reads)),
        ("writes", kinds(&wants.writes)),
        ("workload reads", kinds(&wants.workload_reads)),
        ("workload writes", kinds(&wants.workload_writes)),
        ("secrets", wants.secrets.clone()),
    ];
    for (name, list) in lists.iter().filter(|(_, list)| !list.is_empty()) {
        text += &format!("  {name:16} {}\n", list.join(", "));
    }
    if wants.pki {
        text += "  keys and certificates\n";
    }
    if wants.etcd {
        text += "  membership of the workload cluster's etcd\n";
    }
    text
}

async fn list(options: List) -> Result<()> {
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
    table
        .load_style(comfy_table::presets::NOTHING)
        .set_header(["NAME", "VERSION", "DIGEST", "READY", "REASON", "ROLES", "GRANTS", "KINDS"]);
    for object in objects {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("-").to_owned();
        let ready = capwasm_api::conditions::get(object, "Ready");
        let kinds: Vec<_> =
            capwasm_api::json::items(object, "/status/kinds").iter().map(capwasm_api::json::kind).collect();
        let digest = text("/status/digest");
        table.add_row([
            text("/metadata/name"),
            text("/status/version"),
            digest.get(..19).unwrap_or(&digest).to_owned(),
            ready.as_ref().map_or("-", |ready| ready.status.as_str()).to_owned(),
            ready.map_or_else(String::new, |ready| {
                if ready.message.is_empty() { ready.reason } else { format!("{}: {}", ready.reason, ready.message) }
            }),
            roles(object).join(","),
            grants(object).join(","),
            kinds.join(","),
        ]);
    }
    format!("{table}\n")
}

/// What it exports besides its descriptor, templates aside.
fn roles(provider: &Value) -> Vec<String> {
    let kinds = capwasm_api::json::items(provider, "/status/kinds");
    let mut roles: Vec<String> = kinds
        .iter()
        .filter_map(|kind| kind["role"].as_str())
        .filter(|role| *role != "template")
        .map(str::to_owned)
        .collect();
    if capwasm_api::json::flag(provider, "/status/converts") == Some(true) {
        roles.push("conversion".to_owned());
    }
    roles.sort();
    roles.dedup();
    roles
}

/// The capabilities that it is granted, by name; named endpoints in full, since each is a door of its own.
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
