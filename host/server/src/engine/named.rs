//! Which Docker engine is meant: what the `docker` command would talk to, after an argument of our own.
//!
//! Argument, then `DOCKER_HOST`, then the context that `DOCKER_CONTEXT` or `currentContext` of Docker's configuration names, then
//! `/var/run/docker.sock` (docs.docker.com, "Docker contexts").

use std::path::{Path, PathBuf};

use capwasm_sim_service::docker::Address;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Default socket of Docker.
pub const DOCKER_SOCKET: &str = "/var/run/docker.sock";
/// Name of Docker's default context.
const NO_CONTEXT: &str = "default";
/// Default TCP port of Docker.
const PORT: u16 = 2375;

/// Environment variables about Docker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Value of `DOCKER_HOST`.
    pub host: Option<String>,
    /// Value of `DOCKER_CONTEXT`.
    pub context: Option<String>,
    /// Whether `DOCKER_TLS_VERIFY` or `DOCKER_TLS` asks for TLS to `DOCKER_HOST`.
    pub tls: bool,
    /// `DOCKER_CONFIG`, or `~/.docker`.
    pub folder: Option<PathBuf>,
}

impl Environment {
    /// Reads the environment of this process.
    pub fn of_this_process() -> Self {
        let said = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let folder = said("DOCKER_CONFIG").map(PathBuf::from);
        Environment {
            host: said("DOCKER_HOST"),
            context: said("DOCKER_CONTEXT"),
            tls: said("DOCKER_TLS_VERIFY").or_else(|| said("DOCKER_TLS")).is_some(),
            folder: folder.or_else(|| said("HOME").map(|home| Path::new(&home).join(".docker"))),
        }
    }
}

/// Why the Docker engine cannot be determined or used.
#[derive(Debug, thiserror::Error)]
pub enum NotNamed {
    /// A file of Docker's configuration is unreadable.
    #[error("unable to read {path}")]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the file system.
        #[source]
        source: std::io::Error,
    },
    /// A file of Docker's configuration is invalid, or has no endpoint.
    #[error("{path} does not say where an engine is")]
    Malformed {
        /// Path of the file.
        path: PathBuf,
    },
    /// The engine requires TLS.
    #[error("{host} speaks TLS, which this host does not with a Docker engine: name one on a unix socket or plain TCP")]
    Tls {
        /// Address of the engine.
        host: String,
    },
    /// Unsupported scheme.
    #[error("{host:?} is no engine that this host can talk to: it takes unix:///path and tcp://host:port")]
    Unsupported {
        /// Address of the engine.
        host: String,
    },
}

/// The selected engine; `socket` is the argument.
///
/// # Errors
/// See [`NotNamed`]: what is named and cannot be talked to is never passed over for the next.
pub fn engine(socket: Option<&Path>, environment: &Environment) -> Result<Address, NotNamed> {
    if let Some(socket) = socket {
        return Ok(Address::Unix(socket.to_owned()));
    }
    if let Some(host) = &environment.host {
        return address(host, environment.tls);
    }
    let usual = || Ok(Address::Unix(DOCKER_SOCKET.into()));
    let Some(folder) = &environment.folder else { return usual() };
    let context = match &environment.context {
        Some(context) => Some(context.clone()),
        None => current_context(folder)?,
    };
    match context.filter(|context| context != NO_CONTEXT) {
        Some(context) => of_context(folder, &context),
        None => usual(),
    }
}

fn current_context(folder: &Path) -> Result<Option<String>, NotNamed> {
    let path = folder.join("config.json");
    match read(&path) {
        Ok(config) => Ok(config["currentContext"].as_str().filter(|name| !name.is_empty()).map(str::to_owned)),
        Err(NotNamed::Read { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Endpoint of a context, whose files are in a folder named by the digest of its name.
fn of_context(folder: &Path, name: &str) -> Result<Address, NotNamed> {
    let id = hex::encode(Sha256::digest(name));
    let path = folder.join("contexts/meta").join(&id).join("meta.json");
    let context = read(&path)?;
    let host = context.pointer("/Endpoints/docker/Host").and_then(Value::as_str);
    let tls = folder.join("contexts/tls").join(&id).join("docker").is_dir();
    address(host.ok_or(NotNamed::Malformed { path })?, tls)
}

fn read(path: &Path) -> Result<Value, NotNamed> {
    let text = std::fs::read(path).map_err(|source| NotNamed::Read { path: path.to_owned(), source })?;
    serde_json::from_slice(&text).map_err(|_| NotNamed::Malformed { path: path.to_owned() })
}

fn address(host: &str, tls: bool) -> Result<Address, NotNamed> {
    let unsupported = || NotNamed::Unsupported { host: host.to_owned() };
    if let Some(path) = host.strip_prefix("unix://") {
        let path = if path.is_empty() { DOCKER_SOCKET } else { path };
        return if path.starts_with('/') { Ok(Address::Unix(path.into())) } else { Err(unsupported()) };
    }
    let rest = host.strip_prefix("tcp://").or_else(|| host.strip_prefix("http://")).ok_or_else(unsupported)?;
    if tls {
        return Err(NotNamed::Tls { host: host.to_owned() });
    }
    let authority: http::uri::Authority = rest.trim_end_matches('/').parse().map_err(|_| unsupported())?;
    if authority.host().is_empty() || authority.as_str().contains('@') {
        return Err(unsupported());
    }
    Ok(Address::Tcp(format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(PORT))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn context(folder: &Path, name: &str, host: &str, tls: bool) {
        let id = hex::encode(Sha256::digest(name));
        let meta = folder.join("contexts/meta").join(&id);
        std::fs::create_dir_all(&meta).unwrap();
        let text = serde_json::json!({"Name": name, "Metadata": {}, "Endpoints": {"docker": {"Host": host}}});
        std::fs::write(meta.join("meta.json"), text.to_string()).unwrap();
        if tls {
            std::fs::create_dir_all(folder.join("contexts/tls").join(&id).join("docker")).unwrap();
        }
    }

    #[test]
    fn the_engine_is_the_one_that_docker_would_take() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        context(path, "a", "unix:///a.sock", false);
        context(path, "b", "tcp://b.example:1234", false);
        let plain = Environment { folder: Some(path.join("empty")), ..Environment::default() };
        let named = |config: &str| {
            std::fs::write(path.join("config.json"), config).unwrap();
            Environment { folder: Some(path.to_owned()), ..Environment::default() }
        };
        let with_a = named(r#"{"auths": {}, "currentContext": "a"}"#);
        let unix = |path: &str| Address::Unix(path.into());
        let in_environment = Environment { context: Some("b".to_owned()), ..with_a.clone() };
        let by_host = Environment { host: Some("unix:///h.sock".to_owned()), ..in_environment.clone() };
        let asked_for_none = Environment { context: Some("default".to_owned()), ..with_a.clone() };
        let rows: [(&str, Option<&str>, &Environment, Address); 8] = [
            ("nothing is said", None, &plain, unix(DOCKER_SOCKET)),
            ("nowhere to look", None, &Environment::default(), unix(DOCKER_SOCKET)),
            ("the configuration names a context", None, &with_a, unix("/a.sock")),
            ("DOCKER_CONTEXT names another", None, &in_environment, Address::Tcp("b.example:1234".to_owned())),
            ("DOCKER_CONTEXT asks for none", None, &asked_for_none, unix(DOCKER_SOCKET)),
            ("DOCKER_HOST comes before contexts", None, &by_host, unix("/h.sock")),
            ("the argument comes before everything", Some("/f.sock"), &by_host, unix("/f.sock")),
            ("the argument alone", Some("/f.sock"), &plain, unix("/f.sock")),
        ];
        for (name, socket, environment, expected) in rows {
            assert_eq!(engine(socket.map(Path::new), environment).unwrap(), expected, "{name}");
        }
        let without = named(r#"{"auths": {}}"#);
        assert_eq!(engine(None, &without).unwrap(), unix(DOCKER_SOCKET), "a configuration without a context");
    }

    #[test]
    fn what_is_named_and_cannot_be_talked_to_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        context(path, "far", "ssh://me@far.example", false);
        context(path, "safe", "tcp://safe.example:2376", true);
        let of = |context: &str| Environment {
            context: Some(context.to_owned()),
            folder: Some(path.to_owned()),
            ..Environment::default()
        };
        let host = |host: &str, tls: bool| Environment { host: Some(host.to_owned()), tls, ..Environment::default() };
        for (environment, said) in [
            (of("far"), "\"ssh://me@far.example\" is no engine"),
            (of("safe"), "tcp://safe.example:2376 speaks TLS"),
            (of("gone"), "unable to read"),
            (host("tcp://a:1", true), "speaks TLS"),
            (host("npipe:////./pipe/docker_engine", false), "is no engine"),
            (host("tcp://", false), "is no engine"),
            (host("unix://relative", false), "is no engine"),
        ] {
            let error = engine(None, &environment).unwrap_err().to_string();
            assert!(error.contains(said), "{said:?} is not in {error:?}");
        }
        std::fs::write(path.join("config.json"), "{").unwrap();
        let error = engine(None, &Environment { folder: Some(path.to_owned()), ..Environment::default() }).unwrap_err();
        assert!(error.to_string().contains("does not say where"), "{error}");
        assert_eq!(engine(None, &host("tcp://a", false)).unwrap(), Address::Tcp("a:2375".to_owned()));
    }
}
