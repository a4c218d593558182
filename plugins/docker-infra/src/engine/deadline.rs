//! How long the engine may take for an answer, by the kind of the request.
//!
//! An engine that takes connections and never answers holds up a pass for one of these times: the pass ends with the first
//! answer that does not come. The endpoint's own limit holds besides.

use std::time::Duration;

/// What the engine knows by heart: looks, lists.
const LOOK: Duration = Duration::from_secs(30);
/// What it does on the spot: create, start, signal, remove, begin a command. A busy disk makes it slow.
const CHANGE: Duration = Duration::from_secs(120);
/// What takes as long as there are bytes: images are big and registries slow.
const TRANSFER: Duration = Duration::from_secs(600);

/// The deadline of a request; `path` is what follows the API's version, with its query.
pub fn of(method: &str, path: &str) -> Duration {
    let path = path.split('?').next().unwrap_or_default();
    let is_transfer = match method {
        "POST" => path == "/images/create" || path == "/build",
        "GET" => path.starts_with("/images/") && path.ends_with("/get"),
        _ => false,
    };
    match (is_transfer, method) {
        (true, _) => TRANSFER,
        // Archives of files are of a few megabytes at most, which is what a provider may get; they come from a disk.
        (false, "GET" | "HEAD") if !path.ends_with("/archive") => LOOK,
        (false, _) => CHANGE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_images_may_take_long() {
        let rows = [
            ("GET", "/containers/c1/json", LOOK),
            ("GET", "/containers/json?all=1&filters=%7B%7D", LOOK),
            ("GET", "/containers/c1/logs?stdout=1&tail=5", LOOK),
            ("GET", "/exec/e1/json", LOOK),
            ("GET", "/networks/kind", LOOK),
            ("GET", "/images/kindest/node:v1.34.0/json", LOOK),
            ("GET", "/containers/get/json", LOOK),
            ("POST", "/containers/create?name=c1", CHANGE),
            ("POST", "/containers/c1/start", CHANGE),
            ("POST", "/containers/c1/kill?signal=HUP", CHANGE),
            ("POST", "/containers/c1/exec", CHANGE),
            ("POST", "/exec/e1/start", CHANGE),
            ("POST", "/networks/create", CHANGE),
            ("DELETE", "/containers/c1?force=1&v=1", CHANGE),
            ("PUT", "/containers/c1/archive?path=%2F", CHANGE),
            ("GET", "/containers/c1/archive?path=%2Fetc", CHANGE),
            ("POST", "/images/create?fromImage=kindest%2Fnode", TRANSFER),
            ("GET", "/images/kindest/node:v1.34.0/get", TRANSFER),
        ];
        for (method, path, deadline) in rows {
            assert_eq!(of(method, path), deadline, "{method} {path}");
        }
    }
}
