//! Signs client certificates of kubelets, as kube-controller-manager does.

use capwasm_pki::Authority;
use rcgen::{CertificateSigningRequestParams, DnType, DnValue, ExtendedKeyUsagePurpose, IsCa, KeyUsagePurpose};

use super::{LEAF_DAYS, PkiError, valid};
use crate::config::{CertificateSigner, SigningRequest};
use crate::identity::{BOOTSTRAPPERS, NODES};

const SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";

/// Approves and signs requests of bootstrap tokens and nodes for `kubernetes.io/kube-apiserver-client-kubelet`; leaves all
/// others alone.
pub struct NodeSigner {
    authority: Authority,
    ca: String,
}

impl NodeSigner {
    /// A signer with this CA, from PEM texts.
    ///
    /// # Errors
    /// When certificate or key cannot be read.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, PkiError> {
        Ok(Self { authority: Authority::from_pem(certificate, key)?, ca: certificate.to_owned() })
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
        let validity = valid(LEAF_DAYS);
        (csr.params.not_before, csr.params.not_after) = (validity.from.into(), validity.until.into());
        let issuer = self.authority.issuer().map_err(|error| error.to_string())?;
        csr.signed_by(&issuer).map(|certificate| Some(certificate.pem())).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use capwasm_pki::Algorithm;

    use super::*;
    use crate::identity::Identity;

    fn request(user: &str, group: &str, requester: Identity, signer: &str) -> SigningRequest {
        let csr_pem = capwasm_pki::request(user, &[group], Algorithm::EcdsaP256).unwrap().certificate;
        SigningRequest { csr_pem, signer: signer.to_owned(), requester, usages: Vec::new() }
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
