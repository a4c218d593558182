//! A real Docker engine for the tests that want one.

use crate::shell;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SOCKET: &str = "/var/run/docker.sock";

/// Whether an engine listens on the default socket.
pub fn answers() -> bool {
    UnixStream::connect(SOCKET).is_ok()
}

/// Installs Debian's engine if there is none, and starts it in the background. Failures are only told: the caller looks
/// whether an engine answers.
pub fn install_and_start() {
    if !shell::on_path("dockerd") {
        let _ = shell::status(Command::new("apt-get").args(["update", "-q"]));
        let _ = shell::status(Command::new("apt-get").args([
            "install",
            "-y",
            "-q",
            "--no-install-recommends",
            "docker.io",
            "iptables",
        ]));
    }
    let log = std::env::temp_dir().join("capwasm-dockerd.log");
    // A pid file of an engine that died with its machine must not keep this one from starting.
    let pid = std::env::temp_dir().join(format!("capwasm-dockerd-{}.pid", std::process::id()));
    eprintln!("+ dockerd (log: {})", log.display());
    let Ok(output) = std::fs::File::create(&log) else { return };
    let Ok(errors) = output.try_clone() else { return };
    let started =
        Command::new("dockerd").arg("--pidfile").arg(&pid).stdin(Stdio::null()).stdout(output).stderr(errors).spawn();
    if started.is_err() {
        return;
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while !answers() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(200));
    }
    if !answers() {
        eprintln!("dockerd did not come up; the end of its log:");
        if let Ok(text) = std::fs::read_to_string(Path::new(&log)) {
            for line in text.lines().rev().take(5).collect::<Vec<_>>().into_iter().rev() {
                eprintln!("  {line}");
            }
        }
    }
}
