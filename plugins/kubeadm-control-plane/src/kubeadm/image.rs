//! Names of container images.

/// `repository/name:tag`; a digest goes with the tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Everything before the last part of the path: `registry.k8s.io/coredns`. Empty when there is none.
    pub repository: String,
    /// The last part of the path: `coredns`.
    pub name: String,
    /// `v1.11.3`; empty when there is none.
    pub tag: String,
}

impl Image {
    /// Parses `registry/path/name:tag`; a digest is left out.
    pub fn parse(text: &str) -> Image {
        let text = text.split_once('@').map_or(text, |(image, _)| image);
        let (repository, rest) = text.rsplit_once('/').unwrap_or(("", text));
        let (name, tag) = rest.split_once(':').unwrap_or((rest, ""));
        Image { repository: repository.to_owned(), name: name.to_owned(), tag: tag.to_owned() }
    }

    /// As a container has it.
    pub fn write(&self) -> String {
        let slash = if self.repository.is_empty() { "" } else { "/" };
        let colon = if self.tag.is_empty() { "" } else { ":" };
        format!("{}{slash}{}{colon}{}", self.repository, self.name, self.tag)
    }
}

/// A version as a tag: `+` has no place there.
pub fn tag_of(version: &str) -> String {
    version.replace('+', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_taken_apart_and_put_together() {
        for (text, repository, name, tag, written) in [
            ("registry.k8s.io/coredns/coredns:v1.11.3", "registry.k8s.io/coredns", "coredns", "v1.11.3", ""),
            ("localhost:5000/kube-proxy:v1", "localhost:5000", "kube-proxy", "v1", ""),
            ("kube-proxy", "", "kube-proxy", "", ""),
            ("r/a:v1@sha256:00", "r", "a", "v1", "r/a:v1"),
        ] {
            let image = Image::parse(text);
            assert_eq!((image.repository.as_str(), image.name.as_str(), image.tag.as_str()), (repository, name, tag));
            assert_eq!(image.write(), if written.is_empty() { text } else { written });
        }
        assert_eq!(tag_of("v1.36.0+k3s1"), "v1.36.0_k3s1");
    }
}
