//! Finding what is there: by a spec's `id | filter`, and by the names that this provider gives.

use std::time::Duration;

use capwasm_sdk::Problem;

use super::{Resource, get, list};
use crate::cloud::{Cloud, Failure, Query};
use crate::param::Param;

/// Reason of the problem that nothing is what a spec means.
pub const NO_MATCH: &str = "FilterMatchesNothing";

/// Between two looks for what is not there.
const NEXT_LOOK: Duration = Duration::from_secs(60);

/// The one resource that a spec means; `among` narrows a filter further (`network_id`).
///
/// # Errors
/// Invalid when there is none or more than one: somebody has to make it, or be more exact.
pub fn one<T: Resource>(cloud: &Cloud<'_>, param: &Param, among: &Query) -> Result<T, Problem> {
    match param {
        Param::Id(id) => get::<T>(cloud, id)?.ok_or_else(|| none::<T>(&format!("with the id {id}"))),
        Param::Filter(filter) => {
            let query = filter.network_query().and(among);
            let mut found = list::<T>(cloud, &query)?;
            match (found.len(), found.pop()) {
                (1, Some(only)) => Ok(only),
                (0, _) | (_, None) => Err(none::<T>("that the filter matches")),
                (many, _) => Err(Problem::invalid(
                    "FilterMatchesSeveral",
                    format!("the filter matches {many} {}s, and should match one", T::WHAT),
                )),
            }
        }
    }
}

/// All of this project that have exactly this name.
pub fn named<T: Resource>(cloud: &Cloud<'_>, name: &str) -> Result<Vec<T>, Failure> {
    list::<T>(cloud, &Query::new().with("name", name).with("project_id", cloud.project_id()))
}

fn none<T: Resource>(which: &str) -> Problem {
    // Somebody may make it yet, and nothing tells us when.
    Problem::invalid(NO_MATCH, format!("there is no {} {which}", T::WHAT)).retry_after(NEXT_LOOK)
}
