//! Keystone: tokens for one application credential.

use capwasm_sdk::HttpResponse;
use serde_json::{Value, json};

use super::{ORIGIN, PROJECT, REGION, State};

/// Seconds that a token is good for.
const LIFE: u64 = 3_600;

impl State {
    pub(super) fn keystone(&mut self, method: &str, path: &str, body: &Value) -> HttpResponse {
        let refuse = |status: u16, message: &str| HttpResponse {
            status,
            headers: Vec::new(),
            body: json!({"error": {"code": status, "message": message}}).to_string().into_bytes(),
        };
        if (method, path) != ("POST", "/v3/auth/tokens") {
            return refuse(404, "not found");
        }
        let credential = &body["auth"]["identity"]["application_credential"];
        if credential["id"] != "credential" || credential["secret"] != "secret" {
            return refuse(401, "The request you have made requires authentication.");
        }
        self.tokens += 1;
        let entry = |kind: &str, path: &str| {
            let endpoint =
                json!({"interface": "public", "region_id": REGION, "region": REGION, "url": format!("{ORIGIN}{path}")});
            json!({"type": kind, "endpoints": [endpoint]})
        };
        let catalog: Vec<Value> = [
            ("compute", "/compute/v2.1"),
            ("network", "/network"),
            ("image", "/image"),
            ("load-balancer", "/load-balancer"),
            ("block-storage", "/volume/v3/project-a"),
        ]
        .iter()
        .filter(|(kind, _)| !self.store.missing.iter().any(|missing| missing == kind))
        .map(|(kind, path)| entry(kind, path))
        .collect();
        let token = json!({"token": {
            "issued_at": instant(self.now), "expires_at": instant(self.now + LIFE),
            "project": {"id": PROJECT, "name": "a"}, "catalog": catalog,
        }});
        HttpResponse {
            status: 201,
            headers: vec![("x-subject-token".to_owned(), format!("token-{}", self.tokens))],
            body: token.to_string().into_bytes(),
        }
    }
}

/// As Keystone writes it, for instants of 14 and 15 November 2023.
fn instant(seconds: u64) -> String {
    let since = seconds - 1_699_920_000;
    let (day, rest) = (14 + since / 86_400, since % 86_400);
    format!("2023-11-{day}T{:02}:{:02}:{:02}.000000Z", rest / 3_600, rest / 60 % 60, rest % 60)
}
