//! Registry credentials: the format of `docker login` and of Secrets of type `kubernetes.io/dockerconfigjson`.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::reference::Reference;

/// Credentials for one registry.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// User and password, for the registry or its token service.
    Basic {
        /// Name of the user.
        username: String,
        /// Password, or an access token in its place.
        password: String,
    },
    /// OAuth 2 refresh token, which the token service exchanges.
    Identity(String),
    /// Access token for the registry.
    Bearer(String),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Secrets stay out.
        f.write_str("Credentials")
    }
}

/// Why credentials cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The JSON is invalid.
    #[error("unable to read the registry credentials: {0}")]
    Unreadable(#[source] serde_json::Error),
    /// `auth` is not base64 of `user:password`.
    #[error("the credentials of {0:?} are not base64 of user:password")]
    BadAuth(String),
}

/// Credentials by registry.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DockerConfig {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
    #[serde(default)]
    cred_helpers: BTreeMap<String, String>,
    #[serde(default)]
    creds_store: Option<String>,
}

#[derive(Clone, Default, Deserialize)]
struct Entry {
    #[serde(default)]
    auth: String,
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
    #[serde(default, rename = "identitytoken")]
    identity_token: String,
    #[serde(default, rename = "registrytoken")]
    registry_token: String,
}

impl DockerConfig {
    /// Parses the JSON.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(bytes: &[u8]) -> Result<Self, ConfigError> {
        serde_json::from_slice(bytes).map_err(ConfigError::Unreadable)
    }

    /// Credentials for a repository: those of the longest matching entry, which is its registry or a prefix of its
    /// name.
    ///
    /// # Errors
    /// When the entry has no usable credentials.
    pub fn find(&self, reference: &Reference) -> Result<Option<Credentials>, ConfigError> {
        let matching = self.auths.iter().filter(|(key, _)| covers(key, reference));
        match matching.max_by_key(|(key, _)| plain(key).len()) {
            Some((key, entry)) => entry.credentials(key),
            None => Ok(None),
        }
    }

    /// Name of the credential helper (`docker-credential-<name>`) for the registry.
    #[must_use]
    pub fn helper(&self, reference: &Reference) -> Option<&str> {
        let own = self.cred_helpers.iter().find(|(key, _)| plain(key) == reference.registry()).map(|(_, name)| name);
        own.or(self.creds_store.as_ref()).map(String::as_str)
    }
}

impl Entry {
    fn credentials(&self, key: &str) -> Result<Option<Credentials>, ConfigError> {
        if !self.identity_token.is_empty() {
            return Ok(Some(Credentials::Identity(self.identity_token.clone())));
        }
        if !self.registry_token.is_empty() {
            return Ok(Some(Credentials::Bearer(self.registry_token.clone())));
        }
        if !self.username.is_empty() {
            let (username, password) = (self.username.clone(), self.password.clone());
            return Ok(Some(Credentials::Basic { username, password }));
        }
        if self.auth.is_empty() {
            // Docker leaves an empty entry where a helper has the credentials.
            return Ok(None);
        }
        let bad = || ConfigError::BadAuth(key.to_owned());
        let text =
            STANDARD.decode(self.auth.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(bad)?;
        let (username, password) = text.split_once(':').ok_or_else(bad)?;
        Ok(Some(Credentials::Basic { username: username.to_owned(), password: password.to_owned() }))
    }
}

/// The key without scheme and path, which Docker has added to hosts over time.
fn plain(key: &str) -> &str {
    let key = key.trim_start_matches("https://").trim_start_matches("http://").trim_end_matches('/');
    let key = key.strip_suffix("/v1").or_else(|| key.strip_suffix("/v2")).unwrap_or(key);
    if key == "index.docker.io" { "docker.io" } else { key }
}

fn covers(key: &str, reference: &Reference) -> bool {
    let name = reference.name();
    let key = plain(key);
    name.strip_prefix(key).is_some_and(|rest| rest.starts_with('/')) || name == key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(config: &str, reference: &str) -> Result<Option<Credentials>, ConfigError> {
        DockerConfig::parse(config.as_bytes())?.find(&reference.parse().unwrap())
    }

    fn basic(username: &str, password: &str) -> Option<Credentials> {
        Some(Credentials::Basic { username: username.to_owned(), password: password.to_owned() })
    }

    #[test]
    fn the_longest_entry_that_covers_the_repository_wins() {
        let config = format!(
            r#"{{"auths": {{
                "https://ghcr.io/v1/": {{"auth": "{}"}},
                "ghcr.io/team": {{"username": "team", "password": "p:w"}},
                "ghcr.io/team/one": {{"identitytoken": "refresh"}},
                "https://index.docker.io/v1/": {{"registrytoken": "token"}},
                "empty.example": {{}}
            }}, "credsStore": "desktop", "credHelpers": {{"empty.example": "pass"}}, "HttpHeaders": {{}}}}"#,
            STANDARD.encode("all:a:b")
        );
        for (reference, expected) in [
            ("ghcr.io/other:1", basic("all", "a:b")),
            ("ghcr.io/team2/x:1", basic("all", "a:b")),
            ("ghcr.io/team/two:1", basic("team", "p:w")),
            ("ghcr.io/team/one:1", Some(Credentials::Identity("refresh".to_owned()))),
            ("docker.io/a/b:1", Some(Credentials::Bearer("token".to_owned()))),
            ("empty.example/a:1", None),
            ("ghcr.io.evil.example/team/one:1", None),
            ("ghcr.io:444/team/one:1", None),
        ] {
            assert_eq!(find(&config, reference).unwrap(), expected, "{reference}");
        }
        let config = DockerConfig::parse(config.as_bytes()).unwrap();
        assert_eq!(config.helper(&"empty.example/a:1".parse().unwrap()), Some("pass"));
        assert_eq!(config.helper(&"ghcr.io/a:1".parse().unwrap()), Some("desktop"));
    }

    #[test]
    fn unusable_credentials_are_told_without_the_secret() {
        assert!(matches!(find("nothing", "a.b/c:1"), Err(ConfigError::Unreadable(_))));
        for auth in ["%", "bm9jb2xvbg=="] {
            let error = find(&format!(r#"{{"auths":{{"a.b":{{"auth":"{auth}"}}}}}}"#), "a.b/c:1").unwrap_err();
            assert_eq!(error.to_string(), "the credentials of \"a.b\" are not base64 of user:password");
        }
        assert_eq!(format!("{:?}", basic("user", "password")), "Some(Credentials)");
    }
}
