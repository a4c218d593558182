//! One host per management cluster: its own Lease, and a check of upstream's.

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use kube_lease_manager::LeaseManagerBuilder;
use tokio::sync::watch;

/// Name of the host's Lease.
const LEASE: &str = "capwasm";
/// Lease of Cluster API's own core manager.
const UPSTREAM: &str = "controller-leader-election-capi";
/// Duration of the Lease in seconds; it is renewed earlier.
const DURATION_SECONDS: u64 = 15;
const GRACE_SECONDS: u64 = 5;

/// Fails while Cluster API's own core manager runs on this cluster.
pub async fn refuse_beside_upstream(client: &kube::Client) -> Result<()> {
    let leases: Api<Lease> = Api::all(client.clone());
    let list =
        leases.list(&kube::api::ListParams::default()).await.context("unable to look for other managers' Leases")?;
    for lease in list.items.iter().filter(|lease| lease.metadata.name.as_deref() == Some(UPSTREAM)) {
        if let Some(holder) = lease.spec.as_ref().and_then(|spec| live_holder(spec, Timestamp::now())) {
            bail!(
                "Cluster API's core manager runs on this cluster: Lease {}/{UPSTREAM} is held by {holder:?}. Two cores would fight. \
                 Scale its Deployment to 0, or run providers only with --core=false",
                lease.metadata.namespace.as_deref().unwrap_or_default()
            );
        }
    }
    Ok(())
}

/// Holder of an unexpired Lease.
fn live_holder(spec: &LeaseSpec, now: Timestamp) -> Option<&str> {
    let holder = spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())?;
    let renewed = spec.renew_time.as_ref()?.0;
    let holds = i64::from(spec.lease_duration_seconds.unwrap_or(15));
    (now.as_second() - renewed.as_second() <= holds).then_some(holder)
}

/// Acquires the Lease; waits while another host holds it. The channel becomes false when it is lost.
pub async fn acquire(client: &kube::Client, namespace: &str, identity: &str) -> Result<watch::Receiver<bool>> {
    let manager = LeaseManagerBuilder::new(client.clone(), LEASE)
        .with_namespace(namespace)
        .with_identity(identity)
        .with_duration(DURATION_SECONDS)
        .with_grace(GRACE_SECONDS)
        .build()
        .await
        .with_context(|| format!("unable to use Lease {namespace}/{LEASE}"))?;
    let (mut held, _task) = manager.watch().await;
    if !*held.borrow() {
        tracing::info!(lease = LEASE, namespace, "waiting for the Lease");
    }
    held.wait_for(|held| *held).await.context("the Lease is not renewed any more")?;
    Ok(held)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    #[test]
    fn only_a_renewed_lease_with_a_holder_counts() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let lease = |holder: Option<&str>, renewed: Option<&str>| LeaseSpec {
            holder_identity: holder.map(str::to_owned),
            renew_time: renewed.map(|at| MicroTime(at.parse().unwrap())),
            lease_duration_seconds: Some(15),
            ..LeaseSpec::default()
        };
        for (name, spec, expected) in [
            ("renewed just now", lease(Some("a"), Some("2026-01-01T00:00:50Z")), Some("a")),
            ("run out", lease(Some("a"), Some("2026-01-01T00:00:40Z")), None),
            ("released", lease(Some(""), Some("2026-01-01T00:00:59Z")), None),
            ("never taken", lease(None, None), None),
        ] {
            assert_eq!(live_holder(&spec, now), expected, "{name}");
        }
    }
}
