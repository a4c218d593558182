#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
mod refused;

use serde_json::json;

use super::*;

/// As KubeadmConfigs have it.
const LANGUAGE: Language = Language { functions: &[], missing: Missing::NoValue, largest: 1 << 20 };

fn data() -> Value {
    json!({"controlPlane": {"version": "v1.36.0"}})
}

fn render(template: &str, data: &Value) -> Result<String, String> {
    LANGUAGE.render(template, data).map_err(|error| error.why)
}

/// The expected texts are what Go 1.26 makes of the same templates.
#[test]
fn templates_make_what_go_makes_of_them() {
    let data = data();
    for (template, expected) in [
        ("plain } { text", "plain } { text"),
        ("v={{ .controlPlane.version }}", "v=v1.36.0"),
        ("{{.controlPlane.version}}", "v1.36.0"),
        ("a \n {{- .controlPlane.version -}} \n b", "av1.36.0b"),
        ("a{{/* a comment */}}b{{- /* another */ -}} c", "abc"),
        ("{{ if .controlPlane }}yes{{ else }}no{{ end }}", "yes"),
        ("{{ if .absent }}yes{{ else if eq 1 1 }}second{{ else }}no{{ end }}", "second"),
        ("{{ .absent }}", "<no value>"),
        ("{{ .absent.version }}", "<no value>"),
        ("{{ with .controlPlane }}{{ .version }}{{ end }}", "v1.36.0"),
        ("{{ with .absent }}x{{ else }}none{{ end }}", "none"),
        ("{{ with .controlPlane.version }}{{ slice . 1 }}{{ end }}", "1.36.0"),
        ("{{ slice .controlPlane.version 1 5 }}", "1.36"),
        ("{{ $v := .controlPlane.version }}{{ $v }}{{ $v = \"x\" }}{{ $v }}", "v1.36.0x"),
        ("{{ range $k, $v := .controlPlane }}{{ $k }}={{ $v }};{{ end }}", "version=v1.36.0;"),
        ("{{ range .absent }}x{{ else }}none{{ end }}", "none"),
        ("{{ range 3 }}{{ . }}{{ end }}", "012"),
        (
            "{{ range $i := 5 }}{{ if eq $i 1 }}{{ continue }}{{ end }}{{ if eq $i 3 }}{{ break }}{{ end }}{{ $i }}{{ end }}",
            "02",
        ),
        ("{{ printf \"%s-%d-%q-%v\" .controlPlane.version 5 \"a\\\"b\" true }}", "v1.36.0-5-\"a\\\"b\"-true"),
        ("{{ printf \"%5s|%-5s|%03d|%x\" \"a\" \"b\" 7 255 }}", "    a|b    |007|ff"),
        ("{{ print 1 2 \"a\" \"b\" 3 }}", "1 2ab3"),
        ("{{ println \"a\" 1 }}", "a 1\n"),
        ("{{ len .controlPlane.version }} {{ len .controlPlane }}", "7 1"),
        ("{{ index . \"controlPlane\" \"version\" }}", "v1.36.0"),
        ("{{ and 1 0 2 }} {{ or 0 \"\" \"x\" }} {{ not 0 }}", "0 x true"),
        (
            "{{ eq .controlPlane.version \"a\" \"v1.36.0\" }} {{ ne 1 2 }} {{ lt 1 2 }} {{ ge \"b\" \"a\" }}",
            "true true true true",
        ),
        ("{{ \"v1.36.0\" | printf \"%s!\" }}", "v1.36.0!"),
        ("{{ (index . \"controlPlane\").version }}", "v1.36.0"),
        ("{{ $.controlPlane.version }}{{ with 1 }}{{ $.controlPlane.version }}{{ end }}", "v1.36.0v1.36.0"),
        ("{{ define \"t\" }}<{{ . }}>{{ end }}{{ template \"t\" .controlPlane.version }}", "<v1.36.0>"),
        ("{{ block \"b\" .controlPlane }}[{{ .version }}]{{ end }}", "[v1.36.0]"),
        ("{{ `raw \\n` }}{{ 'a' }}{{ 0x10 }} {{ -3 }}", "raw \\n9716 -3"),
        ("{{ . }}", "map[controlPlane:map[version:v1.36.0]]"),
        ("{{ if and .controlPlane (eq .controlPlane.version \"v1.36.0\") }}ok{{ end }}", "ok"),
        ("{{ \"{{\" }}", "{{"),
    ] {
        assert_eq!(render(template, &data).as_deref(), Ok(expected), "{template}");
    }
    assert_eq!(render("{{ if .controlPlane }}v{{ end }}done", &json!({})).as_deref(), Ok("done"));
}

#[test]
fn what_is_wrong_or_not_supported_is_said() {
    let data = data();
    for (template, part) in [
        ("{{ .controlPlane.version ", "unclosed action"),
        ("{{ if true }}", "end"),
        ("{{ end }}", "unexpected"),
        ("{{ else }}", "unexpected"),
        ("{{ $x }}", "undefined variable $x"),
        ("{{ $x = 1 }}", "undefined variable $x"),
        ("{{ if $y := 1 }}{{ end }}{{ $y }}", "undefined variable $y"),
        ("{{ nosuch 1 }}", "not defined"),
        ("{{ html \"a\" }}", "html is not supported"),
        ("{{ 1.5 }}", "whole number"),
        ("{{ .controlPlane.version.x }}", "can't evaluate field x"),
        ("{{ range .controlPlane.version }}{{ end }}", "range can't iterate"),
        ("{{ eq 1 \"a\" }}", "incompatible types"),
        ("{{ lt 1 }}", "wrong number of arguments"),
        ("{{ template \"none\" }}", "not defined"),
        ("{{ define \"t\" }}{{ template \"t\" }}{{ end }}{{ template \"t\" }}", "too deeply"),
        ("{{ range 100000000 }}{{ end }}", "end"),
        ("{{ range 1000 }}{{ printf \"%1000s%1000s\" \"a\" \"b\" }}{{ end }}", "larger than"),
        ("{{ break }}", "outside of"),
        ("{{ }}", "missing value"),
        ("{{ 1 | 2 }}", "must be a function"),
        ("{{ .a 1 }}", "not a function"),
        ("{{ (1 }}", "parenthesis"),
        ("{{ 1) }}", "unexpected"),
        ("{{ slice \"ä\" 1 }}", "out of range"),
        ("{{ index \"abc\" 7 }}", "out of range"),
        ("{{/* open", "unclosed comment"),
        ("{{ \"a", "unterminated"),
        ("{{ printf \"%f\" 1 }}", "not supported"),
        ("{{ printf \"%d\" }}", "no value"),
    ] {
        let problem = render(template, &data).expect_err(template);
        assert!(problem.contains(part), "{template}: {problem}");
    }
    let deep = "{{ if true }}".repeat(500) + &"{{ end }}".repeat(500);
    assert!(render(&deep, &data).unwrap_err().contains("too deeply"));
    let parentheses = format!("{{{{ {}1{} }}}}", "(".repeat(5000), ")".repeat(5000));
    assert!(render(&parentheses, &data).unwrap_err().contains("too deeply"));
}

/// Nothing that a user writes makes the provider trap.
#[test]
fn no_template_whatever_it_holds_panics() {
    use rand::{RngExt, SeedableRng, rngs::StdRng};
    const PARTS: [&str; 36] = [
        "{{",
        "}}",
        "{{-",
        "-}}",
        " ",
        "\n",
        ".",
        "$",
        "$x",
        ":=",
        "=",
        "|",
        "(",
        ")",
        ",",
        "if",
        "else",
        "end",
        "range",
        "with",
        "define",
        "template",
        "block",
        "\"a\"",
        "`",
        "'",
        "1",
        "-",
        "0x",
        "/*",
        "*/",
        "printf",
        "\"%d\"",
        "slice",
        "é",
        ".controlPlane.version",
    ];
    let data = data();
    for seed in 0..20_000 {
        let mut rng = StdRng::seed_from_u64(seed);
        let text: String = (0..rng.random_range(0..24)).map(|_| PARTS[rng.random_range(0..PARTS.len())]).collect();
        drop(render(&text, &data));
    }
}
