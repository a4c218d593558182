//! A small engine in memory: containers, files, execs, images, networks; it can lose answers and tell lies.

use std::collections::{BTreeMap, BTreeSet};

use capwasm_sdk::{HttpRequest, HttpResponse, Refusal, Refused};
use serde_json::{Value, json};

use crate::tar;

/// What happens instead of one request's true answer.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// The request is carried out, then everything fails until [`FakeEngine::recover`]: the caller crashed.
    Crash,
    /// Not carried out; this is answered.
    Answer(u16, &'static str),
    /// Not carried out; nobody answers.
    Unreachable,
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
    pub networks: BTreeSet<String>,
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

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [byte, tail @ ..] = rest {
        if let ([high, low, next @ ..], b'%') = (tail, byte) {
            bytes.push(u8::from_str_radix(std::str::from_utf8(&[*high, *low]).unwrap(), 16).unwrap());
            rest = next;
        } else {
            bytes.push(*byte);
            rest = tail;
        }
    }
    String::from_utf8(bytes).unwrap()
}

impl FakeEngine {
    pub fn handle(&mut self, request: &HttpRequest) -> Result<HttpResponse, Refused> {
        let lost = || Err(Refused::new(Refusal::Unavailable, "Unreachable", "nobody answers"));
        if self.crashed {
            return lost();
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
            return self.serve(request, path);
        }
        match self.trouble.take().unwrap().1 {
            Trouble::Answer(status, body) => {
                Ok(HttpResponse { status, headers: Vec::new(), body: body.as_bytes().to_vec() })
            }
            Trouble::Unreachable => lost(),
            Trouble::Crash => {
                let _lost = self.serve(request, path);
                self.crashed = true;
                lost()
            }
        }
    }

    /// The caller lives again.
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
            let command = lines[2..lines.len() - 2].join("\n");
            if self.hangs.is_some_and(|hangs| command.contains(hangs)) {
                continue;
            }
            exec.running = false;
            let code = self.run(&container, &command);
            let files = &mut self.containers.get_mut(&container).unwrap().files;
            files.insert(format!("capwasm/steps/{number}.log"), format!("output of {command}\n").into_bytes());
            files.insert(format!("capwasm/steps/{number}.exit"), format!("{code}\n").into_bytes());
        }
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
            ("GET", ["networks", name]) => match self.networks.contains(*name) {
                true => answer(200, json!({"Id": "n", "Name": name})),
                false => answer(404, json!({"message": "no such network"})),
            },
            ("POST", ["networks", "create"]) => {
                let body: Value = serde_json::from_slice(&request.body).unwrap();
                match self.networks.insert(body["Name"].as_str().unwrap().to_owned()) {
                    true => answer(201, json!({"Id": "n"})),
                    false => answer(409, json!({"message": "exists"})),
                }
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
                self.ran.push(lines[2..lines.len() - 2].join("\n"));
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
            self.containers.remove(name);
            return answer(204, json!({}));
        }
        let known = self.execs.iter().filter(|(_, exec)| exec.container == name).map(|(id, _)| id.clone());
        let exec_ids: Vec<String> = known.collect();
        let container = self.containers.get_mut(name).unwrap();
        match (method, rest) {
            ("GET", ["json"]) => {
                let ip = if container.state == "running" { container.ip.as_str() } else { "" };
                answer(
                    200,
                    json!({
                        "Id": container.id,
                        "ExecIDs": exec_ids,
                        "State": {"Status": container.state, "ExitCode": 137, "StartedAt": "2023-11-14T00:00:00.5Z"},
                        "Config": {"Labels": container.body["Labels"]},
                        "NetworkSettings": {"Networks": {"kind": {"IPAddress": ip, "GlobalIPv6Address": ""}}},
                    }),
                )
            }
            ("POST", ["start"]) => {
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
                    true => Ok(HttpResponse { status: 200, headers: Vec::new(), body: writer.finish() }),
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
