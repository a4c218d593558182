//! Password-encrypted private keys of cosign and TUF: JSON with scrypt's parameters and a NaCl secret box.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use poly1305::Poly1305;
use poly1305::universal_hash::KeyInit;
use salsa20::XSalsa20;
use salsa20::cipher::{KeyIvInit, StreamCipher};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Accepted log2 of scrypt's N; r is 8 and p is 1. Other values are refused, so that a file cannot cost its reader any
/// memory and time.
const ACCEPTED: std::ops::RangeInclusive<u8> = 15..=17;
/// log2 of N that cosign uses.
const WRITTEN: u8 = 16;
const R: u32 = 8;
const P: u32 = 1;
const SALT: usize = 32;
const NONCE: usize = 24;

/// Why a key cannot be decrypted or encrypted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncryptedError {
    /// The JSON is invalid.
    #[error("unable to read the encrypted key: {0}")]
    Unreadable(String),
    /// Another function, cipher or parameters.
    #[error("the key is encrypted with {0}, which cosign does not do")]
    Unsupported(String),
    /// Authentication of the ciphertext failed.
    #[error("the password is wrong, or the key is damaged")]
    WrongPassword,
    /// No randomness, or scrypt failed.
    #[error("unable to encrypt the key")]
    Encrypt,
}

#[derive(Serialize, Deserialize)]
struct Envelope {
    kdf: Kdf,
    cipher: Cipher,
    ciphertext: Base64,
}

#[derive(Serialize, Deserialize)]
struct Kdf {
    name: String,
    params: Params,
    salt: Base64,
}

#[derive(Serialize, Deserialize)]
struct Params {
    #[serde(rename = "N")]
    n: u64,
    r: u32,
    p: u32,
}

#[derive(Serialize, Deserialize)]
struct Cipher {
    name: String,
    nonce: Base64,
}

/// Bytes as base64, like Go's `[]byte`.
struct Base64(Vec<u8>);

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Self).map_err(serde::de::Error::custom)
    }
}

/// Decrypts the key.
pub fn open(text: &[u8], password: &[u8]) -> Result<Vec<u8>, EncryptedError> {
    let envelope: Envelope =
        serde_json::from_slice(text).map_err(|error| EncryptedError::Unreadable(error.to_string()))?;
    let Kdf { name, params, salt } = envelope.kdf;
    let exponent = u8::try_from(params.n.trailing_zeros()).unwrap_or(0);
    let accepted = params.n.is_power_of_two() && ACCEPTED.contains(&exponent) && params.r == R && params.p == P;
    if name != "scrypt" || !accepted {
        return Err(EncryptedError::Unsupported(format!("{name} (N={}, r={}, p={})", params.n, params.r, params.p)));
    }
    if envelope.cipher.name != "nacl/secretbox" {
        return Err(EncryptedError::Unsupported(envelope.cipher.name));
    }
    let nonce: [u8; NONCE] = envelope
        .cipher
        .nonce
        .0
        .try_into()
        .map_err(|_| EncryptedError::Unreadable(format!("its nonce has not {NONCE} bytes")))?;
    SecretBox::new(password, &salt.0, exponent, nonce)?
        .open(&envelope.ciphertext.0)
        .ok_or(EncryptedError::WrongPassword)
}

/// Encrypts a key.
pub fn seal(secret: &[u8], password: &[u8]) -> Result<Vec<u8>, EncryptedError> {
    let (mut salt, mut nonce) = ([0; SALT], [0; NONCE]);
    for random in [&mut salt[..], &mut nonce[..]] {
        aws_lc_rs::rand::fill(random).map_err(|_| EncryptedError::Encrypt)?;
    }
    let ciphertext = SecretBox::new(password, &salt, WRITTEN, nonce)?.seal(secret);
    let envelope = Envelope {
        kdf: Kdf {
            name: "scrypt".to_owned(),
            params: Params { n: 1 << WRITTEN, r: R, p: P },
            salt: Base64(salt.to_vec()),
        },
        cipher: Cipher { name: "nacl/secretbox".to_owned(), nonce: Base64(nonce.to_vec()) },
        ciphertext: Base64(ciphertext),
    };
    serde_json::to_vec(&envelope).map_err(|_| EncryptedError::Encrypt)
}

/// NaCl's secret box: XSalsa20, whose first 32 bytes are the key of the Poly1305 tag before the text. For one message.
struct SecretBox {
    stream: XSalsa20,
    tag: Poly1305,
}

const TAG: usize = 16;

impl SecretBox {
    fn new(password: &[u8], salt: &[u8], exponent: u8, nonce: [u8; NONCE]) -> Result<Self, EncryptedError> {
        let params = scrypt::Params::new(exponent, R, P).map_err(|_| EncryptedError::Encrypt)?;
        let (mut key, mut tag_key) = ([0; 32], [0; 32]);
        scrypt::scrypt(password, salt, &params, &mut key).map_err(|_| EncryptedError::Encrypt)?;
        let mut stream = XSalsa20::new(&key.into(), &nonce.into());
        stream.apply_keystream(&mut tag_key);
        Ok(SecretBox { stream, tag: Poly1305::new(&tag_key.into()) })
    }

    fn seal(mut self, text: &[u8]) -> Vec<u8> {
        let mut text = text.to_vec();
        self.stream.apply_keystream(&mut text);
        [self.tag.compute_unpadded(&text).as_slice(), &text].concat()
    }

    fn open(mut self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (tag, text) = sealed.split_at_checked(TAG)?;
        let expected = self.tag.compute_unpadded(text);
        aws_lc_rs::constant_time::verify_slices_are_equal(expected.as_slice(), tag).ok()?;
        let mut text = text.to_vec();
        self.stream.apply_keystream(&mut text);
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_sealed_secret_opens_with_its_password_alone() {
        let sealed = seal(b"secret", b"password").unwrap();
        assert_eq!(open(&sealed, b"password").unwrap(), b"secret");
        assert_eq!(open(&sealed, b"Password"), Err(EncryptedError::WrongPassword));
        let mut damaged: Value = serde_json::from_slice(&sealed).unwrap();
        let nonce = STANDARD.encode([7; NONCE]);
        damaged["cipher"]["nonce"] = json!(nonce);
        assert_eq!(open(damaged.to_string().as_bytes(), b"password"), Err(EncryptedError::WrongPassword));
    }

    #[test]
    fn parameters_that_would_exhaust_the_reader_are_refused_unread() {
        let sealed: Value = serde_json::from_slice(&seal(b"secret", b"").unwrap()).unwrap();
        for (pointer, value) in [
            ("/kdf/params/N", json!(1_u64 << 40)),
            ("/kdf/params/N", json!(65_537)),
            ("/kdf/params/N", json!(0)),
            ("/kdf/params/r", json!(1 << 20)),
            ("/kdf/params/p", json!(1 << 20)),
            ("/kdf/name", json!("none")),
            ("/cipher/name", json!("none")),
        ] {
            let mut bad = sealed.clone();
            *bad.pointer_mut(pointer).unwrap() = value;
            assert!(matches!(open(bad.to_string().as_bytes(), b""), Err(EncryptedError::Unsupported(_))), "{pointer}");
        }
        for (pointer, value) in [("/cipher/nonce", json!("AAAA")), ("/ciphertext", json!("%")), ("/kdf", json!(1))] {
            let mut bad = sealed.clone();
            *bad.pointer_mut(pointer).unwrap() = value;
            assert!(matches!(open(bad.to_string().as_bytes(), b""), Err(EncryptedError::Unreadable(_))), "{pointer}");
        }
    }
}
