//! The providers that come with capwasm are what the runtime takes for providers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "../../../tests/src/guests.rs"]
#[allow(dead_code, reason = "shared with the tests that need fixtures")]
mod guests;

use capwasm_runtime::{Limits, Runtime, RuntimeOptions};

#[tokio::test]
async fn the_bundled_providers_load() {
    let runtime = Runtime::new(RuntimeOptions { max_in_flight: 2, ..RuntimeOptions::default() }).unwrap();
    for name in ["docker-infra", "kubeadm-bootstrap", "kubeadm-control-plane", "openstack-infra"] {
        let bytes = std::fs::read(guests::plugin(name)).unwrap();
        let provider = match runtime.load(&bytes, Limits::default()).await {
            Ok(provider) => provider,
            Err(error) => panic!("{name}: {error}"),
        };
        assert_eq!(provider.descriptor().name, name);
        assert!(bytes.len() < 1_500_000, "{name} has {} bytes", bytes.len());
    }
}
