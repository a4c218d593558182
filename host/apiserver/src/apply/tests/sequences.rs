#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use serde_json::{Value, json};

use super::Step::{Apply, Conflict, Force, Update};
use super::{Step, owners, run};

type Row = (&'static str, Vec<Step>, Value, Vec<(&'static str, Value)>);

fn check(table: Vec<Row>) {
    for (name, steps, spec, expected) in table {
        let result = run(name, steps);
        assert_eq!(result["spec"], spec, "{name}");
        let expected: Vec<(String, Value)> =
            expected.into_iter().map(|(manager, fields)| (manager.to_owned(), fields)).collect();
        assert_eq!(owners(&result), expected, "{name}");
    }
}

#[test]
fn one_applier_owns_what_it_states_and_drops_what_it_no_longer_states() {
    check(vec![
        ("create", vec![Apply("m", json!({"a": "1"}))], json!({"a": "1"}), vec![("m/Apply", json!({"f:a": {}}))]),
        (
            "change",
            vec![Apply("m", json!({"a": "1"})), Apply("m", json!({"a": "2"}))],
            json!({"a": "2"}),
            vec![("m/Apply", json!({"f:a": {}}))],
        ),
        (
            "add and drop",
            vec![Apply("m", json!({"a": "1"})), Apply("m", json!({"b": "1"}))],
            json!({"b": "1"}),
            vec![("m/Apply", json!({"f:b": {}}))],
        ),
        (
            "drop a set member",
            vec![Apply("m", json!({"set": ["x", "y"]})), Apply("m", json!({"set": ["y"]}))],
            json!({"set": ["y"]}),
            vec![("m/Apply", json!({"f:set": {"v:\"y\"": {}}}))],
        ),
        (
            "drop an item",
            vec![
                Apply("m", json!({"keyed": [{"name": "x"}, {"name": "y", "value": 1}]})),
                Apply("m", json!({"keyed": [{"name": "y", "value": 2}]})),
            ],
            json!({"keyed": [{"name": "y", "value": 2}]}),
            vec![("m/Apply", json!({"f:keyed": {"k:{\"name\":\"y\"}": {".": {}, "f:name": {}, "f:value": {}}}}))],
        ),
        (
            "drop a field of an item",
            vec![
                Apply("m", json!({"keyed": [{"name": "x", "value": 1}]})),
                Apply("m", json!({"keyed": [{"name": "x"}]})),
            ],
            json!({"keyed": [{"name": "x"}]}),
            vec![("m/Apply", json!({"f:keyed": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}}}}))],
        ),
        (
            "drop a whole list",
            vec![Apply("m", json!({"a": "1", "keyed": [{"name": "x"}]})), Apply("m", json!({"a": "1"}))],
            json!({"a": "1"}),
            vec![("m/Apply", json!({"f:a": {}}))],
        ),
        (
            "drop a map key",
            vec![Apply("m", json!({"map": {"k": "1", "l": "2"}})), Apply("m", json!({"map": {"l": "2"}}))],
            json!({"map": {"l": "2"}}),
            vec![("m/Apply", json!({"f:map": {"f:l": {}}}))],
        ),
        (
            "drop a whole map",
            vec![Apply("m", json!({"a": "1", "map": {"k": "1"}})), Apply("m", json!({"a": "1"}))],
            json!({"a": "1"}),
            vec![("m/Apply", json!({"f:a": {}}))],
        ),
        (
            "replace an atomic list",
            vec![Apply("m", json!({"list": ["x", "y"]})), Apply("m", json!({"list": ["z"]}))],
            json!({"list": ["z"]}),
            vec![("m/Apply", json!({"f:list": {}}))],
        ),
        (
            "replace an atomic map",
            vec![Apply("m", json!({"whole": {"x": "1"}})), Apply("m", json!({"whole": {"y": "2"}}))],
            json!({"whole": {"y": "2"}}),
            vec![("m/Apply", json!({"f:whole": {}}))],
        ),
        (
            "keys are told apart by all their parts",
            vec![
                Apply("m", json!({"ports": [{"port": 1, "protocol": "UDP"}]})),
                Apply("m", json!({"ports": [{"port": 1, "name": "t"}, {"port": 1, "protocol": "UDP"}]})),
            ],
            json!({"ports": [{"port": 1, "name": "t"}, {"port": 1, "protocol": "UDP"}]}),
            vec![(
                "m/Apply",
                json!({"f:ports": {"k:{\"port\":1,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}, "f:port": {}}, "k:{\"port\":1,\"protocol\":\"UDP\"}": {".": {}, "f:port": {}, "f:protocol": {}}}}),
            )],
        ),
        (
            "unknown fields are granular",
            vec![Apply("m", json!({"free": {"p": {"q": 1, "r": 2}}})), Apply("m", json!({"free": {"p": {"r": 2}}}))],
            json!({"free": {"p": {"r": 2}}}),
            vec![("m/Apply", json!({"f:free": {"f:p": {".": {}, "f:r": {}}}}))],
        ),
        (
            "an item changes its place to where the applier wants it",
            vec![
                Apply("m", json!({"keyed": [{"name": "x"}, {"name": "y"}]})),
                Apply("m", json!({"keyed": [{"name": "y"}, {"name": "x"}]})),
            ],
            json!({"keyed": [{"name": "y"}, {"name": "x"}]}),
            vec![(
                "m/Apply",
                json!({"f:keyed": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}}, "k:{\"name\":\"y\"}": {".": {}, "f:name": {}}}}),
            )],
        ),
    ]);
}

#[test]
fn several_appliers_share_conflict_and_take_over() {
    check(vec![
        (
            "different fields",
            vec![Apply("m", json!({"a": "1"})), Apply("o", json!({"b": "1"}))],
            json!({"a": "1", "b": "1"}),
            vec![("m/Apply", json!({"f:a": {}})), ("o/Apply", json!({"f:b": {}}))],
        ),
        (
            "the same value is shared",
            vec![Apply("m", json!({"a": "1"})), Apply("o", json!({"a": "1"}))],
            json!({"a": "1"}),
            vec![("m/Apply", json!({"f:a": {}})), ("o/Apply", json!({"f:a": {}}))],
        ),
        (
            "another value is a conflict",
            vec![Apply("m", json!({"a": "1"})), Conflict("o", json!({"a": "2"}), vec![".spec.a"])],
            json!({"a": "1"}),
            vec![("m/Apply", json!({"f:a": {}}))],
        ),
        (
            "force takes the field away",
            vec![Apply("m", json!({"a": "1", "b": "1"})), Force("o", json!({"a": "2"}))],
            json!({"a": "2", "b": "1"}),
            vec![("m/Apply", json!({"f:b": {}})), ("o/Apply", json!({"f:a": {}}))],
        ),
        (
            "force takes everything away",
            vec![Apply("m", json!({"a": "1"})), Force("o", json!({"a": "2"}))],
            json!({"a": "2"}),
            vec![("o/Apply", json!({"f:a": {}}))],
        ),
        (
            "a shared field stays when one lets go",
            vec![Apply("m", json!({"a": "1"})), Apply("o", json!({"a": "1"})), Apply("m", json!({}))],
            json!({"a": "1"}),
            vec![("o/Apply", json!({"f:a": {}})), ("m/Apply", json!({}))],
        ),
        (
            "a field goes when the last one lets go",
            vec![
                Apply("m", json!({"a": "1", "b": "1"})),
                Apply("o", json!({"a": "1"})),
                Apply("m", json!({"b": "1"})),
                Apply("o", json!({"n": 1})),
            ],
            json!({"b": "1", "n": 1}),
            vec![("m/Apply", json!({"f:b": {}})), ("o/Apply", json!({"f:n": {}}))],
        ),
        (
            "members of a set belong to those who state them",
            vec![
                Apply("m", json!({"set": ["x", "y"]})),
                Apply("o", json!({"set": ["y", "z"]})),
                Apply("m", json!({"set": ["x"]})),
            ],
            json!({"set": ["x", "y", "z"]}),
            vec![
                ("o/Apply", json!({"f:set": {"v:\"y\"": {}, "v:\"z\"": {}}})),
                ("m/Apply", json!({"f:set": {"v:\"x\"": {}}})),
            ],
        ),
        (
            "items of others stay",
            vec![
                Apply("m", json!({"keyed": [{"name": "x", "value": 1}]})),
                Apply("o", json!({"keyed": [{"name": "y", "value": 2}]})),
                Apply("m", json!({"keyed": [{"name": "x", "value": 3}]})),
            ],
            json!({"keyed": [{"name": "x", "value": 3}, {"name": "y", "value": 2}]}),
            vec![
                ("o/Apply", json!({"f:keyed": {"k:{\"name\":\"y\"}": {".": {}, "f:name": {}, "f:value": {}}}})),
                ("m/Apply", json!({"f:keyed": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}, "f:value": {}}}})),
            ],
        ),
        (
            "two own different fields of one item",
            vec![
                Apply("m", json!({"keyed": [{"name": "x", "value": 1}]})),
                Apply("o", json!({"keyed": [{"name": "x", "note": "n"}]})),
                Apply("m", json!({"a": "1"})),
            ],
            json!({"a": "1", "keyed": [{"name": "x", "note": "n"}]}),
            vec![
                ("o/Apply", json!({"f:keyed": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}, "f:note": {}}}})),
                ("m/Apply", json!({"f:a": {}})),
            ],
        ),
        (
            "conflicts inside an item name it",
            vec![
                Apply("m", json!({"keyed": [{"name": "x", "value": 1}]})),
                Conflict("o", json!({"keyed": [{"name": "x", "value": 2}]}), vec![".spec.keyed[name=\"x\"].value"]),
            ],
            json!({"keyed": [{"name": "x", "value": 1}]}),
            vec![("m/Apply", json!({"f:keyed": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}, "f:value": {}}}}))],
        ),
        (
            "atomic lists conflict as a whole",
            vec![Apply("m", json!({"list": ["x"]})), Conflict("o", json!({"list": ["x", "y"]}), vec![".spec.list"])],
            json!({"list": ["x"]}),
            vec![("m/Apply", json!({"f:list": {}}))],
        ),
        (
            "atomic maps conflict as a whole",
            vec![
                Apply("m", json!({"whole": {"x": "1"}})),
                Conflict("o", json!({"whole": {"x": "1", "y": "1"}}), vec![".spec.whole"]),
            ],
            json!({"whole": {"x": "1"}}),
            vec![("m/Apply", json!({"f:whole": {}}))],
        ),
        (
            "a map shared by keys",
            vec![
                Apply("m", json!({"map": {"k": "1"}})),
                Apply("o", json!({"map": {"l": "1"}})),
                Apply("m", json!({"a": "1"})),
            ],
            json!({"a": "1", "map": {"l": "1"}}),
            vec![("o/Apply", json!({"f:map": {"f:l": {}}})), ("m/Apply", json!({"f:a": {}}))],
        ),
    ]);
}

#[test]
fn other_writes_own_what_they_change() {
    let created = |fields: Value| ("u/Update", fields);
    check(vec![
        (
            "a create owns all",
            vec![Update("u", json!({"a": "1"}))],
            json!({"a": "1"}),
            vec![created(json!({".": {}, "f:a": {}}))],
        ),
        (
            "an update takes a field from an applier",
            vec![Apply("m", json!({"a": "1", "b": "1"})), Update("u", json!({"a": "2", "b": "1"}))],
            json!({"a": "2", "b": "1"}),
            vec![("m/Apply", json!({"f:b": {}})), created(json!({"f:a": {}}))],
        ),
        (
            "and then the applier conflicts",
            vec![
                Apply("m", json!({"a": "1"})),
                Update("u", json!({"a": "2"})),
                Conflict("m", json!({"a": "1"}), vec![".spec.a"]),
            ],
            json!({"a": "2"}),
            vec![created(json!({"f:a": {}}))],
        ),
        (
            "unless it states the same",
            vec![Apply("m", json!({"a": "1"})), Update("u", json!({"a": "2"})), Apply("m", json!({"a": "2"}))],
            json!({"a": "2"}),
            vec![("m/Apply", json!({"f:a": {}})), created(json!({"f:a": {}}))],
        ),
        (
            "an update that changes nothing owns nothing",
            vec![Apply("m", json!({"a": "1"})), Update("u", json!({"a": "1"}))],
            json!({"a": "1"}),
            vec![("m/Apply", json!({"f:a": {}}))],
        ),
        (
            "an update removes a field and with it its owner",
            vec![Apply("m", json!({"a": "1"})), Update("u", json!({}))],
            json!({}),
            vec![],
        ),
        (
            "what an update holds is not dropped by an applier that stops stating it",
            vec![
                Apply("m", json!({"a": "1", "n": 1})),
                Update("u", json!({"a": "1", "n": 2})),
                Apply("m", json!({"a": "1"})),
            ],
            json!({"a": "1", "n": 2}),
            vec![("m/Apply", json!({"f:a": {}})), created(json!({"f:n": {}}))],
        ),
        (
            "an update adds an item beside an applier's",
            vec![
                Apply("m", json!({"keyed": [{"name": "x"}]})),
                Update("u", json!({"keyed": [{"name": "x"}, {"name": "y", "value": 1}]})),
                Apply("m", json!({"keyed": [{"name": "x"}]})),
            ],
            json!({"keyed": [{"name": "x"}, {"name": "y", "value": 1}]}),
            vec![
                ("m/Apply", json!({"f:keyed": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}}}})),
                created(json!({"f:keyed": {"k:{\"name\":\"y\"}": {".": {}, "f:name": {}, "f:value": {}}}})),
            ],
        ),
        (
            "an item goes with its applier, whoever wrote into it",
            vec![
                Apply("m", json!({"keyed": [{"name": "x"}]})),
                Update("u", json!({"keyed": [{"name": "x", "value": 1}]})),
                Apply("m", json!({"a": "1"})),
            ],
            json!({"a": "1"}),
            vec![("m/Apply", json!({"f:a": {}}))],
        ),
        (
            "fields of an unowned map",
            vec![Update("u", json!({"map": {"k": "1"}})), Apply("m", json!({"map": {"l": "2"}}))],
            json!({"map": {"k": "1", "l": "2"}}),
            vec![("m/Apply", json!({"f:map": {"f:l": {}}})), created(json!({".": {}, "f:map": {".": {}, "f:k": {}}}))],
        ),
        (
            "an update that turns a map into an atomic value",
            vec![Apply("m", json!({"free": {"p": {"q": 1}}})), Update("u", json!({"free": {"p": 3}}))],
            json!({"free": {"p": 3}}),
            vec![created(json!({"f:free": {"f:p": {}}}))],
        ),
    ]);
}
