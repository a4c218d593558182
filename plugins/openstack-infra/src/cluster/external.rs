//! The external network: where floating IPs and the router's gateway are.

use capwasm_sdk::Problem;

use super::pass::Pass;
use super::status::Tagged;
use crate::cloud::Query;
use crate::network::{self, Network};
use crate::param::Param;

/// Finds it: the named one, or the only one, or none.
pub fn find(pass: &mut Pass<'_>) -> Result<(), Problem> {
    pass.status.external_network = None;
    if pass.spec.disable_external_network {
        return Ok(());
    }
    let external = Query::new().with("router:external", "true");
    let found = match Param::read(&pass.spec.external_network, "spec.externalNetwork")? {
        Some(param) => {
            let found = network::one::<Network>(&pass.cloud, &param, &external);
            Some(found.map_err(|problem| problem.context("spec.externalNetwork"))?)
        }
        None => only(network::list(&pass.cloud, &external)?)?,
    };
    pass.status.external_network = found.map(|found| Tagged { id: found.id, name: found.name, tags: found.tags });
    Ok(())
}

/// Nobody said which: then there may be one at most.
fn only(found: Vec<Network>) -> Result<Option<Network>, Problem> {
    if found.len() > 1 {
        let names: Vec<String> = found.iter().map(|network| format!("{} ({})", network.name, network.id)).collect();
        let message =
            format!("there are several external networks: {}; name one in spec.externalNetwork", names.join(", "));
        return Err(Problem::invalid("SeveralExternalNetworks", message));
    }
    Ok(found.into_iter().next())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn without_a_name_there_may_be_one_at_most() {
        let network = |id: &str| Network { id: id.to_owned(), ..Network::default() };
        assert_eq!(only(vec![]).unwrap(), None);
        assert_eq!(only(vec![network("a")]).unwrap().unwrap().id, "a");
        assert_eq!(only(vec![network("a"), network("b")]).unwrap_err().reason, "SeveralExternalNetworks");
    }
}
