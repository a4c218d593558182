//! A runtime and a loaded guest for each test.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use capwasm_contract::{EtcdMember, Facts, Function, ObjectRef, Refused, Selection};
use capwasm_runtime::{
    Call, CallError, Capabilities, Etcd, Grants, HttpClient, Limits, LoadError, Lookup, Network, Provider, Reply,
    Runtime, RuntimeOptions, Secrets, ServingCertificates,
};
use capwasm_test_support::guests;
use serde_json::{Value, json};

pub const NOW_MS: u64 = 1_900_000_000_123;

pub struct Bench {
    pub provider: Arc<Provider>,
    pub limits: Limits,
}

impl Bench {
    pub async fn new(limits: Limits) -> Self {
        let runtime = Runtime::new(options()).unwrap();
        let provider = runtime.load(&guest(), limits.clone()).await.unwrap();
        Bench { provider, limits }
    }

    /// A machine's call without grants.
    pub async fn machine(&self, spec: Value) -> Result<Reply, CallError> {
        self.granted(spec, Grants::default()).await
    }

    pub async fn granted(&self, spec: Value, grants: Grants) -> Result<Reply, CallError> {
        self.provider.call(self.call(spec, grants)).await
    }

    pub fn call(&self, spec: Value, grants: Grants) -> Call {
        let client = HttpClient::new(&grants, &self.limits).unwrap();
        Call {
            function: Function::MachineProvision,
            object: json!({"metadata": {"namespace": "mine", "name": "m"}, "spec": spec}).to_string(),
            facts: Facts { now_ms: NOW_MS, attempt: 1, id: "call-1".into(), ..Facts::default() },
            capabilities: Capabilities {
                lookup: Arc::new(Objects),
                workload: Arc::new(Objects),
                certificates: Arc::new(Objects),
                etcd: Arc::new(Objects),
                secrets: Arc::new(Objects),
                http: Arc::new(client),
            },
            grants: Arc::new(grants),
            seed: 1,
            recorder: None,
        }
    }

    /// What the guest reports of a call over another network.
    pub async fn seen_over(&self, spec: Value, grants: &Grants, network: &Arc<impl Network + 'static>) -> Value {
        self.seen_with(spec, grants, &self.client_over(grants, network)).await
    }

    /// A client for several calls.
    pub fn client_over(&self, grants: &Grants, network: &Arc<impl Network + 'static>) -> Arc<HttpClient> {
        Arc::new(HttpClient::over(grants, &self.limits, network.clone()).unwrap())
    }

    /// What the guest reports of a call with this client.
    pub async fn seen_with(&self, spec: Value, grants: &Grants, client: &Arc<HttpClient>) -> Value {
        let mut call = self.call(spec, grants.clone());
        call.capabilities.http = client.clone();
        seen(&self.provider.call(call).await.unwrap())
    }

    /// What the guest reports of a successful call.
    pub async fn seen(&self, spec: Value, grants: Grants) -> Value {
        seen(&self.granted(spec, grants).await.unwrap())
    }

    /// Checks that a failure had no other effect.
    pub async fn still_works(&self) {
        let reply = self.machine(json!({"do": "facts"})).await.unwrap();
        assert!(reply.answer.is_ok());
    }
}

pub fn seen(reply: &Reply) -> Value {
    reply.answer.as_ref().unwrap();
    reply.outcome.status[0]["seen"].clone()
}

/// Components are compiled once for all tests, and cached for the next run.
pub fn options() -> RuntimeOptions {
    let aot_dir = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("runtime-aot"));
    RuntimeOptions { max_in_flight: 8, aot_dir, ..RuntimeOptions::default() }
}

pub fn guest() -> Vec<u8> {
    std::fs::read(guests::fixture("guest")).unwrap()
}

pub fn hostile(name: &str) -> Vec<u8> {
    wat::parse_file(guests::fixture_file(&format!("hostile/{name}.wat"))).unwrap()
}

pub async fn load_hostile(runtime: &Runtime, name: &str) -> LoadError {
    match runtime.load(&hostile(name), Limits::default()).await {
        Ok(_) => panic!("{name} was loaded"),
        Err(error) => error,
    }
}

/// Answers reads with the request; a Secret has one key; `panic` panics.
pub struct Objects;

#[async_trait]
impl Lookup for Objects {
    async fn get(&self, target: &ObjectRef) -> Result<String, Refused> {
        tokio::task::yield_now().await;
        assert_ne!(target.name, "panic", "the host's own mistake");
        Ok(json!({"kind": target.kind, "name": target.name, "namespace": target.namespace}).to_string())
    }

    async fn list(&self, of: &Selection) -> Result<Vec<String>, Refused> {
        Ok(vec![format!("{} {}", of.kind, of.labels)])
    }
}

#[async_trait]
impl Secrets for Objects {
    async fn open(&self, namespace: Option<&str>, name: &str) -> Result<BTreeMap<String, Vec<u8>>, Refused> {
        if name == "missing-ca" {
            return Err(Refused::not_found("no such Secret"));
        }
        let pem = namespace.map_or_else(|| "pem".to_owned(), |namespace| format!("pem of {namespace}"));
        Ok(BTreeMap::from([("tls.crt".to_owned(), pem.into_bytes())]))
    }

    async fn bootstrap_data(&self) -> Result<BTreeMap<String, Vec<u8>>, Refused> {
        Ok(BTreeMap::from([("value".to_owned(), b"#!".to_vec())]))
    }
}

#[async_trait]
impl ServingCertificates for Objects {
    async fn serving_certificate(&self, namespace: &str, pod: &str, port: u16) -> Result<String, Refused> {
        Ok(format!("certificate of {namespace}/{pod}:{port}"))
    }
}

#[async_trait]
impl Etcd for Objects {
    async fn members(&self) -> Result<Vec<EtcdMember>, Refused> {
        Ok(vec![EtcdMember { id: 1, name: "one".into(), leader: true, healthy: true, ..EtcdMember::default() }])
    }

    async fn remove(&self, id: u64) -> Result<(), Refused> {
        if id == 1 { Err(Refused::invalid("Leader", "it leads")) } else { Ok(()) }
    }

    async fn move_leader(&self, _: u64) -> Result<(), Refused> {
        Ok(())
    }
}
