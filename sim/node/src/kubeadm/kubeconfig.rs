//! Kubeconfig files of a node.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::files::{Files, reason};
use crate::kubeadm::pki;
use crate::rest::{Credentials, Rest, Trust};

/// How the user of a kubeconfig is written.
pub enum User<'a> {
    /// Certificate and key in the file.
    Embedded(&'a str, &'a str),
    /// Certificate and key together in another file.
    File(&'a str),
    /// A bearer token.
    Token(&'a str),
}

/// A kubeconfig with one cluster and one user, YAML.
pub fn render(cluster: &str, server: &str, authority: &str, name: &str, user: &User<'_>) -> String {
    let encode = |text: &str| STANDARD.encode(text);
    let user = match user {
        User::Embedded(certificate, key) => {
            format!("    client-certificate-data: {}\n    client-key-data: {}\n", encode(certificate), encode(key))
        }
        User::File(path) => format!("    client-certificate: {path}\n    client-key: {path}\n"),
        User::Token(token) => format!("    token: {token}\n"),
    };
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: {cluster}\n  cluster:\n    certificate-authority-data: {}\n    server: {server}\n\
         contexts:\n- name: {name}@{cluster}\n  context:\n    cluster: {cluster}\n    user: {name}\ncurrent-context: {name}@{cluster}\n\
         users:\n- name: {name}\n  user:\n{user}",
        encode(authority)
    )
}

/// A kubeconfig as far as a node needs it: one cluster, one user.
#[derive(Debug)]
pub struct Kubeconfig {
    /// `https://host:port`.
    pub server: String,
    /// The cluster's CA, DER.
    pub authority: Vec<u8>,
    certificate: Option<(String, String)>,
    token: Option<String>,
}

impl Kubeconfig {
    /// Reads the file at `path` of a node.
    ///
    /// # Errors
    /// What is missing or broken.
    pub fn load(files: &dyn Files, path: &str) -> Result<Kubeconfig, String> {
        let text = files.read_text(path).map_err(|error| format!("open {path}: {}", super::lower(&reason(&error))))?;
        Kubeconfig::parse(files, &text).map_err(|problem| format!("{path}: {problem}"))
    }

    /// Parses a kubeconfig; files that it names are read from the node.
    ///
    /// # Errors
    /// What is missing or broken.
    pub fn parse(files: &dyn Files, text: &str) -> Result<Kubeconfig, String> {
        let document: Value = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        let cluster = &document["clusters"][0]["cluster"];
        let user = &document["users"][0]["user"];
        let read = |path: &str| files.read_text(path).map_err(|error| format!("open {path}: {}", reason(&error)));
        let material = |of: &Value, name: &str| -> Result<Option<String>, String> {
            if let Some(data) = of[format!("{name}-data")].as_str() {
                let bytes = STANDARD.decode(data.trim()).map_err(|_| format!("{name}-data is not base64"))?;
                return String::from_utf8(bytes).map(Some).map_err(|_| format!("{name}-data is not PEM"));
            }
            of[name].as_str().map(read).transpose()
        };
        let server = cluster["server"].as_str().ok_or("no cluster with a server")?.to_owned();
        let authority = material(cluster, "certificate-authority")?.ok_or("no certificate authority")?;
        let certificate = material(user, "client-certificate")?.zip(material(user, "client-key")?);
        let token = user["token"].as_str().map(str::to_owned);
        Ok(Kubeconfig { server, authority: pki::parse_certificate(&authority)?, certificate, token })
    }

    /// The bearer token of its user.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// A client of the server that it names.
    ///
    /// # Errors
    /// When server or credentials cannot be used.
    pub fn client(&self) -> Result<Rest, String> {
        let credentials = match (&self.certificate, &self.token) {
            (Some((certificate, key)), _) => Credentials::Certificate(certificate, key),
            (None, Some(token)) => Credentials::Token(token),
            (None, None) => Credentials::Anonymous,
        };
        Rest::connect(&self.server, &Trust::Authority(&self.authority), &credentials).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use std::sync::Arc;

    use super::*;
    use crate::files::MemoryFiles;

    #[test]
    fn what_is_rendered_is_parsed_again() {
        let files = MemoryFiles::new(Arc::default());
        let authority = pki::Authority::generate("kubernetes", capwasm_pki::Algorithm::EcdsaP256).unwrap();
        let text =
            render("c", "https://127.0.0.1:6443", &authority.certificate, "admin", &User::Embedded("CERT", "KEY"));
        let parsed = Kubeconfig::parse(&files, &text).unwrap();
        assert_eq!(parsed.server, "https://127.0.0.1:6443");
        assert_eq!(parsed.authority, authority.der);
        assert_eq!(parsed.certificate, Some(("CERT".into(), "KEY".into())));
        let text = render("c", "https://a:1", &authority.certificate, "t", &User::Token("abcdef.0123456789abcdef"));
        assert_eq!(Kubeconfig::parse(&files, &text).unwrap().token.as_deref(), Some("abcdef.0123456789abcdef"));
    }
}
