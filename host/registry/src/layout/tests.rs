use super::*;
use crate::artifact::{Artifact, pull};
use crate::copy::copy;
use crate::sign::key::PrivateKey;
use crate::sign::{Verification, sign};
use std::collections::BTreeMap;

const EMPTY_COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

fn artifact(version: &str) -> Artifact {
    let annotations = BTreeMap::from([("org.opencontainers.image.version".to_owned(), version.to_owned())]);
    Artifact::build(Bytes::from_static(EMPTY_COMPONENT), annotations).unwrap()
}

fn reference(text: &str) -> Reference {
    text.parse().unwrap()
}

#[tokio::test]
async fn a_folder_holds_artifacts_of_several_registries_by_their_full_names() {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::create(folder.path()).unwrap();
    let names = ["a.example/x:1", "a.example/x:2", "b.example/x:1"].map(reference);
    for (at, name) in names.iter().enumerate() {
        artifact(&at.to_string()).push(&layout.repository(name), name).await.unwrap();
    }
    let again = Layout::open(folder.path()).unwrap();
    assert_eq!(again.references().unwrap(), names);
    let mut digests = Vec::new();
    for name in &names {
        let pulled = pull(&again.repository(name), name, &Verification::None, 1 << 20).await.unwrap();
        digests.push(pulled.reference.digest().unwrap().clone());
        let by_digest = pull(&again.repository(name), &pulled.reference, &Verification::None, 1 << 20).await.unwrap();
        assert_eq!(by_digest.component, EMPTY_COMPONENT);
    }
    let elsewhere = names[2].pinned(&digests[0]);
    let error = pull(&again.repository(&elsewhere), &elsewhere, &Verification::None, 1 << 20).await.unwrap_err();
    assert!(matches!(error, Error::NotFound(_)), "another repository's manifest is not this one's: {error}");
    // A tag moves, as it does in a registry.
    artifact("new").push(&again.repository(&names[0]), &names[0]).await.unwrap();
    assert_eq!(again.references().unwrap().len(), 3);
}

#[tokio::test]
async fn signatures_go_along_into_a_folder_and_are_verified_from_it() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to) = (Layout::create(from.path()).unwrap(), Layout::create(to.path()).unwrap());
    let name = reference("a.example/x:1");
    let (source, target) = (from.repository(&name), to.repository(&name));
    let pinned = artifact("1").push(&source, &name).await.unwrap();
    let key = PrivateKey::generate().unwrap();
    let keys = Verification::Keys(vec![key.public().unwrap()]);
    assert!(matches!(copy(&source, &target, &name, &keys).await, Err(Error::Unsigned(_))));
    assert!(to.references().unwrap().is_empty(), "nothing was copied");
    sign(&source, &pinned, &key).await.unwrap();
    assert_eq!(copy(&source, &target, &name, &keys).await.unwrap(), (pinned, true));
    assert_eq!(to.references().unwrap(), std::slice::from_ref(&name), "the signature is no artifact of its own");
    assert_eq!(pull(&target, &name, &keys, 1 << 20).await.unwrap().component, EMPTY_COMPONENT);
}

#[tokio::test]
async fn a_damaged_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let name = reference("a.example/x:1");
    assert!(matches!(Layout::open(folder.path()), Err(Error::Folder { .. })));
    let layout = Layout::create(folder.path()).unwrap();
    let pinned = artifact("1").push(&layout.repository(&name), &name).await.unwrap();
    let component = Digest::of(EMPTY_COMPONENT);
    let blob = folder.path().join(path(&component));
    for (content, is) in
        [(b"\0asm\x0d\0\x01\x01".as_slice(), "other bytes"), (&EMPTY_COMPONENT[..7], "fewer bytes"), (b"", "none")]
    {
        std::fs::write(&blob, content).unwrap();
        let error = pull(&layout.repository(&name), &name, &Verification::None, 1 << 20).await.unwrap_err();
        assert!(matches!(error, Error::WrongDigest { .. } | Error::WrongSize { .. }), "{is}: {error}");
    }
    std::fs::remove_file(&blob).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", &blob).unwrap();
    let error = pull(&layout.repository(&name), &name, &Verification::None, 1 << 20).await.unwrap_err();
    assert!(matches!(error, Error::Folder { .. }), "a link out of the folder is not followed: {error}");
    let manifest = folder.path().join(path(pinned.digest().unwrap()));
    std::fs::write(&manifest, std::fs::read_to_string(&manifest).unwrap().replace("\"1\"", "\"2\"")).unwrap();
    let error = pull(&layout.repository(&name), &name, &Verification::None, 1 << 20).await.unwrap_err();
    assert!(matches!(error, Error::WrongDigest { .. }), "{error}");
    std::fs::write(folder.path().join(INDEX), "{}").unwrap();
    assert!(matches!(layout.references(), Err(Error::BadLayout(_))));
    std::fs::write(folder.path().join(MARK), r#"{"imageLayoutVersion":"2.0.0"}"#).unwrap();
    assert!(matches!(Layout::open(folder.path()), Err(Error::BadLayout(_))));
    let other = tempfile::tempdir().unwrap();
    std::fs::write(other.path().join("letter.txt"), "").unwrap();
    assert!(matches!(Layout::create(other.path()), Err(Error::BadLayout(_))), "somebody's folder is left alone");
}
