//! `clouds.yaml` of a Secret: refused without quoting a secret, or a request for a token to the address that it names, and to no other.

use capwasm_sdk::test::TestHost;
use capwasm_sdk::{Refusal, Refused};
use openstack_infra::fuzzing::connect;
use serde_json::Value;

/// The fields that nobody but Keystone is to see.
const SECRETS: [&str; 3] = ["password", "token", "application_credential_secret"];

pub fn run(data: &[u8]) {
    let host = TestHost::new()
        .secret("credentials", "clouds.yaml", data)
        .insecure_tls()
        .http(|_| Err(Refused::new(Refusal::Unavailable, "NoAnswer", "nobody answers")));
    let problem = connect(&host, "c").expect_err("nobody gave it a token");
    let requests = host.requests();
    for secret in secrets(data) {
        assert!(!problem.message.contains(&secret), "a secret is told: {}", problem.message);
        let seen = |request: &capwasm_sdk::HttpRequest| {
            request.url.contains(&secret) || request.headers.iter().any(|(_, value)| value.contains(&secret))
        };
        assert!(!requests.iter().any(seen), "{secret:?} is not in the body alone: {requests:?}");
    }
    for request in requests {
        let base = request.url.strip_suffix("/v3/auth/tokens").expect("Keystone is asked for a token");
        assert_eq!(request.method, "POST");
        let text = std::str::from_utf8(data).expect("only text has an address");
        assert!(base.chars().all(|char| text.contains(char)), "{base:?} is not in the file");
        let said = ["verify", "insecure"].iter().any(|word| text.contains(word)) || text.contains('\\');
        assert!(!request.insecure || said, "nobody asked for a connection that is not verified");
    }
}

/// Secrets that stand nowhere else in the file, as another YAML reader finds them.
fn secrets(data: &[u8]) -> Vec<String> {
    let Ok(text) = std::str::from_utf8(data) else { return Vec::new() };
    let Ok(document) = serde_saphyr::from_str::<Value>(text) else { return Vec::new() };
    let entry = &document["clouds"]["c"];
    let found = [&entry["auth"], entry].into_iter().flat_map(|fields| SECRETS.map(|name| fields[name].as_str()));
    let found = found.flatten().filter(|secret| secret.len() >= 8 && text.matches(secret).count() == 1);
    found.map(str::to_owned).collect()
}
