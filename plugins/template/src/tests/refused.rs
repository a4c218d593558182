//! Templates of load balancers: a function of their own, and nothing that is missing passes for empty.

use serde_json::{Value, json};

use crate::{Language, Missing, TemplateError};

const LARGEST: usize = 64 << 10;

const LANGUAGE: Language =
    Language { functions: &[("JoinHostPort", join_host_port)], missing: Missing::Refused, largest: LARGEST };

fn join_host_port(arguments: &[Value]) -> Result<Value, String> {
    match arguments {
        [Value::String(host), Value::String(port)] if host.contains(':') => Ok(json!(format!("[{host}]:{port}"))),
        [Value::String(host), Value::String(port)] => Ok(json!(format!("{host}:{port}"))),
        _ => Err("JoinHostPort needs two texts".to_owned()),
    }
}

fn render(template: &str, data: &Value) -> Result<String, TemplateError> {
    LANGUAGE.render(template, data)
}

fn data() -> Value {
    json!({
        "Port": "6443", "IPv6": false, "Empty": {}, "N": 3,
        "Servers": {"b": {"Address": "fd00::2", "Weight": 0}, "a": {"Address": "10.0.0.1", "Weight": 100}},
    })
}

#[test]
fn what_load_balancers_use_is_filled_in() {
    let table = [
        ("plain", "plain"),
        ("bind *:{{ .Port }}", "bind *:6443"),
        ("{{if .IPv6}}six{{else}}four{{end}}", "four"),
        ("{{if .IPv6}}six{{else if eq .Port \"6443\"}}port{{else}}x{{end}}", "port"),
        (
            "{{range $name, $server := .Servers}}{{$name}}={{JoinHostPort $server.Address $.Port}} {{end}}",
            "a=10.0.0.1:6443 b=[fd00::2]:6443 ",
        ),
        ("{{range .Servers}}{{.Weight}},{{end}}", "100,0,"),
        ("{{range .Empty}}x{{else}}none{{end}}", "none"),
        ("a\n  {{- /* gone */ -}}\n  b", "ab"),
        ("a  {{- if true }} b {{- end -}}  c", "a bc"),
        ("{{with .Servers}}{{len .}}{{end}}", "2"),
        ("{{ $x := .Port }}{{ $x | print \"p\" }}", "p6443"),
        ("{{ if and (not .IPv6) (ne .Port `80`) (or .IPv6 .N) }}yes{{ end }}", "yes"),
        ("{{ \"a\\\"}b\" }}", "a\"}b"),
    ];
    for (template, expected) in table {
        assert_eq!(render(template, &data()).as_deref(), Ok(expected), "{template}");
    }
}

#[test]
fn what_is_not_understood_is_refused_with_its_line() {
    let deep = "{{if .N}}".repeat(100);
    for (template, line) in [
        ("a\n{{ .Nothing }}", 2),
        ("{{ if .N }}", 1),
        ("{{ end }}", 1),
        ("\n\n{{ .Port", 3),
        ("{{ html .Port }}", 1),
        ("{{ template \"x\" }}", 1),
        ("{{ range .Port }}{{ end }}", 1),
        ("{{ $x }}", 1),
        ("{{ (.Port }}", 1),
        ("{{ .Port) }}", 1),
        ("{{ eq }}", 1),
        ("{{ .Port .Port }}", 1),
        ("{{ \"x }}", 1),
        ("{{ .Port | .N }}", 1),
        ("{{}}", 1),
        ("{{-}}", 1),
        (deep.as_str(), 1),
    ] {
        assert_eq!(render(template, &data()).map_err(|error| error.line), Err(line), "{template}");
    }
    assert!(render(&"x".repeat(LARGEST + 1), &data()).is_err());
}
