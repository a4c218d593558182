//! Requests of a guest: imports whose answers do not follow from the rest of a recording.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::pki::{Algorithm, Pair, Subject};
use crate::reference::{ObjectRef, Selection};

/// An import call by its name in the contract, with its arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "call", content = "with")]
#[allow(missing_docs, reason = "the fields are those of the contract")]
pub enum Request {
    #[serde(rename = "lookup.get")]
    LookupGet(ObjectRef),
    #[serde(rename = "lookup.list")]
    LookupList(Selection),
    #[serde(rename = "workload.get")]
    WorkloadGet(ObjectRef),
    #[serde(rename = "workload.list")]
    WorkloadList(Selection),
    #[serde(rename = "workload.serving-certificate")]
    ServingCertificate { namespace: String, pod: String, port: u16 },
    #[serde(rename = "secrets.open")]
    SecretOpen(SecretRef),
    #[serde(rename = "secrets.reveal")]
    SecretReveal { secret: SecretRef, key: String },
    #[serde(rename = "http.insecure")]
    HttpInsecure,
    #[serde(rename = "http.send")]
    HttpSend(Exchange),
    #[serde(rename = "http.recent", rename_all = "camelCase")]
    HttpRecent { request: Exchange, max_age_ms: u64 },
    #[serde(rename = "etcd.members")]
    EtcdMembers,
    #[serde(rename = "etcd.remove")]
    EtcdRemove { id: u64 },
    #[serde(rename = "etcd.move-leader")]
    EtcdMoveLeader { to: u64 },
    #[serde(rename = "pki.new-authority", rename_all = "camelCase")]
    NewAuthority { common_name: String, algorithm: Algorithm, days: u32 },
    #[serde(rename = "pki.issue-client")]
    IssueClient { authority: Pair, subject: Subject, algorithm: Algorithm, days: u32 },
    #[serde(rename = "pki.new-signing-key")]
    NewSigningKey { algorithm: Algorithm },
    #[serde(rename = "pki.public-key-hash", rename_all = "camelCase")]
    PublicKeyHash { certificate_pem: String },
    #[serde(rename = "pki.not-after-ms", rename_all = "camelCase")]
    NotAfterMs { certificate_pem: String },
    #[serde(rename = "pki.random-token")]
    RandomToken { alphabet: String, length: u32 },
}

/// Reference to a Secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SecretRef {
    /// By name.
    Named {
        /// `None`: the object's namespace.
        namespace: Option<String>,
        /// Name of the Secret.
        name: String,
    },
    /// The Secret of `bootstrap-data`.
    BootstrapData,
}

/// An HTTP request, with the client's trust.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exchange {
    /// HTTP method, such as `GET`.
    pub method: String,
    /// Absolute URL.
    pub url: String,
    /// Names and values of headers.
    pub headers: Vec<(String, String)>,
    /// The complete body; may be empty.
    #[serde(with = "crate::payload")]
    pub body: Bytes,
    /// Hex digest of certificates trusted besides the system's, or `anybody` without verification; `None` for the
    /// system's only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<String>,
    /// Timeout set by the guest, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
}

impl std::fmt::Debug for Exchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Headers and body may be secret.
        write!(f, "{} {} ({} bytes)", self.method, self.url, self.body.len())
    }
}

/// Effect of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Reads the management or the workload cluster; may be repeated and reordered.
    Read,
    /// Reads a Secret. Another component gets only what the recorded one was shown.
    Secret,
    /// Makes keys or reads certificates, without effect outside of the call.
    Make,
    /// Reaches other systems and may change them.
    Effect,
}

impl Request {
    /// Effect of the request.
    pub fn class(&self) -> Class {
        match self {
            // Whoever serves without being verified is another world.
            Request::HttpInsecure
            | Request::HttpSend(_)
            | Request::HttpRecent { .. }
            | Request::EtcdRemove { .. }
            | Request::EtcdMoveLeader { .. } => Class::Effect,
            Request::NewAuthority { .. }
            | Request::IssueClient { .. }
            | Request::NewSigningKey { .. }
            | Request::PublicKeyHash { .. }
            | Request::NotAfterMs { .. }
            | Request::RandomToken { .. } => Class::Make,
            Request::SecretOpen(_) | Request::SecretReveal { .. } => Class::Secret,
            _ => Class::Read,
        }
    }

    /// Name in the contract, such as `lookup.get`.
    pub fn name(&self) -> &'static str {
        match self {
            Request::LookupGet(_) => "lookup.get",
            Request::LookupList(_) => "lookup.list",
            Request::WorkloadGet(_) => "workload.get",
            Request::WorkloadList(_) => "workload.list",
            Request::ServingCertificate { .. } => "workload.serving-certificate",
            Request::SecretOpen(_) => "secrets.open",
            Request::SecretReveal { .. } => "secrets.reveal",
            Request::HttpInsecure => "http.insecure",
            Request::HttpSend(_) => "http.send",
            Request::HttpRecent { .. } => "http.recent",
            Request::EtcdMembers => "etcd.members",
            Request::EtcdRemove { .. } => "etcd.remove",
            Request::EtcdMoveLeader { .. } => "etcd.move-leader",
            Request::NewAuthority { .. } => "pki.new-authority",
            Request::IssueClient { .. } => "pki.issue-client",
            Request::NewSigningKey { .. } => "pki.new-signing-key",
            Request::PublicKeyHash { .. } => "pki.public-key-hash",
            Request::NotAfterMs { .. } => "pki.not-after-ms",
            Request::RandomToken { .. } => "pki.random-token",
        }
    }

    /// The HTTP request, if it is one.
    pub fn http(&self) -> Option<&Exchange> {
        match self {
            Request::HttpSend(request) | Request::HttpRecent { request, .. } => Some(request),
            _ => None,
        }
    }

    /// Whether the answer may be given to another component: requests are equal except for timeouts and the age of
    /// answers.
    pub fn same_effect(&self, other: &Request) -> bool {
        match (self.http(), other.http()) {
            (Some(a), Some(b)) => {
                a.method == b.method
                    && a.url == b.url
                    && a.headers == b.headers
                    && a.body == b.body
                    && a.trust == b.trust
            }
            _ => self == other,
        }
    }

    /// One line for people, without headers and bodies, which may be secret.
    pub fn line(&self) -> String {
        let what = match self {
            Request::LookupGet(of) | Request::WorkloadGet(of) => of.to_string(),
            Request::LookupList(of) | Request::WorkloadList(of) => of.to_string(),
            Request::ServingCertificate { namespace, pod, port } => format!("{namespace}/{pod}:{port}"),
            Request::SecretOpen(secret) => secret.to_string(),
            Request::SecretReveal { secret, key } => format!("{secret} {key}"),
            Request::HttpSend(request) | Request::HttpRecent { request, .. } => {
                format!("{} {}", request.method, request.url)
            }
            Request::EtcdRemove { id } => format!("{id:x}"),
            Request::EtcdMoveLeader { to } => format!("{to:x}"),
            Request::NewAuthority { common_name, .. } => common_name.clone(),
            Request::IssueClient { subject, .. } => subject.common_name.clone(),
            _ => String::new(),
        };
        if what.is_empty() { self.name().to_owned() } else { format!("{} {what}", self.name()) }
    }

    /// Size of its variable parts in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Request::LookupGet(target) | Request::WorkloadGet(target) => target.bytes(),
            Request::LookupList(of) | Request::WorkloadList(of) => of.bytes(),
            Request::ServingCertificate { namespace, pod, .. } => namespace.len() + pod.len(),
            Request::SecretOpen(secret) => secret.bytes(),
            Request::SecretReveal { secret, key } => secret.bytes() + key.len(),
            Request::HttpSend(request) | Request::HttpRecent { request, .. } => {
                let headers: usize = request.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
                request.method.len() + request.url.len() + headers + request.body.len()
            }
            Request::NewAuthority { common_name, .. } => common_name.len(),
            Request::IssueClient { authority, subject, .. } => {
                let lists = [&subject.organizations, &subject.dns_names, &subject.ip_addresses];
                let lists: usize = lists.into_iter().flatten().map(String::len).sum();
                authority.certificate_pem.len() + authority.key_pem.len() + subject.common_name.len() + lists
            }
            Request::PublicKeyHash { certificate_pem } | Request::NotAfterMs { certificate_pem } => {
                certificate_pem.len()
            }
            Request::RandomToken { alphabet, .. } => alphabet.len(),
            Request::HttpInsecure
            | Request::EtcdMembers
            | Request::EtcdRemove { .. }
            | Request::EtcdMoveLeader { .. }
            | Request::NewSigningKey { .. } => 0,
        }
    }
}

impl SecretRef {
    fn bytes(&self) -> usize {
        match self {
            SecretRef::Named { namespace, name } => name.len() + namespace.as_ref().map_or(0, String::len),
            SecretRef::BootstrapData => 0,
        }
    }
}

impl std::fmt::Display for SecretRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SecretRef::Named { namespace: Some(namespace), name } => write!(f, "Secret {namespace}/{name}"),
            SecretRef::Named { namespace: None, name } => write!(f, "Secret {name}"),
            SecretRef::BootstrapData => write!(f, "the bootstrap data"),
        }
    }
}
