use capwasm_sdk::Fault;
use capwasm_sdk::test::{TestHost, generate};
use serde_json::json;

use super::*;

#[test]
fn the_crds_are_what_the_types_say() {
    capwasm_sdk::crd::check(concat!(env!("CARGO_MANIFEST_DIR"), "/crds"), &kinds::custom_resources());
}

#[test]
fn commands_are_in_the_document_as_they_were_written() {
    let host = TestHost::new().related("cluster", json!({"metadata": {"name": "c"}}));
    let config = json!({"metadata": {"name": "x"}, "spec": {"commands": ["echo \"a: b\" > /tmp/x"]}});
    let (data, _) = generate::<{{Name}}>(&host, &config);
    let document = String::from_utf8(data.unwrap().unwrap().value).unwrap();
    let document = document.strip_prefix("#cloud-config\n").unwrap();
    let document: Value = serde_json::from_str(document).unwrap();
    assert_eq!(document["runcmd"][0], "echo \"a: b\" > /tmp/x");
    assert_eq!(document["write_files"][0]["content"], "CLUSTER=c\n");
}

#[test]
fn the_cluster_is_waited_for() {
    let (data, _) = generate::<{{Name}}>(&TestHost::new(), &json!({}));
    assert_eq!(data.unwrap_err().fault, Fault::Waiting);
}
