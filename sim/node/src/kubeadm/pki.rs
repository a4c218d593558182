//! Certificates of a cluster: authorities as they lie in a node's files, and what is issued from them.

use std::time::{Duration, SystemTime};

use capwasm_pki::{Algorithm, Leaf, Pair, PublicKeyData};
use rustls_pki_types::pem::PemObject;

use crate::files::{Files, reason};
use crate::kubeadm::lower;

/// Validity of issued certificates unless the configuration says otherwise.
const LEAF: Duration = Duration::from_secs(365 * 24 * 3600);
/// Validity of authorities unless the configuration says otherwise.
const AUTHORITY: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Parses `encryptionAlgorithm`. kubeadm's own default is RSA-2048; ours is ECDSA P-256 because RSA keys would dominate the cost
/// of a simulated cluster. RSA is made when it is asked for by name.
///
/// # Errors
/// When kubeadm does not know it.
pub fn algorithm(text: &str) -> Result<Algorithm, String> {
    match text {
        "" | "ECDSA-P256" => Ok(Algorithm::EcdsaP256),
        "ECDSA-P384" => Ok(Algorithm::EcdsaP384),
        "RSA-2048" => Ok(Algorithm::Rsa2048),
        "RSA-3072" => Ok(Algorithm::Rsa3072),
        "RSA-4096" => Ok(Algorithm::Rsa4096),
        other => Err(format!("encryptionAlgorithm: Invalid value: {other:?}")),
    }
}

/// How long certificates are good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// Of leaf certificates.
    pub leaf: Duration,
    /// Of authorities.
    pub authority: Duration,
}

impl Default for Validity {
    fn default() -> Validity {
        Validity { leaf: LEAF, authority: AUTHORITY }
    }
}

/// A certificate authority with its key.
pub struct Authority {
    /// PEM.
    pub certificate: String,
    /// The same certificate, DER.
    pub der: Vec<u8>,
    signer: capwasm_pki::Authority,
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
        let signer = capwasm_pki::Authority::new(name, algorithm, from_now(time), None)
            .map_err(|error| format!("unable to sign certificate {name}: {error}"))?;
        Ok(Authority { certificate: signer.pair().certificate, der: signer.der().to_vec(), signer })
    }

    /// Takes a certificate and its key as PEM, and checks that they are a valid authority and belong together.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Authority, String> {
        let der = parse_certificate(certificate)?;
        check_authority(&der)?;
        let signer = capwasm_pki::Authority::from_pem(certificate, key).map_err(|error| error.to_string())?;
        Ok(Authority { certificate: certificate.to_owned(), der, signer })
    }

    /// Its private key, PEM.
    pub fn key_pem(&self) -> String {
        self.signer.pair().key
    }

    /// Issues a certificate with a new key, good for a year.
    ///
    /// # Errors
    /// When a name is no name.
    pub fn issue(&self, leaf: &Leaf<'_>, algorithm: Algorithm) -> Result<Pair, String> {
        self.issue_for(leaf, algorithm, LEAF)
    }

    /// Issues a certificate with a new key, good for `time`.
    ///
    /// # Errors
    /// When a name is no name.
    pub fn issue_for(&self, leaf: &Leaf<'_>, algorithm: Algorithm, time: Duration) -> Result<Pair, String> {
        let issued = self.signer.issue(leaf, algorithm, from_now(time));
        issued.map_err(|error| format!("unable to issue certificate {}: {error}", leaf.name))
    }
}

fn from_now(time: Duration) -> capwasm_pki::Validity {
    capwasm_pki::Validity::of(SystemTime::now(), time)
}

/// A kubelet's request for a client certificate: the request and its key, PEM.
///
/// # Errors
/// When a key cannot be made.
pub fn kubelet_request(node: &str, algorithm: Algorithm) -> Result<Pair, String> {
    capwasm_pki::request(&format!("system:node:{node}"), &["system:nodes"], algorithm)
        .map_err(|error| format!("unable to make a certificate request: {error}"))
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
        let key = algorithm.generate().map_err(|error| format!("unable to generate a private key: {error}"))?;
        write(files, &private, &key.serialize_pem(), 0o600)?;
        return write(files, &public, &key.public_key_pem(), 0o600);
    }
    let text = read(files, &private, "couldn't load the private key file")?;
    let key = capwasm_pki::private_key(&text)
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
    leaf: &Leaf<'_>,
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
    let pair = authority.issue_for(leaf, algorithm, validity.leaf)?;
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
    let der = capwasm_pki::certificate(pem).map_err(|_| "data does not contain a valid certificate".to_owned())?;
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
        let leaf = Leaf::server("x", Vec::new());
        ensure_leaf(&memory, "/p", "x", &authority, &leaf, Algorithm::EcdsaP256, validity).unwrap();
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
        let leaf = authority.issue(&Leaf::client("x", &[]), Algorithm::EcdsaP256).unwrap();
        assert_eq!(Authority::from_pem(&leaf.certificate, &leaf.key).err().unwrap(), "the certificate is not a CA");
    }

    #[test]
    fn rsa_authorities_of_other_tools_are_taken() {
        let authority = Authority::generate("kubernetes", Algorithm::Rsa2048).unwrap();
        let again = Authority::from_pem(&authority.certificate, &authority.key_pem()).unwrap();
        assert!(again.issue(&Leaf::client("x", &["y"]), Algorithm::EcdsaP256).is_ok());
    }
}
