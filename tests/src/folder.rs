//! A temporary folder, and the end of every process that works in it.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Waits until its standard input ends, which it does however the test's process ends; then ends every process whose
/// command line names the folder, and removes it.
const KEEPER: &str = r#"
while read -r _; do :; done
for process in /proc/[0-9]*; do
    case "$(tr '\0' ' ' <"$process/cmdline")" in
        *"$FOLDER/"*) kill -9 "${process#/proc/}" ;;
    esac
done
rm -rf "$FOLDER"
"#;

/// A temporary folder. Nothing that was started with a path in it outlives it, also when the test is killed.
pub struct Folder {
    path: PathBuf,
    keeper: Child,
}

impl Folder {
    /// An empty one. Its path is short, because unix sockets go into it.
    pub fn new() -> Folder {
        let path = tempfile::Builder::new().prefix("capwasm-t").tempdir().expect("a temporary folder").keep();
        let keeper = Command::new("/bin/sh")
            .args(["-c", KEEPER])
            .env("FOLDER", &path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A Ctrl-C at the terminal must not end the one who cleans up.
            .process_group(0)
            .spawn()
            .expect("a shell");
        Folder { path, keeper }
    }

    /// Its absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file or folder in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Default for Folder {
    fn default() -> Self {
        Folder::new()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}
