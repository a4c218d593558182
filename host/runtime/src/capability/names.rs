//! Names that a guest gives. Each becomes one segment of a URL's path, and has to stay one: `x?y=-ca` fits a grant of `*-ca`
//! and would open `x`, and the namespace `a/secrets/b?c=` would turn a read of Pods into one of a Secret.

use capwasm_contract::{ObjectRef, Refused, Selection};

/// Longest name of an object or a group in bytes.
const LONGEST: usize = 253;

/// Checks a name: no Kubernetes object has any other.
pub(crate) fn name(name: &str) -> Result<(), Refused> {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'%' | b'?' | b'#' | b'\\');
    if name.is_empty() || name.len() > LONGEST || name == "." || name == ".." || !name.bytes().all(plain) {
        let shown: String = name.chars().take(64).collect();
        return Err(Refused::invalid("BadName", format!("{shown:?} is not the name of an object")));
    }
    Ok(())
}

/// Checks a namespace, which may be absent.
pub(crate) fn namespace(namespace: Option<&str>) -> Result<(), Refused> {
    match namespace {
        None | Some("") => Ok(()),
        Some(namespace) => name(namespace),
    }
}

/// Checks `v1`, `group/version` or `group/`, whose parts become segments of a path as well.
pub(crate) fn api_version(text: &str) -> Result<(), Refused> {
    let plain = |part: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
        !part.is_empty() && part.len() <= LONGEST && part.bytes().all(allowed) && !part.split('.').any(str::is_empty)
    };
    let good = match text.split_once('/') {
        None => plain(text),
        Some((group, version)) => plain(group) && (version.is_empty() || plain(version)),
    };
    if good {
        return Ok(());
    }
    let shown: String = text.chars().take(64).collect();
    Err(Refused::invalid("BadName", format!("{shown:?} is no apiVersion; expected version, group/version or group/")))
}

/// Checks all parts of a reference.
pub(crate) fn object(target: &ObjectRef) -> Result<(), Refused> {
    api_version(&target.api_version)?;
    namespace(target.namespace.as_deref())?;
    name(&target.name)
}

/// Memory that a requirement of a selector takes besides its text, wherever the host remembers it.
const REQUIREMENT: usize = 192;

/// Bytes of what a list is remembered by. A requirement of a selector takes a hundred times its shortest text.
pub(crate) fn bytes_of_list(of: &Selection) -> usize {
    let requirements = 1 + of.labels.bytes().filter(|byte| *byte == b',').count();
    of.bytes() + REQUIREMENT * requirements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_segment_of_a_path() {
        for good in ["a", "kube-system", "etcd-n1.example.org", "system:node:x", "a..b", "x_y~z", "CamelCase"] {
            assert_eq!(name(good), Ok(()), "{good}");
            assert_eq!(namespace(Some(good)), Ok(()), "{good}");
        }
        let (longest, longer) = ("a".repeat(LONGEST), "a".repeat(LONGEST + 1));
        assert!(name(&longest).is_ok() && name(&longer).is_err() && api_version(&format!("{longer}/v1")).is_err());
        for bad in ["", ".", "..", "a/b", "a/../b", "a?b=-ca", "a#b", "a%2fb", "a\\b", "a b", "a\nb", "ä"] {
            assert!(name(bad).is_err(), "{bad}");
        }
        assert_eq!((namespace(None), namespace(Some(""))), (Ok(()), Ok(())));
    }

    #[test]
    fn an_api_version_is_a_group_and_a_version_and_no_path() {
        for good in ["v1", "apps/v1", "infrastructure.cluster.x-k8s.io/v1beta2", "cluster.x-k8s.io/"] {
            assert_eq!(api_version(good), Ok(()), "{good}");
        }
        let bad = [
            "",
            "/",
            "/v1",
            "..",
            ".",
            "apps/..",
            "../v1",
            "apps/v1/",
            "apps/v1/..",
            "apps/v1/../../api/v1",
            "apps/v1/namespaces/other/secrets?x=",
            "v1?x",
            "v1#x",
            "apps/v1%2f",
            "apps/v 1",
            "apps\\v1",
            "äpps/v1",
        ];
        for bad in bad {
            assert!(api_version(bad).is_err(), "{bad}");
        }
    }
}
