//! Real OpenStack services for the tests that want them; see `tests/openstack`.

use crate::{build, shell};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// What Debian calls Python with its virtual environments.
pub const PACKAGES: [&str; 2] = ["python3", "python3-venv"];

/// The services, while they start and afterwards. They are stopped with it, unless they ran already.
pub struct Services {
    starting: Option<Child>,
    ran_before: bool,
}

impl Services {
    /// Starts them in the background, which takes a minute or two: meanwhile the tests are built. Failures are told by
    /// [`Services::wait`].
    pub fn start(may_install: bool) -> Services {
        if may_install {
            // Not in the background: apt and dpkg let only one in, and the caller has packages of its own to install.
            let _ = shell::status(&mut stack("packages"));
        }
        let ran_before = stack("status").stdout(Stdio::null()).status().is_ok_and(|status| status.success());
        let mut command = stack("up");
        if !may_install {
            command.arg("--no-install");
        }
        eprintln!("+ tests/openstack/stack up (in the background; log: {})", log().display());
        let starting = std::fs::create_dir_all(build::target()).and_then(|()| File::create(log())).and_then(|output| {
            let errors = output.try_clone()?;
            command.stdin(Stdio::null()).stdout(output).stderr(errors).spawn()
        });
        Services { starting: starting.ok(), ran_before }
    }

    /// Waits until they are up; the path of their `clouds.yaml`. None when they cannot be started, which is told.
    pub fn wait(&mut self) -> Option<PathBuf> {
        let status = self.starting.take()?.wait();
        let clouds = folder().join("clouds.yaml");
        if status.is_ok_and(|status| status.success()) && clouds.is_file() {
            return Some(clouds);
        }
        eprintln!(
            "MISSING: real OpenStack services. The tests that need them will not run. The end of {}:",
            log().display()
        );
        let text = std::fs::read_to_string(log()).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        for line in &lines[lines.len().saturating_sub(10)..] {
            eprintln!("  {line}");
        }
        None
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        if let Some(mut starting) = self.starting.take() {
            // Half started is stopped below; a failure was of no use to anybody.
            let _ = starting.kill();
            let _ = starting.wait();
        }
        if !self.ran_before {
            let _ = shell::status(&mut stack("down"));
        }
    }
}

/// Whether there is a Python that makes virtual environments and is new enough.
pub fn python() -> bool {
    let check = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))";
    let checked = Command::new("python3").args(["-c", check]).stderr(Stdio::null()).status();
    checked.is_ok_and(|status| status.success())
}

fn stack(action: &str) -> Command {
    let mut command = Command::new("python3");
    command.arg(build::root().join("tests/openstack/stack")).arg("--folder").arg(folder()).arg(action);
    command
}

/// Absolute, as the services want it.
fn folder() -> PathBuf {
    build::root().join(build::target()).join("openstack")
}

fn log() -> PathBuf {
    build::target().join("openstack-up.log")
}
