//! Key pairs of cosign: ECDSA on P-256, the private key encrypted by a password.

use std::fmt;

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair, ParsedPublicKey,
};

use super::encrypted::{self, EncryptedError};
use crate::digest::Digest;

const PRIVATE: &str = "ENCRYPTED SIGSTORE PRIVATE KEY";
/// PEM label before cosign 2.
const PRIVATE_OLD: &str = "ENCRYPTED COSIGN PRIVATE KEY";
const PUBLIC: &str = "PUBLIC KEY";

/// Why a key is unusable.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Not PEM, or another label.
    #[error("not a key: a PEM text of {expected:?} is expected{found}")]
    NotAKey {
        /// The expected PEM label.
        expected: &'static str,
        /// `, this is …` with the actual label, or empty.
        found: String,
    },
    /// The key cannot be decrypted.
    #[error(transparent)]
    Encrypted(#[from] EncryptedError),
    /// Another algorithm or curve.
    #[error("the key is not one of ECDSA on P-256, which is what cosign's key pairs are")]
    Algorithm,
    /// The crypto library failed.
    #[error("unable to {0}")]
    Crypto(&'static str),
}

/// Private key, which signs artifacts.
pub struct PrivateKey(EcdsaKeyPair);

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey")
    }
}

impl PrivateKey {
    /// Generates a key.
    ///
    /// # Errors
    /// When the machine has no randomness.
    pub fn generate() -> Result<Self, KeyError> {
        EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING)
            .map(Self)
            .map_err(|_| KeyError::Crypto("generate a key"))
    }

    /// Decrypts the PEM that `cosign generate-key-pair` writes.
    ///
    /// # Errors
    /// When it is not one, or the password is wrong.
    pub fn from_pem(text: &str, password: &[u8]) -> Result<Self, KeyError> {
        let envelope = contents(text, &[PRIVATE, PRIVATE_OLD])?;
        let der = encrypted::open(&envelope, password)?;
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &der).map(Self).map_err(|_| KeyError::Algorithm)
    }

    /// Encrypted PEM, as `cosign sign --key` reads it.
    ///
    /// # Errors
    /// When the machine has no randomness.
    pub fn to_pem(&self, password: &[u8]) -> Result<String, KeyError> {
        let der = self.0.to_pkcs8v1().map_err(|_| KeyError::Crypto("write the key"))?;
        Ok(write(PRIVATE, encrypted::seal(der.as_ref(), password)?))
    }

    /// The public key of the pair.
    ///
    /// # Errors
    /// When the crypto library fails.
    pub fn public(&self) -> Result<PublicKey, KeyError> {
        let der = self.0.public_key().as_der().map_err(|_| KeyError::Crypto("write the public key"))?;
        PublicKey::from_der(der.as_ref())
    }

    /// Signature (ASN.1) of the text's SHA-256.
    pub(crate) fn sign(&self, text: &[u8]) -> Result<Vec<u8>, KeyError> {
        let signature = self.0.sign(&SystemRandom::new(), text).map_err(|_| KeyError::Crypto("sign"))?;
        Ok(signature.as_ref().to_vec())
    }
}

/// Public key, which verifies artifacts.
#[derive(Clone)]
pub struct PublicKey {
    key: ParsedPublicKey,
    der: Vec<u8>,
}

impl PublicKey {
    /// Parses the PEM that `cosign generate-key-pair` writes.
    ///
    /// # Errors
    /// When it is not one.
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        Self::from_der(&contents(text, &[PUBLIC])?)
    }

    /// PEM, as `cosign verify --key` reads it.
    #[must_use]
    pub fn to_pem(&self) -> String {
        write(PUBLIC, self.der.clone())
    }

    /// Digest of the DER form, to identify the key.
    #[must_use]
    pub fn fingerprint(&self) -> Digest {
        Digest::of(&self.der)
    }

    fn from_der(der: &[u8]) -> Result<Self, KeyError> {
        let key = ParsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, der).map_err(|_| KeyError::Algorithm)?;
        let der: PublicKeyX509Der<'_> = key.as_der().map_err(|_| KeyError::Crypto("write the public key"))?;
        Ok(Self { der: der.as_ref().to_vec(), key })
    }

    /// Whether the signature of the text is valid.
    pub(crate) fn accepts(&self, text: &[u8], signature: &[u8]) -> bool {
        self.key.verify_sig(text, signature).is_ok()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.fingerprint())
    }
}

fn contents(text: &str, labels: &[&'static str]) -> Result<Vec<u8>, KeyError> {
    let expected = labels.first().copied().unwrap_or_default();
    let pem = pem::parse(text).map_err(|_| KeyError::NotAKey { expected, found: String::new() })?;
    if labels.contains(&pem.tag()) {
        Ok(pem.into_contents())
    } else {
        Err(KeyError::NotAKey { expected, found: format!(", this is a {:?}", pem.tag()) })
    }
}

fn write(label: &str, contents: Vec<u8>) -> String {
    let line_feeds = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
    pem::encode_config(&pem::Pem::new(label, contents), line_feeds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_pair_signs_and_verifies_after_it_was_written_and_read() {
        let key = PrivateKey::generate().unwrap();
        let (private, public) = (key.to_pem(b"pw").unwrap(), key.public().unwrap().to_pem());
        assert!(private.starts_with("-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\n"), "{private}");
        let (private, public) = (PrivateKey::from_pem(&private, b"pw").unwrap(), PublicKey::from_pem(&public).unwrap());
        let signature = private.sign(b"text").unwrap();
        assert!(public.accepts(b"text", &signature));
        assert!(!public.accepts(b"other", &signature));
        assert!(!public.accepts(b"text", &signature[1..]));
        let other = PrivateKey::generate().unwrap().public().unwrap();
        assert!(!other.accepts(b"text", &signature));
        assert_ne!(other.fingerprint(), public.fingerprint());
    }

    #[test]
    fn other_texts_are_refused_with_what_they_are() {
        let key = PrivateKey::generate().unwrap();
        let (private, public) = (key.to_pem(b"").unwrap(), key.public().unwrap().to_pem());
        assert!(PublicKey::from_pem("").unwrap_err().to_string().contains("not a key"));
        assert!(PublicKey::from_pem(&private).unwrap_err().to_string().contains("ENCRYPTED SIGSTORE"), "swapped");
        assert!(PrivateKey::from_pem(&public, b"").unwrap_err().to_string().contains("\"PUBLIC KEY\""), "swapped");
        assert_eq!(
            PrivateKey::from_pem(&private, b"x").unwrap_err(),
            KeyError::Encrypted(EncryptedError::WrongPassword)
        );
        let other_curve = EcdsaKeyPair::generate(&aws_lc_rs::signature::ECDSA_P384_SHA384_ASN1_SIGNING).unwrap();
        let der = other_curve.public_key().as_der().unwrap();
        assert_eq!(PublicKey::from_pem(&write(PUBLIC, der.as_ref().to_vec())).unwrap_err(), KeyError::Algorithm);
    }
}
