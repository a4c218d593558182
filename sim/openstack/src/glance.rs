//! Glance v2: images.

use capwasm_apiserver::bounded_patch::{BoundedPatch, PatchError};
use serde_json::{Value, json};

use super::answer::{Answer, Outcome, Service};
use super::cloud::{Cloud, Scope, State, new_id, now};
use super::request::Request;
use super::table::{Table, merge, shown, text, texts};

#[derive(Default)]
pub(super) struct Images {
    pub images: Table,
}

impl Images {
    /// Adds an image that has no data yet; its id.
    pub fn add(&mut self, project: &str, given: &Value) -> String {
        let id = given["id"].as_str().map_or_else(new_id, str::to_owned);
        let now = now();
        let mut made = json!({
            "name": null, "disk_format": null, "container_format": null, "visibility": "shared", "size": null,
            "virtual_size": null, "status": "queued", "checksum": null, "protected": false, "min_ram": 0, "min_disk": 0,
            "owner": project, "project_id": project, "os_hidden": false, "os_hash_algo": null, "os_hash_value": null,
            "created_at": now, "updated_at": now, "tags": [],
        });
        merge(&mut made, given.as_object().cloned().unwrap_or_default());
        made["id"] = json!(id);
        made["self"] = json!(format!("/v2/images/{id}"));
        made["file"] = json!(format!("/v2/images/{id}/file"));
        made["schema"] = json!("/v2/schemas/image");
        self.images.insert(made);
        id
    }

    /// An image gets data of this size.
    pub fn upload(&mut self, id: &str, size: usize) {
        if let Some(image) = self.images.get_mut(id) {
            let now = now();
            let ready =
                json!({ "status": "active", "size": size, "virtual_size": size, "stores": "files", "updated_at": now });
            merge(image, ready.as_object().cloned().unwrap_or_default());
        }
    }

    /// An image that this project may use.
    pub fn find(&self, scope: &Scope, id: &str) -> Option<&Value> {
        self.images.get(id).filter(|image| visible(scope, image))
    }
}

fn visible(scope: &Scope, image: &Value) -> bool {
    scope.owns(image) || matches!(text(image, "visibility"), "public" | "community")
}

fn view(image: &Value) -> Value {
    let mut image = shown(image, &[]);
    if let Some(fields) = image.as_object_mut() {
        fields.remove("project_id");
    }
    image
}

fn refused(status: u16, message: &str) -> Answer {
    Answer::failure(Service::Glance, status, "", message)
}

pub(super) fn answer(cloud: &Cloud, scope: &Scope, request: &Request) -> Answer {
    cloud.with(|state| route(cloud, state, scope, request)).unwrap_or_else(|refusal| refusal)
}

fn route(cloud: &Cloud, state: &mut State, scope: &Scope, request: &Request) -> Outcome {
    let (method, segments) = request.route();
    let missing = |id: &str| refused(404, &format!("No image found with ID {id}"));
    match (method, segments.as_slice()) {
        ("GET", [] | ["versions"]) => {
            let links = json!([{ "rel": "self", "href": format!("{}/image/v2/", cloud.base) }]);
            let version = |minor: u32| {
                let status = if minor == 17 { "CURRENT" } else { "SUPPORTED" };
                json!({ "id": format!("v2.{minor}"), "status": status, "links": links })
            };
            let versions: Vec<Value> = (0..=17).rev().filter(|minor| !matches!(minor, 14 | 16)).map(version).collect();
            Ok(Answer::json(300, &json!({ "versions": versions })))
        }
        ("GET", ["v2", "images"]) => list(cloud, state, scope, request),
        ("POST", ["v2", "images"]) => {
            let body = request
                .json()
                .filter(Value::is_object)
                .ok_or_else(|| refused(400, "Malformed JSON in request body."))?;
            let id = state.images.add(&scope.project, &body);
            let made = state.images.images.get(&id).map(view).unwrap_or_default();
            Ok(Answer::json(201, &made).with("location", format!("{}/image/v2/images/{id}", cloud.base)))
        }
        ("GET", ["v2", "images", id]) => {
            let found = state.images.find(scope, id).ok_or_else(|| missing(id))?;
            Ok(Answer::json(200, &view(found)))
        }
        ("PATCH", ["v2", "images", id]) => {
            let mut found = state.images.find(scope, id).ok_or_else(|| missing(id))?.clone();
            let patch = request.json().and_then(|patch| serde_json::from_value::<json_patch::Patch>(patch).ok());
            let patch = patch.ok_or_else(|| refused(400, "Request body must be a JSON array of operation objects."))?;
            BoundedPatch::try_from(patch).and_then(|patch| patch.apply(&mut found)).map_err(|error| {
                let status = if matches!(error, PatchError::Operation(_)) { 409 } else { 413 };
                refused(status, &error.to_string())
            })?;
            found["updated_at"] = json!(now());
            let shown = view(&found);
            state.images.images.insert(found);
            Ok(Answer::json(200, &shown))
        }
        ("PUT", ["v2", "images", id, "file"]) => {
            state.images.find(scope, id).ok_or_else(|| missing(id))?;
            state.images.upload(id, request.body.len());
            Ok(Answer::empty(204))
        }
        ("PUT" | "DELETE", ["v2", "images", id, "tags", tag]) => {
            state.images.find(scope, id).ok_or_else(|| missing(id))?;
            let image = state.images.images.get_mut(id).ok_or_else(|| missing(id))?;
            let mut tags: Vec<String> = texts(image, "tags").filter(|own| own != tag).map(str::to_owned).collect();
            if method == "PUT" {
                tags.push((*tag).to_owned());
            }
            image["tags"] = json!(tags);
            Ok(Answer::empty(204))
        }
        ("DELETE", ["v2", "images", id]) => {
            let gone = || refused(404, &format!("Failed to find image {id} to delete"));
            let found = state.images.find(scope, id).ok_or_else(gone)?;
            if !scope.owns(found) {
                return Err(refused(403, "You are not authorized to complete delete_image action."));
            }
            state.images.images.remove(id);
            Ok(Answer::empty(204))
        }
        _ => Err(refused(404, "The resource could not be found.")),
    }
}

fn list(cloud: &Cloud, state: &State, scope: &Scope, request: &Request) -> Outcome {
    if let Some(visibility) = request.value("visibility")
        && !matches!(visibility, "public" | "private" | "shared" | "community" | "all")
    {
        return Err(refused(400, &format!("Invalid visibility value: {visibility}")));
    }
    let limit = match request.value("limit").map(str::parse) {
        None => 25usize,
        Some(Ok(limit)) => limit,
        Some(Err(_)) => return Err(refused(400, "limit param must be an integer")),
    };
    const STEERING: [&str; 6] = ["limit", "marker", "sort", "sort_key", "sort_dir", "member_status"];
    let passes = |image: &&Value| {
        request.query.iter().all(|(name, value)| match name.as_str() {
            name if STEERING.contains(&name) => true,
            "tag" => texts(image, "tags").any(|tag| tag == value),
            "visibility" => value == "all" || text(image, "visibility") == value,
            "os_hidden" => image["os_hidden"] == matches!(value.as_str(), "true" | "True"),
            "id" => value.strip_prefix("in:").unwrap_or(value).split(',').any(|id| image["id"] == id),
            name => {
                let one_of = value.strip_prefix("in:");
                match (&image[name], one_of) {
                    (Value::String(own), Some(list)) => list.split(',').any(|one| one.trim_matches('"') == own),
                    (Value::String(own), None) => own == value,
                    (Value::Null, _) => false,
                    (own, _) => own.to_string().eq_ignore_ascii_case(value),
                }
            }
        })
    };
    let hidden = request.value("os_hidden").is_some();
    let mut found: Vec<Value> = state
        .images
        .images
        .iter()
        .rev()
        .filter(|image| visible(scope, image) && (hidden || image["os_hidden"] == false))
        .filter(passes)
        .map(view)
        .collect();
    if let Some(marker) = request.value("marker").filter(|marker| cloud.is_id(marker)) {
        let place = found.iter().position(|image| text(image, "id") == marker);
        let place = place.ok_or_else(|| refused(400, &format!("No image found with ID {marker}")))?;
        found.drain(..=place);
    }
    let question = if request.raw_query.is_empty() { "" } else { "?" };
    let first = format!("/v2/images{question}{}", request.raw_query);
    let mut body = json!({ "first": first, "schema": "/v2/schemas/images" });
    if found.len() > limit {
        found.truncate(limit);
        let last = found.last().map(|image| text(image, "id").to_owned()).unwrap_or_default();
        let kept = request.query.iter().filter(|(name, _)| name != "marker");
        let query =
            form_urlencoded::Serializer::new(String::new()).append_pair("marker", &last).extend_pairs(kept).finish();
        body["next"] = json!(format!("/v2/images?{query}"));
    }
    body["images"] = json!(found);
    Ok(Answer::json(200, &body))
}
