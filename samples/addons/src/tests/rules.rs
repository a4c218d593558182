//! Versions, defaults and rules: pure functions.

use capwasm_sdk::{Admission, Conversion};

use super::*;

fn current() -> Value {
    json!({
        "apiVersion": "addons.example.org/v1beta1", "kind": "AddonSet", "metadata": {"name": "s", "labels": {"a": "b"}},
        "spec": {
            "clusterSelector": {"matchLabels": {"environment": "demo", "tier": ""}}, "catalog": "c", "addons": ["x"],
            "deletionPolicy": "Orphan",
        },
        "status": {"clusters": 1},
    })
}

#[test]
fn nothing_is_lost_on_the_way_to_v1alpha1_and_back() {
    let older = Addons::convert(current(), "addons.example.org/v1alpha1").unwrap();
    assert_eq!(older["spec"], json!({"selector": "environment=demo,tier=", "catalog": "c", "addons": ["x"]}));
    let mut back = Addons::convert(older, "addons.example.org/v1beta1").unwrap();
    assert_eq!(back["metadata"]["annotations"].take(), json!({}));
    back["metadata"].as_object_mut().unwrap().remove("annotations");
    assert_eq!(back, current());
}

#[test]
fn what_is_missing_stays_missing_and_what_cannot_be_said_is_refused() {
    let partial = json!({"apiVersion": "addons.example.org/v1alpha1", "kind": "AddonSet", "spec": {"catalog": "c"}});
    let converted = Addons::convert(partial, "addons.example.org/v1beta1").unwrap();
    assert_eq!(converted["spec"], json!({"catalog": "c"}));
    let odd =
        json!({"apiVersion": "addons.example.org/v1alpha1", "kind": "AddonSet", "spec": {"selector": "a in (b)"}});
    assert_eq!(Addons::convert(odd, "addons.example.org/v1beta1").unwrap_err().reason, "BadSelector");
    assert!(Addons::convert(current(), "other.example.org/v1").is_err());
}

#[test]
fn an_addon_is_for_the_cluster_of_its_label_and_keeps_it() {
    let mut bare = addon("x");
    bare["spec"].as_object_mut().unwrap().remove("clusterName");
    let defaulted = <Addons as Admission>::default(bare, None).unwrap();
    assert_eq!(defaulted["spec"]["clusterName"], "one");
    assert_eq!(<Addons as Admission>::default(defaulted.clone(), None).unwrap(), defaulted);
    assert_eq!(Addons::validate(&defaulted, None), Ok(vec![]));

    let mut moved = addon("x");
    moved["spec"]["clusterName"] = json!("two");
    assert_eq!(Addons::validate(&moved, None).unwrap_err().reason, "WrongLabel");
    moved["metadata"]["labels"][CLUSTER_LABEL] = json!("two");
    assert_eq!(Addons::validate(&moved, None), Ok(vec![]));
    assert_eq!(Addons::validate(&moved, Some(&addon("x"))).unwrap_err().reason, "ClusterImmutable");
}

#[test]
fn a_catalog_has_each_addon_once_and_a_set_that_selects_nothing_is_warned_of() {
    let mut twice = catalog(0, &json!([]));
    assert_eq!(Addons::validate(&twice, None), Ok(vec![]));
    let entry = twice["spec"]["addons"][0].clone();
    twice["spec"]["addons"] = json!([entry, entry]);
    assert_eq!(Addons::validate(&twice, None).unwrap_err().reason, "DuplicateAddon");
    let mut set = current();
    assert_eq!(Addons::validate(&set, None), Ok(vec![]));
    set["spec"]["clusterSelector"] = json!({});
    assert_eq!(Addons::validate(&set, None).unwrap().len(), 1);
}
