//! The control-plane provider {{name}}.
//!
//! The host calls these functions whenever the object, or something that they read, changed; and again from the start after a crash.

mod kinds;
#[cfg(test)]
mod tests;

use capwasm_sdk::descriptor::{Descriptor, Role};
use capwasm_sdk::{Context, ControlPlane, ControlPlaneAnswer, Description, Kind, Problem, Provider, object};
use kinds::Spec;
use serde_json::Value;

/// The provider.
pub struct {{Name}};

impl Provider for {{Name}} {
    fn describe() -> Descriptor {
        Description::new("{{name}}", env!("CARGO_PKG_VERSION"))
            .kind(
                Kind::new(Role::ControlPlane, include_str!("../crds/{{lower}}controlplanes.json"))
                    .finalizer("{{lower}}controlplane.controlplane.cluster.x-k8s.io"),
            )
            .secret("*-kubeconfig")
            .build()
    }
}

impl ControlPlane for {{Name}} {
    fn reconcile(cx: &mut Context<'_>, plane: &Value) -> Result<ControlPlaneAnswer, Problem> {
        let spec: Spec = object::spec(plane)?;
        let Some(cluster) = cx.related_one("cluster") else {
            return Err(Problem::waiting("ClusterNotFound", "the Cluster is not there yet"));
        };
        // Absent, it is waited for: having asked for it is enough to be called again when it appears.
        let secret = format!("{}-kubeconfig", object::name(&cluster));
        let key = spec.key.as_deref().unwrap_or("value");
        cx.host.secret(&secret, key).map_err(|refused| Problem::from(refused).context("the kubeconfig"))?;
        cx.out.condition("Available", Some(true), "Available", "");
        Ok(ControlPlaneAnswer {
            initialized: true,
            version: (!spec.version.is_empty()).then_some(spec.version),
            ..ControlPlaneAnswer::default()
        })
    }

    fn delete(_: &mut Context<'_>, _: &Value) -> Result<bool, Problem> {
        Ok(true)
    }
}

capwasm_sdk::export_control_plane_provider!({{Name}});
