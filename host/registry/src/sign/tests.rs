use super::*;
use crate::artifact::{Artifact, pull};
use crate::layout::{Layout, LayoutRepository};

const EMPTY_COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

/// An unsigned artifact in a folder.
struct Bed {
    store: LayoutRepository,
    pinned: Reference,
    _folder: tempfile::TempDir,
}

async fn bed() -> Bed {
    let folder = tempfile::tempdir().unwrap();
    let reference: Reference = "a.example/team/provider:1.0".parse().unwrap();
    let store = Layout::create(folder.path()).unwrap().repository(&reference);
    let artifact = Artifact::build(Bytes::from_static(EMPTY_COMPONENT), BTreeMap::new()).unwrap();
    let pinned = artifact.push(&store, &reference).await.unwrap();
    Bed { store, pinned, _folder: folder }
}

fn key() -> (PrivateKey, PublicKey) {
    let key = PrivateKey::generate().unwrap();
    let public = key.public().unwrap();
    (key, public)
}

impl Bed {
    fn tag(&self) -> String {
        signature_tag(self.pinned.digest().unwrap())
    }

    async fn signatures(&self) -> Manifest {
        let bytes = self.store.manifest(Version::Tag(&self.tag())).await.unwrap().unwrap();
        Manifest::parse(&bytes, "the signature").unwrap()
    }

    async fn replace(&self, manifest: &Manifest) {
        let tag = self.tag();
        self.store.put_manifest(Some(&tag), IMAGE_MANIFEST, manifest.bytes().unwrap()).await.unwrap();
    }

    async fn verify(&self, key: &PublicKey) -> Result<(), Error> {
        verify(&self.store, &self.pinned, std::slice::from_ref(key)).await.map(drop)
    }
}

#[tokio::test]
async fn a_signature_is_one_of_the_trusted_keys_or_none() {
    let bed = bed().await;
    let ((first, first_public), (second, second_public)) = (key(), key());
    assert!(matches!(bed.verify(&first_public).await, Err(Error::Unsigned(_))));
    sign(&bed.store, &bed.pinned, &first).await.unwrap();
    bed.verify(&first_public).await.unwrap();
    assert!(matches!(bed.verify(&second_public).await, Err(Error::BadSignature { .. })));
    let both = [second_public.clone(), first_public.clone()];
    let found = verify(&bed.store, &bed.pinned, &both).await.unwrap();
    assert_eq!(found.fingerprint(), first_public.fingerprint());
    assert!(verify(&bed.store, &bed.pinned, &[]).await.is_err(), "no key trusts nobody");

    sign(&bed.store, &bed.pinned, &second).await.unwrap();
    sign(&bed.store, &bed.pinned, &second).await.unwrap();
    assert_eq!(bed.signatures().await.layers.len(), 2, "signing again replaces the key's own signature");
    bed.verify(&first_public).await.unwrap();
    bed.verify(&second_public).await.unwrap();
}

#[tokio::test]
async fn a_tampered_signature_is_refused() {
    let bed = bed().await;
    let (key, public) = key();
    sign(&bed.store, &bed.pinned, &key).await.unwrap();
    let good = bed.signatures().await;

    let other_digest = Digest::of(b"another manifest");
    let forged = Bytes::from(payload::write(&bed.pinned.name(), &other_digest));
    bed.store.put_blob(forged.clone()).await.unwrap();
    // Signed by the trusted key, but for another artifact: replayed beside this one.
    let replayed = Descriptor {
        annotations: BTreeMap::from([(SIGNATURE.to_owned(), STANDARD.encode(key.sign(&forged).unwrap()))]),
        ..Descriptor::of(SIMPLE_SIGNING, &forged)
    };
    let annotated = |value: &str| Descriptor {
        annotations: BTreeMap::from([(SIGNATURE.to_owned(), value.to_owned())]),
        ..good.layers[0].clone()
    };
    let huge = Bytes::from(vec![b' '; usize::try_from(LARGEST_PAYLOAD).unwrap() + 1]);
    let huge = Descriptor { annotations: good.layers[0].annotations.clone(), ..Descriptor::of(SIMPLE_SIGNING, &huge) };
    let table = [
        (
            Descriptor { annotations: good.layers[0].annotations.clone(), ..Descriptor::of(SIMPLE_SIGNING, &forged) },
            "none of the trusted keys",
        ),
        (replayed, other_digest.as_str()),
        (annotated("AAAA"), "none of the trusted keys"),
        (annotated("%"), "not base64"),
        (Descriptor { annotations: BTreeMap::new(), ..good.layers[0].clone() }, "annotation"),
        (Descriptor { media_type: "text/plain".to_owned(), ..good.layers[0].clone() }, "none of cosign's kind"),
        (Descriptor { size: 1, ..good.layers[0].clone() }, "not 1"),
        (huge, "larger than"),
    ];
    for (layer, expected) in table {
        bed.replace(&Manifest::new(good.config.clone(), vec![layer.clone()])).await;
        let error = bed.verify(&public).await.unwrap_err();
        assert!(matches!(error, Error::BadSignature { .. } | Error::TooLarge { .. }), "{expected}: {error:?}");
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        // A good one beside it is found all the same.
        bed.replace(&Manifest::new(good.config.clone(), vec![layer, good.layers[0].clone()])).await;
        bed.verify(&public).await.unwrap_or_else(|error| panic!("{expected}: {error}"));
    }
    let many = vec![annotated("AAAA"); MOST_SIGNATURES];
    bed.replace(&Manifest::new(good.config.clone(), many.into_iter().chain([good.layers[0].clone()]).collect())).await;
    assert!(bed.verify(&public).await.is_err(), "only so many are looked at");
}

#[tokio::test]
async fn nothing_of_an_unsigned_manifest_is_parsed() {
    let bed = bed().await;
    let (_, public) = key();
    let broken = Bytes::from_static(b"\0 no manifest at all");
    bed.store.put_manifest(Some("broken"), IMAGE_MANIFEST, broken).await.unwrap();
    let reference: Reference = "a.example/team/provider:broken".parse().unwrap();
    let demanded = Verification::of(vec![public]);
    let error = pull(&bed.store, &reference, &demanded, 1 << 20).await.unwrap_err();
    assert!(matches!(error, Error::Unsigned(_)), "the signature is asked for first: {error}");
    let error = pull(&bed.store, &reference, &Verification::of(Vec::new()), 1 << 20).await.unwrap_err();
    assert!(matches!(error, Error::NotAProvider { .. }), "{error}");
}

const MANIFEST: &[u8] = include_bytes!("fixtures/manifest.json");
const PAYLOAD: &[u8] = include_bytes!("fixtures/payload.json");
const SIGNATURES: &[u8] = include_bytes!("fixtures/signature.json");

/// An artifact with a payload and a signature manifest by cosign.
async fn signed_by_cosign(payload: &'static [u8], signatures: &[u8]) -> Bed {
    let folder = tempfile::tempdir().unwrap();
    let reference: Reference = "127.0.0.1:5077/team/provider:1.0".parse().unwrap();
    let store = Layout::create(folder.path()).unwrap().repository(&reference);
    store.put_manifest(Some("1.0"), IMAGE_MANIFEST, Bytes::from_static(MANIFEST)).await.unwrap();
    store.put_blob(Bytes::from_static(payload)).await.unwrap();
    let pinned = reference.pinned(&Digest::of(MANIFEST));
    let bed = Bed { store, pinned, _folder: folder };
    let signatures = Bytes::copy_from_slice(signatures);
    bed.store.put_manifest(Some(&bed.tag()), IMAGE_MANIFEST, signatures).await.unwrap();
    bed
}

/// `fixtures/` was made by cosign 2.6.5: `generate-key-pair`, `sign --key` (of manifest.json, at a registry) and `sign-blob`.
#[tokio::test]
async fn what_cosign_made_is_accepted() {
    let key = PrivateKey::from_pem(include_str!("fixtures/cosign.key"), b"correct-horse").unwrap();
    let public = PublicKey::from_pem(include_str!("fixtures/cosign.pub")).unwrap();
    assert_eq!(key.public().unwrap().fingerprint(), public.fingerprint());
    assert_eq!(public.to_pem(), include_str!("fixtures/cosign.pub"), "to the byte");
    blob::verify_blob(b"provider bytes", include_bytes!("fixtures/blob.sig"), std::slice::from_ref(&public)).unwrap();

    let bed = signed_by_cosign(PAYLOAD, SIGNATURES).await;
    assert_eq!(PAYLOAD, payload::write(&bed.pinned.name(), bed.pinned.digest().unwrap()).as_bytes(), "to the byte");
    bed.verify(&public).await.unwrap();
    sign(&bed.store, &bed.pinned, &key).await.unwrap();
    assert_eq!(bed.signatures().await.layers.len(), 1, "the same key's is replaced");
    bed.verify(&public).await.unwrap();
}

/// Each byte of the signed text, the signature and what lists it: none of them may be another one.
#[tokio::test]
async fn one_changed_byte_is_enough() {
    let public = PublicKey::from_pem(include_str!("fixtures/cosign.pub")).unwrap();
    let layer = Manifest::parse(SIGNATURES, "it").unwrap().layers.remove(0);
    let signature = signature_of(&layer).unwrap();
    for at in 0..PAYLOAD.len() {
        let mut changed = PAYLOAD.to_vec();
        changed[at] ^= 1;
        assert!(!public.accepts(&changed, &signature), "byte {at} of the text");
    }
    for at in 0..signature.len() {
        let mut changed = signature.clone();
        changed[at] ^= 1;
        assert!(!public.accepts(PAYLOAD, &changed), "byte {at} of the signature");
    }
    let bed = signed_by_cosign(PAYLOAD, SIGNATURES).await;
    let mut accepted = 0;
    for at in 0..SIGNATURES.len() {
        let mut changed = SIGNATURES.to_vec();
        changed[at] ^= 1;
        let tag = bed.tag();
        bed.store.put_manifest(Some(&tag), IMAGE_MANIFEST, changed.clone().into()).await.unwrap();
        if bed.verify(&public).await.is_ok() {
            // A byte that says nothing of the signature: of the config, or of a name that may be missing.
            assert_eq!(Manifest::parse(&changed, "it").unwrap().layers, std::slice::from_ref(&layer), "byte {at}");
            accepted += 1;
        }
    }
    assert!(accepted < SIGNATURES.len() / 2, "{accepted}");
}

#[test]
fn only_tags_with_a_digest_are_signatures() {
    let digest = Digest::of(b"");
    assert!(is_signature_tag(&signature_tag(&digest)));
    for tag in ["1.0", "sha256-.sig", "sha256-abc.sig", &format!("sha256-{}.att", digest.hex())] {
        assert!(!is_signature_tag(tag), "{tag}");
    }
}
