//! JSON documents of containers, and the filters of lists.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::containers::Container;
use super::record::{ContainerRecord, NetworkRecord};
use super::{API_VERSION, Engine, NAME, Refused};

/// What Docker prints for a time that never was.
const NEVER: &str = "0001-01-01T00:00:00Z";

fn time(at: Option<Timestamp>) -> String {
    at.map_or_else(|| NEVER.to_owned(), |at| at.to_string())
}

fn state_word(record: &ContainerRecord) -> &'static str {
    match (record.running, record.started) {
        (true, _) => "running",
        (false, None) => "created",
        (false, Some(_)) => "exited",
    }
}

/// Where a container is in its network. In a network with IPv6 it has the address that maps its IPv4 address: loopback has no
/// other addresses of that family, and connections to a mapped one arrive.
fn networks(record: &ContainerRecord, network: &NetworkRecord) -> Value {
    // As with Docker, only a running container has an address.
    let (address, bits, gateway) = if record.running {
        (record.address.to_string(), 16, format!("127.{}.0.1", record.address.octets()[1]))
    } else {
        (String::new(), 0, String::new())
    };
    let (address6, bits6) = if record.running && network.has_ipv6() {
        (record.address.to_ipv6_mapped().to_string(), 112)
    } else {
        (String::new(), 0)
    };
    json!({ &record.network: {
        "IPAMConfig": null, "Links": null, "Aliases": [&record.id[..12]], "NetworkID": network.id, "EndpointID": record.endpoint_id,
        "Gateway": gateway, "IPAddress": address, "IPPrefixLen": bits, "IPv6Gateway": "", "GlobalIPv6Address": address6,
        "GlobalIPv6PrefixLen": bits6,
        "MacAddress": "", "DriverOpts": null,
    } })
}

/// Port bindings as they were asked for. They are told, and nothing listens on them: a container's own address is on loopback.
fn ports(record: &ContainerRecord) -> Value {
    let mut ports = json!({});
    for (port, bindings) in record.host_config["PortBindings"].as_object().into_iter().flatten() {
        let container_port = port.split('/').next().unwrap_or_default();
        let bindings = bindings.as_array().map(Vec::as_slice).unwrap_or_default();
        let told = bindings.iter().map(|binding| {
            let given = |field: &str, default: &str| {
                let text = binding[field].as_str().filter(|text| !text.is_empty() && *text != "0");
                text.unwrap_or(default).to_owned()
            };
            json!({ "HostIp": given("HostIp", "0.0.0.0"), "HostPort": given("HostPort", container_port) })
        });
        ports[port] = Value::Array(told.collect());
    }
    ports
}

fn text_list(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        other => other.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
    }
}

impl Engine {
    /// The network of a container; an empty one when it is gone.
    fn network_of(&self, record: &ContainerRecord) -> NetworkRecord {
        let found = self.state.lock().networks.get(&record.network).cloned();
        found.unwrap_or_else(|| NetworkRecord { id: String::new(), ..NetworkRecord::new(&record.network, Value::Null) })
    }

    /// Execs of a container that run now; null when none does, as with Docker.
    fn running_execs(&self, container: &Container) -> Value {
        let state = self.state.lock();
        let execs = container.execs.lock();
        let runs = |id: &&String| state.execs.get(*id).is_some_and(|exec| exec.record.lock().running);
        let running: Vec<&String> = execs.iter().filter(runs).collect();
        if running.is_empty() { Value::Null } else { json!(running) }
    }

    /// `GET /containers/{id}/json`.
    pub(super) fn inspect_container(&self, name: &str) -> Result<Value, Refused> {
        let container = self.container(name)?;
        let record = container.record.lock().clone();
        let mut command = text_list(&record.config["Entrypoint"]);
        command.extend(text_list(&record.config["Cmd"]));
        let mut config = record.config.clone();
        config["Hostname"] = json!(record.hostname());
        for (field, default) in [("Labels", json!({})), ("Env", json!([]))] {
            if config[field].is_null() {
                config[field] = default;
            }
        }
        let mut host_config = record.host_config.clone();
        host_config["NetworkMode"] = json!(record.network);
        let endpoints = networks(&record, &self.network_of(&record));
        let execs = self.running_execs(&container);
        let ports = if record.running { ports(&record) } else { json!({}) };
        Ok(json!({
            "Id": record.id, "Created": record.created.to_string(), "Name": format!("/{}", record.name), "Image": record.image_id,
            "Path": command.first().cloned().unwrap_or_default(), "Args": command.get(1..).unwrap_or_default(),
            "State": {
                "Status": state_word(&record), "Running": record.running, "Paused": false, "Restarting": false, "OOMKilled": false, "Dead": false,
                "Pid": i32::from(record.running), "ExitCode": record.exit_code, "Error": "",
                "StartedAt": time(record.started), "FinishedAt": time(record.finished),
            },
            "RestartCount": 0, "Driver": "capwasm", "Platform": "linux", "MountLabel": "", "ProcessLabel": "", "AppArmorProfile": "", "ExecIDs": execs,
            "ResolvConfPath": "", "HostnamePath": "", "HostsPath": "", "LogPath": "",
            "HostConfig": host_config, "Mounts": [], "Config": config,
            "NetworkSettings": {
                "Bridge": "", "SandboxID": "", "Ports": ports, "IPAddress": "", "IPPrefixLen": 0, "Gateway": "", "MacAddress": "",
                "Networks": endpoints,
            },
        }))
    }

    /// `GET /containers/json`.
    pub(super) fn list_containers(&self, all: bool, filters: &Filters) -> Value {
        let containers: Vec<_> = self.state.lock().containers.values().cloned().collect();
        let mut records: Vec<ContainerRecord> =
            containers.iter().map(|container| container.record.lock().clone()).collect();
        records.sort_by_key(|record| std::cmp::Reverse(record.created));
        let wanted = |record: &&ContainerRecord| {
            let all = all || !filters.none_of("status");
            (all || record.running)
                && filters.labels(&record.config["Labels"])
                && filters.contains_part("id", &record.id)
                && filters.name(&record.name)
                && filters.exactly("status", state_word(record))
                && filters.exactly("network", &record.network)
        };
        let list = records.iter().filter(wanted).map(|record| {
            let since = |at: Option<Timestamp>| at.map_or(0, |at| Timestamp::now().as_second() - at.as_second());
            let status = match state_word(record) {
                "running" => format!("Up {} seconds", since(record.started)),
                "exited" => format!("Exited ({}) {} seconds ago", record.exit_code, since(record.finished)),
                _ => "Created".to_owned(),
            };
            json!({
                "Id": record.id, "Names": [format!("/{}", record.name)], "Image": record.image, "ImageID": record.image_id,
                "Command": text_list(&record.config["Cmd"]).join(" "), "Created": record.created.as_second(), "Ports": [],
                "Labels": if record.config["Labels"].is_null() { json!({}) } else { record.config["Labels"].clone() },
                "State": state_word(record), "Status": status, "HostConfig": { "NetworkMode": record.network }, "Mounts": [],
                "NetworkSettings": { "Networks": networks(record, &self.network_of(record)) },
            })
        });
        Value::Array(list.collect())
    }

    /// `GET /version`.
    pub(super) fn version(&self) -> Value {
        json!({
            "Platform": { "Name": NAME },
            "Components": [{ "Name": NAME, "Version": env!("CARGO_PKG_VERSION"), "Details": {} }],
            "Version": concat!(env!("CARGO_PKG_VERSION"), "-simulated"), "ApiVersion": API_VERSION, "MinAPIVersion": "1.12",
            "GitCommit": "", "GoVersion": "", "Os": "linux", "Arch": std::env::consts::ARCH, "KernelVersion": "", "BuildTime": "",
        })
    }

    /// `GET /info`.
    pub(super) fn info(&self) -> Value {
        let state = self.state.lock();
        let running = state.containers.values().filter(|container| container.record.lock().running).count();
        json!({
            "ID": self.id, "Name": NAME, "OperatingSystem": NAME, "ServerVersion": concat!(env!("CARGO_PKG_VERSION"), "-simulated"),
            "Containers": state.containers.len(), "ContainersRunning": running, "ContainersPaused": 0,
            "ContainersStopped": state.containers.len() - running, "Images": state.images.len(), "Driver": "capwasm",
            "OSType": "linux", "Architecture": std::env::consts::ARCH, "NCPU": std::thread::available_parallelism().map_or(1, usize::from),
            "Labels": [format!("capwasm.dev/node-grace={:?}", self.workloads.chores().grace())], "MemTotal": 0, "CgroupDriver": "none", "CgroupVersion": "2", "SecurityOptions": [], "Warnings": null,
        })
    }
}

/// The `filters` parameter: by name, the values of which one must fit.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Filters(BTreeMap<String, Vec<String>>);

impl Filters {
    /// Parses `{"label":["a=b"]}` or the older `{"label":{"a=b":true}}`.
    pub fn parse(text: &str) -> Result<Filters, Refused> {
        if text.is_empty() {
            return Ok(Filters::default());
        }
        let invalid = || Refused::new(400, "invalid filter");
        let parsed: BTreeMap<String, Value> = serde_json::from_str(text).map_err(|_| invalid())?;
        let values = |value: &Value| match value {
            Value::Array(_) => Ok(text_list(value)),
            Value::Object(map) => Ok(map.keys().cloned().collect()),
            _ => Err(invalid()),
        };
        parsed.iter().map(|(name, value)| Ok((name.clone(), values(value)?))).collect::<Result<_, _>>().map(Filters)
    }

    fn of(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    fn none_of(&self, name: &str) -> bool {
        self.of(name).is_empty()
    }

    fn exactly(&self, name: &str, value: &str) -> bool {
        self.none_of(name) || self.of(name).iter().any(|wanted| wanted == value)
    }

    /// Whether a value contains what is asked for, as `docker ps --filter name=` means it.
    pub fn contains_part(&self, name: &str, value: &str) -> bool {
        self.none_of(name) || self.of(name).iter().any(|wanted| value.contains(wanted.as_str()))
    }

    /// Whether a container's name fits: a part of it, with `^` and `$` for its ends; the leading slash is optional.
    pub fn name(&self, name: &str) -> bool {
        let fits = |wanted: &String| {
            let (from_start, rest) = wanted.strip_prefix('^').map_or((false, wanted.as_str()), |rest| (true, rest));
            let (to_end, rest) = rest.strip_suffix('$').map_or((false, rest), |rest| (true, rest));
            let rest = rest.strip_prefix('/').unwrap_or(rest);
            match (from_start, to_end) {
                (true, true) => name == rest,
                (true, false) => name.starts_with(rest),
                (false, true) => name.ends_with(rest),
                (false, false) => name.contains(rest),
            }
        };
        self.none_of("name") || self.of("name").iter().any(fits)
    }

    /// Whether all label filters (`key` or `key=value`) hold.
    pub fn labels(&self, labels: &Value) -> bool {
        self.of("label").iter().all(|wanted| match wanted.split_once('=') {
            Some((key, value)) => labels[key].as_str() == Some(value),
            None => labels[wanted.as_str()].is_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn filters_select_by_label_and_name() {
        let filters = Filters::parse(r#"{"label":["a=b","c"],"name":["^/one$"]}"#).unwrap();
        assert!(filters.labels(&json!({ "a": "b", "c": "" })));
        assert!(!filters.labels(&json!({ "a": "b" })));
        assert!(filters.name("one") && !filters.name("one-more"));
        assert_eq!(Filters::parse(r#"{"label":{"a=b":true}}"#).unwrap().of("label"), ["a=b"]);
        assert_eq!(Filters::parse("nonsense").unwrap_err().status, 400);
    }
}
