//! A real Docker engine for the tests that want one.

use crate::shell;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SOCKET: &str = "/var/run/docker.sock";

/// Whether an engine answers on the default socket. It listens before it can do anything, and may end in between.
pub fn answers() -> bool {
    let ping = || -> std::io::Result<bool> {
        let mut stream = UnixStream::connect(SOCKET)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"GET /_ping HTTP/1.0\r\nhost: docker\r\n\r\n")?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer)?;
        Ok(answer.ends_with(b" 200"))
    };
    ping().unwrap_or(false)
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
    // What an engine that was killed left behind must not keep this one from starting.
    let state = std::env::temp_dir().join(format!("capwasm-dockerd-{}", std::process::id()));
    let pid = std::env::temp_dir().join(format!("capwasm-dockerd-{}.pid", std::process::id()));
    eprintln!("+ dockerd (log: {})", log.display());
    let Ok(output) = std::fs::File::create(&log) else { return };
    let Ok(errors) = output.try_clone() else { return };
    let started = Command::new("dockerd")
        .arg("--exec-root")
        .arg(&state)
        .arg("--pidfile")
        .arg(&pid)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn();
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
