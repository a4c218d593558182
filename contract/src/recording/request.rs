//! What a guest asked: the imports whose answers follow from nothing else in a recording.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::pki::{Algorithm, Pair, Subject};
use crate::reference::{ObjectRef, Selection};

/// One import call, by its name in the contract, with its arguments.
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

/// Which Secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SecretRef {
    /// By name.
    Named {
        /// None is the object's own.
        namespace: Option<String>,
        /// `metadata.name`.
        name: String,
    },
    /// What `bootstrap-data` opens.
    BootstrapData,
}

/// One HTTP request, with whom the client trusts.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exchange {
    /// `GET`, `POST`, …
    pub method: String,
    /// Absolute.
    pub url: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// All of it; may be empty.
    #[serde(with = "crate::payload")]
    pub body: Bytes,
    /// Hex digest of what is trusted besides the system, or `anybody`; none when it is the system alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<String>,
    /// The guest's own limit, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
}

impl std::fmt::Debug for Exchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Headers and body may be secret.
        write!(f, "{} {} ({} bytes)", self.method, self.url, self.body.len())
    }
}

/// What asking does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Looks at the management or the workload cluster. Asking again, or in another order, changes nothing.
    Read,
    /// Opens a Secret. Another component learns of Secrets what the recorded one was shown, and nothing more.
    Secret,
    /// Makes keys or reads certificates: nothing outside of the call notices.
    Make,
    /// Reaches the outside world and may change it.
    Effect,
}

impl Request {
    /// What asking it does.
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

    /// Its name in the contract.
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

    /// The HTTP request that it is.
    pub fn http(&self) -> Option<&Exchange> {
        match self {
            Request::HttpSend(request) | Request::HttpRecent { request, .. } => Some(request),
            _ => None,
        }
    }

    /// Whether another component may be told what this one was told: the same, but for how long it would have waited and
    /// how old an answer might have been.
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

    /// One line for people; no header and no body, which may be secret.
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

    /// Bytes of everything of variable size in it.
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
