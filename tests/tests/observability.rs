//! What a host tells about itself: spans at a collector, log lines under the same trace id, metrics of calls.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use capwasm_tests::binary;
use capwasm_tests::management::Management;
use capwasm_tests::sample::Sample;
use capwasm_tests::wait;
use serde_json::Value;

/// What a collector was sent to `/v1/traces`: protobuf, whose texts and ids stand in it as they are.
#[derive(Clone, Default)]
struct Collected(Arc<Mutex<Vec<u8>>>);

impl Collected {
    fn has(&self, bytes: &[u8]) -> bool {
        self.0.lock().unwrap().windows(bytes.len()).any(|window| window == bytes)
    }

    fn answer(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let is_traces = line.starts_with("POST /v1/traces ");
        let mut length = 0;
        loop {
            line.clear();
            reader.read_line(&mut line)?;
            match line.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        if is_traces {
            self.0.lock().unwrap().extend(body);
        }
        let status = if is_traces { "200 OK" } else { "404 Not Found" };
        write!(
            reader.get_mut(),
            "HTTP/1.1 {status}\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        )
    }
}

fn collector() -> (String, Collected) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let collected = Collected::default();
    let kept = collected.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A host that ends in the middle is no failure of the collector's.
            let _ = collected.answer(stream);
        }
    });
    (url, kept)
}

/// Trace ids of the lines that a span of this name is around.
fn logged(log: &str, span: &str) -> BTreeSet<String> {
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ids = lines.filter_map(|line| {
        let spans = line["spans"].as_array()?;
        spans.iter().find(|around| around["name"] == span)?;
        spans.iter().find_map(|around| Some(around["trace_id"].as_str()?.to_owned()))
    });
    ids.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_trace_id_finds_the_log_lines_and_the_spans_of_a_pass() {
    let (url, collected) = collector();
    let options = ["--log-format", "json", "-vv", "--otlp-endpoint", &url];
    let host = Management::start_with_options(binary::provider_dir(), &options);
    let objects = host.objects("traced").await;
    let sample = Sample::new("traced", 1, 0);
    sample.create(&objects).await;
    sample.provisioned(&objects).await;
    // A client of the older version has the provider asked to convert.
    objects.list_at("infrastructure.cluster.x-k8s.io/v1beta1", "DockerMachine").await;

    let functions = ["infrastructure-machine.provision", "conversion.convert"];
    for text in ["capwasm", "pass", "call", "http", "apply", "docker-infra"].into_iter().chain(functions) {
        wait::until(&format!("{text:?} is in the spans"), async || {
            if collected.has(text.as_bytes()) { Ok(()) } else { Err("not yet".to_owned()) }
        })
        .await;
    }
    wait::until("a pass that was logged is a trace", async || {
        let ids = logged(&std::fs::read_to_string(host.log()).unwrap(), "pass");
        match ids.iter().find(|id| collected.has(&hex::decode(id).unwrap())) {
            Some(_) => Ok(()),
            None => Err(format!("{} logged ids", ids.len())),
        }
    })
    .await;

    let metrics = host.metrics();
    for line in [
        r#"capwasm_provider_calls_total{provider="docker-infra",function="infrastructure-machine.provision",result="ok"}"#,
        r#"capwasm_provider_calls_total{provider="docker-infra",function="conversion.convert",result="ok"}"#,
        r#"capwasm_provider_operations_total{provider="kubeadm-control-plane",operation="create"}"#,
        r#"capwasm_provider_call_memory_bytes_count{provider="kubeadm-bootstrap",function="bootstrap.generate"}"#,
    ] {
        assert!(metrics.lines().any(|found| found.starts_with(line)), "{line} is not in\n{metrics}");
    }
}

#[test]
fn a_collector_that_is_no_url_is_refused_at_once() {
    let ended = binary::run(&["crds", "--core-only", "--otlp-endpoint", "localhost:4318"]);
    let text = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success(), "{text}");
    assert!(text.contains("--otlp-endpoint") && text.contains("http://"), "{text}");
}
