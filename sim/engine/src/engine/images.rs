//! Images: names only. `kindest/*` and `capwasm/*` can be pulled, nothing else exists.

use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::journal::Change;
use super::record::{ImageRecord, Role, encode};
use super::{Engine, Refused};

/// Repositories that can be pulled.
const KNOWN: [&str; 2] = ["kindest/", "capwasm/"];

/// An image name taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Without the registry of Docker's own hub.
    pub repository: String,
    /// `latest` when none is given.
    pub tag: String,
}

impl Reference {
    /// Parses `repository[:tag][@digest]`; an explicit tag wins.
    pub fn parse(image: &str, tag: Option<&str>) -> Reference {
        let name = image.split('@').next().unwrap_or_default();
        let (repository, given) = match name.rsplit_once(':') {
            Some((repository, tag)) if !tag.contains('/') => (repository, tag),
            _ => (name, "latest"),
        };
        let repository = ["index.docker.io/", "docker.io/"]
            .iter()
            .find_map(|host| repository.strip_prefix(host))
            .unwrap_or(repository);
        let tag = tag.filter(|tag| !tag.is_empty() && !tag.starts_with("sha256:")).unwrap_or(given);
        Reference { repository: repository.to_owned(), tag: tag.to_owned() }
    }

    pub fn name(&self) -> String {
        format!("{}:{}", self.repository, self.tag)
    }

    /// What a container of it is.
    pub fn role(&self) -> Role {
        if self.repository.rsplit('/').next() == Some("haproxy") { Role::Balancer } else { Role::Node }
    }

    /// The Kubernetes version in its tag.
    pub fn version(&self) -> Option<String> {
        let version = capwasm_sim_node::kubeadm::config::Version::parse(&self.tag).ok()?;
        (self.role() == Role::Node).then_some(version.text)
    }
}

impl Engine {
    /// The image of a container to be created.
    pub(super) fn image(&self, image: &str) -> Result<(Reference, ImageRecord), Refused> {
        let reference = Reference::parse(image, None);
        let found = self.state.lock().images.get(&reference.name()).cloned();
        found
            .map(|found| (reference.clone(), found))
            .ok_or_else(|| Refused::new(404, format!("No such image: {}", reference.name())))
    }

    /// `GET /images/{name}/json`.
    pub(super) fn inspect_image(&self, name: &str) -> Result<Value, Refused> {
        let state = self.state.lock();
        let by_name = Reference::parse(name, None).name();
        let found =
            state.images.get_key_value(&by_name).or_else(|| state.images.iter().find(|(_, image)| image.id == name));
        let (name, image) = found.ok_or_else(|| Refused::new(404, format!("No such image: {by_name}")))?;
        Ok(json!({
            "Id": image.id, "RepoTags": [name], "RepoDigests": [], "Created": image.created.to_string(), "Size": 0, "VirtualSize": 0,
            "Architecture": std::env::consts::ARCH, "Os": "linux", "Comment": super::NAME, "Config": {}, "Parent": "",
            "RootFS": { "Type": "layers", "Layers": [] },
        }))
    }

    /// `GET /images/{name}/get`: an archive that names the image and holds nothing else.
    pub(super) fn export_image(&self, name: &str) -> Result<Vec<u8>, Refused> {
        let (reference, image) = self.image(name)?;
        let digest = image.id.trim_start_matches("sha256:");
        let manifest =
            json!([{ "Config": format!("{digest}.json"), "RepoTags": [reference.name()], "Layers": [] }]).to_string();
        let config = json!({ "os": "linux", "comment": super::NAME, "rootfs": { "type": "layers", "diff_ids": [] } })
            .to_string();
        let mut builder = tar::Builder::new(Vec::new());
        for (path, content) in [("manifest.json".to_owned(), manifest), (format!("{digest}.json"), config)] {
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o644);
            header.set_size(content.len() as u64);
            builder.append_data(&mut header, path, content.as_bytes()).map_err(Refused::internal)?;
        }
        builder.into_inner().map_err(Refused::internal)
    }

    /// `GET /images/json`.
    pub(super) fn list_images(&self) -> Value {
        let state = self.state.lock();
        let list = state.images.iter().map(|(name, image)| {
            json!({
                "Id": image.id, "RepoTags": [name], "RepoDigests": [], "Created": image.created.as_second(), "Size": 0, "VirtualSize": 0,
                "SharedSize": -1, "Containers": -1, "Labels": null, "ParentId": "",
            })
        });
        Value::Array(list.collect())
    }

    /// `POST /images/create?fromImage=&tag=`: the progress messages of a pull.
    pub(super) async fn pull(&self, image: &str, tag: Option<&str>) -> Result<String, Refused> {
        let reference = Reference::parse(image, tag);
        if !KNOWN.iter().any(|known| reference.repository.starts_with(known)) {
            return Err(Refused::new(
                404,
                format!(
                    "pull access denied for {}, repository does not exist or may require 'docker login': denied: requested access to the resource is denied",
                    reference.repository
                ),
            ));
        }
        let name = reference.name();
        let id = format!("sha256:{}", hex::encode(Sha256::digest(name.as_bytes())));
        let record = ImageRecord { id, created: Timestamp::now() };
        let existed = self.state.lock().images.contains_key(&name);
        if !existed {
            self.journal.commit(vec![Change::Put(format!("image/{name}"), encode(&record))]).await?;
            self.state.lock().images.insert(name.clone(), record.clone());
        }
        let done = if existed { "Image is up to date" } else { "Downloaded newer image" };
        let messages = [
            json!({ "status": format!("Pulling from {}", reference.repository), "id": reference.tag }),
            json!({ "status": format!("Digest: {}", record.id) }),
            json!({ "status": format!("Status: {done} for {name} (simulated)") }),
        ];
        Ok(messages.iter().map(|message| format!("{message}\r\n")).collect())
    }

    /// `DELETE /images/{name}`.
    pub(super) async fn remove_image(&self, name: &str) -> Result<Value, Refused> {
        let name = Reference::parse(name, None).name();
        let image = self
            .state
            .lock()
            .images
            .get(&name)
            .cloned()
            .ok_or_else(|| Refused::new(404, format!("No such image: {name}")))?;
        self.journal.commit(vec![Change::Remove(format!("image/{name}"))]).await?;
        self.state.lock().images.remove(&name);
        Ok(json!([{ "Untagged": name }, { "Deleted": image.id }]))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn names_are_taken_apart_as_docker_does() {
        for (image, tag, expected) in [
            ("kindest/node:v1.34.0", None, "kindest/node:v1.34.0"),
            ("kindest/node", None, "kindest/node:latest"),
            ("kindest/node", Some("v1.34.0"), "kindest/node:v1.34.0"),
            ("docker.io/kindest/node:v1.34.0@sha256:ab", None, "kindest/node:v1.34.0"),
            ("localhost:5000/a", None, "localhost:5000/a:latest"),
        ] {
            assert_eq!(Reference::parse(image, tag).name(), expected);
        }
        assert_eq!(Reference::parse("kindest/node:v1.34.0", None).version().as_deref(), Some("v1.34.0"));
        assert_eq!(Reference::parse("kindest/haproxy:v20230606-42a2262b", None).role(), Role::Balancer);
        assert_eq!(Reference::parse("kindest/haproxy:v1.2.3", None).version(), None);
    }
}
