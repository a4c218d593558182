//! Tokens, catalog, versions.

use serde_json::{Value, json};

use super::client::{Client, cloud, password};

#[tokio::test]
async fn tokens_come_by_password_by_application_credential_and_by_token() {
    let (cloud, client) = cloud().await;
    let path = "/identity/v3/auth/tokens";
    let (status, body) = client.ask("POST", path, password("demo", "wrong")).await;
    let expected = json!({ "error": { "code": 401, "message": "The request you have made requires authentication.", "title": "Unauthorized" } });
    assert_eq!((status, body), (401, expected));

    let yaml = cloud.clouds_yaml();
    let value = |key: &str| {
        let line = yaml.lines().find_map(|line| line.trim().strip_prefix(key)).unwrap();
        line.trim_start_matches(':').trim().to_owned()
    };
    let credential = |id: &str, secret: &str| {
        let given = json!({ "id": id, "secret": secret });
        json!({ "auth": { "identity": { "methods": ["application_credential"], "application_credential": given } } })
    };
    let (id, secret) = (value("application_credential_id"), value("application_credential_secret"));
    let (status, body) = client.ask("POST", path, credential(&id, &secret)).await;
    assert_eq!(status, 201);
    assert_eq!(body["token"]["project"]["name"], "demo");
    assert_eq!(body["token"]["application_credential"]["name"], "ost");
    assert_eq!(client.ask("POST", path, credential(&id, "wrong")).await.0, 401);
    let (status, body) = client.ask("POST", path, credential("nope", "wrong")).await;
    assert_eq!(
        (status, body["error"]["message"].as_str().unwrap()),
        (404, "Could not find Application Credential: nope.")
    );

    let by_token = json!({ "auth": { "identity": { "methods": ["token"], "token": { "id": client.token } } } });
    assert_eq!(client.ask("POST", path, by_token).await.0, 201);
    cloud.stop().await;
}

#[tokio::test]
async fn the_catalog_leads_to_services_that_refuse_a_bad_token_each_in_its_way() {
    let (cloud, client) = cloud().await;
    let token = client.get("/identity/v3/auth/catalog").await;
    let services = token["catalog"].as_array().unwrap();
    let url = |kind: &str| {
        let service = services.iter().find(|service| service["type"] == kind).unwrap();
        let public = service["endpoints"].as_array().unwrap().iter().find(|one| one["interface"] == "public").unwrap();
        assert_eq!(public["region_id"], "RegionOne");
        let base = format!("http://{}", cloud.address());
        public["url"].as_str().unwrap().strip_prefix(&base).unwrap().to_owned()
    };
    let paths = [
        ("compute", "/servers"),
        ("network", "/v2.0/networks"),
        ("image", "/v2/images"),
        ("load-balancer", "/v2/lbaas/loadbalancers"),
        ("block-storage", "/volumes"),
    ];
    let mut stranger = Client::of(&cloud, "demo").await;
    stranger.token = "bad".into();
    for (kind, path) in paths {
        let path = format!("{}{path}", url(kind));
        client.get(&path).await;
        let (status, body) = stranger.ask("GET", &path, Value::Null).await;
        assert_eq!(status, 401, "{path}");
        match kind {
            "image" => assert!(body.as_str().unwrap().contains("<title>401 Unauthorized</title>")),
            _ => assert_eq!(body["error"]["title"], "Unauthorized", "{path}"),
        }
    }
    cloud.stop().await;
}

#[tokio::test]
async fn microversions_are_negotiated_and_versions_told_to_everybody() {
    let (cloud, client) = cloud().await;
    let answer = client.send("GET", "/compute/v2.1/servers", &Value::Null).await.unwrap();
    assert_eq!(answer.headers["openstack-api-version"], "compute 2.60");
    let mut nobody = Client::of(&cloud, "demo").await;
    nobody.token.clear();
    assert_eq!(nobody.get("/compute/").await["versions"][0]["version"], "2.103");
    assert_eq!(nobody.get("/networking/").await["versions"][0]["id"], "v2.0");
    let versions = nobody.get("/load-balancer/").await;
    assert!(versions["versions"].as_array().unwrap().iter().any(|version| version["id"] == "v2.12"));
    cloud.stop().await;
}
