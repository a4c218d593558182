//! A server's volumes: found again by name, made, waited for; and deleted where the server's end did not take them along.

use capwasm_api::time;
use capwasm_sdk::{Context, Problem};
use serde_json::{Map, Value};

use super::spec::{ServerSpec, VolumeSpec};
use super::state;
use crate::cloud::{Cloud, Gone, Service};
use crate::volume::{self, Volume};
use crate::{compute, names};

/// The block device that the server boots from.
pub const ROOT: &str = "root";
/// A volume that was reserved this many seconds ago, for a server that is not there, was reserved in vain.
const VAIN: u64 = 30;

/// A volume that a spec asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Of the block device; `root` for the first.
    pub device: String,
    size_gib: u64,
    kind: String,
    zone: String,
}

/// Volumes of all block devices that are volumes, the root volume first.
pub fn wanted(spec: &ServerSpec) -> Vec<Wanted> {
    let one = |device: &str, size_gib: u64, volume: &VolumeSpec| Wanted {
        device: device.to_owned(),
        size_gib,
        kind: volume.kind.clone(),
        zone: zone(volume, &spec.availability_zone),
    };
    let root =
        spec.root_volume.iter().filter(|root| root.size_gib > 0).map(|root| one(ROOT, root.size_gib, &root.volume));
    let others = spec.additional_block_devices.iter().filter(|device| device.storage.kind == "Volume");
    root.chain(others.map(|device| one(&device.name, device.size_gib, &device.storage.volume))).collect()
}

fn zone(volume: &VolumeSpec, of_server: &str) -> String {
    match &volume.availability_zone {
        None => String::new(),
        Some(zone) if zone.from == "Machine" => of_server.to_owned(),
        Some(zone) => zone.name.clone(),
    }
}

/// Makes the volumes that are not there. None until all can be used.
pub fn ensure(
    cx: &mut Context<'_>,
    cloud: &Cloud<'_>,
    server: &str,
    wanted: &[Wanted],
    image: &str,
) -> Result<Option<Vec<Volume>>, Problem> {
    let mut volumes = Vec::with_capacity(wanted.len());
    for wanted in wanted {
        let name = names::volume(server, &wanted.device);
        let volume = match existing(cloud, &name)? {
            Some(volume) => volume,
            None => {
                let volume =
                    volume::create_volume(cloud, &body(server, &name, wanted, image)).inspect_err(|failure| {
                        cx.out.warning("FailedCreateVolume", format!("Failed to create volume {name}: {failure}"));
                    })?;
                cx.out.event("SuccessfulCreateVolume", format!("Created volume {name} with id {}", volume.id));
                volume
            }
        };
        if volume.size != wanted.size_gib {
            let message = format!("the volume {name} has {} GiB and should have {}", volume.size, wanted.size_gib);
            return Err(Problem::invalid("VolumeMismatch", message));
        }
        if volume.status.starts_with("error") {
            let message =
                format!("the volume {name} is in the state {}; delete the machine to try again", volume.status);
            return Err(Problem::terminal("VolumeError", message));
        }
        volumes.push(volume);
    }
    if volumes.iter().all(|volume| volume.status == "available") {
        return Ok(Some(volumes));
    }
    for volume in &volumes {
        unreserve(cx, cloud, volume)?;
        cx.out.wake_after(state::patience(age(cx, volume)));
    }
    Ok(None)
}

/// Seconds since something happened to a volume.
fn age(cx: &Context<'_>, volume: &Volume) -> u64 {
    // Cinder means UTC without saying so.
    let since = volume.updated_at.as_deref().unwrap_or(&volume.created_at).trim_end_matches('Z');
    time::parse(&format!("{since}Z")).map_or(0, |since| (cx.host.now_ms() / 1_000).saturating_sub(since))
}

/// Nova reserves volumes before it has checked all else, and forgets them when it then refuses the server. Nobody else can
/// have such a volume, nor delete it, until its claim is given up.
fn unreserve(cx: &mut Context<'_>, cloud: &Cloud<'_>, volume: &Volume) -> Result<(), Problem> {
    if volume.status != "reserved" || age(cx, volume) < VAIN {
        return Ok(());
    }
    for attachment in volume::attachments(cloud, &volume.id)? {
        let server = attachment.instance.as_deref().unwrap_or_default();
        let is_vain =
            attachment.status == "reserved" && (server.is_empty() || compute::server(cloud, server)?.is_none());
        if is_vain {
            volume::delete_attachment(cloud, &attachment.id)?;
            let message = format!("volume {} was reserved for a server that Nova refused", volume.id);
            cx.out.event("VolumeReleased", message);
        }
    }
    Ok(())
}

fn existing(cloud: &Cloud<'_>, name: &str) -> Result<Option<Volume>, Problem> {
    let mut found = volume::volumes_named(cloud, name)?;
    if found.len() > 1 {
        let message = format!("there are {} volumes named {name}; delete those that nothing uses", found.len());
        return Err(Problem::invalid("DuplicateVolumeNames", message));
    }
    Ok(found.pop())
}

fn body(server: &str, name: &str, wanted: &Wanted, image: &str) -> Value {
    let mut body = Map::new();
    let is_root = wanted.device == ROOT;
    let what = if is_root { "Root volume" } else { "Additional block device" };
    body.insert("name".to_owned(), name.into());
    body.insert("description".to_owned(), format!("{what} for {server}").into());
    body.insert("size".to_owned(), wanted.size_gib.into());
    let optional = [
        ("imageRef", if is_root { image } else { "" }),
        ("volume_type", wanted.kind.as_str()),
        ("availability_zone", wanted.zone.as_str()),
    ];
    for (field, value) in optional.into_iter().filter(|(_, value)| !value.is_empty()) {
        body.insert(field.to_owned(), value.into());
    }
    Value::Object(body)
}

/// Deletes what is left of the volumes of a server that is gone. True when nothing is.
pub fn delete(cx: &mut Context<'_>, cloud: &Cloud<'_>, server: &str, wanted: &[Wanted]) -> Result<bool, Problem> {
    // Where Cinder is not, no volume ever was.
    if wanted.is_empty() || !cloud.offers(Service::Volume) {
        return Ok(true);
    }
    let mut all_gone = true;
    for wanted in wanted {
        for volume in volume::volumes_named(cloud, &names::volume(server, &wanted.device))? {
            all_gone = false;
            unreserve(cx, cloud, &volume)?;
            cx.out.wake_after(state::patience(age(cx, &volume)));
            // Nova detaches and deletes those that the server had.
            if !is_busy(&volume.status) && volume::delete_volume(cloud, &volume.id)? == Gone::Now {
                cx.out.event("SuccessfulDeleteVolume", format!("Deleted volume with id {}", volume.id));
            }
        }
    }
    Ok(all_gone)
}

fn is_busy(status: &str) -> bool {
    matches!(
        status,
        "deleting" | "creating" | "downloading" | "in-use" | "attaching" | "detaching" | "reserved" | "uploading"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use serde::Deserialize as _;
    use serde_json::json;

    fn spec(value: Value) -> ServerSpec {
        ServerSpec::deserialize(value).unwrap()
    }

    #[test]
    fn volumes_follow_from_the_block_devices() {
        let spec = spec(json!({
            "availabilityZone": "az1",
            "rootVolume": {"sizeGiB": 20, "type": "fast", "availabilityZone": {"from": "Machine"}},
            "additionalBlockDevices": [
                {"name": "scratch", "sizeGiB": 5, "storage": {"type": "Local"}},
                {"name": "etcd", "sizeGiB": 1, "storage": {"type": "Volume", "volume": {"type": "slow", "availabilityZone": {"name": "az9"}}}},
                {"name": "data", "sizeGiB": 2, "storage": {"type": "Volume"}},
            ],
        }));
        let wanted = wanted(&spec);
        let bodies: Vec<Value> =
            wanted.iter().map(|one| body("m", &names::volume("m", &one.device), one, "i1")).collect();
        assert_eq!(
            bodies,
            [
                json!({"name": "m-root", "description": "Root volume for m", "size": 20, "imageRef": "i1", "volume_type": "fast", "availability_zone": "az1"}),
                json!({"name": "m-etcd", "description": "Additional block device for m", "size": 1, "volume_type": "slow", "availability_zone": "az9"}),
                json!({"name": "m-data", "description": "Additional block device for m", "size": 2}),
            ]
        );
    }

    #[test]
    fn without_a_root_volume_there_is_none() {
        assert!(wanted(&spec(json!({"rootVolume": {"sizeGiB": 0}}))).is_empty());
        assert!(wanted(&spec(json!({}))).is_empty());
    }
}
