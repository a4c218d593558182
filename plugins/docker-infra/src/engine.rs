//! Client of the Docker Engine API (v1.41), one typed method per request that this provider makes.
//!
//! Every request is idempotent or finds out what it would repeat: a container's name makes a second creation a
//! conflict, starting a running container and removing an absent one are successes.

mod deadline;
mod error;
mod fits;
mod names;
mod streams;

use capwasm_object::bounded;
use capwasm_sdk::{Host, HttpRequest, HttpResponse, Refusal};
use serde::Deserialize;
use serde_json::{Value, json};

pub use error::EngineError;
pub use streams::end_of;

use crate::tar::Writer;
use fits::fits;
use names::{encode, encode_path, split_image};
use streams::{log_text, pull_failure};

/// What one answer may take in bytes as a tree. A call has four times as much memory.
const ROOM: usize = 16 << 20;
/// Letters of the engine's own words that are passed on.
const LONGEST_MESSAGE: usize = 1_000;

const BASE: &str = "http://docker.endpoint/v1.41";

/// What is known of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Container {
    #[serde(deserialize_with = "fits")]
    pub id: String,
    #[serde(default)]
    pub state: State,
    /// RFC 3339.
    #[serde(default, deserialize_with = "fits")]
    pub created: String,
    /// Execs that the engine still knows, running or not; none where it does not say.
    #[serde(default, rename = "ExecIDs", deserialize_with = "fits")]
    pub exec_ids: Option<Vec<String>>,
    #[serde(default)]
    config: Config,
    #[serde(default)]
    network_settings: NetworkSettings,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct State {
    /// `created`, `running`, `paused`, `restarting`, `removing`, `exited` or `dead`.
    #[serde(deserialize_with = "fits")]
    pub status: String,
    pub exit_code: i64,
    /// RFC 3339; the year 1 when it never started.
    #[serde(deserialize_with = "fits")]
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
    #[serde(rename = "IPAddress", deserialize_with = "fits")]
    ip_address: Option<String>,
    #[serde(rename = "GlobalIPv6Address", deserialize_with = "fits")]
    global_ipv6_address: Option<String>,
}

impl Container {
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

/// What is known of a network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Network {
    /// Whether containers get an IPv6 address in it.
    #[serde(rename = "EnableIPv6")]
    pub enable_ipv6: bool,
    labels: Option<std::collections::BTreeMap<String, String>>,
    containers: Option<std::collections::BTreeMap<String, Value>>,
}

impl Network {
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.as_ref()?.get(name).map(String::as_str)
    }

    /// Whether a running container is in it.
    pub fn is_used(&self) -> bool {
        self.containers.as_ref().is_some_and(|containers| !containers.is_empty())
    }
}

/// What became of an image's archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Saved {
    Archive(Vec<u8>),
    /// It cannot be had, for this reason.
    Not(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Identified {
    #[serde(deserialize_with = "fits")]
    id: String,
}

/// What is known of an exec.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Exec {
    pub running: bool,
}

/// How the creation of a container or network ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creation {
    Created,
    /// The name is taken: look again.
    NameTaken,
}

/// The engine behind the named endpoint `docker`. How long it may take for an answer follows from the kind of request.
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
        // An empty value would match every container that has the label.
        if value.is_empty() {
            return Ok(Vec::new());
        }
        let act = format!("list containers of {value}");
        let filters = json!({"label": [format!("{label}={value}")]}).to_string();
        let path = format!("/containers/json?all=1&filters={}", encode(&filters));
        let response = self.send(&act, HttpRequest::new("GET", url(&path)))?;
        // Nothing but a list says that there is none.
        if response.status != 200 {
            return Err(EngineError::rejected(act, &response));
        }
        let found: Vec<Identified> = parse(&act, &response.body)?;
        Ok(found.into_iter().map(|container| container.id).collect())
    }

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

    /// Removes a container and its anonymous volumes, running or not. The engine may still be at it afterwards.
    pub fn remove(&self, id: &str) -> Result<(), EngineError> {
        let act = format!("remove container {id}");
        let path = format!("/containers/{}?force=1&v=1", encode(id));
        let response = self.send(&act, HttpRequest::new("DELETE", url(&path)))?;
        match response.status {
            // 409: it is being removed already.
            204 | 404 | 409 => Ok(()),
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
        let response = self.send(&act, HttpRequest::new("POST", url(&path)))?;
        if response.status != 200 {
            return Err(EngineError::rejected(act, &response));
        }
        match pull_failure(&response.body) {
            Some(message) => {
                let message = message.chars().take(LONGEST_MESSAGE).collect();
                Err(EngineError::Rejected { act, status: 500, message })
            }
            None => Ok(()),
        }
    }

    /// An image as the archive that `docker save` makes; the engine has it.
    pub fn save_image(&self, image: &str) -> Result<Saved, EngineError> {
        let act = format!("save image {image}");
        let path = format!("/images/{}/get", encode_path(image));
        let response = match self.send(&act, HttpRequest::new("GET", url(&path))) {
            // An answer comes whole, and may be no larger than the provider's limit.
            Err(EngineError::Unreachable { refused, .. }) if refused.refusal == Refusal::Limit => {
                return Ok(Saved::Not(refused.message));
            }
            // Nothing depends on it: the machine pulls the image itself.
            Err(late @ EngineError::Late { .. }) => return Ok(Saved::Not(late.to_string())),
            other => other?,
        };
        match response.status {
            200 => Ok(Saved::Archive(response.body)),
            404 => Ok(Saved::Not("the engine does not give it away".to_owned())),
            _ => Err(EngineError::rejected(act, &response)),
        }
    }

    pub fn network(&self, name: &str) -> Result<Option<Network>, EngineError> {
        self.get(&format!("/networks/{}", encode(name)))
    }

    pub fn create_network(&self, body: &Value) -> Result<Creation, EngineError> {
        let act = "create a network".to_owned();
        let response = self.send(&act, HttpRequest::new("POST", url("/networks/create")).json(body))?;
        match response.status {
            201 => Ok(Creation::Created),
            409 => Ok(Creation::NameTaken),
            _ => Err(EngineError::rejected(act, &response)),
        }
    }

    /// Removes a network, unless somebody uses it.
    pub fn remove_network(&self, name: &str) -> Result<(), EngineError> {
        let act = format!("remove network {name}");
        let response = self.send(&act, HttpRequest::new("DELETE", url(&format!("/networks/{}", encode(name)))))?;
        match response.status {
            // 403 and 409: it has containers.
            204 | 404 | 403 | 409 => Ok(()),
            _ => Err(EngineError::rejected(act, &response)),
        }
    }

    /// Unpacks a tar archive in a directory of a container, which need not run.
    pub fn put_archive(&self, id: &str, directory: &str, archive: Writer) -> Result<(), EngineError> {
        let act = format!("write to {directory} of container {id}");
        let archive = match archive.finish() {
            Ok(archive) => archive,
            Err(source) => return Err(EngineError::Unwritable { act, source }),
        };
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
        let deadline = deadline::of(&request.method, request.url.strip_prefix(BASE).unwrap_or_default());
        self.host.http(&request.deadline(deadline)).map_err(|refused| EngineError::unanswered(act, deadline, refused))
    }
}

fn url(path: &str) -> String {
    format!("{BASE}{path}")
}

fn parse<T: for<'de> Deserialize<'de>>(act: &str, body: &[u8]) -> Result<T, EngineError> {
    // By way of a value, as specs are read: a second reader for every type would make the component larger.
    bounded::read_within(body, &mut { ROOM })
        .and_then(|value| Ok(T::deserialize(&value)?))
        .map_err(|source| EngineError::Garbled { act: act.to_owned(), source })
}
