//! `capwasm provider inspect`: prints properties of a component.

use std::path::PathBuf;

use anyhow::Result;
use capwasm_contract::descriptor::Wants;
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use super::artifact::component;
use crate::output::{Output, printable};

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
    /// Kinds whose objects it defaults and validates before they are stored.
    admits: Vec<String>,
    wants: Wants,
}

pub async fn inspect(options: Inspect) -> Result<()> {
    let (_, provider) = component(&options.file).await?;
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
        admits: descriptor.kinds.iter().filter(|kind| kind.admission).map(|kind| kind.kind.clone()).collect(),
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
    if !provider.admits.is_empty() {
        text += &format!("defaults and validates {}\n", provider.admits.join(", "));
    }
    text += "wants\n";
    let wants = &provider.wants;
    let kinds = |list: &[capwasm_contract::descriptor::KindPattern]| {
        list.iter()
            .map(|kind| if kind.group.is_empty() { kind.kind.clone() } else { format!("{}.{}", kind.kind, kind.group) })
            .collect()
    };
    let lists: [(&str, Vec<String>); 8] = [
        ("endpoints", wants.endpoints.clone()),
        ("origins", wants.origins.clone()),
        ("reads", kinds(&wants.reads)),
        ("writes", kinds(&wants.writes)),
        ("workload reads", kinds(&wants.workload_reads)),
        ("workload watches", kinds(&wants.workload_watches)),
        ("workload writes", kinds(&wants.workload_writes)),
        ("secrets", wants.secrets.clone()),
    ];
    for (name, list) in lists.iter().filter(|(_, list)| !list.is_empty()) {
        text += &format!("  {name:16} {}\n", printable(&list.join(", ")));
    }
    if wants.pki {
        text += "  keys and certificates\n";
    }
    if wants.etcd {
        text += "  membership of the workload cluster's etcd\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_component_wants_does_not_drive_the_terminal() {
        let wants = Wants { secrets: vec!["a\u{1b}[2J\u{9b}b".to_owned()], ..Wants::default() };
        let inspected = Inspected {
            name: "p".to_owned(),
            version: "1".to_owned(),
            contract: "0.1".to_owned(),
            digest: "sha256:00".to_owned(),
            size_bytes: 1,
            kinds: Vec::new(),
            converts: false,
            admits: Vec::new(),
            wants,
        };
        let text = people(&inspected);
        assert!(text.contains("a\u{fffd}[2J\u{fffd}b") && !text.contains('\u{1b}'), "{text}");
    }
}
