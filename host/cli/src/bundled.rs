//! Options of the providers that come with this binary.

use std::path::PathBuf;

use anyhow::{Result, bail};
use capwasm_server::bundle;
use clap::Args;
use clap::builder::PossibleValuesParser;

const ALL: &str = "all";
const NONE: &str = "none";

/// Which bundled providers a host installs, and where their components are.
#[derive(Args, Clone, Debug)]
#[group(skip)]
pub struct Options {
    /// Folder with components. Default: `plugins` beside the binary.
    #[arg(long)]
    provider_dir: Option<PathBuf>,
    /// Bundled providers to install, separated by commas: with `none`, core runs alone. A provider that is installed serves for as long as
    /// its WasmProvider is there.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = ALL, value_parser = names())]
    providers: Vec<String>,
}

fn names() -> PossibleValuesParser {
    [ALL, NONE].into_iter().chain(bundle::BUNDLED).collect::<Vec<_>>().into()
}

impl Options {
    /// The folder with components.
    pub fn folder(&self) -> Result<PathBuf> {
        bundle::provider_dir(self.provider_dir.clone())
    }

    /// Names of the chosen providers.
    pub fn chosen(&self) -> Result<Vec<String>> {
        chosen(&self.providers)
    }
}

fn chosen(told: &[String]) -> Result<Vec<String>> {
    match told {
        [one] if one == ALL => Ok(bundle::BUNDLED.map(str::to_owned).to_vec()),
        [one] if one == NONE => Ok(Vec::new()),
        names => match names.iter().find(|name| [ALL, NONE].contains(&name.as_str())) {
            Some(alone) => bail!("--providers takes `{alone}` alone, or names of providers"),
            None => Ok(bundle::BUNDLED
                .iter()
                .filter(|name| names.iter().any(|told| told == *name))
                .map(ToString::to_string)
                .collect()),
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn all_none_or_some_are_chosen() {
        let told = |text: &str| chosen(&text.split(',').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(told("all").unwrap(), bundle::BUNDLED);
        assert!(told("none").unwrap().is_empty());
        assert_eq!(told("openstack-infra,docker-infra,docker-infra").unwrap(), ["docker-infra", "openstack-infra"]);
        for wrong in ["none,docker-infra", "all,none", "docker-infra,all"] {
            assert!(told(wrong).unwrap_err().to_string().contains("alone"), "{wrong}");
        }
    }
}
