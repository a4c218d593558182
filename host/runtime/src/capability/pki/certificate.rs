//! Keys and certificates as kubeadm and Kubernetes want them, without I/O.

use std::time::Duration;

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PublicKeyData, RsaKeySize, SanType, date_time_ymd,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

use capwasm_contract::{Algorithm, Pair, Refusal, Refused, Subject};

/// Clocks of new machines may be a little behind.
const BACKDATED: Duration = Duration::from_secs(300);
/// A hundred years: enough for every authority, and well inside what X.509 can write.
const MAX_DAYS: u32 = 36_525;

/// A self-signed authority. Its key may sign certificates and revocation lists, and serve as upstream's CAs do.
pub(super) fn authority(name: &str, algorithm: Algorithm, days: u32, now_ms: u64) -> Result<Pair, Refused> {
    let key = generate(algorithm)?;
    let mut params = params(name, &[], days, now_ms)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages =
        vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment, KeyUsagePurpose::KeyCertSign];
    let certificate = params.self_signed(&key).map_err(not_made)?;
    Ok(pair(&certificate, String::new(), &key))
}

/// A client certificate with a fresh key. Where the authority is an intermediate, its own chain follows the leaf, up to
/// but without the self-signed root.
pub(super) fn client(
    authority: &Pair,
    subject: &Subject,
    algorithm: Algorithm,
    days: u32,
    now_ms: u64,
) -> Result<Pair, Refused> {
    let chain = chain(&authority.certificate_pem)?;
    let signer = chain.first().ok_or_else(|| bad_certificate("no certificate in it"))?;
    let signer_key = signing_key_of(&authority.key_pem)?;
    check_authority(signer, &signer_key)?;
    let issuer = Issuer::from_ca_cert_der(signer, signer_key).map_err(bad_certificate)?;

    let key = generate(algorithm)?;
    let mut params = params(&subject.common_name, &subject.organizations, days, now_ms)?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = true;
    for name in &subject.dns_names {
        let name = name.as_str().try_into().map_err(|error| bad_subject(format!("DNS name {name:?}: {error}")))?;
        params.subject_alt_names.push(SanType::DnsName(name));
    }
    for address in &subject.ip_addresses {
        let address = address.parse().map_err(|error| bad_subject(format!("address {address:?}: {error}")))?;
        params.subject_alt_names.push(SanType::IpAddress(address));
    }
    let certificate = params.signed_by(&key, &issuer).map_err(not_made)?;
    let intermediates = chain.iter().filter(|der| !is_self_signed(der)).map(certificate_pem).collect();
    Ok(pair(&certificate, intermediates, &key))
}

/// Public and private key, PEM.
pub(super) fn signing_key(algorithm: Algorithm) -> Result<(String, String), Refused> {
    let key = generate(algorithm)?;
    Ok((key.public_key_pem(), key.serialize_pem()))
}

/// `sha256:<hex>` of the first certificate's subject public key info.
pub(super) fn public_key_hash(pem: &str) -> Result<String, Refused> {
    let der = first_certificate(pem)?;
    let certificate = parse(&der)?;
    let digest = Sha256::digest(certificate.public_key().raw);
    Ok(format!("sha256:{}", hex::encode(digest)))
}

/// When the first certificate ends, milliseconds since 1970.
pub(super) fn not_after_ms(pem: &str) -> Result<u64, Refused> {
    let der = first_certificate(pem)?;
    let end = parse(&der)?.validity().not_after.timestamp();
    Ok(u64::try_from(end).unwrap_or(0) * 1_000)
}

fn generate(algorithm: Algorithm) -> Result<KeyPair, Refused> {
    match algorithm {
        Algorithm::EcdsaP256 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256),
        Algorithm::EcdsaP384 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384),
        Algorithm::Ed25519 => KeyPair::generate_for(&rcgen::PKCS_ED25519),
        Algorithm::Rsa2048 => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048),
        Algorithm::Rsa3072 => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_3072),
        Algorithm::Rsa4096 => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_4096),
    }
    .map_err(not_made)
}

fn params(name: &str, organizations: &[String], days: u32, now_ms: u64) -> Result<CertificateParams, Refused> {
    if days == 0 || days > MAX_DAYS {
        return Err(bad_subject(format!("valid for {days} days: expected 1 to {MAX_DAYS}")));
    }
    let now = date_time_ymd(1970, 1, 1) + Duration::from_millis(now_ms.min(MAX_NOW_MS));
    let mut params = CertificateParams::default();
    params.not_before = now - BACKDATED;
    params.not_after = now + Duration::from_secs(u64::from(days) * 86_400);
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    // rcgen keeps one value per attribute type; the same type by its number is another one to it.
    let organization_types = [DnType::OrganizationName, DnType::CustomDnType(vec![2, 5, 4, 10])];
    if organizations.len() > organization_types.len() {
        return Err(bad_subject(format!("{} organizations: expected at most 2", organizations.len())));
    }
    for (attribute, organization) in organization_types.into_iter().zip(organizations) {
        params.distinguished_name.push(attribute, organization.as_str());
    }
    Ok(params)
}

/// The year 9000: adding a hundred years to any instant up to it stays within what a certificate can write.
const MAX_NOW_MS: u64 = 221_845_392_000_000;

fn pair(certificate: &Certificate, intermediates: String, key: &KeyPair) -> Pair {
    Pair { certificate_pem: certificate.pem() + &intermediates, key_pem: key.serialize_pem() }
}

/// PKCS #8, PKCS #1 and SEC1, since users bring authorities made by other tools.
fn signing_key_of(pem: &str) -> Result<KeyPair, Refused> {
    let bad =
        |error: &dyn std::fmt::Display| Refused::invalid("BadKey", format!("unable to read the private key: {error}"));
    let der = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|error| bad(&error))?;
    KeyPair::try_from(&der).map_err(|error| bad(&error))
}

fn check_authority(certificate: &CertificateDer<'_>, key: &KeyPair) -> Result<(), Refused> {
    let parsed = parse(certificate)?;
    if !parsed.is_ca() {
        return Err(bad_certificate("it is not an authority's"));
    }
    if parsed.public_key().raw != key.subject_public_key_info() {
        return Err(Refused::invalid("KeyMismatch", "the authority's key does not belong to its certificate"));
    }
    Ok(())
}

fn chain(pem: &str) -> Result<Vec<CertificateDer<'static>>, Refused> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().map_err(bad_certificate)
}

fn first_certificate(pem: &str) -> Result<CertificateDer<'static>, Refused> {
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(bad_certificate)
}

fn parse<'a>(der: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, Refused> {
    X509Certificate::from_der(der).map(|(_, certificate)| certificate).map_err(bad_certificate)
}

fn is_self_signed(der: &CertificateDer<'_>) -> bool {
    parse(der).is_ok_and(|certificate| certificate.subject() == certificate.issuer())
}

fn certificate_pem(der: &CertificateDer<'_>) -> String {
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in text.as_bytes().chunks(64) {
        pem.push_str(&String::from_utf8_lossy(line));
        pem.push('\n');
    }
    pem + "-----END CERTIFICATE-----\n"
}

fn not_made(error: rcgen::Error) -> Refused {
    Refused::new(Refusal::Invalid, "NotMade", format!("unable to make the key or certificate: {error}"))
}

fn bad_certificate(error: impl std::fmt::Display) -> Refused {
    Refused::invalid("BadCertificate", format!("unable to use the certificate: {error}"))
}

fn bad_subject(message: String) -> Refused {
    Refused::invalid("BadSubject", message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    const NOW_MS: u64 = 1_900_000_000_000;

    fn subject() -> Subject {
        Subject {
            common_name: "kubernetes-admin".into(),
            organizations: vec!["system:masters".into(), "other".into()],
            dns_names: vec!["a.example.org".into()],
            ip_addresses: vec!["10.0.0.1".into(), "fd00::1".into()],
        }
    }

    #[test]
    fn every_algorithm_makes_an_authority_that_signs_clients() {
        for algorithm in [Algorithm::EcdsaP256, Algorithm::EcdsaP384, Algorithm::Ed25519, Algorithm::Rsa2048] {
            let ca = authority("kubernetes", algorithm, 3650, NOW_MS).unwrap();
            let leaf = client(&ca, &subject(), Algorithm::EcdsaP256, 365, NOW_MS).unwrap();
            let (ca_der, leaf_der) = (chain(&ca.certificate_pem).unwrap(), chain(&leaf.certificate_pem).unwrap());
            assert_eq!((ca_der.len(), leaf_der.len()), (1, 1), "{algorithm:?}");
            let (ca, leaf) = (parse(&ca_der[0]).unwrap(), parse(&leaf_der[0]).unwrap());
            assert!(ca.is_ca() && !leaf.is_ca());
            assert_eq!(leaf.issuer(), ca.subject());
            assert_eq!(leaf.subject().to_string(), "CN=kubernetes-admin, O=system:masters, O=other");
            assert!(leaf.extended_key_usage().unwrap().unwrap().value.client_auth);
            leaf.verify_signature(Some(ca.public_key())).unwrap();
        }
    }

    #[test]
    fn times_follow_from_the_call() {
        let ca = authority("x", Algorithm::EcdsaP256, 10, NOW_MS).unwrap();
        assert_eq!(not_after_ms(&ca.certificate_pem).unwrap(), NOW_MS + 10 * 86_400_000);
    }

    #[test]
    fn the_public_key_hash_is_that_of_the_subject_public_key_info() {
        let ca = authority("x", Algorithm::EcdsaP256, 10, NOW_MS).unwrap();
        let key = signing_key_of(&ca.key_pem).unwrap();
        let expected = format!("sha256:{}", hex::encode(Sha256::digest(key.subject_public_key_info())));
        assert_eq!(public_key_hash(&ca.certificate_pem).unwrap(), expected);
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let ca = authority("x", Algorithm::EcdsaP256, 10, NOW_MS).unwrap();
        let other = authority("y", Algorithm::EcdsaP256, 10, NOW_MS).unwrap();
        let leaf = client(&ca, &subject(), Algorithm::EcdsaP256, 1, NOW_MS).unwrap();
        let mixed = Pair { certificate_pem: ca.certificate_pem.clone(), key_pem: other.key_pem };
        let rows = [
            ("another's key", client(&mixed, &subject(), Algorithm::EcdsaP256, 1, NOW_MS).err(), "KeyMismatch"),
            ("a leaf as authority", client(&leaf, &subject(), Algorithm::EcdsaP256, 1, NOW_MS).err(), "BadCertificate"),
            ("no days", authority("x", Algorithm::EcdsaP256, 0, NOW_MS).err(), "BadSubject"),
            ("not a certificate", public_key_hash("x").err(), "BadCertificate"),
        ];
        for (name, refused, reason) in rows {
            assert_eq!(refused.unwrap().reason, reason, "{name}");
        }
    }

    #[test]
    fn an_intermediate_brings_its_chain_without_the_root() {
        let root = authority("root", Algorithm::EcdsaP256, 10, NOW_MS).unwrap();
        let root_der = chain(&root.certificate_pem).unwrap();
        let issuer = Issuer::from_ca_cert_der(&root_der[0], signing_key_of(&root.key_pem).unwrap()).unwrap();
        let key = generate(Algorithm::EcdsaP256).unwrap();
        let mut params = params("intermediate", &[], 10, NOW_MS).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let intermediate = params.signed_by(&key, &issuer).unwrap();
        let ca = Pair { certificate_pem: intermediate.pem() + &root.certificate_pem, key_pem: key.serialize_pem() };
        let leaf = client(&ca, &subject(), Algorithm::EcdsaP256, 1, NOW_MS).unwrap();
        let names: Vec<_> =
            chain(&leaf.certificate_pem).unwrap().iter().map(|d| parse(d).unwrap().subject().to_string()).collect();
        assert_eq!(names.len(), 2);
        assert_eq!(names[1], "CN=intermediate");
    }

    #[test]
    fn signing_keys_come_as_a_pair() {
        let (public, private) = signing_key(Algorithm::EcdsaP256).unwrap();
        assert!(public.starts_with("-----BEGIN PUBLIC KEY-----"));
        assert_eq!(signing_key_of(&private).unwrap().public_key_pem(), public);
    }
}
