//! The init lock: a ConfigMap `<cluster>-lock` that lets one Machine of a cluster run `kubeadm init`.
//!
//! Whoever creates it holds it. Creating adopts a lock that is there, so that a Machine holds it only once it read its own
//! name in it. The lock of a Machine that is gone is cleared, and any lock once the control plane is initialized.

use capwasm_api::names::{CORE_API_VERSION, labels};
use capwasm_sdk::{Context, Host, ObjectRef, Optional, Place, Problem, Refused, object};
use serde_json::{Value, json};

use crate::config::{Cluster, Machine};

const KEY: &str = "lock-information";

/// A lock that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    uid: String,
    /// None when the lock cannot be read.
    holder: Option<String>,
}

/// What to do about the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nobody holds it: create it.
    Take,
    /// This Machine holds it.
    Hold,
    /// Its Machine is gone: delete it, then try again.
    Clear {
        /// Uid of the lock's ConfigMap, so that no newer one is deleted.
        uid: String,
    },
    /// Another Machine holds it.
    Wait {
        /// Name of the Machine that holds it.
        holder: String,
    },
    /// It does not say who holds it; only a person can.
    Unreadable,
}

/// The pure decision; `holder_is_gone` is about the Machine that the lock names.
pub fn decide(lock: Option<&Lock>, machine: &str, holder_is_gone: bool) -> Step {
    match lock {
        None => Step::Take,
        Some(Lock { holder: None, .. }) => Step::Unreadable,
        Some(Lock { holder: Some(holder), .. }) if holder == machine => Step::Hold,
        Some(lock) if holder_is_gone => Step::Clear { uid: lock.uid.clone() },
        Some(Lock { holder: Some(holder), .. }) => Step::Wait { holder: holder.clone() },
    }
}

/// Gets the lock for `machine`, or says what it waits for.
pub fn acquire(cx: &mut Context<'_>, cluster: &Cluster, machine: &Machine) -> Result<(), Problem> {
    let lock = observe(cx.host, cluster)?;
    let gone = match lock.as_ref().and_then(|lock| lock.holder.as_ref()) {
        Some(holder) if *holder != machine.name => {
            cx.host.lookup(&ObjectRef::new(CORE_API_VERSION, "Machine", holder)).optional()?.is_none()
        }
        _ => false,
    };
    match decide(lock.as_ref(), &machine.name, gone) {
        Step::Hold => Ok(()),
        Step::Take => {
            cx.out.create("init-lock", Place::Management, config_map(cluster, machine)).wake_when_applied();
            Err(Problem::waiting(
                "AcquiringInitLock",
                "about to lock the cluster for the initialization of its control plane",
            ))
        }
        Step::Clear { uid } => {
            cx.out.delete("clear-init-lock", Place::Management, target(cluster), Some(uid)).wake_when_applied();
            Err(Problem::waiting(
                "AcquiringInitLock",
                "the Machine that held the init lock is gone; its lock is removed",
            ))
        }
        Step::Wait { holder } => {
            Err(Problem::waiting("InitLockHeld", format!("Machine {holder} is initializing the control plane")))
        }
        Step::Unreadable => Err(Problem::invalid(
            "InitLockUnreadable",
            format!("ConfigMap {} does not name a Machine; delete it if no machine of the cluster runs", name(cluster)),
        )),
    }
}

/// Removes the lock, if there is one.
pub fn release(cx: &mut Context<'_>, cluster: &Cluster) -> Result<(), Refused> {
    if let Some(lock) = observe(cx.host, cluster)? {
        cx.out.delete("release-init-lock", Place::Management, target(cluster), Some(lock.uid));
    }
    Ok(())
}

fn observe(host: &dyn Host, cluster: &Cluster) -> Result<Option<Lock>, Refused> {
    let found = host.lookup(&target(cluster)).optional()?;
    Ok(found.map(|found| {
        let information: Option<Value> = serde_json::from_str(object::text(&found, &format!("/data/{KEY}"))).ok();
        let holder = information.as_ref().map(|information| object::text(information, "/machineName").to_owned());
        Lock { uid: object::uid(&found).to_owned(), holder: holder.filter(|holder| !holder.is_empty()) }
    }))
}

fn config_map(cluster: &Cluster, machine: &Machine) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name(cluster),
            "namespace": cluster.namespace,
            "labels": {labels::CLUSTER_NAME: cluster.name},
            "ownerReferences": [cluster.owner()],
        },
        "data": {KEY: json!({"machineName": machine.name}).to_string()},
    })
}

fn target(cluster: &Cluster) -> ObjectRef {
    ObjectRef::new("v1", "ConfigMap", name(cluster))
}

fn name(cluster: &Cluster) -> String {
    format!("{}-lock", cluster.name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn one_machine_holds_the_lock_and_a_vanished_one_loses_it() {
        let lock = |holder: Option<&str>| Some(Lock { uid: "u".into(), holder: holder.map(str::to_owned) });
        for (what, lock, gone, expected) in [
            ("no lock", None, false, Step::Take),
            ("our own lock", lock(Some("me")), false, Step::Hold),
            ("our own lock, whatever is said of its holder", lock(Some("me")), true, Step::Hold),
            ("another's lock", lock(Some("other")), false, Step::Wait { holder: "other".into() }),
            ("a vanished Machine's lock", lock(Some("other")), true, Step::Clear { uid: "u".into() }),
            ("a lock that names nobody", lock(None), false, Step::Unreadable),
            ("a lock that names nobody is not cleared either", lock(None), true, Step::Unreadable),
        ] {
            assert_eq!(decide(lock.as_ref(), "me", gone), expected, "{what}");
        }
    }
}
