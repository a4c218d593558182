//! Client certificate for a cluster's etcd, signed by the cluster's etcd authority.

use std::time::{Duration, SystemTime};

use base64::Engine;
use capwasm_etcd::Credentials;
use capwasm_reconcile::{Cache, ClusterId, cache::secret_kind};
use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, KeyUsagePurpose};
use rustls::pki_types::{PrivateKeyDer, pem::PemObject};
use serde_json::Value;

use super::EtcdError;

/// How long a certificate is used for new connections.
pub(crate) const USED: Duration = Duration::from_secs(24 * 3600);
/// Validity: longer than [`USED`], since connections outlive it.
const VALID: Duration = Duration::from_secs(48 * 3600);
/// Certificates are valid from this long before now: clocks of nodes may be slow.
const BACKDATED: Duration = Duration::from_secs(300);

/// Reads the authority, and signs a certificate.
pub(crate) async fn credentials(management: &Cache, cluster: &ClusterId) -> Result<Credentials, EtcdError> {
    let name = format!("{}-etcd", cluster.name);
    let secret = management.get_live(&secret_kind(), &cluster.namespace, &name).await?;
    let secret = secret.ok_or_else(|| EtcdError::NoAuthority(format!("{}/{name}", cluster.namespace)))?;
    issue(&secret, SystemTime::now())
}

/// Signs a certificate with the authority of a Secret.
fn issue(secret: &Value, now: SystemTime) -> Result<Credentials, EtcdError> {
    let bad = |message: &str| EtcdError::BadAuthority(format!("the authority of the cluster's etcd {message}"));
    let authority = value(secret, "tls.crt").ok_or_else(|| bad("has no certificate (tls.crt) that can be read"))?;
    let key = value(secret, "tls.key").filter(|key| !key.is_empty()).ok_or_else(|| {
        // Who brings an etcd of their own brings its certificate only.
        EtcdError::Unsupported(
            "the Secret of the cluster's etcd authority holds no key: etcd is external, and its members are not managed here"
                .to_owned(),
        )
    })?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| bad("has a key that cannot be read"))?;
    let key = KeyPair::try_from(&key).map_err(|_| bad("has a key that cannot sign"))?;
    let issuer = Issuer::from_ca_cert_pem(&authority, key).map_err(|_| bad("has a certificate that is none"))?;
    let signed = || -> Result<(String, String), rcgen::Error> {
        let ours = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "capwasm");
        params.not_before = (now - BACKDATED).into();
        params.not_after = (now + VALID).into();
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        Ok((params.signed_by(&ours, &issuer)?.pem(), ours.serialize_pem()))
    };
    let (certificate, key) = signed().map_err(|error| bad(&format!("cannot sign: {error}")))?;
    Credentials::new(&authority, &certificate, &key).map_err(|error| bad(&format!("cannot be used: {error}")))
}

fn value(secret: &Value, key: &str) -> Option<String> {
    let text = secret.get("data")?.get(key)?.as_str()?;
    String::from_utf8(base64::engine::general_purpose::STANDARD.decode(text).ok()?).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use rcgen::{BasicConstraints, IsCa};
    use serde_json::json;

    use super::*;

    fn encoded(text: &str) -> String {
        base64::engine::general_purpose::STANDARD.encode(text)
    }

    #[test]
    fn an_authority_with_its_key_signs_and_one_without_is_external() {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap().pem();
        let whole = json!({"data": {"tls.crt": encoded(&certificate), "tls.key": encoded(&key.serialize_pem())}});
        issue(&whole, SystemTime::now()).unwrap();
        for secret in [
            json!({"data": {"tls.crt": encoded(&certificate)}}),
            json!({"data": {"tls.crt": encoded(&certificate), "tls.key": ""}}),
        ] {
            assert!(matches!(issue(&secret, SystemTime::now()), Err(EtcdError::Unsupported(_))), "{secret}");
        }
        for secret in [json!({}), json!({"data": {"tls.crt": encoded("x"), "tls.key": encoded("y")}})] {
            assert!(matches!(issue(&secret, SystemTime::now()), Err(EtcdError::BadAuthority(_))), "{secret}");
        }
    }
}
