//! From what a KubeadmConfig says to `kubeadm.k8s.io/v1beta3`, which Kubernetes v1.22 to v1.30 read.
//!
//! Arguments are maps there, and two timeouts stand elsewhere. What it cannot say at all is refused by name, except what
//! changes nothing: a value that is kubeadm's own behaviour, and the lifetime of authorities, which are not kubeadm's.

use capwasm_sdk::Problem;
use serde_json::{Map, Value};

use super::fields::seconds;
use crate::version::{Minor, Version};

const CLUSTER: &str = "spec.clusterConfiguration";

/// A ClusterConfiguration; `init` loses the timeout that has its place here.
pub fn cluster(
    configuration: &mut Map<String, Value>,
    init: &mut Map<String, Value>,
    version: &Version,
) -> Result<(), Problem> {
    for name in ["apiServer", "controllerManager", "scheduler"] {
        if let Some(Value::Object(component)) = configuration.get_mut(name) {
            component_of_v1beta3(component, &format!("{CLUSTER}.{name}"), version)?;
        }
    }
    if let Some(Value::Object(local)) = configuration.get_mut("etcd").and_then(|etcd| etcd.get_mut("local")) {
        component_of_v1beta3(local, &format!("{CLUSTER}.etcd.local"), version)?;
    }
    refuse(configuration, CLUSTER, "certificateValidityPeriodDays", version)?;
    // The authorities are not made by kubeadm, so that their lifetime needs no word to it.
    configuration.remove("caCertificateValidityPeriodDays");
    match configuration.remove("encryptionAlgorithm").as_ref().and_then(Value::as_str) {
        None | Some("RSA-2048") => {}
        Some(algorithm) => {
            return Err(version.lacks(
                &format!("{CLUSTER}.encryptionAlgorithm {algorithm}"),
                Minor::V1BETA4,
                "; its kubeadm makes RSA-2048 keys, or ECDSA keys with the feature gate PublicKeysECDSA",
            ));
        }
    }
    let timeout = init
        .get_mut("timeouts")
        .and_then(Value::as_object_mut)
        .and_then(|timeouts| timeouts.remove("controlPlaneComponentHealthCheckSeconds"));
    if let Some(timeout) = timeout.as_ref().and_then(Value::as_i64)
        && let Value::Object(server) = configuration.entry("apiServer").or_insert_with(|| Value::Object(Map::new()))
    {
        server.insert("timeoutForControlPlane".into(), seconds(timeout));
    }
    Ok(())
}

/// An InitConfiguration, after [`cluster`] took its part.
pub fn init(init: &mut Map<String, Value>, version: &Version) -> Result<(), Problem> {
    registration(init, "spec.initConfiguration", version)?;
    no_timeouts(init, "spec.initConfiguration", version)
}

/// Rewrites a JoinConfiguration into v1beta3, in place.
pub fn join(join: &mut Map<String, Value>, version: &Version) -> Result<(), Problem> {
    registration(join, "spec.joinConfiguration", version)?;
    if let Some(Value::Object(timeouts)) = join.get_mut("timeouts") {
        // A joining member reads this one from the cluster's own configuration.
        timeouts.remove("controlPlaneComponentHealthCheckSeconds");
        let bootstrap = timeouts.remove("tlsBootstrapSeconds");
        if let Some(bootstrap) = bootstrap.as_ref().and_then(Value::as_i64)
            && let Value::Object(discovery) = join.entry("discovery").or_insert_with(|| Value::Object(Map::new()))
        {
            discovery.insert("timeout".into(), seconds(bootstrap));
        }
    }
    no_timeouts(join, "spec.joinConfiguration", version)
}

fn no_timeouts(configuration: &mut Map<String, Value>, at: &str, version: &Version) -> Result<(), Problem> {
    let left = configuration.remove("timeouts");
    match left.as_ref().and_then(Value::as_object).and_then(|timeouts| timeouts.keys().next()) {
        Some(name) => Err(version.lacks(&format!("{at}.timeouts.{name}"), Minor::V1BETA4, "")),
        None => Ok(()),
    }
}

fn component_of_v1beta3(component: &mut Map<String, Value>, at: &str, version: &Version) -> Result<(), Problem> {
    refuse(component, at, "extraEnvs", version)?;
    arguments(component, at, "extraArgs", version)
}

fn registration(configuration: &mut Map<String, Value>, at: &str, version: &Version) -> Result<(), Problem> {
    let Some(Value::Object(registration)) = configuration.get_mut("nodeRegistration") else {
        return Ok(());
    };
    let at = format!("{at}.nodeRegistration");
    // One image after the other is what these versions do.
    if registration.get("imagePullSerial").and_then(Value::as_bool) == Some(true) {
        registration.remove("imagePullSerial");
    }
    refuse(registration, &at, "imagePullSerial", version)?;
    arguments(registration, &at, "kubeletExtraArgs", version)
}

/// `[{name, value}]` becomes `{name: value}`.
fn arguments(fields: &mut Map<String, Value>, at: &str, name: &str, version: &Version) -> Result<(), Problem> {
    let Some(Value::Array(list)) = fields.get(name) else {
        return Ok(());
    };
    let mut map = Map::new();
    for argument in list {
        let key = argument.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let value = argument.get("value").cloned().unwrap_or_else(|| Value::String(String::new()));
        if map.insert(key.clone(), value).is_some() {
            return Err(version.lacks(&format!("{at}.{name} with {key} given twice"), Minor::V1BETA4, ""));
        }
    }
    fields.insert(name.to_owned(), Value::Object(map));
    Ok(())
}

fn refuse(fields: &Map<String, Value>, at: &str, name: &str, version: &Version) -> Result<(), Problem> {
    match fields.get(name) {
        Some(_) => Err(version.lacks(&format!("{at}.{name}"), Minor::V1BETA4, "")),
        None => Ok(()),
    }
}
