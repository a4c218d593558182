//! Signed payloads in the "simple signing" format of Red Hat, as cosign writes it.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

const TYPE: &str = "cosign container image signature";

#[derive(Serialize, Deserialize)]
struct Payload {
    critical: Critical,
    /// Annotations of the signer, or `null`.
    #[serde(default)]
    optional: Option<serde_json::Value>,
}

#[derive(Serialize, Deserialize)]
struct Critical {
    identity: Identity,
    image: Image,
    #[serde(rename = "type")]
    kind: String,
}

/// Not compared: artifacts are mirrored, and the digest identifies them.
#[derive(Serialize, Deserialize)]
struct Identity {
    #[serde(rename = "docker-reference")]
    docker_reference: String,
}

#[derive(Serialize, Deserialize)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    docker_manifest_digest: String,
}

/// Payload for a manifest in the repository `name`.
pub(crate) fn write(name: &str, digest: &Digest) -> String {
    let payload = Payload {
        critical: Critical {
            identity: Identity { docker_reference: name.to_owned() },
            image: Image { docker_manifest_digest: digest.to_string() },
            kind: TYPE.to_owned(),
        },
        optional: None,
    };
    serde_json::json!(payload).to_string()
}

/// Checks that the payload names the manifest. The error says what it names instead.
pub(crate) fn names(text: &[u8], digest: &Digest) -> Result<(), String> {
    let payload: Payload =
        serde_json::from_slice(text).map_err(|error| format!("what was signed cannot be read: {error}"))?;
    if payload.critical.kind != TYPE {
        return Err(format!("what was signed is a {:?}", payload.critical.kind));
    }
    let found = payload.critical.image.docker_manifest_digest;
    if found == digest.as_str() { Ok(()) } else { Err(format!("the trusted key signed {found:?}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_cosigns_own() {
        let digest = Digest::of(b"");
        let text = write("ghcr.io/a/b", &digest);
        assert_eq!(
            text,
            format!(
                "{{\"critical\":{{\"identity\":{{\"docker-reference\":\"ghcr.io/a/b\"}},\"image\":\
                 {{\"docker-manifest-digest\":\"{digest}\"}},\"type\":\"{TYPE}\"}},\"optional\":null}}"
            )
        );
        names(text.as_bytes(), &digest).unwrap();
        assert!(names(text.as_bytes(), &Digest::of(b"other")).unwrap_err().contains(digest.as_str()));
        assert!(names(text.replace(TYPE, "atomic").as_bytes(), &digest).unwrap_err().contains("atomic"));
        assert!(names(b"{}", &digest).unwrap_err().contains("cannot be read"));
    }
}
