//! What a provider may ask of its host: facts of the call, reads, secrets, HTTP, keys, log.
//!
//! A provider takes `&dyn Host`, so that the same code runs inside a component (where the contract's imports stand
//! behind it) and natively (where [`crate::test::TestHost`] does). Nothing here has an effect on an API server: for
//! that there is [`crate::Outcome`].

use std::time::Duration;

use capwasm_contract::{Algorithm, EtcdMember, HttpResponse, ObjectRef, Pair, Refusal, Refused, Selection, Subject};
use serde_json::Value;

/// One whole HTTP request, to a granted origin or a named endpoint (`http://NAME.endpoint/…`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpRequest {
    /// In upper case: `GET`.
    pub method: String,
    /// Absolute: `https://api.example.org/v1/boxes`, or `http://NAME.endpoint/v1/boxes`.
    pub url: String,
    /// Names and values; `host` comes from the URL.
    pub headers: Vec<(String, String)>,
    /// Empty for a request without one.
    pub body: Vec<u8>,
    /// Within the granted limit; the host's own without one.
    pub deadline: Option<Duration>,
    /// A CA (PEM) to trust besides the system's.
    pub trust: Option<String>,
    /// Do not verify who serves TLS; `denied` unless `insecureTLS` is granted.
    pub insecure: bool,
    /// A 2xx answer to the very same request that is not older will do: for what costs the other side and seldom changes, such
    /// as a token. The host keeps it in memory, and may forget it. Zero asks anew in any case, and keeps that answer.
    pub max_age: Option<Duration>,
}

impl HttpRequest {
    /// A request without headers and body.
    pub fn new(method: &str, url: impl Into<String>) -> HttpRequest {
        HttpRequest { method: method.to_owned(), url: url.into(), ..HttpRequest::default() }
    }

    /// Adds a header; one of the same name stays beside it.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> HttpRequest {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// With a JSON body and its content type.
    #[must_use]
    pub fn json(mut self, body: &Value) -> HttpRequest {
        self.body = body.to_string().into_bytes();
        self.header("content-type", "application/json")
    }

    /// With a body of another content type.
    #[must_use]
    pub fn body(mut self, content_type: &str, body: Vec<u8>) -> HttpRequest {
        self.body = body;
        self.header("content-type", content_type)
    }

    /// With a deadline for the whole exchange.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> HttpRequest {
        self.deadline = Some(deadline);
        self
    }

    /// Trusting a CA (PEM) besides the system's.
    #[must_use]
    pub fn trust(mut self, pem: impl Into<String>) -> HttpRequest {
        self.trust = Some(pem.into());
        self
    }

    /// Satisfied with an earlier answer that is not older than this; see [`HttpRequest::max_age`].
    #[must_use]
    pub fn max_age(mut self, age: Duration) -> HttpRequest {
        self.max_age = Some(age);
        self
    }
}

/// Severity of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

/// Facts and capabilities of one call. A capability that was not granted, or that is not part of the provider's world,
/// answers `denied` or `unsupported`.
pub trait Host {
    /// Milliseconds since 1970; the same during the whole call.
    fn now_ms(&self) -> u64;
    /// 1 for the first try since the object, or something that was read, changed.
    fn attempt(&self) -> u32;
    /// Id of this call, as in logs, traces and recordings.
    fn id(&self) -> String;
    /// `spec.configuration` of the WasmProvider, `{}` when there is none.
    fn configuration(&self) -> Value;
    /// Objects that the host holds for this call: `cluster`, `machine`, `machine-pool`, `infrastructure-cluster`,
    /// `control-plane`, `machines`, `infrastructure-machines`. An unknown role is an empty list.
    fn related(&self, role: &str) -> Vec<Value>;
    /// How the operations of the previous pass ended, by their keys. A hint: empty after a restart of the host.
    fn results(&self) -> Vec<(String, Result<(), Refused>)>;

    /// One object of the management cluster. Reading wakes the object when it changes, appears or goes.
    fn lookup(&self, target: &ObjectRef) -> Result<Value, Refused>;
    /// Objects of the management cluster; without a namespace those of the object's own.
    fn lookup_list(&self, of: &Selection) -> Result<Vec<Value>, Refused>;
    /// As [`Host::lookup`], as JSON text, for readers that parse less: [`object::parse_fields`](crate::object::parse_fields),
    /// typed ones.
    fn lookup_text(&self, target: &ObjectRef) -> Result<String, Refused> {
        self.lookup(target).map(|object| object.to_string())
    }
    /// As [`Host::lookup_list`], as JSON texts.
    fn lookup_list_texts(&self, of: &Selection) -> Result<Vec<String>, Refused> {
        let found = self.lookup_list(of)?;
        Ok(found.iter().map(Value::to_string).collect())
    }
    /// One object of the cluster being provisioned; `unavailable` while it cannot be reached.
    fn workload(&self, target: &ObjectRef) -> Result<Value, Refused>;
    /// Objects of the cluster being provisioned.
    fn workload_list(&self, of: &Selection) -> Result<Vec<Value>, Refused>;

    /// As [`Host::workload_list`], as JSON texts.
    fn workload_list_texts(&self, of: &Selection) -> Result<Vec<String>, Refused> {
        let found = self.workload_list(of)?;
        Ok(found.iter().map(Value::to_string).collect())
    }

    /// The certificate (PEM) with which a port of a workload pod serves TLS. Nobody vouches for it, and it wakes nobody.
    fn serving_certificate(&self, namespace: &str, pod: &str, port: u16) -> Result<String, Refused>;

    /// The members of the workload cluster's etcd, each asked for itself. Nothing about etcd wakes the object.
    fn etcd_members(&self) -> Result<Vec<EtcdMember>, Refused>;
    /// Removes a member; one that is gone already is a success.
    fn etcd_remove(&self, id: u64) -> Result<(), Refused>;
    /// Makes a member lead; a success as well when it leads already.
    fn etcd_move_leader(&self, to: u64) -> Result<(), Refused>;

    /// The decoded bytes under `key` of a Secret in the object's namespace; `not-found` when either is missing.
    fn secret(&self, name: &str, key: &str) -> Result<Vec<u8>, Refused>;
    /// Several keys of one Secret, read once: none for a key that is not there, `not-found` when there is no such Secret (or,
    /// by the default, none of the keys).
    fn secret_keys(&self, name: &str, keys: &[&str]) -> Result<Vec<Option<Vec<u8>>>, Refused> {
        let mut missing = None;
        let mut found = Vec::with_capacity(keys.len());
        for key in keys {
            match self.secret(name, key) {
                Ok(value) => found.push(Some(value)),
                Err(refused) if refused.refusal == Refusal::NotFound => {
                    missing = Some(refused);
                    found.push(None);
                }
                Err(refused) => return Err(refused),
            }
        }
        match missing {
            Some(refused) if found.iter().all(Option::is_none) => Err(refused),
            _ => Ok(found),
        }
    }
    /// The same of a Secret in another namespace; `denied` unless both its name and that namespace are granted.
    fn secret_in(&self, namespace: &str, name: &str, key: &str) -> Result<Vec<u8>, Refused>;
    /// The same of the machine's bootstrap data (`value`, `format`), or of what a controller's kind names as such.
    fn bootstrap_data(&self, key: &str) -> Result<Vec<u8>, Refused>;

    /// Sends one request and waits for the whole response; redirects are not followed. It takes effect inside the call, which may
    /// be repeated from its start: make it idempotent.
    fn http(&self, request: &HttpRequest) -> Result<HttpResponse, Refused>;

    /// A self-signed CA with a fresh key, valid for `days`.
    fn new_authority(&self, common_name: &str, algorithm: Algorithm, days: u32) -> Result<Pair, Refused>;
    /// A client certificate with a fresh key, signed by `authority`, valid for `days`.
    fn issue_client(
        &self,
        authority: &Pair,
        subject: &Subject,
        algorithm: Algorithm,
        days: u32,
    ) -> Result<Pair, Refused>;
    /// Public and private key (PEM), as for service account tokens.
    fn new_signing_key(&self, algorithm: Algorithm) -> Result<(String, String), Refused>;
    /// `sha256:<hex>` of the subject public key info, as kubeadm's discovery wants it.
    fn public_key_hash(&self, certificate_pem: &str) -> Result<String, Refused>;
    /// Milliseconds since 1970 at which the certificate ends.
    fn not_after_ms(&self, certificate_pem: &str) -> Result<u64, Refused>;
    /// `length` characters drawn evenly from `alphabet`.
    fn random_token(&self, alphabet: &str, length: u32) -> String;

    /// A line for the host's log, which adds the provider, the object and the call's id.
    fn log(&self, level: Level, message: &str, fields: &[(&str, &str)]);
}
