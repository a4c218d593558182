//! Typed calls of Glance.

use serde::Deserialize;

use crate::answer::decode;
use crate::cloud::{Cloud, Failure, Query, Service, encode};

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the names are Glance's")]
pub struct Image {
    pub id: String,
    #[serde(default)]
    pub name: Option<String>,
    /// `linux`, `windows`: a property that whoever uploads an image may set.
    #[serde(default)]
    pub os_type: Option<String>,
}

pub fn images(cloud: &Cloud<'_>, query: &Query) -> Result<Vec<Image>, Failure> {
    cloud
        .list(Service::Image, "/images", "images", query)?
        .into_iter()
        .map(|item| decode(cloud, Service::Image, item))
        .collect()
}

/// None when there is no such image.
pub fn image(cloud: &Cloud<'_>, id: &str) -> Result<Option<Image>, Failure> {
    cloud
        .find(Service::Image, &format!("/images/{}", encode(id)))?
        .map(|answer| decode(cloud, Service::Image, answer))
        .transpose()
}
