//! Volumes: names and labels only; nothing is ever mounted.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::documents::Filters;
use super::journal::Change;
use super::record::VolumeRecord;
use super::{Engine, Refused, random_id};

fn document(volume: &VolumeRecord) -> Value {
    let field = |name: &str, default: Value| match &volume.config[name] {
        Value::Null => default,
        given => given.clone(),
    };
    json!({
        "Name": volume.name, "Driver": field("Driver", json!("local")), "Mountpoint": format!("/var/lib/docker/volumes/{}/_data", volume.name),
        "CreatedAt": volume.created.to_string(), "Labels": field("Labels", json!({})), "Options": field("DriverOpts", json!({})), "Scope": "local",
    })
}

impl Engine {
    /// `POST /volumes/create`: the one that is there, if it is.
    pub(super) async fn create_volume(&self, config: Value) -> Result<Value, Refused> {
        let name = config["Name"].as_str().filter(|name| !name.is_empty()).map_or_else(random_id, str::to_owned);
        if let Some(found) = self.state.lock().volumes.get(&name) {
            return Ok(document(found));
        }
        let volume = VolumeRecord { name: name.clone(), created: Timestamp::now(), config };
        self.journal.commit(vec![volume.change()]).await?;
        let mut state = self.state.lock();
        Ok(document(state.volumes.entry(name).or_insert(volume)))
    }

    /// `GET /volumes`.
    pub(super) fn list_volumes(&self, filters: &Filters) -> Value {
        let state = self.state.lock();
        let wanted = |volume: &&VolumeRecord| {
            filters.contains_part("name", &volume.name) && filters.labels(&volume.config["Labels"])
        };
        let list: Vec<Value> = state.volumes.values().filter(wanted).map(document).collect();
        json!({ "Volumes": list, "Warnings": null })
    }

    /// `GET /volumes/{name}`.
    pub(super) fn inspect_volume(&self, name: &str) -> Result<Value, Refused> {
        let state = self.state.lock();
        let found = state.volumes.get(name).ok_or_else(|| Refused::new(404, format!("get {name}: no such volume")))?;
        Ok(document(found))
    }

    /// `DELETE /volumes/{name}?force=`.
    pub(super) async fn remove_volume(&self, name: &str, force: bool) -> Result<(), Refused> {
        {
            let state = self.state.lock();
            if !state.volumes.contains_key(name) {
                return if force { Ok(()) } else { Err(Refused::new(404, format!("get {name}: no such volume"))) };
            }
            let user =
                state.containers.values().find(|container| container.record.lock().volumes().any(|used| used == name));
            if let Some(user) = user {
                return Err(Refused::new(409, format!("remove {name}: volume is in use - [{}]", user.id())));
            }
        }
        self.journal.commit(vec![Change::Remove(format!("volume/{name}"))]).await?;
        self.state.lock().volumes.remove(name);
        Ok(())
    }
}
