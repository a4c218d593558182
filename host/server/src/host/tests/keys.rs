//! A key that is taken out vouches for nothing any more.

use capwasm_registry::{PrivateKey, sign_blob};

use super::*;

/// The world's provider with a signature by `key`, as another build of it.
fn sign(world: &World, variant: &str, key: &PrivateKey) -> String {
    let plugins = world.folder.path().join("plugins");
    let component = std::fs::read(capwasm_test_support::guests::fixture("guest")).unwrap();
    let component = capwasm_test_support::guests::variant(&component, variant);
    // The signature first: whoever reads the new component reads it with its own.
    std::fs::write(plugins.join("fixture.wasm.sig"), sign_blob(&component, key).unwrap()).unwrap();
    std::fs::write(plugins.join("next"), &component).unwrap();
    std::fs::rename(plugins.join("next"), plugins.join("fixture.wasm")).unwrap();
    capwasm_runtime::digest(&component)
}

async fn start(world: &World) -> Host {
    let options = Options {
        core: false,
        conversions: Some(world.conversions.clone()),
        ..Options::new(world.folder.path().join("plugins"), world.folder.path())
    };
    let files = ProviderFiles::open(&options.provider_dir).unwrap();
    let registry = Mutex::new(Registry::default());
    controllers(&world.client, world.runtime.clone(), files, &options, &registry).await.unwrap().run()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_was_taken_out_vouches_for_no_component_that_is_pinned_or_comes_back() {
    let world = world().await;
    let (old, new) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
    let pem = |key: &PrivateKey| key.public().unwrap().to_pem();
    let first = sign(&world, "first---", &old);
    install::crd(&world.client, &wasm_provider::crd().unwrap()).await.unwrap();
    let endpoints = [("engine".to_owned(), NamedEndpoint::unix("/nowhere.sock"))];
    let descriptor = world.provider.descriptor();
    let mut wanted = wasm_provider::bundled(descriptor, "fixture.wasm", &endpoints, Grants::default(), None).unwrap();
    wanted["spec"]["verification"] = json!({"publicKeys": [pem(&old)]});
    install::wasm_provider(&world.client, &wanted).await.unwrap();
    let host = start(&world).await;
    let api = api(&world.client, "capwasm.dev", "v1alpha1", "WasmProvider", "");
    let merge = async |spec: Value| {
        let patch = Patch::Merge(json!({"spec": spec}));
        api.patch("fixture", &PatchParams::default(), &patch).await.unwrap();
    };
    // Digest of what serves, whether it does, and why the wanted one does not, once this spec is dealt with.
    let told = async |what: &str, active: &str, reason: &str| {
        until(what, async || {
            let provider = serde_json::to_value(api.get("fixture").await.unwrap()).unwrap();
            let late = capwasm_api::conditions::get(&provider, "UpToDate")?;
            let dealt = json::number(&provider, "/status/observedGeneration")
                == json::number(&provider, "/metadata/generation");
            let found = json::text(&provider, "/status/active/digest") == Some(active) && late.reason == reason;
            (dealt && found).then_some((capwasm_api::conditions::is_true(&provider, "Ready"), late.message))
        })
        .await
    };
    told("the first serves", &first, "Serving").await;

    // Another one by another key, then the first one's key goes.
    merge(json!({"verification": {"publicKeys": [pem(&old), pem(&new)]}})).await;
    let second = sign(&world, "second--", &new);
    told("the second serves", &second, "Serving").await;
    merge(json!({"update": {"pin": first}})).await;
    told("the first is pinned while its key is trusted", &first, "Pinned").await;
    merge(json!({"update": {"pin": second}})).await;
    told("back again", &second, "Pinned").await;
    merge(json!({"verification": {"publicKeys": [pem(&new)]}, "update": {"pin": first}})).await;
    let (serves, why) = told("nobody vouches for the first", &second, "SignerNotTrusted").await;
    assert!(serves && why.contains(&first) && why.contains("spec.verification.publicKeys"), "{why}");

    // What serves goes on when its key is taken out, and does not come back after a start.
    merge(json!({"verification": {"publicKeys": [pem(&old)]}, "update": {"pin": second}})).await;
    let (serves, _) = told("the second goes on", &second, "SignerNotTrusted").await;
    assert!(serves);
    host.stop().await;
    world.conversions.leave("fixture");
    let host = start(&world).await;
    until("a start does not bring it back", async || {
        let provider = serde_json::to_value(api.get("fixture").await.unwrap()).unwrap();
        capwasm_api::conditions::is_false(&provider, "Ready").then_some(())
    })
    .await;
    assert!(host.found.borrow().get("fixture") != Some(&Ok(())));

    // Who signed the first is remembered across starts; and the second serves once a trusted key has signed it.
    merge(json!({"update": {"pin": first}})).await;
    told("the first is trusted", &first, "Pinned").await;
    sign(&world, "second--", &old);
    merge(json!({"update": {"pin": null}})).await;
    told("the second is signed again", &second, "Serving").await;
    host.stop().await;
}
