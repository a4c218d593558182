//! Configuration of a server, and the hooks through which an embedder takes part in writes.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::identity::Identity;

/// How requests without a fixed identity are authenticated. Client certificates are the TLS configuration's business.
#[derive(Clone, Debug)]
pub struct Authenticator {
    /// Whether bearer tokens of the form `abcdef.0123456789abcdef` are looked up among the Secrets of type
    /// `bootstrap.kubernetes.io/token` in `kube-system`.
    pub bootstrap_tokens: bool,
    /// Fixed bearer tokens, and who sends them.
    pub tokens: HashMap<String, Identity>,
    /// Paths that may be read (GET) without authentication.
    pub anonymous_paths: Vec<String>,
}

impl Default for Authenticator {
    /// Certificates and bootstrap tokens; anonymous requests see the health endpoints only.
    fn default() -> Self {
        let anonymous_paths = ["/healthz", "/livez", "/readyz"].map(str::to_owned).to_vec();
        Self { bootstrap_tokens: true, tokens: HashMap::new(), anonymous_paths }
    }
}

impl Authenticator {
    /// As the default, and `cluster-info` in `kube-public` is readable by everyone, as kubeadm's discovery needs it.
    #[must_use]
    pub fn with_cluster_info() -> Self {
        let mut auth = Self::default();
        auth.anonymous_paths.push("/api/v1/namespaces/kube-public/configmaps/cluster-info".to_owned());
        auth.anonymous_paths.push("/version".to_owned());
        auth
    }
}

/// Group and kind of an API object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupKind {
    /// API group, empty for the core group.
    pub group: String,
    /// Kind, such as `Cluster`.
    pub kind: String,
}

impl GroupKind {
    /// `group` is empty for the core group.
    #[must_use]
    pub fn new(group: &str, kind: &str) -> Self {
        Self { group: group.to_owned(), kind: kind.to_owned() }
    }
}

/// Why an [`Admission`] refused an object.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct AdmissionError {
    /// Message of the 422 that the client gets.
    pub message: String,
}

/// Computes the object to store from the new one (in the storage version, pruned and defaulted) and the stored one, `None`
/// when it is created. Must be pure and idempotent: it runs again when a write is retried, and before schema validation.
pub type Admission = Arc<dyn Fn(&Value, Option<&Value>) -> Result<Value, AdmissionError> + Send + Sync>;

/// Why an [`Admitter`] does not let an object be stored; a sentence for the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    /// The object is invalid: 422.
    #[error("{message}")]
    Invalid {
        /// CamelCase; reason of the cause in the `Status`.
        reason: String,
        /// Message of the cause.
        message: String,
    },
    /// The request is forbidden, whatever the object contains: 403.
    #[error("{0}")]
    Forbidden(String),
    /// The admitter is unavailable: 503, to be retried.
    #[error("{0}")]
    Unavailable(String),
    /// The admitter failed: 500.
    #[error("{0}")]
    Failed(String),
}

/// Takes the place of the admission webhooks of custom kinds. Called in the storage version, for creations and changes of
/// the main resource, dry runs included; not for subresources, nor for an object that is being deleted. Must be pure: it
/// is called again when a write is retried. `old` is the stored object, `None` when it is created.
#[async_trait]
pub trait Admitter: Send + Sync {
    /// The object with defaults filled in, before schema validation; `None` when it does not change. Of the metadata it may
    /// change labels and annotations only; other changes are ignored, and those of the status where it is a subresource.
    ///
    /// # Errors
    /// When the object must not be stored.
    async fn default(
        &self,
        kind: &GroupKind,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Option<Value>, NotAdmitted>;

    /// Warnings for the client, of an object that fits the schema.
    ///
    /// # Errors
    /// When the object must not be stored.
    async fn validate(&self, kind: &GroupKind, object: &Value, old: Option<&Value>)
    -> Result<Vec<String>, NotAdmitted>;
}

/// A kind whose CRD has the conversion strategy `Webhook`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvertedKind {
    /// API group of the CRD.
    pub group: String,
    /// Kind of the CRD.
    pub kind: String,
    /// Labels of the CRD.
    pub labels: BTreeMap<String, String>,
}

/// Why objects were not converted; a sentence for the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConversionError {
    /// No converter is available at present: 503, to be retried.
    #[error("{0}")]
    Unavailable(String),
    /// The object cannot be expressed in the other version.
    #[error("{0}")]
    Failed(String),
}

/// Stands in for the conversion webhooks of all CRDs: converts whole objects between the served versions of a kind. It runs
/// while a request waits, so it must be quick. Metadata stays as it is except for annotations and labels; what else of it
/// comes back is ignored.
pub trait Converter: Send + Sync {
    /// `objects` of one kind, in order, each in version `to` (`group/version`). `apiVersion` says which version each is in.
    ///
    /// # Errors
    /// When one of them cannot be converted.
    fn convert(&self, kind: &ConvertedKind, objects: Vec<Value>, to: &str) -> Result<Vec<Value>, ConversionError>;
}

/// A CertificateSigningRequest as a signer sees it.
#[derive(Clone, Debug)]
pub struct SigningRequest {
    /// PEM of the PKCS#10 request: `spec.request`, decoded.
    pub csr_pem: String,
    /// `spec.signerName`.
    pub signer: String,
    /// `spec.username` and `spec.groups`: the creator of the CSR.
    pub requester: Identity,
    /// `spec.usages`.
    pub usages: Vec<String>,
}

/// Approves and signs CertificateSigningRequests in place of kube-controller-manager.
pub trait CertificateSigner: Send + Sync {
    /// The signed chain as PEM; `None` leaves the CSR pending for somebody else.
    ///
    /// # Errors
    /// A sentence that becomes the CSR's `Failed` condition.
    fn sign(&self, request: &SigningRequest) -> Result<Option<String>, String>;
}

/// Bytes to and from a port of a pod.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// Leads to ports of pods, in place of the kubelets that do so in a real cluster.
#[async_trait]
pub trait PortForward: Send + Sync {
    /// A connection to `port` of `pod`, which is the stored object.
    ///
    /// # Errors
    /// A sentence for the client.
    async fn connect(&self, pod: &Value, port: u16) -> Result<Box<dyn ByteStream>, String>;
}

/// Source of the current time, so that tests can set it.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>);

impl Clock {
    /// A clock that calls `now` each time.
    pub fn new(now: impl Fn() -> jiff::Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> jiff::Timestamp {
        (self.0)()
    }

    /// The current time as RFC 3339 in seconds, as Kubernetes writes it.
    #[must_use]
    pub fn stamp(&self) -> String {
        self.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(jiff::Timestamp::now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// Configuration of one server. Make it with [`ServerConfig::new`] and change what differs.
#[derive(Clone)]
pub struct ServerConfig {
    /// Keyspace in the store, such as `management` or `cluster/<id>`.
    pub keyspace: String,
    /// `host:port` under which clients reach this server.
    pub advertised: String,
    /// `gitVersion` of `/version`, such as `v1.34.0`.
    pub git_version: String,
    /// Authentication of requests that come over TLS.
    pub auth: Authenticator,
    /// In-process defaulting and validation per kind, in this order.
    pub admission: Vec<(GroupKind, Admission)>,
    /// Defaulting and validation of custom kinds, besides `admission`.
    pub admitter: Option<Arc<dyn Admitter>>,
    /// Version conversion for CRDs with the strategy `Webhook`. Without it their other versions are refused.
    pub converter: Option<Arc<dyn Converter>>,
    /// When set, every namespace gets a ServiceAccount `default` and a ConfigMap `kube-root-ca.crt` with this PEM.
    pub service_account_root_ca: Option<String>,
    /// Signs CSRs of nodes.
    pub signer: Option<Arc<dyn CertificateSigner>>,
    /// Serves `pods/portforward`; without it such requests are refused.
    pub port_forward: Option<Arc<dyn PortForward>>,
    /// How long Events are kept after they last occurred.
    pub event_ttl: Duration,
    /// Source of timestamps and expiry.
    pub clock: Clock,
}

impl ServerConfig {
    /// A server on `keyspace` with defaults for everything else.
    #[must_use]
    pub fn new(keyspace: impl Into<String>) -> Self {
        Self {
            keyspace: keyspace.into(),
            advertised: "127.0.0.1:6443".to_owned(),
            git_version: "v1.34.0".to_owned(),
            auth: Authenticator::default(),
            admission: Vec::new(),
            admitter: None,
            converter: None,
            service_account_root_ca: None,
            signer: None,
            port_forward: None,
            event_ttl: Duration::from_secs(3600),
            clock: Clock::default(),
        }
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfig")
            .field("keyspace", &self.keyspace)
            .field("advertised", &self.advertised)
            .finish_non_exhaustive()
    }
}
