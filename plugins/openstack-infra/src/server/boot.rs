//! What Nova makes a server of.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::spec::{HintValue, PortId, Resolved, ServerSpec};
use super::volumes::{self, ROOT};
use crate::volume::Volume;

/// Nova knows tags of servers and, without gaps, of block devices from here on.
const TAGS: &str = "2.53";
/// Nova attaches volumes that several servers may have from here on.
const MULTIATTACH: &str = "2.60";

/// A server to be made.
pub struct Boot<'a> {
    pub name: &'a str,
    /// Whose it is; see [`super::description`].
    pub description: &'a str,
    pub spec: &'a ServerSpec,
    /// The spec's references, as ids.
    pub resolved: &'a Resolved,
    pub ports: &'a [PortId],
    /// In the order of [`volumes::wanted`].
    pub volumes: &'a [Volume],
    /// The bytes that it starts with; none without `spec.userDataRef`.
    pub user_data: Option<&'a [u8]>,
}

impl Boot<'_> {
    /// The oldest microversion that has all that is asked for; none where the usual one does.
    pub fn microversion(&self) -> Option<&'static str> {
        if self.volumes.iter().any(|volume| volume.multiattach) {
            Some(MULTIATTACH)
        } else if !self.spec.tags.is_empty() || !self.spec.additional_block_devices.is_empty() {
            Some(TAGS)
        } else {
            None
        }
    }

    pub fn body(&self) -> Value {
        let spec = self.spec;
        let networks: Vec<Value> = self.ports.iter().map(|port| json!({"port": port.id})).collect();
        let mut server = Map::new();
        let mut set = |name: &str, value: Value| server.insert(name.to_owned(), value);
        set("name", self.name.into());
        set("description", self.description.into());
        set("flavorRef", self.resolved.flavor_id.clone().into());
        set("networks", networks.into());
        set("config_drive", spec.config_drive.into());
        if !self.boots_from_volume() {
            set("imageRef", self.resolved.image_id.clone().into());
        }
        if let Some(data) = self.user_data {
            set("user_data", STANDARD.encode(data).into());
        }
        for (name, value) in [("key_name", &spec.ssh_key_name), ("availability_zone", &spec.availability_zone)] {
            if !value.is_empty() {
                set(name, value.clone().into());
            }
        }
        if !spec.server_metadata.is_empty() {
            let pairs = spec.server_metadata.iter().map(|pair| (pair.key.clone(), Value::from(pair.value.clone())));
            set("metadata", Value::Object(pairs.collect()));
        }
        if !spec.tags.is_empty() {
            set("tags", json!(spec.tags));
        }
        let devices = self.block_devices();
        if !devices.is_empty() {
            set("block_device_mapping_v2", devices.into());
        }
        let mut body = json!({"server": server});
        let hints = self.hints();
        if !hints.is_empty() {
            body["os:scheduler_hints"] = Value::Object(hints);
        }
        body
    }

    fn boots_from_volume(&self) -> bool {
        self.spec.root_volume.as_ref().is_some_and(|root| root.size_gib > 0)
    }

    /// None where the image alone does.
    fn block_devices(&self) -> Vec<Value> {
        let spec = self.spec;
        if !self.boots_from_volume() && spec.additional_block_devices.is_empty() {
            return Vec::new();
        }
        let wanted = volumes::wanted(spec);
        let id = |device: &str| {
            wanted.iter().zip(self.volumes).find(|(wanted, _)| wanted.device == device).map(|(_, volume)| &volume.id)
        };
        let root = match id(ROOT) {
            Some(id) => json!({"source_type": "volume", "destination_type": "volume", "uuid": id}),
            None => json!({"source_type": "image", "destination_type": "local", "uuid": self.resolved.image_id}),
        };
        let mut devices = vec![with(root, &json!({"boot_index": 0, "delete_on_termination": true}))];
        for device in &spec.additional_block_devices {
            let own = match id(&device.name) {
                Some(id) => json!({"source_type": "volume", "destination_type": "volume", "uuid": id}),
                None => {
                    json!({"source_type": "blank", "destination_type": "local", "volume_size": device.size_gib})
                }
            };
            let common = json!({"boot_index": -1, "delete_on_termination": true, "tag": device.name});
            devices.push(with(own, &common));
        }
        devices
    }

    fn hints(&self) -> Map<String, Value> {
        let mut hints = Map::new();
        for hint in &self.spec.scheduler_hint_additional_properties {
            if let Some(value) = hint_value(&hint.value) {
                hints.insert(hint.name.clone(), value);
            }
        }
        if !self.resolved.server_group_id.is_empty() {
            hints.insert("group".to_owned(), self.resolved.server_group_id.clone().into());
        }
        hints
    }
}

fn hint_value(hint: &HintValue) -> Option<Value> {
    match hint.kind.as_str() {
        "Bool" => hint.bool.map(Value::from),
        "Number" => hint.number.map(Value::from),
        _ => hint.string.clone().map(Value::from),
    }
}

fn with(mut object: Value, more: &Value) -> Value {
    capwasm_sdk::object::merge(&mut object, more);
    object
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use serde::Deserialize as _;

    fn boot<'a>(
        spec: &'a ServerSpec,
        resolved: &'a Resolved,
        volumes: &'a [Volume],
        data: Option<&'a [u8]>,
    ) -> Boot<'a> {
        let ports = Box::leak(Box::new([PortId { id: "p0".to_owned() }, PortId { id: "p1".to_owned() }]));
        Boot { name: "m", description: "d", spec, resolved, ports, volumes, user_data: data }
    }

    fn resolved() -> Resolved {
        Resolved { image_id: "i1".to_owned(), flavor_id: "f1".to_owned(), ..Resolved::default() }
    }

    fn volume(id: &str) -> Volume {
        Volume { id: id.to_owned(), ..Volume::default() }
    }

    #[test]
    fn a_plain_server_boots_from_its_image_with_the_oldest_microversion() {
        let (spec, resolved) = (ServerSpec::default(), resolved());
        let boot = boot(&spec, &resolved, &[], None);
        assert_eq!(boot.microversion(), None);
        assert_eq!(
            boot.body(),
            json!({"server": {
                "name": "m", "description": "d", "flavorRef": "f1", "imageRef": "i1", "config_drive": false,
                "networks": [{"port": "p0"}, {"port": "p1"}],
            }})
        );
    }

    #[test]
    fn everything_that_is_asked_for_reaches_nova() {
        let spec = ServerSpec::deserialize(json!({
            "sshKeyName": "key", "availabilityZone": "az1", "configDrive": true, "tags": ["t1"],
            "serverMetadata": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}],
            "rootVolume": {"sizeGiB": 20},
            "additionalBlockDevices": [
                {"name": "scratch", "sizeGiB": 5, "storage": {"type": "Local"}},
                {"name": "etcd", "sizeGiB": 1, "storage": {"type": "Volume"}},
            ],
            "schedulerHintAdditionalProperties": [
                {"name": "query", "value": {"type": "String", "string": "x"}},
                {"name": "n", "value": {"type": "Number", "number": 3}},
                {"name": "b", "value": {"type": "Bool", "bool": false}},
            ],
        }))
        .unwrap();
        let resolved = Resolved { server_group_id: "g1".to_owned(), ..resolved() };
        let volumes = [volume("v-root"), volume("v-etcd")];
        let data: &[u8] = b"#cloud-config\n\xff\x00";
        let boot = boot(&spec, &resolved, &volumes, Some(data));
        assert_eq!(boot.microversion(), Some("2.53"));
        assert_eq!(
            boot.body(),
            json!({
                "server": {
                    "name": "m", "description": "d", "flavorRef": "f1", "config_drive": true, "key_name": "key",
                    "availability_zone": "az1", "tags": ["t1"], "metadata": {"a": "1", "b": "2"},
                    "networks": [{"port": "p0"}, {"port": "p1"}], "user_data": STANDARD.encode(data),
                    "block_device_mapping_v2": [
                        {"source_type": "volume", "destination_type": "volume", "uuid": "v-root", "boot_index": 0, "delete_on_termination": true},
                        {"source_type": "blank", "destination_type": "local", "volume_size": 5, "boot_index": -1, "delete_on_termination": true, "tag": "scratch"},
                        {"source_type": "volume", "destination_type": "volume", "uuid": "v-etcd", "boot_index": -1, "delete_on_termination": true, "tag": "etcd"},
                    ],
                },
                "os:scheduler_hints": {"group": "g1", "query": "x", "n": 3, "b": false},
            })
        );
    }

    #[test]
    fn an_image_with_another_disk_is_named_twice() {
        let spec = ServerSpec::deserialize(json!({
            "additionalBlockDevices": [{"name": "scratch", "sizeGiB": 5, "storage": {"type": "Local"}}],
        }))
        .unwrap();
        let resolved = resolved();
        let body = boot(&spec, &resolved, &[], None).body();
        assert_eq!(body["server"]["imageRef"], "i1");
        assert_eq!(
            body["server"]["block_device_mapping_v2"][0],
            json!({"source_type": "image", "destination_type": "local", "uuid": "i1", "boot_index": 0, "delete_on_termination": true})
        );
    }

    #[test]
    fn a_shared_volume_asks_for_a_newer_nova() {
        let spec = ServerSpec::deserialize(json!({"rootVolume": {"sizeGiB": 1}})).unwrap();
        let volumes = [Volume { multiattach: true, ..volume("v") }];
        assert_eq!(boot(&spec, &resolved(), &volumes, None).microversion(), Some("2.60"));
    }
}
