//! The Secret that an identity stands for, and who may use it.

use capwasm_sdk::{Host, ObjectRef, Optional, Problem, Refusal, Refused, object, selector};
use serde_json::Value;

use super::failure::UNAUTHENTICATED;
use crate::identity::{IdentityKind, IdentityRef};
use crate::kinds::V1ALPHA1;

/// The key of `clouds.yaml`.
const CLOUDS: &str = "clouds.yaml";
/// The key of a CA for the cloud's own endpoints.
const CA: &str = "cacert";

/// Content of the Secret that an identity names.
pub struct Credentials {
    /// Content of `clouds.yaml`, not parsed.
    pub clouds: Vec<u8>,
    /// Content of `cacert`, PEM.
    pub ca: Option<String>,
}

/// Reads the Secret of an identity on behalf of an object in `namespace`.
///
/// # Errors
/// Waiting for what is not there yet; invalid for a namespace that may not use the identity.
pub fn read(host: &dyn Host, namespace: &str, identity: &IdentityRef) -> Result<Credentials, Problem> {
    let (at, keys) = match identity.kind {
        IdentityKind::Secret => (identity.name.clone(), host.secret_keys(&identity.name, &[CLOUDS, CA])),
        IdentityKind::ClusterIdentity => {
            let shared = cluster_identity(host, namespace, &identity.name)?;
            let (in_namespace, name) =
                (object::text(&shared, "/spec/secretRef/namespace"), object::text(&shared, "/spec/secretRef/name"));
            let key = |key: &str| host.secret_in(in_namespace, name, key).optional();
            (format!("{in_namespace}/{name}"), key(CLOUDS).and_then(|clouds| Ok(vec![clouds, key(CA)?])))
        }
    };
    let mut keys = keys.optional().map_err(|refused| unreadable(&at, refused))?.unwrap_or_default().into_iter();
    let (clouds, ca) = (keys.next().flatten(), keys.next().flatten());
    let clouds = clouds.ok_or_else(|| waiting(format!("Secret {at} with the key {CLOUDS} is not there")))?;
    let ca = ca.map(String::from_utf8).transpose();
    let ca = ca.map_err(|_| Problem::invalid("InvalidCACertificate", format!("{CA} in Secret {at} is not PEM")))?;
    Ok(Credentials { clouds, ca: ca.filter(|pem| !pem.trim().is_empty()) })
}

/// An OpenStackClusterIdentity that the namespace may use.
fn cluster_identity(host: &dyn Host, namespace: &str, name: &str) -> Result<Value, Problem> {
    let target = ObjectRef::new(V1ALPHA1, "OpenStackClusterIdentity", name);
    let identity = host.lookup(&target).optional().map_err(|refused| unreadable(name, refused))?;
    let identity = identity.ok_or_else(|| waiting(format!("OpenStackClusterIdentity {name} is not there")))?;
    let Some(allowed) = identity.pointer("/spec/namespaceSelector").filter(|allowed| !selector::is_empty(allowed))
    else {
        return Ok(identity);
    };
    let own =
        host.lookup(&ObjectRef::new("v1", "Namespace", namespace)).map_err(|refused| unreadable(namespace, refused))?;
    if selector::selects(allowed, own.pointer("/metadata/labels")) {
        return Ok(identity);
    }
    let message = format!("OpenStackClusterIdentity {name} does not select namespace {namespace}");
    Err(Problem::invalid("IdentityNotAllowed", message))
}

fn waiting(message: String) -> Problem {
    Problem::waiting("WaitingForCredentials", message)
}

fn unreadable(what: &str, refused: Refused) -> Problem {
    let message = format!("unable to read {what}: {}", refused.message);
    match refused.refusal {
        Refusal::Denied => Problem::terminal(
            UNAUTHENTICATED,
            format!(
                "{message}; start the host with --openstack-identity-namespace, or add the namespace to \
                 spec.grants.namespaces of WasmProvider openstack-infra"
            ),
        ),
        Refusal::NotFound => waiting(message),
        _ => Problem::transient(UNAUTHENTICATED, message),
    }
}
