//! A recording as a host: what the provider asks is answered as it was.
//!
//! Reads may come in any order, and again; `http` and changes of `etcd` one after another, as they were recorded. So the
//! provider's own code may have changed as long as it does not ask the world for something else.

use std::cell::RefCell;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::reference;
use crate::host::{Algorithm, EtcdMember, Host, HttpRequest, HttpResponse, Level, ObjectRef, Pair, Subject};
use crate::refused::{Refusal, Refused};

/// The format that this version reads.
const FORMAT: u64 = 1;

/// What a recording says.
#[derive(Debug)]
pub struct Recorded {
    /// `interface.function`.
    pub function: String,
    /// The object.
    pub object: Value,
    /// How the call ended, as the file has it: `{"replied": …}` or `{"failed": …}`.
    pub ended: Value,
    facts: Value,
    tape: Vec<Entry>,
}

#[derive(Clone, Debug, Deserialize)]
struct Entry {
    call: String,
    #[serde(default)]
    with: Value,
    answer: Option<Value>,
}

impl Recorded {
    pub(super) fn read(file: &Path) -> Result<Recorded, String> {
        let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
        let mut value: Value = serde_json::from_str(&text).map_err(|error| format!("this is no recording: {error}"))?;
        if value["format"] != FORMAT {
            return Err(format!("the recording has format {}; this kit reads format {FORMAT}", value["format"]));
        }
        let object = value["object"].as_str().unwrap_or_default();
        Ok(Recorded {
            function: value["function"].as_str().unwrap_or_default().to_owned(),
            object: serde_json::from_str(object).map_err(|error| format!("the object is not JSON: {error}"))?,
            ended: value["ended"].take(),
            facts: value["facts"].take(),
            tape: serde_json::from_value(value["tape"].take()).map_err(|error| format!("the tape: {error}"))?,
        })
    }
}

/// Bytes as they are recorded: `{"text": …}` or `{"base64": …}`.
pub(super) fn payload(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!({ "text": text }),
        Err(_) => json!({"base64": STANDARD.encode(bytes)}),
    }
}

fn bytes(payload: &Value) -> Vec<u8> {
    match (payload["text"].as_str(), payload["base64"].as_str()) {
        (Some(text), _) => text.as_bytes().to_vec(),
        (None, Some(text)) => STANDARD.decode(text).unwrap_or_default(),
        (None, None) => Vec::new(),
    }
}

fn refused(value: &Value) -> Refused {
    let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let refusal = match value["refusal"].as_str().unwrap_or_default() {
        "not-found" => Refusal::NotFound,
        "conflict" => Refusal::Conflict,
        "already-exists" => Refusal::AlreadyExists,
        "invalid" => Refusal::Invalid,
        "denied" => Refusal::Denied,
        "limit" => Refusal::Limit,
        "unavailable" => Refusal::Unavailable,
        _ => Refusal::Unsupported,
    };
    Refused::new(refusal, text("reason"), text("message"))
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn parsed(text: &Value) -> Value {
    text.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// The host of a recorded call.
pub(super) struct ReplayHost<'a> {
    recorded: &'a Recorded,
    used: RefCell<Vec<bool>>,
    asked: RefCell<Option<(String, bool)>>,
}

const EFFECTS: [&str; 5] = ["http.insecure", "http.send", "http.recent", "etcd.remove", "etcd.move-leader"];

impl<'a> ReplayHost<'a> {
    pub(super) fn new(recorded: &'a Recorded) -> Self {
        ReplayHost { recorded, used: RefCell::new(vec![false; recorded.tape.len()]), asked: RefCell::new(None) }
    }

    /// What was asked that is not recorded, and whether all that is recorded had been asked.
    pub(super) fn asked(&self) -> Option<(String, bool)> {
        self.asked.borrow().clone()
    }

    /// The recorded answer; `same` says whether recorded arguments are those of this request.
    fn ask(&self, call: &str, shown: &str, same: impl Fn(&Value) -> bool) -> Result<Value, Refused> {
        let tape = &self.recorded.tape;
        let open = |at: &usize| !self.used.borrow()[*at];
        let found = if EFFECTS.contains(&call) {
            let next = (0..tape.len()).find(|at| open(at) && EFFECTS.contains(&tape[*at].call.as_str()));
            next.filter(|at| tape[*at].call == call && same(&tape[*at].with))
        } else {
            let mut all = (0..tape.len()).filter(|at| tape[*at].call == call && same(&tape[*at].with));
            all.clone().find(open).or_else(|| all.next_back())
        };
        let Some(at) = found else { self.stop(format!("{call} {shown}")) };
        self.used.borrow_mut()[at] = true;
        match &tape[at].answer {
            Some(answer) => match answer.get("given") {
                Some(given) => Ok(given.clone()),
                None => Err(refused(&answer["refused"])),
            },
            // There the recorded call ended.
            None => self.stop(format!("{call} {shown} (never answered)")),
        }
    }

    /// Ends the call, as a trap would.
    #[allow(clippy::panic, reason = "the provider cannot go on without an answer; the test's own assertion says so")]
    fn stop(&self, request: String) -> ! {
        let past_the_end = self.used.borrow().iter().all(|used| *used);
        self.asked.borrow_mut().get_or_insert((request.clone(), past_the_end));
        panic!("the recording does not answer {request}")
    }

    fn get(&self, call: &str, target: &ObjectRef) -> Result<Value, Refused> {
        let wanted = reference(target);
        let shown = format!("{}/{} {}", target.api_version, target.kind, target.name);
        self.ask(call, &shown, |with| *with == wanted).map(|given| parsed(&given["text"]))
    }

    fn list(
        &self,
        call: &str,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
        labels: &str,
    ) -> Result<Vec<Value>, Refused> {
        let same = |with: &Value| {
            with["apiVersion"] == api_version
                && with["kind"] == kind
                && with["namespace"].as_str() == namespace
                && with["labels"] == labels
        };
        let given = self.ask(call, &format!("{api_version}/{kind} {labels}"), same)?;
        Ok(given["texts"].as_array().into_iter().flatten().map(parsed).collect())
    }

    /// Opens a Secret, and reveals keys of it.
    fn reveal(&self, secret: Value, keys: &[&str]) -> Result<Vec<Result<Vec<u8>, Refused>>, Refused> {
        self.ask("secrets.open", &secret.to_string(), |with| *with == secret)?;
        let reveal = |key: &&str| {
            let same = |with: &Value| with["secret"] == secret && with["key"] == *key;
            self.ask("secrets.reveal", &format!("{secret} {key}"), same).map(|given| bytes(&given["bytes"]))
        };
        Ok(keys.iter().map(reveal).collect())
    }

    fn reveal_one(&self, secret: Value, key: &str) -> Result<Vec<u8>, Refused> {
        self.reveal(secret, &[key])?.pop().unwrap_or_else(|| Err(Refused::not_found("no key was asked for")))
    }
}

fn named(namespace: Option<&str>, name: &str) -> Value {
    json!({"named": {"namespace": namespace, "name": name}})
}

fn algorithm(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::EcdsaP256 => "ecdsa-p256",
        Algorithm::EcdsaP384 => "ecdsa-p384",
        Algorithm::Rsa2048 => "rsa2048",
        Algorithm::Rsa3072 => "rsa3072",
        Algorithm::Rsa4096 => "rsa4096",
        Algorithm::Ed25519 => "ed25519",
    }
}

fn pair(given: &Value) -> Pair {
    let text = |name: &str| given["pair"][name].as_str().unwrap_or_default().to_owned();
    Pair { certificate_pem: text("certificatePem"), key_pem: text("keyPem") }
}

impl Host for ReplayHost<'_> {
    fn now_ms(&self) -> u64 {
        self.recorded.facts["nowMs"].as_u64().unwrap_or_default()
    }

    fn attempt(&self) -> u32 {
        self.recorded.facts["attempt"].as_u64().and_then(|attempt| u32::try_from(attempt).ok()).unwrap_or(1)
    }

    fn id(&self) -> String {
        self.recorded.facts["id"].as_str().unwrap_or_default().to_owned()
    }

    fn configuration(&self) -> Value {
        match parsed(&self.recorded.facts["configuration"]) {
            Value::Null => json!({}),
            configuration => configuration,
        }
    }

    fn related(&self, role: &str) -> Vec<Value> {
        self.recorded.facts["related"][role].as_array().into_iter().flatten().map(parsed).collect()
    }

    fn results(&self) -> Vec<(String, Result<(), Refused>)> {
        let result = |pair: &Value| {
            let ended = pair[1].get("Err").map_or(Ok(()), |error| Err(refused(error)));
            (pair[0].as_str().unwrap_or_default().to_owned(), ended)
        };
        self.recorded.facts["results"].as_array().into_iter().flatten().map(result).collect()
    }

    fn lookup(&self, target: &ObjectRef) -> Result<Value, Refused> {
        self.get("lookup.get", target)
    }

    fn lookup_list(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
        labels: &str,
    ) -> Result<Vec<Value>, Refused> {
        self.list("lookup.list", api_version, kind, namespace, labels)
    }

    fn workload(&self, target: &ObjectRef) -> Result<Value, Refused> {
        self.get("workload.get", target)
    }

    fn workload_list(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
        labels: &str,
    ) -> Result<Vec<Value>, Refused> {
        self.list("workload.list", api_version, kind, namespace, labels)
    }

    fn serving_certificate(&self, namespace: &str, pod: &str, port: u16) -> Result<String, Refused> {
        let same = |with: &Value| with["namespace"] == namespace && with["pod"] == pod && with["port"] == port;
        let given = self.ask("workload.serving-certificate", &format!("{namespace}/{pod}:{port}"), same)?;
        Ok(given["text"].as_str().unwrap_or_default().to_owned())
    }

    fn etcd_members(&self) -> Result<Vec<EtcdMember>, Refused> {
        let given = self.ask("etcd.members", "", |_| true)?;
        let text = |member: &Value, name: &str| member[name].as_str().unwrap_or_default().to_owned();
        let flag = |member: &Value, name: &str| member[name].as_bool().unwrap_or_default();
        let member = |member: &Value| EtcdMember {
            id: member["id"].as_u64().unwrap_or_default(),
            name: text(member, "name"),
            peer_urls: texts(&member["peerUrls"]),
            learner: flag(member, "learner"),
            leader: flag(member, "leader"),
            healthy: flag(member, "healthy"),
            message: text(member, "message"),
            alarms: texts(&member["alarms"]),
        };
        Ok(given["members"].as_array().into_iter().flatten().map(member).collect())
    }

    fn etcd_remove(&self, id: u64) -> Result<(), Refused> {
        self.ask("etcd.remove", &format!("{id:x}"), |with| with["id"] == id).map(|_| ())
    }

    fn etcd_move_leader(&self, to: u64) -> Result<(), Refused> {
        self.ask("etcd.move-leader", &format!("{to:x}"), |with| with["to"] == to).map(|_| ())
    }

    fn secret(&self, name: &str, key: &str) -> Result<Vec<u8>, Refused> {
        self.reveal_one(named(None, name), key)
    }

    fn secret_keys(&self, name: &str, keys: &[&str]) -> Result<Vec<Option<Vec<u8>>>, Refused> {
        let found = |value: Result<Vec<u8>, Refused>| match value {
            Ok(value) => Ok(Some(value)),
            Err(refused) if refused.refusal == Refusal::NotFound => Ok(None),
            Err(refused) => Err(refused),
        };
        self.reveal(named(None, name), keys)?.into_iter().map(found).collect()
    }

    fn secret_in(&self, namespace: &str, name: &str, key: &str) -> Result<Vec<u8>, Refused> {
        self.reveal_one(named(Some(namespace), name), key)
    }

    fn bootstrap_data(&self, key: &str) -> Result<Vec<u8>, Refused> {
        self.reveal_one(json!("bootstrapData"), key)
    }

    fn http(&self, request: &HttpRequest) -> Result<HttpResponse, Refused> {
        if request.insecure {
            self.ask("http.insecure", "", |_| true)?;
        }
        let body = payload(&request.body);
        let same = |with: &Value| {
            with["method"] == request.method
                && with["url"] == request.url
                && with["headers"] == json!(request.headers)
                && with["body"] == body
        };
        let shown = format!("{} {}", request.method, request.url);
        let given = match request.max_age {
            Some(_) => self.ask("http.recent", &shown, |with| same(&with["request"]))?,
            None => self.ask("http.send", &shown, same)?,
        };
        let response = &given["response"];
        let header = |pair: &Value| {
            let text = |at: usize| pair[at].as_str().unwrap_or_default().to_owned();
            (text(0), text(1))
        };
        Ok(HttpResponse {
            status: response["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or_default(),
            headers: response["headers"].as_array().into_iter().flatten().map(header).collect(),
            body: bytes(&response["body"]),
        })
    }

    fn new_authority(&self, common_name: &str, with: Algorithm, days: u32) -> Result<Pair, Refused> {
        let wanted = json!({"commonName": common_name, "algorithm": algorithm(with), "days": days});
        self.ask("pki.new-authority", common_name, |with| *with == wanted).map(|given| pair(&given))
    }

    fn issue_client(&self, authority: &Pair, subject: &Subject, with: Algorithm, days: u32) -> Result<Pair, Refused> {
        let wanted = json!({
            "authority": {"certificatePem": authority.certificate_pem, "keyPem": authority.key_pem},
            "subject": {
                "commonName": subject.common_name, "organizations": subject.organizations,
                "dnsNames": subject.dns_names, "ipAddresses": subject.ip_addresses},
            "algorithm": algorithm(with), "days": days,
        });
        self.ask("pki.issue-client", &subject.common_name, |with| *with == wanted).map(|given| pair(&given))
    }

    fn new_signing_key(&self, with: Algorithm) -> Result<(String, String), Refused> {
        let wanted = json!({"algorithm": algorithm(with)});
        let given = self.ask("pki.new-signing-key", algorithm(with), |with| *with == wanted)?;
        let text = |at: usize| given["keys"][at].as_str().unwrap_or_default().to_owned();
        Ok((text(0), text(1)))
    }

    fn public_key_hash(&self, certificate_pem: &str) -> Result<String, Refused> {
        let given = self.ask("pki.public-key-hash", "", |with| with["certificatePem"] == certificate_pem)?;
        Ok(given["text"].as_str().unwrap_or_default().to_owned())
    }

    fn not_after_ms(&self, certificate_pem: &str) -> Result<u64, Refused> {
        let given = self.ask("pki.not-after-ms", "", |with| with["certificatePem"] == certificate_pem)?;
        Ok(given["number"].as_u64().unwrap_or_default())
    }

    fn random_token(&self, alphabet: &str, length: u32) -> String {
        let wanted = json!({"alphabet": alphabet, "length": length});
        match self.ask("pki.random-token", "", |with| *with == wanted) {
            Ok(given) => given["text"].as_str().unwrap_or_default().to_owned(),
            // The recorded call trapped there.
            Err(refused) => self.stop(format!("pki.random-token, which was refused: {}", refused.message)),
        }
    }

    fn log(&self, _: Level, message: &str, fields: &[(&str, &str)]) {
        // The test harness shows it when the test fails.
        println!("{message} {fields:?}");
    }
}
