//! Names of artifacts: they come back as they were written, and each part stays one segment of a URL or a folder.
//!
//! Input: lines of text; a reference, and a prefix to mirror it below.

use capwasm_registry::{Digest, Reference, Version};

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (text, prefix) = text.split_once('\n').unwrap_or((text, ""));
    let Some(reference) = read(text) else { return };
    let pinned = reference.pinned(&Digest::of(data));
    assert_eq!((pinned.name(), pinned.tag(), pinned.digest()), (reference.name(), None, Some(&Digest::of(data))));
    read(&pinned.to_string()).unwrap();
    if let Ok(below) = reference.below(prefix) {
        read(&below.to_string()).unwrap();
        assert!(below.repository().ends_with(reference.repository()), "{below} is not {reference} below {prefix:?}");
        assert_eq!((below.tag(), below.digest()), (reference.tag(), reference.digest()));
    }
}

fn read(text: &str) -> Option<Reference> {
    let reference = text.parse::<Reference>().inspect_err(|error| assert!(!error.to_string().is_empty())).ok()?;
    let again: Reference = reference.to_string().parse().unwrap();
    assert_eq!(again, reference);
    assert_eq!(text.strip_prefix("oci://").unwrap_or(text), reference.to_string(), "it is written otherwise");
    let safe = |part: &str| {
        !part.is_empty() && part != "." && part != ".." && !part.contains(['%', '?', '#', '\\', '\0', ' '])
    };
    assert!(reference.repository().split('/').all(safe), "{reference} leaves its folder");
    assert!(reference.tag().is_none_or(|tag| safe(tag) && !tag.contains('/')), "{reference}");
    assert!(!reference.registry().contains(['/', '@', '?', '#', '%', ' ']), "{reference}: the host is not only a host");
    match reference.version() {
        Version::Digest(digest) => assert_eq!(Some(digest), reference.digest()),
        Version::Tag(tag) => assert_eq!((Some(tag), None), (reference.tag(), reference.digest())),
    }
    // What connects to it has to see the same host.
    let _ = reference.is_loopback();
    Some(reference)
}
