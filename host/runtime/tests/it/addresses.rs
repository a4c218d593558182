//! Attacks on where connections go: DNS that changes its mind, spellings of addresses, redirects, proxies.
//!
//! All of it under the broadest grants that there are: every name, every range, every port.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;

use capwasm_runtime::{Grants, Limits};
use serde_json::{Value, json};

use crate::http::{authority, get, origins, tcp};
use crate::servers::{Made, Raw};
use crate::support::Bench;

fn everything() -> Grants {
    let all = ["http://*:*", "https://*:*", "http://0.0.0.0/0:*", "https://0.0.0.0/0:*", "http://[::]/0:*"];
    origins(&all.map(str::to_owned))
}

/// Whether the guest got `denied` or `invalid`.
fn is_refused(seen: &Value) -> bool {
    ["Refusal::Denied", "Refusal::Invalid"].iter().any(|refusal| seen["refused"] == *refusal)
}

/// DNS rebinding: a name that is harmless when it is looked at, and this machine when it is connected to.
#[tokio::test]
async fn each_connection_goes_to_the_address_that_was_looked_at_for_it() {
    let (bench, outside, trap) = (Bench::new(Limits::default()).await, Raw::good().await, Raw::good().await);
    let special = ["127.0.0.1", "169.254.169.254", "::1", "fe80::1", "::ffff:127.0.0.1", "0.0.0.0", "fd00:ec2::254"];
    let mut network = Made::default().server("10.0.0.9", outside.address);
    let mut answers: Vec<&[&str]> = vec![&["10.0.0.9"]];
    for address in &special {
        network = network.server(address, trap.address);
        answers.push(std::slice::from_ref(address));
    }
    answers.push(&["10.0.0.9"]);
    let network = Arc::new(network.name("rebind.example", &answers));
    let client = bench.client_over(&everything(), &network);
    let ask = async || bench.seen_with(get("http://rebind.example/"), &everything(), &client).await;

    assert_eq!(ask().await["ok"]["body"], "good");
    for address in special {
        let seen = ask().await;
        assert_eq!(seen["refused"], "Refusal::Denied", "{address}: {seen}");
    }
    assert_eq!(ask().await["ok"]["body"], "good", "one bad answer does not condemn a name");
    assert_eq!(network.asked().len(), special.len() + 2, "one lookup for each connection, and none after it");
    assert_eq!(network.connected(), ["10.0.0.9:80", "10.0.0.9:80"]);
    assert_eq!((outside.heads().len(), trap.heads()), (2, Vec::new()));
}

#[tokio::test]
async fn of_an_answer_that_mixes_addresses_only_the_harmless_are_tried() {
    let (bench, outside, trap) = (Bench::new(Limits::default()).await, Raw::good().await, Raw::good().await);
    let network = Made::default()
        .server("10.0.0.9", outside.address)
        .server("127.0.0.1", trap.address)
        .server("169.254.169.254", trap.address)
        .name("mixed.example", &[&["127.0.0.1", "10.0.0.9", "169.254.169.254"]])
        .name("dead.example", &[&["10.0.0.66", "127.0.0.1"]])
        .name("none.example", &[&[]]);
    let network = Arc::new(network);
    let ask = async |name: &str| bench.seen_over(get(format!("http://{name}:81/")), &everything(), &network).await;
    assert_eq!(ask("mixed.example").await["ok"]["body"], "good");
    assert_eq!(ask("dead.example").await["refused"], "Refusal::Unavailable");
    assert_eq!(ask("none.example").await["refused"], "Refusal::Unavailable");
    assert_eq!(network.connected(), ["10.0.0.9:81", "10.0.0.66:81"]);
    assert_eq!(trap.heads(), Vec::<String>::new());
}

/// An open connection is for the same scheme, name and port, and for who trusts the same, and for nobody else.
#[tokio::test]
async fn a_connection_that_is_kept_is_not_used_for_another_name_or_trust() {
    let (bench, server) = (Bench::new(Limits::default()).await, tcp().await);
    let network = Made::default()
        .server("10.0.0.9", server)
        .name("a.example", &[&["10.0.0.9"], &["127.0.0.1"]])
        .name("b.example", &[&["127.0.0.1"]]);
    let network = Arc::new(network);
    let client = bench.client_over(&everything(), &network);
    let ask = async |spec: Value| bench.seen_with(spec, &everything(), &client).await;
    let trusting = |name: &str| {
        let mut spec = get(format!("http://{name}/"));
        spec["trust"] = json!(authority().pem());
        spec
    };
    assert_eq!(ask(get("http://a.example/")).await["ok"]["status"], 200);
    assert_eq!(ask(get("http://a.example/")).await["ok"]["status"], 200, "kept: DNS would say this machine by now");
    assert_eq!(network.asked(), ["a.example"]);
    assert_eq!(ask(get("http://b.example/")).await["refused"], "Refusal::Denied", "another name");
    assert_eq!(ask(get("http://a.example:81/")).await["refused"], "Refusal::Denied", "another port");
    assert_eq!(ask(trusting("a.example")).await["refused"], "Refusal::Denied", "another trust");
    assert_eq!(network.connected(), ["10.0.0.9:80"]);
}

/// Metadata services, this machine and its links: in a URL in any spelling, and behind a name.
#[tokio::test]
async fn special_addresses_are_reached_in_no_spelling() {
    let (bench, trap) = (Bench::new(Limits::default()).await, Raw::good().await);
    let behind_names =
        ["169.254.169.254", "::ffff:169.254.169.254", "fd00:ec2::254", "100.100.100.200", "127.0.0.1", "::1"];
    let mut network = Made::default();
    for address in behind_names {
        network = network.server(address, trap.address);
    }
    let names: Vec<String> = (0..behind_names.len()).map(|at| format!("metadata-{at}.internal")).collect();
    for (name, address) in names.iter().zip(&behind_names) {
        network = network.name(name, &[&[*address]]);
    }
    for name in ["localhost", "LOCALHOST", "localhost.", "ip6-localhost"] {
        network = network.name(name, &[&["127.0.0.1", "::1"]]);
    }
    let network = Arc::new(network);
    let spelled = [
        "169.254.169.254",
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::]",
        "[::a9fe:a9fe]",
        "[fd00:ec2::254]",
        "[FD00:EC2::254]",
        "[fd00:0ec2:0:0:0:0:0:0254]",
        "100.100.100.200",
        "2852039166",
        "0xa9fea9fe",
        "0xa9.254.0xa9.254",
        "0251.0376.0251.0376",
        "169.254.43518",
        "169.16689662",
        "169.254.169.254.",
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:7f00:1]",
        "[fe80::1]",
        "[fe80::1%25eth0]",
        "%31%36%39.254.169.254",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "ip6-localhost",
        "example.org@169.254.169.254",
        "169.254.169.254#@example.org",
    ];
    for host in spelled.iter().copied().chain(names.iter().map(String::as_str)) {
        let seen = bench.seen_over(get(format!("http://{host}/latest/meta-data/")), &everything(), &network).await;
        assert!(is_refused(&seen), "{host}: {seen}");
    }
    assert_eq!((network.connected(), trap.heads()), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_nobody_follows_it() {
    let (bench, trap) = (Bench::new(Limits::default()).await, Raw::good().await);
    let elsewhere = [
        format!("http://{}/", trap.address),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "//10.0.0.9/granted".to_owned(),
        "/there".to_owned(),
        "http://engine.endpoint/".to_owned(),
    ];
    for status in [301, 302, 303, 307, 308] {
        for location in &elsewhere {
            let answer = format!(
                "HTTP/1.1 {status} Moved\r\nlocation: {location}\r\ncontent-length: 0\r\nrefresh: 0; url={location}\r\nconnection: close\r\n\r\n"
            );
            let server = Raw::once(&answer).await;
            let network = Arc::new(Made::default().server("10.0.0.9", server.address));
            let mut spec = get("http://10.0.0.9/here");
            spec["showHeaders"] = json!(true);
            let seen = bench.seen_over(spec, &everything(), &network).await;
            assert_eq!(seen["ok"]["status"], status, "{seen}");
            assert!(seen["ok"]["headers"].as_array().unwrap().contains(&json!(["location", location])), "{seen}");
            assert_eq!((network.connected().len(), server.heads().len()), (1, 1), "{status} {location}");
        }
    }
    assert_eq!(trap.heads(), Vec::<String>::new());
}

const PROXIES: [&str; 8] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "http_proxy", "https_proxy", "all_proxy", "ftp_proxy"];
const SERVER: &str = "CAPWASM_TEST_SERVER";

/// In a process of its own, because the environment is the process's.
#[tokio::test]
async fn a_proxy_of_the_environment_is_not_used() {
    if let Ok(server) = std::env::var(SERVER) {
        return behind_a_proxy(server.parse().unwrap()).await;
    }
    let (server, trap) = (tcp().await, Raw::good().await);
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "addresses::a_proxy_of_the_environment_is_not_used", "--nocapture"]);
    child.env(SERVER, server.to_string()).env_remove("NO_PROXY").env_remove("no_proxy");
    for variable in PROXIES {
        child.env(variable, format!("http://{}", trap.address));
    }
    let ended = tokio::task::spawn_blocking(move || child.output().unwrap()).await.unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success() && text.contains("1 passed"), "{text}");
    assert_eq!(trap.heads(), Vec::<String>::new());
}

async fn behind_a_proxy(server: SocketAddr) {
    assert!(PROXIES.iter().all(|variable| std::env::var(variable).is_ok()));
    let bench = Bench::new(Limits::default()).await;
    let granted = origins(&[format!("http://{server}"), "https://*:*".to_owned()]);
    assert_eq!(bench.seen(get(format!("http://{server}/")), granted.clone()).await["ok"]["status"], 200);
    // Nothing of it exists; a proxy would be asked all the same.
    let seen = bench.seen(get("https://nowhere.invalid/"), granted).await;
    assert_eq!(seen["refused"], "Refusal::Unavailable", "{seen}");
}
