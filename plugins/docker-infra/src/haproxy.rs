//! The load balancer's configuration, rendered from its backends.

/// Where the configuration lies in the load balancer's container.
pub const DIRECTORY: &str = "/usr/local/etc/haproxy";
/// Its name there.
pub const FILE: &str = "haproxy.cfg";
/// Port of the API servers, in front and behind.
pub const PORT: u16 = 6443;

/// One API server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Backend {
    /// The machine's container.
    pub name: String,
    /// Its IPv4 or IPv6 address.
    pub address: String,
}

/// The whole file. Backends are sorted, so that equal machines give equal files. Names and addresses must be free of
/// blanks: what is not is left out, because it would change the meaning of the file.
pub fn render(backends: &[Backend], ipv6: bool) -> String {
    let mut sorted: Vec<&Backend> = backends.iter().filter(|backend| is_word(&backend.name)).collect();
    sorted.retain(|backend| backend.address.parse::<std::net::IpAddr>().is_ok());
    sorted.sort();
    sorted.dedup();
    let mut servers = String::new();
    for backend in sorted {
        let address =
            if backend.address.contains(':') { format!("[{}]", backend.address) } else { backend.address.clone() };
        servers.push_str(&format!("  server {} {address}:{PORT} check check-ssl verify none\n", backend.name));
    }
    let also_ipv6 = if ipv6 { format!("  bind :::{PORT} v6only\n") } else { String::new() };
    format!(
        "# Written by capwasm from the control-plane machines of the cluster; changes are lost.
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
  bind *:{PORT}
{also_ipv6}  default_backend kube-apiservers

backend kube-apiservers
  option httpchk GET /healthz
{servers}"
    )
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}

/// A short fingerprint (FNV-1a), to see whether a file that was written is the one that is wanted.
pub fn fingerprint(text: &str) -> String {
    let sum = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{sum:016x}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn backend(name: &str, address: &str) -> Backend {
        Backend { name: name.to_owned(), address: address.to_owned() }
    }

    #[test]
    fn equal_machines_give_equal_files_in_any_order() {
        let (a, b) = (backend("a", "172.18.0.3"), backend("b", "172.18.0.4"));
        assert_eq!(render(&[a.clone(), b.clone()], false), render(&[b.clone(), a.clone(), b], false));
        assert_ne!(fingerprint(&render(&[a], false)), fingerprint(&render(&[], false)));
    }

    #[test]
    fn every_backend_is_checked_over_tls() {
        let file = render(&[backend("quick-1", "172.18.0.3"), backend("quick-2", "fd00::3")], true);
        assert!(file.contains("  server quick-1 172.18.0.3:6443 check check-ssl verify none"), "{file}");
        assert!(file.contains("  server quick-2 [fd00::3]:6443 check check-ssl verify none"), "{file}");
        assert!(file.contains("bind *:6443\n  bind :::6443 v6only\n"));
        assert_eq!(render(&[], false).matches("bind").count(), 1);
    }

    #[test]
    fn names_and_addresses_cannot_add_lines_of_their_own() {
        let file = render(&[backend("a\n  server evil", "172.18.0.3"), backend("b", "1.2.3.4:1 backup\nx")], false);
        assert_eq!(file, render(&[], false));
    }
}
