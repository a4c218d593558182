//! The bootstrap provider {{name}}.
//!
//! The host calls these functions whenever the object, or something that they read, changed; and again from the start after a crash.

mod kinds;
#[cfg(test)]
mod tests;

use capwasm_sdk::descriptor::{Descriptor, Role};
use capwasm_sdk::{Bootstrap, BootstrapData, Context, Description, Format, Kind, Problem, Provider, object};
use kinds::Spec;
use serde_json::{Value, json};

/// The provider.
pub struct {{Name}};

impl Provider for {{Name}} {
    fn describe() -> Descriptor {
        Description::new("{{name}}", env!("CARGO_PKG_VERSION"))
            .kind(Kind::new(Role::Bootstrap, include_str!("../crds/{{lower}}configs.json")))
            .kind(Kind::new(Role::Template, include_str!("../crds/{{lower}}configtemplates.json")))
            .build()
    }
}

impl Bootstrap for {{Name}} {
    fn generate(cx: &mut Context<'_>, config: &Value) -> Result<Option<BootstrapData>, Problem> {
        let spec: Spec = object::spec(config)?;
        let Some(cluster) = cx.related_one("cluster") else {
            return Err(Problem::waiting("ClusterNotFound", "the Cluster is not there yet"));
        };
        let document = document(&spec, object::name(&cluster));
        // The host puts it into a Secret, and never changes what a machine was made with.
        Ok(Some(BootstrapData { format: Format::CloudConfig, value: document.into_bytes() }))
    }

    fn release(_: &mut Context<'_>, _: &Value) -> Result<bool, Problem> {
        Ok(true)
    }
}

/// What cloud-init reads. JSON is YAML, too, and needs no quoting by hand.
fn document(spec: &Spec, cluster: &str) -> String {
    let environment = json!({"path": "/etc/cluster", "content": format!("CLUSTER={cluster}\n")});
    format!("#cloud-config\n{:#}\n", json!({"write_files": [environment], "runcmd": spec.commands}))
}

capwasm_sdk::export_bootstrap_provider!({{Name}});
