//! The contract's imports as a [`Host`], and an [`Outcome`] handed over to them.

use capwasm_contract::{
    Algorithm, EtcdMember, HttpResponse, ObjectRef, Operation, Outcome, Pair, Refusal, Refused, Selection, Subject,
};
use serde_json::Value;

use super::bindings::imported::{call, etcd, http, log, lookup, outcome, pki, secrets, workload};
use super::convert::millis;
use crate::host::{Host, HttpRequest, Level};

/// The host of the component's world. What the world does not import is a branch that the compiler removes, so that
/// the component does not import it either.
pub struct Imports<const HTTP: bool, const PKI: bool, const ETCD: bool>;

/// Parses what the host sent; traps on what is not JSON.
#[allow(clippy::panic, reason = "the contract says JSON; a host that breaks it gets a trap that says so")]
fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("the host sent what is not JSON: {error}"))
}

fn unsupported<T>(what: &str) -> Result<T, Refused> {
    Err(Refused::new(Refusal::Unsupported, "NotInWorld", format!("this kind of provider has no {what}")))
}

impl<const HTTP: bool, const PKI: bool, const ETCD: bool> Host for Imports<HTTP, PKI, ETCD> {
    fn now_ms(&self) -> u64 {
        call::now_ms()
    }

    fn attempt(&self) -> u32 {
        call::attempt()
    }

    fn id(&self) -> String {
        call::id()
    }

    fn configuration(&self) -> Value {
        json(&call::configuration())
    }

    fn related(&self, role: &str) -> Vec<Value> {
        call::related(role).iter().map(|text| json(text)).collect()
    }

    fn results(&self) -> Vec<(String, Result<(), Refused>)> {
        call::results().into_iter().map(|(key, result)| (key, result.map_err(Refused::from))).collect()
    }

    fn lookup(&self, target: &ObjectRef) -> Result<Value, Refused> {
        Ok(json(&lookup::get(&target.into())?))
    }

    fn lookup_list(&self, of: &Selection) -> Result<Vec<Value>, Refused> {
        Ok(self.lookup_list_texts(of)?.iter().map(|text| json(text)).collect())
    }

    fn lookup_text(&self, target: &ObjectRef) -> Result<String, Refused> {
        Ok(lookup::get(&target.into())?)
    }

    fn lookup_list_texts(&self, of: &Selection) -> Result<Vec<String>, Refused> {
        Ok(lookup::list(&of.api_version, &of.kind, of.namespace.as_deref(), &of.labels)?)
    }

    fn workload(&self, target: &ObjectRef) -> Result<Value, Refused> {
        Ok(json(&workload::get(&target.into())?))
    }

    fn workload_list(&self, of: &Selection) -> Result<Vec<Value>, Refused> {
        Ok(self.workload_list_texts(of)?.iter().map(|text| json(text)).collect())
    }

    fn workload_list_texts(&self, of: &Selection) -> Result<Vec<String>, Refused> {
        Ok(workload::list(&of.api_version, &of.kind, of.namespace.as_deref(), &of.labels)?)
    }

    fn serving_certificate(&self, namespace: &str, pod: &str, port: u16) -> Result<String, Refused> {
        Ok(workload::serving_certificate(namespace, pod, port)?)
    }

    fn etcd_members(&self) -> Result<Vec<EtcdMember>, Refused> {
        if !ETCD {
            return unsupported("etcd");
        }
        Ok(etcd::members()?.into_iter().map(Into::into).collect())
    }

    fn etcd_remove(&self, id: u64) -> Result<(), Refused> {
        if !ETCD {
            return unsupported("etcd");
        }
        Ok(etcd::remove(id)?)
    }

    fn etcd_move_leader(&self, to: u64) -> Result<(), Refused> {
        if !ETCD {
            return unsupported("etcd");
        }
        Ok(etcd::move_leader(to)?)
    }

    fn secret(&self, name: &str, key: &str) -> Result<Vec<u8>, Refused> {
        Ok(secrets::open(name)?.reveal(key)?)
    }

    fn secret_keys(&self, name: &str, keys: &[&str]) -> Result<Vec<Option<Vec<u8>>>, Refused> {
        let secret = secrets::open(name)?;
        let reveal = |key: &&str| match secret.reveal(key).map_err(Refused::from) {
            Ok(value) => Ok(Some(value)),
            Err(refused) if refused.refusal == Refusal::NotFound => Ok(None),
            Err(refused) => Err(refused),
        };
        keys.iter().map(reveal).collect()
    }

    fn secret_in(&self, namespace: &str, name: &str, key: &str) -> Result<Vec<u8>, Refused> {
        Ok(secrets::open_in(namespace, name)?.reveal(key)?)
    }

    fn bootstrap_data(&self, key: &str) -> Result<Vec<u8>, Refused> {
        Ok(secrets::bootstrap_data()?.reveal(key)?)
    }

    fn http(&self, request: &HttpRequest) -> Result<HttpResponse, Refused> {
        if !HTTP {
            return unsupported("HTTP");
        }
        let client = http::Client::new();
        if let Some(pem) = &request.trust {
            client.trust(pem)?;
        }
        if let Some(deadline) = request.deadline {
            client.deadline(millis(deadline));
        }
        if request.insecure {
            client.insecure()?;
        }
        let HttpRequest { method, url, headers, body, .. } = request;
        let response = match request.max_age {
            Some(age) => client.recent(method, url, headers, body, millis(age))?,
            None => client.send(method, url, headers, body)?,
        };
        Ok(response.into())
    }

    fn new_authority(&self, common_name: &str, with: Algorithm, days: u32) -> Result<Pair, Refused> {
        if !PKI {
            return unsupported("keys");
        }
        Ok(pki::new_authority(common_name, with.into(), days)?.into())
    }

    fn issue_client(&self, authority: &Pair, subject: &Subject, with: Algorithm, days: u32) -> Result<Pair, Refused> {
        if !PKI {
            return unsupported("keys");
        }
        Ok(pki::issue_client(&authority.into(), &subject.into(), with.into(), days)?.into())
    }

    fn new_signing_key(&self, with: Algorithm) -> Result<(String, String), Refused> {
        if !PKI {
            return unsupported("keys");
        }
        Ok(pki::new_signing_key(with.into())?)
    }

    fn public_key_hash(&self, certificate_pem: &str) -> Result<String, Refused> {
        if !PKI {
            return unsupported("keys");
        }
        Ok(pki::public_key_hash(certificate_pem)?)
    }

    fn not_after_ms(&self, certificate_pem: &str) -> Result<u64, Refused> {
        if !PKI {
            return unsupported("keys");
        }
        Ok(pki::not_after_ms(certificate_pem)?)
    }

    #[allow(clippy::panic, reason = "an infrastructure provider that asks for a token is wrong in any case")]
    fn random_token(&self, alphabet: &str, length: u32) -> String {
        if !PKI {
            panic!("this kind of provider has no random tokens");
        }
        pki::random_token(alphabet, length)
    }

    fn log(&self, level: Level, message: &str, fields: &[(&str, &str)]) {
        let level = match level {
            Level::Debug => log::Level::Debug,
            Level::Info => log::Level::Info,
            Level::Warn => log::Level::Warn,
            Level::Error => log::Level::Error,
        };
        let fields: Vec<_> = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        log::write(level, message, &fields);
    }
}

/// Hands the outcome to the host, in order.
pub fn deliver(collected: &Outcome) {
    for fields in &collected.status {
        outcome::set_status(&fields.to_string());
    }
    for fields in &collected.own {
        outcome::set_own(&fields.to_string());
    }
    for condition in &collected.conditions {
        outcome::set_condition(&condition.name, condition.status, &condition.reason, &condition.message);
    }
    for event in &collected.events {
        outcome::emit_event(event.warning, &event.reason, &event.message);
    }
    for operation in &collected.operations {
        deliver_operation(operation);
    }
    if let Some(delay) = collected.wake_after {
        outcome::wake_after(millis(delay));
    }
    if collected.wake_when_applied {
        outcome::wake_when_applied();
    }
}

fn deliver_operation(operation: &Operation) {
    match operation {
        Operation::Create { key, place: at, object } => outcome::create(key, (*at).into(), &object.to_string()),
        Operation::Apply { key, place: at, object } => outcome::apply(key, (*at).into(), &object.to_string()),
        Operation::Patch { key, place: at, target, merge } => {
            outcome::patch(key, (*at).into(), &target.into(), &merge.to_string());
        }
        Operation::SetConditionOf { key, target, condition } => outcome::set_condition_of(
            key,
            &target.into(),
            &condition.name,
            condition.status,
            &condition.reason,
            &condition.message,
        ),
        Operation::Delete { key, place: at, target, uid } => {
            outcome::delete(key, (*at).into(), &target.into(), uid.as_deref());
        }
        // The host's own word for a write that it does not grant; nobody can ask for one.
        Operation::Refused { .. } => {}
    }
}
