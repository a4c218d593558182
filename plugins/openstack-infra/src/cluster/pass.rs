//! What one call is about, and what it found out so far.

use std::time::Duration;

use capwasm_sdk::{Context, Problem, object};
use serde_json::Value;

use super::spec::Spec;
use super::status::Status;
use crate::cloud::Cloud;
use crate::identity::IdentityRef;
use crate::kinds::{AUTHENTICATED, CLUSTER_NAME_LABEL};
use crate::names::ClusterNames;
use crate::network::{self, Resource};

/// Reason of conditions that are true, upstream's.
pub const READY: &str = "Ready";
/// The longest pause between two looks at something that OpenStack is at.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// An OpenStackCluster in a project.
pub struct Pass<'a> {
    pub object: &'a Value,
    pub spec: Spec,
    pub cluster: String,
    pub names: ClusterNames,
    pub cloud: Cloud<'a>,
    /// As it was, and as it will be written.
    pub status: Status,
}

impl<'a> Pass<'a> {
    /// Reads the object, and connects to its project.
    ///
    /// # Errors
    /// Without an owner, with a spec of another shape, with credentials that are not there or not accepted.
    pub fn begin<'h: 'a>(cx: &mut Context<'h>, object: &'a Value) -> Result<Pass<'a>, Problem> {
        let cluster = cluster_name(cx, object)
            .ok_or_else(|| Problem::waiting("WaitingForCluster", "no Cluster owns this object yet"))?;
        let spec: Spec = object::spec(object)?;
        let namespace = object::namespace(object);
        let connected = IdentityRef::read(object.get("spec").unwrap_or(&Value::Null))
            .and_then(|identity| Cloud::connect(cx.host, namespace, &identity));
        let cloud = match connected {
            Ok(cloud) => cloud,
            Err(problem) => {
                cx.out.condition(AUTHENTICATED, Some(false), &problem.reason, problem.message.clone());
                return Err(problem);
            }
        };
        cx.out.condition(AUTHENTICATED, Some(true), READY, "");
        let names = ClusterNames::new(namespace, &cluster);
        Ok(Pass { object, spec, cluster, names, cloud, status: Status::of(object) })
    }

    /// Gives a resource the tags of the spec; it keeps those that others gave it.
    pub fn tag<T: Resource>(&self, id: &str, has: &[String]) -> Result<Vec<String>, Problem> {
        let Some(tags) = with_missing(has, &self.spec.tags) else { return Ok(has.to_vec()) };
        network::set_tags::<T>(&self.cloud, id, &tags)?;
        Ok(tags)
    }
}

/// The owner's name; while it is out of sight as its reference says, or the label.
pub fn cluster_name(cx: &Context<'_>, object: &Value) -> Option<String> {
    let owner = cx.related_one("cluster").map(|cluster| object::name(&cluster).to_owned());
    let references = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let referenced = references.into_iter().flatten().find(|reference| object::text(reference, "/kind") == "Cluster");
    owner
        .or_else(|| referenced.map(|reference| object::text(reference, "/name").to_owned()))
        .or_else(|| object::label(object, CLUSTER_NAME_LABEL).map(str::to_owned))
        .filter(|name| !name.is_empty())
}

/// All tags, where some of the wanted ones are missing.
fn with_missing(has: &[String], wanted: &[String]) -> Option<Vec<String>> {
    let mut all = has.to_vec();
    for tag in wanted {
        if !all.contains(tag) {
            all.push(tag.clone());
        }
    }
    (all.len() > has.len()).then_some(all)
}

/// Of several that have the name of one: the known one, or the one with the first id.
pub fn pick<T>(found: Vec<T>, known: &str, id: impl Fn(&T) -> &str) -> Option<T> {
    found.into_iter().min_by(|one, other| (id(one) != known, id(one)).cmp(&(id(other) != known, id(other))))
}

/// How long to wait for something that OpenStack is at: growing with the tries, from one second.
pub fn pause(attempt: u32) -> Duration {
    let steps = attempt.saturating_sub(1).min(12);
    Duration::from_millis(1000 * 3_u64.pow(steps) / 2_u64.pow(steps)).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_quarter_of_a_minute() {
        assert_eq!([1, 2, 3].map(|attempt| pause(attempt).as_millis()), [1000, 1500, 2250]);
        assert_eq!([0, 9, 400].map(pause), [Duration::from_secs(1), LONGEST_PAUSE, LONGEST_PAUSE]);
    }

    #[test]
    fn tags_are_added_to_those_of_others() {
        let tags = |tags: &[&str]| tags.iter().map(|&tag| tag.to_owned()).collect::<Vec<_>>();
        assert_eq!(with_missing(&tags(&["a"]), &tags(&["b", "a"])), Some(tags(&["a", "b"])));
        assert_eq!(with_missing(&tags(&["a", "x"]), &tags(&["a"])), None);
    }
}
