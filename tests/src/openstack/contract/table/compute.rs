//! Glance and Nova: images, flavors, server groups, key pairs and servers.

use serde_json::{Value, json};

use super::{C, N, NOWHERE, Step, delete, get, post};

pub(super) fn images() -> Vec<Step> {
    const G: &str = "image";
    vec![
        get("images by name", G, "/v2/images?name=node-image&status=active").keep("image", "/images/0/id"),
        get("images of a name that nobody has", G, "/v2/images?name=nobody"),
        get("images by tag", G, "/v2/images?tag=nobody"),
        get("image by id", G, "/v2/images/<image>"),
        get("image that is not there", G, &format!("/v2/images/{NOWHERE}")).is(404),
        get("images with a bad limit", G, "/v2/images?limit=x").is(400),
        get("images after one that is not there", G, &format!("/v2/images?marker={NOWHERE}")).is(400),
    ]
}

pub(super) fn flavors() -> Vec<Step> {
    vec![
        get("versions of Nova", C, "/").only("/version/id"),
        get("flavors", C, "/flavors/detail?limit=1").only("/flavors/0/links"),
        get("flavor's names", C, "/flavors?limit=1").only("/flavors/0/links"),
        get("flavors of a limit", C, "/flavors?limit=x").is(400),
        get("all flavors", C, "/flavors/detail?sort_key=name").keep("flavor", "/flavors/1/id").only("/flavors/1/name"),
        get("flavor by id", C, "/flavors/<flavor>"),
        get("flavor that is not there", C, "/flavors/nowhere").is(404),
        get("zones", C, "/os-availability-zone"),
        get("zones in detail", C, "/os-availability-zone/detail").is(403),
        post(
            "server group",
            C,
            "/os-server-groups",
            json!({"server_group": {"name": "contract", "policies": ["soft-anti-affinity"]}}),
        )
        .is(200)
        .keep("servers", "/server_group/id"),
        post(
            "server group of no policy",
            C,
            "/os-server-groups",
            json!({"server_group": {"name": "contract", "policies": ["indifference"]}}),
        )
        .is(400),
        get("server groups", C, "/os-server-groups"),
        get("server group that is not there", C, &format!("/os-server-groups/{NOWHERE}")).is(404),
        post(
            "key pair",
            C,
            "/os-keypairs",
            json!({"keypair": {"name": "<name>", "public_key": "ssh-ed25519 \
            AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl t@t"}}),
        )
        .only("/keypair/type"),
    ]
}

pub(super) fn servers() -> Vec<Step> {
    const V: &str = "block-storage";
    let server = |more: Value| {
        let mut body = json!({"name": "contract", "flavorRef": "<flavor>", "imageRef": "<image>", "networks": [{"port": "<port>"}]});
        body.as_object_mut().into_iter().for_each(|body| body.extend(more.as_object().cloned().unwrap_or_default()));
        json!({"server": body})
    };
    vec![
        post("server", C, "/servers", json!({"server": {
            "name": "contract", "flavorRef": "<flavor>", "imageRef": "<image>", "networks": [{"port": "<port>"}],
            "user_data": "I2Nsb3VkLWNvbmZpZwo=", "config_drive": true, "key_name": "<name>", "availability_zone": "az2",
            "metadata": {"cluster": "contract"}, "tags": ["capi", "contract"],
            "block_device_mapping_v2": [
                {"source_type": "image", "uuid": "<image>", "boot_index": 0, "destination_type": "local", "delete_on_termination": true},
                {"source_type": "volume", "uuid": "<volume>", "boot_index": -1, "destination_type": "volume",
                    "delete_on_termination": true, "tag": "etcd"},
            ]}, "os:scheduler_hints": {"group": "<servers>"}})).is(202).keep("server", "/server/id")
            .only("/server/security_groups"),
        get("server by id", C, "/servers/<server>").until("/server/status", "ACTIVE"),
        get("servers by name", C, "/servers/detail?name=%5Econtract%24"),
        get("servers' names", C, "/servers?name=%5Econtract%24"),
        get("servers of a name that nobody has", C, "/servers?name=%5Enobody%24"),
        get("server that is not there", C, &format!("/servers/{NOWHERE}")).is(404),
        get("server's interfaces", C, "/servers/<server>/os-interface"),
        get("port of the server", N, "/v2.0/ports/<port>").until("/port/status", "ACTIVE"),
        get("server group with a member", C, "/os-server-groups/<servers>"),
        get("volume of the server", V, "<volumes>/volumes/<volume>").until("/volume/status", "in-use").only("/volume/status"),
        post("server on a port in use", C, "/servers", server(json!({}))).is(409),
        post("server of no flavor", C, "/servers", server(json!({"flavorRef": "nowhere"}))).is(400),
        post("server of no image", C, "/servers", server(json!({"imageRef": NOWHERE}))).is(400),
        post("server on a port that is not there", C, "/servers", server(json!({"networks": [{"port": NOWHERE}]}))).is(400),
        post("server in a zone that is not there", C, "/servers",
            server(json!({"availability_zone": "moon", "networks": [{"uuid": "<net>"}]}))).is(400),
        post("server with a key that is not there", C, "/servers",
            server(json!({"key_name": "nobody", "networks": [{"uuid": "<net>"}]}))).is(400),
        post("server with user data that is not base64", C, "/servers", server(json!({"user_data": "abc", "networks": [{"uuid": "<net>"}]}))).is(400),
        post("server without a name", C, "/servers", json!({"server": {"flavorRef": "<flavor>", "imageRef": "<image>"}})).is(400),
        post("server in a group that is not there", C, "/servers", json!({"server": {"name": "contract", "flavorRef": "<flavor>",
            "imageRef": "<image>", "networks": [{"uuid": "<net>"}]}, "os:scheduler_hints": {"group": NOWHERE}})).is(400),
        post("server whose build fails", C, "/servers",
            json!({"server": {"name": "broken", "flavorRef": "<flavor>", "imageRef": "<image>", "networks": [{"uuid": "<net>"}],
                "availability_zone": "az-fail"}})).is(202).keep("broken", "/server/id").only(""),
        get("server whose build has failed", C, "/servers/<broken>").until("/server/status", "ERROR").only("/server/fault/code"),
        delete("server whose build has failed away", C, "/servers/<broken>"),
        delete("volume in use", V, "<volumes>/volumes/<volume>").is(400),
        post("server stops", C, "/servers/<server>/action", json!({"os-stop": null})).is(202),
        get("server that is stopped", C, "/servers/<server>").until("/server/status", "SHUTOFF").only("/server/OS-EXT-STS:power_state"),
        post("console", C, "/servers/<server>/action", json!({"os-getConsoleOutput": {}})).is(200).only(""),
        delete("server away", C, "/servers/<server>"),
        get("server that is gone", C, "/servers/<server>").is(404).until("", ""),
        delete("server away again", C, "/servers/<server>").is(404),
        get("volume of the server that is gone", V, "<volumes>/volumes/<volume>").is(404).until("", ""),
        get("port of the server that is gone", N, "/v2.0/ports/<port>").until("/port/status", "DOWN"),
        delete("server group away", C, "/os-server-groups/<servers>"),
        delete("key pair away", C, "/os-keypairs/<name>"),
    ]
}
