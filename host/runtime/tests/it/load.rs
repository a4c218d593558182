//! Which components load, and the errors of those that do not.

use std::collections::BTreeSet;

use capwasm_contract::Failure;
use capwasm_contract::descriptor::Role;
use capwasm_runtime::{CompileError, Limits, LoadError, Runtime, RuntimeOptions};
use capwasm_test_support::guests::{self, hostile as hostile_names};

use serde_json::Value;

use crate::support::{guest, hostile, load_hostile, options};

#[tokio::test]
async fn a_provider_says_what_it_is() {
    let runtime = Runtime::new(options()).unwrap();
    let bytes = guest();
    let provider = runtime.load(&bytes, Limits::default()).await.unwrap();
    assert_eq!(provider.descriptor().name, "fixture");
    assert_eq!(
        provider.roles(),
        [
            Role::InfrastructureCluster,
            Role::InfrastructureMachine,
            Role::InfrastructureMachinePool,
            Role::Bootstrap,
            Role::ControlPlane,
            Role::Controller
        ]
    );
    assert_eq!(provider.size(), bytes.len());
    assert!(provider.digest().starts_with("sha256:") && provider.digest().len() == 71);
    assert!(provider.imports().iter().any(|import| import == "capwasm:provider/outcome@0.1.0"));
}

#[tokio::test]
async fn the_published_schema_has_the_fields_of_the_descriptor() {
    let runtime = Runtime::new(options()).unwrap();
    let provider = runtime.load(&guest(), Limits::default()).await.unwrap();
    let mut descriptor = provider.descriptor().clone();
    // Left out where there is nothing to watch.
    descriptor.wants.workload_watches =
        serde_json::from_value(serde_json::json!([{"group": "", "kind": "ConfigMap"}])).unwrap();
    let document = serde_json::to_value(&descriptor).unwrap();
    let schema = std::fs::read_to_string(guests::root().join("wit/descriptor.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let rows = [(&document, &schema), (&document["wants"], &schema["$defs"]["wants"])];
    for (value, schema) in rows {
        assert_eq!(keys(value), keys(&schema["properties"]));
    }
    // Not every kind has every field.
    let of_kinds: BTreeSet<String> = document["kinds"].as_array().unwrap().iter().flat_map(keys).collect();
    assert_eq!(of_kinds, keys(&schema["$defs"]["kind"]["properties"]));
}

/// Each file of the corpus says in its second line why it is refused. What is said is short and in one line, whatever names and
/// texts are in the component.
#[tokio::test]
async fn every_hostile_component_is_refused_for_its_own_reason() {
    let runtime = Runtime::new(options()).unwrap();
    let corpus = hostile_names();
    assert!(corpus.len() >= 60, "{}", corpus.len());
    let mut wrong = Vec::new();
    for (name, reason) in corpus {
        let error = load_hostile(&runtime, &name).await.to_string();
        if !error.contains(&reason) {
            wrong.push(format!("{name}: {reason:?} is not in {error:.600}"));
        }
        assert!(error.len() < 6 << 10, "{name}: {} bytes", error.len());
        let forged = |c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c);
        assert!(!error.contains(forged), "{name}: {error:?}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(runtime.load(&guest(), Limits::default()).await.is_ok());
}

#[tokio::test]
async fn describing_has_tight_limits() {
    let runtime = Runtime::new(options()).unwrap();
    type Check = fn(&Failure) -> bool;
    let rows: [(&str, Check); 6] = [
        ("endless-loop", |failure| matches!(failure, Failure::Cpu { .. })),
        ("endless-start", |failure| matches!(failure, Failure::Cpu { .. })),
        ("memory-bomb", |failure| matches!(failure, Failure::Memory { .. })),
        ("initial-memory", |failure| matches!(failure, Failure::Memory { .. })),
        ("deep-recursion", Failure::is_trap),
        ("huge-result", |failure| matches!(failure, Failure::Result { .. })),
    ];
    for (name, check) in rows {
        match load_hostile(&runtime, name).await {
            LoadError::Describe(error) => assert!(check(&error.failure), "{name}: {error}"),
            other => panic!("{name}: {other}"),
        }
    }
    assert!(runtime.load(&guest(), Limits::default()).await.is_ok());
}

#[tokio::test]
async fn a_trap_names_the_functions_that_led_there() {
    let runtime = Runtime::new(options()).unwrap();
    let LoadError::Describe(error) = load_hostile(&runtime, "trap").await else { panic!("no trap") };
    let Failure::Trap { backtrace, .. } = &error.failure else { panic!("{error}") };
    let position = |name: &str| backtrace.iter().position(|frame| frame.ends_with(name)).unwrap();
    assert!(position("the_mistake") < position("the_way_there"), "{backtrace:?}");
    assert!(error.to_string().contains("descriptor.describe"), "{error}");
}

#[tokio::test]
async fn bytes_that_are_no_component_are_refused_before_they_are_compiled() {
    let runtime = Runtime::new(RuntimeOptions { max_component_bytes: 1 << 10, ..options() }).unwrap();
    let load = async |bytes: &[u8]| runtime.load(bytes, Limits::default()).await.err().unwrap();
    assert!(matches!(load(&[0; 2 << 10]).await, LoadError::TooLarge { size: 2048, limit: 1024 }));
    assert!(matches!(load(b"").await, LoadError::NotWasm));
    assert!(matches!(load(b"(component)").await, LoadError::NotWasm));
    let mut cut = hostile("trap");
    cut.truncate(cut.len() - 10);
    assert!(matches!(load(&cut).await, LoadError::Compile(CompileError::Invalid(_))));
    let mut broken = hostile("trap");
    for at in (8..broken.len()).step_by(7) {
        broken[at] ^= 0x55;
    }
    assert!(matches!(load(&broken).await, LoadError::Compile(CompileError::Invalid(_))));
}

#[tokio::test]
async fn limits_that_the_host_does_not_give_are_named() {
    let runtime = Runtime::new(options()).unwrap();
    let limits = Limits { memory_bytes: 1 << 40, ..Limits::default() };
    let error = runtime.load(&guest(), limits).await.err().unwrap();
    assert!(error.to_string().starts_with("limits.memoryBytes is"), "{error}");
}
