//! Replaces secrets in a recording, so that it can be shared.
//!
//! Secrets are data of Secrets, keys, tokens, passwords, and headers and fields with such names. Each is replaced in
//! every text and body of the recording, plain and in base64, always by the same text, so that the call often replays
//! as before. What a provider derives from a secret cannot be found.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capwasm_contract::recording::{Answered, Ended, Given, Request};
use capwasm_contract::{Answer, Operation};
use serde_json::Value;

use super::Recording;

/// Shorter texts occur everywhere, and replacing them would leave nothing to read. Such a short password is replaced
/// only in a field for passwords.
const SHORTEST: usize = 6;
/// Lines of a secret document (bootstrap data, PEM) that are long enough to be secrets themselves.
const LINE: usize = 16;

/// Parts of names of headers and fields with secrets.
const NAMES: [&str; 10] = [
    "authorization",
    "cookie",
    "token",
    "secret",
    "password",
    "keypem",
    "privatekey",
    "user_data",
    "credential",
    "x-registry-auth",
];
/// Names with such a part that have no secrets.
const HARMLESS: [&str; 6] =
    ["datasecretname", "secretname", "secretref", "tokenexpiration", "tokenttl", "datasecretcreated"];

/// A copy without secrets, marked as inexact.
///
/// # Errors
/// None that a recording of this host can cause.
pub fn redact(recording: &Recording) -> serde_json::Result<Recording> {
    let mut secrets = Secrets::default();
    secrets.of_tape(recording);
    secrets.of_end(&recording.ended);
    secrets.of_text(&recording.facts.configuration);
    recording.facts.related.values().flatten().for_each(|text| secrets.of_text(text));
    secrets.of_text(&recording.object);
    let replacements = secrets.replacements();
    let mut copy = serde_json::to_value(recording)?;
    replace(&mut copy, true, &replacements);
    let mut copy: Recording = serde_json::from_value(copy)?;
    copy.inexact = true;
    Ok(copy)
}

#[derive(Default)]
struct Secrets(BTreeSet<Vec<u8>>);

impl Secrets {
    fn add(&mut self, secret: &[u8]) {
        if secret.len() < SHORTEST {
            return;
        }
        self.0.insert(secret.to_vec());
        // A document that somebody takes apart is found by its lines.
        let lines = secret.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        if secret.contains(&b'\n') {
            self.0.extend(lines.filter(|line| line.len() >= LINE && !line.starts_with(b"-----")).map(<[u8]>::to_vec));
        }
    }

    /// Adds a value that may be base64 of a secret.
    fn add_data(&mut self, text: &str) {
        self.add(text.as_bytes());
        if let Ok(decoded) = STANDARD.decode(text) {
            self.add(&decoded);
        }
    }

    fn of_tape(&mut self, recording: &Recording) {
        for entry in &recording.tape {
            match &entry.request {
                Request::IssueClient { authority, .. } => self.add(authority.key_pem.as_bytes()),
                request => {
                    if let Some(exchange) = request.http() {
                        exchange.headers.iter().for_each(|(name, value)| self.of_field(name, value));
                        self.of_bytes(&exchange.body);
                    }
                }
            }
            let Some(Answered::Given(given)) = &entry.answer else { continue };
            match given {
                // What bootstrap data is written in is a word that stands everywhere.
                Given::Bytes(_) if matches!(&entry.request, Request::SecretReveal { key, .. } if key == "format") => {}
                Given::Bytes(bytes) => self.add(bytes),
                Given::Pair(pair) => self.add(pair.key_pem.as_bytes()),
                Given::Keys(_, private) => self.add(private.as_bytes()),
                Given::Text(token) if matches!(entry.request, Request::RandomToken { .. }) => {
                    self.add(token.as_bytes());
                }
                Given::Text(text) => self.of_text(text),
                Given::Texts(texts) => texts.iter().for_each(|text| self.of_text(text)),
                Given::Response(response) => {
                    response.headers.iter().for_each(|(name, value)| self.of_field(name, value));
                    self.of_bytes(&response.body);
                }
                Given::Done | Given::Number(_) | Given::Members(_) => {}
            }
        }
    }

    fn of_end(&mut self, ended: &Ended) {
        let Ended::Replied { answer, outcome } = ended else { return };
        if let Ok(Answer::Bootstrap(Some(data))) = answer {
            self.add(&data.value);
        }
        for operation in &outcome.operations {
            match operation {
                Operation::Create { object, .. } | Operation::Apply { object, .. } => self.of_value(object),
                Operation::Patch { target, merge, .. } => {
                    if target.kind == "Secret" {
                        self.of_secret(merge);
                    }
                    self.of_value(merge);
                }
                _ => {}
            }
        }
    }

    fn of_bytes(&mut self, bytes: &[u8]) {
        if let Ok(text) = std::str::from_utf8(bytes) {
            self.of_text(text);
        }
    }

    fn of_text(&mut self, text: &str) {
        if let Ok(value) = serde_json::from_str::<Value>(text) {
            self.of_value(&value);
        }
    }

    fn of_field(&mut self, name: &str, value: &str) {
        let name: String = name.chars().filter(|c| *c != '-').collect::<String>().to_ascii_lowercase();
        let named = NAMES.iter().any(|part| name.contains(&part.replace('-', "")));
        if named && !HARMLESS.contains(&name.as_str()) {
            // `Bearer x`: the credential is the last part.
            self.add_data(value.rsplit_once(' ').map_or(value, |(_, credential)| credential));
        }
    }

    fn of_value(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                if fields.get("kind").and_then(Value::as_str) == Some("Secret") {
                    self.of_secret(value);
                }
                for (name, value) in fields {
                    match value {
                        Value::String(text) => self.of_field(name, text),
                        value => self.of_value(value),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.of_value(item)),
            _ => {}
        }
    }

    fn of_secret(&mut self, secret: &Value) {
        for field in ["data", "stringData"] {
            let data = secret.get(field).and_then(Value::as_object);
            data.into_iter()
                .flat_map(|data| data.values())
                .filter_map(Value::as_str)
                .for_each(|text| self.add_data(text));
        }
    }

    /// Texts with their replacements, longest first, so that none is replaced in part.
    fn replacements(self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut secrets: Vec<Vec<u8>> = self.0.into_iter().collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        let mut all = Vec::new();
        for (number, secret) in secrets.into_iter().enumerate() {
            let placeholder = format!("redacted-{number}");
            let encoded = STANDARD.encode(&secret).into_bytes();
            // Inside of JSON text that is itself a text.
            if let Ok(text) = std::str::from_utf8(&secret) {
                let escaped = Value::from(text).to_string();
                let escaped = escaped.trim_matches('"').as_bytes().to_vec();
                if escaped != secret {
                    all.push((escaped, placeholder.clone().into_bytes()));
                }
            }
            all.push((encoded, STANDARD.encode(&placeholder).into_bytes()));
            all.push((secret, placeholder.into_bytes()));
        }
        all.sort_by_key(|(secret, _)| std::cmp::Reverse(secret.len()));
        all
    }
}

/// Fields of the recording format whose values are words of the contract.
const OWN: [&str; 7] = ["call", "function", "place", "fault", "refusal", "algorithm", "digest"];
/// Fields below which everything is the provider's.
const FOREIGN: [&str; 4] = ["object", "merge", "status", "own"];

fn replace(value: &mut Value, own: bool, replacements: &[(Vec<u8>, Vec<u8>)]) {
    match value {
        Value::String(text) => {
            if let Some(clean) = cleaned(text.as_bytes(), replacements) {
                *text = String::from_utf8_lossy(&clean).into_owned();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, own, replacements)),
        Value::Object(fields) => {
            // A body that is no text.
            if fields.len() == 1
                && let Some(Value::String(text)) = fields.get_mut("base64")
                && let Ok(bytes) = STANDARD.decode(&*text)
                && let Some(clean) = cleaned(&bytes, replacements)
            {
                *text = STANDARD.encode(clean);
            }
            for (name, value) in fields {
                if !own || !OWN.contains(&name.as_str()) {
                    replace(value, own && !FOREIGN.contains(&name.as_str()), replacements);
                }
            }
        }
        _ => {}
    }
}

/// The bytes with secrets replaced; `None` when there are none.
fn cleaned(bytes: &[u8], replacements: &[(Vec<u8>, Vec<u8>)]) -> Option<Vec<u8>> {
    let mut clean: Option<Vec<u8>> = None;
    for (secret, placeholder) in replacements {
        let now = clean.as_deref().unwrap_or(bytes);
        if secret.len() > now.len() {
            continue;
        }
        let mut rest = now;
        let mut made = Vec::new();
        while let Some(at) = find(rest, secret) {
            made.extend_from_slice(&rest[..at]);
            made.extend_from_slice(placeholder);
            rest = &rest[at + secret.len()..];
        }
        if rest.len() < now.len() {
            made.extend_from_slice(rest);
            clean = Some(made);
        }
    }
    clean
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    let first = *part.first()?;
    let mut from = 0;
    while let Some(at) = text.get(from..)?.iter().position(|byte| *byte == first) {
        if text[from + at..].starts_with(part) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}
