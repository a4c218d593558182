//! The load balancer's container: what to do about it, how it is made, what it holds.

use capwasm_sdk::{Context, Problem, object};
use serde_json::{Value, json};

use super::{Subject, names_it};
use crate::engine::{Container, Creation, Engine, EngineError};
use crate::family::Family;
use crate::haproxy::{DIRECTORY, FILE};
use crate::kinds::{CLUSTER_LABEL, LoadBalancerSpec, ROLE_LABEL};
use crate::tar::{self, Attributes};
use crate::{network, ownership};

/// What to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// There is none: make it.
    Create,
    Configure {
        id: String,
        /// haproxy runs, and has to reload the file.
        reload: bool,
    },
    /// It has its file and does not run.
    Start(String),
    /// The engine is busy with it: `restarting` or `removing`.
    Wait(String),
    /// It runs with the wanted file.
    Use { id: String, address: String },
    /// It must not be touched.
    Refuse(Problem),
}

/// Decides from what the engine shows; `known` is the fingerprint of what the container's file holds, `wanted` that of
/// what it should hold.
pub fn decide(subject: &Subject<'_>, found: Option<&Container>, known: Option<&str>, wanted: &str) -> Act {
    let Some(container) = found else { return Act::Create };
    let network = &subject.configuration.network;
    if !ownership::is_ours(container, subject.object, names_it(container, &subject.spec, network)) {
        let message =
            format!("a container named {} exists that was not made for this DockerCluster; remove it", subject.name);
        return Act::Refuse(Problem::terminal("ContainerNameTaken", message));
    }
    let id = container.id.clone();
    match (container.state.status.as_str(), known) {
        // Also when nobody remembers what it was told last.
        ("running", known) if known != Some(wanted) => Act::Configure { id, reload: true },
        // Without a reload what lies there is read at the start, so that writing it again is as good as looking.
        // One that does not stay up may do so with another file.
        ("created" | "exited" | "restarting", known) if known != Some(wanted) => Act::Configure { id, reload: false },
        ("created" | "exited", _) => Act::Start(id),
        ("running", _) => match address(subject, container) {
            Some(address) => Act::Use { id, address: address.to_owned() },
            None => Act::Refuse(Problem::terminal("LoadBalancerWithoutAddress", without_address(subject))),
        },
        (state @ ("restarting" | "removing"), _) => Act::Wait(state.to_owned()),
        // Paused by a person, or dead: nothing that goes by soon.
        (state, _) => {
            let message = format!("container {} is {state}", subject.name);
            Act::Refuse(Problem::transient("LoadBalancerNotRunning", message))
        }
    }
}

/// Where the load balancer listens: at its address of the cluster's first family.
pub fn address<'a>(subject: &Subject<'_>, container: &'a Container) -> Option<&'a str> {
    crate::family::address(container, subject.families.first(), &subject.configuration.network)
}

fn without_address(subject: &Subject<'_>) -> String {
    let family = if subject.families.first() == Family::V6 { "IPv6" } else { "IPv4" };
    format!(
        "container {} has no {family} address in the network {}; remove it, or let the engine give addresses of that family",
        subject.name, subject.configuration.network
    )
}

/// Makes network and container. Whoever was quicker is looked at by the caller.
pub fn create(cx: &mut Context<'_>, subject: &Subject<'_>, engine: &Engine<'_>) -> Result<(), Problem> {
    let image = image(&subject.configuration.images.load_balancer, &subject.spec.load_balancer);
    network::ensure(engine, &subject.configuration.network, &subject.families)?;
    engine.ensure_image(&image)?;
    let made = engine.create(&subject.name, &body(subject, &image)).map_err(ownership::unanswered)?;
    if made == Creation::Created {
        cx.out.event("LoadBalancerCreated", format!("created container {} from {image}", subject.name));
    }
    Ok(())
}

/// Starts it. The network may have gone with another cluster since the container was made.
pub fn start(subject: &Subject<'_>, engine: &Engine<'_>, id: &str) -> Result<(), Problem> {
    match engine.start(id) {
        Err(error) if error.is_not_found() => {
            network::ensure(engine, &subject.configuration.network, &subject.families)
        }
        other => Ok(other?),
    }
}

fn body(subject: &Subject<'_>, image: &str) -> Value {
    let network = &subject.configuration.network;
    let mut labels = ownership::labels(subject.object);
    labels.insert(CLUSTER_LABEL.to_owned(), Value::from(subject.cluster.as_str()));
    labels.insert(ROLE_LABEL.to_owned(), Value::from("external-load-balancer"));
    let mut body = json!({
        "Hostname": subject.name,
        "Image": image,
        "Labels": labels,
        "HostConfig": {"NetworkMode": network, "RestartPolicy": {"Name": "unless-stopped"}},
        "NetworkingConfig": {"EndpointsConfig": {network: {}}},
    });
    object::merge(
        &mut body,
        &crate::ports::published(subject.port(), &subject.configuration.publish, &subject.families),
    );
    object::merge(&mut body, &crate::ports::sysctls(&subject.families));
    body
}

/// The configured image, with the object's own registry path or tag.
fn image(configured: &str, wanted: &LoadBalancerSpec) -> String {
    let (path, tag) = match configured.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, tag),
        _ => (configured, "latest"),
    };
    let name = path.rsplit('/').next().unwrap_or(path);
    let path = match wanted.image_repository.as_str() {
        "" => path.to_owned(),
        repository => format!("{repository}/{name}"),
    };
    let tag = if wanted.image_tag.is_empty() { tag } else { &wanted.image_tag };
    format!("{path}:{tag}")
}

pub fn write(engine: &Engine<'_>, id: &str, file: &str) -> Result<(), EngineError> {
    let mut archive = tar::Writer::default();
    archive.file(FILE, Attributes::root(0o644), file.as_bytes());
    engine.put_archive(id, DIRECTORY, archive)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::config::Configuration;
    use crate::family::Families;
    use crate::kinds::{ClusterSpec, EndpointSpec, TemplateRef};
    use crate::kinds::{OBJECT_LABEL, UID_LABEL};
    use serde_json::from_value;

    fn container(state: &str, uid: &str, ip: &str) -> Container {
        from_value(json!({
            "Id": "id", "State": {"Status": state},
            "Config": {"Labels": {UID_LABEL: uid, OBJECT_LABEL: "DockerCluster/ns/quick"}},
            "NetworkSettings": {"Networks": {"kind": {"IPAddress": ip}}},
        }))
        .unwrap()
    }

    #[test]
    fn the_next_act_follows_from_what_the_engine_shows() {
        let object: Value =
            json!({"kind": "DockerCluster", "metadata": {"uid": "u", "namespace": "ns", "name": "quick"}});
        let mut subject = Subject {
            object: &object,
            spec: ClusterSpec::default(),
            cluster: "quick".to_owned(),
            name: "quick-lb".to_owned(),
            families: Families::default(),
            configuration: Configuration::default(),
        };
        let id = || "id".to_owned();
        let table = [
            ("none", None, None, Act::Create),
            ("fresh", Some(container("created", "u", "")), None, Act::Configure { id: id(), reload: false }),
            ("fresh, configured", Some(container("created", "u", "")), Some("new"), Act::Start(id())),
            (
                "runs, nobody remembers",
                Some(container("running", "u", "1.1.1.1")),
                None,
                Act::Configure { id: id(), reload: true },
            ),
            (
                "runs, machines changed",
                Some(container("running", "u", "1.1.1.1")),
                Some("old"),
                Act::Configure { id: id(), reload: true },
            ),
            (
                "runs as wanted",
                Some(container("running", "u", "1.1.1.1")),
                Some("new"),
                Act::Use { id: id(), address: "1.1.1.1".to_owned() },
            ),
            ("died", Some(container("exited", "u", "")), Some("new"), Act::Start(id())),
            (
                "died, machines changed",
                Some(container("exited", "u", "")),
                Some("old"),
                Act::Configure { id: id(), reload: false },
            ),
            ("restarting", Some(container("restarting", "u", "")), Some("new"), Act::Wait("restarting".to_owned())),
            (
                "restarting, perhaps because of an old file",
                Some(container("restarting", "u", "")),
                Some("old"),
                Act::Configure { id: id(), reload: false },
            ),
            ("going", Some(container("removing", "u", "")), Some("new"), Act::Wait("removing".to_owned())),
        ];
        for (what, found, known, expected) in table {
            assert_eq!(decide(&subject, found.as_ref(), known, "new"), expected, "{what}");
        }
        assert!(matches!(decide(&subject, Some(&container("paused", "u", "")), None, "new"), Act::Refuse(_)));
        let another = container("running", "other", "1.1.1.1");
        assert!(matches!(decide(&subject, Some(&another), Some("new"), "new"), Act::Refuse(_)));
        subject.spec.control_plane_endpoint = EndpointSpec { host: "1.1.1.1".to_owned(), port: 6443 };
        assert!(matches!(decide(&subject, Some(&another), Some("new"), "new"), Act::Use { .. }), "after a move");
        let elsewhere: Value =
            json!({"kind": "DockerCluster", "metadata": {"uid": "u", "namespace": "other", "name": "quick"}});
        subject.object = &elsewhere;
        assert!(
            matches!(decide(&subject, Some(&another), Some("new"), "new"), Act::Refuse(_)),
            "an endpoint alone proves nothing"
        );
    }

    #[test]
    fn registry_path_and_tag_can_be_set_one_by_one() {
        let wanted = |repository: &str, tag: &str| LoadBalancerSpec {
            image_repository: repository.to_owned(),
            image_tag: tag.to_owned(),
            custom_template: TemplateRef::default(),
        };
        assert_eq!(image("kindest/haproxy:v1", &wanted("", "")), "kindest/haproxy:v1");
        assert_eq!(image("kindest/haproxy:v1", &wanted("r.example:5000/x", "")), "r.example:5000/x/haproxy:v1");
        assert_eq!(image("kindest/haproxy:v1", &wanted("", "v2")), "kindest/haproxy:v2");
        assert_eq!(image("r:5000/haproxy", &wanted("", "")), "r:5000/haproxy:latest");
    }
}
