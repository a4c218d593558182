use super::*;
use crate::layout::Layout;

/// Imports and exports are read of the outermost component only.
const COMPONENT: &str = r#"
    (component
        (import "capwasm:provider/log@0.1.0" (instance))
        (component (import "inner" (instance)))
        (core module (import "core" "f" (func)))
        (instance $i)
        (export "capwasm:provider/metadata@0.1.0" (instance $i)))"#;

fn component() -> Bytes {
    wat::parse_str(COMPONENT).unwrap().into()
}

fn reference(text: &str) -> Reference {
    text.parse().unwrap()
}

#[test]
fn an_artifact_names_what_its_component_imports_and_exports_and_is_the_same_each_time() {
    let artifact = Artifact::build(component(), BTreeMap::from([("a".into(), "b".into())])).unwrap();
    let config: serde_json::Value = serde_json::from_slice(&artifact.config).unwrap();
    assert_eq!(
        config,
        serde_json::json!({
            "created": "1970-01-01T00:00:00Z", "architecture": "wasm", "os": "wasip2",
            "layerDigests": [Digest::of(&component())],
            "component": {"target": null, "exports": ["capwasm:provider/metadata@0.1.0"], "imports": ["capwasm:provider/log@0.1.0"]}})
    );
    let manifest = Manifest::parse(&artifact.manifest, "it").unwrap();
    assert_eq!((manifest.config.media_type.as_str(), manifest.layers.len()), (WASM_CONFIG, 1));
    assert_eq!(manifest.layers[0].media_type, "application/wasm");
    assert_eq!(manifest.annotations["a"], "b");
    let again = Artifact::build(component(), BTreeMap::from([("a".into(), "b".into())])).unwrap();
    assert_eq!(again.digest(), artifact.digest());
}

#[test]
fn what_is_not_a_component_makes_no_artifact() {
    let module = wat::parse_str("(module)").unwrap();
    for (bytes, expected) in
        [(Vec::new(), "not a component"), (b"#!/bin/sh".to_vec(), "not a component"), (module, "core module")]
    {
        let error = Artifact::build(bytes.into(), BTreeMap::new()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    // A cut between two sections leaves a shorter component; anywhere else it is none. Nothing worse happens.
    let whole = component();
    let refused = (0..whole.len()).filter(|length| Artifact::build(whole.slice(..*length), BTreeMap::new()).is_err());
    assert!(refused.count() > whole.len() / 2);
}

#[tokio::test]
async fn a_push_to_a_digest_has_to_be_that_artifact() {
    let folder = tempfile::tempdir().unwrap();
    let artifact = Artifact::build(component(), BTreeMap::new()).unwrap();
    let reference = reference("a.example/b:1").pinned(&Digest::of(b"other"));
    let store = Layout::create(folder.path()).unwrap().repository(&reference);
    assert!(matches!(artifact.push(&store, &reference).await, Err(Error::WrongDigest { .. })));
    let right = reference.pinned(artifact.digest());
    assert_eq!(artifact.push(&store, &right).await.unwrap(), right);
    assert_eq!(pull(&store, &right, &Verification::None, 1 << 20).await.unwrap().component, component());
}

#[tokio::test]
async fn other_artifacts_are_not_providers() {
    let folder = tempfile::tempdir().unwrap();
    let reference = reference("a.example/b:1");
    let store = Layout::create(folder.path()).unwrap().repository(&reference);
    store.put_blob(Bytes::from_static(b"x")).await.unwrap();
    let blob = |media_type: &str| Descriptor::of(media_type, b"x");
    let (config, layer) = (blob(WASM_CONFIG), blob(COMPONENT_LAYER));
    for (manifest, expected) in [
        (Manifest::new(blob("application/vnd.oci.image.config.v1+json"), vec![layer.clone()]), "config"),
        (Manifest::new(config.clone(), vec![]), "0 layers"),
        (Manifest::new(config.clone(), vec![layer.clone(), layer.clone()]), "2 layers"),
        (Manifest::new(config.clone(), vec![blob("application/vnd.oci.image.layer.v1.tar+gzip")]), "tar+gzip"),
    ] {
        store.put_manifest(Some("1"), IMAGE_MANIFEST, manifest.bytes().unwrap()).await.unwrap();
        let error = pull(&store, &reference, &Verification::None, 1 << 20).await.unwrap_err();
        assert!(matches!(error, Error::NotAProvider { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let huge = Descriptor { size: u64::MAX, ..layer };
    let manifest = Manifest::new(config, vec![huge]).bytes().unwrap();
    store.put_manifest(Some("1"), IMAGE_MANIFEST, manifest).await.unwrap();
    let error = pull(&store, &reference, &Verification::None, 1 << 20).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit: 1_048_576, .. }), "{error}");
}
