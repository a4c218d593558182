//! The load balancer's configuration, filled in from its backends.

use capwasm_template::{Language, Missing, TemplateError};
use serde_json::{Map, Value, json};

use crate::family::family_of;

/// Where the configuration lies in the load balancer's container.
pub const DIRECTORY: &str = "/usr/local/etc/haproxy";
pub const FILE: &str = "haproxy.cfg";
/// Port of the API servers, in front and behind.
pub const PORT: u16 = 6443;
/// Weight of a backend whose machine has no annotation for it.
pub const USUAL_WEIGHT: u16 = 100;
/// The most that haproxy takes.
pub const LARGEST_WEIGHT: u16 = 256;

/// Used when the cluster brings none of its own. The fields are those that upstream gives to such templates.
const TEMPLATE: &str = "# Written by capwasm from the control-plane machines of the cluster; changes are lost.
global
  log stdout format raw local0 info
  maxconn 100000

defaults
  log global
  mode tcp
  option dontlognull
  timeout connect 5s
  timeout client 50s
  timeout server 50s

frontend control-plane
  bind *:{{ .FrontendControlPlanePort }}
{{- if .IPv6 }}
  bind :::{{ .FrontendControlPlanePort }} v6only
{{- end }}
  default_backend kube-apiservers

backend kube-apiservers
  option httpchk GET /healthz
{{- range $server, $backend := .BackendServers }}
  server {{ $server }} {{ JoinHostPort $backend.Address $.BackendControlPlanePort }} weight {{ $backend.Weight }} check check-ssl verify none
{{- end }}
";

/// A field that is not there would leave a hole in the configuration.
const LANGUAGE: Language =
    Language { functions: &[("JoinHostPort", join_host_port)], missing: Missing::Refused, largest: 256 << 10 };

/// A control-plane machine's API server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Backend {
    /// Name of the machine's container.
    pub name: String,
    /// Its IPv4 or IPv6 address.
    pub address: String,
    /// Its share of new connections, of the sum of all; 0 is none.
    pub weight: u16,
}

/// What the file is made of.
pub struct Front<'a> {
    /// Port that the load balancer listens on.
    pub port: u16,
    /// Whether the cluster speaks IPv6.
    pub ipv6: bool,
    /// The cluster's own template.
    pub template: Option<&'a str>,
}

/// The whole file. Backends are sorted, so that equal machines give equal files. Names and addresses must be free of
/// blanks: what is not is left out, because it would change the meaning of the file.
pub fn render(backends: &[Backend], front: &Front<'_>) -> Result<String, TemplateError> {
    let servers: Map<String, Value> = backends
        .iter()
        .filter(|backend| is_word(&backend.name) && family_of(&backend.address).is_some())
        .map(|backend| (backend.name.clone(), json!({"Address": backend.address, "Weight": backend.weight})))
        .collect();
    let data = json!({
        "FrontendControlPlanePort": front.port.to_string(),
        "BackendControlPlanePort": PORT.to_string(),
        "BackendServers": servers,
        "IPv6": front.ipv6,
    });
    LANGUAGE.render(front.template.unwrap_or(TEMPLATE), &data)
}

/// Go's `net.JoinHostPort`, which brackets IPv6 addresses.
fn join_host_port(arguments: &[Value]) -> Result<Value, String> {
    let (host, port) = match arguments {
        [Value::String(host), Value::String(port)] => (host, port.clone()),
        [Value::String(host), Value::Number(port)] => (host, port.to_string()),
        _ => return Err("JoinHostPort takes a host and a port".to_owned()),
    };
    Ok(json!(if host.contains([':', '%']) { format!("[{host}]:{port}") } else { format!("{host}:{port}") }))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use capwasm_api::names::fingerprint;

    const FRONT: Front<'_> = Front { port: 6443, ipv6: false, template: None };

    fn backend(name: &str, address: &str) -> Backend {
        Backend { name: name.to_owned(), address: address.to_owned(), weight: USUAL_WEIGHT }
    }

    fn file(backends: &[Backend]) -> String {
        render(backends, &FRONT).unwrap()
    }

    #[test]
    fn equal_machines_give_equal_files_in_any_order() {
        let (a, b) = (backend("a", "172.18.0.3"), backend("b", "172.18.0.4"));
        assert_eq!(file(&[a.clone(), b.clone()]), file(&[b.clone(), a.clone(), b]));
        assert_ne!(fingerprint(&file(&[a])), fingerprint(&file(&[])));
    }

    #[test]
    fn every_backend_is_checked_over_tls_and_has_its_weight() {
        let leaving = Backend { weight: 0, ..backend("quick-2", "fd00::3") };
        let file = render(&[backend("quick-1", "172.18.0.3"), leaving], &Front { ipv6: true, ..FRONT }).unwrap();
        assert!(file.contains("  server quick-1 172.18.0.3:6443 weight 100 check check-ssl verify none\n"), "{file}");
        assert!(file.contains("  server quick-2 [fd00::3]:6443 weight 0 check check-ssl verify none\n"), "{file}");
        assert!(file.contains("bind *:6443\n  bind :::6443 v6only\n  default"), "{file}");
        assert_eq!(render(&[], &FRONT).unwrap().matches("bind").count(), 1);
    }

    #[test]
    fn names_and_addresses_cannot_add_lines_of_their_own() {
        let hostile = [backend("a\n  server evil", "172.18.0.3"), backend("b", "1.2.3.4:1 backup\nx")];
        assert_eq!(file(&hostile), file(&[]));
    }

    #[test]
    fn a_template_of_the_clusters_own_sees_upstreams_fields() {
        let template = "{{ .FrontendControlPlanePort }} {{ .IPv6 }}{{ range $s, $b := .BackendServers }} {{ $s }} {{ JoinHostPort $b.Address $.BackendControlPlanePort }} {{ $b.Weight }}{{ end }}";
        let front = Front { port: 443, ipv6: false, template: Some(template) };
        assert_eq!(render(&[backend("a", "10.0.0.1")], &front).unwrap(), "443 false a 10.0.0.1:6443 100");
    }
}
