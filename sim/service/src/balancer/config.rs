//! The part of haproxy's configuration language that says where connections go. Pure.

use std::collections::BTreeMap;

const SECTIONS: [&str; 12] = [
    "global",
    "defaults",
    "frontend",
    "backend",
    "listen",
    "resolvers",
    "peers",
    "userlist",
    "program",
    "cache",
    "mailers",
    "ring",
];

/// A server of a backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Name of the server in the configuration.
    pub name: String,
    /// `host:port`.
    pub address: String,
    /// Share of new connections; 0: it gets none, because it is drained or disabled.
    pub weight: u32,
    /// Whether it is used only when no other answers.
    pub backup: bool,
}

/// Which servers stand behind which port.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Configuration {
    /// The servers behind each listening port.
    pub ports: BTreeMap<u16, Vec<Server>>,
}

#[derive(Default)]
struct Section {
    binds: Vec<u16>,
    backend: Option<String>,
    servers: Vec<Server>,
}

impl Configuration {
    /// Parses a configuration file.
    ///
    /// # Errors
    /// One line per problem, as haproxy prints them when it refuses to start.
    pub fn parse(text: &str) -> Result<Configuration, Vec<String>> {
        let mut problems = Vec::new();
        let mut fronts: Vec<(String, Section)> = Vec::new();
        let mut backs: BTreeMap<String, Vec<Server>> = BTreeMap::new();
        let mut current: Option<(&str, String, Section)> = None;
        let mut close = |section: Option<(&str, String, Section)>, fronts: &mut Vec<(String, Section)>| {
            if let Some((kind, name, section)) = section {
                if matches!(kind, "backend" | "listen") {
                    backs.insert(name.clone(), section.servers.clone());
                }
                if matches!(kind, "frontend" | "listen") {
                    fronts.push((
                        name.clone(),
                        Section { backend: if kind == "listen" { Some(name) } else { section.backend }, ..section },
                    ));
                }
            }
        };
        for (number, line) in text.lines().enumerate() {
            let mut problem = |message: String| problems.push(format!("[haproxy.cfg:{}] : {message}", number + 1));
            let words: Vec<&str> = line.split_whitespace().take_while(|word| !word.starts_with('#')).collect();
            let Some((keyword, rest)) = words.split_first() else { continue };
            if !line.starts_with([' ', '\t']) {
                close(current.take(), &mut fronts);
                if SECTIONS.contains(keyword) {
                    current = Some((keyword, rest.first().unwrap_or(&"").to_string(), Section::default()));
                } else {
                    problem(format!("unknown keyword '{keyword}' out of section"));
                }
                continue;
            }
            let Some((kind, _, section)) = &mut current else {
                problem(format!("unknown keyword '{keyword}' out of section"));
                continue;
            };
            match (*kind, *keyword) {
                ("frontend" | "listen", "bind") => {
                    match rest.first().and_then(|bind| bind.rsplit_once(':')).and_then(|(_, port)| port.parse().ok()) {
                        Some(port) => section.binds.push(port),
                        None => problem("'bind' : invalid address".to_owned()),
                    }
                }
                ("frontend", "default_backend") => match rest.first() {
                    Some(name) => section.backend = Some((*name).to_owned()),
                    None => problem("'default_backend' expects a backend name".to_owned()),
                },
                ("backend" | "listen", "server") => match server(rest) {
                    Ok(server) => section.servers.push(server),
                    Err(message) => problem(message),
                },
                _ => {}
            }
        }
        close(current.take(), &mut fronts);
        let mut ports = BTreeMap::new();
        for (name, section) in fronts {
            if section.binds.is_empty() {
                problems.push(format!("frontend '{name}' has no 'bind' directive"));
            }
            match section.backend.as_ref().map(|backend| backs.get(backend).ok_or(backend)) {
                Some(Ok(servers)) => ports.extend(section.binds.iter().map(|port| (*port, servers.clone()))),
                Some(Err(backend)) => {
                    problems.push(format!("frontend '{name}': unable to find required default_backend: '{backend}'"))
                }
                // A frontend for statistics has none; connections to it would be refused.
                None => {}
            }
        }
        if ports.is_empty() && problems.is_empty() {
            problems.push("no frontend with a backend: nothing to do".to_owned());
        }
        if problems.is_empty() { Ok(Configuration { ports }) } else { Err(problems) }
    }
}

fn server(words: &[&str]) -> Result<Server, String> {
    let [name, address, options @ ..] = words else {
        return Err("'server' expects a name and an address".to_owned());
    };
    let valid = address.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if !valid {
        return Err(format!("'server {name}' : invalid address: '{address}'"));
    }
    let weight = match options.iter().position(|option| *option == "weight") {
        None => 1,
        Some(at) => {
            let given = options.get(at + 1).and_then(|weight| weight.parse().ok()).filter(|weight| *weight <= 256);
            given.ok_or_else(|| format!("'server {name}' : 'weight' expects an integer between 0 and 256"))?
        }
    };
    Ok(Server {
        name: (*name).to_owned(),
        address: (*address).to_owned(),
        weight: if options.contains(&"disabled") { 0 } else { weight },
        backup: options.contains(&"backup"),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn frontends_lead_to_their_servers() {
        let text = "global\n  log /dev/log local0\ndefaults\n  mode tcp\n  timeout client 5s\n\nfrontend control-plane\n  bind *:6443\n  \
                    bind :::6443;\n  default_backend kube-apiservers\n\nbackend kube-apiservers\n  option httpchk GET /healthz # comment\n  \
                    server one 127.64.0.3:6443 weight 100 check check-ssl verify none\n  server two 127.64.0.4:6443 weight 0\n";
        let problems = Configuration::parse(text).unwrap_err();
        assert_eq!(problems, ["[haproxy.cfg:9] : 'bind' : invalid address"]);
        let parsed = Configuration::parse(&text.replace(";", "")).unwrap();
        let servers = &parsed.ports[&6443];
        assert_eq!(
            servers.iter().map(|s| (s.name.as_str(), s.address.as_str(), s.weight)).collect::<Vec<_>>(),
            [("one", "127.64.0.3:6443", 100), ("two", "127.64.0.4:6443", 0)]
        );
    }

    #[test]
    fn a_backend_without_servers_is_valid_and_a_broken_file_is_not() {
        assert!(
            Configuration::parse("frontend f\n bind *:1\n default_backend b\nbackend b\n").unwrap().ports[&1]
                .is_empty()
        );
        for (text, expected) in [
            ("", "nothing to do"),
            ("nonsense\n", "unknown keyword 'nonsense'"),
            ("frontend f\n bind *:1\n default_backend gone\n", "unable to find required default_backend: 'gone'"),
            ("frontend f\n default_backend b\nbackend b\n", "has no 'bind'"),
            ("frontend f\n bind *:1\n default_backend b\nbackend b\n server x nowhere\n", "invalid address: 'nowhere'"),
        ] {
            let problems = Configuration::parse(text).unwrap_err().join("\n");
            assert!(problems.contains(expected), "{text:?}: {problems}");
        }
    }
}
