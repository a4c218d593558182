//! The component goes without the names of its functions: they would be a quarter of it. Panics still say file and line.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "wasm") {
        println!("cargo::rustc-link-arg-cdylib=--strip-all");
    }
}
