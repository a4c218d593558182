//! One host per management cluster: its own Lease, and a check of upstream's.

mod holder;
mod record;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use capwasm_fence::{Fence, Term};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::holder::Holder;

/// Name of the host's Lease.
const LEASE: &str = "capwasm";
/// Duration of the Lease without another word: what it takes, and a second or two, until another host follows one that was killed.
pub const DURATION: Duration = Duration::from_secs(5);
/// The shortest one: three renewals, and the margin before its end.
pub const SHORTEST: Duration = Duration::from_secs(3);
/// Lease of Cluster API's own core manager.
const UPSTREAM: &str = "controller-leader-election-capi";

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

/// The Lease, while it is held.
pub struct Leadership {
    holder: Holder,
    lost: CancellationToken,
    renewing: JoinHandle<()>,
}

/// Acquires the Lease; waits while another host holds it.
///
/// # Errors
/// When the Lease cannot even be looked at the first time. Later failures are waited out.
pub async fn acquire(client: &kube::Client, namespace: &str, duration: Duration) -> Result<Leadership> {
    // A pod that is started again has the same name and process id, and is another process.
    let identity = format!("{}_{}_{:08x}", hostname(), std::process::id(), rand::random::<u32>());
    let holder =
        Holder::new(Api::namespaced(client.clone(), namespace), identity, duration, Fence::new(term(duration)));
    let held = holder.acquire().await.with_context(|| format!("unable to use Lease {namespace}/{LEASE}"))?;
    Ok(Leadership::begin(holder, held))
}

impl Leadership {
    fn begin(holder: Holder, held: Lease) -> Leadership {
        let lost = CancellationToken::new();
        let renewing = tokio::spawn({
            let (holder, lost) = (holder.clone(), lost.clone());
            async move {
                holder.renew(held).await;
                lost.cancel();
            }
        });
        Leadership { holder, lost, renewing }
    }

    /// What every write has to pass.
    pub fn fence(&self) -> &Fence {
        &self.holder.fence
    }

    /// Waits until the Lease is lost.
    pub async fn lost(&self) {
        tokio::select! {
            () = self.lost.cancelled() => {}
            () = self.holder.fence.fallen() => {}
        }
    }

    /// Gives the Lease back, so that another host takes over at its next look. Nothing is written from here on.
    pub async fn release(self) {
        self.holder.fence.lower();
        self.renewing.abort();
        // An error says that it was aborted.
        let _ = self.renewing.await;
        self.holder.release().await;
    }
}

/// Writes end a fifth of the Lease before others may take it, a second at least.
fn term(duration: Duration) -> Term {
    Term { duration, margin: (duration / 5).max(Duration::from_secs(1)) }
}

fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "capwasm".to_owned(), |name| name.trim().to_owned())
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
