//! An AddonSet and its Addons.

use capwasm_sdk::test::delete_object;
use capwasm_sdk::{Host, ObjectRef};

use super::*;

fn set() -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "AddonSet", "metadata": {"name": "s", "namespace": "default", "uid": "set"},
        "spec": {"clusterSelector": {"matchLabels": {"environment": "demo"}}, "catalog": "standard", "addons": ["banner"]},
    })
}

#[test]
fn every_selected_cluster_has_an_addon_for_as_long_as_it_is_selected() {
    let host = TestHost::new()
        .object(Place::Management, cluster("one", "demo"))
        .object(Place::Management, cluster("two", "demo"))
        .object(Place::Management, cluster("three", "production"));
    assert_eq!(pass(&host, &set()).0.unwrap_err().reason, "AddonsNotReady");
    assert_eq!(names(&host, Place::Management, "Addon"), ["one-banner", "two-banner"]);
    host.put(Place::Management, cluster("two", "production"));
    assert!(pass(&host, &set()).0.is_err(), "its Addon is not ready");
    assert_eq!(names(&host, Place::Management, "Addon"), ["one-banner"]);
    let (gone, outcome) = delete_object::<Addons>(&host, &set());
    assert_eq!(gone, Ok(false));
    host.carry_out(&outcome);
    assert_eq!(delete_object::<Addons>(&host, &set()).0, Ok(true));
}

#[test]
fn without_labels_no_cluster_is_selected() {
    let host = TestHost::new().object(Place::Management, cluster("one", "demo"));
    let mut nobody = set();
    nobody["spec"]["clusterSelector"] = json!({});
    assert_eq!(pass(&host, &nobody).0, Ok(()));
    assert_eq!(names(&host, Place::Management, "Addon"), Vec::<String>::new());
}

#[test]
fn an_addon_made_by_hand_is_adopted_and_another_sets_is_not() {
    let mine = || ObjectRef::new(API_VERSION, "Addon", "one-banner");
    let host = TestHost::new()
        .object(Place::Management, cluster("one", "demo"))
        .object(Place::Management, addon("one-banner"));
    let (_, outcome) = pass(&host, &set());
    assert_eq!(outcome.events[0].reason, "Adopted");
    let adopted = host.lookup(&mine()).unwrap();
    assert_eq!(adopted["metadata"]["ownerReferences"][0]["uid"], "set");

    let mut anothers = addon("one-banner");
    anothers["metadata"]["ownerReferences"] = json!([{"uid": "other", "controller": true}]);
    host.put(Place::Management, anothers.clone());
    assert_eq!(pass(&host, &set()).0.unwrap_err().reason, "AddonTaken");
    assert_eq!(host.lookup(&mine()), Ok(anothers));
}
