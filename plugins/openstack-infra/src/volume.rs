//! Typed calls of Cinder.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::{decode, decode_member};
use crate::cloud::{Cloud, Failure, Gone, Query, Service, encode};

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the names are Cinder's")]
pub struct Volume {
    pub id: String,
    #[serde(default)]
    pub name: Option<String>,
    /// `creating`, `downloading`, `available`, `in-use`, `error`, `deleting`, …
    #[serde(default)]
    pub status: String,
    /// GiB.
    #[serde(default)]
    pub size: u64,
    /// RFC 3339 without an offset; none for a volume that nothing happened to.
    #[serde(default)]
    pub updated_at: Option<String>,
    #[serde(default)]
    pub created_at: String,
    /// Several servers may have it at once; Nova asks for a newer microversion then.
    #[serde(default)]
    pub multiattach: bool,
}

/// A claim of a server on a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the names are Cinder's")]
pub struct Attachment {
    pub id: String,
    /// `reserved` until the server has the volume.
    #[serde(default)]
    pub status: String,
    /// Id of the server.
    #[serde(default)]
    pub instance: Option<String>,
}

/// All volumes of the project that have exactly this name.
pub fn volumes_named(cloud: &Cloud<'_>, name: &str) -> Result<Vec<Volume>, Failure> {
    let found = cloud.list(Service::Volume, "/volumes/detail", "volumes", &Query::new().with("name", name))?;
    let volumes: Result<Vec<Volume>, Failure> =
        found.into_iter().map(|item| decode(cloud, Service::Volume, item)).collect();
    Ok(volumes?.into_iter().filter(|volume| volume.name.as_deref() == Some(name)).collect())
}

/// Asks for a volume; `fields` is what stands below `volume` in the request.
pub fn create_volume(cloud: &Cloud<'_>, fields: &Value) -> Result<Volume, Failure> {
    decode_member(
        cloud,
        Service::Volume,
        cloud.post(Service::Volume, "/volumes", &json!({"volume": fields}))?,
        "volume",
    )
}

/// Asks for the deletion, which ends some time after the answer.
pub fn delete_volume(cloud: &Cloud<'_>, id: &str) -> Result<Gone, Failure> {
    cloud.delete(Service::Volume, &format!("/volumes/{}", encode(id)))
}

/// All claims on a volume.
pub fn attachments(cloud: &Cloud<'_>, volume: &str) -> Result<Vec<Attachment>, Failure> {
    let query = Query::new().with("volume_id", volume);
    let found = cloud.list(Service::Volume, "/attachments", "attachments", &query)?;
    found.into_iter().map(|item| decode(cloud, Service::Volume, item)).collect()
}

/// Deletes an attachment, which releases the volume.
pub fn delete_attachment(cloud: &Cloud<'_>, id: &str) -> Result<Gone, Failure> {
    cloud.delete(Service::Volume, &format!("/attachments/{}", encode(id)))
}
