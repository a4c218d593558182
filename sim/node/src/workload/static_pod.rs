//! The static pods of API server and etcd on a node, with all that they need from its files.

use serde_json::Value;

use super::keyspace;
use crate::files::{Files, reason};
use crate::kubeadm::{manifest_flag, paths, pki};

/// The API server's static pod.
#[derive(Clone, PartialEq, Eq)]
pub struct StaticPod {
    /// Port that it listens on.
    pub port: u16,
    pub(super) version: String,
    pub(super) advertised: String,
    pub(super) certificate: String,
    pub(super) key: String,
    pub(super) authority: String,
    pub(super) authority_key: String,
    /// Keyspace of the cluster, from the hash of its CA's public key.
    pub keyspace: String,
}

/// etcd's static pod, as far as it is run.
#[derive(Clone, PartialEq, Eq)]
pub struct EtcdPod {
    /// Name of the member.
    pub name: String,
    /// Where other members find it.
    pub peer_url: String,
    /// Whether it joins members that are there.
    pub joins: bool,
    /// Serving certificate, PEM.
    pub certificate: String,
    /// Its key, PEM.
    pub key: String,
    /// CA of clients and members, PEM.
    pub authority: String,
}

/// A manifest with its flags.
struct Manifest<'a> {
    files: &'a dyn Files,
    path: &'a str,
    document: Value,
}

impl<'a> Manifest<'a> {
    fn read(files: &'a dyn Files, path: &'a str) -> Result<Option<Manifest<'a>>, String> {
        if !files.exists(path) {
            return Ok(None);
        }
        let text = files.read_text(path).map_err(|error| format!("open {path}: {}", reason(&error)))?;
        let document = serde_saphyr::from_str(&text).map_err(|error| format!("{path}: {error}"))?;
        Ok(Some(Manifest { files, path, document }))
    }

    fn flag(&self, name: &str) -> Result<String, String> {
        let found = manifest_flag(&self.document, name).map(str::to_owned);
        found.ok_or_else(|| format!("{}: the flag --{name} is missing", self.path))
    }

    fn file(&self, path: &str) -> Result<String, String> {
        self.files.read_text(path).map_err(|error| format!("open {path}: {}", reason(&error)))
    }

    fn file_of(&self, flag: &str) -> Result<String, String> {
        self.file(&self.flag(flag)?)
    }
}

impl StaticPod {
    /// Reads the static pod from a node's files; `None` when there is none.
    ///
    /// # Errors
    /// Why it could not run: a broken manifest or a missing certificate.
    pub fn read(files: &dyn Files) -> Result<Option<StaticPod>, String> {
        let path = paths::API_SERVER_MANIFEST;
        let Some(manifest) = Manifest::read(files, path)? else { return Ok(None) };
        let port: u16 =
            manifest.flag("secure-port")?.parse().map_err(|_| format!("{path}: --secure-port is no port"))?;
        let authority = manifest.file_of("client-ca-file")?;
        let directory = crate::files::parent(&manifest.flag("client-ca-file")?).to_owned();
        let image = manifest.document["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
        let hash =
            capwasm_pki::public_key_hash(&pki::parse_certificate(&authority)?).map_err(|error| error.to_string())?;
        let address = manifest.flag("advertise-address")?;
        let host = if address.contains(':') { format!("[{address}]") } else { address };
        Ok(Some(StaticPod {
            port,
            version: image.rsplit(':').next().unwrap_or_default().to_owned(),
            advertised: format!("{host}:{port}"),
            certificate: manifest.file_of("tls-cert-file")?,
            key: manifest.file_of("tls-private-key-file")?,
            authority_key: manifest.file(&format!("{directory}/ca.key"))?,
            authority,
            keyspace: keyspace(&hash),
        }))
    }
}

impl EtcdPod {
    /// Reads the static pod from a node's files; `None` when there is none.
    ///
    /// # Errors
    /// Why it could not run: a broken manifest or a missing certificate.
    pub fn read(files: &dyn Files) -> Result<Option<EtcdPod>, String> {
        let Some(manifest) = Manifest::read(files, paths::ETCD_MANIFEST)? else { return Ok(None) };
        Ok(Some(EtcdPod {
            name: manifest.flag("name")?,
            peer_url: manifest.flag("initial-advertise-peer-urls")?,
            joins: manifest.flag("initial-cluster-state").is_ok_and(|state| state == "existing"),
            certificate: manifest.file_of("cert-file")?,
            key: manifest.file_of("key-file")?,
            authority: manifest.file_of("trusted-ca-file")?,
        }))
    }
}
