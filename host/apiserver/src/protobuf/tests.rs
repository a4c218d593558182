#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use serde_json::{Value, json};

use super::ProtobufError;
use crate::tree::Tree;

/// A length-delimited field.
fn decode(bytes: &[u8]) -> Result<Value, ProtobufError> {
    super::decode(bytes, &Tree::default())
}

fn bytes(number: u64, content: &[u8]) -> Vec<u8> {
    let mut out = varint(number << 3 | 2);
    out.extend(varint(content.len() as u64));
    out.extend(content);
    out
}

fn text(number: u64, content: &str) -> Vec<u8> {
    bytes(number, content.as_bytes())
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            out.push(byte);
            return out;
        }
        out.push(byte | 0x80);
    }
}

fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let meta = [text(1, api_version), text(2, kind)].concat();
    [b"k8s\0".to_vec(), bytes(1, &meta), bytes(2, raw), text(3, ""), text(4, "")].concat()
}

fn entry(key: &str, value: &[u8]) -> Vec<u8> {
    [text(1, key), value.to_vec()].concat()
}

#[test]
fn what_kubectl_sends_to_create_a_namespace_and_a_configmap_is_understood() {
    let namespace = b"k8s\0\n\x0f\n\x02v1\x12\tNamespace\x12\x1b\n\x13\n\x03foo\x12\0\x1a\0\"\0*\x002\x008\0B\0\x12\0\x1a\x02\n\0\x1a\0\"\0";
    assert_eq!(
        decode(namespace).unwrap(),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "foo"}})
    );
    let config = b"k8s\0\n\x0f\n\x02v1\x12\tConfigMap\x12\x1b\n\x11\n\x01y\x12\0\x1a\0\"\0*\x002\x008\0B\0\x12\x06\n\x01a\x12\x01b\x1a\0\"\0";
    assert_eq!(
        decode(config).unwrap(),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "y"}, "data": {"a": "b"}})
    );
}

#[test]
fn every_kind_of_field_becomes_its_json() {
    let time = [number(1, 1_767_323_045), number(2, 123_456_000)].concat();
    let metadata = [
        text(1, "a"),
        text(6, ""),
        number(7, 3),
        bytes(8, &time),
        number(10, 0),
        bytes(11, &entry("l", &text(2, "v"))),
        bytes(12, &entry("empty", &[])),
        text(14, "f1"),
        text(14, "f2"),
        bytes(13, &[text(1, "K"), text(3, "o"), text(4, "u"), text(5, "v1"), number(6, 0)].concat()),
        bytes(17, &[text(1, "m"), text(2, "Update"), bytes(7, &bytes(1, br#"{"f:data":{}}"#))].concat()),
    ]
    .concat();
    let expected_metadata = json!({
        "name": "a", "generation": 3, "creationTimestamp": "2026-01-02T03:04:05Z", "deletionGracePeriodSeconds": 0,
        "labels": {"l": "v"}, "annotations": {"empty": ""}, "finalizers": ["f1", "f2"],
        "ownerReferences": [{"kind": "K", "name": "o", "uid": "u", "apiVersion": "v1", "controller": false}],
        "managedFields": [{"manager": "m", "operation": "Update", "fieldsV1": {"f:data": {}}}],
    });
    let micro = bytes(2, &time);
    let table: Vec<(&str, &str, Vec<u8>, Value)> = vec![
        (
            "v1",
            "ConfigMap",
            [bytes(1, &metadata), bytes(3, &entry("b", &bytes(2, b"hi"))), number(4, 0)].concat(),
            json!({"metadata": expected_metadata, "binaryData": {"b": "aGk="}, "immutable": false}),
        ),
        (
            "v1",
            "Secret",
            [bytes(2, &entry("k", &bytes(2, b"\xff\0"))), text(3, "Opaque")].concat(),
            json!({"data": {"k": "/wA="}, "type": "Opaque"}),
        ),
        (
            "coordination.k8s.io/v1",
            "Lease",
            bytes(2, &[text(1, "me"), number(2, 15), bytes(4, &time), number(5, 0)].concat()),
            json!({"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.123456Z", "leaseTransitions": 0}}),
        ),
        (
            "v1",
            "Service",
            bytes(
                2,
                &[
                    bytes(
                        1,
                        &[
                            text(1, "http"),
                            text(2, "TCP"),
                            number(3, 80),
                            bytes(4, &[number(1, 1), number(2, 0), text(3, "web")].concat()),
                        ]
                        .concat(),
                    ),
                    bytes(
                        1,
                        &[
                            number(3, 81),
                            bytes(4, &[number(1, 0), number(2, 8081), text(3, "")].concat()),
                            number(5, 0),
                        ]
                        .concat(),
                    ),
                ]
                .concat(),
            ),
            json!({"spec": {"ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": "web"}, {"port": 81, "targetPort": 8081}]}}),
        ),
        (
            "v1",
            "Node",
            bytes(3, &bytes(1, &entry("cpu", &bytes(2, &text(1, "2"))))),
            json!({"status": {"capacity": {"cpu": "2"}}}),
        ),
        (
            "apps/v1",
            "Deployment",
            bytes(
                2,
                &[number(1, 0), bytes(3, &bytes(2, &bytes(1, &[text(1, "v"), bytes(2, &bytes(2, &[]))].concat())))]
                    .concat(),
            ),
            json!({"spec": {"replicas": 0, "template": {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}}}),
        ),
        (
            "authentication.k8s.io/v1",
            "TokenReview",
            bytes(3, &bytes(2, &bytes(4, &entry("e", &bytes(2, &[text(1, "x"), text(1, "y")].concat()))))),
            json!({"status": {"user": {"extra": {"e": ["x", "y"]}}}}),
        ),
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            bytes(
                2,
                &bytes(
                    7,
                    &bytes(
                        4,
                        &bytes(
                            1,
                            &[
                                text(5, "object"),
                                bytes(
                                    29,
                                    &entry(
                                        "a",
                                        &bytes(
                                            2,
                                            &[
                                                text(5, "array"),
                                                bytes(24, &bytes(1, &text(5, "string"))),
                                                [vec![9 << 3 | 1], 1.5f64.to_le_bytes().to_vec()].concat(),
                                            ]
                                            .concat(),
                                        ),
                                    ),
                                ),
                                bytes(30, &number(1, 1)),
                                bytes(8, &bytes(1, br#"{"a":[1]}"#)),
                            ]
                            .concat(),
                        ),
                    ),
                ),
            ),
            json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}, "maximum": 1.5}}, "additionalProperties": true, "default": {"a": [1]}}}}]}}),
        ),
        (
            "v1",
            "DeleteOptions",
            [number(1, 0), text(4, "Background"), text(5, "All")].concat(),
            json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background", "dryRun": ["All"]}),
        ),
        ("events.k8s.io/v1", "Event", micro, json!({"eventTime": "2026-01-02T03:04:05.123456Z"})),
        (
            "v1",
            "ConfigMap",
            [bytes(1, &text(1, "a")), bytes(1, &text(3, "ns")), text(99, "future")].concat(),
            json!({"metadata": {"name": "a", "namespace": "ns"}}),
        ),
        ("autoscaling/v1", "Scale", bytes(2, &number(1, 5)), json!({"spec": {"replicas": 5}})),
    ];
    for (api_version, kind, raw, expected) in table {
        let mut found = decode(&body(api_version, kind, &raw)).unwrap_or_else(|error| panic!("{kind}: {error}"));
        let fields = found.as_object_mut().unwrap();
        assert_eq!(fields.remove("apiVersion"), Some(json!(api_version)));
        assert_eq!(fields.remove("kind"), Some(json!(kind)));
        assert_eq!(found, expected, "{kind}");
    }
}

#[test]
fn malformed_bodies_are_refused() {
    let deep = {
        let mut schema = text(5, "object");
        for _ in 0..300 {
            schema = bytes(28, &schema);
        }
        bytes(2, &bytes(7, &bytes(4, &bytes(1, &schema))))
    };
    let table: Vec<(&str, Vec<u8>, ProtobufError)> = vec![
        ("nothing", vec![], ProtobufError::NoMagic),
        ("JSON", b"{}".to_vec(), ProtobufError::NoMagic),
        (
            "an unknown kind",
            body("v1", "Nothing", &[]),
            ProtobufError::UnknownKind { api_version: "v1".to_owned(), kind: "Nothing".to_owned() },
        ),
        (
            "a custom resource",
            body("a.b/v1", "ConfigMap", &[]),
            ProtobufError::UnknownKind { api_version: "a.b/v1".to_owned(), kind: "ConfigMap".to_owned() },
        ),
        ("a length beyond the end", body("v1", "ConfigMap", &[0x0a, 0x7f, 0x00]), ProtobufError::Truncated),
        (
            "an enormous length",
            body("v1", "ConfigMap", &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
            ProtobufError::Truncated,
        ),
        ("an endless number", body("v1", "ConfigMap", &[0xff; 30]), ProtobufError::Truncated),
        ("a group", body("v1", "ConfigMap", &[0x0b]), ProtobufError::Encoding("number 1".to_owned())),
        (
            "a number where a message belongs",
            body("v1", "ConfigMap", &number(1, 5)),
            ProtobufError::Encoding("metadata".to_owned()),
        ),
        (
            "text that is not UTF-8",
            body("v1", "ConfigMap", &bytes(1, &bytes(1, b"\xff"))),
            ProtobufError::Utf8("name".to_owned()),
        ),
        (
            "embedded JSON that is none",
            body("v1", "ConfigMap", &bytes(1, &bytes(17, &bytes(7, &bytes(1, b"{"))))),
            ProtobufError::Json("fieldsV1".to_owned()),
        ),
        (
            "a time beyond time",
            body("v1", "ConfigMap", &bytes(1, &bytes(8, &number(1, u64::MAX >> 1)))),
            ProtobufError::Encoding("creationTimestamp".to_owned()),
        ),
        ("deep nesting", body("apiextensions.k8s.io/v1", "CustomResourceDefinition", &deep), ProtobufError::TooDeep),
        ("a compressed body", [b"k8s\0".to_vec(), text(3, "gzip")].concat(), ProtobufError::Content("gzip".to_owned())),
        (
            "JSON inside",
            [b"k8s\0".to_vec(), text(4, "application/json")].concat(),
            ProtobufError::Content("application/json".to_owned()),
        ),
    ];
    for (name, body, expected) in table {
        assert_eq!(decode(&body).unwrap_err(), expected, "{name}");
    }
}

#[test]
fn no_cut_or_changed_byte_makes_the_decoder_fail_badly() {
    let whole = body(
        "apps/v1",
        "Deployment",
        &bytes(
            2,
            &[number(1, 3), bytes(3, &bytes(2, &bytes(2, &[text(1, "c"), bytes(6, &number(3, 80))].concat())))]
                .concat(),
        ),
    );
    for end in 0..whole.len() {
        let _ = decode(&whole[..end]);
        for bit in 0..8 {
            let mut changed = whole.clone();
            changed[end] ^= 1 << bit;
            let _ = decode(&changed);
        }
    }
    assert!(decode(&whole).is_ok());
}
