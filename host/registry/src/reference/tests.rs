use super::*;

const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[test]
fn every_part_of_a_reference_is_told_apart() {
    let table: &[(&str, &str, &str, Option<&str>, bool)] = &[
        ("ghcr.io/a/b:1.0", "ghcr.io", "a/b", Some("1.0"), false),
        ("oci://ghcr.io/a/b:1.0", "ghcr.io", "a/b", Some("1.0"), false),
        ("localhost/a:x", "localhost", "a", Some("x"), false),
        ("registry:5000/a:x", "registry:5000", "a", Some("x"), false),
        ("[::1]:5000/a:x", "[::1]:5000", "a", Some("x"), false),
        ("127.0.0.1:5000/a-b__c.d/e:x_Y-1.z", "127.0.0.1:5000", "a-b__c.d/e", Some("x_Y-1.z"), false),
        ("host.example/a--b@DIGEST", "host.example", "a--b", None, true),
        ("host.example/a:tag@DIGEST", "host.example", "a", Some("tag"), true),
    ];
    for (text, registry, repository, tag, digest) in table {
        let text = text.replace("DIGEST", DIGEST);
        let reference: Reference = text.parse().expect(&text);
        assert_eq!(reference.registry(), *registry, "{text}");
        assert_eq!(reference.repository(), *repository, "{text}");
        assert_eq!(reference.tag(), *tag, "{text}");
        assert_eq!(reference.digest().is_some(), *digest, "{text}");
        assert_eq!(reference.to_string(), text.trim_start_matches("oci://"), "what is written is what was read");
        assert_eq!(matches!(reference.version(), Version::Digest(_)), *digest, "{text}: the digest wins");
    }
}

#[test]
fn what_names_no_artifact_is_refused_with_the_part_that_is_wrong() {
    use ReferenceError as E;
    type Is = fn(&E) -> bool;
    let no_registry: Is = |error| matches!(error, E::NoRegistry(_));
    let bad_registry: Is = |error| matches!(error, E::BadRegistry(_));
    let bad_repository: Is = |error| matches!(error, E::BadRepository(_));
    let bad_tag: Is = |error| matches!(error, E::BadTag(_));
    let table: &[(&str, Is)] = &[
        ("", no_registry),
        ("provider:1.0", no_registry),
        ("organisation/provider:1.0", no_registry),
        ("user@host.example/a:x", |error| matches!(error, E::BadDigest(_))),
        ("host.example:99999/a:x", bad_registry),
        ("host.example:+80/a:x", bad_registry),
        ("host.example:/a:x", bad_registry),
        ("-host.example/a:x", bad_registry),
        ("host..example/a:x", bad_registry),
        ("[::1/a:x", bad_registry),
        ("[evil.example]/a:x", bad_registry),
        ("host.example/:x", bad_repository),
        ("host.example/A:x", bad_repository),
        ("host.example/a//b:x", bad_repository),
        ("host.example/../v2:x", bad_repository),
        ("host.example/a___b:x", bad_repository),
        ("host.example/a?b:x", bad_repository),
        ("host.example/a%2fb:x", bad_repository),
        ("host.example/a:", bad_tag),
        ("host.example/a:.x", bad_tag),
        ("host.example/a:x/y", bad_tag),
        ("host.example/a:x y", bad_tag),
        ("host.example/a", |error| matches!(error, E::NoVersion(_))),
        ("host.example/a@sha512:00", |error| matches!(error, E::BadDigest(_))),
    ];
    for (text, expected) in table {
        let error = text.parse::<Reference>().expect_err(text);
        assert!(expected(&error), "{text}: {error:?}");
    }
    assert_eq!(format!("host.example/{}:x", "a".repeat(800)).parse::<Reference>(), Err(E::TooLong));
}

#[test]
fn a_reference_moves_to_another_registry() {
    let reference: Reference = "ghcr.io/a/b:1.0".parse().unwrap();
    assert_eq!(reference.below("mirror.example:5000").unwrap().to_string(), "mirror.example:5000/a/b:1.0");
    assert_eq!(reference.below("mirror.example/ghcr/").unwrap().to_string(), "mirror.example/ghcr/a/b:1.0");
    assert!(reference.below("mirror").is_err());
    assert_eq!(reference.pinned(&DIGEST.parse().unwrap()).to_string(), format!("ghcr.io/a/b@{DIGEST}"));
}

#[test]
fn loopback_is_known_by_name_and_address() {
    for (registry, loopback) in [
        ("localhost:5000", true),
        ("127.0.0.2:1", true),
        ("[::1]:5000", true),
        ("localhost.evil.example", false),
        ("10.0.0.1:80", false),
    ] {
        let reference: Reference = format!("{registry}/a:x").parse().unwrap();
        assert_eq!(reference.is_loopback(), loopback, "{registry}");
    }
}

/// Whatever is accepted is written as it was read, and leads nowhere but to its repository.
#[test]
fn random_texts_are_refused_or_come_back_as_they_were() {
    const STARTS: [&str; 4] = ["localhost/a", "[::1]:5000/a", "host.example/", ""];
    const PIECES: [&str; 18] =
        ["a", "Z", "0", ".", "..", "_", "-", ":", ":b", "/", "//", "@", "@sha256:", "%2e", "?", "#", "\\", "é"];
    let mut state = 1_u64;
    let mut random = |below: usize| {
        // Knuth's MMIX; its upper half is good enough to choose by.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let mut accepted = 0;
    for _ in 0..20_000 {
        let mut text = STARTS[random(STARTS.len())].to_owned();
        for _ in 0..random(8) {
            text += PIECES[random(PIECES.len())];
        }
        if random(8) == 0 {
            text += &format!("@{DIGEST}");
        }
        let Ok(reference) = text.parse::<Reference>() else { continue };
        accepted += 1;
        assert_eq!(reference.to_string(), text);
        let path = format!("/v2/{}/manifests/{}", reference.repository(), reference.version());
        let uri: http::Uri = path.parse().expect("a reference makes a path");
        assert_eq!((uri.path(), uri.query()), (path.as_str(), None));
        assert!(path.split('/').all(|part| part != "." && part != ".."), "{path}");
    }
    assert!(accepted > 200, "{accepted} of the texts were references: too few to say anything");
}

#[test]
fn a_reference_comes_back_as_it_was_written_and_mirrors_keep_what_it_names() {
    const PARTS: [&str; 16] = [
        "ghcr.io",
        "localhost",
        "[::1]",
        ":5000",
        "/",
        "a",
        "b-c",
        "..",
        "_",
        "__",
        ".",
        ":",
        "1.0",
        "@",
        DIGEST,
        "oci://",
    ];
    arbtest::arbtest(|u| {
        let parts =
            u.arbitrary_iter::<u8>()?.take(12).map(|byte| byte.map(|byte| PARTS[usize::from(byte) % PARTS.len()]));
        let text = parts.collect::<arbitrary::Result<String>>()?;
        for text in [text.clone(), format!("ghcr.io/{text}"), format!("ghcr.io/a:{text}")] {
            let Ok(reference) = text.parse::<Reference>() else { continue };
            assert_eq!(reference.to_string(), text.strip_prefix("oci://").unwrap_or(&text));
            assert_eq!(reference.to_string().parse(), Ok(reference.clone()));
            assert!(reference.repository().split('/').all(|part| !["", ".", ".."].contains(&part)), "{reference}");
            if let Ok(mirrored) = reference.below("mirror.example:5000/all") {
                assert_eq!((mirrored.tag(), mirrored.digest()), (reference.tag(), reference.digest()));
                assert_eq!(mirrored.repository(), format!("all/{}", reference.repository()));
            }
        }
        Ok(())
    })
    .budget_ms(300);
}
