//! The simulated node inside a real container; see `capwasm_sim_node::container`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("capwasm-node: unable to start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(capwasm_sim_node::container::main(arguments));
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
