//! Nova, Glance and Cinder.

use serde_json::{Value, json};

use super::client::{Client, cloud, id};

fn message(body: &Value) -> &str {
    let problem = body.as_object().and_then(|body| body.values().next()).unwrap_or(&Value::Null);
    problem["message"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_server_is_built_binds_its_port_and_lets_it_go() {
    let (cloud, client) = cloud().await;
    let (network, ..) = client.network("c", "10.6.0.0/24").await;
    let port = id(&client.make("/networking/v2.0/ports", "port", json!({ "network_id": network })).await);
    let data = "I2Nsb3VkLWNvbmZpZw==";
    let group = client
        .make(
            "/compute/v2.1/os-server-groups",
            "server_group",
            json!({ "name": "g", "policies": ["soft-anti-affinity"] }),
        )
        .await;
    let more = json!({ "user_data": data, "metadata": { "a": "b" }, "tags": ["t"], "config_drive": true, "availability_zone": "az2" });
    let server = client.server("cp-0", &[&port], more).await;
    let path = format!("/compute/v2.1/servers/{server}");
    let built = client.until(&path, |_, body| body["server"]["status"] != "BUILD").await;
    let built = &built["server"];
    assert_eq!(built["status"], "ACTIVE");
    assert_eq!(
        (built["OS-EXT-AZ:availability_zone"].as_str(), built["config_drive"].as_str()),
        (Some("az2"), Some("True"))
    );
    assert_eq!((&built["tags"], &built["metadata"]), (&json!(["t"]), &json!({ "a": "b" })));
    assert_eq!(built["addresses"]["c"][0]["addr"], "10.6.0.2");
    assert!(built["OS-EXT-SRV-ATTR:user_data"].is_null(), "only administrators see user data");
    let admin = Client::of(&cloud, "admin").await;
    assert_eq!(admin.get(&path).await["server"]["OS-EXT-SRV-ATTR:user_data"], data);
    let bound = client.get(&format!("/networking/v2.0/ports/{port}")).await;
    assert_eq!(
        (bound["port"]["status"].as_str(), bound["port"]["device_owner"].as_str()),
        (Some("ACTIVE"), Some("compute:az2"))
    );
    let interfaces = client.get(&format!("{path}/os-interface")).await;
    assert_eq!(interfaces["interfaceAttachments"][0]["port_id"], port.as_str());
    let found = client.get("/compute/v2.1/servers?name=%5Ecp-0%24").await;
    assert_eq!(id(&found["servers"][0]), server);
    assert_eq!(client.get("/compute/v2.1/servers?name=%5Ecp%24").await["servers"], json!([]));

    // Its port is taken.
    let (flavor, image) = client.flavor_and_image().await;
    let given =
        json!({ "server": { "name": "x", "flavorRef": flavor, "imageRef": image, "networks": [{ "port": port }] } });
    let (status, body) = client.ask("POST", "/compute/v2.1/servers", given).await;
    assert_eq!((status, message(&body)), (409, format!("Port {port} is still in use.").as_str()));

    assert_eq!(client.delete(&path).await, 204);
    client.until(&path, |status, _| status == 404).await;
    assert_eq!(client.delete(&path).await, 404);
    let free = client.get(&format!("/networking/v2.0/ports/{port}")).await;
    assert_eq!((free["port"]["status"].as_str(), free["port"]["device_id"].as_str()), (Some("DOWN"), Some("")));
    assert_eq!(client.delete(&format!("/compute/v2.1/os-server-groups/{}", id(&group))).await, 204);
    cloud.stop().await;
}

#[tokio::test]
async fn what_a_server_cannot_be_made_of_is_refused_in_novas_words() {
    let (cloud, client) = cloud().await;
    let (flavor, image) = client.flavor_and_image().await;
    let nothing = "11111111-1111-1111-1111-111111111111";
    let base = json!({ "name": "x", "flavorRef": flavor, "imageRef": image, "networks": "none" });
    for (name, value, expected) in [
        ("flavorRef", json!("nope"), "Flavor nope could not be found.".to_owned()),
        ("imageRef", json!(nothing), "Can not find requested image".to_owned()),
        ("key_name", json!("nope"), "Invalid key_name provided.".to_owned()),
        ("availability_zone", json!("nope"), "The requested availability zone is not available".to_owned()),
        ("networks", json!([{ "port": nothing }]), format!("Port id {nothing} could not be found.")),
        ("name", json!(""), "Invalid input for field/attribute name. Value: . '' should be non-empty".to_owned()),
    ] {
        let mut given = base.clone();
        given[name] = value;
        let (status, body) = client.ask("POST", "/compute/v2.1/servers", json!({ "server": given })).await;
        assert_eq!((status, body["badRequest"]["message"].as_str()), (400, Some(expected.as_str())), "{body}");
    }
    assert_eq!(client.ask("GET", "/compute/v2.1/os-availability-zone/detail", Value::Null).await.0, 403);
    let zones = client.get("/compute/v2.1/os-availability-zone").await;
    assert_eq!(zones["availabilityZoneInfo"][0]["zoneName"], "az1");
    cloud.stop().await;
}

#[tokio::test]
async fn builds_fail_on_request_and_servers_go_astray_by_themselves() {
    let (cloud, client) = cloud().await;
    let (network, ..) = client.network("c", "10.6.0.0/24").await;
    let port = id(&client.make("/networking/v2.0/ports", "port", json!({ "network_id": network })).await);
    let failed = client.server("x", &[&port], json!({ "availability_zone": "az-fail" })).await;
    let path = format!("/compute/v2.1/servers/{failed}");
    let found = client.until(&path, |_, body| body["server"]["status"] == "ERROR").await;
    assert_eq!(found["server"]["fault"]["code"], 500);
    // Its port is free for another, and it is gone at once.
    let server = client.server("y", &[&port], json!({})).await;
    assert_eq!(client.delete(&path).await, 204);
    assert_eq!(client.ask("GET", &path, Value::Null).await.0, 404);

    let path = format!("/compute/v2.1/servers/{server}");
    client.until(&path, |_, body| body["server"]["status"] == "ACTIVE").await;
    let action = format!("{path}/action");
    assert_eq!(client.ask("POST", &action, json!({ "os-stop": null })).await.0, 202);
    assert_eq!(client.get(&path).await["server"]["status"], "SHUTOFF");
    assert_eq!(client.ask("POST", &action, json!({ "os-stop": null })).await.0, 409);
    assert!(cloud.set_server("y", "ERROR", "disk on fire"));
    assert_eq!(client.get(&path).await["server"]["fault"]["message"], "disk on fire");
    assert!(cloud.set_server("y", "GONE", ""));
    assert_eq!(client.ask("GET", &path, Value::Null).await.0, 404);
    assert!(!cloud.set_server("y", "ERROR", ""));
    cloud.stop().await;
}

#[tokio::test]
async fn volumes_are_made_attached_and_go_with_their_server_when_asked() {
    let (cloud, client) = cloud().await;
    let (_, image) = client.flavor_and_image().await;
    let kept = id(&client.make("/volume/v3/volumes", "volume", json!({ "name": "kept", "size": 1 })).await);
    let root = id(&client
        .make("/volume/v3/volumes", "volume", json!({ "name": "root", "size": 20, "imageRef": image }))
        .await);
    let path = |volume: &str| format!("/volume/v3/volumes/{volume}");
    for volume in [&kept, &root] {
        client.until(&path(volume), |_, body| body["volume"]["status"] == "available").await;
    }
    let devices = json!([
        { "source_type": "volume", "destination_type": "volume", "uuid": root, "boot_index": 0, "delete_on_termination": true },
        { "source_type": "volume", "destination_type": "volume", "uuid": kept, "boot_index": -1, "delete_on_termination": false },
    ]);
    let (flavor, _) = client.flavor_and_image().await;
    let given = json!({ "name": "v", "flavorRef": flavor, "networks": "none", "block_device_mapping_v2": devices });
    let server = id(&client.make("/compute/v2.1/servers", "server", given).await);
    assert_eq!(client.get(&path(&root)).await["volume"]["attachments"][0]["server_id"], server.as_str());
    assert_eq!(client.delete(&path(&root)).await, 400, "a volume in use stays");
    let server = format!("/compute/v2.1/servers/{server}");
    client.until(&server, |_, body| body["server"]["status"] == "ACTIVE").await;
    client.delete(&server).await;
    client.until(&server, |status, _| status == 404).await;
    client.until(&path(&root), |status, _| status == 404).await;
    assert_eq!(client.get(&path(&kept)).await["volume"]["status"], "available");
    let found = client.get("/volume/v3/volumes?name=kept").await;
    assert_eq!(id(&found["volumes"][0]), kept);
    let (status, body) =
        client.ask("POST", "/volume/v3/volumes", json!({ "volume": { "size": 1, "volume_type": "nope" } })).await;
    assert_eq!((status, message(&body)), (404, "Volume type with name nope could not be found."));
    cloud.stop().await;
}

#[tokio::test]
async fn images_are_found_by_name_and_tags_and_quotas_of_servers_hold() {
    let (cloud, client) = cloud().await;
    let given = json!({ "name": "mine", "disk_format": "raw", "container_format": "bare", "tags": ["a", "b"], "os_type": "linux" });
    let (status, image) = client.ask("POST", "/image/v2/images", given).await;
    assert_eq!((status, image["status"].as_str()), (201, Some("queued")));
    let path = format!("/image/v2/images/{}", id(&image));
    assert_eq!(client.ask("PUT", &format!("{path}/file"), json!("data")).await.0, 204);
    assert_eq!(client.get(&path).await["status"], "active");
    let names =
        async |query: &str| client.get(&format!("/image/v2/images?{query}")).await["images"].as_array().unwrap().len();
    assert_eq!((names("tag=a&tag=b").await, names("tag=a&tag=c").await, names("name=mine").await), (1, 0, 1));
    let (status, body) = client.ask("GET", "/image/v2/images/nope", Value::Null).await;
    assert_eq!(status, 404);
    assert!(body.as_str().unwrap().contains("No image found with ID nope"));

    let admin = Client::of(&cloud, "admin").await;
    let project = image["owner"].as_str().unwrap();
    let path = format!("/compute/v2.1/os-quota-sets/{project}");
    assert_eq!(admin.ask("PUT", &path, json!({ "quota_set": { "instances": 0 } })).await.0, 200);
    let (flavor, image) = client.flavor_and_image().await;
    let given = json!({ "server": { "name": "x", "flavorRef": flavor, "imageRef": image, "networks": "none" } });
    let (status, body) = client.ask("POST", "/compute/v2.1/servers", given).await;
    let expected = "Quota exceeded for instances: Requested 1, but already used 0 of 0 instances";
    assert_eq!((status, body["forbidden"]["message"].as_str()), (403, Some(expected)));
    let path = format!("/volume/v3/os-quota-sets/{project}");
    assert_eq!(admin.ask("PUT", &path, json!({ "quota_set": { "volumes": 0 } })).await.0, 200);
    let answer = client.send("POST", "/volume/v3/volumes", &json!({ "volume": { "size": 1 } })).await.unwrap();
    assert_eq!((answer.status, answer.headers["retry-after"].to_str().unwrap()), (413, "0"));
    cloud.stop().await;
}
