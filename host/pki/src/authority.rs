//! Who signs certificates.

use rcgen::{BasicConstraints, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData};
use rustls_pki_types::CertificateDer;

use crate::leaf::params;
use crate::{Algorithm, CertificateError, Leaf, Pair, Validity, read};

/// A certificate authority: its certificate, and the key that signs.
pub struct Authority {
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

impl Authority {
    /// A self-signed one with a new key. With `intermediates` that many authorities may stand between it and a leaf; any number
    /// without.
    ///
    /// # Errors
    /// When a key or the certificate cannot be made.
    pub fn new(
        name: &str,
        algorithm: Algorithm,
        validity: Validity,
        intermediates: Option<u8>,
    ) -> Result<Self, CertificateError> {
        let key = algorithm.generate()?;
        let mut params = params(name, &[])?;
        (params.not_before, params.not_after) = (validity.from.into(), validity.until.into());
        params.is_ca = IsCa::Ca(intermediates.map_or(BasicConstraints::Unconstrained, BasicConstraints::Constrained));
        // What upstream's may do.
        params.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment, KeyUsagePurpose::KeyCertSign];
        let certificate = params.self_signed(&key).map_err(CertificateError::Make)?;
        Ok(Self { certificate: certificate.der().clone(), key })
    }

    /// Of the first certificate in a text and its key, which other tools may have made.
    ///
    /// # Errors
    /// When they cannot be read, do not belong together, or are no authority.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, CertificateError> {
        let authority = Self { certificate: read::certificate(certificate)?, key: read::private_key(key)? };
        let parsed = read::parse(&authority.certificate)?;
        if !parsed.is_ca() {
            return Err(CertificateError::Certificate("it is not an authority's".to_owned()));
        }
        if parsed.public_key().raw != authority.key.subject_public_key_info() {
            return Err(CertificateError::OtherKey);
        }
        authority.issuer()?;
        Ok(authority)
    }

    /// Its certificate, DER.
    #[must_use]
    pub fn der(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// Certificate and key.
    #[must_use]
    pub fn pair(&self) -> Pair {
        Pair { certificate: read::certificate_pem(&self.certificate), key: self.key.serialize_pem() }
    }

    /// A certificate with a new key.
    ///
    /// # Errors
    /// When it cannot be made, or says what a certificate cannot say.
    pub fn issue(&self, leaf: &Leaf<'_>, algorithm: Algorithm, validity: Validity) -> Result<Pair, CertificateError> {
        let key = algorithm.generate()?;
        let params = leaf.params(validity)?;
        let certificate = params.signed_by(&key, &self.issuer()?).map_err(CertificateError::Make)?;
        Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    /// To sign what somebody else's key asks for.
    ///
    /// # Errors
    /// When its certificate has what rcgen does not know.
    pub fn issuer(&self) -> Result<Issuer<'_, &KeyPair>, CertificateError> {
        Issuer::from_ca_cert_der(&self.certificate, &self.key)
            .map_err(|error| CertificateError::Certificate(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::request;

    fn day() -> Validity {
        Validity::of(SystemTime::UNIX_EPOCH + Duration::from_secs(1_900_000_000), Duration::from_secs(86_400))
    }

    fn authority(algorithm: Algorithm) -> Authority {
        Authority::new("kubernetes", algorithm, day(), None).unwrap()
    }

    fn leaf() -> Leaf<'static> {
        let names = ["a.example.org", "10.0.0.1", "fd00::1"].map(str::to_owned).to_vec();
        Leaf { names, ..Leaf::client("kubernetes-admin", &["system:masters", "other"]) }
    }

    #[test]
    fn authorities_of_every_algorithm_sign() {
        for algorithm in [Algorithm::EcdsaP256, Algorithm::EcdsaP384, Algorithm::Ed25519, Algorithm::Rsa2048] {
            let pair = authority(algorithm).pair();
            let authority = Authority::from_pem(&pair.certificate, &pair.key).unwrap();
            let leaf = authority.issue(&leaf(), Algorithm::EcdsaP256, day()).unwrap();
            let leaf_der = read::certificate(&leaf.certificate).unwrap();
            let (ca, leaf) = (read::parse(authority.der()).unwrap(), read::parse(&leaf_der).unwrap());
            assert!(ca.is_ca() && !leaf.is_ca(), "{algorithm:?}");
            assert_eq!(leaf.issuer(), ca.subject());
            assert_eq!(leaf.subject().to_string(), "CN=kubernetes-admin, O=system:masters, O=other");
            let usage = leaf.extended_key_usage().unwrap().unwrap().value;
            assert!(usage.client_auth && !usage.server_auth);
            assert_eq!(leaf.subject_alternative_name().unwrap().unwrap().value.general_names.len(), 3);
            leaf.verify_signature(Some(ca.public_key())).unwrap();
        }
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let (one, other) = (authority(Algorithm::EcdsaP256).pair(), authority(Algorithm::EcdsaP256).pair());
        let signed = authority(Algorithm::EcdsaP256).issue(&leaf(), Algorithm::EcdsaP256, day()).unwrap();
        for (what, certificate, key, expected) in [
            ("another's key", &one.certificate, &other.key, "the authority's key does not belong to its certificate"),
            ("a leaf", &signed.certificate, &signed.key, "unable to use the certificate: it is not an authority's"),
            ("no certificate", &one.key, &one.key, "unable to use the certificate: "),
            ("no key", &one.certificate, &one.certificate, "unable to read the private key: "),
        ] {
            let error = Authority::from_pem(certificate, key).err().unwrap().to_string();
            assert!(error.starts_with(expected), "{what}: {error}");
        }
    }

    #[test]
    fn what_a_certificate_cannot_say_is_refused() {
        let three = ["a", "b", "c"];
        let issue = |leaf: Leaf<'_>| authority(Algorithm::EcdsaP256).issue(&leaf, Algorithm::EcdsaP256, day());
        for (what, refused, expected) in [
            ("organizations", issue(Leaf::client("x", &three)), "3 organizations: expected at most 2"),
            (
                "organizations of a request",
                request("x", &three, Algorithm::EcdsaP256),
                "3 organizations: expected at most 2",
            ),
            ("a name", issue(Leaf::server("x", vec!["é".to_owned()])), "DNS name \"é\": "),
        ] {
            let error = refused.err().unwrap().to_string();
            assert!(error.starts_with(expected), "{what}: {error}");
        }
    }
}
