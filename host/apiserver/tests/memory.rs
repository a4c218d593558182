//! What request bodies take in memory while they are read, of what they are counted as. Alone in its binary, whose allocator counts.

use arbitrary::Unstructured;
use capwasm_apiserver::fuzzing;
use capwasm_test_support::counting::{self, Counting};

/// Most bytes that are held for each that is counted, and beside them.
const TIMES: usize = 2;
const BESIDE: usize = 1 << 20;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

fn check(what: &str, content_type: &str, body: &[u8]) -> bool {
    let before = counting::watch_peak();
    let (taken, counted) = fuzzing::body(content_type, body);
    let peak = counting::peak() - before;
    let most = TIMES * (body.len() + counted) + BESIDE;
    assert!(peak <= most, "{what}: {peak} bytes of a body of {}, counted as {counted}", body.len());
    taken
}

fn repeated(open: &str, item: &str, between: &str, close: &str, bytes: usize) -> String {
    let times = bytes / (item.len() + between.len());
    [open, &vec![item; times].join(between), close].concat()
}

/// A length-delimited field.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = content.len();
    while length > 0x7f {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend(content);
    bytes
}

fn protobuf(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let types = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &types), field(2, raw)].concat()
}

const FULL: usize = 256 << 10;

fn bombs() {
    for item in [r#"{"":0}"#, "0", "[]", r#""""#, r#"[{"":0}]"#, r#"{"a":{"b":[1]}}"#, r#""\u00e9""#] {
        check(item, JSON, repeated("[", item, ",", "]", FULL).as_bytes());
        check(item, YAML, repeated("[", item, ",", "]", FULL).as_bytes());
        check(item, YAML, repeated("- ", item, "\n- ", "\n", FULL).as_bytes());
    }
    let keys: String = (0..200_000).map(|index| format!("\"k{index}\":0,")).collect();
    check("many fields", JSON, format!("{{{keys}\"k\":0}}").as_bytes());
    check(
        "duplicates below a long name",
        JSON,
        format!(r#"{{"{}":{{{}"a":0}}}}"#, "n".repeat(FULL / 2), r#""a":0,"#.repeat(50_000)).as_bytes(),
    );
    assert!(!check("deep", JSON, &[b'['; FULL]) && !check("deep", YAML, &[b'['; FULL]));

    // Each doubles the one before.
    let mut laughs = "a0: &a0 [x, x]\n".to_owned();
    for level in 1..40 {
        laughs += &format!("a{level}: &a{level} [*a{0}, *a{0}]\n", level - 1);
    }
    assert!(!check("aliases of aliases", YAML, laughs.as_bytes()));
    let large = format!("a: &a {}\nb: [{}]\n", repeated("[", "x", ",", "]", 100_000), vec!["*a"; 90].join(","));
    check("aliases of a large anchor", YAML, large.as_bytes());
    let nested = format!(
        "{}{}{}",
        (0..60).map(|n| format!("&n{n} [")).collect::<String>(),
        repeated("", "x", ",", "", FULL / 2),
        "]".repeat(60)
    );
    check("anchors within anchors", YAML, nested.as_bytes());
    check(
        "a long text within anchors",
        YAML,
        format!(
            "{}\"{}\"{}",
            (0..60).map(|n| format!("&n{n} [")).collect::<String>(),
            "x".repeat(FULL / 2),
            "]".repeat(60)
        )
        .as_bytes(),
    );
    check("comments", YAML, "# x\n".repeat(FULL / 4).as_bytes());
    check("documents", YAML, "---\n".repeat(FULL / 4).as_bytes());

    check("unknown fields", PROTOBUF, &protobuf("v1", "ConfigMap", &[0x7a, 0].repeat(FULL / 2)));
    check("entries", PROTOBUF, &protobuf("v1", "ConfigMap", &field(2, &field(1, b"k")).repeat(FULL / 6)));
    check("empty messages", PROTOBUF, &protobuf("v1", "Pod", &field(2, &[0x12, 0].repeat(FULL / 3))));
    check("nested empty messages", PROTOBUF, &protobuf("v1", "Pod", &[0x12, 2, 0x12, 0].repeat(FULL / 5)));
}

/// Random bytes as a document: what the pieces below make of them.
fn random(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let pieces = [
        "[", "]", "{", "}", ",", ":", "\"", "\"a\":", "0", "{\"\":0}", "[]", "null", "\n", "- ", "  ", "&a ", "*a",
        "k: ", "<<: *a", "? ", "|\n", "# ", "!!set ", "---\n", "'", "1e9", "é",
    ];
    let mut text = String::new();
    while !u.is_empty() && text.len() < 1 << 20 {
        let piece = u.choose(&pieces)?;
        for _ in 0..1_usize << u.int_in_range(0..=10)? {
            text.push_str(piece);
        }
    }
    check(&text[..text.floor_char_boundary(200)], JSON, text.as_bytes());
    check(&text[..text.floor_char_boundary(200)], YAML, text.as_bytes());
    let raw: Vec<u8> = u.arbitrary_iter::<u8>()?.collect::<Result<_, _>>()?;
    let raw = if raw.is_empty() { text.into_bytes() } else { raw.repeat(1000) };
    for (version, kind) in [("v1", "Pod"), ("apiextensions.k8s.io/v1", "CustomResourceDefinition"), ("v1", "Secret")] {
        check(kind, PROTOBUF, &protobuf(version, kind, &raw));
    }
    Ok(())
}

#[test]
fn what_a_body_takes_in_memory_was_counted_before() {
    bombs();
    arbtest::arbtest(random).budget_ms(1000);
}
