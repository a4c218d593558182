//! Collections of JSON, and what all services do alike: lists with filters and pages, get, delete.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Answer, EXTERNAL_NETWORK, PROJECT};

/// Everything that there is.
pub struct Store {
    collections: BTreeMap<String, Vec<Value>>,
    serial: usize,
    /// What is left to wait for, by id: reads, and what happens then.
    pending: BTreeMap<String, (usize, Then)>,
    pub patience: usize,
    pub quotas: BTreeMap<String, usize>,
    pub outcome: Option<&'static str>,
    pub page: Option<usize>,
    pub missing: Vec<String>,
    pub extensions: Vec<String>,
}

/// What a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It works, or has what [`Store::outcome`] says.
    Done,
    /// It is gone.
    Gone,
}

/// Names and values of a query, decoded.
pub type Filters = Vec<(String, String)>;

impl Store {
    pub fn seeded() -> Store {
        let mut store = Store {
            collections: BTreeMap::new(),
            serial: 0,
            pending: BTreeMap::new(),
            patience: 1,
            quotas: BTreeMap::new(),
            outcome: None,
            page: None,
            missing: Vec::new(),
            extensions: ["standard-attr-tag", "trunk", "port-security", "allowed-address-pairs"]
                .map(str::to_owned)
                .to_vec(),
        };
        store.add(
            "networks",
            json!({"id": EXTERNAL_NETWORK, "name": "public", "router:external": true, "project_id": "admin", "subnets": ["subnet-external"], "tags": [], "status": "ACTIVE"}),
        );
        store.add(
            "subnets",
            json!({"id": "subnet-external", "name": "public-subnet", "network_id": EXTERNAL_NETWORK, "cidr": "172.24.4.0/24", "project_id": "admin", "tags": []}),
        );
        for (id, vcpus, ram, disk) in [("tiny", 1, 512, 1), ("small", 1, 2048, 20), ("medium", 2, 4096, 40)] {
            store.add(
                "flavors",
                json!({"id": format!("flavor-{id}"), "name": format!("m1.{id}"), "vcpus": vcpus, "ram": ram, "disk": disk, "OS-FLV-EXT-DATA:ephemeral": 0}),
            );
        }
        for (id, tags) in [("image-node", json!(["kube", "v1.34"])), ("image-other", json!([]))] {
            let name = id.replace("image-", "") + "-image";
            store.add("images", json!({"id": id, "name": name, "tags": tags, "status": "active", "os_type": "linux"}));
        }
        for name in ["az1", "az2", "az3"] {
            store.add("zones", json!({"id": name, "zoneName": name, "zoneState": {"available": true}, "hosts": null}));
        }
        store.add("providers", json!({"id": "amphora", "name": "amphora", "description": "default"}));
        store
    }

    pub fn all(&self, collection: &str) -> &[Value] {
        self.collections.get(collection).map_or(&[], Vec::as_slice)
    }

    pub fn get(&self, collection: &str, id: &str) -> Option<&Value> {
        self.all(collection).iter().find(|item| item["id"] == id)
    }

    pub fn get_mut(&mut self, collection: &str, id: &str) -> Option<&mut Value> {
        self.collections.get_mut(collection)?.iter_mut().find(|item| item["id"] == id)
    }

    pub fn take(&mut self, collection: &str, id: &str) -> Option<Value> {
        let items = self.collections.get_mut(collection)?;
        let at = items.iter().position(|item| item["id"] == id)?;
        self.pending.remove(id);
        Some(items.remove(at))
    }

    /// Adds an item, with an id and a project if it has none.
    pub fn add(&mut self, collection: &str, mut item: Value) -> String {
        let id = item["id"].as_str().map_or_else(|| self.next_id(collection), str::to_owned);
        item["id"] = id.clone().into();
        if item.get("project_id").is_none() {
            item["project_id"] = PROJECT.into();
        }
        self.collections.entry(collection.to_owned()).or_default().push(item);
        id
    }

    pub fn next_id(&mut self, collection: &str) -> String {
        let one = collection.strip_suffix('s').unwrap_or(collection).replace('_', "-");
        format!("{one}-{}", self.next())
    }

    pub fn next(&mut self) -> usize {
        self.serial += 1;
        self.serial
    }

    /// Whether there may not be one more.
    pub fn is_full(&self, collection: &str) -> bool {
        let own = self.all(collection).iter().filter(|item| item["project_id"] == PROJECT).count();
        self.quotas.get(collection).is_some_and(|most| own >= *most)
    }

    /// Something begins that takes a while.
    pub fn begin(&mut self, collection: &str, id: &str, then: Then) {
        self.pending.insert(id.to_owned(), (self.patience, then));
        if self.patience == 0 {
            self.step(collection, id);
        }
    }

    pub fn is_pending(&self, id: &str) -> bool {
        self.pending.contains_key(id)
    }

    /// Something is read: it comes nearer to its end.
    fn step(&mut self, collection: &str, id: &str) {
        let Some((left, then)) = self.pending.get_mut(id) else { return };
        *left = left.saturating_sub(1);
        if *left > 0 {
            return;
        }
        let then = *then;
        self.pending.remove(id);
        self.finish(collection, id, then);
    }

    /// As [`super::OpenStack::all`], by a request: `GET` of one or of all that the filters match.
    pub fn read(&mut self, collection: &str, id: Option<&str>, filters: &Filters) -> Option<Vec<Value>> {
        let matching = |store: &Store| -> Vec<Value> {
            let items = store.all(collection).iter();
            items.filter(|item| id.map_or_else(|| matches(item, filters), |id| item["id"] == id)).cloned().collect()
        };
        // What is read is how it was: the next read sees what came of it.
        let found = matching(self);
        for item in &found {
            self.step(collection, item["id"].as_str().unwrap_or_default());
        }
        if id.is_some() && found.is_empty() { None } else { Some(found) }
    }

    /// A list's answer: one page, and a link to the next.
    pub fn listed(&self, items: Vec<Value>, key: &str, path: &str, filters: &Filters) -> Answer {
        let marker = value(filters, "marker");
        let start = marker.and_then(|id| items.iter().position(|item| item["id"] == id)).map_or(0, |at| at + 1);
        let rest = items.get(start..).unwrap_or_default();
        let Some(page) = self.page.filter(|page| rest.len() > *page) else {
            return Answer::new(200, json!({ key: rest }));
        };
        let items = &rest[..page];
        let last = items.last().map(|item| item["id"].as_str().unwrap_or_default()).unwrap_or_default();
        let mut query: Vec<String> = filters
            .iter()
            .filter(|(name, _)| name != "marker")
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        query.push(format!("marker={last}"));
        // Nobody behind a proxy knows under which address he is known.
        let next = format!("http://internal:8080{path}?{}", query.join("&"));
        if key == "images" {
            return Answer::new(200, json!({"images": items, "next": next}));
        }
        Answer::new(200, json!({ key: items, format!("{key}_links"): [{"rel": "next", "href": next}] }))
    }

    /// One request to a service.
    pub fn serve(&mut self, service: &str, method: &str, path: &str, body: &Value, version: Option<&str>) -> Answer {
        let (path, filters) = split(path);
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        match service {
            "network" => self.neutron(method, &segments, body, &filters),
            "compute" => self.nova(method, &segments, body, &filters, version),
            "load-balancer" => self.octavia(method, &segments, body, &filters),
            "image" => self.glance(method, &segments, &filters),
            "volume" => self.cinder(method, &segments, body, &filters),
            _ => Answer::new(404, json!({"message": "no such service"})),
        }
    }

    fn glance(&mut self, method: &str, segments: &[&str], filters: &Filters) -> Answer {
        match (method, segments) {
            ("GET", ["images"]) => {
                let items = self.read("images", None, filters).unwrap_or_default();
                self.listed(items, "images", "/v2/images", filters)
            }
            ("GET", ["images", id]) => match self.read("images", Some(id), filters) {
                Some(items) => Answer::new(200, items[0].clone()),
                None => Answer::new(404, json!({"message": "No image found", "code": "404 Not Found"})),
            },
            _ => Answer::new(405, Value::Null),
        }
    }

    fn cinder(&mut self, method: &str, segments: &[&str], body: &Value, filters: &Filters) -> Answer {
        match (method, segments) {
            ("GET", ["volumes", "detail"] | ["volumes"]) => {
                let items = self.read("volumes", None, filters).unwrap_or_default();
                self.listed(items, "volumes", "/v3/volumes", filters)
            }
            ("GET", ["snapshots", "detail"]) => {
                let items = self.read("snapshots", None, filters).unwrap_or_default();
                self.listed(items, "snapshots", "/v3/snapshots", filters)
            }
            ("GET", ["attachments"]) => {
                let items = self.read("attachments", None, filters).unwrap_or_default();
                self.listed(items, "attachments", "/v3/attachments", filters)
            }
            ("DELETE", ["attachments", id]) => match self.take("attachments", id) {
                Some(attachment) => {
                    if let Some(volume) =
                        attachment["volume_id"].as_str().and_then(|volume| self.get_mut("volumes", volume))
                    {
                        volume["status"] = "available".into();
                    }
                    Answer::new(200, json!({"attachments": []}))
                }
                None => Answer::nova(404, "itemNotFound", "Attachment could not be found."),
            },
            ("DELETE", ["snapshots", id]) => match self.take("snapshots", id) {
                Some(_) => Answer::new(202, Value::Null),
                None => Answer::nova(404, "itemNotFound", "Snapshot could not be found."),
            },
            ("GET", ["volumes", id]) => match self.read("volumes", Some(id), filters) {
                Some(items) => Answer::new(200, json!({"volume": items[0]})),
                None => Answer::nova(404, "itemNotFound", "Volume could not be found."),
            },
            ("POST", ["volumes"]) => {
                if self.is_full("volumes") {
                    let message =
                        "VolumeLimitExceeded: Maximum number of volumes allowed exceeded for quota 'volumes'.";
                    return Answer::nova(413, "overLimit", message);
                }
                let mut volume = body["volume"].clone();
                volume["status"] = "creating".into();
                volume["multiattach"] = false.into();
                volume["attachments"] = json!([]);
                let id = self.add("volumes", volume);
                self.begin("volumes", &id, Then::Done);
                Answer::new(202, json!({"volume": self.get("volumes", &id)}))
            }
            ("DELETE", ["volumes", id]) => match self.get_mut("volumes", id) {
                None => Answer::nova(404, "itemNotFound", "Volume could not be found."),
                Some(volume) if volume["status"] == "in-use" || volume["status"] == "creating" => {
                    Answer::nova(400, "badRequest", "Invalid volume: Volume status must be available or error.")
                }
                Some(volume) => {
                    volume["status"] = "deleting".into();
                    self.begin("volumes", id, Then::Gone);
                    Answer::new(202, Value::Null)
                }
            },
            _ => Answer::new(405, Value::Null),
        }
    }
}

/// The first value of a name.
pub fn value<'a>(filters: &'a Filters, name: &str) -> Option<&'a str> {
    filters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Whether an item has what the filters ask for; several values of a name are alternatives.
fn matches(item: &Value, filters: &Filters) -> bool {
    let names: Vec<&str> = filters.iter().map(|(name, _)| name.as_str()).collect();
    names.iter().all(|name| {
        let values: Vec<&str> =
            filters.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect();
        let tags: Vec<&str> = item["tags"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let split = || values.iter().flat_map(|value| value.split(','));
        match *name {
            "marker" | "limit" | "fields" | "sort_key" | "sort_dir" | "all_tenants" => true,
            "tags" | "tag" => split().all(|tag| tags.contains(&tag)),
            "tags-any" => split().any(|tag| tags.contains(&tag)),
            "not-tags" => !split().all(|tag| tags.contains(&tag)),
            "not-tags-any" => !split().any(|tag| tags.contains(&tag)),
            "fixed_ips" => values.iter().all(|wanted| {
                let (field, wanted) = wanted.split_once('=').unwrap_or_default();
                item["fixed_ips"].as_array().into_iter().flatten().any(|fixed| fixed[field] == wanted)
            }),
            name => values.iter().any(|wanted| same(&item[name], wanted)),
        }
    })
}

fn same(value: &Value, wanted: &str) -> bool {
    match value {
        Value::String(text) => {
            let exact = wanted.strip_prefix('^').and_then(|wanted| wanted.strip_suffix('$'));
            text == exact.map(|exact| exact.replace('\\', "")).as_deref().unwrap_or(wanted)
        }
        Value::Bool(flag) => wanted.eq_ignore_ascii_case(if *flag { "true" } else { "false" }),
        Value::Null => wanted.is_empty(),
        Value::Number(number) => number.to_string() == wanted,
        Value::Array(_) | Value::Object(_) => false,
    }
}

fn split(path: &str) -> (&str, Filters) {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let filters = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(value))
    });
    (path, filters.collect())
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = |at: usize| tail.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        match (first, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap());
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).unwrap()
}
