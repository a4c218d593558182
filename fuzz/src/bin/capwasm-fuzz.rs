//! libFuzzer with all targets in it: `CAPWASM_FUZZ_TARGET` names the one to run; see `cargo xtask fuzz`.
#![no_main]
#![allow(unsafe_code, reason = "the macro exports the functions that libFuzzer calls")]
#![allow(clippy::expect_used, reason = "without a target there is nothing to do")]

use std::sync::OnceLock;

static RUN: OnceLock<fn(&[u8])> = OnceLock::new();

fn chosen() -> fn(&[u8]) {
    let name = std::env::var("CAPWASM_FUZZ_TARGET").expect("CAPWASM_FUZZ_TARGET names a target");
    // libFuzzer's own hook ends the process at every panic, also those that the code under test catches (the parser of CEL has some).
    // A panic that leaves the target still ends it.
    drop(std::panic::take_hook());
    capwasm_fuzz::target(&name).expect("CAPWASM_FUZZ_TARGET names a target").run
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| RUN.get_or_init(chosen)(data));
