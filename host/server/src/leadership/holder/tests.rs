#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use capwasm_apiserver::{Identity, Server, ServerConfig, Store};
use capwasm_fence::Down;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use tower::{BoxError, ServiceExt as _};

use super::super::{Leadership, term};
use super::*;

const DURATION: Duration = Duration::from_secs(5);

/// An API server of which writes can be made to fail, and hosts on it whose clocks run with tokio's, and may leap.
struct World {
    server: Server,
    refuses: Arc<AtomicBool>,
}

struct Host {
    holder: Holder,
    /// Milliseconds for which the process stood still.
    stood: Arc<AtomicU64>,
}

impl World {
    async fn new() -> World {
        let server = Server::start(Store::memory().unwrap(), ServerConfig::new("leases")).await.unwrap();
        // From here on waiting takes no time.
        tokio::time::pause();
        World { server, refuses: Arc::default() }
    }

    fn host(&self, identity: &str) -> Host {
        let (stood, begin) = (Arc::new(AtomicU64::new(0)), tokio::time::Instant::now());
        let more = stood.clone();
        let clock = move || begin.elapsed() + Duration::from_millis(more.load(Ordering::Relaxed));
        let fence = Fence::with_clock(term(DURATION), clock);
        let (service, refuses) = (self.server.service(Identity::admin("host")), self.refuses.clone());
        let answers = tower::service_fn(move |request: Request<Body>| {
            let (service, refuses) = (service.clone(), refuses.clone());
            async move {
                if refuses.load(Ordering::Relaxed) && request.method() != Method::GET {
                    return Ok(Response::builder().status(StatusCode::SERVICE_UNAVAILABLE).body(Body::empty())?);
                }
                // The store writes in a thread of its own; the clock stands still until it is done.
                let (done, busy) = std::sync::mpsc::channel::<()>();
                let clock_stands = tokio::task::spawn_blocking(move || busy.recv());
                let answer = service.oneshot(request).await?;
                let (parts, body) = answer.into_parts();
                let body = body.collect().await.map_err(|_| "no body")?.to_bytes();
                drop((done, clock_stands));
                Ok::<_, BoxError>(Response::from_parts(parts, Body::from(body)))
            }
        });
        let api = Api::default_namespaced(kube::Client::new(answers, "default"));
        Host { holder: Holder::new(api, identity.to_owned(), DURATION, fence), stood }
    }
}

impl Host {
    async fn leads(&self) -> Leadership {
        Leadership::begin(self.holder.clone(), self.holder.acquire().await.unwrap())
    }

    async fn spec(&self) -> LeaseSpec {
        self.holder.api.get(LEASE).await.unwrap().spec.unwrap()
    }
}

#[tokio::test]
async fn a_lease_that_was_given_back_is_taken_at_the_next_look() {
    let world = World::new().await;
    let (a, b) = (world.host("a"), world.host("b"));
    let first = a.leads().await;
    let begin = tokio::time::Instant::now();
    let waiting = tokio::spawn(async move { (b.leads().await, b) });
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!waiting.is_finished(), "it is renewed");
    assert_eq!(first.fence().left().map(|left| left > Duration::from_secs(2)), Ok(true));
    first.release().await;
    let (second, b) = waiting.await.unwrap();
    assert!(begin.elapsed() < Duration::from_secs(62), "{:?}", begin.elapsed());
    assert_eq!(b.spec().await.holder_identity.as_deref(), Some("b"));
    assert_eq!(a.holder.fence.left(), Err(Down));
    drop(second);
}

/// The goal is eight seconds from the death of a host until the next one writes; starting takes the rest.
#[tokio::test]
async fn after_a_kill_the_next_host_takes_over_within_seven_seconds_and_after_the_last_write_of_the_first() {
    let world = World::new().await;
    let (a, b) = (world.host("a"), world.host("b"));
    let first = a.leads().await;
    let waiting = tokio::spawn(async move { (b.leads().await, tokio::time::Instant::now()) });
    tokio::time::sleep(Duration::from_secs(30)).await;
    first.renewing.abort();
    let killed = tokio::time::Instant::now();
    a.holder.fence.fallen().await;
    let fell = tokio::time::Instant::now();
    let (_second, took) = waiting.await.unwrap();
    assert!(took - killed < Duration::from_secs(7), "{:?}", took - killed);
    assert!(took - fell >= Duration::from_millis(500), "only {:?} after the first wrote last", took - fell);
}

#[tokio::test]
async fn a_host_that_stood_still_writes_nothing_more_and_leaves_the_lease_to_the_other() {
    let world = World::new().await;
    let a = world.host("a");
    let first = a.leads().await;
    a.stood.store(30_000, Ordering::Relaxed);
    assert_eq!(first.fence().guard(async { panic!("it is written") }).await, Err(Down));
    let renewed = a.spec().await.renew_time;
    first.lost().await;
    assert_eq!(a.spec().await.renew_time, renewed, "it renews nothing after the fact");
    let b = world.host("b");
    let second = b.leads().await;
    assert_eq!(b.spec().await.holder_identity.as_deref(), Some("b"));
    first.release().await;
    assert_eq!(b.spec().await.holder_identity.as_deref(), Some("b"), "what is another's is not given back");
    drop(second);
}

#[tokio::test]
async fn renewals_may_fail_for_three_seconds_and_no_longer() {
    for (seconds, holds) in [(2, true), (3, true), (5, false)] {
        let world = World::new().await;
        let a = world.host("a");
        let first = a.leads().await;
        // Between two renewals.
        tokio::time::sleep(Duration::from_millis(10_500)).await;
        world.refuses.store(true, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        world.refuses.store(false, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(first.fence().left().is_ok(), holds, "{seconds} seconds");
        tokio::time::resume();
    }
}

#[tokio::test]
async fn a_lease_that_somebody_else_changed_or_deleted_stays_ours_and_one_that_was_taken_does_not() {
    let world = World::new().await;
    let a = world.host("a");
    let first = a.leads().await;
    let api = &a.holder.api;
    let note = kube::api::Patch::Merge(serde_json::json!({"metadata": {"annotations": {"seen": "yes"}}}));
    api.patch(LEASE, &kube::api::PatchParams::default(), &note).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(first.fence().left().is_ok(), "changed");
    api.delete(LEASE, &kube::api::DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(a.spec().await.holder_identity.as_deref(), Some("a"), "deleted");
    let taken = kube::api::Patch::Merge(serde_json::json!({"spec": {"holderIdentity": "b"}}));
    api.patch(LEASE, &kube::api::PatchParams::default(), &taken).await.unwrap();
    first.lost().await;
    assert_eq!(a.spec().await.holder_identity.as_deref(), Some("b"));
    assert_eq!(first.fence().left(), Err(Down));
}
