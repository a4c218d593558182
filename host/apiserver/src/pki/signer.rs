//! Signs client certificates of kubelets, as kube-controller-manager does.

use rcgen::{
    CertificateSigningRequestParams, DnType, DnValue, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

use super::{LEAF_YEARS, PkiError, valid};
use crate::config::{CertificateSigner, SigningRequest};
use crate::identity::{BOOTSTRAPPERS, NODES};

const SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";

/// Approves and signs requests of bootstrap tokens and nodes for `kubernetes.io/kube-apiserver-client-kubelet`; leaves all
/// others alone.
pub struct NodeSigner {
    issuer: Issuer<'static, KeyPair>,
    ca: String,
}

impl NodeSigner {
    /// A signer with this CA, from PEM texts.
    ///
    /// # Errors
    /// When certificate or key cannot be read.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, PkiError> {
        Ok(Self { issuer: Issuer::from_ca_cert_pem(certificate, KeyPair::from_pem(key)?)?, ca: certificate.to_owned() })
    }

    /// The CA's certificate as PEM.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        &self.ca
    }
}

fn text(value: &DnValue) -> Option<String> {
    match value {
        DnValue::Utf8String(text) => Some(text.clone()),
        DnValue::PrintableString(text) => Some(text.as_str().to_owned()),
        _ => None,
    }
}

impl CertificateSigner for NodeSigner {
    fn sign(&self, request: &SigningRequest) -> Result<Option<String>, String> {
        let requester = &request.requester;
        if request.signer != SIGNER || !(requester.is_in(BOOTSTRAPPERS) || requester.is_in(NODES)) {
            return Ok(None);
        }
        let mut csr = CertificateSigningRequestParams::from_pem(&request.csr_pem)
            .map_err(|error| format!("the request cannot be read: {error}"))?;
        let name = &csr.params.distinguished_name;
        let user = name.get(&DnType::CommonName).and_then(text).unwrap_or_default();
        let group = name.get(&DnType::OrganizationName).and_then(text).unwrap_or_default();
        if !user.starts_with("system:node:") || group != NODES || !csr.params.subject_alt_names.is_empty() {
            return Err("the request is not for a node: its subject must be system:node:<name> in system:nodes, without other names".to_owned());
        }
        // A node renews its own certificate and no other.
        if requester.is_in(NODES) && requester.user != user {
            return Err(format!("{} may not ask for a certificate of {user}", requester.user));
        }
        csr.params.is_ca = IsCa::NoCa;
        csr.params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        csr.params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        csr.params.use_authority_key_identifier_extension = true;
        valid(&mut csr.params, LEAF_YEARS);
        csr.signed_by(&self.issuer).map(|certificate| Some(certificate.pem())).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use rcgen::CertificateParams;

    use super::*;
    use crate::identity::Identity;

    fn request(user: &str, group: &str, requester: Identity, signer: &str) -> SigningRequest {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, user);
        params.distinguished_name.push(DnType::OrganizationName, group);
        let csr = params.serialize_request(&KeyPair::generate().unwrap()).unwrap();
        SigningRequest { csr_pem: csr.pem().unwrap(), signer: signer.to_owned(), requester, usages: Vec::new() }
    }

    #[test]
    fn only_nodes_get_certificates_and_only_their_own() {
        let ca = super::super::new_ca("ca").unwrap();
        let signer = NodeSigner::from_pem(&ca.certificate, &ca.key).unwrap();
        let joiner = || Identity::new("system:bootstrap:abcdef", &[BOOTSTRAPPERS]);
        let node = |name: &str| Identity::new(name, &[NODES]);
        let sign = |user: &str, group: &str, requester, name: &str| signer.sign(&request(user, group, requester, name));
        assert!(sign("system:node:a", NODES, joiner(), SIGNER).unwrap().is_some(), "joining");
        assert!(sign("system:node:a", NODES, node("system:node:a"), SIGNER).unwrap().is_some(), "renewing");
        assert!(sign("system:node:a", NODES, node("system:node:b"), SIGNER).is_err(), "another node's");
        assert!(sign("admin", "system:masters", joiner(), SIGNER).is_err(), "not a node");
        assert_eq!(sign("system:node:a", NODES, joiner(), "other/signer").unwrap(), None, "another signer's");
        assert_eq!(sign("system:node:a", NODES, Identity::new("u", &[]), SIGNER).unwrap(), None, "anybody");
    }
}
