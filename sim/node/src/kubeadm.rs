//! `kubeadm init`, `kubeadm join` and `kubeadm reset`, simulated: same inputs, same files, same objects in the cluster, same refusals; but no
//! process is started, the node's kubelet serves the embedded API server instead.

mod addons;
pub mod cluster_info;
pub mod config;
mod init;
mod join;
pub mod kubeconfig;
mod objects;
pub mod paths;
pub mod pki;
mod preflight;
mod reset;
mod static_pods;
mod versions;

pub use static_pods::flag as manifest_flag;

use std::time::Duration;

use crate::shell::Invocation;
use capwasm_sim_service::faults::NodeFault;
use config::Documents;

/// Printed below every error, as users know it.
const TRACE_HINT: &str = "To see the stack trace of this error execute with --v=5 or higher";

/// A phase that failed, and why.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The command line or the configuration is wrong.
    #[error("{0}")]
    Input(String),
    /// A phase could not be done.
    #[error("error execution phase {phase}: {message}")]
    Phase {
        /// Name of the phase, such as `preflight`.
        phase: &'static str,
        /// Why it failed, as kubeadm prints it.
        message: String,
    },
}

impl Failure {
    fn phase(phase: &'static str) -> impl Fn(String) -> Failure {
        move |message| Failure::Phase { phase, message }
    }
}

/// Options of `init` and `join`.
#[derive(Debug, Default)]
struct Flags {
    config: Option<String>,
    ignored_checks: Vec<String>,
    skipped_phases: Vec<String>,
}

/// Runs `kubeadm` and returns its exit code: 0, or 1 with the reason on standard error.
pub async fn run(call: &Invocation<'_>) -> i32 {
    if matches!(call.arguments.first().map(String::as_str), Some("init" | "join"))
        && let Some(failure) = simulated_failure(call).await
    {
        call.complain(format!("{failure}\n{TRACE_HINT}"));
        return 1;
    }
    let outcome = match call.arguments.first().map(String::as_str) {
        Some("init") => match prepare(call) {
            Ok((flags, documents)) => init::init(call, &flags, documents).await,
            Err(failure) => Err(failure),
        },
        Some("join") => match prepare(call) {
            Ok((flags, documents)) => join::join(call, &flags, documents).await,
            Err(failure) => Err(failure),
        },
        Some("reset") => reset::reset(call).await,
        Some("version") => {
            call.say(call.node.version().unwrap_or_else(|| "unknown".to_owned()));
            Ok(())
        }
        Some(command) => Err(Failure::Input(format!("unknown command \"{command}\" for the simulated kubeadm"))),
        None => Err(Failure::Input("a command is needed: init, join, reset or version".to_owned())),
    };
    match outcome {
        Ok(()) => 0,
        Err(failure) => {
            let prefix = if matches!(failure, Failure::Input(_)) { "error: " } else { "" };
            call.complain(format!("{prefix}{failure}\n{TRACE_HINT}"));
            1
        }
    }
}

/// Waits and fails as the node's faults say.
async fn simulated_failure(call: &Invocation<'_>) -> Option<Failure> {
    let faults = || call.node.faults();
    let range = faults().into_iter().find_map(|fault| match fault {
        NodeFault::SlowStart(least, most) => Some((least, most)),
        _ => None,
    });
    if let Some((least, most)) = range {
        let extra = (most.saturating_sub(least)).mul_f64(rand::random::<f64>());
        tokio::time::sleep(least + extra).await;
    }
    while faults().contains(&NodeFault::NeverJoin) {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    faults().contains(&NodeFault::FailBootstrap).then(|| Failure::Phase {
        phase: "preflight",
        message: format!("simulated failure ({}: {})", capwasm_sim_service::faults::LABEL, NodeFault::FailBootstrap),
    })
}

fn prepare(call: &Invocation<'_>) -> Result<(Flags, Documents), Failure> {
    let flags = parse_flags(&call.arguments[1..])?;
    let Some(path) = &flags.config else {
        return Err(Failure::Input("the simulated kubeadm needs --config".to_owned()));
    };
    let text = call.node.files().read_text(&call.path(path)).map_err(|error| {
        Failure::Input(format!(
            "unable to read config from \"{path}\": open {path}: {}",
            lower(&crate::files::reason(&error))
        ))
    })?;
    let documents = Documents::parse(&text).map_err(Failure::Input)?;
    for warning in &documents.warnings {
        call.complain(format!("W {warning}"));
    }
    Ok((flags, documents))
}

fn parse_flags(arguments: &[String]) -> Result<Flags, Failure> {
    let mut flags = Flags::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let (name, inline) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (argument.as_str(), None),
        };
        let mut value = || {
            inline
                .clone()
                .or_else(|| arguments.next().cloned())
                .ok_or_else(|| Failure::Input(format!("flag needs an argument: {name}")))
        };
        let list = |text: String| text.split(',').map(|item| item.trim().to_owned()).collect::<Vec<_>>();
        match name {
            "--config" => flags.config = Some(value()?),
            "--ignore-preflight-errors" => flags.ignored_checks.extend(list(value()?)),
            "--skip-phases" => flags.skipped_phases.extend(list(value()?)),
            "-v" | "--v" => {
                value()?;
            }
            name if name.starts_with('-') => return Err(Failure::Input(format!("unknown flag: {name}"))),
            other => return Err(Failure::Input(format!("unexpected argument: {other}"))),
        }
    }
    Ok(flags)
}

/// An error text as Go prints it.
fn lower(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_ascii_lowercase().to_string() + chars.as_str()).unwrap_or_default()
}
