//! The key pairs that all machines of a cluster's control plane share, as Secrets `<cluster>-ca`, `-etcd`, `-proxy`, `-sa`.
//!
//! Who may make them makes them once: a pair that is there, ours or the user's, is never replaced. Because creating
//! adopts what is there, a pair counts only once it was read back.

use base64::{Engine, engine::general_purpose::STANDARD};
use capwasm_api::names::{SECRET_TYPE, labels};
use capwasm_sdk::{Algorithm, Context, Host, Optional, Pair, Place, Problem, Refused};
use serde_json::{Map, Value, json};

/// Ten years, as kubeadm has it.
const CA_DAYS: u32 = 3650;

/// What a pair is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Signs API servers, kubelets and users.
    ClusterCa,
    /// Signs etcd members and their clients.
    EtcdCa,
    /// Signs the clients of aggregated API servers.
    FrontProxyCa,
    /// Signs service account tokens; a public key instead of a certificate.
    ServiceAccount,
    /// The API servers' client certificate for an etcd that runs elsewhere.
    EtcdClient,
}

impl Purpose {
    /// `<cluster>-ca` and so on.
    pub fn secret_name(self, cluster: &str) -> String {
        format!("{cluster}-{}", self.suffix())
    }

    fn suffix(self) -> &'static str {
        match self {
            Purpose::ClusterCa => "ca",
            Purpose::EtcdCa => "etcd",
            Purpose::FrontProxyCa => "proxy",
            Purpose::ServiceAccount => "sa",
            Purpose::EtcdClient => "apiserver-etcd-client",
        }
    }

    /// Distinct, so that no verifier takes one authority for another.
    fn common_name(self) -> &'static str {
        match self {
            Purpose::EtcdCa => "etcd-ca",
            Purpose::FrontProxyCa => "front-proxy-ca",
            _ => "kubernetes",
        }
    }
}

/// What `clusterConfiguration` says about keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Algorithm of keys that are made.
    pub algorithm: Algorithm,
    /// Days for which authorities that are made are valid.
    pub ca_days: u32,
    /// etcd runs elsewhere, and its pairs are the user's.
    pub external_etcd: bool,
}

impl Settings {
    /// Reads a ClusterConfiguration in Cluster API's spelling.
    pub fn of(configuration: &Map<String, Value>) -> Settings {
        // RSA only on demand: its keys would be the dearest part of a cluster.
        let algorithm = match configuration.get("encryptionAlgorithm").and_then(Value::as_str) {
            Some("ECDSA-P384") => Algorithm::EcdsaP384,
            Some("RSA-2048") => Algorithm::Rsa2048,
            Some("RSA-3072") => Algorithm::Rsa3072,
            Some("RSA-4096") => Algorithm::Rsa4096,
            _ => Algorithm::EcdsaP256,
        };
        let days = configuration.get("caCertificateValidityPeriodDays").and_then(Value::as_u64);
        Settings {
            algorithm,
            ca_days: days.and_then(|days| u32::try_from(days).ok()).unwrap_or(CA_DAYS),
            external_etcd: configuration
                .get("etcd")
                .and_then(|etcd| etcd.get("external"))
                .is_some_and(Value::is_object),
        }
    }

    /// The pairs that a control-plane machine needs.
    pub fn needed(self) -> Vec<Purpose> {
        let mut needed = vec![Purpose::ClusterCa, Purpose::EtcdCa, Purpose::FrontProxyCa, Purpose::ServiceAccount];
        if self.external_etcd {
            needed.push(Purpose::EtcdClient);
        }
        needed
    }

    fn is_the_users(self, purpose: Purpose) -> bool {
        self.external_etcd && matches!(purpose, Purpose::EtcdCa | Purpose::EtcdClient)
    }
}

/// Pairs as they were read.
#[derive(Clone, Debug, Default)]
pub struct Certificates {
    found: Vec<(Purpose, Pair)>,
    missing: Vec<Purpose>,
}

impl Certificates {
    /// Reads the pairs that `settings` need. A Secret that is there but lacks its certificate or its key is `invalid`: made
    /// again, it would be another cluster's.
    pub fn read(host: &dyn Host, cluster: &str, settings: Settings) -> Result<Certificates, Problem> {
        let mut certificates = Certificates::default();
        for purpose in settings.needed() {
            let name = purpose.secret_name(cluster);
            // The authority of an etcd elsewhere only verifies.
            let only_verifies = settings.is_the_users(purpose) && purpose == Purpose::EtcdCa;
            let Some(Found { certificate_pem, key_pem }) = find(host, &name)? else {
                certificates.missing.push(purpose);
                continue;
            };
            if key_pem.is_empty() && !only_verifies {
                return Err(Problem::invalid("KeyMissing", format!("Secret {name} has no tls.key; add the key")));
            }
            certificates.found.push((purpose, Pair { certificate_pem, key_pem }));
        }
        Ok(certificates)
    }

    /// The pair of a purpose; none when it was not found.
    pub fn get(&self, purpose: Purpose) -> Option<&Pair> {
        self.found.iter().find(|(known, _)| *known == purpose).map(|(_, pair)| pair)
    }

    /// All pairs that were found.
    pub fn iter(&self) -> impl Iterator<Item = (Purpose, &Pair)> {
        self.found.iter().map(|(purpose, pair)| (*purpose, pair))
    }

    /// Whether no pair is missing.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    /// Names of the Secrets that are missing, for people.
    pub fn missing_names(&self, cluster: &str) -> String {
        self.missing.iter().map(|purpose| purpose.secret_name(cluster)).collect::<Vec<_>>().join(", ")
    }

    /// Asks for the missing pairs to be created, except those that only the user can supply.
    pub fn create_missing(
        &self,
        cx: &mut Context<'_>,
        (namespace, cluster): (&str, &str),
        settings: Settings,
        owner: &Value,
    ) -> Result<(), Refused> {
        for purpose in self.missing.iter().copied().filter(|purpose| !settings.is_the_users(*purpose)) {
            let pair = new_pair(cx.host, purpose, settings)?;
            let data = [("tls.crt", pair.certificate_pem.as_bytes()), ("tls.key", pair.key_pem.as_bytes())];
            let object = secret((namespace, cluster), &purpose.secret_name(cluster), owner, &data);
            cx.out.create(purpose.secret_name("create"), Place::Management, object);
            // Another pass may have been first: only what is read back counts.
            cx.out.wake_when_applied();
        }
        Ok(())
    }
}

fn new_pair(host: &dyn Host, purpose: Purpose, settings: Settings) -> Result<Pair, Refused> {
    if purpose == Purpose::ServiceAccount {
        let (public, private) = host.new_signing_key(settings.algorithm)?;
        return Ok(Pair { certificate_pem: public, key_pem: private });
    }
    host.new_authority(purpose.common_name(), settings.algorithm, settings.ca_days)
}

/// A Secret of the kind that Cluster API reads.
pub fn secret((namespace, cluster): (&str, &str), name: &str, owner: &Value, data: &[(&str, &[u8])]) -> Value {
    let data: Map<String, Value> =
        data.iter().map(|(key, value)| ((*key).to_owned(), json!(STANDARD.encode(value)))).collect();
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": SECRET_TYPE,
        "metadata": {
            "name": name, "namespace": namespace, "labels": {labels::CLUSTER_NAME: cluster}, "ownerReferences": [owner],
        },
        "data": data,
    })
}

/// What stands in a Secret of a pair; a Secret without certificate is `invalid`.
pub struct Found {
    /// PEM; never empty.
    pub certificate_pem: String,
    /// Empty when there is none.
    pub key_pem: String,
}

/// Reads the Secret of a pair; none when there is no such Secret.
pub fn find(host: &dyn Host, name: &str) -> Result<Option<Found>, Problem> {
    let Some(keys) = host.secret_keys(name, &["tls.crt", "tls.key"]).optional()? else {
        return Ok(None);
    };
    let mut keys = keys.into_iter().map(Option::unwrap_or_default);
    let (certificate, key) = (keys.next().unwrap_or_default(), keys.next().unwrap_or_default());
    let text = |bytes: Vec<u8>, key: &str| {
        String::from_utf8(bytes)
            .map_err(|_| Problem::invalid("NotPem", format!("{key} of Secret {name} is not PEM text")))
    };
    let certificate_pem = text(certificate, "tls.crt")?;
    if certificate_pem.trim().is_empty() {
        return Err(Problem::invalid(
            "CertificateEmpty",
            format!("tls.crt of Secret {name} is empty; fill it in, or delete the Secret if no machine uses it"),
        ));
    }
    Ok(Some(Found { certificate_pem, key_pem: text(key, "tls.key")? }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn keys_are_ecdsa_unless_the_user_asks_for_another_algorithm() {
        for (what, configuration, algorithm, ca_days, external_etcd) in [
            ("nothing said", json!({}), Algorithm::EcdsaP256, 3650, false),
            ("RSA asked for", json!({"encryptionAlgorithm": "RSA-2048"}), Algorithm::Rsa2048, 3650, false),
            ("a shorter validity", json!({"caCertificateValidityPeriodDays": 30}), Algorithm::EcdsaP256, 30, false),
            ("external etcd", json!({"etcd": {"external": {"endpoints": []}}}), Algorithm::EcdsaP256, 3650, true),
            (
                "malformed fields",
                json!({"etcd": 1, "encryptionAlgorithm": 7, "caCertificateValidityPeriodDays": -1}),
                Algorithm::EcdsaP256,
                3650,
                false,
            ),
        ] {
            let settings = Settings::of(configuration.as_object().unwrap());
            assert_eq!(settings, Settings { algorithm, ca_days, external_etcd }, "{what}");
        }
    }

    #[test]
    fn a_secret_that_is_there_but_not_whole_is_the_users_mistake() {
        use capwasm_sdk::test::TestHost;
        let settings = Settings::of(&Map::new());
        let whole = || {
            settings.needed().into_iter().fold(TestHost::new(), |host, purpose| {
                host.secret(&purpose.secret_name("c"), "tls.crt", "pem").secret(
                    &purpose.secret_name("c"),
                    "tls.key",
                    "pem",
                )
            })
        };
        assert!(Certificates::read(&whole(), "c", settings).unwrap().is_complete());
        for (what, host, reason) in [
            ("an empty certificate", whole().secret("c-etcd", "tls.crt", ""), "CertificateEmpty"),
            ("a certificate of blanks", whole().secret("c-ca", "tls.crt", "\n "), "CertificateEmpty"),
            ("an empty key", whole().secret("c-sa", "tls.key", ""), "KeyMissing"),
            ("binary", whole().secret("c-proxy", "tls.crt", vec![0xff]), "NotPem"),
            ("no key", TestHost::new().secret("c-ca", "tls.crt", "pem"), "KeyMissing"),
        ] {
            assert_eq!(Certificates::read(&host, "c", settings).unwrap_err().reason, reason, "{what}");
        }
        let missing = Certificates::read(&TestHost::new(), "c", settings).unwrap();
        assert_eq!(missing.missing_names("c"), "c-ca, c-etcd, c-proxy, c-sa");
    }
}
