//! Files on the machine: the user's, with what stands in Secrets filled in, and the certificates'.

use base64::{Engine, engine::general_purpose::STANDARD};
use capwasm_kubeadm::certificates::{Certificates, Purpose};
use capwasm_sdk::{Host, Optional, Problem};
use serde_json::Value;

use crate::config::{ConfigSpec, ContentFrom, File, User};
use crate::kubeadm;
use crate::template::{self, Data};
use crate::userdata::WriteFile;

/// `spec.files` with their content; `data` is what templates are given.
pub fn of_user(host: &dyn Host, spec: &ConfigSpec, data: &Data) -> Result<Vec<WriteFile>, Problem> {
    spec.files.iter().map(|file| one(host, file, data)).collect()
}

/// `spec.users` with their passwords.
pub fn users(host: &dyn Host, spec: &ConfigSpec) -> Result<Vec<User>, Problem> {
    let resolve = |user: &User| {
        let mut user = user.clone();
        if let Some(from) = user.passwd_from.take() {
            let password = secret(host, &from, &format!("the password of user {}", user.name))?;
            user.passwd = Some(String::from_utf8(password).map_err(|_| {
                Problem::invalid("InvalidPassword", format!("the password hash of user {} is not text", user.name))
            })?);
        }
        Ok(user)
    };
    spec.users.iter().map(resolve).collect()
}

fn one(host: &dyn Host, file: &File, data: &Data) -> Result<WriteFile, Problem> {
    let mut encoding = file.encoding.clone();
    let mut content = match &file.content_from {
        None => file.content.clone(),
        Some(from) => {
            match String::from_utf8(secret(host, from, &format!("file {}", file.path))?) {
                Ok(text) => text,
                Err(_) if file.is_template() => {
                    return Err(Problem::invalid(
                        "InvalidTemplate",
                        format!("the template of file {} is not text", file.path),
                    ));
                }
                Err(binary) => {
                    // YAML carries text only.
                    encoding = match encoding.as_str() {
                        "gzip" | "gzip+base64" => "gzip+base64".into(),
                        _ => "base64".into(),
                    };
                    STANDARD.encode(binary.into_bytes())
                }
            }
        }
    };
    if file.is_template() {
        content = template::render(&content, data).map_err(|why| {
            Problem::invalid("InvalidTemplate", format!("the template of file {} makes nothing: {why}", file.path))
        })?;
    }
    Ok(WriteFile {
        path: file.path.clone(),
        owner: file.owner.clone(),
        permissions: file.permissions.clone(),
        encoding,
        append: file.append,
        content,
    })
}

fn secret(host: &dyn Host, from: &ContentFrom, what: &str) -> Result<Vec<u8>, Problem> {
    let (name, key) = (&from.secret.name, &from.secret.key);
    host.secret(name, key)
        .optional()?
        .ok_or_else(|| Problem::waiting("SecretNotFound", format!("{what} waits for key {key} of Secret {name}")))
}

/// The certificates of a control-plane machine, where its kubeadm looks for them.
pub fn of_certificates(certificates: &Certificates, spec: &ConfigSpec) -> Vec<WriteFile> {
    let dir = kubeadm::certificates_dir(spec).trim_end_matches('/');
    let external = |key: &str| {
        let etcd = spec.cluster_configuration.get("etcd").and_then(|etcd| etcd.get("external"));
        etcd.and_then(|external| external.get(key))
            .and_then(Value::as_str)
            .filter(|path| !path.is_empty())
            .map(str::to_owned)
    };
    let mut files = Vec::new();
    for (purpose, pair) in certificates.iter() {
        let (certificate, key) = match purpose {
            Purpose::ClusterCa => (format!("{dir}/ca.crt"), format!("{dir}/ca.key")),
            Purpose::EtcdCa => {
                (external("caFile").unwrap_or_else(|| format!("{dir}/etcd/ca.crt")), format!("{dir}/etcd/ca.key"))
            }
            Purpose::FrontProxyCa => (format!("{dir}/front-proxy-ca.crt"), format!("{dir}/front-proxy-ca.key")),
            Purpose::ServiceAccount => (format!("{dir}/sa.pub"), format!("{dir}/sa.key")),
            Purpose::EtcdClient => (
                external("certFile").unwrap_or_else(|| format!("{dir}/apiserver-etcd-client.crt")),
                external("keyFile").unwrap_or_else(|| format!("{dir}/apiserver-etcd-client.key")),
            ),
        };
        // The authority of an etcd elsewhere stays without its key, even when the Secret has one.
        let only_verifies = purpose == Purpose::EtcdCa && external("caFile").is_some();
        files.push(WriteFile::of_root(certificate, "0640", &*pair.certificate_pem));
        if !only_verifies && !pair.key_pem.is_empty() {
            files.push(WriteFile::of_root(key, "0600", &*pair.key_pem));
        }
    }
    files
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use capwasm_kubeadm::certificates::Settings;
    use capwasm_sdk::Fault;
    use capwasm_sdk::test::TestHost;
    use serde_json::json;

    fn spec(value: Value) -> ConfigSpec {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn content_comes_from_secrets_and_binary_content_is_encoded() {
        let host = TestHost::new().secret("s", "text", "hello").secret("s", "binary", vec![0xff, 0xfe]);
        let from = |key: &str, encoding: &str| json!({"path": "/f", "encoding": encoding, "contentFrom": {"secret": {"name": "s", "key": key}}});
        for (what, file, encoding, content) in [
            ("inline", json!({"path": "/f", "content": "x"}), "", "x"),
            ("text of a Secret", from("text", ""), "", "hello"),
            ("binary of a Secret", from("binary", ""), "base64", "//4="),
            ("zipped binary of a Secret", from("binary", "gzip"), "gzip+base64", "//4="),
        ] {
            let files = of_user(&host, &spec(json!({"files": [file]})), &Data::new("")).unwrap();
            assert_eq!((files[0].encoding.as_str(), files[0].content.as_str()), (encoding, content), "{what}");
        }
        let user = &users(
            &host,
            &spec(json!({"users": [{"name": "u", "passwdFrom": {"secret": {"name": "s", "key": "text"}}}]})),
        )
        .unwrap()[0];
        assert_eq!(user.passwd.as_deref(), Some("hello"));
    }

    #[test]
    fn an_absent_secret_is_waited_for() {
        let absent = spec(json!({"files": [{"path": "/f", "contentFrom": {"secret": {"name": "s", "key": "k"}}}]}));
        assert_eq!(of_user(&TestHost::new(), &absent, &Data::new("")).unwrap_err().fault, Fault::Waiting);
    }

    #[test]
    fn a_template_is_filled_in_wherever_it_comes_from() {
        let host = TestHost::new().secret("s", "k", "{{ .controlPlane.version }}").secret("s", "binary", vec![0xff]);
        let of = |file: Value| of_user(&host, &spec(json!({"files": [file]})), &Data::new("v1.36.0"));
        let from = |key: &str| json!({"path": "/f", "contentFormat": "Template", "contentFrom": {"secret": {"name": "s", "key": key}}});
        let inline = json!({"path": "/f", "contentFormat": "Template", "content": "is {{ .controlPlane.version }}"});
        let raw = json!({"path": "/f", "contentFormat": "Raw", "content": "{{ .x }}"});
        assert_eq!(of(inline).unwrap()[0].content, "is v1.36.0");
        assert_eq!(of(from("k")).unwrap()[0].content, "v1.36.0");
        assert_eq!(of(raw).unwrap()[0].content, "{{ .x }}");
        for broken in
            [from("binary"), json!({"path": "/f", "contentFormat": "Template", "content": "{{ .a | nosuch }}"})]
        {
            assert_eq!(of(broken).unwrap_err().reason, "InvalidTemplate");
        }
    }

    #[test]
    fn an_external_etcd_has_its_certificates_where_the_user_says() {
        let external = json!({"endpoints": ["https://etcd:2379"], "caFile": "/e/ca.crt", "certFile": "/e/c.crt", "keyFile": "/e/c.key"});
        let spec = spec(json!({"clusterConfiguration": {"certificatesDir": "/pki/", "etcd": {"external": external}}}));
        let mut host = TestHost::new();
        for name in ["c-ca", "c-etcd", "c-proxy", "c-sa", "c-apiserver-etcd-client"] {
            host = host.secret(name, "tls.crt", "crt").secret(name, "tls.key", "key");
        }
        let certificates = Certificates::read(&host, "c", Settings::of(&spec.cluster_configuration)).unwrap();
        let paths: Vec<_> = of_certificates(&certificates, &spec).into_iter().map(|file| file.path).collect();
        assert_eq!(
            paths,
            [
                "/pki/ca.crt",
                "/pki/ca.key",
                "/e/ca.crt",
                "/pki/front-proxy-ca.crt",
                "/pki/front-proxy-ca.key",
                "/pki/sa.pub",
                "/pki/sa.key",
                "/e/c.crt",
                "/e/c.key"
            ]
        );
    }
}
