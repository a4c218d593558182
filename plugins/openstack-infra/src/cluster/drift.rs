//! A look at OpenStack while nothing changes: one cheap read in ten minutes, of one resource after the other.

use std::time::Duration;

use capwasm_sdk::{Context, Problem};

use super::load_balancer;
use super::pass::Pass;
use super::security_groups;
use crate::answer;
use crate::cloud::{Failure, Service, encode};
use crate::load_balancer::{ERROR, LoadBalancer, PENDING_DELETE, Resource as _};
use crate::names::SecurityGroupRole;
use crate::network::{Network, Resource, Router, SecurityGroup};

const PERIOD: Duration = Duration::from_mins(10);

/// What can be looked at, with its id.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    LoadBalancer(String),
    Network(String),
    Router(String),
    Group(SecurityGroupRole, String),
}

/// Key in the status of the period in which something was not as it was made. A recent answer would say so until the
/// period is over, although it was repaired since.
pub const PART: &str = "drift";

/// Whether what is looked at this time is as it was made. What is not is remembered.
pub fn is_as_made(cx: &Context<'_>, pass: &mut Pass<'_>) -> Result<bool, Problem> {
    let period = cx.host.now_ms() / u64::try_from(PERIOD.as_millis()).unwrap_or(u64::MAX);
    let print = period.to_string();
    if pass.status.is_applied(PART, &print) {
        return Ok(true);
    }
    let targets = targets(pass);
    let turn = usize::try_from(period).unwrap_or(0).checked_rem(targets.len());
    let Some(target) = turn.and_then(|turn| targets.get(turn)) else { return Ok(true) };
    let is_as_made = look(pass, target)?;
    if !is_as_made {
        pass.status.set_applied(PART, Some(print));
    }
    Ok(is_as_made)
}

fn look(pass: &Pass<'_>, target: &Target) -> Result<bool, Problem> {
    Ok(match target {
        Target::LoadBalancer(id) => {
            let path = format!("/lbaas/{}/{}", LoadBalancer::MANY, encode(id));
            let found = pass.cloud.find_recent(Service::LoadBalancer, &path, PERIOD)?;
            let found = found.map(|found| {
                answer::decode_member::<LoadBalancer>(&pass.cloud, Service::LoadBalancer, found, LoadBalancer::ONE)
            });
            found
                .transpose()?
                .is_some_and(|found| ![ERROR, PENDING_DELETE].contains(&found.provisioning_status.as_str()))
        }
        Target::Network(id) => read::<Network>(pass, id)?.is_some(),
        Target::Router(id) => read::<Router>(pass, id)?.is_some_and(|router| {
            let external = pass.status.external_network.as_ref().map(|external| external.id.as_str());
            let has = router.external_gateway_info.as_ref().map(|gateway| gateway.network_id.as_str());
            // The gateway of somebody else's router is somebody else's.
            pass.spec.router().is_ok_and(|named| named.is_some()) || has == external
        }),
        Target::Group(role, id) => {
            read::<SecurityGroup>(pass, id)?.is_some_and(|group| security_groups::is_as_wanted(pass, *role, &group))
        }
    })
}

fn targets(pass: &Pass<'_>) -> Vec<Target> {
    let status = &pass.status;
    let balancer = load_balancer::known(status).filter(|_| pass.spec.load_balancer().is_some());
    let group =
        |role, named: &Option<super::status::Named>| named.as_ref().map(|named| Target::Group(role, named.id.clone()));
    let all = [
        balancer.map(|balancer| Target::LoadBalancer(balancer.id.clone())),
        status.network.as_ref().map(|network| Target::Network(network.id.clone())),
        status.router.as_ref().map(|router| Target::Router(router.id.clone())),
        group(SecurityGroupRole::ControlPlane, &status.control_plane_security_group),
        group(SecurityGroupRole::Worker, &status.worker_security_group),
        group(SecurityGroupRole::Bastion, &status.bastion_security_group),
    ];
    all.into_iter().flatten().collect()
}

fn read<T: Resource>(pass: &Pass<'_>, id: &str) -> Result<Option<T>, Failure> {
    let path = format!("/{}/{}", T::PATH, encode(id));
    let found = pass.cloud.find_recent(Service::Network, &path, PERIOD)?;
    found.map(|found| answer::decode_member::<T>(&pass.cloud, Service::Network, found, T::ONE)).transpose()
}
