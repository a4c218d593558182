//! The definitions of openstack-infra, as the server enforces them: what webhooks do elsewhere is said in CEL.

use std::path::Path;

use capwasm_apiserver::{Identity, Server, ServerConfig, Store};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::fixture::{crds, object, resource, status};

const GROUP: &str = "infrastructure.cluster.x-k8s.io";
const ID: &str = "11111111-2222-3333-4444-555555555555";
const OTHER_ID: &str = "99999999-2222-3333-4444-555555555555";

enum Answer {
    Allowed,
    /// With this message.
    Refused(&'static str),
}
use Answer::{Allowed, Refused};

struct Kind {
    api: Api<DynamicObject>,
    kind: &'static str,
    version: &'static str,
}

async fn server() -> (Server, Client) {
    let server = Server::start(Store::memory().unwrap(), ServerConfig::new("test")).await.unwrap();
    let client = server.client(Identity::admin("tester"));
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &crds());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/openstack-infra/crds");
    let mut installed = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let crd: Value = serde_json::from_slice(&std::fs::read(file.unwrap().path()).unwrap()).unwrap();
        api.create(&PostParams::default(), &object(crd)).await.unwrap();
        installed += 1;
    }
    assert_eq!(installed, 7);
    (server, client)
}

fn kind(client: &Client, kind: &'static str, version: &'static str) -> Kind {
    let resource = resource(GROUP, version, kind, &format!("{}s", kind.to_lowercase()));
    Kind { api: Api::namespaced_with(client.clone(), "default", &resource), kind, version }
}

impl Kind {
    async fn create(&self, name: &str, spec: &Value) -> Result<DynamicObject, kube::Error> {
        let value = json!({"apiVersion": format!("{GROUP}/{}", self.version), "kind": self.kind, "metadata": {"name": name}, "spec": spec});
        self.api.create(&PostParams::default(), &object(value)).await
    }

    /// Changes a fresh object for each row, whose status is `status`.
    async fn table(&self, spec: &Value, observed: Option<Value>, rows: Vec<(&str, Value, Value, Answer)>) {
        for (at, (what, before, change, answer)) in rows.into_iter().enumerate() {
            let name = format!("row-{at}");
            let mut spec = spec.clone();
            merge(&mut spec, &before);
            self.create(&name, &spec).await.unwrap_or_else(|error| panic!("{what}: {error}"));
            if let Some(observed) = &observed {
                let patch = Patch::Merge(json!({"status": observed}));
                self.api.patch_status(&name, &PatchParams::default(), &patch).await.unwrap();
            }
            let changed = self.api.patch(&name, &PatchParams::default(), &Patch::Merge(json!({"spec": change}))).await;
            match answer {
                Allowed => {
                    changed.unwrap_or_else(|error| panic!("{what}: {error}"));
                }
                Refused(words) => {
                    assert!(changed.is_err(), "{what} is allowed");
                    let refused = status(changed);
                    assert!(refused.code == 422 && refused.message.contains(words), "{what}: {}", refused.message);
                }
            }
        }
    }
}

fn merge(target: &mut Value, patch: &Value) {
    for (name, value) in patch.as_object().unwrap() {
        match value {
            Value::Object(_) if target[name].is_object() => merge(&mut target[name], value),
            _ => target[name] = value.clone(),
        }
    }
}

fn drop_nulls(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, value| !value.is_null());
        fields.values_mut().for_each(drop_nulls);
    }
}

fn identity() -> Value {
    json!({"type": "Secret", "name": "credentials", "cloudName": "openstack"})
}

fn machine() -> Value {
    json!({"flavor": "m1.small", "image": {"filter": {"name": "node"}}, "sshKeyName": "key"})
}

#[tokio::test]
async fn of_a_cluster_only_what_can_be_changed_in_openstack_can_be_changed() {
    let (_server, client) = server().await;
    let clusters = kind(&client, "OpenStackCluster", "v1beta1");
    let spec = json!({
        "identityRef": identity(), "tags": ["a"], "apiServerLoadBalancer": {"enabled": true, "allowedCIDRs": ["10.0.0.0/8"]},
        "managedSubnets": [{"cidr": "10.6.0.0/24", "dnsNameservers": ["1.1.1.1"]}],
        "managedSecurityGroups": {"allowAllInClusterTraffic": false}, "externalNetwork": {"filter": {"name": "public"}},
    });
    let bastion = |enabled: bool, flavor: &str| json!({"bastion": {"enabled": enabled, "spec": {"flavor": flavor, "image": {"id": ID}}}});
    let none = || json!({});
    let closed = || json!({"disableAPIServerFloatingIP": true});
    let fixed = || json!({"disableAPIServerFloatingIP": true, "apiServerFixedIP": "10.6.0.9", "apiServerPort": 443});
    let observed = json!({
        "ready": true, "externalNetwork": {"id": ID, "name": "public"},
        "apiServerLoadBalancer": {"id": ID, "name": "lb", "internalIP": "10.6.0.9", "ip": "172.24.4.9"},
    });
    let rows = vec![
        ("another identity", none(), json!({"identityRef": {"name": "new"}}), Allowed),
        ("another region", none(), json!({"identityRef": {"region": "b"}}), Refused("region cannot be changed")),
        ("tags", none(), json!({"tags": ["b"]}), Refused("tags cannot be changed")),
        ("more tags", json!({"tags": null}), json!({"tags": ["b"]}), Refused("tags cannot be changed")),
        ("the endpoint, once", none(), json!({"controlPlaneEndpoint": {"host": "h", "port": 6443}}), Allowed),
        (
            "another endpoint",
            json!({"controlPlaneEndpoint": {"host": "h", "port": 6443}}),
            json!({"controlPlaneEndpoint": {"host": "i"}}),
            Refused("controlPlaneEndpoint"),
        ),
        (
            "nameservers",
            none(),
            json!({"managedSubnets": [{"cidr": "10.6.0.0/24", "dnsNameservers": ["8.8.8.8"]}]}),
            Allowed,
        ),
        ("another range", none(), json!({"managedSubnets": [{"cidr": "10.7.0.0/24"}]}), Refused("only dnsNameservers")),
        ("no more ranges", none(), json!({"managedSubnets": null}), Refused("only dnsNameservers")),
        ("allowed CIDRs", none(), json!({"apiServerLoadBalancer": {"allowedCIDRs": []}}), Allowed),
        ("the monitor", none(), json!({"apiServerLoadBalancer": {"monitor": {"delay": 30}}}), Allowed),
        (
            "more ports",
            none(),
            json!({"apiServerLoadBalancer": {"additionalPorts": [22]}}),
            Refused("additionalPorts cannot be changed"),
        ),
        ("no load balancer", none(), json!({"apiServerLoadBalancer": null}), Refused("cannot be added or removed")),
        (
            "security group rules",
            none(),
            json!({"managedSecurityGroups": {"allowAllInClusterTraffic": true, "workerNodesSecurityGroupRules": [{"name": "r", "direction": "ingress"}]}}),
            Allowed,
        ),
        ("no security groups", none(), json!({"managedSecurityGroups": null}), Refused("managedSecurityGroups")),
        (
            "security groups, later",
            json!({"managedSecurityGroups": null}),
            json!({"managedSecurityGroups": {"allowAllInClusterTraffic": true}}),
            Allowed,
        ),
        ("a fixed address, once", closed(), json!({"apiServerFixedIP": "10.6.0.9"}), Allowed),
        ("a fixed address beside a floating one", none(), json!({"apiServerFixedIP": "10.6.0.9"}), Refused("set once")),
        ("another fixed address", fixed(), json!({"apiServerFixedIP": "10.6.0.8"}), Refused("set once")),
        ("a port, once", closed(), json!({"apiServerPort": 443}), Allowed),
        ("another port", fixed(), json!({"apiServerPort": 8443}), Refused("set once")),
        (
            "zones",
            none(),
            json!({"controlPlaneAvailabilityZones": ["a"], "controlPlaneOmitAvailabilityZone": true}),
            Allowed,
        ),
        ("the id that the filter found", none(), json!({"externalNetwork": {"id": ID, "filter": null}}), Allowed),
        (
            "another id",
            none(),
            json!({"externalNetwork": {"id": OTHER_ID, "filter": null}}),
            Refused("not what the filter found"),
        ),
        (
            "another filter",
            none(),
            json!({"externalNetwork": {"filter": {"name": "x"}}}),
            Refused("externalNetwork cannot be changed"),
        ),
        ("the balancer's own address", none(), json!({"apiServerFloatingIP": "172.24.4.9"}), Allowed),
        ("another address", none(), json!({"apiServerFloatingIP": "172.24.4.10"}), Refused("apiServerFloatingIP")),
        ("a bastion", none(), bastion(true, "a"), Allowed),
        ("a disabled bastion's machine", bastion(false, "a"), bastion(true, "b"), Allowed),
        ("an enabled bastion's machine", bastion(true, "a"), bastion(true, "b"), Allowed),
        ("an enabled bastion goes", bastion(true, "a"), json!({"bastion": null}), Refused("disable it first")),
        ("an enabled bastion is disabled", bastion(true, "a"), json!({"bastion": {"enabled": false}}), Allowed),
        ("a bastion without a machine", none(), json!({"bastion": {"enabled": true}}), Refused("needs a spec")),
    ];
    clusters.table(&spec, Some(observed), rows).await;
    let mut closed = spec.clone();
    merge(&mut closed, &json!({"disableExternalNetwork": true}));
    let refused = status(clusters.create("closed", &closed).await);
    assert!(refused.message.contains("needs disableAPIServerFloatingIP: true"), "{}", refused.message);
    merge(&mut closed, &json!({"disableAPIServerFloatingIP": true}));
    clusters.create("closed", &closed).await.unwrap();
    merge(&mut closed, &bastion(true, "a"));
    merge(&mut closed, &json!({"bastion": {"floatingIP": "172.24.4.3"}}));
    let refused = status(clusters.create("closed-bastion", &closed).await);
    assert!(refused.message.contains("no floatingIP"), "{}", refused.message);
}

#[tokio::test]
async fn of_a_machine_little_can_be_changed_and_of_its_template_nothing() {
    let (_server, client) = server().await;
    let ports = |pairs: Value| json!([{"network": {"id": ID}, "allowedAddressPairs": pairs}]);
    let mut spec = machine();
    spec["ports"] = ports(json!([]));
    let pairs = ports(json!([{"ipAddress": "10.0.0.1"}]));
    let none = || json!({});
    let machines = kind(&client, "OpenStackMachine", "v1beta1");
    let rows = || {
        vec![
            ("the flavor", none(), json!({"flavor": "m1.large"}), Refused("flavor cannot be changed")),
            ("a flavor's id", none(), json!({"flavorID": "1"}), Refused("flavorID cannot be changed")),
            ("the image", none(), json!({"image": {"filter": {"name": "new"}}}), Refused("image cannot be changed")),
            ("address pairs", none(), json!({"ports": pairs.clone()}), Allowed),
            (
                "another network",
                none(),
                json!({"ports": [{"network": {"filter": {"name": "n"}}}]}),
                Refused("only allowedAddressPairs"),
            ),
            (
                "no network",
                none(),
                json!({"ports": [{"allowedAddressPairs": []}]}),
                Refused("only allowedAddressPairs"),
            ),
            (
                "a port's name",
                none(),
                json!({"ports": [{"network": {"id": ID}, "allowedAddressPairs": [], "nameSuffix": "x"}]}),
                Refused("only allowedAddressPairs"),
            ),
            ("another port", none(), json!({"ports": [{}, {}]}), Refused("ports cannot be added or removed")),
            ("no ports", none(), json!({"ports": []}), Refused("ports cannot be added or removed")),
        ]
    };
    machines.table(&spec, None, rows()).await;
    let more = vec![
        ("the provider ID", none(), json!({"providerID": "openstack://r/1"}), Allowed),
        ("the identity", none(), json!({"identityRef": identity()}), Allowed),
    ];
    let machines = Kind {
        api: Api::namespaced_with(
            client.clone(),
            "other",
            &resource(GROUP, "v1beta1", "OpenStackMachine", "openstackmachines"),
        ),
        ..machines
    };
    let spaces: Api<DynamicObject> = Api::all_with(client.clone(), &resource("", "v1", "Namespace", "namespaces"));
    let space = object(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}));
    spaces.create(&PostParams::default(), &space).await.unwrap();
    machines.table(&spec, None, more).await;
    let servers = kind(&client, "OpenStackServer", "v1alpha1");
    let mut server = spec.clone();
    merge(&mut server, &json!({"identityRef": identity()}));
    servers.table(&server, None, rows()).await;

    let templates = kind(&client, "OpenStackMachineTemplate", "v1beta1");
    templates.create("t", &json!({"template": {"spec": spec}})).await.unwrap();
    for (change, words) in [
        (json!({"flavor": "x"}), "flavor cannot be changed"),
        (json!({"identityRef": identity()}), "identityRef cannot be changed"),
    ] {
        let patch = Patch::Merge(json!({"spec": {"template": {"spec": change}}}));
        let refused = status(templates.api.patch("t", &PatchParams::default(), &patch).await);
        assert!(refused.message.contains(words), "{}", refused.message);
    }
    let templates = kind(&client, "OpenStackClusterTemplate", "v1beta1");
    templates.create("t", &json!({"template": {"spec": {"identityRef": identity()}}})).await.unwrap();
    let patch = Patch::Merge(json!({"spec": {"template": {"spec": {"tags": ["x"]}}}}));
    let refused = status(templates.api.patch("t", &PatchParams::default(), &patch).await);
    assert!(refused.message.contains("make another one"), "{}", refused.message);
}

#[tokio::test]
async fn what_contradicts_itself_is_refused() {
    let (_server, client) = server().await;
    let machines = kind(&client, "OpenStackMachine", "v1beta1");
    let volume = |name: &str| json!([{"name": name, "sizeGiB": 1, "storage": {"type": "Volume"}}]);
    let hint = |value: Value| json!([{"name": "h", "value": value}]);
    for (at, (change, words)) in [
        (json!({"flavor": null}), Some("flavor or flavorID is needed")),
        (json!({"flavor": null, "flavorID": "1"}), None),
        (json!({"image": {"id": ID, "filter": {"name": "x"}}}), Some("image")),
        (json!({"image": null}), Some("image")),
        (json!({"image": {"filter": null}}), Some("image")),
        (json!({"additionalBlockDevices": volume("root")}), Some("root is the name of the root volume")),
        (json!({"additionalBlockDevices": volume("data")}), None),
        (json!({"ports": [{"disablePortSecurity": true, "securityGroups": [{"id": ID}]}]}), Some("no security groups")),
        (json!({"ports": [{"disablePortSecurity": true, "securityGroups": []}]}), None),
        (json!({"ports": [{"disablePortSecurity": false, "securityGroups": [{"id": ID}]}]}), None),
        (
            json!({"rootVolume": {"sizeGiB": 1, "availabilityZone": {"from": "Machine", "name": "a"}}}),
            Some("from: Name"),
        ),
        (json!({"rootVolume": {"sizeGiB": 1, "availabilityZone": {"name": "a"}}}), None),
        (
            json!({"schedulerHintAdditionalProperties": hint(json!({"type": "Bool", "string": "x"}))}),
            Some("type: Bool"),
        ),
        (json!({"schedulerHintAdditionalProperties": hint(json!({"type": "Number", "number": 1}))}), None),
    ]
    .into_iter()
    .enumerate()
    {
        let mut spec = machine();
        merge(&mut spec, &change);
        drop_nulls(&mut spec);
        let created = machines.create(&format!("row-{at}"), &spec).await;
        match words {
            None => assert!(created.is_ok(), "{change}: {created:?}"),
            Some(words) => {
                assert!(created.is_err(), "{change} is allowed");
                let refused = status(created);
                assert!(refused.code == 422 && refused.message.contains(words), "{change}: {}", refused.message);
            }
        }
    }
}
