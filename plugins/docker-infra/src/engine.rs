//! Client of the Docker Engine API (v1.41), one typed method per request that this provider makes.
//!
//! Every request is idempotent or finds out what it would repeat: a container's name makes a second creation a
//! conflict, starting a running container and removing an absent one are successes.

mod error;

use std::time::Duration;

use capwasm_sdk::{Host, HttpRequest, HttpResponse};
use serde::Deserialize;
use serde_json::{Value, json};

pub use error::EngineError;

const BASE: &str = "http://docker.endpoint/v1.41";
/// Images are big and registries slow; the endpoint's own limit still holds.
const PULL_DEADLINE: Duration = Duration::from_secs(600);

/// What is known of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Container {
    /// Engine's id.
    pub id: String,
    /// Whether it runs.
    #[serde(default)]
    pub state: State,
    /// Execs that the engine still knows, running or not.
    #[serde(default, rename = "ExecIDs")]
    pub exec_ids: Option<Vec<String>>,
    #[serde(default)]
    config: Config,
    #[serde(default)]
    network_settings: NetworkSettings,
}

/// A container's state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct State {
    /// `created`, `running`, `paused`, `restarting`, `removing`, `exited` or `dead`.
    pub status: String,
    /// Of the last exit.
    pub exit_code: i64,
    /// RFC 3339; the year 1 when it never started.
    pub started_at: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Config {
    labels: Option<std::collections::BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct NetworkSettings {
    networks: Option<std::collections::BTreeMap<String, Attachment>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Attachment {
    #[serde(rename = "IPAddress")]
    ip_address: Option<String>,
    #[serde(rename = "GlobalIPv6Address")]
    global_ipv6_address: Option<String>,
}

impl Container {
    /// A label's value.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.config.labels.as_ref()?.get(name).map(String::as_str)
    }

    /// Its IPv4 address in a network; none while it does not run.
    pub fn ipv4(&self, network: &str) -> Option<&str> {
        self.attachment(network)?.ip_address.as_deref().filter(|address| !address.is_empty())
    }

    /// Its IPv6 address in a network.
    pub fn ipv6(&self, network: &str) -> Option<&str> {
        self.attachment(network)?.global_ipv6_address.as_deref().filter(|address| !address.is_empty())
    }

    fn attachment(&self, network: &str) -> Option<&Attachment> {
        self.network_settings.networks.as_ref()?.get(network)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Identified {
    id: String,
}

/// What is known of an exec.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Exec {
    /// Whether its process lives.
    pub running: bool,
}

/// How the creation of a container ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creation {
    /// It was created.
    Created,
    /// The name is taken: look again.
    NameTaken,
}

/// The engine behind the named endpoint `docker`.
pub struct Engine<'a> {
    host: &'a dyn Host,
}

impl<'a> Engine<'a> {
    /// Through this host's HTTP.
    pub fn new(host: &'a dyn Host) -> Engine<'a> {
        Engine { host }
    }

    /// One container by name or id.
    pub fn container(&self, name: &str) -> Result<Option<Container>, EngineError> {
        self.get(&format!("/containers/{}/json", encode(name)))
    }

    /// Ids of the containers, running or not, that carry a label.
    pub fn containers_labelled(&self, label: &str, value: &str) -> Result<Vec<String>, EngineError> {
        let filters = json!({"label": [format!("{label}={value}")]}).to_string();
        let found: Option<Vec<Identified>> =
            self.get(&format!("/containers/json?all=1&filters={}", encode(&filters)))?;
        Ok(found.unwrap_or_default().into_iter().map(|container| container.id).collect())
    }

    /// Creates a container.
    pub fn create(&self, name: &str, body: &Value) -> Result<Creation, EngineError> {
        let act = format!("create container {name}");
        let path = format!("/containers/create?name={}", encode(name));
        let response = self.send(&act, HttpRequest::new("POST", url(&path)).json(body))?;
        match response.status {
            201 => Ok(Creation::Created),
            409 => Ok(Creation::NameTaken),
            _ => Err(EngineError::rejected(act, &response)),
        }
    }

    /// Starts a container; running already is a success.
    pub fn start(&self, id: &str) -> Result<(), EngineError> {
        self.post(format!("start container {id}"), &format!("/containers/{}/start", encode(id)), None)
    }

    /// Sends a signal to a container's first process.
    pub fn signal(&self, id: &str, signal: &str) -> Result<(), EngineError> {
        self.post(format!("signal container {id}"), &format!("/containers/{}/kill?signal={signal}", encode(id)), None)
    }

    /// Removes a container and its anonymous volumes, running or not. False while the engine is still at it.
    pub fn remove(&self, id: &str) -> Result<bool, EngineError> {
        let act = format!("remove container {id}");
        let path = format!("/containers/{}?force=1&v=1", encode(id));
        let response = self.send(&act, HttpRequest::new("DELETE", url(&path)))?;
        match response.status {
            204 | 404 => Ok(true),
            409 => Ok(false),
            _ => Err(EngineError::rejected(act, &response)),
        }
    }

    /// Makes sure that an image is there, by pulling it when it is not.
    pub fn ensure_image(&self, image: &str) -> Result<(), EngineError> {
        if self.get::<Value>(&format!("/images/{}/json", encode_path(image)))?.is_some() {
            return Ok(());
        }
        let act = format!("pull image {image}");
        let (name, tag) = split_image(image);
        let path = match tag {
            Some(tag) => format!("/images/create?fromImage={}&tag={}", encode(name), encode(tag)),
            None => format!("/images/create?fromImage={}", encode(name)),
        };
        let response = self.send(&act, HttpRequest::new("POST", url(&path)).deadline(PULL_DEADLINE))?;
        if response.status != 200 {
            return Err(EngineError::rejected(act, &response));
        }
        // The engine streams progress under a status of 200 and reports a failure as a line of it.
        match pull_failure(&response.body) {
            Some(message) => Err(EngineError::Rejected { act, status: 500, message }),
            None => Ok(()),
        }
    }

    /// Makes sure that a network is there.
    pub fn ensure_network(&self, name: &str) -> Result<(), EngineError> {
        if self.get::<Value>(&format!("/networks/{}", encode(name)))?.is_some() {
            return Ok(());
        }
        let act = format!("create network {name}");
        let body = json!({"Name": name, "Driver": "bridge", "CheckDuplicate": true});
        let response = self.send(&act, HttpRequest::new("POST", url("/networks/create")).json(&body))?;
        match response.status {
            // 409: another cluster was quicker.
            201 | 409 => Ok(()),
            _ => Err(EngineError::rejected(act, &response)),
        }
    }

    /// Unpacks a tar archive in a directory of a container, which need not run.
    pub fn put_archive(&self, id: &str, directory: &str, archive: Vec<u8>) -> Result<(), EngineError> {
        let act = format!("write to {directory} of container {id}");
        let path = format!("/containers/{}/archive?path={}", encode(id), encode(directory));
        let request = HttpRequest::new("PUT", url(&path)).body("application/x-tar", archive);
        let response = self.send(&act, request)?;
        if response.status == 200 { Ok(()) } else { Err(EngineError::rejected(act, &response)) }
    }

    /// A file or directory of a container as a tar archive; none when there is none.
    pub fn archive(&self, id: &str, path: &str) -> Result<Option<Vec<u8>>, EngineError> {
        let act = format!("read {path} of container {id}");
        let request =
            HttpRequest::new("GET", url(&format!("/containers/{}/archive?path={}", encode(id), encode(path))));
        let response = self.send(&act, request)?;
        match response.status {
            200 => Ok(Some(response.body)),
            404 => Ok(None),
            _ => Err(EngineError::rejected(act, &response)),
        }
    }

    /// Starts a shell script in a running container and does not wait for it.
    pub fn exec_detached(&self, id: &str, script: &str) -> Result<String, EngineError> {
        let act = format!("prepare a command in container {id}");
        let body = json!({"Cmd": ["/bin/sh", "-c", script]});
        let path = format!("/containers/{}/exec", encode(id));
        let response = self.send(&act, HttpRequest::new("POST", url(&path)).json(&body))?;
        if response.status != 201 {
            return Err(EngineError::rejected(act, &response));
        }
        let exec: Identified = parse(&act, &response.body)?;
        let body = json!({"Detach": true, "Tty": false});
        self.post(
            format!("run a command in container {id}"),
            &format!("/exec/{}/start", encode(&exec.id)),
            Some(&body),
        )?;
        Ok(exec.id)
    }

    /// One exec; the engine forgets finished ones after a while.
    pub fn exec(&self, id: &str) -> Result<Option<Exec>, EngineError> {
        self.get(&format!("/exec/{}/json", encode(id)))
    }

    /// The last lines that a container wrote.
    pub fn logs(&self, id: &str, lines: u32) -> Result<String, EngineError> {
        let act = format!("read the log of container {id}");
        let path = format!("/containers/{}/logs?stdout=1&stderr=1&tail={lines}", encode(id));
        let response = self.send(&act, HttpRequest::new("GET", url(&path)))?;
        if response.status == 200 { Ok(log_text(&response.body)) } else { Err(EngineError::rejected(act, &response)) }
    }

    fn get<T: for<'de> Deserialize<'de>>(&self, path: &str) -> Result<Option<T>, EngineError> {
        let act = format!("get {path}");
        let response = self.send(&act, HttpRequest::new("GET", url(path)))?;
        match response.status {
            200 => parse(&act, &response.body).map(Some),
            404 => Ok(None),
            _ => Err(EngineError::rejected(act, &response)),
        }
    }

    /// A request that answers nothing; 304 means that it was so already.
    fn post(&self, act: String, path: &str, body: Option<&Value>) -> Result<(), EngineError> {
        let request = HttpRequest::new("POST", url(path));
        let response = self.send(&act, body.map_or_else(|| request.clone(), |body| request.clone().json(body)))?;
        match response.status {
            200 | 201 | 204 | 304 => Ok(()),
            _ => Err(EngineError::rejected(act, &response)),
        }
    }

    fn send(&self, act: &str, request: HttpRequest) -> Result<HttpResponse, EngineError> {
        self.host.http(&request).map_err(|refused| EngineError::Unreachable { act: act.to_owned(), refused })
    }
}

fn url(path: &str) -> String {
    format!("{BASE}{path}")
}

fn parse<T: for<'de> Deserialize<'de>>(act: &str, body: &[u8]) -> Result<T, EngineError> {
    serde_json::from_slice(body).map_err(|source| EngineError::Garbled { act: act.to_owned(), source })
}

/// Percent-encodes everything that is not unreserved, so that a name can neither leave its place in a path nor add a
/// parameter to a query.
fn encode(text: &str) -> String {
    encode_except(text, b"")
}

/// The same, but leaves the slashes and colons of an image's name, which the engine's router wants plain.
fn encode_path(text: &str) -> String {
    encode_except(text, b"/:@")
}

fn encode_except(text: &str, plain: &[u8]) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || plain.contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
}

/// Name and tag; a digest stays in the name, and without either the engine would pull every tag.
fn split_image(image: &str) -> (&str, Option<&str>) {
    if image.contains('@') {
        return (image, None);
    }
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (image, Some("latest")),
    }
}

fn pull_failure(progress: &[u8]) -> Option<String> {
    let mut lines =
        progress.rsplit(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    lines.find_map(|line| line.get("error")?.as_str().map(str::to_owned))
}

/// A log without the frames that the engine puts around the output of a container without a terminal.
fn log_text(mut bytes: &[u8]) -> String {
    let mut out = Vec::new();
    while let [0..=2, 0, 0, 0, a, b, c, d, rest @ ..] = bytes {
        let size = usize::try_from(u32::from_be_bytes([*a, *b, *c, *d])).unwrap_or(usize::MAX).min(rest.len());
        let (frame, next) = rest.split_at(size);
        out.extend_from_slice(frame);
        bytes = next;
    }
    out.extend_from_slice(bytes);
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn names_cannot_leave_their_place_in_a_url() {
        assert_eq!(encode("a b/../c?d=e&f"), "a%20b%2F..%2Fc%3Fd%3De%26f");
        assert_eq!(encode_path("r.example:5000/kindest/node:v1?x"), "r.example:5000/kindest/node:v1%3Fx");
    }

    #[test]
    fn an_image_is_pulled_by_one_tag_or_digest() {
        let table = [
            ("kindest/node:v1.36.0", ("kindest/node", Some("v1.36.0"))),
            ("kindest/node", ("kindest/node", Some("latest"))),
            ("localhost:5000/node", ("localhost:5000/node", Some("latest"))),
            ("localhost:5000/node:a", ("localhost:5000/node", Some("a"))),
            ("kindest/node:a@sha256:00", ("kindest/node:a@sha256:00", None)),
        ];
        for (image, expected) in table {
            assert_eq!(split_image(image), expected, "{image}");
        }
    }

    #[test]
    fn a_failed_pull_is_found_in_its_progress() {
        assert_eq!(pull_failure(b"{\"status\":\"Pulling\"}\r\n{\"status\":\"Done\"}\r\n"), None);
        assert_eq!(pull_failure(b"{\"status\":\"x\"}\n{\"error\":\"no space\"}\n").as_deref(), Some("no space"));
        assert_eq!(pull_failure(b"\xff\xfe"), None);
    }

    #[test]
    fn logs_are_read_with_and_without_frames() {
        assert_eq!(log_text(b"\x01\0\0\0\0\0\0\x03a\nb\x02\0\0\0\0\0\0\x01c"), "a\nbc");
        assert_eq!(log_text(b"plain"), "plain");
        assert_eq!(log_text(b"\x01\0\0\0\xff\xff\xff\xffcut"), "cut");
    }
}
