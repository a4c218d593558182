//! Options for grants of openstack-infra: no provider can know the addresses of a user's cloud.

use capwasm_runtime::{Grants, Origin};
use capwasm_server::bundle::OPENSTACK as PROVIDER;
use clap::Args;

/// Grants of openstack-infra that are not there unless the operator says so. Without any it reaches no cloud.
#[derive(Args, Clone, Debug, Default)]
#[group(skip)]
pub struct Options {
    /// Let openstack-infra reach the services of an OpenStack cloud at this origin: `https://cloud.example:5000`,
    /// `https://*.cloud.example:*`. Once for each. An address of this machine or its links has to be named by itself.
    #[arg(long = "openstack-origin", value_name = "ORIGIN")]
    pub origins: Vec<Origin>,
    /// Let openstack-infra leave TLS unverified where `verify: false` stands in a clouds.yaml.
    #[arg(long = "openstack-insecure-tls")]
    pub insecure_tls: bool,
    /// Let openstack-infra reach this namespace for objects of others: credentials that an OpenStackClusterIdentity names there.
    /// `*` is every namespace.
    #[arg(long = "openstack-identity-namespace", value_name = "NAMESPACE")]
    pub namespaces: Vec<String>,
}

impl Options {
    /// As grants, by the provider's name.
    pub fn grants(&self) -> (String, Grants) {
        let grants = Grants {
            origins: self.origins.clone(),
            insecure_tls: self.insecure_tls,
            namespaces: self.namespaces.clone(),
            ..Grants::default()
        };
        (PROVIDER.to_owned(), grants)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        openstack: Options,
    }

    #[test]
    fn nothing_is_granted_that_was_not_said() {
        let none = Command::parse_from(["capwasm"]).openstack.grants();
        assert_eq!(none, (PROVIDER.to_owned(), Grants::default()));
        let line = "capwasm --openstack-origin https://a.example:5000 --openstack-origin http://127.0.0.1:* \
                    --openstack-insecure-tls --openstack-identity-namespace clouds";
        let (_, said) = Command::parse_from(line.split_whitespace()).openstack.grants();
        let origins: Vec<Origin> =
            ["https://a.example:5000", "http://127.0.0.1:*"].map(|o| o.parse().unwrap()).to_vec();
        assert_eq!((said.origins, said.insecure_tls, said.namespaces), (origins, true, vec!["clouds".to_owned()]));
        assert!(Command::try_parse_from(["capwasm", "--openstack-origin", "cloud.example"]).is_err(), "no scheme");
    }
}
