//! What is read of a KubeadmConfig, its Machine and its Cluster.

use capwasm_api::names::labels;
use capwasm_kubeadm::cluster;
use capwasm_sdk::{Problem, object};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// `KubeadmConfig.spec`. The three kubeadm parts stay as they are, because nearly all of their fields pass through.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigSpec {
    /// `cloud-config` (the default) or `ignition`.
    pub format: String,
    /// kubeadm's ClusterConfiguration, in Cluster API's spelling.
    pub cluster_configuration: Map<String, Value>,
    /// kubeadm's InitConfiguration, in Cluster API's spelling.
    pub init_configuration: Map<String, Value>,
    /// kubeadm's JoinConfiguration, in Cluster API's spelling.
    pub join_configuration: Map<String, Value>,
    /// Files to write besides our own.
    pub files: Vec<File>,
    /// Accounts to create or change, in cloud-init's words.
    pub users: Vec<User>,
    /// Time servers, in cloud-init's words.
    pub ntp: Option<Ntp>,
    /// Rows of `/etc/fstab`: device, mount point, type, options.
    pub mounts: Vec<Vec<String>>,
    /// Partitions and file systems, in cloud-init's words.
    pub disk_setup: DiskSetup,
    /// Shell commands at the start of the boot, before files are written.
    pub boot_commands: Vec<String>,
    /// Shell commands before kubeadm, in order.
    pub pre_kubeadm_commands: Vec<String>,
    /// Shell commands after kubeadm, in order.
    pub post_kubeadm_commands: Vec<String>,
    /// kubeadm's log level, its flag `--v`.
    pub verbosity: Option<i64>,
    /// What is merged into the document when the format is `ignition`.
    pub ignition: Ignition,
}

/// `spec.ignition`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Ignition {
    /// What is merged into our own.
    pub container_linux_config: ContainerLinuxConfig,
}

/// A Container Linux Config of the user's.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerLinuxConfig {
    /// YAML; none when empty.
    pub additional_config: String,
    /// Warnings count as errors.
    pub strict: bool,
}

/// One of `spec.files`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct File {
    /// Absolute path on the machine.
    pub path: String,
    /// `root:root` when empty.
    pub owner: String,
    /// Octal, such as `0640`.
    pub permissions: String,
    /// How `content` is encoded: `base64`, `gzip`, `gzip+base64`; empty for text.
    pub encoding: String,
    /// Adds to a file that is there.
    pub append: bool,
    /// The content, in `encoding`; see `content_from`.
    pub content: String,
    /// `Raw` (the default) or `Template`.
    pub content_format: String,
    /// Where the content is instead.
    pub content_from: Option<ContentFrom>,
}

impl File {
    /// Its content is a template.
    pub fn is_template(&self) -> bool {
        self.content_format == "Template"
    }
}

/// Content that stands in a Secret.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ContentFrom {
    /// The Secret, in the KubeadmConfig's namespace.
    pub secret: SecretKey,
}

/// A key of a Secret, by the names of both.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SecretKey {
    /// Name of the Secret.
    pub name: String,
    /// Key in its `data`.
    pub key: String,
}

/// One of `spec.users`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the names are cloud-init's")]
pub struct User {
    pub name: String,
    pub gecos: Option<String>,
    pub groups: Option<String>,
    pub home_dir: Option<String>,
    pub inactive: Option<bool>,
    pub lock_password: Option<bool>,
    pub passwd: Option<String>,
    pub passwd_from: Option<ContentFrom>,
    pub primary_group: Option<String>,
    pub shell: Option<String>,
    pub ssh_authorized_keys: Vec<String>,
    pub sudo: Option<String>,
}

/// `spec.ntp`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are cloud-init's")]
pub struct Ntp {
    pub enabled: Option<bool>,
    pub servers: Vec<String>,
}

/// `spec.diskSetup`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are cloud-init's")]
pub struct DiskSetup {
    pub partitions: Vec<Partition>,
    pub filesystems: Vec<Filesystem>,
}

/// How one disk is divided: by `layout` as a whole, or by `disk_layout` into parts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the names are cloud-init's")]
pub struct Partition {
    pub device: String,
    pub layout: Option<bool>,
    pub disk_layout: Vec<Part>,
    pub overwrite: Option<bool>,
    pub table_type: Option<String>,
}

/// One part of a disk.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Part {
    /// Percent of the disk's size.
    pub percentage: i64,
    /// A name such as `LinuxSwap`, or a GUID.
    pub partition_type: Option<String>,
}

/// One file system to make.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the names are cloud-init's")]
pub struct Filesystem {
    pub device: String,
    pub filesystem: String,
    pub label: Option<String>,
    pub partition: Option<String>,
    pub overwrite: Option<bool>,
    #[serde(rename = "replaceFS")]
    pub replace_fs: Option<String>,
    pub extra_opts: Vec<String>,
}

/// A KubeadmConfig, as far as it is read.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.namespace`.
    pub namespace: String,
    /// The data Secret was written.
    pub has_data: bool,
    /// Name of the data Secret: that of the status, otherwise the KubeadmConfig's own.
    pub data_secret: String,
    /// `spec`.
    pub spec: ConfigSpec,
}

impl Config {
    /// Reads a KubeadmConfig; a spec of the wrong shape is `invalid`.
    pub fn read(object: &Value) -> Result<Config, Problem> {
        Ok(Config {
            name: object::name(object).to_owned(),
            namespace: object::namespace(object).to_owned(),
            has_data: has_data(object),
            data_secret: match object::text(object, "/status/dataSecretName") {
                "" => object::name(object).to_owned(),
                name => name.to_owned(),
            },
            spec: read_at(object, "/spec")?,
        })
    }
}

/// Whether the data Secret of a KubeadmConfig was written.
pub fn has_data(object: &Value) -> bool {
    let created = object.pointer("/status/initialization/dataSecretCreated").and_then(Value::as_bool);
    created == Some(true) || !object::text(object, "/status/dataSecretName").is_empty()
}

/// The Machine, or the MachinePool, that the configuration is for.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// `metadata.name`.
    pub name: String,
    /// It stands for many machines, which share their data and come and go.
    pub pool: bool,
    /// It runs an API server.
    pub control_plane: bool,
    /// `v1.36.0`; empty when it has none.
    pub version: String,
    /// The data Secret that it uses; empty when it has none.
    pub data_secret: String,
    /// Its Node, or all Nodes of the pool, were found.
    pub has_node: bool,
}

impl Machine {
    /// Reads a Machine.
    pub fn read(object: &Value) -> Machine {
        Machine {
            name: object::name(object).to_owned(),
            pool: false,
            control_plane: object::label(object, labels::CONTROL_PLANE).is_some(),
            version: object::text(object, "/spec/version").to_owned(),
            data_secret: object::text(object, "/spec/bootstrap/dataSecretName").to_owned(),
            has_node: !object::text(object, "/status/nodeRef/name").is_empty(),
        }
    }

    /// Reads a MachinePool, whose machines are always workers.
    pub fn read_pool(object: &Value) -> Machine {
        let template = |path: &str| object::text(object, &format!("/spec/template/spec/{path}")).to_owned();
        let nodes = object.pointer("/status/nodeRefs").and_then(Value::as_array).map_or(0, Vec::len);
        let wanted = object.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
        let made = object.pointer("/status/replicas").and_then(Value::as_u64);
        Machine {
            name: object::name(object).to_owned(),
            pool: true,
            control_plane: false,
            version: template("version"),
            data_secret: template("bootstrap/dataSecretName"),
            // More machines than are wanted are on their way: those that are to replace others have not joined.
            has_node: u64::try_from(nodes) == Ok(wanted) && made.is_none_or(|made| made == wanted),
        }
    }
}

/// The Cluster, as far as it is read.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.uid`.
    pub uid: String,
    /// A provider runs the control plane, and so makes the certificates.
    pub has_control_plane_provider: bool,
    /// The first API server has answered: `status.initialization.controlPlaneInitialized`.
    pub initialized: bool,
    /// `host:port` of the API server, once it is known.
    pub endpoint: Option<String>,
    /// The `networking` part of kubeadm's ClusterConfiguration.
    pub networking: Map<String, Value>,
}

impl Cluster {
    /// Reads a Cluster.
    pub fn read(object: &Value) -> Cluster {
        Cluster {
            name: object::name(object).to_owned(),
            namespace: object::namespace(object).to_owned(),
            uid: object::uid(object).to_owned(),
            has_control_plane_provider: !object::text(object, "/spec/controlPlaneRef/name").is_empty(),
            initialized: object
                .pointer("/status/initialization/controlPlaneInitialized")
                .and_then(Value::as_bool)
                .unwrap_or_default(),
            endpoint: cluster::endpoint(object),
            networking: networking(object),
        }
    }

    /// An owner reference to it.
    pub fn owner(&self) -> Value {
        cluster::owner(&self.name, &self.uid)
    }
}

fn networking(cluster: &Value) -> Map<String, Value> {
    let blocks = |pointer: &str| -> String {
        let list = cluster.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
    };
    [
        ("dnsDomain", object::text(cluster, "/spec/clusterNetwork/serviceDomain").to_owned()),
        ("podSubnet", blocks("/spec/clusterNetwork/pods/cidrBlocks")),
        ("serviceSubnet", blocks("/spec/clusterNetwork/services/cidrBlocks")),
    ]
    .into_iter()
    .filter(|(_, text)| !text.is_empty())
    .map(|(key, text)| (key.to_owned(), Value::String(text)))
    .collect()
}

/// The value at a JSON pointer as a type; what is absent or null takes its default.
fn read_at<T: DeserializeOwned + Default>(object: &Value, pointer: &str) -> Result<T, Problem> {
    let Some(value) = object.pointer(pointer) else {
        return Ok(T::default());
    };
    let mut value = value.clone();
    drop_nulls(&mut value);
    if value.is_null() {
        return Ok(T::default());
    }
    let invalid = |error: &dyn std::fmt::Display| {
        Problem::invalid("InvalidConfiguration", format!("{} is not as it should be: {error}", &pointer[1..]))
    };
    // A list would be read as the fields in their order.
    if !value.is_object() {
        return Err(invalid(&"it must be an object"));
    }
    serde_json::from_value(value).map_err(|error| invalid(&error))
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
