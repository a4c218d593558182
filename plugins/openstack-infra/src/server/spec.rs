//! What an OpenStackServer asks for, and what became of it so far.

use capwasm_sdk::{Problem, object};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `spec`, as far as it is read here. References (`id | filter`) stay as they are.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct ServerSpec {
    pub flavor: String,
    #[serde(rename = "flavorID")]
    pub flavor_id: String,
    pub image: Value,
    pub server_group: Value,
    pub ssh_key_name: String,
    pub ports: Vec<PortSpec>,
    pub security_groups: Vec<Value>,
    pub trunk: bool,
    pub tags: Vec<String>,
    pub server_metadata: Vec<Metadata>,
    pub config_drive: bool,
    pub root_volume: Option<RootVolume>,
    pub additional_block_devices: Vec<BlockDevice>,
    pub availability_zone: String,
    pub user_data_ref: Option<Named>,
    #[serde(rename = "floatingIPPoolRef")]
    pub floating_ip_pool_ref: Option<PoolRef>,
    pub scheduler_hint_additional_properties: Vec<Hint>,
}

/// A port as it is asked for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct PortSpec {
    pub network: Value,
    pub name_suffix: Option<String>,
    pub description: Option<String>,
    #[serde(rename = "fixedIPs")]
    pub fixed_ips: Vec<FixedIpSpec>,
    pub security_groups: Vec<Value>,
    pub tags: Vec<String>,
    pub trunk: Option<bool>,
    #[serde(flatten)]
    pub fields: PortFields,
}

/// What a port is asked for and made with in the same words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct PortFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_state_up: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_address_pairs: Vec<AddressPair>,
    #[serde(rename = "hostID", skip_serializing_if = "Option::is_none")]
    pub host_id: Option<String>,
    #[serde(rename = "vnicType", skip_serializing_if = "Option::is_none")]
    pub vnic_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<BindingProfile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_port_security: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub propagate_uplink_status: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub value_specs: Vec<ValueSpec>,
}

/// An address that a port may send from besides its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct AddressPair {
    #[serde(rename = "ipAddress", default)]
    pub ip_address: String,
    #[serde(rename = "macAddress", default, skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
}

/// How a port is bound to hardware.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct BindingProfile {
    #[serde(rename = "ovsHWOffload", skip_serializing_if = "Option::is_none")]
    pub ovs_hw_offload: Option<bool>,
    #[serde(rename = "trustedVF", skip_serializing_if = "Option::is_none")]
    pub trusted_vf: Option<bool>,
}

/// A field of a port that only some plugin of Neutron knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct ValueSpec {
    pub name: String,
    pub key: String,
    pub value: String,
}

/// An address as it is asked for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct FixedIpSpec {
    pub subnet: Value,
    pub ip_address: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct Metadata {
    pub key: String,
    pub value: String,
}

/// The volume that the server boots from.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct RootVolume {
    #[serde(rename = "sizeGiB")]
    pub size_gib: u64,
    #[serde(flatten)]
    pub volume: VolumeSpec,
}

/// What kind of volume, and where.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct VolumeSpec {
    #[serde(rename = "type")]
    pub kind: String,
    pub availability_zone: Option<VolumeZone>,
}

/// `Name` (the default): the zone called `name`. `Machine`: the server's.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct VolumeZone {
    pub from: String,
    pub name: String,
}

/// A disk besides the root disk.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct BlockDevice {
    pub name: String,
    #[serde(rename = "sizeGiB")]
    pub size_gib: u64,
    pub storage: Storage,
}

/// `Local` (the hypervisor's) or `Volume`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct Storage {
    #[serde(rename = "type")]
    pub kind: String,
    pub volume: VolumeSpec,
}

/// An object by its name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Named {
    /// In the object's namespace.
    pub name: String,
}

/// Which pool a floating address comes from.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct PoolRef {
    pub api_group: String,
    pub kind: String,
    pub name: String,
}

/// A hint for Nova's scheduler.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct Hint {
    pub name: String,
    pub value: HintValue,
}

/// One of the three, as `type` says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct HintValue {
    #[serde(rename = "type")]
    pub kind: String,
    pub bool: Option<bool>,
    pub number: Option<i64>,
    pub string: Option<String>,
}

/// `status`, as far as a pass goes on from it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct ServerStatus {
    /// It was `ACTIVE` once.
    pub ready: bool,
    #[serde(rename = "instanceID")]
    pub instance_id: Option<String>,
    pub resolved: Option<Resolved>,
    pub resources: Resources,
}

/// What the spec's references stood for when they were looked up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct Resolved {
    #[serde(rename = "serverGroupID", skip_serializing_if = "String::is_empty")]
    pub server_group_id: String,
    #[serde(rename = "imageID", skip_serializing_if = "String::is_empty")]
    pub image_id: String,
    #[serde(rename = "flavorID", skip_serializing_if = "String::is_empty")]
    pub flavor_id: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<ResolvedPort>,
}

/// A port as it is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct ResolvedPort {
    pub name: String,
    pub description: String,
    #[serde(rename = "networkID")]
    pub network_id: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trunk: Option<bool>,
    #[serde(rename = "fixedIPs", skip_serializing_if = "Vec::is_empty")]
    pub fixed_ips: Vec<ResolvedFixedIp>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<String>,
    #[serde(flatten)]
    pub fields: PortFields,
}

/// An address as it is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct ResolvedFixedIp {
    /// Id of the subnet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
}

/// What was made for the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Resources {
    /// In the order of `resolved.ports`; each is complete, with tags and trunk.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortId>,
    /// Ports that trunks of these carry, written down before they are taken off; they go with the server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sub_ports: Vec<PortId>,
}

/// A port that was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct PortId {
    /// Id in Neutron.
    pub id: String,
}

impl ResolvedPort {
    /// Whether it carries a trunk.
    pub fn has_trunk(&self) -> bool {
        self.trunk == Some(true)
    }

    /// Whether Neutron filters what goes through it.
    pub fn is_secured(&self) -> bool {
        self.fields.disable_port_security != Some(true)
    }
}

impl ServerStatus {
    /// Of an object; the default where there is none.
    ///
    /// # Errors
    /// Invalid: somebody wrote something else there.
    pub fn read(server: &Value) -> Result<ServerStatus, Problem> {
        match server.get("status") {
            None | Some(Value::Null) => Ok(ServerStatus::default()),
            Some(status) => ServerStatus::deserialize(status)
                .map_err(|error| Problem::invalid("BadStatus", format!("status of {}: {error}", object::name(server)))),
        }
    }
}
