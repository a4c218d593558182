//! Providers as artifacts: pushed to a real registry, signed, verified, pulled, moved in a folder; and everything that may be
//! wrong with a registry, an artifact or a signature.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capwasm_tests::binary;
use capwasm_tests::folder::Folder;
use capwasm_tests::management::Management;
use capwasm_tests::objects::{condition, is, text as field};
use capwasm_tests::registry::{PASSWORD, Registry, USER};
use capwasm_tests::{guests, skip};
use serde_json::{Value, json};

/// Of every key in these tests.
const KEY_PASSWORD: &str = "key-password";

/// A folder to work in, with a key pair.
struct Bed {
    folder: Folder,
}

impl Bed {
    fn new() -> Bed {
        let bed = Bed { folder: Folder::new() };
        bed.ok(&["keygen"]);
        bed
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// `capwasm provider …` in the folder.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary::capwasm());
        command.arg("provider").args(arguments).current_dir(self.folder.path());
        command.env("COSIGN_PASSWORD", KEY_PASSWORD).env("DOCKER_CONFIG", self.folder.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// What it says when it refuses, which it does with the exit code of an error.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", text(&output.stdout));
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
        text(&output.stderr)
    }

    /// Pushes the component, and returns the name that always means it.
    fn push(&self, reference: &str, more: &[&str]) -> String {
        let component = component();
        let arguments = [&["push", component.to_str().unwrap(), reference][..], more].concat();
        self.ok(&arguments).trim().to_owned()
    }

    /// The manifest of an artifact, as a registry without TLS has it.
    fn manifest(&self, registry: &Registry, pinned: &str) -> Value {
        let digest = pinned.split_once('@').unwrap().1;
        serde_json::from_slice(&fs::read(registry.stored(digest)).unwrap()).unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The smallest provider there is.
fn component() -> &'static Path {
    static COMPONENT: OnceLock<PathBuf> = OnceLock::new();
    COMPONENT.get_or_init(|| guests::fixture("guest"))
}

/// What `docker login` writes, and what a pull secret holds.
fn docker_config(registry: &Registry, password: &str) -> String {
    let auth = STANDARD.encode(format!("{USER}:{password}"));
    json!({"auths": {registry.address.clone(): {"auth": auth}}}).to_string()
}

fn same(file: &Path) -> bool {
    fs::read(file).unwrap() == fs::read(component()).unwrap()
}

#[test]
fn a_provider_is_pushed_signed_verified_and_pulled() {
    if !skip::registry("a_provider_is_pushed_signed_verified_and_pulled") {
        return;
    }
    let bed = Bed::new();
    let mode = fs::metadata(bed.path("cosign.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "the private key is its owner's");
    assert!(bed.refused(&["keygen"]).contains("is there already"), "a key is never overwritten");
    let registry = Registry::start(&bed.folder);
    let name = registry.reference("team/guest:1.0");
    let pinned = bed.push(&name, &["--annotation", "org.example.built-by=hand"]);
    assert!(pinned.starts_with(&registry.reference("team/guest@sha256:")), "{pinned}");

    let manifest = bed.manifest(&registry, &pinned);
    assert_eq!(manifest["mediaType"], "application/vnd.oci.image.manifest.v1+json");
    assert_eq!(manifest["config"]["mediaType"], "application/vnd.wasm.config.v0+json");
    assert_eq!(manifest["layers"].as_array().unwrap().len(), 1);
    assert_eq!(manifest["layers"][0]["mediaType"], "application/wasm");
    assert_eq!(manifest["annotations"]["org.example.built-by"], "hand");
    assert!(manifest["annotations"]["org.opencontainers.image.version"].is_string());
    let config = fs::read(registry.stored(manifest["config"]["digest"].as_str().unwrap())).unwrap();
    let config: Value = serde_json::from_slice(&config).unwrap();
    assert_eq!((&config["architecture"], &config["os"]), (&"wasm".into(), &"wasip2".into()));
    let imports = config["component"]["imports"].as_array().unwrap();
    assert!(imports.iter().any(|import| import.as_str().unwrap().starts_with("capwasm:provider/")), "{config}");

    let wanted = ["pull", &name, "--key", "cosign.pub", "-o", "pulled.wasm"];
    assert!(bed.refused(&wanted).contains("is not signed"));
    assert!(!bed.path("pulled.wasm").exists(), "nothing is left of what was refused");
    let signed = bed.ok(&["sign", &name, "--key", "cosign.key", "-o", "json"]);
    let signed: Value = serde_json::from_str(&signed).unwrap();
    assert_eq!(signed["reference"], pinned.as_str());
    let verified: Value =
        serde_json::from_str(&bed.ok(&["verify", &name, "--key", "cosign.pub", "-o", "json"])).unwrap();
    assert_eq!(verified, signed);
    assert_eq!(bed.ok(&wanted).trim(), pinned);
    assert!(same(&bed.path("pulled.wasm")));
    bed.ok(&["pull", &pinned]);
    assert!(same(&bed.path("guest.wasm")), "named after the repository");

    bed.ok(&["keygen", "--output-key-prefix", "other"]);
    let error = bed.refused(&["verify", &name, "--key", "other.pub"]);
    assert!(error.contains("none of the trusted keys made it"), "{error}");
    bed.ok(&["verify", &name, "--key", "other.pub", "--key", "cosign.pub"]);
    bed.ok(&["sign", &pinned, "--key", "other.key"]);
    bed.ok(&["verify", &name, "--key", "other.pub"]);
    bed.ok(&["verify", &name, "--key", "cosign.pub"]);
    let mut wrong = bed.command(&["sign", &name, "--key", "cosign.key"]);
    let output = wrong.env("COSIGN_PASSWORD", "wrong").output().unwrap();
    assert!(text(&output.stderr).contains("the password is wrong"), "{}", text(&output.stderr));
    let error = bed.refused(&["verify", &name, "--key", "cosign.key"]);
    assert!(error.contains("ENCRYPTED SIGSTORE PRIVATE KEY"), "which file is which: {error}");
}

#[test]
fn what_a_registry_has_is_trusted_only_by_digest_and_signature() {
    if !skip::registry("what_a_registry_has_is_trusted_only_by_digest_and_signature") {
        return;
    }
    let bed = Bed::new();
    let mut registry = Registry::start(&bed.folder);
    let name = registry.reference("team/guest:1.0");
    let pinned = bed.push(&name, &["--key", "cosign.key"]);
    let pull = |reference: &str| bed.refused(&["pull", reference, "--key", "cosign.pub", "-o", "pulled.wasm"]);

    let error = bed.refused(&["pull", &name, "--max-size", "1000"]);
    assert!(error.contains("larger than 1000 bytes"), "{error}");
    assert!(pull(&registry.reference("team/none:1.0")).contains("is not there"));
    let output = bed.run(&["pull", "team/guest:1.0"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("ghcr.io"), "says how a reference looks: {}", text(&output.stderr));

    // Another artifact under the same tag: it is not what was signed.
    let other = bed.push(&name, &["--annotation", "changed=yes"]);
    assert_ne!(other, pinned);
    assert!(pull(&name).contains("is not signed"));
    bed.ok(&["pull", &pinned, "--key", "cosign.pub", "-o", "by-digest.wasm"]);

    // The registry's own disk, changed behind its back.
    let manifest = bed.manifest(&registry, &pinned);
    let tampered = |file: PathBuf, change: &dyn Fn(Vec<u8>) -> Vec<u8>, expected: &str| {
        let good = fs::read(&file).unwrap();
        fs::write(&file, change(good.clone())).unwrap();
        let error = pull(&pinned);
        assert!(error.contains(expected), "{expected}: {error}");
        assert!(!bed.path("pulled.wasm").exists());
        fs::write(&file, good).unwrap();
    };
    let flip = |mut bytes: Vec<u8>| {
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        bytes
    };
    let layer = registry.stored(manifest["layers"][0]["digest"].as_str().unwrap());
    tampered(layer.clone(), &flip, "has the digest");
    tampered(layer, &|bytes| bytes[..bytes.len() / 2].to_vec(), "bytes");
    let digest = pinned.split_once('@').unwrap().1;
    let spaced = |mut bytes: Vec<u8>| {
        bytes.push(b' ');
        bytes
    };
    tampered(registry.stored(digest), &spaced, "");

    // The signature of the first, moved beside the second: the key is right, and what it signed is something else.
    let tag = |reference: &str| {
        let digest = reference.split_once("@sha256:").unwrap().1;
        registry.reference(&format!("team/guest:sha256-{digest}.sig"))
    };
    bed.ok(&["sign", &other, "--key", "cosign.key"]);
    let link = |reference: &str| {
        let name = tag(reference).rsplit(':').next().unwrap().to_owned();
        bed.path("registry/storage/docker/registry/v2/repositories/team/guest/_manifests/tags")
            .join(name)
            .join("current/link")
    };
    fs::copy(link(&pinned), link(&other)).unwrap();
    let error = pull(&other);
    assert!(error.contains("the trusted key signed") && error.contains(digest), "{error}");

    registry.kill();
    let error = pull(&pinned);
    assert!(error.contains("unable to reach") && error.contains("refused"), "{error}");
}

#[test]
fn a_private_registry_is_reached_with_its_authority_and_credentials() {
    if !skip::registry("a_private_registry_is_reached_with_its_authority_and_credentials") {
        return;
    }
    let bed = Bed::new();
    let registry = Registry::start_guarded(&bed.folder);
    let name = registry.reference("team/guest:1.0");
    let (ca, component) = (registry.ca(), component());
    let ca = ca.to_str().unwrap();
    let push = ["push", component.to_str().unwrap(), &name, "--ca-file", ca];

    let error = bed.refused(&push);
    assert!(error.contains("denies access") && error.contains("no credentials were given"), "{error}");
    let error = bed.refused(&["verify", &name, "--key", "cosign.pub", "--ca-file", "cosign.pub"]);
    assert!(error.contains("certificate authority"), "{error}");

    let login = |password: &str| fs::write(bed.path("config.json"), docker_config(&registry, password)).unwrap();
    login("wrong");
    let error = bed.refused(&push);
    assert!(error.contains("denies access") && !error.contains("wrong"), "{error}");
    login(PASSWORD);
    let pinned = bed.ok(&[&push[..], &["--key", "cosign.key"]].concat()).trim().to_owned();
    bed.ok(&["verify", &pinned, "--key", "cosign.pub", "--ca-file", ca]);
    fs::remove_file(bed.path("config.json")).unwrap();

    // A helper that keeps the credentials, as `docker login` sets one up.
    let helper = bed.path("docker-credential-test");
    let answer = format!("#!/bin/sh\nread server\n[ \"$1 $server\" = 'get {}' ] || exit 1\n", registry.address);
    let answer = format!("{answer}echo '{{\"Username\":\"{USER}\",\"Secret\":\"{PASSWORD}\"}}'\n");
    fs::write(&helper, answer).unwrap();
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(bed.path("config.json"), r#"{"credsStore":"test"}"#).unwrap();
    let path = format!("{}:{}", bed.folder.path().display(), std::env::var("PATH").unwrap());
    let mut helped = bed.command(&["pull", &name, "--ca-file", ca, "-o", "helped.wasm"]);
    let output = helped.env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(same(&bed.path("helped.wasm")));
    fs::remove_file(bed.path("config.json")).unwrap();

    fs::write(bed.path("password"), format!("{PASSWORD}\n")).unwrap();
    let mut typed = bed.command(&["pull", &name, "--ca-file", ca, "--username", USER, "--password-stdin"]);
    let output = typed.stdin(fs::File::open(bed.path("password")).unwrap()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));

    // Without its authority it is a stranger; and without TLS it is not spoken to at all.
    let other = Folder::new();
    let stranger = Registry::start_guarded(&other);
    let error = bed.refused(&["pull", &stranger.reference("a/b:1"), "--ca-file", ca]);
    assert!(error.contains("unable to reach") && error.contains("certificate"), "{error}");
}

#[test]
fn artifacts_go_to_a_place_without_a_registry_and_into_one_there() {
    if !skip::registry("artifacts_go_to_a_place_without_a_registry_and_into_one_there") {
        return;
    }
    let bed = Bed::new();
    let registry = Registry::start(&bed.folder);
    let (one, two) = (registry.reference("team/guest:1.0"), registry.reference("team/other:2.0"));
    let pinned = bed.push(&one, &["--key", "cosign.key"]);
    bed.push(&two, &[]);
    let error = bed.refused(&["save", "air", &one, &two, "--key", "cosign.pub"]);
    assert!(error.contains("unable to save") && error.contains("is not signed"), "{error}");
    let saved = bed.ok(&["save", "air", &one, &two, "-o", "json"]);
    let saved: Value = serde_json::from_str(&saved).unwrap();
    assert_eq!((&saved[0]["reference"], &saved[0]["signed"]), (&pinned.as_str().into(), &true.into()));
    assert_eq!(saved[1]["signed"], false);
    bed.ok(&["pull", &one, "--from", "air", "--key", "cosign.pub", "-o", "from-folder.wasm"]);
    assert!(same(&bed.path("from-folder.wasm")));
    drop(registry);

    let there = Registry::start_with(&bed.folder, "there", false);
    let target = there.reference("mirror");
    let error = bed.refused(&["load", "air", "--to", &target, "--key", "cosign.pub"]);
    assert!(error.contains("unable to load") && error.contains("is not signed"), "{error}");
    bed.ok(&["load", "air", "--to", &target]);
    let moved = there.reference("mirror/team/guest:1.0");
    bed.ok(&["verify", &moved, "--key", "cosign.pub"]);
    bed.ok(&["pull", &moved, "--key", "cosign.pub", "-o", "moved.wasm"]);
    assert!(same(&bed.path("moved.wasm")));
    assert!(bed.refused(&["load", "none"]).contains("unable to use"));
}

#[test]
fn a_file_is_signed_beside_itself() {
    let bed = Bed::new();
    fs::copy(component(), bed.path("guest.wasm")).unwrap();
    assert!(bed.refused(&["verify", "guest.wasm", "--key", "cosign.pub"]).contains("guest.wasm.sig"));
    bed.ok(&["sign", "guest.wasm", "--key", "cosign.key"]);
    bed.ok(&["verify", "guest.wasm", "--key", "cosign.pub"]);
    let mut bytes = fs::read(component()).unwrap();
    bytes[100] ^= 1;
    fs::write(bed.path("guest.wasm"), bytes).unwrap();
    assert!(bed.refused(&["verify", "guest.wasm", "--key", "cosign.pub"]).contains("none of the trusted keys"));
    assert!(bed.refused(&["sign", "none.wasm", "--key", "cosign.key"]).contains("neither a file nor an artifact"));
    fs::write(bed.path("text.wasm"), "no component").unwrap();
    assert!(bed.refused(&["push", "text.wasm", "127.0.0.1:1/a/b:1"]).contains("is not a provider"));
}

/// From a private registry, by its tag, with an own authority and credentials from Secrets.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_runs_what_is_signed_and_goes_on_without_the_registry() {
    if !skip::registry("a_host_runs_what_is_signed_and_goes_on_without_the_registry") {
        return;
    }
    let bed = Bed::new();
    let mut registry = Registry::start_guarded(&bed.folder);
    fs::write(bed.path("config.json"), docker_config(&registry, PASSWORD)).unwrap();
    let ca = registry.ca();
    let with_ca = ["--ca-file", ca.to_str().unwrap()];
    let (first, second) = (registry.reference("team/fixture:1.0"), registry.reference("team/fixture:2.0"));
    let pinned = bed.push(&first, &with_ca);
    fs::write(bed.path("second.wasm"), guests::variant(&fs::read(component()).unwrap(), "second--")).unwrap();
    bed.ok(&[&["push", "second.wasm", &second, "--key", "cosign.key"][..], &with_ca].concat());

    let management = Management::start();
    let objects = management.objects("default").await;
    let secret = |name: &str, kind: &str, key: &str, value: String| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"}, "type": kind,
            "data": {key: STANDARD.encode(value)}})
    };
    let login = docker_config(&registry, PASSWORD);
    objects.create(&secret("login", "kubernetes.io/dockerconfigjson", ".dockerconfigjson", login)).await;
    objects.create(&secret("ca", "Opaque", "ca.crt", fs::read_to_string(&ca).unwrap())).await;
    let named = |name: &str| json!({"namespace": "default", "name": name});
    let key = fs::read_to_string(bed.path("cosign.pub")).unwrap();
    objects
        .create(&json!({"apiVersion": "capwasm.dev/v1alpha1", "kind": "WasmProvider", "metadata": {"name": "fixture"},
            "spec": {"source": {"oci": {"reference": first, "pullSecret": named("login"), "caSecret": named("ca")}},
                "verification": {"publicKeys": [key]}, "crdGroups": ["infrastructure.fixture.example"],
                "grants": {"endpoints": {"engine": {"unix": bed.path("engine.sock")}}}}}))
        .await;
    let until = |what: &'static str, is: fn(&Value) -> bool| objects.until("WasmProvider", "fixture", what, is);
    let refused = |provider: &Value| condition(provider, "UpToDate").1 == "SignatureInvalid";
    let unsigned = until("its signature is missed", refused).await;
    assert!(condition(&unsigned, "UpToDate").2.contains("is not signed"), "{unsigned}");
    assert!(!is(&unsigned, "Ready") && unsigned["status"]["active"].is_null(), "nothing of it runs");

    bed.ok(&[&["sign", &pinned, "--key", "cosign.key"][..], &with_ca].concat());
    let serving = until("it serves once it is signed", |provider| is(provider, "UpToDate")).await;
    assert_eq!(field(&serving, "/status/active/artifact"), pinned.replace("fixture@", "fixture:1.0@"), "{serving}");
    let digest = field(&serving, "/status/active/digest").to_owned();

    let source = |reference: &str| json!({"spec": {"source": {"oci": {"reference": reference}}}});
    bed.ok(&["keygen", "--output-key-prefix", "other"]);
    let other = fs::read_to_string(bed.path("other.pub")).unwrap();
    let mut patch = source(&second);
    patch["spec"]["verification"] = json!({"publicKeys": [other]});
    objects.merge("WasmProvider", "fixture", patch).await;
    let kept = until("the other key made no signature", refused).await;
    assert!(is(&kept, "Ready"), "the first goes on serving: {kept}");
    assert_eq!(field(&kept, "/status/active/digest"), digest);
    objects.merge("WasmProvider", "fixture", json!({"spec": {"verification": {"publicKeys": [key]}}})).await;
    let swapped = until("the second serves", |provider| is(provider, "UpToDate")).await;
    assert_ne!(field(&swapped, "/status/active/digest"), digest);

    // A host that starts while the registry is away has what it ran, by digest.
    registry.kill();
    management.restart();
    objects.merge("WasmProvider", "fixture", json!({"metadata": {"annotations": {"looked": "again"}}})).await;
    let unreachable = |provider: &Value| condition(provider, "UpToDate").1 == "RegistryUnavailable";
    let alone = until("the registry is missed", unreachable).await;
    assert!(is(&alone, "Ready"), "{alone}");
    assert_eq!(field(&alone, "/status/active/digest"), field(&swapped, "/status/active/digest"));
}

/// The program itself, where there is one: what it signs we verify, and what we sign it verifies.
#[test]
fn cosign_and_capwasm_verify_each_others_signatures() {
    const TEST: &str = "cosign_and_capwasm_verify_each_others_signatures";
    if !skip::registry(TEST) {
        return;
    }
    if Command::new("cosign").arg("version").output().is_err() {
        return skip::skip(TEST, "there is no cosign; signatures that it made are verified all the same");
    }
    let bed = Bed::new();
    let registry = Registry::start(&bed.folder);
    let cosign = |arguments: &[&str]| {
        let output = Command::new("cosign")
            .args(arguments)
            .current_dir(bed.folder.path())
            .env("COSIGN_PASSWORD", KEY_PASSWORD)
            .output()
            .unwrap();
        assert!(output.status.success(), "cosign {arguments:?}: {}", text(&output.stderr));
    };
    let ours = bed.push(&registry.reference("team/ours:1.0"), &["--key", "cosign.key"]);
    cosign(&["verify", "--key", "cosign.pub", "--insecure-ignore-tlog=true", &ours]);
    cosign(&["generate-key-pair", "--output-key-prefix", "theirs"]);
    let theirs = bed.push(&registry.reference("team/theirs:1.0"), &[]);
    cosign(&["sign", "--key", "theirs.key", "--tlog-upload=false", "--yes", &theirs]);
    bed.ok(&["verify", &theirs, "--key", "theirs.pub"]);
    // Each signs beside the other's signature, and with the other's key.
    bed.ok(&["sign", &theirs, "--key", "cosign.key"]);
    cosign(&["verify", "--key", "theirs.pub", "--insecure-ignore-tlog=true", &theirs]);
    cosign(&["verify", "--key", "cosign.pub", "--insecure-ignore-tlog=true", &theirs]);
    cosign(&["sign", "--key", "cosign.key", "--tlog-upload=false", "--yes", &ours]);
    bed.ok(&["verify", &ours, "--key", "cosign.pub"]);
    fs::write(bed.path("a.wasm"), "bytes").unwrap();
    bed.ok(&["sign", "a.wasm", "--key", "theirs.key"]);
    cosign(&[
        "verify-blob",
        "--key",
        "theirs.pub",
        "--signature",
        "a.wasm.sig",
        "--insecure-ignore-tlog=true",
        "a.wasm",
    ]);
    cosign(&[
        "sign-blob",
        "--key",
        "cosign.key",
        "--tlog-upload=false",
        "--yes",
        "--output-signature",
        "a.wasm.sig",
        "a.wasm",
    ]);
    bed.ok(&["verify", "a.wasm", "--key", "cosign.pub"]);
}
