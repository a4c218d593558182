//! Checks kubeconfigs: only a server and inline credentials are allowed.
//!
//! A kubeconfig comes from a Secret of the cluster's namespace, so others decide where this process connects, and with
//! what credentials. They must not make it run programs, read files or use proxies.

use base64::Engine;
use kube::config::{AuthInfo, Cluster, Config, KubeConfigOptions, Kubeconfig};
use serde_json::Value;

/// Why a kubeconfig is refused.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// Not UTF-8.
    #[error("the kubeconfig is not text")]
    NotText,
    /// Invalid YAML or structure. Details are omitted, since parsers quote the content, which is that of a Secret, and
    /// this message is logged.
    #[error("the kubeconfig cannot be parsed")]
    Unparsed,
    /// Context, cluster and user do not match.
    #[error("unable to use the kubeconfig: {0}")]
    Unusable(#[source] kube::config::KubeconfigError),
    /// It refers to a program, file or proxy; the name of the field.
    #[error("the kubeconfig uses {0}, which is not allowed: everything has to be written in it")]
    Forbidden(&'static str),
}

pub(crate) fn secret_name(cluster: &str) -> String {
    format!("{cluster}-kubeconfig")
}

/// Content of a kubeconfig Secret.
pub(crate) fn of_secret(secret: &Value) -> Option<Vec<u8>> {
    let value = secret.pointer("/data/value").and_then(Value::as_str)?;
    base64::engine::general_purpose::STANDARD.decode(value).ok()
}

/// Client configuration of a kubeconfig.
///
/// # Errors
/// When it is invalid, or refers to anything outside of itself.
pub async fn read(kubeconfig: &[u8]) -> Result<Config, KubeconfigError> {
    let text = std::str::from_utf8(kubeconfig).map_err(|_| KubeconfigError::NotText)?;
    let kubeconfig = Kubeconfig::from_yaml(text).map_err(|_| KubeconfigError::Unparsed)?;
    let users = kubeconfig.auth_infos.iter().filter_map(|user| user.auth_info.as_ref());
    let clusters = kubeconfig.clusters.iter().filter_map(|cluster| cluster.cluster.as_ref());
    if let Some(what) = users.filter_map(forbidden_in_user).chain(clusters.filter_map(forbidden_in_cluster)).next() {
        return Err(KubeconfigError::Forbidden(what));
    }
    let options = KubeConfigOptions::default();
    Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(KubeconfigError::Unusable)
}

fn forbidden_in_user(user: &AuthInfo) -> Option<&'static str> {
    [
        (user.exec.is_some(), "an exec plugin"),
        (user.auth_provider.is_some(), "an auth provider"),
        (user.token_file.is_some(), "a token file"),
        (user.client_certificate.is_some(), "a client certificate file"),
        (user.client_key.is_some(), "a client key file"),
    ]
    .into_iter()
    .find_map(|(used, what)| used.then_some(what))
}

fn forbidden_in_cluster(cluster: &Cluster) -> Option<&'static str> {
    [
        (cluster.certificate_authority.is_some(), "a certificate authority file"),
        (cluster.proxy_url.is_some(), "a proxy"),
    ]
    .into_iter()
    .find_map(|(used, what)| used.then_some(what))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use super::*;

    fn kubeconfig(cluster: &str, user: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:1'{cluster}}}}}]\n\
             users: [{{name: u, user: {{token: t{user}}}}}]\n"
        )
    }

    #[tokio::test]
    async fn a_kubeconfig_may_hold_credentials_but_not_point_at_any() {
        let fine = read(kubeconfig("", "").as_bytes()).await.unwrap();
        assert_eq!(fine.cluster_url.to_string(), "https://127.0.0.1:1/");
        let table = [
            ("", ", exec: {command: id, apiVersion: client.authentication.k8s.io/v1}", "an exec plugin"),
            ("", ", auth-provider: {name: gcp, config: {}}", "an auth provider"),
            ("", ", tokenFile: /etc/passwd", "a token file"),
            ("", ", client-certificate: /etc/passwd", "a client certificate file"),
            ("", ", client-key: /etc/passwd", "a client key file"),
            (", certificate-authority: /etc/passwd", "", "a certificate authority file"),
            (", proxy-url: 'http://127.0.0.1:2'", "", "a proxy"),
        ];
        for (cluster, user, expected) in table {
            match read(kubeconfig(cluster, user).as_bytes()).await {
                Err(KubeconfigError::Forbidden(what)) => assert_eq!(what, expected),
                other => panic!("{expected} was taken: {other:?}"),
            }
        }
        assert!(matches!(read(b"\xff").await, Err(KubeconfigError::NotText)));
        assert!(matches!(read(b"{}").await, Err(KubeconfigError::Unusable(_))));
    }

    #[tokio::test]
    async fn an_error_never_quotes_the_secret() {
        let parser = Kubeconfig::from_yaml("users: hunter2").unwrap_err();
        assert!(parser.to_string().contains("hunter2"), "or else the parser's error could be told: {parser}");
        for text in
            ["hunter2", "users: [{name: u, user: hunter2}]", "users: hunter2", "hunter2: [", "clusters: {a: hunter2}"]
        {
            let error = read(text.as_bytes()).await.unwrap_err();
            let mut said = format!("{error} {error:?}");
            let mut cause = std::error::Error::source(&error);
            while let Some(inner) = cause {
                said += &inner.to_string();
                cause = inner.source();
            }
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
}
