//! A registry on loopback: Debian's `docker-registry`, a folder below it, and TLS and passwords where a test wants them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use capwasm_pki::{Algorithm, Authority, Leaf, Validity};

use crate::folder::Folder;
use crate::management::free_address;
use crate::skip::REGISTRY;

/// The one user of a registry that asks.
pub const USER: &str = "robot";
/// Password of that user.
pub const PASSWORD: &str = "registry-password";
/// Of [`PASSWORD`], by bcrypt with the least rounds.
const HASHED: &str = "$2b$04$/mB6vBA4JFLKtLM7SBGj8e8ebMNuM9L4GttyRD97BxYICtFe0xax2";

/// A registry that runs until this is dropped.
pub struct Registry {
    /// Host and port, as references have it: `127.0.0.1:port`.
    pub address: String,
    storage: PathBuf,
    certificates: Option<PathBuf>,
    child: Child,
}

impl Registry {
    /// One that everybody may use, without TLS.
    pub fn start(folder: &Folder) -> Registry {
        Registry::start_with(folder, "registry", false)
    }

    /// One with a certificate of an own authority ([`Registry::ca`]) that asks for [`USER`] and [`PASSWORD`].
    pub fn start_guarded(folder: &Folder) -> Registry {
        Registry::start_with(folder, "guarded", true)
    }

    /// Another one in the same folder.
    pub fn start_with(folder: &Folder, name: &str, guarded: bool) -> Registry {
        let own = folder.join(name);
        let storage = own.join("storage");
        fs::create_dir_all(&storage).expect("the folder is writable");
        let address = free_address();
        let mut config = format!(
            "version: 0.1\nlog: {{level: warn}}\nstorage: {{filesystem: {{rootdirectory: '{}'}}, delete: {{enabled: true}}}}\n\
             http:\n  addr: '{address}'\n",
            storage.display()
        );
        if guarded {
            certificates(&own);
            fs::write(own.join("htpasswd"), format!("{USER}:{HASHED}\n")).expect("the folder is writable");
            config += &format!(
                "  tls: {{certificate: '{0}/tls.crt', key: '{0}/tls.key'}}\n\
                 auth: {{htpasswd: {{realm: test, path: '{0}/htpasswd'}}}}\n",
                own.display()
            );
        }
        let file = own.join("config.yml");
        fs::write(&file, config).expect("the folder is writable");
        let log = fs::File::create(own.join("log")).expect("the folder is writable");
        let child = Command::new(REGISTRY)
            .arg("serve")
            .arg(&file)
            // Telemetry, which nothing listens to.
            .env("OTEL_TRACES_EXPORTER", "none")
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("docker-registry starts");
        let registry = Registry { address, storage, certificates: guarded.then_some(own), child };
        registry.wait();
        registry
    }

    fn wait(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while std::net::TcpStream::connect(&self.address).is_err() {
            assert!(Instant::now() < deadline, "the registry does not listen: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn log(&self) -> String {
        let own = self.storage.parent().expect("a folder in a folder");
        fs::read_to_string(own.join("log")).unwrap_or_default()
    }

    /// `address/repository:tag`.
    pub fn reference(&self, rest: &str) -> String {
        format!("{}/{rest}", self.address)
    }

    /// The authority of a guarded one.
    pub fn ca(&self) -> PathBuf {
        self.certificates.as_ref().expect("a guarded registry").join("ca.crt")
    }

    /// The file in which it keeps a blob or a manifest.
    pub fn stored(&self, digest: &str) -> PathBuf {
        let hex = digest.trim_start_matches("sha256:");
        self.storage.join(format!("docker/registry/v2/blobs/sha256/{}/{hex}/data", &hex[..2]))
    }

    /// Ends it, as a crash does.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.kill();
    }
}

/// `ca.crt`, and `tls.crt` with `tls.key` of it.
fn certificates(folder: &Path) {
    let day = Validity::of(SystemTime::now(), Duration::from_secs(24 * 3600));
    let authority = Authority::new("registry-ca", Algorithm::EcdsaP256, day, None).expect("an authority");
    let leaf = Leaf::server("registry", vec!["127.0.0.1".to_owned()]);
    let server = authority.issue(&leaf, Algorithm::EcdsaP256, day).expect("a certificate");
    for (name, text) in
        [("ca.crt", authority.pair().certificate), ("tls.crt", server.certificate), ("tls.key", server.key)]
    {
        fs::write(folder.join(name), text).expect("the folder is writable");
    }
}
