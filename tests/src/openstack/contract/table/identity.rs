//! Keystone: tokens and application credentials; and what every service says to a wrong token.

use serde_json::{Value, json};

use super::{NOWHERE, Step, Who, delete, get, post};

pub(super) fn identity() -> Vec<Step> {
    const I: &str = "identity";
    let password = |user: &str, password: &str| {
        json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user": {
                "name": user, "domain": {"name": "Default"}, "password": password,
            }}},
            "scope": {"project": {"name": "<name>", "domain": {"name": "Default"}}},
        }})
    };
    let credential = |credential: Value| {
        json!({"auth": {"identity": {
            "methods": ["application_credential"], "application_credential": credential,
        }}})
    };
    let user = json!({"name": "<name>", "domain": {"id": "default"}});
    vec![
        post("token by password", I, "/auth/tokens", password("<name>", "of-a-test"))
            .by(Who::Nobody)
            .only("/token/user/domain"),
        post("token by a wrong password", I, "/auth/tokens", password("<name>", "wrong")).by(Who::Nobody).is(401),
        post("token of a user who is not there", I, "/auth/tokens", password("nobody", "of-a-test"))
            .by(Who::Nobody)
            .is(401),
        post("token by nothing", I, "/auth/tokens", json!({})).by(Who::Nobody).is(400),
        post(
            "application credential",
            I,
            "/users/<user>/application_credentials",
            json!({"application_credential": {"name": "capi", "secret": "s3cret"}}),
        )
        .keep("credential", "/application_credential/id")
        .only("/application_credential/name"),
        post(
            "application credential of the same name",
            I,
            "/users/<user>/application_credentials",
            json!({"application_credential": {"name": "capi", "secret": "s3cret"}}),
        )
        .is(409),
        post(
            "token by application credential",
            I,
            "/auth/tokens",
            credential(json!({"id": "<credential>", "secret": "s3cret"})),
        )
        .by(Who::Nobody)
        .only("/token/methods"),
        post(
            "token by application credential's name",
            I,
            "/auth/tokens",
            credential(json!({"name": "capi", "user": user, "secret": "s3cret"})),
        )
        .by(Who::Nobody)
        .only("/token/project/domain"),
        post(
            "token by a wrong secret",
            I,
            "/auth/tokens",
            credential(json!({"id": "<credential>", "secret": "wrong"})),
        )
        .by(Who::Nobody)
        .is(401),
        post(
            "token by an application credential that is not there",
            I,
            "/auth/tokens",
            credential(json!({"id": NOWHERE.replace('-', ""), "secret": "s3cret"})),
        )
        .by(Who::Nobody)
        .is(404),
        delete("application credential away", I, "/users/<user>/application_credentials/<credential>"),
        delete("application credential away again", I, "/users/<user>/application_credentials/<credential>").is(404),
        get("networks without a token", "network", "/v2.0/networks").by(Who::Nobody).is(401),
        get("networks with a wrong token", "network", "/v2.0/networks").by(Who::Stranger).is(401),
        get("servers with a wrong token", "compute", "/servers").by(Who::Stranger).is(401),
        get("images with a wrong token", "image", "/v2/images").by(Who::Stranger).is(401),
        get("volumes with a wrong token", "block-storage", "<volumes>/volumes").by(Who::Stranger).is(401),
        get("load balancers with a wrong token", "load-balancer", "/v2/lbaas/loadbalancers").by(Who::Stranger).is(401),
    ]
}
