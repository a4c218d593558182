//! The managed security groups: made, and their rules repaired.

use capwasm_sdk::{Context, Problem};
use serde_json::json;

use super::events::{self, Act};
use super::pass::{Pass, pick};
use super::rules::{self, GroupIds};
use super::status::Named;
use crate::cloud::{Cloud, Failure, Query};
use crate::names::{ClusterNames, SecurityGroupRole};
use crate::network::{self, Rule, SecurityGroup};

/// Brings groups and rules nearer to what is wanted. Those that are not wanted any more go with the cluster, because
/// machines may still be in them.
pub fn reconcile(cx: &mut Context<'_>, pass: &mut Pass<'_>) -> Result<(), Problem> {
    let Some(managed) = pass.spec.managed_security_groups.clone() else {
        remember(pass, &[]);
        return Ok(());
    };
    let mut found = all(&pass.cloud, &pass.names)?;
    let mut groups = Vec::new();
    for role in roles(pass) {
        let name = pass.names.security_group(role);
        let (ours, others) = found.into_iter().partition(|group| group.name == name);
        found = others;
        groups.push((role, group(cx, pass, role, &name, ours)?));
    }
    remember(pass, &groups);
    let ids = ids(&groups);
    for (role, group) in &groups {
        let wanted = rules::wanted(*role, &pass.spec, &managed, &ids, pass.status.cidrs())?;
        repair(cx, pass, group, &rules::compare(&group.security_group_rules, &wanted))?;
    }
    Ok(())
}

/// Whether a group has the rules that it should have, for a look in between.
pub fn is_as_wanted(pass: &Pass<'_>, role: SecurityGroupRole, group: &SecurityGroup) -> bool {
    let Some(managed) = &pass.spec.managed_security_groups else { return true };
    let id = |named: &Option<Named>| named.as_ref().map(|named| named.id.clone());
    let ids = GroupIds {
        control_plane: id(&pass.status.control_plane_security_group).unwrap_or_default(),
        worker: id(&pass.status.worker_security_group).unwrap_or_default(),
        bastion: id(&pass.status.bastion_security_group),
    };
    let wanted = rules::wanted(role, &pass.spec, managed, &ids, pass.status.cidrs());
    wanted.is_ok_and(|wanted| rules::compare(&group.security_group_rules, &wanted).is_empty())
}

/// All groups with names of this cluster, in one call: Neutron takes any of several values of one parameter.
pub fn all(cloud: &Cloud<'_>, names: &ClusterNames) -> Result<Vec<SecurityGroup>, Failure> {
    let query =
        SecurityGroupRole::ALL.iter().fold(Query::new(), |query, role| query.with("name", names.security_group(*role)));
    let mut found: Vec<SecurityGroup> = network::list(cloud, &query.with("project_id", cloud.project_id()))?;
    found.retain(|group| SecurityGroupRole::ALL.iter().any(|role| group.name == names.security_group(*role)));
    Ok(found)
}

fn roles(pass: &Pass<'_>) -> Vec<SecurityGroupRole> {
    let mut roles = vec![SecurityGroupRole::ControlPlane, SecurityGroupRole::Worker];
    if pass.spec.bastion().is_some() {
        roles.push(SecurityGroupRole::Bastion);
    }
    roles
}

fn group(
    cx: &mut Context<'_>,
    pass: &Pass<'_>,
    role: SecurityGroupRole,
    name: &str,
    found: Vec<SecurityGroup>,
) -> Result<SecurityGroup, Problem> {
    let known = match role {
        SecurityGroupRole::ControlPlane => &pass.status.control_plane_security_group,
        SecurityGroupRole::Worker => &pass.status.worker_security_group,
        SecurityGroupRole::Bastion => &pass.status.bastion_security_group,
    };
    let mut group = match pick(found, known.as_ref().map_or("", |named| named.id.as_str()), |one| &one.id) {
        Some(found) => found,
        None => {
            let fields = json!({"name": name, "description": pass.names.description()});
            let made = network::create::<SecurityGroup>(&pass.cloud, fields)
                .map_err(|failure| events::failed(cx, Act::Create, events::SECURITY_GROUP, name, failure))?;
            events::done(cx, Act::Create, events::SECURITY_GROUP, name, &made.id);
            made
        }
    };
    group.tags = pass.tag::<SecurityGroup>(&group.id, &group.tags)?;
    Ok(group)
}

fn ids(groups: &[(SecurityGroupRole, SecurityGroup)]) -> GroupIds {
    let id = |role| groups.iter().find(|(known, _)| *known == role).map(|(_, group)| group.id.clone());
    GroupIds {
        control_plane: id(SecurityGroupRole::ControlPlane).unwrap_or_default(),
        worker: id(SecurityGroupRole::Worker).unwrap_or_default(),
        bastion: id(SecurityGroupRole::Bastion),
    }
}

fn remember(pass: &mut Pass<'_>, groups: &[(SecurityGroupRole, SecurityGroup)]) {
    let named = |role| {
        let group = groups.iter().find(|(known, _)| *known == role);
        group.map(|(_, group)| Named { id: group.id.clone(), name: group.name.clone() })
    };
    pass.status.control_plane_security_group = named(SecurityGroupRole::ControlPlane);
    pass.status.worker_security_group = named(SecurityGroupRole::Worker);
    pass.status.bastion_security_group = named(SecurityGroupRole::Bastion);
}

fn repair(cx: &mut Context<'_>, pass: &Pass<'_>, group: &SecurityGroup, change: &rules::Change) -> Result<(), Problem> {
    for id in &change.surplus {
        network::delete::<Rule>(&pass.cloud, id)
            .map_err(|failure| events::failed(cx, Act::Update, events::SECURITY_GROUP, &group.name, failure))?;
    }
    if !change.missing.is_empty() {
        let rules = change.missing.iter().map(|rule| rule.fields(&group.id)).collect();
        network::create_all::<Rule>(&pass.cloud, rules)
            .map_err(|failure| events::failed(cx, Act::Update, events::SECURITY_GROUP, &group.name, failure))?;
    }
    Ok(())
}
