#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Instant;

use super::*;

#[derive(Default)]
struct Sink(Mutex<Vec<String>>);

impl Wake for Sink {
    fn wake(&self, key: &Key, urgency: Urgency) {
        let later = if urgency == Urgency::Later { " later" } else { "" };
        self.0.lock().push(format!("{}{later}", key.name));
    }
}

impl Sink {
    fn take(&self) -> Vec<String> {
        let mut woken = std::mem::take(&mut *self.0.lock());
        woken.sort();
        woken
    }
}

struct World {
    interests: Arc<Interests>,
    sink: Arc<Sink>,
    controller: ControllerId,
    machine: Kind,
}

impl World {
    fn new() -> Self {
        let (interests, sink) = (Interests::new(), Arc::new(Sink::default()));
        let controller = interests.register(sink.clone());
        Self { interests, sink, controller, machine: Kind::new("g", "v1", "Machine", "machines", true) }
    }

    fn key(&self, name: &str) -> Key {
        Key::new(&Kind::new("g", "v1", "Reader", "readers", true), "ns", name)
    }

    /// A whole pass of the reader with these reads.
    fn pass(&self, reader: &str, reads: impl IntoIterator<Item = Interest>) {
        let reading = self.interests.begin(self.controller, &self.key(reader));
        reads.into_iter().for_each(|read| self.interests.note(reading, read));
        self.interests.finish(reading);
    }

    fn object(&self, name: &str) -> Interest {
        Interest::Object {
            source: Source::Management,
            kind: self.machine.clone(),
            namespace: "ns".into(),
            name: name.into(),
            news: News::Any,
        }
    }

    fn listing(&self, namespace: Option<&str>, selector: &str) -> Interest {
        let selector = Selector::parse(selector).unwrap();
        let (source, namespace) = (Source::Management, namespace.map(Arc::from));
        Interest::Listing { source, kind: self.machine.clone(), namespace, selector, news: News::Any }
    }

    fn change(&self, name: &str, old: Option<&[Label]>, new: Option<&[Label]>) -> Vec<String> {
        self.change_in(name, old, new, |news| match news {
            News::Any => true,
            News::In(fields) => fields.contains(&"/spec"),
        })
    }

    fn change_in(
        &self,
        name: &str,
        old: Option<&[Label]>,
        new: Option<&[Label]>,
        differs: impl Fn(News) -> bool,
    ) -> Vec<String> {
        let marks = |labels| Marks { labels, owners: &[] };
        let change = Change { namespace: "ns", name, version: 7, old: old.map(marks), new: new.map(marks) };
        self.interests.changed(&Source::Management, &self.machine, &change, differs);
        self.sink.take()
    }
}

fn labels(text: &str) -> Vec<Label> {
    text.split(',').filter_map(|label| label.split_once('=')).map(|(key, value)| (key.into(), value.into())).collect()
}

#[test]
fn a_change_wakes_those_who_saw_the_old_state_or_would_see_the_new() {
    let world = World::new();
    world.pass("by-name", [world.object("m")]);
    world.pass("blue", [world.listing(Some("ns"), "color=blue")]);
    world.pass("red", [world.listing(None, "color=red,!hidden")]);
    world.pass("any", [world.listing(Some("ns"), "color")]);
    world.pass("elsewhere", [world.listing(Some("other"), "color=blue")]);
    world.pass("all", [world.listing(None, "")]);
    let (blue, red, hidden) = (labels("color=blue,x=1"), labels("color=red"), labels("color=red,hidden=yes"));
    type State<'a> = Option<&'a [Label]>;
    let table: [(&str, State<'_>, State<'_>, &[&str]); 6] = [
        ("appears", None, Some(&blue), &["all", "any", "blue", "by-name"]),
        ("moves", Some(&blue), Some(&red), &["all", "any", "blue", "by-name", "red"]),
        ("hides", Some(&red), Some(&hidden), &["all", "any", "by-name", "red"]),
        ("stays hidden", Some(&hidden), Some(&hidden), &["all", "any", "by-name"]),
        ("goes", Some(&red), None, &["all", "any", "by-name", "red"]),
        ("has no labels", Some(&[]), Some(&[]), &["all", "by-name"]),
    ];
    for (row, old, new, expected) in table {
        assert_eq!(world.change("m", old, new), expected, "{row}");
    }
    assert_eq!(world.change("other", Some(&[]), Some(&[])), ["all"]);
}

#[test]
fn reads_are_counted_by_controller_until_a_pass_ends_without_them_or_the_key_goes() {
    let world = World::new();
    let other = world.interests.register(world.sink.clone());
    let reading = world.interests.begin(other, &world.key("o"));
    world.interests.note(reading, world.object("a"));
    world.pass("r", [world.object("a"), world.object("b"), world.listing(None, "x=y")]);
    world.pass("s", [world.object("a"), world.object("a")]);
    let last = world.interests.begin(world.controller, &world.key("s"));
    assert_eq!((world.interests.held(last), world.interests.held(reading)), (4, 1));
    world.pass("r", [world.object("c")]);
    assert_eq!(world.interests.held(last), 2);
    world.interests.note(last, world.object("d"));
    assert_eq!(world.interests.held(last), 3, "until the pass has ended, the old reads stand");
    world.interests.finish(last);
    world.interests.forget(world.controller, &world.key("r"));
    assert_eq!(world.interests.held(last), 1);
    world.interests.unregister(world.controller);
    assert!(world.interests.state.lock().held.keys().eq([&other]), "nothing is left behind");
}

#[test]
fn a_pass_replaces_what_the_pass_before_read() {
    let world = World::new();
    world.pass("r", [world.object("a"), world.object("b")]);
    world.pass("r", [world.object("b")]);
    assert_eq!(world.change("a", None, Some(&[])), Vec::<String>::new());
    assert_eq!(world.change("b", None, Some(&[])), ["r"]);
    let reading = world.interests.begin(world.controller, &world.key("r"));
    world.interests.note(reading, world.object("c"));
    assert_eq!(world.change("b", None, Some(&[])), ["r"], "until the pass has ended, the old reads stand");
    assert_eq!(world.change("c", None, Some(&[])), ["r"], "and the new ones too");
    world.interests.finish(reading);
    assert_eq!(world.change("b", None, Some(&[])), Vec::<String>::new());
    world.interests.forget(world.controller, &world.key("r"));
    assert_eq!(world.change("c", None, Some(&[])), Vec::<String>::new());
    assert!(world.interests.is_empty());
    assert!(world.interests.state.lock().kinds.is_empty(), "nothing is left behind");
}

#[test]
fn who_read_fields_is_woken_by_these_alone() {
    let world = World::new();
    let fields = |fields| Interest::Fields {
        source: Source::Management,
        kind: world.machine.clone(),
        namespace: "ns".into(),
        name: "m".into(),
        fields,
    };
    world.pass("spec", [fields(&["/metadata/uid", "/spec"])]);
    world.pass("status", [fields(&["/status"])]);
    world.pass("whole", [fields(&["/status"]), world.object("m")]);
    assert_eq!(world.change("m", Some(&[]), Some(&[])), ["spec", "whole"], "only the spec differs");
    assert_eq!(world.change("other", None, Some(&[])), Vec::<String>::new());
    for reader in ["spec", "status", "whole"] {
        world.pass(reader, []);
    }
    assert!(world.interests.state.lock().kinds.is_empty(), "nothing is left behind");
}

#[test]
fn what_is_news_to_nobody_wakes_later() {
    let world = World::new();
    let Interest::Object { source, kind, namespace, name, .. } = world.object("m") else { unreachable!() };
    world.pass("any", [world.object("m"), world.listing(Some("ns"), "")]);
    world.pass("spec", [Interest::Object { source, kind, namespace, name, news: News::In(&["/spec"]) }]);
    world.interests.subscribe(world.controller, &Source::Management, &world.machine);
    let here: Option<&[Label]> = Some(&[]);
    type Row<'a> = (&'a str, Option<&'a [Label]>, fn(News) -> bool, &'a [&'a str]);
    let rows: [Row<'_>; 4] = [
        ("all of it", here, |_| true, &["any", "m", "spec"]),
        ("the status", here, |news| news == News::Any, &["any", "m", "spec later"]),
        ("a message", here, |_| false, &["any later", "m later", "spec later"]),
        ("it is gone", None, |_| false, &["any", "m", "spec"]),
    ];
    for (row, new, differs, woken) in rows {
        assert_eq!(world.change_in("m", here, new, differs), woken, "{row}");
    }
}

#[test]
fn owners_tokens_and_subscribers_are_woken_too() {
    let world = World::new();
    let selector = Selector::owned_by("u1");
    let (source, kind) = (Source::Management, world.machine.clone());
    let token = Token::new("connection:ns/c");
    let news = News::Any;
    let owned = Interest::Listing { source: source.clone(), kind: kind.clone(), namespace: None, selector, news };
    world.pass("owner", [owned, Interest::Token(token.clone())]);
    let owners = [Arc::from("u1")];
    let marks = Marks { labels: &[], owners: &owners };
    let gone = Change { namespace: "ns", name: "m", version: 7, old: Some(marks), new: None };
    world.interests.changed(&source, &kind, &gone, |_| false);
    assert_eq!(world.sink.take(), ["owner"]);
    assert!(world.interests.has_readers(&token));
    world.interests.fire(&token);
    assert_eq!(world.sink.take(), ["owner"]);
    world.interests.subscribe(world.controller, &source, &kind);
    assert_eq!(world.change("m", None, Some(&[])), ["m"]);
    world.interests.unregister(world.controller);
    assert_eq!(world.change("m", None, Some(&[])), Vec::<String>::new());
    assert!(!world.interests.has_readers(&token));
}

/// 5,000 clusters in one namespace, each listing its own machines, twice as one of several labels that all share.
#[test]
fn the_cost_of_a_change_does_not_grow_with_the_number_of_clusters() {
    let world = World::new();
    for cluster in 0..5_000 {
        let selectors = [format!("control-plane=,cluster={cluster}"), format!("cluster={cluster},control-plane=")];
        world.pass(&cluster.to_string(), selectors.iter().map(|selector| world.listing(Some("ns"), selector)));
    }
    let started = Instant::now();
    for cluster in 0..5_000 {
        let own = labels(&format!("cluster={cluster},control-plane="));
        assert_eq!(world.change("m", Some(&own), Some(&own)), [cluster.to_string()]);
    }
    // 5,000 changes over 10,000 listings: 50 million matches if each were looked at, which takes minutes unoptimised.
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
    let state = world.interests.state.lock();
    let largest = state.kinds.values().flat_map(|readers| readers.listings.values()).map(HashMap::len).max();
    assert!(largest.unwrap() <= 4, "a shared label anchors {largest:?} listings");
}

/// What [`Wake::changed`] is told, by which a queue knows a key's own work.
#[derive(Default)]
struct Versions(Mutex<Vec<(String, u64)>>);

impl Wake for Versions {
    fn wake(&self, key: &Key, _: Urgency) {
        self.0.lock().push((key.name.clone(), 0));
    }

    fn changed(&self, key: &Key, version: u64, _: Urgency) {
        self.0.lock().push((key.name.clone(), version));
    }
}

#[test]
fn readers_are_told_the_version_of_what_they_read() {
    let world = World::new();
    let versions = Arc::new(Versions::default());
    let controller = world.interests.register(versions.clone());
    let token = Token::new("t");
    let reading = world.interests.begin(controller, &world.key("r"));
    world.interests.note(reading, world.object("m"));
    world.interests.note(reading, Interest::Token(token.clone()));
    world.interests.finish(reading);
    let none = Marks { labels: &[], owners: &[] };
    let change = Change { namespace: "ns", name: "m", version: 7, old: None, new: Some(none) };
    world.interests.changed(&Source::Management, &world.machine, &change, |_| true);
    world.interests.fire(&token);
    assert_eq!(*versions.0.lock(), [("r".to_owned(), 7), ("r".to_owned(), 0)]);
}
