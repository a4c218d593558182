//! Loads a component: checks, compilation, `describe()`. Each error says what to do about it.

mod check;

use std::sync::Arc;

use capwasm_contract::descriptor::{Descriptor, Role};
use capwasm_contract::{Facts, Failure, Function};
use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::{Component, InstancePre};

pub(crate) use self::check::Pure;
use crate::bindings::exports::{
    admission, bootstrap, control_plane, controller, conversion, descriptor, infrastructure_cluster,
    infrastructure_machine, infrastructure_machine_pool,
};
use crate::call::{Call, Capabilities};
use crate::compile::CompileError;
use crate::failure::CallError;
use crate::grants::Grants;
use crate::limits::Limits;
use crate::provider::{Exports, Guest, Provider};
use crate::runtime::Shared;
use crate::state::State;
use crate::untrusted;

/// Contract versions of this host.
pub const SUPPORTED_CONTRACTS: &[&str] = &["0.1"];

const PACKAGE: &str = "capwasm:provider/";

/// Limits of text from a component in errors: bytes of a name and of a problem, number of problems.
const NAME_BYTES: usize = 200;
const PROBLEM_BYTES: usize = 2 << 10;
const PROBLEMS: usize = 8;

/// Why a component cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The component exceeds `RuntimeOptions::max_component_bytes`.
    #[error("the component has {size} bytes, more than the {limit} that this host takes; strip its debug information")]
    TooLarge {
        /// Size in bytes.
        size: usize,
        /// Limit in bytes.
        limit: usize,
    },
    /// A core module instead of a component.
    #[error(
        "this is a core WebAssembly module, not a component; build it with `--target wasm32-wasip2`, or wrap it with `wasm-tools component new`"
    )]
    CoreModule,
    /// No WebAssembly binary.
    #[error("this is no WebAssembly component: it does not begin as one")]
    NotWasm,
    /// Limits beyond those of the host.
    #[error("limits.{name} is {value}: expected {expected}")]
    Limits {
        /// Field of `spec.limits`.
        name: &'static str,
        /// The given value.
        value: u64,
        /// The allowed range.
        expected: String,
    },
    /// Invalid for wasmtime.
    #[error("the component is not valid: {0}")]
    Invalid(String),
    /// Compilation failed.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// An import that is neither in the contract nor in WASI 0.2.
    #[error("the component imports {name:?}, which this host does not have{hint}")]
    UnknownImport {
        /// Name of the import.
        name: String,
        /// Advice; begins with a separator, or is empty.
        hint: String,
    },
    /// An import or export has a type other than the contract's.
    #[error("the component does not fit contract {}: {problem}; build it against this version of wit/provider.wit", SUPPORTED_CONTRACTS.join(", "))]
    Contract {
        /// The mismatch.
        problem: String,
    },
    /// The export `descriptor` is missing.
    #[error("the component does not export {PACKAGE}descriptor; export a provider's world, not only its functions")]
    NoDescriptor,
    /// The call of `describe()` failed.
    #[error(transparent)]
    Describe(Box<CallError>),
    /// Two calls of `describe()` differ.
    #[error("describe() answered differently when it was called twice; it must return the same bytes every time")]
    NotConstant,
    /// `describe()` used the capability `outcome`.
    #[error("describe() used `outcome`; it may only return the descriptor")]
    DescribeActed,
    /// The descriptor violates its schema.
    #[error("what describe() says is not valid: {}", problems.join("; "))]
    Descriptor {
        /// All violations.
        problems: Vec<String>,
    },
    /// Unsupported contract version.
    #[error("the provider speaks contract {found:?}, this host speaks {}; use a host or a provider that matches", SUPPORTED_CONTRACTS.join(", "))]
    Version {
        /// Contract version of the provider.
        found: String,
    },
}

impl LoadError {
    /// Whether loading the same component with the same limits will fail again.
    pub fn is_final(&self) -> bool {
        match self {
            LoadError::Compile(CompileError::Failed(_)) => false,
            LoadError::Describe(error) => !matches!(
                error.failure,
                Failure::Busy { .. } | Failure::Panic { .. } | Failure::Wall { .. } | Failure::Instantiate { .. }
            ),
            _ => true,
        }
    }
}

impl From<CallError> for LoadError {
    fn from(error: CallError) -> Self {
        LoadError::Describe(Box::new(error))
    }
}

pub(crate) async fn load(shared: &Arc<Shared>, bytes: &[u8], limits: Limits) -> Result<Provider, LoadError> {
    check_size_and_kind(bytes, shared.options.max_component_bytes)?;
    check_limits(&limits, shared.options.max_memory_bytes)?;
    let digest = hex::encode(Sha256::digest(bytes));
    let component = prepare(shared, bytes, &digest).await?;
    let imports = check_imports(&component, &shared.engine)?;
    let pre = shared.linker.instantiate_pre(&component).map_err(contract)?;
    let exports = exports(&component, &pre, &shared.engine)?;

    let guest = |name: &str, limits: Limits| Guest {
        shared: shared.clone(),
        pre: pre.clone(),
        exports: exports.clone(),
        name: name.to_owned(),
        digest: format!("sha256:{digest}"),
        limits,
    };
    let probe = Arc::new(guest("?", limits.for_describe()));
    let first = probe.clone().describe(describe_call(1)).await?;
    let second = probe.describe(describe_call(2)).await?;
    let text = first.text.map_err(|problem| LoadError::Contract { problem })?;
    if second.text != Ok(text.clone()) {
        return Err(LoadError::NotConstant);
    }
    if first.acted || second.acted {
        return Err(LoadError::DescribeActed);
    }
    let descriptor = descriptor_of(&text, &exports.roles(), exports.pure())?;
    let guest = guest(&descriptor.name, limits);
    Ok(Provider::new(guest, descriptor, imports, bytes.len()))
}

/// The two calls differ in all inputs on which an answer could depend.
fn describe_call(seed: u64) -> Call {
    Call {
        // Not used: `describe` belongs to no role.
        function: Function::ClusterProvision,
        object: String::new(),
        facts: Facts { now_ms: seed * 1_000_000_000_000, id: format!("describe-{seed}"), ..Facts::default() },
        capabilities: Capabilities::none(),
        grants: Arc::new(Grants::default()),
        seed,
        recorder: None,
    }
}

/// Parses and checks a descriptor.
pub(crate) fn descriptor_of(text: &str, roles: &[Role], pure: Pure) -> Result<Descriptor, LoadError> {
    let descriptor: Descriptor = serde_json::from_str(text).map_err(|error| described(vec![error.to_string()]))?;
    // First, because the rest may mean something else in another version.
    if !SUPPORTED_CONTRACTS.contains(&descriptor.contract.as_str()) {
        return Err(LoadError::Version { found: untrusted::shortened(&descriptor.contract, NAME_BYTES) });
    }
    let problems = check::problems(&descriptor, roles, pure);
    if problems.is_empty() { Ok(descriptor) } else { Err(described(problems)) }
}

fn check_size_and_kind(bytes: &[u8], limit: usize) -> Result<(), LoadError> {
    if bytes.len() > limit {
        return Err(LoadError::TooLarge { size: bytes.len(), limit });
    }
    match bytes.get(..8) {
        Some([0, b'a', b's', b'm', _, _, 1, 0]) => Ok(()),
        Some([0, b'a', b's', b'm', ..]) => Err(LoadError::CoreModule),
        _ => Err(LoadError::NotWasm),
    }
}

fn check_limits(limits: &Limits, max_memory: u64) -> Result<(), LoadError> {
    let rows = [
        ("memoryBytes", limits.memory_bytes, 1 << 16, max_memory),
        ("cpuTimeMs", limits.cpu_time_ms, 10, 600_000),
        ("wallTimeMs", limits.wall_time_ms, 10, 3_600_000),
        ("responseBytes", limits.response_bytes, 0, 1 << 30),
        ("resultBytes", limits.result_bytes, 1 << 10, 1 << 28),
        ("concurrency", u64::from(limits.concurrency), 1, 1 << 16),
    ];
    for (name, value, least, most) in rows {
        if !(least..=most).contains(&value) {
            return Err(LoadError::Limits { name, value, expected: format!("{least} to {most}") });
        }
    }
    Ok(())
}

/// Compiled code: from the cache, from the program itself, or compiled now.
async fn prepare(shared: &Arc<Shared>, bytes: &[u8], digest: &str) -> Result<Component, LoadError> {
    if let Some(component) = cached(shared, digest).await? {
        return Ok(component);
    }
    let code = match shipped(shared, digest).await? {
        Some(code) => code,
        None => compile(shared, bytes, digest).await?,
    };
    let code = match &shared.aot {
        None => code,
        Some(_) => {
            let code = keep(shared, digest, code).await?;
            // Mapped from the file rather than kept on the heap.
            if let Some(component) = cached(shared, digest).await? {
                return Ok(component);
            }
            code
        }
    };
    #[allow(unsafe_code, reason = "the bytes come from our compiler, just above or when this program was built")]
    let component = unsafe { Component::deserialize(&shared.engine, code) };
    component.map_err(|error| LoadError::Invalid(format!("{error:#}")))
}

async fn compile(shared: &Arc<Shared>, bytes: &[u8], digest: &str) -> Result<Vec<u8>, LoadError> {
    let started = std::time::Instant::now();
    let code = shared.options.compiler.compile(bytes).await?;
    tracing::debug!(digest, elapsed = ?started.elapsed(), "compiled a component");
    Ok(code)
}

async fn shipped(shared: &Arc<Shared>, digest: &str) -> Result<Option<Vec<u8>>, LoadError> {
    let (shared, digest) = (shared.clone(), digest.to_owned());
    blocking(move || shared.options.precompiled.as_ref()?.get(&shared.engine, &digest)).await
}

async fn cached(shared: &Arc<Shared>, digest: &str) -> Result<Option<Component>, LoadError> {
    let (shared, digest) = (shared.clone(), digest.to_owned());
    blocking(move || shared.aot.as_ref()?.get(&shared.engine, &digest)).await
}

async fn keep(shared: &Arc<Shared>, digest: &str, code: Vec<u8>) -> Result<Vec<u8>, LoadError> {
    let (shared, digest) = (shared.clone(), digest.to_owned());
    blocking(move || {
        shared.aot.iter().for_each(|aot| aot.put(&digest, &code));
        code
    })
    .await
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, LoadError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| LoadError::Compile(CompileError::Failed(format!("the cache panicked: {error}"))))
}

/// Imports that are allowed besides the contract's package.
const WASI: [&str; 6] = ["wasi:cli/", "wasi:clocks/", "wasi:filesystem/", "wasi:io/", "wasi:random/", "wasi:sockets/"];

const INTERFACES: [&str; 10] =
    ["types", "call", "outcome", "lookup", "workload", "secrets", "http", "etcd", "pki", "log"];

fn check_imports(component: &Component, engine: &Engine) -> Result<Vec<String>, LoadError> {
    let imports: Vec<String> = component.component_type().imports(engine).map(|(name, _)| name.to_owned()).collect();
    match imports.iter().find_map(|name| import_problem(name).map(|hint| (name, hint))) {
        Some((name, hint)) => Err(LoadError::UnknownImport { name: untrusted::shortened(name, NAME_BYTES), hint }),
        None => Ok(imports),
    }
}

/// Advice for an unknown import; `None` if the import is known.
fn import_problem(name: &str) -> Option<String> {
    let (path, version) = name.split_once('@').unwrap_or((name, ""));
    if let Some(interface) = path.strip_prefix(PACKAGE) {
        let supported = SUPPORTED_CONTRACTS.iter().any(|v| version == *v || version.starts_with(&format!("{v}.")));
        return match (INTERFACES.contains(&interface), supported) {
            (true, true) => None,
            (false, _) => Some(format!("; its interfaces are {}", INTERFACES.join(", "))),
            (true, false) => Some(format!("; this host speaks contract {}", SUPPORTED_CONTRACTS.join(", "))),
        };
    }
    if path.starts_with("wasi:http/") {
        return Some(format!("; requests go through {PACKAGE}http"));
    }
    if path.starts_with("wasi:") {
        let known = WASI.iter().any(|prefix| path.starts_with(prefix)) && version.starts_with("0.2.");
        return (!known).then(|| "; of WASI it has cli, clocks, filesystem, io, random and sockets of 0.2".to_owned());
    }
    Some(format!("; a provider imports {PACKAGE}* and WASI 0.2 only"))
}

fn contract(error: wasmtime::Error) -> LoadError {
    LoadError::Contract { problem: untrusted::shortened(&format!("{error:#}"), PROBLEM_BYTES) }
}

/// Problems as text: each in one line, and not more than a condition can hold.
fn described(problems: Vec<String>) -> LoadError {
    let all = problems.len();
    let mut shown: Vec<String> =
        problems.iter().take(PROBLEMS).map(|problem| untrusted::shortened(problem, PROBLEM_BYTES / 4)).collect();
    if all > shown.len() {
        shown.push(format!("and {} more", all - shown.len()));
    }
    LoadError::Descriptor { problems: shown }
}

/// Finds the exported roles. A role with missing functions or wrong types is an error.
fn exports(component: &Component, pre: &InstancePre<State>, engine: &Engine) -> Result<Exports, LoadError> {
    let names: Vec<String> = component.component_type().exports(engine).map(|(name, _)| name.to_owned()).collect();
    let exported = |interface: &str| {
        let path = format!("{PACKAGE}{interface}");
        names.iter().any(|name| name.split('@').next() == Some(path.as_str()))
    };
    if !exported("descriptor") {
        return Err(LoadError::NoDescriptor);
    }
    let role = |interface: &str| exported(interface).then_some(pre);
    Ok(Exports {
        descriptor: descriptor::GuestIndices::new(pre).map_err(contract)?,
        cluster: role("infrastructure-cluster")
            .map(infrastructure_cluster::GuestIndices::new)
            .transpose()
            .map_err(contract)?,
        machine: role("infrastructure-machine")
            .map(infrastructure_machine::GuestIndices::new)
            .transpose()
            .map_err(contract)?,
        pool: role("infrastructure-machine-pool")
            .map(infrastructure_machine_pool::GuestIndices::new)
            .transpose()
            .map_err(contract)?,
        bootstrap: role("bootstrap").map(bootstrap::GuestIndices::new).transpose().map_err(contract)?,
        control_plane: role("control-plane").map(control_plane::GuestIndices::new).transpose().map_err(contract)?,
        controller: role("controller").map(controller::GuestIndices::new).transpose().map_err(contract)?,
        conversion: role("conversion").map(conversion::GuestIndices::new).transpose().map_err(contract)?,
        admission: role("admission").map(admission::GuestIndices::new).transpose().map_err(contract)?,
    })
}

/// `sha256:<hex>` of a component, as in [`Provider::digest`].
pub fn digest(component: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(component)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn imports_are_held_against_the_known_set() {
        let rows = [
            ("capwasm:provider/call@0.1.0", true),
            ("capwasm:provider/call@0.1.7", true),
            ("capwasm:provider/call@0.2.0", false),
            ("capwasm:provider/call@0.10.0", false),
            ("capwasm:provider/etcd@0.1.0", true),
            ("capwasm:provider/telnet@0.1.0", false),
            ("wasi:io/streams@0.2.6", true),
            ("wasi:io/streams@0.3.0", false),
            ("wasi:http/outgoing-handler@0.2.0", false),
            ("wasi:keyvalue/store@0.2.0", false),
            ("env", false),
        ];
        for (name, known) in rows {
            assert_eq!(import_problem(name).is_none(), known, "{name}");
        }
    }

    #[test]
    fn a_digest_names_its_algorithm() {
        assert_eq!(digest(b""), "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
