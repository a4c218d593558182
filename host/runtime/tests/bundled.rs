//! The providers that come with capwasm are what the runtime takes for providers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use capwasm_runtime::{Limits, Runtime, RuntimeOptions};
use capwasm_test_support::guests;

#[tokio::test]
async fn the_bundled_providers_load() {
    let runtime = Runtime::new(RuntimeOptions { max_in_flight: 2, ..RuntimeOptions::default() }).unwrap();
    // Bytes that each may have, with some for where cargo's registry is, whose path stands in messages of panics. The control plane is
    // compiled for speed, and has the names of its functions.
    let most = [
        ("docker-infra", 1_510_000),
        ("kubeadm-bootstrap", 1_300_000),
        ("kubeadm-control-plane", 1_550_000),
        ("openstack-infra", 1_510_000),
    ];
    for (name, most) in most {
        let bytes = std::fs::read(guests::plugin(name)).unwrap();
        let provider = match runtime.load(&bytes, Limits::default()).await {
            Ok(provider) => provider,
            Err(error) => panic!("{name}: {error}"),
        };
        assert_eq!(provider.descriptor().name, name);
        assert!(bytes.len() < most, "{name} has {} bytes", bytes.len());
    }
}
