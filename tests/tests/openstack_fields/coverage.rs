//! Which test asks for which field, held against the CRDs: a field that no test asks for fails here, and so does a table in the
//! documentation that is not of today.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use capwasm_tests::guests;
use serde_json::Value;

use crate::{balancer, endpoints, given, identities, machines, ovn, pools, ports};

/// The kinds whose fields make something, and where their CRDs are. Templates have the fields of what they are templates of.
const KINDS: [(&str, &str); 5] = [
    ("OpenStackCluster", "openstackclusters"),
    ("OpenStackMachine", "openstackmachines"),
    ("OpenStackServer", "openstackservers"),
    ("OpenStackFloatingIPPool", "openstackfloatingippools"),
    ("OpenStackClusterIdentity", "openstackclusteridentities"),
];
/// A bastion has the fields of a machine.
const BASTION: &str = "bastion.spec.";
/// Ends of fields that nobody asks for in a spec, or that no service tells of, and what is known of them instead.
const SILENT: [(&str, &str, &str); 6] = [
    ("OpenStackMachine", "providerID", "written by the provider; `machines` reads it"),
    ("OpenStackServer", "availabilityZone", "from the Machine's failure domain; `machines` sees it in Nova"),
    ("OpenStackServer", "userDataRef.name", "from the Machine's bootstrap Secret; `machines` sees the data in Nova"),
    ("", "additionalBlockDevices[].storage.type", "`machines`; of a `Local` one Nova only says that it takes it"),
    ("", "ports[].valueSpecs[].name", "`ports`; for people: key and value reach Neutron"),
    ("", "SecurityGroupRules[].name", "`endpoints`; for people: no service has it"),
];
/// All filters of one kind of resource are the same code: each is asked for, and each of their fields in one of them.
const FILTER: &str = ".filter.";
/// When it is set, the table is written instead of compared.
const WRITE: &str = "CAPWASM_WRITE_DOCS";

type Tests = BTreeMap<String, BTreeSet<&'static str>>;

#[test]
fn every_field_is_asked_of_real_services_and_the_documentation_says_by_which_test() {
    let (mut page, mut missing) = (HEAD.to_owned(), Vec::new());
    for (kind, file) in KINDS {
        let asked = asked(kind);
        writeln!(page, "\n## {kind}\n\n| field | test |\n|---|---|").unwrap();
        for field in fields(file) {
            let Some(how) = how(kind, &field, &asked) else {
                missing.push(format!("{kind}.{field}"));
                continue;
            };
            if !field.starts_with(BASTION) && !field.contains(FILTER) {
                writeln!(page, "| `{field}` | {how} |").unwrap();
            }
        }
    }
    assert!(missing.is_empty(), "no test asks for these: {missing:#?}");
    let file = guests::root().join("docs/openstack-fields.md");
    if std::env::var_os(WRITE).is_some() {
        fs::write(&file, &page).unwrap();
    }
    assert!(
        fs::read_to_string(&file).unwrap_or_default() == page,
        "{} is old: run this with {WRITE}=1",
        file.display()
    );
}

const HEAD: &str = "\
# Fields of openstack-infra on real services

Written by a test (`tests/tests/openstack_fields/coverage.rs`), which fails when a field of the CRDs is asked for by none. The others
in that folder make objects with these fields on [real services](../tests/openstack/README.md), and compare what Keystone, Nova, Neutron,
Glance, Cinder and Octavia then say. `bastion.spec` has the fields of a machine, a template those of what it is a template of. Wherever
there is an `id`, the tests ask by `filter`, too, with all fields that filters of networks, subnets, routers, security groups, images
and server groups have.
";

/// Which tests ask for a field; none where nobody does.
fn how(kind: &str, field: &str, asked: &Tests) -> Option<String> {
    let silent = SILENT.iter().find(|(of, name, _)| (of.is_empty() || *of == kind) && field.ends_with(name));
    if let Some((_, _, why)) = silent {
        return Some((*why).to_owned());
    }
    if let Some(of_machine) = field.strip_prefix(BASTION) {
        return how("OpenStackMachine", of_machine, &self::asked("OpenStackMachine"));
    }
    if let Some((what, of_filter)) = field.split_once(FILTER) {
        let kind = resource(what);
        let has_filter = asked.keys().any(|asked| asked.starts_with(&format!("{what}{FILTER}")));
        let is_asked = everything().iter().any(|asked| {
            asked.split_once(FILTER).is_some_and(|(what, field)| field == of_filter && resource(what) == kind)
        });
        return (has_filter && is_asked).then(String::new);
    }
    let tests: Vec<String> = asked.get(field)?.iter().map(|test| format!("`{test}`")).collect();
    Some(tests.join(", "))
}

/// What a filter is for, by the last name of its path: `network` of `ports[].network`.
fn resource(path: &str) -> &'static str {
    let path = path.trim_end_matches("[]").to_lowercase();
    let kinds = ["network", "subnet", "router", "securitygroup", "image", "servergroup"];
    kinds.into_iter().find(|kind| path.trim_end_matches('s').ends_with(kind)).unwrap_or_else(|| panic!("{path}"))
}

fn everything() -> BTreeSet<String> {
    KINDS.iter().flat_map(|(kind, _)| asked(kind).into_keys()).collect()
}

/// The fields of a kind that tests ask for, with the tests' names.
fn asked(kind: &str) -> Tests {
    let specs = match kind {
        "OpenStackCluster" => vec![
            ("given", given::by_filter(&Default::default())),
            ("given", given::by_tags()),
            ("given", given::by_id(&Default::default())),
            ("endpoints", endpoints::floating("", "", &Default::default())),
            ("endpoints", endpoints::fixed()),
            ("endpoints", endpoints::said()),
            ("balancer", balancer::amphora(&Default::default())),
            ("ovn", ovn::cluster()),
            ("identities", identities::cluster(identities::by_cluster_identity())),
        ],
        "OpenStackMachine" | "OpenStackServer" => vec![
            ("ports", ports::machine(&Default::default())),
            ("machines", machines::by_id(&Default::default())),
            ("machines", machines::by_name(&Default::default())),
            ("machines", machines::by_image(&Default::default())),
            ("pools", pools::machine("")),
        ],
        "OpenStackFloatingIPPool" => vec![("pools", pools::limited("")), ("pools", pools::keeping(""))],
        _ => vec![("identities", identities::identity())],
    };
    let mut asked = Tests::new();
    for (test, spec) in specs {
        let mut found = BTreeSet::new();
        leaves_of_object(&spec, "", &mut found);
        for field in found {
            asked.entry(field).or_default().insert(test);
        }
    }
    asked
}

/// The fields below `spec` of a CRD's stored version: `ports[].fixedIPs[].subnet.id`.
fn fields(file: &str) -> BTreeSet<String> {
    let path: PathBuf = guests::root().join(format!("plugins/openstack-infra/crds/{file}.json"));
    let definition: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let stored = definition["spec"]["versions"].as_array().unwrap().iter().find(|version| version["storage"] == true);
    let mut found = BTreeSet::new();
    leaves_of_schema(&stored.unwrap()["schema"]["openAPIV3Schema"]["properties"]["spec"], "", &mut found);
    assert!(!found.is_empty(), "{file}");
    found
}

fn leaves_of_schema(schema: &Value, at: &str, found: &mut BTreeSet<String>) {
    match (&schema["items"], schema["properties"].as_object()) {
        (Value::Object(_), _) => leaves_of_schema(&schema["items"], &format!("{at}[]"), found),
        (_, Some(properties)) => {
            for (name, schema) in properties {
                leaves_of_schema(schema, &below(at, name), found);
            }
        }
        _ => drop(found.insert(at.to_owned())),
    }
}

fn leaves_of_object(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Null => {}
        // Maps of the user's own keys are one field.
        Value::Object(_) if at.ends_with("matchLabels") => drop(found.insert(at.to_owned())),
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| leaves_of_object(value, &below(at, name), found))
        }
        Value::Array(items) => items.iter().for_each(|item| leaves_of_object(item, &format!("{at}[]"), found)),
        _ => drop(found.insert(at.to_owned())),
    }
}

fn below(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}
