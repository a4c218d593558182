//! Signatures of files, which have no registry to be beside them: base64 of the signature of the bytes, as
//! `cosign sign-blob` writes and `cosign verify-blob --signature` reads it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::key::{KeyError, PrivateKey, PublicKey};
use crate::error::Error;

/// Base64 of the signature of `bytes`.
///
/// # Errors
/// When the crypto library fails.
pub fn sign_blob(bytes: &[u8], key: &PrivateKey) -> Result<String, KeyError> {
    Ok(STANDARD.encode(key.sign(bytes)?))
}

/// Verifies a signature of `bytes`. Returns the key that made it.
///
/// # Errors
/// When none did.
pub fn verify_blob<'a>(bytes: &[u8], signature: &[u8], keys: &'a [PublicKey]) -> Result<&'a PublicKey, Error> {
    let refused = |why: &str| Error::BadSignature { what: "the file".to_owned(), why: why.to_owned() };
    let signature = STANDARD.decode(signature.trim_ascii()).map_err(|_| refused("the signature is not base64"))?;
    keys.iter().find(|key| key.accepts(bytes, &signature)).ok_or_else(|| refused("none of the trusted keys made it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_verified_by_any_one_of_the_keys() {
        let (key, other) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
        let signature = format!("{}\n", sign_blob(b"bytes", &key).unwrap());
        let keys = [other.public().unwrap(), key.public().unwrap()];
        assert_eq!(verify_blob(b"bytes", signature.as_bytes(), &keys).unwrap().fingerprint(), keys[1].fingerprint());
        let table: [(&[u8], &[u8], &[PublicKey]); 4] = [
            (b"Bytes", signature.as_bytes(), &keys),
            (b"bytes", signature.as_bytes(), &keys[..1]),
            (b"bytes", signature.as_bytes(), &[]),
            (b"bytes", b"%%", &keys),
        ];
        for (bytes, signature, keys) in table {
            assert!(matches!(verify_blob(bytes, signature, keys), Err(Error::BadSignature { .. })));
        }
    }
}
