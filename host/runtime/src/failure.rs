//! Failed calls. The error names provider, digest, function and, if the guest is at fault, its call stack.

use capwasm_contract::Failure;
use wasmtime::WasmBacktrace;

use crate::budget::Limit;
use crate::untrusted;

/// A call without a reply; its outcome is lost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("provider {provider} (sha256:{digest}), {function}: {failure}")]
pub struct CallError {
    /// Name of the provider; `?` before `describe()`.
    pub provider: String,
    /// First 12 hex digits of the component's digest.
    pub digest: String,
    /// `interface.function`.
    pub function: String,
    /// What went wrong.
    pub failure: Failure,
}

impl CallError {
    /// Advice to an operator, for events.
    pub fn advice(&self) -> String {
        let name = &self.provider;
        let raise = |limit: &str| format!("if that is too little, raise spec.limits.{limit} of WasmProvider {name}");
        match &self.failure {
            Failure::Trap { .. } => format!(
                "a bug of the provider: `capwasm provider rollback {name}` lets the component before it serve again"
            ),
            Failure::Cpu { .. } => raise("cpuTimeMs"),
            Failure::Wall { .. } => raise("wallTimeMs"),
            Failure::Memory { .. } => raise("memoryBytes"),
            Failure::Result { .. } => raise("resultBytes"),
            Failure::Busy { .. } => "calls that hang, of this provider or of others, have all places of the host: \
                 capwasm_provider_calls_total with the result ProviderTimeout tells which"
                .to_owned(),
            Failure::Panic { .. } => "a bug of the host, whose log has more".to_owned(),
            Failure::NotExported => format!("let a component serve as {name} that does what its descriptor says"),
            Failure::Instantiate { .. } => "the host is short of memory, or of places for calls".to_owned(),
        }
    }
}

/// A limit passed in host code, as an error through wasmtime.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stop {
    #[error("the CPU budget is used up")]
    Cpu,
    #[error("{asked} bytes of memory asked for, {limit} granted")]
    Memory { asked: usize, limit: usize },
    #[error("the result is too large")]
    Result,
    /// A replay left its recording; see the tape.
    #[error("the recording does not answer this call")]
    Diverged,
}

/// Where a passed limit cannot be answered with a refusal, it ends the call.
impl From<Limit> for Stop {
    fn from(_: Limit) -> Self {
        Stop::Result
    }
}

/// Frames of a backtrace that are shown: enough to find the cause, short enough for an event.
const FRAMES: usize = 16;
/// Longest function name in bytes.
const NAME_BYTES: usize = 200;
/// Longest trap message in bytes.
const MESSAGE_BYTES: usize = 1 << 10;

/// wasmtime has no type for this cause; a test checks the text.
const FUEL_EXHAUSTED: &str = "fuel allocated for hostcalls has been exhausted";

/// Classifies an error of wasmtime.
pub(crate) fn classify(error: &wasmtime::Error, limits: &crate::Limits, stderr: String) -> Failure {
    let backtrace = error.downcast_ref::<WasmBacktrace>().map(frames).unwrap_or_default();
    match error.downcast_ref::<Stop>() {
        Some(Stop::Cpu) => return Failure::Cpu { limit: limits.cpu_time(), backtrace },
        Some(Stop::Memory { asked, limit }) => {
            return Failure::Memory { asked: *asked, limit: *limit, backtrace };
        }
        Some(Stop::Result) => return Failure::Result { limit: limits.result_bytes },
        // A replay looks at its tape before it looks at this.
        Some(Stop::Diverged) | None => {}
    }
    let message = untrusted::shortened(&error.root_cause().to_string(), MESSAGE_BYTES);
    if message.contains(FUEL_EXHAUSTED) {
        return Failure::Result { limit: limits.result_bytes };
    }
    Failure::Trap { message, backtrace, stderr }
}

/// Demangled names of the guest's functions, innermost first.
fn frames(backtrace: &WasmBacktrace) -> Vec<String> {
    frame_names(&backtrace.to_string())
}

fn frame_names(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| {
            let (index, rest) = line.trim_start().split_once(": ")?;
            index.parse::<u32>().ok()?;
            let name = rest.split_once(" - ").map_or(rest, |(_, name)| name);
            Some(untrusted::shortened(&without_hashes(name.trim()), NAME_BYTES))
        })
        .take(FRAMES)
        .collect()
}

/// Removes Rust's symbol hashes, such as `[b7974e8690430dd9]` and a final `::h809c7280f92aa51`.
fn without_hashes(name: &str) -> String {
    let hex = |text: &str| text.len() >= 15 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let name = match name.rsplit_once("::h") {
        Some((path, hash)) if hex(hash) => path,
        _ => name,
    };
    let mut parts = name.split('[');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(']') {
            Some((hash, rest)) if hex(hash) => text.push_str(rest),
            _ => {
                text.push('[');
                text.push_str(part);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn frames_of_a_backtrace_keep_their_names_only() {
        let text = "error while executing at wasm backtrace:\n    0:   0x64ff - guest.wasm!core::panicking::panic\n    \
                    1:   0x1 - guest.wasm!<wasm function 3>\n  at the end";
        assert_eq!(frame_names(text), ["guest.wasm!core::panicking::panic", "guest.wasm!<wasm function 3>"]);
    }

    #[test]
    fn hashes_of_symbols_are_left_out() {
        let rows = [
            ("g!__rustc[b7974e8690430dd9]::__rust_realloc", "g!__rustc::__rust_realloc"),
            ("g!alloc::raw_vec::finish_grow::hb809c7280f92aa51", "g!alloc::raw_vec::finish_grow"),
            ("g!<alloc[60c8babfd1b21f68]::S as core[6d9e98711c484d2e]::W>::write", "g!<alloc::S as core::W>::write"),
            ("g!<[u8; 4]>::helper", "g!<[u8; 4]>::helper"),
        ];
        for (name, expected) in rows {
            assert_eq!(without_hashes(name), expected);
        }
    }

    #[test]
    fn an_error_names_provider_digest_function_and_frames() {
        let error = CallError {
            provider: "docker-infra".into(),
            digest: "0123456789ab".into(),
            function: "infrastructure-machine.provision".into(),
            failure: Failure::Trap {
                message: "wasm `unreachable` instruction executed".into(),
                backtrace: vec!["a!inner".into(), "a!outer".into()],
                stderr: "panicked at 'no'".into(),
            },
        };
        assert_eq!(
            error.to_string(),
            "provider docker-infra (sha256:0123456789ab), infrastructure-machine.provision: trapped: wasm \
             `unreachable` instruction executed; stderr: panicked at 'no'; at a!inner < a!outer"
        );
    }
}
