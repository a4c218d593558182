//! What the host measures, as Prometheus reads it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::Result;

/// The text of `/metrics`.
pub fn read(port: u16) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// Calls of provider functions so far.
pub fn calls(metrics: &str) -> Result<BTreeMap<String, f64>> {
    let mut counts = BTreeMap::new();
    for line in metrics.lines().filter(|line| line.starts_with("capwasm_provider_call_cpu_seconds_count{")) {
        let count: f64 = line.rsplit(' ').next().unwrap_or_default().parse()?;
        *counts.entry(label(line, "function").unwrap_or_default().to_owned()).or_default() += count;
    }
    Ok(counts)
}

/// API writes so far, by kind.
pub fn writes(metrics: &str) -> Result<BTreeMap<String, f64>> {
    let mut counts = BTreeMap::new();
    for line in metrics.lines().filter(|line| line.starts_with("capwasm_api_writes_total{")) {
        let kind = label(line, "kind").unwrap_or_default();
        let count: f64 = line.rsplit(' ').next().unwrap_or_default().parse()?;
        *counts.entry(kind.to_owned()).or_default() += count;
    }
    Ok(counts)
}

/// The bucket that the median of each provider function's CPU time lies in, and that of all calls: its upper limit in seconds.
/// `of` is `cpu` or `outside_cpu`.
pub fn medians(metrics: &str, of: &str) -> Result<BTreeMap<String, f64>> {
    let mut buckets: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    let prefix = format!("capwasm_provider_call_{of}_seconds_bucket{{");
    for line in metrics.lines().filter(|line| line.starts_with(&prefix)) {
        let (limit, function) = (label(line, "le").unwrap_or_default(), label(line, "function").unwrap_or_default());
        let count: f64 = line.rsplit(' ').next().unwrap_or_default().parse()?;
        let limit = if limit == "+Inf" { f64::INFINITY } else { limit.parse()? };
        buckets.entry(function.to_owned()).or_default().push((limit, count));
    }
    let mut all: Vec<(f64, f64)> = Vec::new();
    for (limit, count) in buckets.values().flatten() {
        match all.iter_mut().find(|(known, _)| known == limit) {
            Some((_, sum)) => *sum += count,
            None => all.push((*limit, *count)),
        }
    }
    buckets.insert("all calls".to_owned(), all);
    let median = |mut counts: Vec<(f64, f64)>| {
        counts.sort_by(|a, b| a.0.total_cmp(&b.0));
        let half = counts.last().map_or(0.0, |(_, all)| all / 2.0);
        counts.into_iter().find(|(_, count)| *count >= half).map_or(0.0, |(limit, _)| limit)
    };
    Ok(buckets.into_iter().map(|(function, counts)| (function, median(counts))).collect())
}

/// The value of a label in a line of metrics.
fn label<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("{name}=\""))?;
    rest.split('"').next()
}
