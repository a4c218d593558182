//! Tree of objects with a summarising condition each.

use capwasm_api::conditions::Condition;
use capwasm_object::{json, meta};
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

/// An object, or a group of objects.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Relation to its parent, such as `ControlPlane`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// `None` for a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `status.phase`, where the kind has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// `status.conditions`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Value>,
    /// Related objects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Node>,
}

impl Node {
    pub fn of(object: &Value) -> Self {
        Self {
            kind: Some(meta::kind(object).to_owned()),
            name: Some(meta::name(object).to_owned()),
            phase: json::text(object, "/status/phase").map(str::to_owned),
            conditions: json::items(object, "/status/conditions").to_vec(),
            ..Self::default()
        }
    }

    /// A group without children.
    pub fn group(role: &str) -> Self {
        Self { role: Some(role.to_owned()), ..Self::default() }
    }

    /// Sets the relation to its parent.
    pub fn labelled(mut self, role: &str) -> Self {
        self.role = Some(role.to_owned());
        self
    }

    fn title(&self) -> String {
        let object = match (&self.kind, &self.name) {
            (Some(kind), Some(name)) => Some(format!("{kind}/{name}")),
            _ => None,
        };
        match (&self.role, object) {
            (Some(role), Some(object)) => format!("{role} - {object}"),
            (Some(role), None) => role.clone(),
            (None, object) => object.unwrap_or_default(),
        }
    }

    fn condition(&self, name: &str) -> Option<Condition> {
        self.conditions.iter().filter_map(Condition::from_value).find(|condition| condition.name == name)
    }

    /// `Available` of clusters, control planes and deployments; `Ready` of others.
    fn summary(&self) -> Option<Condition> {
        let order = if matches!(self.kind.as_deref(), Some("Machine")) {
            ["Ready", "Available"]
        } else {
            ["Available", "Ready"]
        };
        order.iter().find_map(|name| self.condition(name))
    }
}

pub fn render(root: &Node, all_conditions: bool, now: Timestamp) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(["NAME", "CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"]);
    row(&mut table, root, "", "", all_conditions, now);
    let text = table.to_string();
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn row(table: &mut Table, node: &Node, first: &str, rest: &str, all: bool, now: Timestamp) {
    add(table, &format!("{first}{}", node.title()), node.summary().as_ref(), now);
    let branches = !node.children.is_empty();
    if all {
        for condition in node.conditions.iter().filter_map(Condition::from_value) {
            add(
                table,
                &format!("{rest}{}  {}", if branches { "│" } else { " " }, condition.name),
                Some(&condition),
                now,
            );
        }
    }
    for (index, child) in node.children.iter().enumerate() {
        let (branch, below) = if index + 1 == node.children.len() { ("└─", "  ") } else { ("├─", "│ ") };
        row(table, child, &format!("{rest}{branch}"), &format!("{rest}{below}"), all, now);
    }
}

fn add(table: &mut Table, title: &str, condition: Option<&Condition>, now: Timestamp) {
    let Some(condition) = condition else {
        table.add_row([title]);
        return;
    };
    let since = condition.since().map(|since| age(now, since)).unwrap_or_default();
    let message = condition.message.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    table.add_row([title, &condition.name, condition.status.as_str(), &condition.reason, &since, &message]);
}

/// Time since, as kubectl prints it.
fn age(now: Timestamp, since: Timestamp) -> String {
    let seconds = (now.as_second() - since.as_second()).max(0);
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=7199 => format!("{}m", seconds / 60),
        7200..=172_799 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use serde_json::json;

    fn object(kind: &str, condition: &str, status: &str) -> Value {
        json!({"kind": kind, "metadata": {"name": "a"}, "status": {"conditions": [
            {"type": "Paused", "status": "False", "reason": "NotPaused", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"type": condition, "status": status, "reason": "Because", "message": "two\n  lines", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
    }

    #[test]
    fn a_tree_shows_each_object_with_the_condition_that_sums_it_up() {
        let mut root = Node::of(&object("Cluster", "Available", "True"));
        let mut workers = Node::group("Workers");
        workers.children.push(Node::of(&object("Machine", "Ready", "False")));
        root.children.push(Node::of(&object("DockerCluster", "Ready", "True")).labelled("ClusterInfrastructure"));
        root.children.push(workers);
        let text = render(&root, false, "2026-01-01T00:03:00Z".parse().unwrap());
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert!(
            lines[1].starts_with("Cluster/a") && lines[1].contains("Available") && lines[1].contains("3m"),
            "{text}"
        );
        assert!(lines[2].starts_with("├─ClusterInfrastructure - DockerCluster/a"), "{text}");
        assert!(lines[3].starts_with("└─Workers"), "{text}");
        assert!(lines[4].starts_with("└─Machine/a") && lines[4].contains("two lines"), "{text}");
        assert_eq!(render(&root, true, Timestamp::now()).lines().filter(|line| line.contains("NotPaused")).count(), 3);
    }
}
