//! Makes keys and certificates as kubeadm and Kubernetes expect them. Pure.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use capwasm_contract::{Algorithm, Pair, Refused, Subject};
use capwasm_pki::{Authority, CertificateError, Leaf, Validity};
use rustls_pki_types::CertificateDer;
use x509_parser::parse_x509_certificate;

/// A hundred years: enough for every authority, and well inside what X.509 can write.
const MAX_DAYS: u32 = 36_525;

/// A self-signed authority. Its key may sign certificates, and serve as upstream's CAs do.
pub(super) fn authority(name: &str, algorithm: Algorithm, days: u32, now_ms: u64) -> Result<Pair, Refused> {
    let validity = validity(days, now_ms)?;
    Authority::new(name, of(algorithm), validity, None).map(|authority| pair(authority.pair())).map_err(refused)
}

/// A client certificate with a new key. For an intermediate authority its chain follows the leaf, without the
/// self-signed root.
pub(super) fn client(
    authority: &Pair,
    subject: &Subject,
    algorithm: Algorithm,
    days: u32,
    now_ms: u64,
) -> Result<Pair, Refused> {
    let signer = Authority::from_pem(&authority.certificate_pem, &authority.key_pem).map_err(refused)?;
    if let Some(address) = subject.ip_addresses.iter().find(|address| address.parse::<IpAddr>().is_err()) {
        return Err(bad_subject(format!("address {address:?}: invalid IP address syntax")));
    }
    let organizations: Vec<&str> = subject.organizations.iter().map(String::as_str).collect();
    let names = [&subject.dns_names[..], &subject.ip_addresses[..]].concat();
    let leaf = Leaf { names, ..Leaf::client(&subject.common_name, &organizations) };
    let mut issued = signer.issue(&leaf, of(algorithm), validity(days, now_ms)?).map_err(refused)?;
    let chain = capwasm_pki::certificates(&authority.certificate_pem).map_err(refused)?;
    for intermediate in chain.iter().filter(|der| !is_self_signed(der)) {
        issued.certificate.push_str(&capwasm_pki::certificate_pem(intermediate));
    }
    Ok(pair(issued))
}

/// Public and private key as PEM.
pub(super) fn signing_key(algorithm: Algorithm) -> Result<(String, String), Refused> {
    let key = of(algorithm).generate().map_err(refused)?;
    Ok((key.public_key_pem(), key.serialize_pem()))
}

/// `sha256:<hex>` of the first certificate's subject public key info.
pub(super) fn public_key_hash(pem: &str) -> Result<String, Refused> {
    capwasm_pki::certificate(pem).and_then(|der| capwasm_pki::public_key_hash(&der)).map_err(refused)
}

/// End of the first certificate's validity, in milliseconds since 1970.
pub(super) fn not_after_ms(pem: &str) -> Result<u64, Refused> {
    let end = capwasm_pki::certificate(pem).and_then(|der| capwasm_pki::not_after(&der)).map_err(refused)?;
    Ok(u64::try_from(end).unwrap_or(0) * 1_000)
}

fn of(algorithm: Algorithm) -> capwasm_pki::Algorithm {
    match algorithm {
        Algorithm::EcdsaP256 => capwasm_pki::Algorithm::EcdsaP256,
        Algorithm::EcdsaP384 => capwasm_pki::Algorithm::EcdsaP384,
        Algorithm::Ed25519 => capwasm_pki::Algorithm::Ed25519,
        Algorithm::Rsa2048 => capwasm_pki::Algorithm::Rsa2048,
        Algorithm::Rsa3072 => capwasm_pki::Algorithm::Rsa3072,
        Algorithm::Rsa4096 => capwasm_pki::Algorithm::Rsa4096,
    }
}

fn pair(made: capwasm_pki::Pair) -> Pair {
    Pair { certificate_pem: made.certificate, key_pem: made.key }
}

/// The year 9000: a hundred years later is still within the range of a certificate.
const MAX_NOW_MS: u64 = 221_845_392_000_000;

fn validity(days: u32, now_ms: u64) -> Result<Validity, Refused> {
    if days == 0 || days > MAX_DAYS {
        return Err(bad_subject(format!("valid for {days} days: expected 1 to {MAX_DAYS}")));
    }
    let now = SystemTime::UNIX_EPOCH + Duration::from_millis(now_ms.min(MAX_NOW_MS));
    Ok(Validity::of(now, Duration::from_secs(u64::from(days) * 86_400)))
}

fn is_self_signed(der: &CertificateDer<'_>) -> bool {
    parse_x509_certificate(der).is_ok_and(|(_, certificate)| certificate.subject() == certificate.issuer())
}

fn refused(error: CertificateError) -> Refused {
    let reason = match error {
        CertificateError::Make(_) => "NotMade",
        CertificateError::Certificate(_) => "BadCertificate",
        CertificateError::Key(_) => "BadKey",
        CertificateError::OtherKey => "KeyMismatch",
        CertificateError::Organizations(_) | CertificateError::Name(..) => "BadSubject",
    };
    Refused::invalid(reason, error.to_string())
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
    fn clients_are_signed_with_keys_of_every_algorithm() {
        for algorithm in [Algorithm::EcdsaP256, Algorithm::EcdsaP384, Algorithm::Ed25519, Algorithm::Rsa2048] {
            let ca = authority("kubernetes", algorithm, 3650, NOW_MS).unwrap();
            let leaf = client(&ca, &subject(), algorithm, 365, NOW_MS).unwrap();
            let der = capwasm_pki::certificate(&leaf.certificate_pem).unwrap();
            let (_, leaf) = parse_x509_certificate(&der).unwrap();
            assert_eq!(leaf.subject().to_string(), "CN=kubernetes-admin, O=system:masters, O=other", "{algorithm:?}");
            assert_eq!(leaf.subject_alternative_name().unwrap().unwrap().value.general_names.len(), 3);
            assert!(leaf.extended_key_usage().unwrap().unwrap().value.client_auth);
        }
    }

    #[test]
    fn times_follow_from_the_call() {
        let ca = authority("x", Algorithm::EcdsaP256, 10, NOW_MS).unwrap();
        assert_eq!(not_after_ms(&ca.certificate_pem).unwrap(), NOW_MS + 10 * 86_400_000);
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
            (
                "no address",
                client(&ca, &Subject { ip_addresses: vec!["x".into()], ..subject() }, Algorithm::EcdsaP256, 1, NOW_MS)
                    .err(),
                "BadSubject",
            ),
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
        let signer = Authority::from_pem(&root.certificate_pem, &root.key_pem).unwrap();
        let key = capwasm_pki::Algorithm::EcdsaP256.generate().unwrap();
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, "intermediate");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let intermediate = params.signed_by(&key, &signer.issuer().unwrap()).unwrap();
        let ca = Pair { certificate_pem: intermediate.pem() + &root.certificate_pem, key_pem: key.serialize_pem() };
        let leaf = client(&ca, &subject(), Algorithm::EcdsaP256, 1, NOW_MS).unwrap();
        let chain = capwasm_pki::certificates(&leaf.certificate_pem).unwrap();
        assert_eq!(chain.len(), 2);
        assert_eq!(*chain[1], **intermediate.der());
    }

    #[test]
    fn signing_keys_come_as_a_pair() {
        let (public, private) = signing_key(Algorithm::EcdsaP256).unwrap();
        assert!(public.starts_with("-----BEGIN PUBLIC KEY-----"));
        assert_eq!(capwasm_pki::private_key(&private).unwrap().public_key_pem(), public);
    }
}
