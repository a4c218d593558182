//! Cinder: volumes.

use serde_json::{Value, json};

use super::{NOWHERE, Step, delete, get, post};

pub(super) fn volumes() -> Vec<Step> {
    const V: &str = "block-storage";
    let volume = |more: Value| {
        let mut body = json!({"name": "contract", "size": 1});
        body.as_object_mut().into_iter().for_each(|body| body.extend(more.as_object().cloned().unwrap_or_default()));
        json!({"volume": body})
    };
    vec![
        post(
            "volume",
            V,
            "<volumes>/volumes",
            volume(json!({"volume_type": "__DEFAULT__", "description": "of a test"})),
        )
        .is(202)
        .keep("volume", "/volume/id"),
        get("volume by id", V, "<volumes>/volumes/<volume>").until("/volume/status", "available"),
        get("volumes by name", V, "<volumes>/volumes/detail?name=contract"),
        post("volume of no size", V, "<volumes>/volumes", volume(json!({"size": 0}))).is(400),
        post("volume of a type that is not there", V, "<volumes>/volumes", volume(json!({"volume_type": "gold"})))
            .is(404),
        post(
            "volume in a zone that is not there",
            V,
            "<volumes>/volumes",
            volume(json!({"availability_zone": "moon"})),
        )
        .is(202)
        .keep("moon", "/volume/id")
        .only("/volume/status"),
        post("volume of an image that is not there", V, "<volumes>/volumes", volume(json!({"imageRef": NOWHERE})))
            .is(400),
        get("volume that is not there", V, &format!("<volumes>/volumes/{NOWHERE}")).is(404),
        get("volume in another zone", V, "<volumes>/volumes/<moon>")
            .until("/volume/status", "available")
            .only("/volume/availability_zone"),
        delete("volume in another zone away", V, "<volumes>/volumes/<moon>").is(202),
        delete("volume that was never there", V, &format!("<volumes>/volumes/{NOWHERE}")).is(404),
    ]
}
