//! Certificates of a cluster: authorities as they lie in a node's files, and what is issued from them.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P384_SHA384, PKCS_RSA_SHA256, PublicKeyData, RsaKeySize, SanType,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use sha2::{Digest, Sha256};

use crate::files::{Files, reason};
use crate::kubeadm::lower;

/// Validity of issued certificates unless the configuration says otherwise.
const LEAF: Duration = Duration::from_secs(365 * 24 * 3600);
/// Validity of authorities unless the configuration says otherwise.
const AUTHORITY: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// How far certificates are backdated, against clocks that differ.
const SKEW: Duration = Duration::from_secs(300);

/// Which keys are generated. kubeadm's own default is RSA-2048; ours is ECDSA P-256 because RSA keys would dominate the cost
/// of a simulated cluster. RSA is made when it is asked for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Algorithm {
    /// `ECDSA-P256`.
    #[default]
    EcdsaP256,
    /// `ECDSA-P384`.
    EcdsaP384,
    /// `RSA-2048`, `RSA-3072`, `RSA-4096`.
    Rsa(u16),
}

impl Algorithm {
    /// Parses `encryptionAlgorithm`.
    ///
    /// # Errors
    /// When kubeadm does not know it.
    pub fn parse(text: &str) -> Result<Algorithm, String> {
        match text {
            "" | "ECDSA-P256" => Ok(Algorithm::EcdsaP256),
            "ECDSA-P384" => Ok(Algorithm::EcdsaP384),
            "RSA-2048" => Ok(Algorithm::Rsa(2048)),
            "RSA-3072" => Ok(Algorithm::Rsa(3072)),
            "RSA-4096" => Ok(Algorithm::Rsa(4096)),
            other => Err(format!("encryptionAlgorithm: Invalid value: {other:?}")),
        }
    }

    fn generate(self) -> Result<KeyPair, String> {
        let made = match self {
            Algorithm::EcdsaP256 => KeyPair::generate(),
            Algorithm::EcdsaP384 => KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384),
            Algorithm::Rsa(2048) => KeyPair::generate_for(&PKCS_RSA_SHA256),
            Algorithm::Rsa(3072) => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_3072),
            Algorithm::Rsa(_) => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_4096),
        };
        made.map_err(|error| format!("unable to generate a private key: {error}"))
    }
}

/// How long certificates are good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// What is issued.
    pub leaf: Duration,
    /// Authorities.
    pub authority: Duration,
}

impl Default for Validity {
    fn default() -> Validity {
        Validity { leaf: LEAF, authority: AUTHORITY }
    }
}

/// A certificate authority with its key.
pub struct Authority {
    /// Certificate, PEM.
    pub certificate: String,
    /// Certificate, DER.
    pub der: Vec<u8>,
    key: KeyPair,
}

/// What a certificate is for.
pub struct Profile<'a> {
    /// Common name.
    pub name: &'a str,
    /// Organisation: the group of a client.
    pub organisation: Option<&'a str>,
    /// DNS names and addresses.
    pub names: Vec<String>,
    /// Whether servers use it.
    pub server: bool,
    /// Whether clients use it.
    pub client: bool,
}

impl<'a> Profile<'a> {
    /// A client certificate.
    pub fn client(name: &'a str, organisation: Option<&'a str>) -> Profile<'a> {
        Profile { name, organisation, names: Vec::new(), server: false, client: true }
    }
}

/// A certificate and its key, PEM.
pub struct Pair {
    /// Certificate.
    pub certificate: String,
    /// Private key.
    pub key: String,
}

impl Authority {
    /// Makes a new one.
    ///
    /// # Errors
    /// When a key cannot be made.
    pub fn generate(name: &str, algorithm: Algorithm) -> Result<Authority, String> {
        Authority::generate_for(name, algorithm, AUTHORITY)
    }

    fn generate_for(name: &str, algorithm: Algorithm, time: Duration) -> Result<Authority, String> {
        let key = algorithm.generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment, KeyUsagePurpose::KeyCertSign];
        validity(&mut params, time);
        let made = params.self_signed(&key).map_err(|error| format!("unable to sign certificate {name}: {error}"))?;
        Ok(Authority { certificate: made.pem(), der: made.der().to_vec(), key })
    }

    /// Takes a certificate and its key as PEM, and checks that they are a valid authority and belong together.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Authority, String> {
        let der = parse_certificate(certificate)?;
        check_authority(&der)?;
        let key = KeyPair::from_pem(key.trim()).map_err(|error| format!("unable to parse the private key: {error}"))?;
        if key.subject_public_key_info() != public_key_info(&der)? {
            return Err("the private key does not belong to the certificate".to_owned());
        }
        Ok(Authority { certificate: certificate.to_owned(), der, key })
    }

    /// Its private key, PEM.
    pub fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// Issues a certificate with a new key, good for a year.
    ///
    /// # Errors
    /// When a name is no name.
    pub fn issue(&self, profile: &Profile<'_>, algorithm: Algorithm) -> Result<Pair, String> {
        self.issue_for(profile, algorithm, LEAF)
    }

    /// Issues a certificate with a new key, good for `time`.
    ///
    /// # Errors
    /// When a name is no name.
    pub fn issue_for(&self, profile: &Profile<'_>, algorithm: Algorithm, time: Duration) -> Result<Pair, String> {
        let broken = |error: rcgen::Error| format!("unable to issue certificate {}: {error}", profile.name);
        let key = algorithm.generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        if let Some(organisation) = profile.organisation {
            params.distinguished_name.push(DnType::OrganizationName, organisation);
        }
        params.distinguished_name.push(DnType::CommonName, profile.name);
        for name in &profile.names {
            params.subject_alt_names.push(match name.parse::<IpAddr>() {
                Ok(address) => SanType::IpAddress(address),
                Err(_) => SanType::DnsName(name.as_str().try_into().map_err(broken)?),
            });
        }
        usages(&mut params, profile.server, profile.client);
        validity(&mut params, time);
        let issuer = Issuer::from_ca_cert_der(&CertificateDer::from(self.der.as_slice()), &self.key).map_err(broken)?;
        let made = params.signed_by(&key, &issuer).map_err(broken)?;
        Ok(Pair { certificate: made.pem(), key: key.serialize_pem() })
    }
}

/// A kubelet's request for a client certificate: the request and its key, PEM.
///
/// # Errors
/// When a key cannot be made.
pub fn kubelet_request(node: &str, algorithm: Algorithm) -> Result<Pair, String> {
    let key = algorithm.generate()?;
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(DnType::CommonName, format!("system:node:{node}"));
    let request = params.serialize_request(&key).and_then(|request| request.pem());
    let certificate = request.map_err(|error| format!("unable to make a certificate request: {error}"))?;
    Ok(Pair { certificate, key: key.serialize_pem() })
}

fn usages(params: &mut CertificateParams, server: bool, client: bool) {
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages.clear();
    if server {
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
    }
    if client {
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
    }
    params.use_authority_key_identifier_extension = true;
}

fn validity(params: &mut CertificateParams, time: Duration) {
    let now = SystemTime::now();
    params.not_before = (now - SKEW).into();
    params.not_after = (now + time).into();
}

/// The authority `<dir>/<base>.crt` with its key; made when neither file is there.
///
/// # Errors
/// When only one of the two is there, or they are no authority.
pub fn ensure_authority(
    files: &dyn Files,
    dir: &str,
    base: &str,
    name: &str,
    algorithm: Algorithm,
    validity: Validity,
) -> Result<(Authority, bool), String> {
    let (certificate, key) = (format!("{dir}/{base}.crt"), format!("{dir}/{base}.key"));
    match (files.exists(&certificate), files.exists(&key)) {
        (false, false) => {
            let made = Authority::generate_for(name, algorithm, validity.authority)?;
            write(files, &certificate, &made.certificate, 0o644)?;
            write(files, &key, &made.key_pem(), 0o600)?;
            Ok((made, true))
        }
        _ => load_authority(files, dir, base).map(|found| (found, false)),
    }
}

/// The authority `<dir>/<base>.crt` with its key.
///
/// # Errors
/// When a file is missing or they are no authority.
pub fn load_authority(files: &dyn Files, dir: &str, base: &str) -> Result<Authority, String> {
    let certificate = read(files, &format!("{dir}/{base}.crt"), "couldn't load the certificate file")?;
    let key = read(files, &format!("{dir}/{base}.key"), "couldn't load the private key file")?;
    Authority::from_pem(&certificate, &key).map_err(|error| format!("failure loading {base} certificate: {error}"))
}

/// Makes sure that the service account's key pair is there.
///
/// # Errors
/// When only the public key is there, or they do not belong together.
pub fn ensure_service_account_key(files: &dyn Files, dir: &str, algorithm: Algorithm) -> Result<(), String> {
    let (public, private) = (format!("{dir}/sa.pub"), format!("{dir}/sa.key"));
    if !files.exists(&private) {
        if files.exists(&public) {
            return Err(format!(
                "couldn't load the private key file {private}: open {private}: no such file or directory"
            ));
        }
        let key = algorithm.generate()?;
        write(files, &private, &key.serialize_pem(), 0o600)?;
        return write(files, &public, &key.public_key_pem(), 0o600);
    }
    let text = read(files, &private, "couldn't load the private key file")?;
    let key = KeyPair::from_pem(text.trim())
        .map_err(|error| format!("couldn't parse the private key file {private}: {error}"))?;
    if !files.exists(&public) {
        return write(files, &public, &key.public_key_pem(), 0o600);
    }
    let given = rustls_pki_types::SubjectPublicKeyInfoDer::from_pem_slice(
        read(files, &public, "couldn't load the public key file")?.as_bytes(),
    )
    .map_err(|error| format!("couldn't parse the public key file {public}: {error:?}"))?;
    if given.as_ref() == key.subject_public_key_info() {
        Ok(())
    } else {
        Err(format!("{public} does not belong to {private}"))
    }
}

/// Makes sure that `<dir>/<base>.crt` and `.key` are there and issued by `authority`.
///
/// # Errors
/// When what is there was issued by somebody else.
pub fn ensure_leaf(
    files: &dyn Files,
    dir: &str,
    base: &str,
    authority: &Authority,
    profile: &Profile<'_>,
    algorithm: Algorithm,
    validity: Validity,
) -> Result<bool, String> {
    let (certificate, key) = (format!("{dir}/{base}.crt"), format!("{dir}/{base}.key"));
    if files.exists(&certificate) && files.exists(&key) {
        let der = parse_certificate(&read(files, &certificate, "couldn't load the certificate file")?)?;
        check_time(&der)?;
        let (_, issued) = x509_parser::parse_x509_certificate(&der).map_err(|error| error.to_string())?;
        let (_, by) = x509_parser::parse_x509_certificate(&authority.der).map_err(|error| error.to_string())?;
        if issued.issuer().as_raw() != by.subject().as_raw() {
            return Err(format!("certificate {base} is not signed by corresponding CA"));
        }
        return Ok(false);
    }
    let pair = authority.issue_for(profile, algorithm, validity.leaf)?;
    write(files, &certificate, &pair.certificate, 0o644)?;
    write(files, &key, &pair.key, 0o600)?;
    Ok(true)
}

fn write(files: &dyn Files, path: &str, content: &str, mode: u32) -> Result<(), String> {
    files
        .install(path, content.to_owned(), mode)
        .map_err(|error| format!("couldn't write {path}: {}", lower(&reason(&error))))
}

fn read(files: &dyn Files, path: &str, problem: &str) -> Result<String, String> {
    files.read_text(path).map_err(|error| format!("{problem} {path}: open {path}: {}", lower(&reason(&error))))
}

/// The first certificate of a PEM text, DER.
///
/// # Errors
/// When there is none.
pub fn parse_certificate(pem: &str) -> Result<Vec<u8>, String> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes())
        .map_err(|_| "data does not contain a valid certificate".to_owned())?;
    x509_parser::parse_x509_certificate(&der).map_err(|error| format!("unable to parse the certificate: {error}"))?;
    Ok(der.to_vec())
}

fn check_authority(der: &[u8]) -> Result<(), String> {
    check_time(der)?;
    let (_, parsed) = x509_parser::parse_x509_certificate(der).map_err(|error| error.to_string())?;
    if parsed.is_ca() { Ok(()) } else { Err("the certificate is not a CA".to_owned()) }
}

fn check_time(der: &[u8]) -> Result<(), String> {
    let (_, parsed) = x509_parser::parse_x509_certificate(der).map_err(|error| error.to_string())?;
    let now = x509_parser::time::ASN1Time::now();
    if now < parsed.validity().not_before {
        return Err("the certificate is not valid yet".to_owned());
    }
    if now > parsed.validity().not_after {
        return Err("the certificate has expired".to_owned());
    }
    Ok(())
}

fn public_key_info(der: &[u8]) -> Result<Vec<u8>, String> {
    let (_, parsed) = x509_parser::parse_x509_certificate(der).map_err(|error| error.to_string())?;
    Ok(parsed.public_key().raw.to_vec())
}

/// `sha256:<hex>` of a certificate's public key, as `caCertHashes` pins it.
///
/// # Errors
/// When it is no certificate.
pub fn public_key_hash(der: &[u8]) -> Result<String, String> {
    Ok(format!("sha256:{}", hex::encode(Sha256::digest(public_key_info(der)?))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use std::sync::Arc;

    use super::*;
    use crate::files::MemoryFiles;

    #[test]
    fn a_ca_without_its_key_or_with_another_key_is_refused() {
        let memory = MemoryFiles::new(Arc::default());
        let files: &dyn Files = &memory;
        let (one, other) = (
            Authority::generate("kubernetes", Algorithm::EcdsaP256).unwrap(),
            Authority::generate("x", Algorithm::EcdsaP256).unwrap(),
        );
        files.install("/p/ca.crt", one.certificate.clone(), 0o644).unwrap();
        let missing =
            ensure_authority(files, "/p", "ca", "kubernetes", Algorithm::EcdsaP256, Validity::default()).err().unwrap();
        assert!(missing.contains("open /p/ca.key: no such file or directory"), "{missing}");
        files.install("/p/ca.key", other.key_pem(), 0o600).unwrap();
        let mismatch =
            ensure_authority(files, "/p", "ca", "kubernetes", Algorithm::EcdsaP256, Validity::default()).err().unwrap();
        assert!(mismatch.contains("does not belong"), "{mismatch}");
        files.install("/p/ca.key", one.key_pem(), 0o600).unwrap();
        assert!(
            !ensure_authority(files, "/p", "ca", "kubernetes", Algorithm::EcdsaP256, Validity::default()).unwrap().1
        );
    }

    #[test]
    fn certificates_end_when_the_configuration_says() {
        let memory = MemoryFiles::new(Arc::default());
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        let validity = Validity { leaf: hours(48), authority: hours(72) };
        let (authority, _) =
            ensure_authority(&memory, "/p", "ca", "kubernetes", Algorithm::EcdsaP256, validity).unwrap();
        let profile = Profile { name: "x", organisation: None, names: Vec::new(), server: true, client: false };
        ensure_leaf(&memory, "/p", "x", &authority, &profile, Algorithm::EcdsaP256, validity).unwrap();
        for (path, expected) in [("/p/x.crt", hours(48)), ("/p/ca.crt", hours(72))] {
            let der = parse_certificate(&(&memory as &dyn Files).read_text(path).unwrap()).unwrap();
            let (_, parsed) = x509_parser::parse_x509_certificate(&der).unwrap();
            let left = parsed.validity().time_to_expiration().unwrap().whole_seconds();
            let seconds = i64::try_from(expected.as_secs()).unwrap();
            assert!((seconds - 120..=seconds).contains(&left), "{path}: {left}");
        }
    }

    #[test]
    fn a_leaf_certificate_is_no_authority() {
        let authority = Authority::generate("kubernetes", Algorithm::EcdsaP256).unwrap();
        let leaf = authority.issue(&Profile::client("x", None), Algorithm::EcdsaP256).unwrap();
        assert_eq!(Authority::from_pem(&leaf.certificate, &leaf.key).err().unwrap(), "the certificate is not a CA");
    }

    #[test]
    fn rsa_authorities_of_other_tools_are_taken() {
        let authority = Authority::generate("kubernetes", Algorithm::Rsa(2048)).unwrap();
        let again = Authority::from_pem(&authority.certificate, &authority.key_pem()).unwrap();
        assert!(again.issue(&Profile::client("x", Some("y")), Algorithm::EcdsaP256).is_ok());
    }
}
