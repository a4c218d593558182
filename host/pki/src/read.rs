//! Certificates and keys as they are written: PEM, and DER within it.

use pem::{EncodeConfig, LineEnding, Pem};
use rcgen::KeyPair;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::CertificateError;

fn bad_certificate(error: impl std::fmt::Display) -> CertificateError {
    CertificateError::Certificate(error.to_string())
}

/// All certificates in a PEM text, unparsed.
///
/// # Errors
/// When what says that it is one is not PEM.
pub fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().map_err(bad_certificate)
}

/// The first certificate in a PEM text, unparsed.
///
/// # Errors
/// When there is none.
pub fn certificate(pem: &str) -> Result<CertificateDer<'static>, CertificateError> {
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(bad_certificate)
}

/// A certificate as PEM.
#[must_use]
pub fn certificate_pem(der: &[u8]) -> String {
    pem::encode_config(&Pem::new("CERTIFICATE", der), EncodeConfig::new().set_line_ending(LineEnding::LF))
}

/// The first private key in a PEM text: PKCS#8, PKCS#1 or SEC1, since users bring authorities made by other tools.
///
/// # Errors
/// When there is none that signs.
pub fn private_key(pem: &str) -> Result<KeyPair, CertificateError> {
    let key =
        PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|error| CertificateError::Key(error.to_string()))?;
    KeyPair::try_from(&key).map_err(|error| CertificateError::Key(error.to_string()))
}

pub(crate) fn parse(der: &[u8]) -> Result<X509Certificate<'_>, CertificateError> {
    X509Certificate::from_der(der).map(|(_, certificate)| certificate).map_err(bad_certificate)
}

/// `sha256:<hex>` of a certificate's subject public key info, as kubeadm pins authorities.
///
/// # Errors
/// When it is no certificate.
pub fn public_key_hash(der: &[u8]) -> Result<String, CertificateError> {
    Ok(format!("sha256:{}", hex::encode(Sha256::digest(parse(der)?.public_key().raw))))
}

/// When a certificate ends, seconds since 1970.
///
/// # Errors
/// When it is no certificate.
pub fn not_after(der: &[u8]) -> Result<i64, CertificateError> {
    Ok(parse(der)?.validity().not_after.timestamp())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use std::time::{Duration, SystemTime};

    use rcgen::PublicKeyData;

    use super::*;
    use crate::{Algorithm, Authority, Validity};

    #[test]
    fn pem_has_lines_of_64_characters() {
        let lines: Vec<usize> = certificate_pem(&[7; 100]).lines().map(str::len).collect();
        assert_eq!(lines, [27, 64, 64, 8, 25]);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let end = 1_900_000_000;
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(end - 86_400);
        let validity = Validity::of(now, Duration::from_secs(86_400));
        let authority = Authority::new("x", Algorithm::EcdsaP256, validity, None).unwrap();
        let pair = authority.pair();
        assert_eq!(
            certificates(&pair.certificate.repeat(2)).unwrap(),
            [authority.der().clone(), authority.der().clone()]
        );
        assert_eq!(certificate(&pair.certificate).unwrap(), *authority.der());
        assert_eq!(not_after(authority.der()).unwrap(), i64::try_from(end).unwrap());
        let key = private_key(&pair.key).unwrap();
        let expected = format!("sha256:{}", hex::encode(Sha256::digest(key.subject_public_key_info())));
        assert_eq!(public_key_hash(authority.der()).unwrap(), expected);
        assert!(public_key_hash(b"x").is_err() && certificate("x").is_err() && private_key("x").is_err());
    }
}
