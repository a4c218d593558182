//! What a [`TestHost`] answers to a provider.

use capwasm_contract::{
    Algorithm, EtcdMember, HttpResponse, ObjectRef, Pair, Place, Refusal, Refused, Selection, Subject,
};
use capwasm_object::selector::Selector;
use serde_json::Value;

use super::{Read, TestHost, is, same_version};
use crate::host::{Host, HttpRequest, Level};
use crate::object;

impl TestHost {
    fn note(&self, place: Place, what: String) -> Result<(), Refused> {
        self.reads.borrow_mut().push(Read { place, what });
        if place == Place::Workload && self.workload_down {
            return Err(Refused::new(Refusal::Unavailable, "NotConnected", "the workload cluster cannot be reached"));
        }
        Ok(())
    }

    pub(super) fn get(&self, place: Place, target: &ObjectRef) -> Result<Value, Refused> {
        let namespace = self.namespace_of(place, target);
        let what = format!("{}/{} {namespace}/{}", target.api_version, target.kind, target.name);
        self.note(place, format!("get {what}"))?;
        let objects = self.objects.borrow();
        let found = objects.iter().find(|(at, known)| *at == place && is(known, target, &namespace));
        found.map(|(_, object)| object.clone()).ok_or_else(|| Refused::not_found(format!("there is no {what}")))
    }

    fn list(&self, place: Place, of: &Selection) -> Result<Vec<Value>, Refused> {
        let Selection { api_version, kind, labels, .. } = of;
        let namespace = of.namespace.as_deref();
        self.note(place, format!("list {api_version}/{kind} {} {labels}", namespace.unwrap_or("-")))?;
        let selector = Selector::parse(labels)
            .map_err(|error| Refused::new(Refusal::Invalid, "BadSelector", error.to_string()))?;
        let wanted = namespace.or(match place {
            Place::Management => Some(self.namespace.as_str()),
            Place::Workload => None,
        });
        let objects = self.objects.borrow();
        let selected = objects.iter().filter(|(at, known)| {
            let at_home = object::namespace(known);
            *at == place
                && same_version(object::text(known, "/apiVersion"), api_version)
                && object::text(known, "/kind") == kind
                && wanted.is_none_or(|wanted| wanted == at_home || at_home.is_empty())
                && selector.matches_object(known)
        });
        Ok(selected.map(|(_, object)| object.clone()).collect())
    }

    /// Changes the members, unless etcd cannot be reached.
    fn change_etcd(&self, call: String, change: impl FnOnce(&mut Vec<EtcdMember>)) -> Result<(), Refused> {
        self.etcd_calls.borrow_mut().push(call);
        self.etcd.borrow_mut().as_mut().map(change).ok_or_else(etcd_down)
    }

    /// The latest kept answer to the very same request that is not too old.
    fn recent(&self, request: &HttpRequest) -> Option<HttpResponse> {
        let age = u64::try_from(request.max_age?.as_millis()).unwrap_or(u64::MAX);
        let wanted = without_times(request);
        let recent = self.recent.borrow();
        let fits = |(at, known, _): &&(u64, HttpRequest, HttpResponse)| {
            *known == wanted && age > 0 && self.now_ms.saturating_sub(*at) <= age
        };
        recent.iter().rev().find(fits).map(|(.., answer)| answer.clone())
    }

    pub(super) fn next(&self) -> u64 {
        let mut serial = self.serial.borrow_mut();
        *serial += 1;
        *serial
    }
}

impl Host for TestHost {
    fn now_ms(&self) -> u64 {
        self.now_ms
    }

    fn attempt(&self) -> u32 {
        self.attempt
    }

    fn id(&self) -> String {
        "test".to_owned()
    }

    fn configuration(&self) -> Value {
        self.configuration.clone()
    }

    fn related(&self, role: &str) -> Vec<Value> {
        self.related.get(role).cloned().unwrap_or_default()
    }

    fn results(&self) -> Vec<(String, Result<(), Refused>)> {
        self.results.borrow().clone()
    }

    fn lookup(&self, target: &ObjectRef) -> Result<Value, Refused> {
        self.get(Place::Management, target)
    }

    fn lookup_list(&self, of: &Selection) -> Result<Vec<Value>, Refused> {
        self.list(Place::Management, of)
    }

    fn workload(&self, target: &ObjectRef) -> Result<Value, Refused> {
        self.get(Place::Workload, target)
    }

    fn workload_list(&self, of: &Selection) -> Result<Vec<Value>, Refused> {
        self.list(Place::Workload, of)
    }

    fn serving_certificate(&self, namespace: &str, pod: &str, port: u16) -> Result<String, Refused> {
        let at = format!("{namespace}/{pod}:{port}");
        self.note(Place::Workload, format!("serving certificate {at}"))?;
        self.serving_certificates
            .get(&at)
            .cloned()
            .ok_or_else(|| Refused::not_found(format!("nothing listens at {at}")))
    }

    fn etcd_members(&self) -> Result<Vec<EtcdMember>, Refused> {
        self.note(Place::Workload, "etcd members".to_owned())?;
        self.etcd().ok_or_else(etcd_down)
    }

    fn etcd_remove(&self, id: u64) -> Result<(), Refused> {
        self.change_etcd(format!("remove {id:x}"), |members| members.retain(|member| member.id != id))
    }

    fn etcd_move_leader(&self, to: u64) -> Result<(), Refused> {
        self.change_etcd(format!("move-leader {to:x}"), |members| {
            for member in members {
                member.leader = member.id == to;
            }
        })
    }

    fn secret(&self, name: &str, key: &str) -> Result<Vec<u8>, Refused> {
        self.reads.borrow_mut().push(Read { place: Place::Management, what: format!("secret {name} {key}") });
        let found = self.secrets.get(&(name.to_owned(), key.to_owned()));
        found.cloned().ok_or_else(|| Refused::not_found(format!("there is no key {key} in Secret {name}")))
    }

    fn secret_in(&self, namespace: &str, name: &str, key: &str) -> Result<Vec<u8>, Refused> {
        let what = format!("secret {namespace}/{name} {key}");
        self.reads.borrow_mut().push(Read { place: Place::Management, what });
        if namespace != self.namespace && !self.secrets_elsewhere.keys().any(|(granted, ..)| granted == namespace) {
            return Err(Refused::new(Refusal::Denied, "NotGranted", format!("namespace {namespace} is not granted")));
        }
        let own = || self.secrets.get(&(name.to_owned(), key.to_owned())).filter(|_| namespace == self.namespace);
        let elsewhere = self.secrets_elsewhere.get(&(namespace.to_owned(), name.to_owned(), key.to_owned()));
        let missing = || Refused::not_found(format!("there is no key {key} in Secret {namespace}/{name}"));
        elsewhere.or_else(own).cloned().ok_or_else(missing)
    }

    fn bootstrap_data(&self, key: &str) -> Result<Vec<u8>, Refused> {
        let found = self.bootstrap_data.get(key);
        found.cloned().ok_or_else(|| Refused::not_found("there is no bootstrap data yet"))
    }

    fn http(&self, request: &HttpRequest) -> Result<HttpResponse, Refused> {
        if request.insecure && !self.insecure_tls {
            return Err(Refused::new(Refusal::Denied, "NotGranted", "insecureTLS is not granted"));
        }
        if let Some(known) = self.recent(request) {
            return Ok(known);
        }
        self.requests.borrow_mut().push(request.clone());
        let answer = match self.http.borrow_mut().as_mut() {
            Some(handler) => handler(request)?,
            None => return Err(Refused::new(Refusal::Denied, "NotGranted", "the test has no HTTP handler")),
        };
        if request.max_age.is_some() && (200..300).contains(&answer.status) {
            self.recent.borrow_mut().push((self.now_ms, without_times(request), answer.clone()));
        }
        Ok(answer)
    }

    fn new_authority(&self, common_name: &str, algorithm: Algorithm, days: u32) -> Result<Pair, Refused> {
        Ok(fake_pair("authority", common_name, algorithm, self.now_ms, days, self.next()))
    }

    fn issue_client(
        &self,
        authority: &Pair,
        subject: &Subject,
        algorithm: Algorithm,
        days: u32,
    ) -> Result<Pair, Refused> {
        if !authority.certificate_pem.starts_with(BEGIN) {
            return Err(Refused::new(Refusal::Invalid, "BadAuthority", "the authority is not a certificate"));
        }
        let common_name = format!("{} O={}", subject.common_name, subject.organizations.join(","));
        Ok(fake_pair("client", &common_name, algorithm, self.now_ms, days, self.next()))
    }

    fn new_signing_key(&self, algorithm: Algorithm) -> Result<(String, String), Refused> {
        let serial = self.next();
        Ok((format!("fake public key {serial} {algorithm:?}\n"), format!("fake private key {serial} {algorithm:?}\n")))
    }

    fn public_key_hash(&self, certificate_pem: &str) -> Result<String, Refused> {
        if !certificate_pem.starts_with(BEGIN) {
            return Err(Refused::new(Refusal::Invalid, "BadCertificate", "this is not a certificate"));
        }
        let sum = certificate_pem
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Ok(format!("sha256:{}", format!("{sum:016x}").repeat(4)))
    }

    fn not_after_ms(&self, certificate_pem: &str) -> Result<u64, Refused> {
        certificate_pem
            .lines()
            .find_map(|line| line.strip_prefix("not-after-ms: "))
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| Refused::new(Refusal::Invalid, "BadCertificate", "this is not a certificate"))
    }

    fn random_token(&self, alphabet: &str, length: u32) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        let mut state = self.next().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (0..length)
            .filter_map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let index = usize::try_from(state >> 33).unwrap_or_default().checked_rem(letters.len())?;
                letters.get(index).copied()
            })
            .collect()
    }

    fn log(&self, level: Level, message: &str, _: &[(&str, &str)]) {
        self.logs.borrow_mut().push((level, message.to_owned()));
    }
}

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";

/// A pair that a test can recognise: readable, unique, with its end inside.
fn fake_pair(what: &str, common_name: &str, algorithm: Algorithm, now_ms: u64, days: u32, serial: u64) -> Pair {
    let not_after = now_ms + u64::from(days) * 86_400_000;
    Pair {
        certificate_pem: format!(
            "{BEGIN}\nfake {what} {serial} {algorithm:?}\nCN={common_name}\nnot-after-ms: {not_after}\n-----END CERTIFICATE-----\n"
        ),
        key_pem: format!("-----BEGIN PRIVATE KEY-----\nfake {what} {serial}\n-----END PRIVATE KEY-----\n"),
    }
}

/// What makes two requests the same: everything but how long each may take, or be old.
fn without_times(request: &HttpRequest) -> HttpRequest {
    HttpRequest { deadline: None, max_age: None, ..request.clone() }
}

fn etcd_down() -> Refused {
    Refused::new(Refusal::Unavailable, "NotConnected", "etcd cannot be reached")
}
