//! What comes out of a registry or a key file: refused, or read as what it is.
//!
//! Input: a byte that says what the rest is, and the rest.

use capwasm_registry::{Digest, DockerConfig, PrivateKey, PublicKey, Reference, fuzzing};

pub fn run(data: &[u8]) {
    let Some((what, data)) = data.split_first() else { return };
    match what % 5 {
        0 => {
            if let Ok(written) = fuzzing::manifest(data) {
                assert_eq!(fuzzing::manifest(&written).as_ref(), Ok(&written), "it is read otherwise than written");
            }
        }
        1 => {
            // That of other bytes is never named.
            let (this, other) = (Digest::of(data), Digest::of(b"another manifest"));
            assert!(fuzzing::payload_names(fuzzing::payload("host.example/a", &this).as_bytes(), &this).is_ok());
            let named = fuzzing::payload_names(data, &this).is_ok();
            assert!(!(named && fuzzing::payload_names(data, &other).is_ok()), "two manifests are named");
        }
        2 => {
            let Ok(key) = PublicKey::from_pem(&String::from_utf8_lossy(data)) else { return };
            let again = PublicKey::from_pem(&key.to_pem()).unwrap();
            assert_eq!(again.fingerprint(), key.fingerprint());
        }
        3 => {
            let _ = PrivateKey::from_pem(&String::from_utf8_lossy(data), b"password");
        }
        _ => {
            let Ok(config) = DockerConfig::parse(data) else { return };
            let reference: Reference = "registry.example/team/provider:1".parse().unwrap();
            let _ = (config.find(&reference), config.helper(&reference));
        }
    }
}
