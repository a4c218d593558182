//! `capwasm provider inspect`: what a component is.

use std::path::PathBuf;

use anyhow::{Context, Result};
use capwasm_api::descriptor::Wants;
use capwasm_runtime::Limits;
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use crate::compile;
use crate::output::Output;

/// Options of `capwasm provider inspect`.
#[derive(Args)]
pub struct Inspect {
    /// The component.
    file: PathBuf,
    #[command(flatten)]
    output: Output,
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

/// Prints what it is.
pub async fn inspect(options: Inspect) -> Result<()> {
    let bytes = std::fs::read(&options.file).with_context(|| format!("unable to read {}", options.file.display()))?;
    let runtime = compile::runtime(None)?;
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
