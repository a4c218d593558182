//! A small engine in memory: containers, files, execs, images, networks; it can lose answers and tell lies.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use capwasm_sdk::{HttpRequest, HttpResponse, Refusal, Refused};
use serde_json::{Value, json};

use crate::tar;

/// As the host limits it.
const LARGEST_ANSWER: usize = 8 << 20;

/// What happens instead of one request's true answer.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// The request is carried out, then everything fails until [`FakeEngine::recover`]: the caller crashed.
    Crash,
    /// Not carried out; this is answered.
    Answer(u16, &'static str),
    /// Not carried out; nobody answers.
    Unreachable,
    /// Not carried out; the connection is taken and the deadline passes.
    Silent,
    /// Nobody answers; carried out at the next [`FakeEngine::arrive`].
    Late,
}

pub struct FakeContainer {
    pub id: String,
    pub body: Value,
    pub state: &'static str,
    pub ip: String,
    pub files: BTreeMap<String, Vec<u8>>,
    pub directories: BTreeSet<String>,
    pub signals: Vec<String>,
}

struct FakeExec {
    container: String,
    script: String,
    running: bool,
    slow: bool,
}

#[derive(Default)]
pub struct FakeEngine {
    pub containers: BTreeMap<String, FakeContainer>,
    pub images: BTreeSet<String>,
    /// What they were made from.
    pub networks: BTreeMap<String, Value>,
    pub volumes: BTreeSet<String>,
    /// Whether its machine has IPv6.
    pub has_ipv6: bool,
    /// Archives of images; of others nothing can be had.
    pub saved: BTreeMap<String, Result<Vec<u8>, Refused>>,
    /// How much a step prints besides its command.
    pub output: usize,
    /// Bytes of the largest answer so far.
    pub largest_answer: usize,
    /// Takes every connection and never answers.
    pub is_silent: bool,
    /// Deadlines that passed.
    pub waited: Vec<Duration>,
    late: Vec<HttpRequest>,
    execs: BTreeMap<String, FakeExec>,
    serial: u32,
    /// `METHOD path` of every request.
    pub requests: Vec<String>,
    /// Counted from the next request, which is 1.
    pub trouble: Option<(usize, Trouble)>,
    pub crashed: bool,
    /// Commands that were run, in order.
    pub ran: Vec<String>,
    /// A command that fails.
    pub fails: Option<&'static str>,
    /// A command that never ends.
    pub hangs: Option<&'static str>,
    /// Names of containers that became nodes.
    pub nodes: Vec<String>,
    /// Shells of this many execs come to their first line only at the next tick.
    pub slow_shells: u32,
    /// How often a node is asked before it has booted.
    pub boots_after: u32,
}

fn answer(status: u16, body: Value) -> Result<HttpResponse, Refused> {
    Ok(HttpResponse { status, headers: Vec::new(), body: body.to_string().into_bytes() })
}

/// What stands between the braces of a step's script.
fn command(lines: &[&str]) -> String {
    let end = lines.iter().position(|line| line.starts_with("} >/capwasm/log/")).unwrap();
    lines[2..end].join("\n")
}

fn decode(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8().unwrap().into_owned()
}

impl FakeEngine {
    pub fn handle(&mut self, request: &HttpRequest) -> Result<HttpResponse, Refused> {
        let lost = || Err(Refused::new(Refusal::Unavailable, "Unreachable", "nobody answers"));
        if self.crashed {
            return lost();
        }
        if self.is_silent {
            return self.wait(request);
        }
        let path = request.url.strip_prefix("http://docker.endpoint/v1.41").unwrap();
        self.requests.push(format!("{} {path}", request.method));
        let due = match &mut self.trouble {
            Some((left, _)) => {
                *left -= 1;
                *left == 0
            }
            None => false,
        };
        if !due {
            let answer = self.serve(request, path)?;
            if answer.body.len() > LARGEST_ANSWER {
                return Err(Refused::new(Refusal::Limit, "TooLarge", "the response is larger than it may be"));
            }
            self.largest_answer = self.largest_answer.max(answer.body.len());
            return Ok(answer);
        }
        match self.trouble.take().unwrap().1 {
            Trouble::Answer(status, body) => {
                Ok(HttpResponse { status, headers: Vec::new(), body: body.as_bytes().to_vec() })
            }
            Trouble::Unreachable => lost(),
            Trouble::Silent => self.wait(request),
            Trouble::Late => {
                self.late.push(request.clone());
                lost()
            }
            Trouble::Crash => {
                let _lost = self.serve(request, path);
                self.crashed = true;
                lost()
            }
        }
    }

    fn wait(&mut self, request: &HttpRequest) -> Result<HttpResponse, Refused> {
        let deadline = request.deadline.expect("every request has a deadline");
        self.waited.push(deadline);
        Err(Refused::new(Refusal::Limit, "RequestTimeout", format!("it did not answer within {deadline:?}")))
    }

    /// What was late is carried out.
    pub fn arrive(&mut self) {
        for request in std::mem::take(&mut self.late) {
            let path = request.url.strip_prefix("http://docker.endpoint/v1.41").unwrap().to_owned();
            let _nobody_listens = self.serve(&request, &path);
        }
    }

    /// What an engine keeps for somebody.
    pub fn resources(&self) -> Vec<String> {
        let named = |what: &str, names: Vec<&String>| -> Vec<String> {
            names.into_iter().map(|name| format!("{what} {name}")).collect()
        };
        [
            named("container", self.containers.keys().collect()),
            named("network", self.networks.keys().collect()),
            named("volume", self.volumes.iter().collect()),
        ]
        .concat()
    }

    /// Ends the time in which the caller counts as dead, and says whether it did.
    pub fn recover(&mut self) -> bool {
        std::mem::take(&mut self.crashed)
    }

    /// Time passes: every running step ends.
    pub fn tick(&mut self) {
        let ids: Vec<String> = self.execs.iter().filter(|(_, exec)| exec.running).map(|(id, _)| id.clone()).collect();
        for id in ids {
            let exec = self.execs.get_mut(&id).unwrap();
            if std::mem::take(&mut exec.slow) {
                exec.running = false;
                let _taken = self.start_exec(&id);
                continue;
            }
            let (container, script) = (exec.container.clone(), exec.script.clone());
            let lines: Vec<&str> = script.lines().collect();
            let number = lines[0].strip_prefix("mkdir /capwasm/steps/").unwrap().split('.').next().unwrap().to_owned();
            let command = command(&lines);
            if self.hangs.is_some_and(|hangs| command.contains(hangs)) {
                continue;
            }
            exec.running = false;
            let code = self.run(&container, &command);
            let files = &mut self.containers.get_mut(&container).unwrap().files;
            files.insert(
                format!("capwasm/log/{number}"),
                format!("{}output of {command}\n", "x".repeat(self.output)).into_bytes(),
            );
            files.insert(format!("capwasm/steps/{number}.exit"), format!("{code}\n").into_bytes());
        }
    }

    /// A person opens a shell in a container, and leaves it open.
    pub fn open_shell(&mut self, container: &str) {
        let script = "mkdir /capwasm/steps/99.started || exit 0\n{\nbash\n} >/capwasm/log/99 2>&1\n".to_owned();
        self.hangs = Some("bash");
        self.execs.insert(
            "shell".to_owned(),
            FakeExec { container: container.to_owned(), script, running: true, slow: false },
        );
    }

    /// Processes end without a trace, as when memory runs out.
    pub fn kill_execs(&mut self) {
        self.execs.values_mut().for_each(|exec| exec.running = false);
    }

    fn run(&mut self, container: &str, command: &str) -> u8 {
        if self.fails.is_some_and(|fails| command.contains(fails)) {
            return 1;
        }
        let files = &mut self.containers.get_mut(container).unwrap().files;
        if command == "cp -a /capwasm/files/. /" {
            let staged: Vec<(String, Vec<u8>)> = files
                .iter()
                .filter_map(|(path, content)| Some((path.strip_prefix("capwasm/files/")?.to_owned(), content.clone())))
                .collect();
            files.extend(staged);
        } else if command.starts_with("kubeadm") {
            files.insert("run/cluster-api/bootstrap-success.complete".to_owned(), Vec::new());
            self.nodes.push(container.to_owned());
        } else if let Some(path) = command.strip_prefix("test -f /") {
            return u8::from(!files.contains_key(path));
        }
        0
    }

    fn named(&self, name: &str) -> Option<String> {
        let found = self.containers.iter().find(|(known, container)| *known == name || container.id == name);
        found.map(|(name, _)| name.clone())
    }

    fn serve(&mut self, request: &HttpRequest, path: &str) -> Result<HttpResponse, Refused> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let query: BTreeMap<&str, String> = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name, decode(value)))
            .collect();
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        match (request.method.as_str(), parts.as_slice()) {
            ("GET", ["images", name @ .., "json"]) => match self.images.contains(&name.join("/")) {
                true => answer(200, json!({"Id": "sha256:0"})),
                false => answer(404, json!({"message": "No such image"})),
            },
            ("POST", ["images", "create"]) => {
                self.images.insert(format!("{}:{}", query["fromImage"], query["tag"]));
                answer(200, json!({"status": "Downloaded"}))
            }
            ("GET", ["images", name @ .., "get"]) => match self.saved.get(&name.join("/")) {
                Some(Ok(archive)) => Ok(HttpResponse { status: 200, headers: Vec::new(), body: archive.clone() }),
                Some(Err(refused)) => Err(refused.clone()),
                None => answer(404, json!({"message": "page not found"})),
            },
            ("GET", ["networks", name]) => match self.networks.get(*name) {
                Some(made) => {
                    let within: BTreeMap<&str, Value> = self.running_in(name).map(|id| (id, json!({}))).collect();
                    let ipv6 = made["EnableIPv6"] == true;
                    answer(
                        200,
                        json!({"Id": "n", "Name": name, "Labels": made["Labels"], "EnableIPv6": ipv6, "Containers": within}),
                    )
                }
                None => answer(404, json!({"message": "no such network"})),
            },
            ("DELETE", ["networks", name]) => {
                match (self.networks.contains_key(*name), self.running_in(name).count()) {
                    (false, _) => answer(404, json!({"message": "no such network"})),
                    (true, 0) => {
                        self.networks.remove(*name);
                        answer(204, json!({}))
                    }
                    (true, _) => answer(403, json!({"message": "has active endpoints"})),
                }
            }
            ("POST", ["networks", "create"]) => {
                let body: Value = serde_json::from_slice(&request.body).unwrap();
                let name = body["Name"].as_str().unwrap().to_owned();
                if self.networks.contains_key(&name) {
                    return answer(409, json!({"message": "exists"}));
                }
                if body["EnableIPv6"] == true && !self.has_ipv6 {
                    return answer(400, json!({"message": "IPv6 is not there"}));
                }
                self.networks.insert(name, body);
                answer(201, json!({"Id": "n"}))
            }
            ("POST", ["containers", "create"]) => self.create(&query["name"], &request.body),
            ("GET", ["containers", "json"]) => {
                let filters: Value = serde_json::from_str(&query["filters"]).unwrap();
                let (label, value) = filters["label"][0].as_str().unwrap().split_once('=').unwrap();
                let found = self.containers.values().filter(|one| one.body["Labels"][label] == value);
                answer(200, found.map(|one| json!({"Id": one.id})).collect())
            }
            ("POST", ["exec", id, "start"]) => {
                let id = (*id).to_owned();
                self.start_exec(&id)
            }
            ("GET", ["exec", id, "json"]) => match self.execs.get(*id) {
                Some(exec) => answer(200, json!({"ID": id, "Running": exec.running, "ExitCode": 0})),
                None => answer(404, json!({"message": "No such exec instance"})),
            },
            (method, ["containers", name, rest @ ..]) => match self.named(&decode(name)) {
                Some(name) => self.one(method, &name, rest, &query, request),
                None => answer(404, json!({"message": "No such container"})),
            },
            other => panic!("the engine does not know {other:?}"),
        }
    }

    /// Ids of the running containers of a network.
    fn running_in<'a>(&'a self, network: &'a str) -> impl Iterator<Item = &'a str> {
        let within =
            move |one: &&FakeContainer| one.state == "running" && one.body["HostConfig"]["NetworkMode"] == network;
        self.containers.values().filter(within).map(|one| one.id.as_str())
    }

    fn create(&mut self, name: &str, body: &[u8]) -> Result<HttpResponse, Refused> {
        let body: Value = serde_json::from_slice(body).unwrap();
        if self.containers.contains_key(name) {
            return answer(409, json!({"message": "the name is in use"}));
        }
        if !self.images.contains(body["Image"].as_str().unwrap()) {
            return answer(404, json!({"message": "No such image"}));
        }
        self.serial += 1;
        let container = FakeContainer {
            id: format!("c{}", self.serial),
            body,
            state: "created",
            ip: format!("172.18.0.{}", self.serial + 1),
            files: BTreeMap::new(),
            directories: BTreeSet::new(),
            signals: Vec::new(),
        };
        let id = container.id.clone();
        let volumes = container.body["Volumes"].as_object();
        self.volumes.extend(volumes.into_iter().flatten().map(|(path, _)| format!("{id}{path}")));
        self.containers.insert(name.to_owned(), container);
        answer(201, json!({"Id": id, "Warnings": []}))
    }

    fn start_exec(&mut self, id: &str) -> Result<HttpResponse, Refused> {
        let exec = self.execs.get_mut(id).unwrap();
        if let Some(left) = self.slow_shells.checked_sub(1) {
            self.slow_shells = left;
            (exec.running, exec.slow) = (true, true);
            return answer(200, json!({}));
        }
        let container = self.containers.get_mut(&exec.container).unwrap();
        let first = exec.script.lines().next().unwrap().to_owned();
        if let Some(marker) = first.strip_prefix("mkdir /").and_then(|line| line.strip_suffix(" || exit 0")) {
            if container.directories.insert(marker.to_owned()) {
                let lines: Vec<&str> = exec.script.lines().collect();
                assert_eq!((lines[1], lines.len() >= 5), ("{", true), "{}", exec.script);
                self.ran.push(command(&lines));
                exec.running = true;
            }
        } else {
            assert!(first.starts_with("systemctl is-active"), "{first}");
            match self.boots_after.checked_sub(1) {
                Some(left) => self.boots_after = left,
                None => {
                    container.files.insert("capwasm/steps/boot.exit".to_owned(), b"0\n".to_vec());
                }
            }
        }
        answer(200, json!({}))
    }

    fn one(
        &mut self,
        method: &str,
        name: &str,
        rest: &[&str],
        query: &BTreeMap<&str, String>,
        request: &HttpRequest,
    ) -> Result<HttpResponse, Refused> {
        if method == "DELETE" {
            assert_eq!((query["force"].as_str(), query["v"].as_str()), ("1", "1"));
            let id = self.containers.remove(name).unwrap().id;
            self.volumes.retain(|volume| !volume.starts_with(&format!("{id}/")));
            return answer(204, json!({}));
        }
        let known =
            self.execs.iter().filter(|(_, exec)| exec.running && exec.container == name).map(|(id, _)| id.clone());
        let exec_ids: Vec<String> = known.collect();
        let container = self.containers.get_mut(name).unwrap();
        let network = container.body["HostConfig"]["NetworkMode"].as_str().unwrap();
        let made = self.networks.get(network);
        match (method, rest) {
            ("GET", ["json"]) => {
                let ip = if container.state == "running" { container.ip.as_str() } else { "" };
                let has_ipv6 = !ip.is_empty() && made.is_some_and(|made| made["EnableIPv6"] == true);
                let ipv6 = if has_ipv6 { ip.replace("172.18.0.", "fd00::") } else { String::new() };
                answer(
                    200,
                    json!({
                        "Id": container.id,
                        "Created": "2023-11-14T00:00:00.1Z",
                        "ExecIDs": exec_ids,
                        "State": {"Status": container.state, "ExitCode": 137, "StartedAt": "2023-11-14T00:00:00.5Z"},
                        "Config": {"Labels": container.body["Labels"]},
                        "NetworkSettings": {"Networks": {network: {"IPAddress": ip, "GlobalIPv6Address": ipv6}}},
                    }),
                )
            }
            ("POST", ["start"]) => {
                if made.is_none() {
                    return answer(404, json!({"message": format!("network {network} not found")}));
                }
                let status = if container.state == "running" { 304 } else { 204 };
                container.state = "running";
                answer(status, json!({}))
            }
            ("POST", ["kill"]) => {
                container.signals.push(query["signal"].clone());
                answer(204, json!({}))
            }
            ("GET", ["logs"]) => Ok(HttpResponse { status: 200, headers: Vec::new(), body: b"last words".to_vec() }),
            ("PUT", ["archive"]) => {
                let at = query["path"].trim_start_matches('/').to_owned();
                for (path, entry) in tar::read(&request.body).unwrap() {
                    let path = if at.is_empty() { path } else { format!("{at}/{path}") };
                    match entry.kind {
                        tar::EntryKind::File => drop(container.files.insert(path, entry.content)),
                        tar::EntryKind::Directory => drop(container.directories.insert(path)),
                    }
                }
                answer(200, json!({}))
            }
            ("GET", ["archive"]) => {
                let at = query["path"].trim_start_matches('/').to_owned();
                let parent = at.rsplit_once('/').map_or(String::new(), |(parent, _)| format!("{parent}/"));
                let within = |path: &String| *path == at || path.starts_with(&format!("{at}/"));
                let mut writer = tar::Writer::default();
                let attributes = tar::Attributes::root(0o644);
                let mut any = false;
                for path in container.directories.iter().filter(|path| within(path)) {
                    writer.directory(path.strip_prefix(&parent).unwrap(), attributes);
                    any = true;
                }
                for (path, content) in container.files.iter().filter(|(path, _)| within(path)) {
                    writer.file(path.strip_prefix(&parent).unwrap(), attributes, content);
                    any = true;
                }
                match any {
                    true => Ok(HttpResponse { status: 200, headers: Vec::new(), body: writer.finish().unwrap() }),
                    false => answer(404, json!({"message": "Could not find the file"})),
                }
            }
            ("POST", ["exec"]) => {
                if container.state != "running" {
                    return answer(409, json!({"message": "is not running"}));
                }
                let body: Value = serde_json::from_slice(&request.body).unwrap();
                assert_eq!((&body["Cmd"][0], &body["Cmd"][1]), (&json!("/bin/sh"), &json!("-c")));
                self.serial += 1;
                let id = format!("e{}", self.serial);
                let script = body["Cmd"][2].as_str().unwrap().to_owned();
                self.execs
                    .insert(id.clone(), FakeExec { container: name.to_owned(), script, running: false, slow: false });
                answer(201, json!({"Id": id}))
            }
            other => panic!("the engine does not know {other:?}"),
        }
    }
}
