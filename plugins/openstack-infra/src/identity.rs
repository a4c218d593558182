//! `spec.identityRef`: whose credentials an object uses.

use capwasm_sdk::{Context, Host, Problem, object};
use serde_json::Value;

use crate::cloud::Cloud;
use crate::kinds::AUTHENTICATED;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdentityKind {
    /// A Secret in the object's namespace.
    Secret,
    /// An OpenStackClusterIdentity, which names a Secret in a namespace of its own.
    ClusterIdentity,
}

/// The `identityRef` of a spec.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdentityRef {
    pub kind: IdentityKind,
    /// Of the Secret or OpenStackClusterIdentity.
    pub name: String,
    /// The entry of `clouds.yaml`.
    pub cloud_name: String,
    /// Instead of the entry's own region.
    pub region: Option<String>,
}

impl IdentityRef {
    /// From `spec.identityRef`.
    ///
    /// # Errors
    /// Invalid: there is none, or it is not complete.
    pub fn read(spec: &Value) -> Result<IdentityRef, Problem> {
        let text = |at: &str| object::text(spec, &format!("/identityRef/{at}")).to_owned();
        let kind = match text("type").as_str() {
            "" | "Secret" => IdentityKind::Secret,
            "ClusterIdentity" => IdentityKind::ClusterIdentity,
            other => return Err(invalid(format!("spec.identityRef.type is {other:?}: use Secret or ClusterIdentity"))),
        };
        let (name, cloud_name) = (text("name"), text("cloudName"));
        if name.is_empty() || cloud_name.is_empty() {
            return Err(invalid("spec.identityRef needs name and cloudName".to_owned()));
        }
        Ok(IdentityRef { kind, name, cloud_name, region: Some(text("region")).filter(|region| !region.is_empty()) })
    }
}

/// Connects as the object says, and says in a condition how that went.
///
/// # Errors
/// What the object, the credentials or the cloud lack.
pub fn connect<'a>(cx: &mut Context<'a>, object: &Value) -> Result<Cloud<'a>, Problem> {
    let identity = IdentityRef::read(object.get("spec").unwrap_or(&Value::Null))?;
    let host: &'a dyn Host = cx.host;
    match Cloud::connect(host, object::namespace(object), &identity) {
        Ok(cloud) => {
            cx.out.condition(AUTHENTICATED, Some(true), "Ready", "");
            Ok(cloud)
        }
        Err(problem) => {
            cx.out.condition(AUTHENTICATED, Some(false), &problem.reason, problem.message.clone());
            Err(problem)
        }
    }
}

fn invalid(message: String) -> Problem {
    Problem::invalid("InvalidIdentityRef", message)
}
