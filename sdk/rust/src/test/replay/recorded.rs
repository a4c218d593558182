//! A recorded call as a host: what the provider asks is answered as it was.
//!
//! Reads may come in any order, and again; `http` and changes of `etcd` one after another, as they were recorded. So the
//! provider's own code may have changed as long as it does not ask the world for something else.

use std::cell::RefCell;

use capwasm_contract::recording::{Exchange, OnTape, RecordedCall, Request, SecretRef, answering};
use capwasm_contract::{Algorithm, EtcdMember, HttpResponse, ObjectRef, Optional, Pair, Refused, Selection, Subject};
use serde_json::{Value, json};

use crate::host::{Host, HttpRequest, Level};

/// Answers a provider from a recorded call.
pub(super) struct ReplayHost<'a> {
    recorded: &'a RecordedCall,
    used: RefCell<Vec<bool>>,
    asked: RefCell<Option<(String, bool)>>,
}

/// JSON as it was recorded; null for what somebody edited until it is none.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Whether a recorded request is the one that is made. Whom a client trusted is recorded as a digest, and how long it would
/// have waited does not matter.
fn is_same(recorded: &Request, asked: &Request) -> bool {
    match (recorded.http(), asked.http()) {
        (Some(was), Some(is)) => {
            let sent = |exchange: &Exchange| Exchange { trust: None, deadline_ms: None, ..exchange.clone() };
            recorded.name() == asked.name() && sent(was) == sent(is)
        }
        _ => recorded == asked,
    }
}

impl<'a> ReplayHost<'a> {
    pub(super) fn new(recorded: &'a RecordedCall) -> Self {
        ReplayHost { recorded, used: RefCell::new(vec![false; recorded.tape.len()]), asked: RefCell::new(None) }
    }

    /// What was asked that is not recorded, and whether all that is recorded had been asked.
    pub(super) fn asked(&self) -> Option<(String, bool)> {
        self.asked.borrow().clone()
    }

    /// The recorded answer to a request; panics when there is none.
    fn ask<T: OnTape>(&self, request: Request) -> Result<T, Refused> {
        let tape = &self.recorded.tape;
        let found = answering(tape, &self.used.borrow(), request.class(), |known| is_same(known, &request));
        let Some(at) = found else { self.stop(request.line()) };
        self.used.borrow_mut()[at] = true;
        match tape[at].answer.clone() {
            Some(answered) => answered.take(),
            // There the recorded call ended.
            None => self.stop(format!("{} (never answered)", request.line())),
        }
    }

    /// Notes the request that has no answer, and panics: natively that ends the call as a trap would.
    #[allow(clippy::panic, reason = "the provider cannot go on without an answer; the test's own assertion says so")]
    fn stop(&self, request: String) -> ! {
        let past_the_end = self.used.borrow().iter().all(|used| *used);
        self.asked.borrow_mut().get_or_insert((request.clone(), past_the_end));
        panic!("the recording does not answer {request}")
    }

    fn list(&self, request: Request) -> Result<Vec<Value>, Refused> {
        Ok(self.ask::<Vec<String>>(request)?.iter().map(|text| parsed(text)).collect())
    }

    /// Opens a Secret, and reveals a key of it.
    fn open(&self, secret: SecretRef, key: &str) -> Result<Vec<u8>, Refused> {
        self.ask::<()>(Request::SecretOpen(secret.clone()))?;
        self.reveal(secret, key)
    }

    fn reveal(&self, secret: SecretRef, key: &str) -> Result<Vec<u8>, Refused> {
        self.ask(Request::SecretReveal { secret, key: key.to_owned() })
    }
}

fn named(namespace: Option<&str>, name: &str) -> SecretRef {
    SecretRef::Named { namespace: namespace.map(str::to_owned), name: name.to_owned() }
}

impl Host for ReplayHost<'_> {
    fn now_ms(&self) -> u64 {
        self.recorded.facts.now_ms
    }

    fn attempt(&self) -> u32 {
        self.recorded.facts.attempt
    }

    fn id(&self) -> String {
        self.recorded.facts.id.clone()
    }

    fn configuration(&self) -> Value {
        match parsed(&self.recorded.facts.configuration) {
            Value::Null => json!({}),
            configuration => configuration,
        }
    }

    fn related(&self, role: &str) -> Vec<Value> {
        self.recorded.facts.related.get(role).into_iter().flatten().map(|text| parsed(text)).collect()
    }

    fn results(&self) -> Vec<(String, Result<(), Refused>)> {
        self.recorded.facts.results.clone()
    }

    fn lookup(&self, target: &ObjectRef) -> Result<Value, Refused> {
        self.ask::<String>(Request::LookupGet(target.clone())).map(|text| parsed(&text))
    }

    fn lookup_list(&self, of: &Selection) -> Result<Vec<Value>, Refused> {
        self.list(Request::LookupList(of.clone()))
    }

    fn workload(&self, target: &ObjectRef) -> Result<Value, Refused> {
        self.ask::<String>(Request::WorkloadGet(target.clone())).map(|text| parsed(&text))
    }

    fn workload_list(&self, of: &Selection) -> Result<Vec<Value>, Refused> {
        self.list(Request::WorkloadList(of.clone()))
    }

    fn serving_certificate(&self, namespace: &str, pod: &str, port: u16) -> Result<String, Refused> {
        self.ask(Request::ServingCertificate { namespace: namespace.to_owned(), pod: pod.to_owned(), port })
    }

    fn etcd_members(&self) -> Result<Vec<EtcdMember>, Refused> {
        self.ask(Request::EtcdMembers)
    }

    fn etcd_remove(&self, id: u64) -> Result<(), Refused> {
        self.ask(Request::EtcdRemove { id })
    }

    fn etcd_move_leader(&self, to: u64) -> Result<(), Refused> {
        self.ask(Request::EtcdMoveLeader { to })
    }

    fn secret(&self, name: &str, key: &str) -> Result<Vec<u8>, Refused> {
        self.open(named(None, name), key)
    }

    fn secret_keys(&self, name: &str, keys: &[&str]) -> Result<Vec<Option<Vec<u8>>>, Refused> {
        let secret = named(None, name);
        self.ask::<()>(Request::SecretOpen(secret.clone()))?;
        keys.iter().map(|key| self.reveal(secret.clone(), key).optional()).collect()
    }

    fn secret_in(&self, namespace: &str, name: &str, key: &str) -> Result<Vec<u8>, Refused> {
        self.open(named(Some(namespace), name), key)
    }

    fn bootstrap_data(&self, key: &str) -> Result<Vec<u8>, Refused> {
        self.open(SecretRef::BootstrapData, key)
    }

    fn http(&self, request: &HttpRequest) -> Result<HttpResponse, Refused> {
        if request.insecure {
            self.ask::<()>(Request::HttpInsecure)?;
        }
        let HttpRequest { method, url, headers, body, deadline, max_age, .. } = request.clone();
        let (body, deadline_ms) = (body.into(), deadline.map(millis));
        let exchange = Exchange { method, url, headers, body, trust: None, deadline_ms };
        let response: HttpResponse<_> = self.ask(match max_age {
            Some(age) => Request::HttpRecent { request: exchange, max_age_ms: millis(age) },
            None => Request::HttpSend(exchange),
        })?;
        Ok(response.into())
    }

    fn new_authority(&self, common_name: &str, algorithm: Algorithm, days: u32) -> Result<Pair, Refused> {
        self.ask(Request::NewAuthority { common_name: common_name.to_owned(), algorithm, days })
    }

    fn issue_client(
        &self,
        authority: &Pair,
        subject: &Subject,
        algorithm: Algorithm,
        days: u32,
    ) -> Result<Pair, Refused> {
        self.ask(Request::IssueClient { authority: authority.clone(), subject: subject.clone(), algorithm, days })
    }

    fn new_signing_key(&self, algorithm: Algorithm) -> Result<(String, String), Refused> {
        self.ask(Request::NewSigningKey { algorithm })
    }

    fn public_key_hash(&self, certificate_pem: &str) -> Result<String, Refused> {
        self.ask(Request::PublicKeyHash { certificate_pem: certificate_pem.to_owned() })
    }

    fn not_after_ms(&self, certificate_pem: &str) -> Result<u64, Refused> {
        self.ask(Request::NotAfterMs { certificate_pem: certificate_pem.to_owned() })
    }

    fn random_token(&self, alphabet: &str, length: u32) -> String {
        match self.ask(Request::RandomToken { alphabet: alphabet.to_owned(), length }) {
            Ok(token) => token,
            // The recorded call trapped there.
            Err(refused) => self.stop(format!("pki.random-token, which was refused: {}", refused.message)),
        }
    }

    fn log(&self, _: Level, message: &str, fields: &[(&str, &str)]) {
        // The test harness shows it when the test fails.
        println!("{message} {fields:?}");
    }
}
