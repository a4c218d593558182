//! Authentication and authorisation over TLS.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capwasm_apiserver::{Identity, ServerConfig, pki};
use capwasm_pki::{Algorithm, CertificateError};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use kube::api::{Api, ListParams, PostParams};
use kube::config::Kubeconfig;
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::fixture::{Fixture, Way, client_of, fixture, fixture_with, resource, status, until, with_cluster_info};

async fn as_user(fixture: &Fixture, user: &Value) -> Client {
    let tls = fixture.tls.as_ref().unwrap();
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": tls.url, "certificate-authority-data": STANDARD.encode(tls.pki.ca_pem())}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}], "users": [{"name": "c", "user": user}],
    });
    let kubeconfig: Kubeconfig = serde_json::from_value(config).unwrap();
    Client::try_from(Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap()).unwrap()
}

fn certificate(pem: &capwasm_pki::Pair) -> Value {
    json!({"client-certificate-data": STANDARD.encode(&pem.certificate), "client-key-data": STANDARD.encode(&pem.key)})
}

async fn token(client: &Client, id: &str, secret: &str) {
    let object = json!({"metadata": {"name": format!("bootstrap-token-{id}")}, "type": "bootstrap.kubernetes.io/token", "stringData": {
        "token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true", "expiration": "2999-01-01T00:00:00Z"}});
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "kube-system");
    secrets.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

#[tokio::test]
async fn anonymous_requests_see_health_and_nothing_else() {
    let f = fixture(Way::Tls).await;
    let nobody = as_user(&f, &json!({})).await;
    let secrets: Api<Secret> = Api::all(nobody.clone());
    assert_eq!(status(secrets.list(&ListParams::default()).await).code, 401);
    let ready = nobody.request_text(http::Request::get("/readyz").body(Vec::new()).unwrap()).await.unwrap();
    assert_eq!(ready, "ok");
    assert_eq!(status(nobody.apiserver_version().await).code, 401);
}

#[tokio::test]
async fn cluster_info_is_public_where_the_configuration_says_so() {
    let f = fixture_with(Way::Tls, with_cluster_info()).await;
    let public: Api<ConfigMap> = Api::namespaced(f.client.clone(), "kube-public");
    let info = json!({"metadata": {"name": "cluster-info"}, "data": {"kubeconfig": "x"}});
    public.create(&PostParams::default(), &serde_json::from_value(info).unwrap()).await.unwrap();
    let nobody: Api<ConfigMap> = Api::namespaced(as_user(&f, &json!({})).await, "kube-public");
    assert_eq!(nobody.get("cluster-info").await.unwrap().data.unwrap()["kubeconfig"], "x");
    assert_eq!(status(nobody.get("other").await).code, 401);
}

#[tokio::test]
async fn a_bootstrap_token_authenticates_while_its_secret_is_there() {
    let f = fixture(Way::Tls).await;
    let bearer = json!({"token": "abcdef.0123456789abcdef"});
    let joiner = as_user(&f, &bearer).await;
    let public: Api<ConfigMap> = Api::namespaced(joiner.clone(), "kube-public");
    assert_eq!(status(public.get("cluster-info").await).code, 401, "no such token yet");
    token(&f.client, "abcdef", "0123456789abcdef").await;
    assert_eq!(status(public.get("cluster-info").await).code, 404, "known and allowed");
    let nodes: Api<Node> = Api::all(joiner.clone());
    assert_eq!(status(nodes.get("n").await).code, 403, "known, and granted by nobody");
    assert_eq!(status(nodes.list(&ListParams::default()).await).code, 403);
    let wrong: Api<Node> = Api::all(as_user(&f, &json!({"token": "abcdef.0000000000000000"})).await);
    assert_eq!(status(wrong.get("n").await).code, 401);
}

#[tokio::test]
async fn a_joining_node_gets_its_certificate_signed_and_may_register() {
    let ca_dir = tempfile::tempdir().unwrap();
    let signing = pki::ensure(ca_dir.path(), &["localhost".to_owned()]).unwrap();
    let config = ServerConfig { signer: Some(Arc::new(signing.signer().unwrap())), ..ServerConfig::new("test") };
    let f = fixture_with(Way::Tls, config).await;
    token(&f.client, "abcdef", "0123456789abcdef").await;
    let joiner = as_user(&f, &json!({"token": "abcdef.0123456789abcdef"})).await;
    let request = capwasm_pki::request("system:node:n1", &["system:nodes"], Algorithm::EcdsaP256).unwrap().certificate;
    let body = json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"generateName": "csr-"}, "spec": {
        "request": STANDARD.encode(request), "signerName": "kubernetes.io/kube-apiserver-client-kubelet", "usages": ["client auth"], "username": "admin"}});
    let csrs: Api<kube::api::DynamicObject> = Api::all_with(
        joiner,
        &resource("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests"),
    );
    let created = csrs.create(&PostParams::default(), &crate::fixture::object(body)).await.unwrap();
    assert_eq!(created.data["spec"]["username"], "system:bootstrap:abcdef", "the server says who asks");
    let name = created.metadata.name.unwrap();
    until("the certificate is signed", async || {
        let csr = csrs.get(&name).await.unwrap();
        csr.data.pointer("/status/certificate").and_then(Value::as_str).map(str::to_owned)
    })
    .await;
}

#[tokio::test]
async fn certificates_carry_user_and_groups_and_rbac_decides_for_others() {
    let f = fixture(Way::Tls).await;
    let pki = &f.tls.as_ref().unwrap().pki;
    let user = as_user(&f, &certificate(&pki.client("jane", &["team"]).unwrap())).await;
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let request = |body: &Value, uri: &str| {
        http::Request::post(uri).header("content-type", "application/json").body(body.to_string().into_bytes()).unwrap()
    };
    let me: Value = user.request(request(&review, "/apis/authentication.k8s.io/v1/selfsubjectreviews")).await.unwrap();
    assert_eq!(me["status"]["userInfo"]["username"], "jane");
    let maps: Api<ConfigMap> = Api::default_namespaced(user.clone());
    let refused = status(maps.list(&ListParams::default()).await);
    assert_eq!(refused.code, 403);
    assert!(
        refused.message.contains(
            "User \"jane\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\""
        ),
        "{}",
        refused.message
    );
    let rbac = |kind: &str, plural: &str| resource("rbac.authorization.k8s.io", "v1", kind, plural);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}, "subjects": [{"kind": "Group", "name": "team"}]});
    let roles: Api<kube::api::DynamicObject> =
        Api::namespaced_with(f.client.clone(), "default", &rbac("Role", "roles"));
    roles.create(&PostParams::default(), &crate::fixture::object(role)).await.unwrap();
    let bindings: Api<kube::api::DynamicObject> =
        Api::namespaced_with(f.client.clone(), "default", &rbac("RoleBinding", "rolebindings"));
    bindings.create(&PostParams::default(), &crate::fixture::object(binding)).await.unwrap();
    assert!(maps.list(&ListParams::default()).await.is_ok());
    let access = |verb: &str| json!({"spec": {"resourceAttributes": {"verb": verb, "resource": "configmaps", "namespace": "default"}}});
    let uri = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let may: Value = user.request(request(&access("list"), uri)).await.unwrap();
    let may_not: Value = user.request(request(&access("delete"), uri)).await.unwrap();
    assert_eq!((&may["status"]["allowed"], &may_not["status"]["allowed"]), (&json!(true), &json!(false)));
}

#[tokio::test]
async fn a_certificate_carries_two_groups_and_no_more() {
    let f = fixture(Way::Tls).await;
    let pki = &f.tls.as_ref().unwrap().pki;
    let user = as_user(&f, &certificate(&pki.client("jane", &["one", "two"]).unwrap())).await;
    let request = http::Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
        .header("content-type", "application/json")
        .body(json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).to_string().into_bytes());
    let me: Value = user.request(request.unwrap()).await.unwrap();
    assert_eq!(me["status"]["userInfo"]["groups"], json!(["one", "two", "system:authenticated"]));
    let refused = pki.client("jane", &["one", "two", "three"]);
    assert!(matches!(refused, Err(pki::PkiError::Certificate(CertificateError::Organizations(3)))), "{refused:?}");
}

#[tokio::test]
async fn who_asks_to_be_somebody_else_is_refused_and_not_served_as_who_they_are() {
    let f = fixture(Way::Tls).await;
    let request = http::Request::get("/api/v1/secrets").header("impersonate-user", "jane").body(Vec::new()).unwrap();
    assert_eq!(status(f.client.request_text(request).await).code, 403);
}

#[tokio::test]
async fn who_may_patch_but_not_create_makes_nothing_by_server_side_apply() {
    let f = fixture(Way::InProcess).await;
    let rbac = |kind: &str, plural: &str| resource("rbac.authorization.k8s.io", "v1", kind, plural);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "patcher"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "patcher"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "patcher"}, "subjects": [{"kind": "User", "name": "jane"}]});
    for (resource, object) in [(rbac("Role", "roles"), role), (rbac("RoleBinding", "rolebindings"), binding)] {
        let api: Api<kube::api::DynamicObject> = Api::namespaced_with(f.client.clone(), "default", &resource);
        api.create(&PostParams::default(), &crate::fixture::object(object)).await.unwrap();
    }
    let maps: Api<ConfigMap> = Api::default_namespaced(f.server.client(Identity::new("jane", &[])));
    let apply = |value: &str| {
        kube::api::Patch::Apply(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"k": value}}),
        )
    };
    let params = kube::api::PatchParams::apply("jane");
    let refused = status(maps.patch("m", &params, &apply("1")).await);
    assert_eq!(refused.code, 403);
    assert!(refused.message.contains("cannot create resource \"configmaps\""), "{}", refused.message);
    let own: Api<ConfigMap> = Api::default_namespaced(f.client.clone());
    own.patch(
        "m",
        &kube::api::PatchParams::apply("admin"),
        &kube::api::Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}})),
    )
    .await
    .unwrap();
    assert!(maps.patch("m", &params, &apply("1")).await.is_ok(), "what is there may be patched");
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_refused() {
    let f = fixture(Way::Tls).await;
    let dir = tempfile::tempdir().unwrap();
    let stranger = pki::ensure(dir.path(), &["localhost".to_owned()]).unwrap();
    let client = as_user(&f, &certificate(&stranger.client("admin", &["system:masters"]).unwrap())).await;
    assert!(Api::<ConfigMap>::default_namespaced(client).list(&ListParams::default()).await.is_err());
}

#[tokio::test]
async fn in_process_identities_go_through_the_same_rules() {
    let f = fixture(Way::InProcess).await;
    let nodes = Identity::new("system:node:n1", &["system:nodes"]);
    let node = f.server.client(nodes);
    assert_eq!(status(Api::<Node>::all(node.clone()).get("n1").await).code, 404);
    assert_eq!(
        status(Api::<ConfigMap>::default_namespaced(node).create(&PostParams::default(), &ConfigMap::default()).await)
            .code,
        403
    );
}

#[tokio::test]
async fn the_administrators_kubeconfig_works() {
    let f = fixture(Way::Tls).await;
    let client = client_of(&f.tls.as_ref().unwrap().kubeconfig).await;
    assert_eq!(client.apiserver_version().await.unwrap().git_version, "v1.34.0");
    // What upstream's cluster cache asks to see whether the server answers.
    let root: serde_json::Value = client.request(http::Request::get("/").body(Vec::new()).unwrap()).await.unwrap();
    let paths = root["paths"].as_array().unwrap();
    for path in ["/api/v1", "/apis/coordination.k8s.io", "/apis/coordination.k8s.io/v1", "/livez", "/version"] {
        assert!(paths.contains(&path.into()), "{path}: {root}");
    }
    assert!(f.tls.unwrap().dir.path().exists());
}
