//! The catalog of a token: where each service listens.

use serde_json::Value;

use super::Service;

impl Service {
    /// Names of its type in catalogs, the official one first.
    pub fn types(self) -> &'static [&'static str] {
        match self {
            Service::Compute => &["compute"],
            Service::Network => &["network"],
            Service::Image => &["image"],
            Service::LoadBalancer => &["load-balancer"],
            Service::Volume => &["block-storage", "volumev3", "volume"],
        }
    }

    /// What follows an endpoint that does not name its version.
    fn version(self, project: &str) -> String {
        match self {
            Service::Compute => "/v2.1".to_owned(),
            Service::Network => "/v2.0".to_owned(),
            Service::Image | Service::LoadBalancer => "/v2".to_owned(),
            Service::Volume => format!("/v3/{project}"),
        }
    }

    /// The root that paths are below, from an endpoint with or without a version.
    pub fn root(self, endpoint: &str, project: &str) -> String {
        let endpoint = endpoint.trim_end_matches('/');
        if version_at(endpoint).is_some() {
            endpoint.to_owned()
        } else {
            format!("{endpoint}{}", self.version(project))
        }
    }
}

/// The endpoint of a service, by region (any, when it is empty) and interface.
pub fn endpoint<'a>(catalog: &'a Value, service: Service, region: &str, interface: &str) -> Option<&'a str> {
    let entries = || catalog.as_array().into_iter().flatten();
    let of_type = |wanted: &str| {
        entries()
            .filter(|entry| entry.get("type").and_then(Value::as_str) == Some(wanted))
            .filter_map(|entry| entry.get("endpoints")?.as_array())
            .flatten()
            .find(|endpoint| is(endpoint, region, interface))
            .and_then(|endpoint| endpoint.get("url")?.as_str())
    };
    service.types().iter().find_map(|wanted| of_type(wanted))
}

/// The regions of a catalog, each once.
pub fn regions(catalog: &Value) -> Vec<&str> {
    let endpoints = catalog.as_array().into_iter().flatten().filter_map(|entry| entry.get("endpoints")?.as_array());
    let mut regions: Vec<&str> = endpoints.flatten().map(region_of).filter(|region| !region.is_empty()).collect();
    regions.sort_unstable();
    regions.dedup();
    regions
}

/// The host of a URL, with its port.
pub fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?']).next().unwrap_or_default()
}

/// An endpoint up to its version (`https://nova/v2.1`), and up to what is before it (`https://nova`).
pub fn versioned_and_unversioned(root: &str) -> (&str, &str) {
    match version_at(root) {
        Some((start, end)) => (&root[..end], &root[..start]),
        None => (root, root),
    }
}

fn is(endpoint: &Value, region: &str, interface: &str) -> bool {
    endpoint.get("interface").and_then(Value::as_str) == Some(interface)
        && (region.is_empty() || region_of(endpoint) == region)
}

fn region_of(endpoint: &Value) -> &str {
    let text = |name: &str| endpoint.get(name).and_then(Value::as_str);
    text("region_id").or(text("region")).unwrap_or_default()
}

/// Where the first segment like `/v2.1` begins and ends, after the host.
fn version_at(url: &str) -> Option<(usize, usize)> {
    let host = url.find("://").map_or(0, |at| at + 3);
    let mut start = host + url[host..].find('/')?;
    loop {
        let rest = &url[start + 1..];
        let end = start + 1 + rest.find('/').unwrap_or(rest.len());
        if is_version(&url[start + 1..end]) {
            return Some((start, end));
        }
        if end == url.len() {
            return None;
        }
        start = end;
    }
}

fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|number| {
        number.starts_with(|first: char| first.is_ascii_digit())
            && number.chars().all(|c| c.is_ascii_digit() || c == '.')
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn roots_get_the_version_that_endpoints_leave_out() {
        for (service, endpoint, root) in [
            (Service::Compute, "http://n:8774/v2.1", "http://n:8774/v2.1"),
            (Service::Compute, "http://x/compute/", "http://x/compute/v2.1"),
            (Service::Compute, "http://n/v2.1/p", "http://n/v2.1/p"),
            (Service::Network, "http://n:9696", "http://n:9696/v2.0"),
            (Service::Network, "http://x/networking/v2.0/", "http://x/networking/v2.0"),
            (Service::Image, "http://volumes.example", "http://volumes.example/v2"),
            (Service::LoadBalancer, "http://v2.example:9876", "http://v2.example:9876/v2"),
            (Service::LoadBalancer, "http://o/load-balancer", "http://o/load-balancer/v2"),
            (Service::Volume, "http://c/volume", "http://c/volume/v3/p"),
            (Service::Volume, "http://c/v3/other", "http://c/v3/other"),
        ] {
            assert_eq!(service.root(endpoint, "p"), root, "{endpoint}");
        }
        assert_eq!(versioned_and_unversioned("http://n/compute/v2.1/p"), ("http://n/compute/v2.1", "http://n/compute"));
    }

    #[test]
    fn an_endpoint_is_chosen_by_type_region_and_interface() {
        let endpoint_of =
            |interface: &str, region: &str, url: &str| json!({"interface": interface, "region_id": region, "url": url});
        let catalog = json!([
            {"type": "volumev3", "endpoints": [endpoint_of("public", "A", "old")]},
            {"type": "block-storage", "endpoints": [endpoint_of("public", "B", "new")]},
            {"type": "compute", "endpoints": [endpoint_of("admin", "A", "1"), endpoint_of("public", "A", "2"), endpoint_of("public", "B", "3")]},
        ]);
        let find = |service, region, interface| endpoint(&catalog, service, region, interface);
        assert_eq!(find(Service::Compute, "B", "public"), Some("3"));
        assert_eq!(find(Service::Compute, "A", "admin"), Some("1"));
        assert_eq!(find(Service::Compute, "", "public"), Some("2"));
        assert_eq!(find(Service::Compute, "B", "admin"), None);
        assert_eq!(find(Service::Volume, "B", "public"), Some("new"));
        assert_eq!(find(Service::Volume, "A", "public"), Some("old"));
        assert_eq!(find(Service::Image, "A", "public"), None);
        assert_eq!(regions(&catalog), ["A", "B"]);
    }
}
