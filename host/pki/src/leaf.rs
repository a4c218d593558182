//! What a certificate says besides its key.

use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyUsagePurpose, SanType};

use crate::{Algorithm, CertificateError, Pair, Validity};

/// What a certificate is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// For servers.
    Server,
    /// For clients.
    Client,
}

/// What an authority signs. `name` and `organizations` are user and groups to Kubernetes.
#[derive(Clone, Debug)]
pub struct Leaf<'a> {
    /// Common name.
    pub name: &'a str,
    /// At most two.
    pub organizations: &'a [&'a str],
    /// Host names and addresses.
    pub names: Vec<String>,
    /// What it is good for.
    pub usages: &'a [Usage],
}

impl<'a> Leaf<'a> {
    /// A client's.
    #[must_use]
    pub fn client(name: &'a str, organizations: &'a [&'a str]) -> Self {
        Self { name, organizations, names: Vec::new(), usages: &[Usage::Client] }
    }

    /// A server's.
    #[must_use]
    pub fn server(name: &'a str, names: Vec<String>) -> Self {
        Self { name, organizations: &[], names, usages: &[Usage::Server] }
    }

    /// Of one that is both to its peers, as members of etcd are.
    #[must_use]
    pub fn peer(name: &'a str, names: Vec<String>) -> Self {
        Self { usages: &[Usage::Server, Usage::Client], ..Self::server(name, names) }
    }

    pub(crate) fn params(&self, validity: Validity) -> Result<CertificateParams, CertificateError> {
        let mut params = params(self.name, self.organizations)?;
        (params.not_before, params.not_after) = (validity.from.into(), validity.until.into());
        params.subject_alt_names = self.names.iter().map(|name| alternative(name)).collect::<Result<_, _>>()?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.extended_key_usages = self.usages.iter().map(purpose).collect();
        params.use_authority_key_identifier_extension = true;
        Ok(params)
    }
}

fn purpose(usage: &Usage) -> ExtendedKeyUsagePurpose {
    match usage {
        Usage::Server => ExtendedKeyUsagePurpose::ServerAuth,
        Usage::Client => ExtendedKeyUsagePurpose::ClientAuth,
    }
}

fn alternative(name: &str) -> Result<SanType, CertificateError> {
    match name.parse() {
        Ok(address) => Ok(SanType::IpAddress(address)),
        Err(_) => {
            let dns = name.try_into().map_err(|error| CertificateError::Name(name.to_owned(), error))?;
            Ok(SanType::DnsName(dns))
        }
    }
}

/// Who a certificate is for.
pub(crate) fn params(name: &str, organizations: &[&str]) -> Result<CertificateParams, CertificateError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    // rcgen keeps one value per attribute type; the same type by its number is another one to it.
    let attributes = [DnType::OrganizationName, DnType::CustomDnType(vec![2, 5, 4, 10])];
    if organizations.len() > attributes.len() {
        return Err(CertificateError::Organizations(organizations.len()));
    }
    for (attribute, organization) in attributes.into_iter().zip(organizations) {
        params.distinguished_name.push(attribute, *organization);
    }
    Ok(params)
}

/// A request for a certificate (in place of the certificate) and its new key.
///
/// # Errors
/// When it cannot be made, or says what a certificate cannot say.
pub fn request(name: &str, organizations: &[&str], algorithm: Algorithm) -> Result<Pair, CertificateError> {
    let key = algorithm.generate()?;
    let request = params(name, organizations)?.serialize_request(&key).and_then(|request| request.pem());
    Ok(Pair { certificate: request.map_err(CertificateError::Make)?, key: key.serialize_pem() })
}
