//! Components: a provider, or refused with a reason, in bounded time, whatever the bytes are.
//!
//! Input: a component (it begins as WebAssembly does), or choices for one that is nearly a provider.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use arbitrary::{Result, Unstructured};
use capwasm_contract::Failure;
use capwasm_runtime::{CompileError, Limits, LoadError, Runtime, RuntimeOptions};
use serde_json::Value;

use crate::json::{mutate, one_of, text};

static HOST: LazyLock<(tokio::runtime::Runtime, Arc<Runtime>)> = LazyLock::new(|| {
    let options = RuntimeOptions {
        max_in_flight: 1,
        max_memory_bytes: 64 << 20,
        max_component_bytes: 1 << 20,
        ..RuntimeOptions::default()
    };
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    (threads, Runtime::new(options).unwrap())
});

/// Two calls of `describe()` have a second of CPU each; the rest is the compiler's, on a machine that does other things as well.
const LONGEST: Duration = Duration::from_secs(20);

pub fn run(data: &[u8]) {
    if data.starts_with(b"\0asm") {
        // Refused or not: what has to hold of either is looked at in there.
        let _ = load(data);
        return;
    }
    assert!(matches!(load(data), Err(LoadError::NotWasm | LoadError::TooLarge { .. })));
    let Ok(choices) = Choices::new(&mut Unstructured::new(data)) else { return };
    // What the text format itself does not take is no component.
    let Ok(component) = wat::parse_str(choices.component()) else { return };
    let result = load(&component);
    if let (Some(import), Err(error)) = (&choices.import, &result)
        && !(import.starts_with("capwasm:") || import.starts_with("wasi:"))
        && !matches!(error, LoadError::Compile(_) | LoadError::Invalid(_))
    {
        assert!(
            error.to_string().contains(&format!("{import:?}")),
            "{import:?} is imported, and the error says {error}"
        );
    }
    if choices == Choices::default() {
        result.unwrap();
    }
}

fn load(component: &[u8]) -> std::result::Result<(), LoadError> {
    let (threads, runtime) = &*HOST;
    let started = Instant::now();
    let result = threads.block_on(runtime.load(component, Limits { memory_bytes: 16 << 20, ..Limits::default() }));
    let took = started.elapsed();
    assert!(took < LONGEST, "it took {took:?}");
    match &result {
        Ok(provider) => {
            let name = &provider.descriptor().name;
            assert!(!name.is_empty() && !provider.descriptor().kinds.is_empty(), "{name:?} is no provider");
            assert!(provider.digest().starts_with("sha256:") && provider.size() == component.len());
        }
        Err(LoadError::Compile(CompileError::Failed(error))) => panic!("the compiler failed: {error}"),
        Err(LoadError::Describe(error)) => {
            assert!(!matches!(error.failure, Failure::Panic { .. } | Failure::Busy { .. }), "{error}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    result.map(drop)
}

/// What is special about a component. The default is a provider.
#[derive(Debug, PartialEq)]
struct Choices {
    descriptor: Value,
    /// Instead of `capwasm:provider/descriptor@0.1.0`.
    export: String,
    import: Option<String>,
    /// Interfaces that are exported with another function than theirs.
    roles: Vec<String>,
    /// What `describe` does before it returns.
    before: &'static str,
    /// Where it says that the text is, and how long that is.
    at: u32,
    long: Option<u32>,
    pages: u32,
}

const DESCRIPTOR: &str = "capwasm:provider/descriptor@0.1.0";
/// Where the text is in memory.
const AT: u32 = 64;

impl Default for Choices {
    fn default() -> Self {
        let mut descriptor = crate::descriptor::good();
        descriptor["kinds"][0]["role"] = "template".into();
        descriptor["kinds"][0]["finalizers"] = Value::Array(Vec::new());
        Choices {
            descriptor,
            export: DESCRIPTOR.into(),
            import: None,
            roles: Vec::new(),
            before: "",
            at: AT,
            long: None,
            pages: 1,
        }
    }
}

impl Choices {
    fn new(u: &mut Unstructured<'_>) -> Result<Self> {
        const WORDS: [&str; 8] = ["0.1", "0.2", "template", "controller", "*", "", "example", "x.y"];
        const IMPORTS: [&str; 8] = [
            "env",
            "wasi:keyvalue/store@0.2.0",
            "wasi:http/types@0.2.0",
            "wasi:io/poll@0.2.6",
            "capwasm:provider/log@0.1.0",
            "capwasm:provider/telnet@0.1.0",
            "capwasm:provider/call@0.2.0",
            "some:thing/else@1.0.0",
        ];
        const BEFORE: [&str; 6] = [
            "",
            "unreachable",
            "(drop (memory.grow (i32.const 1000)))",
            "(global.set $n (i32.add (global.get $n) (i32.const 1))) (i32.store8 (i32.const 64) (global.get $n))",
            "(call $again)",
            "(drop (i32.load (i32.const -1)))",
        ];
        let mut choices = Choices::default();
        for _ in 0..u.int_in_range(0..=3)? {
            match u.int_in_range(0..=7)? {
                0 | 1 => mutate(u, &mut choices.descriptor, &WORDS)?,
                2 => {
                    choices.export = text(u, &[DESCRIPTOR, "capwasm:provider/descriptor@0.2.0", "descriptor", "a:b/c"])?
                }
                3 => choices.import = Some(text(u, &IMPORTS)?),
                4 => choices.roles.push(format!(
                    "capwasm:provider/{}@0.1.0",
                    one_of(u, &["controller", "bootstrap", "admission", "x"])?
                )),
                5 => choices.before = one_of(u, &BEFORE)?,
                6 => choices.at = *u.choose(&[0, 1, 65_535, 65_536, u32::MAX])?,
                _ => choices.long = Some(*u.choose(&[0, 1, 65_472, 65_536, u32::MAX, 1 << 31])?),
            }
        }
        choices.pages = if u.ratio(1, 8)? { u.int_in_range(0..=2_000)? } else { 1 };
        Ok(choices)
    }

    fn component(&self) -> String {
        let descriptor = self.descriptor.to_string();
        let long = self.long.unwrap_or(u32::try_from(descriptor.len()).unwrap());
        let bytes = |bytes: &[u8]| bytes.iter().map(|byte| format!("\\{byte:02x}")).collect::<String>();
        let import = self.import.as_ref().map(|name| format!("(import {:?} (instance))", name)).unwrap_or_default();
        let roles: String = self.roles.iter().map(|role| format!("(export {role:?} (instance $descriptor))")).collect();
        let Choices { export, before, pages, .. } = self;
        format!(
            r#"(component
  {import}
  (core module $m
    (memory (export "memory") {pages})
    (global $n (mut i32) (i32.const 0))
    (data (i32.const 0) "{head}")
    (data (i32.const {AT}) "{text}")
    (func $again (call $again))
    (func (export "describe") (result i32) {before} (i32.const 0)))
  (core instance $i (instantiate $m))
  (func $describe (result string) (canon lift (core func $i "describe") (memory (core memory $i "memory"))))
  (instance $descriptor (export "describe" (func $describe)))
  (export {export:?} (instance $descriptor)) {roles})"#,
            head = bytes(&[self.at.to_le_bytes(), long.to_le_bytes()].concat()),
            text = bytes(descriptor.as_bytes()),
        )
    }
}
