//! What a server serves: built-in kinds and those of its CustomResourceDefinitions.
//!
//! A catalog is immutable and replaced as a whole when a CRD changes. Servers without CRDs share one, so a thousand idle
//! servers hold one set of schemas.

mod custom;
mod native;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use capwasm_object::group_version;
use serde_json::Value;

use crate::builtin;
use crate::config::ConvertedKind;
use crate::schema::Schema;

pub(crate) use custom::established;

/// Where a scale subresource finds its numbers, as dotted paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    pub spec_replicas: String,
    pub status_replicas: String,
    pub selector: Option<String>,
}

/// A schema, borrowed for ever (built-ins) or shared (CRDs).
#[derive(Clone)]
pub(crate) enum SchemaRef {
    Native(&'static Schema),
    Custom(Arc<Schema>),
}

impl std::ops::Deref for SchemaRef {
    type Target = Schema;

    fn deref(&self) -> &Schema {
        match self {
            Self::Native(schema) => schema,
            Self::Custom(schema) => schema,
        }
    }
}

/// Origin of a resource, which decides how requests are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A built-in kind whose objects are stored.
    Native,
    /// A review: answered on POST and never stored.
    Virtual,
    Custom,
}

/// One resource in one served version.
#[derive(Clone)]
pub(crate) struct Resource {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub list_kind: String,
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    pub origin: Origin,
    pub status: bool,
    pub scale: Option<Scale>,
    /// Further subresources, such as `finalize`.
    pub subresources: Vec<&'static str>,
    /// Whether `metadata.generation` counts changes of the spec.
    pub generation: bool,
    /// `group/version` in which objects are stored. `events.k8s.io` Events are stored as `v1`.
    pub storage: String,
    /// First part of its keys in the store.
    pub store: String,
    pub schema: Option<SchemaRef>,
    /// Schema of the storage version.
    pub storage_schema: Option<SchemaRef>,
    /// `additionalPrinterColumns` of a CRD version.
    pub columns: Option<Value>,
    /// JSON paths that field selectors may use beside name and namespace; `None`: any.
    pub selectable: Option<Vec<String>>,
    /// Text of the `Warning` header when the version is deprecated.
    pub deprecation: Option<String>,
    /// Objects written before this revision were defaulted by an older schema: default them when they are read.
    pub defaulted_since: u64,
    /// Asked to convert between versions; `None`: only `apiVersion` differs.
    pub converted: Option<Arc<ConvertedKind>>,
    pub terminating: bool,
    /// Prefix of the JSON text of objects that are stored in this version.
    head: String,
}

impl Resource {
    pub fn api_version(&self) -> String {
        group_version::join(&self.group, &self.version)
    }

    pub fn is(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.plural == plural
    }

    pub fn custom(&self) -> bool {
        self.origin == Origin::Custom
    }

    /// Whether its objects are stored in another version and have to be converted.
    pub fn foreign(&self) -> bool {
        self.converted.is_some() && self.storage != self.api_version()
    }

    /// Whether stored bytes need neither conversion nor defaulting.
    pub fn serves_verbatim(&self, data: &[u8], revision: u64) -> bool {
        revision >= self.defaulted_since && data.starts_with(self.head.as_bytes())
    }

    fn finish(mut self) -> Arc<Self> {
        self.head = format!("{{\"apiVersion\":\"{}\",", self.api_version());
        Arc::new(self)
    }

    pub fn verbs(&self) -> &'static [&'static str] {
        match self.origin {
            Origin::Virtual => &["create"],
            _ => &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        }
    }
}

/// The resources of one CRD at one revision, kept so that a change of another CRD does not parse it again.
pub(crate) struct Definition {
    pub revision: u64,
    resources: Vec<Arc<Resource>>,
}

impl Definition {
    /// A CRD that is not established has no resources.
    pub fn parse(crd: &Value, revision: u64) -> Self {
        Self { revision, resources: custom::resources(crd) }
    }
}

/// A version of a group, and its resources by plural name.
pub(crate) type Version = (String, BTreeMap<String, Arc<Resource>>);

#[derive(Default)]
pub(crate) struct Catalog {
    /// By group, then version in order of preference, then plural.
    groups: BTreeMap<String, Vec<Version>>,
    kinds: HashMap<(String, String), Arc<Resource>>,
    /// Changes whenever the catalog does; part of ETags.
    pub stamp: u64,
    /// Discovery and OpenAPI documents, made when first asked for.
    pub documents: parking_lot::Mutex<HashMap<String, bytes::Bytes>>,
}

impl Catalog {
    pub fn native() -> Arc<Self> {
        static NATIVE: OnceLock<Arc<Catalog>> = OnceLock::new();
        let build = || Arc::new(Self::of(builtin::kinds().iter().map(native::resource), 0));
        Arc::clone(NATIVE.get_or_init(build))
    }

    /// Built-in kinds and `definitions`; `stamp` is the newest CRD's revision.
    pub fn with<'a>(definitions: impl Iterator<Item = &'a Definition>, stamp: u64) -> Arc<Self> {
        let mut custom = definitions.flat_map(|definition| definition.resources.iter().cloned()).peekable();
        if custom.peek().is_none() {
            return Self::native();
        }
        let native = Self::native();
        let known = native.groups.values().flatten().flat_map(|(_, resources)| resources.values().cloned());
        Arc::new(Self::of(known.chain(custom), stamp))
    }

    fn of(resources: impl Iterator<Item = Arc<Resource>>, stamp: u64) -> Self {
        let mut catalog = Self { stamp, ..Self::default() };
        for resource in resources {
            let versions = catalog.groups.entry(resource.group.clone()).or_default();
            let index = versions.iter().position(|(version, _)| *version == resource.version).unwrap_or_else(|| {
                versions.push((resource.version.clone(), BTreeMap::new()));
                versions.len() - 1
            });
            catalog.kinds.insert((resource.api_version(), resource.kind.clone()), Arc::clone(&resource));
            versions[index].1.insert(resource.plural.clone(), resource);
        }
        for versions in catalog.groups.values_mut() {
            versions.sort_by(|(a, _), (b, _)| group_version::compare_versions(b, a).then_with(|| a.cmp(b)));
        }
        catalog
    }

    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.version(group, version)?.get(plural)
    }

    pub fn kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.kinds.get(&(api_version.to_owned(), kind.to_owned()))
    }

    /// For the server's own work: the resource in its storage version, so that nobody has to convert. The most
    /// preferred version when that one is not served.
    pub fn in_store(&self, group: &str, plural: &str) -> Option<&Arc<Resource>> {
        in_store(self.groups.get(group)?, plural)
    }

    pub fn version(&self, group: &str, version: &str) -> Option<&BTreeMap<String, Arc<Resource>>> {
        self.groups.get(group)?.iter().find(|(v, _)| v == version).map(|(_, resources)| resources)
    }

    /// Groups with their versions, most preferred first.
    pub fn groups(&self) -> impl Iterator<Item = (&str, &[Version])> {
        self.groups.iter().map(|(group, versions)| (group.as_str(), versions.as_slice()))
    }

    /// Every stored resource once, as [`Catalog::in_store`] has it.
    pub fn stored(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.groups
            .values()
            .flat_map(|versions| {
                let all = versions.iter().flat_map(|(_, resources)| resources.values());
                all.filter(|r| in_store(versions, &r.plural).is_some_and(|stored| Arc::ptr_eq(stored, r)))
            })
            .filter(|resource| {
                resource.origin != Origin::Virtual && group_version::group(&resource.storage) == resource.group
            })
    }
}

fn in_store<'a>(versions: &'a [Version], plural: &str) -> Option<&'a Arc<Resource>> {
    let mut served = versions.iter().filter_map(|(_, resources)| resources.get(plural));
    served.clone().find(|resource| resource.api_version() == resource.storage).or_else(|| served.next())
}
