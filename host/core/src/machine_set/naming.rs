//! Names of Machines.

use std::collections::HashSet;
use std::sync::Arc;

use capwasm_api::kinds::MachineSet;
use capwasm_api::names::{annotations, child_name, next_slot, suffix};
use capwasm_object::meta;
use serde_json::Value;

use super::decide::BATCH;

/// In how many of the latest slots a Machine is looked for by name in every pass.
const LOOKED_FOR: usize = 16;
/// The same before Machines are made, or when all have to go.
const LOOKED_FOR_BEFORE: usize = 1024;

/// Names of Machines that the set has made, and that are not among those found by owner and label: a Machine that lost both
/// still has its name. A set that is short also looks in the next slots: the pass before may have filled them.
pub(super) fn unseen_names(set: &MachineSet, found: &[Arc<Value>]) -> Vec<String> {
    let seen: HashSet<&str> = found.iter().map(|machine| meta::name(machine)).collect();
    let used = found.iter().filter_map(|machine| meta::annotation(machine, annotations::SLOT));
    let next = next_slot(set.metadata.annotations.get(annotations::NEXT_SLOT).map(String::as_str), used);
    let wanted = set.spec.replicas.and_then(|wanted| usize::try_from(wanted).ok()).unwrap_or(1);
    let is_short = found.len() < wanted || set.metadata.is_deleting();
    let (end, most) = if is_short { (next + BATCH as u64, LOOKED_FOR_BEFORE) } else { (next, LOOKED_FOR) };
    let names = (0..end).rev().map(|slot| machine_name(set, &slot.to_string()));
    names.filter(|name| !seen.contains(name.as_str())).take(most).collect()
}

/// Name of the Machine in a slot: by `spec.machineNaming.template`, or the set's name and a suffix.
pub(super) fn machine_name(set: &MachineSet, slot: &str) -> String {
    let (name, uid) = (set.metadata.name.as_str(), set.metadata.uid.as_str());
    match &set.spec.machine_naming.template {
        None => child_name(name, uid, slot),
        Some(template) => render(template, &set.spec.cluster_name, name, &suffix(uid, slot)),
    }
}

/// Replaces `{{ .cluster.name }}`, `{{ .machineSet.name }}` and `{{ .random }}`; other expressions become empty. A long
/// result is cut before the random part, which upstream puts last.
fn render(template: &str, cluster: &str, set: &str, random: &str) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let Some((variable, after)) = after.split_once("}}") else { break };
        out.push_str(match variable.trim() {
            ".cluster.name" => cluster,
            ".machineSet.name" => set,
            ".random" => random,
            _ => "",
        });
        rest = after;
    }
    out.push_str(rest);
    if out.len() <= 63 {
        return out;
    }
    let mut cut: String = out.chars().take(63 - random.len()).collect();
    cut.push_str(random);
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_names_machines() {
        for (template, expected) in [
            ("{{ .machineSet.name }}-{{ .random }}", "ms-abcde"),
            ("{{.cluster.name}}-x-{{.random}}", "c-x-abcde"),
            ("n{{ .unknown }}-{{ .random }}", "n-abcde"),
        ] {
            assert_eq!(render(template, "c", "ms", "abcde"), expected);
        }
        let long = render("{{ .machineSet.name }}-{{ .random }}", "c", &"m".repeat(80), "abcde");
        assert_eq!(long.len(), 63);
        assert!(long.ends_with("abcde"));
    }
}
