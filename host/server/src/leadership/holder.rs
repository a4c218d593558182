//! Takes the Lease, renews it, gives it back.
//!
//! Our own, because the fence needs the time at which the last renewal was asked for, and what fails has to be tried again in time: the crate
//! `kube-lease-manager` tells neither that time nor, before it would have run out, that the Lease was given back; it renews once, and
//! waits for up to half a minute after a failure.

use std::time::Duration;

use capwasm_fence::Fence;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use kube::api::{ObjectMeta, PostParams};

use super::LEASE;
use super::record::{self, Seen};

/// Tries to give the Lease back; others change it seldom.
const RELEASES: usize = 3;

/// Why the Lease was not written.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    /// Somebody was first.
    #[error("the Lease was changed meanwhile")]
    Conflict,
    #[error("unable to write the Lease")]
    Request(#[source] Box<kube::Error>),
}

/// One process that may hold the Lease.
#[derive(Clone)]
pub(super) struct Holder {
    api: Api<Lease>,
    identity: String,
    duration: Duration,
    pub(super) fence: Fence,
}

impl Holder {
    pub(super) fn new(api: Api<Lease>, identity: String, duration: Duration, fence: Fence) -> Holder {
        Holder { api, identity, duration, fence }
    }

    /// Time between two renewals, and between two looks while it waits. Four renewals may fail before the fence falls.
    fn period(&self) -> Duration {
        self.duration / 5
    }

    /// Waits until the Lease is free and takes it.
    ///
    /// # Errors
    /// When the first look fails.
    pub(super) async fn acquire(&self) -> Result<Lease, kube::Error> {
        let (mut seen, mut waits) = (None, false);
        let mut found = self.api.get_opt(LEASE).await?;
        loop {
            let asked = self.fence.now();
            let spec = found.as_ref().and_then(|lease| lease.spec.as_ref());
            seen = spec.map(|spec| Seen::look(seen, spec, asked));
            let wait = seen.as_ref().map_or(Duration::ZERO, |seen| seen.free_in(asked));
            if wait.is_zero() {
                match self.write(found.take()).await {
                    Ok(held) => {
                        self.fence.renewed(asked);
                        return Ok(held);
                    }
                    Err(WriteError::Conflict) => {}
                    Err(error) => tell("the Lease was not taken", &error),
                }
            } else if !waits {
                waits = true;
                let holder = spec.and_then(record::holder).unwrap_or_default();
                tracing::info!(lease = LEASE, holder, "waiting for the Lease");
            }
            let pause = if wait.is_zero() { self.period() } else { wait.min(self.period()) };
            tokio::time::sleep(pause).await;
            found = loop {
                match self.api.get_opt(LEASE).await {
                    Ok(found) => break found,
                    Err(error) => tell("the Lease was not read", &error),
                }
                tokio::time::sleep(self.period()).await;
            };
        }
    }

    /// Renews the Lease until it is lost.
    pub(super) async fn renew(&self, held: Lease) {
        let mut held = Some(held);
        let mut pause = self.period();
        loop {
            tokio::time::sleep(pause).await;
            let asked = self.fence.now();
            // A request that hangs takes no more than two of the tries.
            let attempt = tokio::time::timeout(2 * self.period(), self.renew_once(held.take()));
            pause = match self.fence.guard(attempt).await {
                Ok(Ok(Ok(renewed))) => {
                    self.fence.renewed(asked);
                    held = Some(renewed);
                    self.period()
                }
                Ok(Ok(Err(Renewal::Lost))) | Err(_) => break,
                Ok(Ok(Err(Renewal::Failed(error)))) => {
                    tell("the Lease was not renewed", &error);
                    self.period() / 4
                }
                Ok(Err(_)) => {
                    tracing::warn!(lease = LEASE, "the Lease was not renewed: no answer");
                    self.period() / 4
                }
            };
        }
        self.fence.lower();
    }

    /// Without `held`, what the last try left is read first.
    async fn renew_once(&self, held: Option<Lease>) -> Result<Lease, Renewal> {
        let held = match held {
            Some(held) => Some(held),
            None => self.api.get_opt(LEASE).await.map_err(|error| WriteError::Request(Box::new(error)))?,
        };
        let holder = held.as_ref().and_then(|lease| record::holder(lease.spec.as_ref()?));
        if holder != Some(self.identity.as_str()) && held.is_some() {
            return Err(Renewal::Lost);
        }
        Ok(self.write(held).await?)
    }

    /// Writes the Lease as held by this process, unless it changed since it was read.
    async fn write(&self, before: Option<Lease>) -> Result<Lease, WriteError> {
        let spec = before.as_ref().and_then(|lease| lease.spec.as_ref());
        let spec = record::held(spec, &self.identity, self.duration, Timestamp::now());
        self.put(before, spec).await
    }

    async fn put(&self, before: Option<Lease>, spec: LeaseSpec) -> Result<Lease, WriteError> {
        let parameters = PostParams { field_manager: Some("capwasm".to_owned()), ..PostParams::default() };
        let written = match before {
            Some(before) => self.api.replace(LEASE, &parameters, &Lease { spec: Some(spec), ..before }).await,
            None => {
                let metadata = ObjectMeta { name: Some(LEASE.to_owned()), ..ObjectMeta::default() };
                self.api.create(&parameters, &Lease { metadata, spec: Some(spec) }).await
            }
        };
        written.map_err(|error| match error {
            // 404: it was deleted meanwhile.
            kube::Error::Api(status) if [404, 409].contains(&status.code) => WriteError::Conflict,
            error => WriteError::Request(Box::new(error)),
        })
    }

    /// Gives the Lease back, if it is ours still. What fails is told; the Lease then runs out.
    pub(super) async fn release(&self) {
        let released = tokio::time::timeout(self.duration, async {
            for _ in 0..RELEASES {
                let found = self.api.get_opt(LEASE).await.map_err(|error| WriteError::Request(Box::new(error)))?;
                let Some(spec) = found.as_ref().and_then(|lease| lease.spec.as_ref()) else { return Ok(()) };
                if record::holder(spec) != Some(self.identity.as_str()) {
                    return Ok(());
                }
                let spec = record::released(spec);
                match self.put(found, spec).await {
                    Err(WriteError::Conflict) => {}
                    other => return other.map(drop),
                }
            }
            Err(WriteError::Conflict)
        });
        match released.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tell("the Lease was not given back", &error),
            Err(_) => tracing::warn!(lease = LEASE, "the Lease was not given back: no answer"),
        }
    }
}

/// Why a renewal did not come about.
#[derive(Debug, thiserror::Error)]
enum Renewal {
    #[error("another host holds the Lease")]
    Lost,
    #[error(transparent)]
    Failed(#[from] WriteError),
}

fn tell(what: &str, error: &dyn std::error::Error) {
    let cause = error.source().map(ToString::to_string).unwrap_or_default();
    tracing::warn!(lease = LEASE, %error, cause, "{what}");
}

#[cfg(test)]
mod tests;
