//! Names that a guest gives. Each becomes one segment of a URL's path, and has to stay one: `x?y=-ca` fits a grant of `*-ca`
//! and would open `x`, and the namespace `a/secrets/b?c=` would turn a read of Pods into one of a Secret.

use crate::outcome::ObjectRef;
use crate::refused::Refused;

/// Whether a name is one: Kubernetes has no object whose name is not.
pub(crate) fn name(name: &str) -> Result<(), Refused> {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'%' | b'?' | b'#' | b'\\');
    if name.is_empty() || name == "." || name == ".." || !name.bytes().all(plain) {
        let shown: String = name.chars().take(64).collect();
        return Err(Refused::invalid("BadName", format!("{shown:?} is not the name of an object")));
    }
    Ok(())
}

/// The same for a namespace, which may be left out.
pub(crate) fn namespace(namespace: Option<&str>) -> Result<(), Refused> {
    match namespace {
        None | Some("") => Ok(()),
        Some(namespace) => name(namespace),
    }
}

/// Both of an object.
pub(crate) fn object(target: &ObjectRef) -> Result<(), Refused> {
    namespace(target.namespace.as_deref())?;
    name(&target.name)
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
        for bad in ["", ".", "..", "a/b", "a/../b", "a?b=-ca", "a#b", "a%2fb", "a\\b", "a b", "a\nb", "ä"] {
            assert!(name(bad).is_err(), "{bad}");
        }
        assert_eq!((namespace(None), namespace(Some(""))), (Ok(()), Ok(())));
    }
}
