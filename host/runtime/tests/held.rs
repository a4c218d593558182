//! What a call makes the host hold is a small multiple of what it was charged, whatever it hands over: counted by the allocator.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use arbitrary::Unstructured;
use async_trait::async_trait;
use capwasm_contract::descriptor::KindPattern;
use capwasm_contract::{ObjectRef, Place, Refused, Selection};
use capwasm_object::selector::Selector;
use capwasm_runtime::fuzzing::{Call, Session};
use capwasm_runtime::{Capabilities, Grants, Limits, Lookup, Secrets};
use capwasm_test_support::counting::{self, Counting};
use parking_lot::Mutex;

/// Memory for each charged byte at most. A list that grows is there twice for a moment, half as large; maps are charged by nodes.
const MULTIPLE: usize = 2;
/// What is not charged, or not yet: the text at hand, an object that is being read, the call's own state.
const BESIDES: usize = 2 * TEXT;
/// Longest text of an action.
const TEXT: usize = 64 << 10;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A management cluster that remembers reads as the host does, until the object's next pass. A Secret's name says its size: keys of
/// the length of the rest.
#[derive(Default)]
struct Cluster {
    objects: Mutex<Vec<(String, String)>>,
    lists: Mutex<Vec<Selector>>,
}

#[async_trait]
impl Lookup for Cluster {
    async fn get(&self, target: &ObjectRef) -> Result<String, Refused> {
        let namespace = target.namespace.clone().unwrap_or_default();
        self.objects.lock().push((namespace, target.name.clone()));
        Ok(String::new())
    }

    async fn list(&self, of: &Selection) -> Result<Vec<String>, Refused> {
        let selector =
            Selector::parse(&of.labels).map_err(|error| Refused::invalid("BadSelector", error.to_string()))?;
        self.lists.lock().push(selector);
        Ok(Vec::new())
    }
}

#[async_trait]
impl Secrets for Cluster {
    async fn open(&self, _: Option<&str>, name: &str) -> Result<BTreeMap<String, Vec<u8>>, Refused> {
        let numbers: Vec<usize> = name.split('-').filter_map(|number| number.parse().ok()).collect();
        let (keys, bytes) = (numbers[0], numbers[1]);
        Ok((0..keys).map(|key| (key.to_string(), vec![0; bytes / keys])).collect())
    }

    async fn bootstrap_data(&self) -> Result<BTreeMap<String, Vec<u8>>, Refused> {
        self.open(None, "1-1").await
    }
}

/// What a guest does.
#[derive(Clone, Debug)]
enum Action {
    Want(Call),
    Get(ObjectRef),
    List(Selection),
    Open(String),
    /// Drops one of the handles.
    Close(usize),
}

fn wanted(fields: String) -> Action {
    Action::Want(Call::SetStatus(fields))
}

fn listed(labels: String) -> Action {
    Action::List(Selection { api_version: "v1".into(), kind: "ConfigMap".into(), namespace: None, labels })
}

/// Does it all so many times, and holds what the thread holds to what was charged. Answers what was charged at most.
fn hold(name: &str, times: usize, actions: &[Action]) -> usize {
    let patterns = |kind: &str| vec![KindPattern { group: String::new(), kind: kind.into() }];
    let grants = Grants {
        reads: patterns("ConfigMap"),
        writes: patterns("Secret"),
        secrets: vec!["*".into()],
        ..Grants::default()
    };
    // Enough to see growth, and quick.
    let limits = Limits { result_bytes: 512 << 10, ..Limits::default() };
    let before = counting::watch_peak();
    let cluster = Arc::new(Cluster::default());
    let capabilities = Capabilities { lookup: cluster.clone(), secrets: cluster, ..Capabilities::none() };
    let own = counting::held() - before;
    let mut session = Session::new(&limits, grants, capabilities);
    let (mut handles, mut charged) = (Vec::new(), 0);
    // Up to the one that ends the call; what is refused does not.
    let finished = std::iter::repeat_n(actions, times).flatten().all(|action| {
        let goes_on = match action.clone() {
            Action::Want(call) => session.want(call),
            Action::Get(target) => {
                at_once(session.get(target));
                true
            }
            Action::List(of) => {
                at_once(session.list(of));
                true
            }
            Action::Open(name) => {
                handles.extend(at_once(session.open(name)));
                true
            }
            Action::Close(at) => {
                if !handles.is_empty() {
                    session.close(handles.swap_remove(at % handles.len()));
                }
                true
            }
        };
        charged = charged.max(usize::try_from(session.charged()).unwrap());
        goes_on
    });
    let peak = counting::peak() - before;
    assert!(
        peak <= MULTIPLE * charged + BESIDES + own,
        "{name}: {peak} bytes were held, and {charged} charged; finished: {finished}"
    );
    charged
}

/// Nothing here waits.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("it waits"),
    }
}

/// What takes most memory for its text, of each kind, until the call is refused or ends.
#[test]
fn what_takes_most_for_its_text_is_charged_for_what_it_takes() {
    let many = |action: Action| (5_000, vec![action]);
    let repeated = |item: &str| wanted(format!(r#"{{"a":[{}0]}}"#, item.repeat(TEXT / item.len() - 3)));
    let target = || ObjectRef::new("v1", "Secret", "x");
    let numbered = |count: usize, make: fn(usize) -> Action| (1, (0..count).map(make).collect());
    let keys = (0..5_000).map(|key| format!(r#""{key}":0,"#)).collect::<String>();
    let key = String::new;
    let rows = [
        ("small maps", many(repeated(r#"{"":0},"#))),
        ("maps of six", many(repeated(r#"{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0},"#))),
        ("small lists", many(repeated("[0],"))),
        ("empty ones", many(repeated("[],{},"))),
        ("numbers", many(repeated("0,"))),
        ("short texts", many(repeated(r#""a","#))),
        ("deep ones", many(repeated(&format!("{}{},", "[".repeat(100), "]".repeat(100))))),
        ("deep maps", many(repeated(&format!("{}0{},", r#"{"":"#.repeat(100), "}".repeat(100))))),
        ("one map", many(wanted(format!("{{{keys}\"\":0}}")))),
        ("a long text", many(wanted(format!(r#"{{"a":"{}"}}"#, "x".repeat(TEXT - 9))))),
        ("nothing", many(wanted("{}".into()))),
        (
            "small patches",
            many(Action::Want(Call::Patch {
                key: key(),
                place: Place::Management,
                target: target(),
                merge: "{}".into(),
            })),
        ),
        (
            "deletions",
            many(Action::Want(Call::Delete { key: key(), place: Place::Management, target: target(), uid: None })),
        ),
        (
            "refused ones",
            many(Action::Want(Call::Delete { key: key(), place: Place::Workload, target: target(), uid: None })),
        ),
        ("events", many(Action::Want(Call::EmitEvent { warning: true, reason: key(), message: key() }))),
        ("names", numbered(5_000, |at| Action::Get(ObjectRef::new("v1", "ConfigMap", format!("{at:0250}"))))),
        ("short names", numbered(5_000, |at| Action::Get(ObjectRef::new("v1", "ConfigMap", at.to_string())))),
        ("requirements", many(listed(format!("{}a", "a,".repeat(500))))),
        ("values", many(listed(format!("a in ({}a)", numbers(900))))),
        ("one Secret", many(Action::Open("1-50000".into()))),
        ("Secrets", numbered(500, |at| Action::Open(format!("1-50000-{at}")))),
        ("Secrets of many keys", numbered(500, |at| Action::Open(format!("1000-1000-{at}")))),
    ];
    for (name, (times, actions)) in rows {
        let charged = hold(name, times, &actions);
        assert!(charged > 0, "{name}");
    }
}

/// `0,1,2,…,`
fn numbers(count: usize) -> String {
    (0..count).map(|number| format!("{number},")).collect()
}

/// A JSON value.
fn value(u: &mut Unstructured<'_>, depth: usize) -> arbitrary::Result<String> {
    let items = u.int_in_range(0..=if depth == 0 { 0 } else { 7 })?;
    Ok(match u.int_in_range(0..=5)? {
        0 => "0".to_owned(),
        1 => format!("{:?}", "x".repeat(u.int_in_range(0..=40)?)),
        2 | 3 => {
            let items = (0..items).map(|_| value(u, depth - 1)).collect::<Result<Vec<_>, _>>()?;
            format!("[{}]", items.join(","))
        }
        _ => object(u, items, depth)?,
    })
}

fn object(u: &mut Unstructured<'_>, entries: usize, depth: usize) -> arbitrary::Result<String> {
    let entry =
        |(at, u): (usize, &mut Unstructured<'_>)| Ok(format!("\"{at}\":{}", value(u, depth.saturating_sub(1))?));
    let mut parts = Vec::new();
    for at in 0..entries {
        parts.push(entry((at, u))?);
    }
    Ok(format!("{{{}}}", parts.join(",")))
}

fn action(u: &mut Unstructured<'_>) -> arbitrary::Result<Action> {
    let entries = u.int_in_range(0..=7)?;
    let fields = object(u, entries, 4)?;
    let target = ObjectRef::new("v1", "Secret", "x");
    let (key, place) = ("k".to_owned(), Place::Management);
    Ok(match u.int_in_range(0..=7)? {
        0 => wanted(fields),
        1 => Action::Want(Call::SetOwn(fields)),
        2 => {
            let object = format!(r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"x"}},"data":{fields}}}"#);
            Action::Want(Call::Create { key, place, object })
        }
        3 => Action::Want(Call::Patch { key, place, target, merge: fields }),
        4 => Action::Get(ObjectRef::new("v1", "ConfigMap", "x".repeat(u.int_in_range(1..=300)?))),
        5 => listed(format!("{}a=b", "a,".repeat(u.int_in_range(0..=50)?))),
        6 => Action::Open(format!(
            "{}-{}-{}",
            u.int_in_range(1..=20)?,
            u.int_in_range(0..=50_000)?,
            u.int_in_range(0..=5)?
        )),
        _ => Action::Close(u.arbitrary()?),
    })
}

#[test]
fn whatever_a_call_does_the_host_holds_a_small_multiple_of_what_it_was_charged() {
    arbtest::arbtest(|u| {
        // Each action many times, which is what a limit is for.
        let mut actions = Vec::new();
        for _ in 0..u.int_in_range(1..=8)? {
            let action = action(u)?;
            actions.extend(std::iter::repeat_n(action, u.int_in_range(1..=50)?));
        }
        hold("random actions", 1, &actions);
        Ok(())
    })
    .budget_ms(300);
}
