//! Names of Machines.

use capwasm_api::kinds::MachineSet;
use capwasm_api::names::{child_name, suffix};

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
