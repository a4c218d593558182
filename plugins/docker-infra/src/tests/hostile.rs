//! An engine that answers some requests as none should: a pass ends after a bounded number of requests, with few words that
//! name the engine.

use std::cell::Cell;
use std::rc::Rc;

use capwasm_sdk::test::{deprovision_machine, provision_machine};
use capwasm_sdk::{HttpRequest, HttpResponse, Refusal, Refused};
use serde_json::{Value, json};

use super::machine::{pass, world_of};
use super::{MOST_PASSES, World};
use crate::Docker;
use crate::tar::{Attributes, Writer};

/// An answer to the request with this number; the engine's own where there is none.
type Act = fn(&HttpRequest, usize) -> Option<Result<HttpResponse, Refused>>;

/// As many as the host lets a call make.
const MOST_REQUESTS: usize = 256;
const MEGABYTES: usize = 7 << 20;

fn answer(status: u16, body: impl Into<Vec<u8>>) -> Option<Result<HttpResponse, Refused>> {
    Some(Ok(HttpResponse { status, headers: Vec::new(), body: body.into() }))
}

/// A list of as many numbers as an answer has room for; each takes ten times as much memory.
fn zeros() -> String {
    format!("[0{}]", ",0".repeat(MEGABYTES / 2))
}

fn long() -> String {
    "x".repeat(MEGABYTES)
}

/// The archive of `/capwasm/steps` in which these steps ended with this code.
fn steps(ended: usize, code: &str) -> Vec<u8> {
    let mut archive = Writer::default();
    archive.directory("steps", Attributes::root(0o755));
    for step in 0..ended {
        archive.directory(&format!("steps/{step}.started"), Attributes::root(0o755));
        archive.file(&format!("steps/{step}.exit"), Attributes::root(0o644), code.as_bytes());
    }
    archive.finish().unwrap()
}

/// A world whose engine does this, and how often it was asked in all.
fn hostile(world: World, act: Act) -> (World, Rc<Cell<usize>>) {
    let World { engine, host, object } = world;
    let (behind, count, hits) = (Rc::clone(&engine), Rc::<Cell<usize>>::default(), Cell::new(0));
    let counted = Rc::clone(&count);
    let host = host.http(move |request| {
        counted.set(counted.get() + 1);
        if counted.get() > MOST_REQUESTS {
            return Err(Refused::new(Refusal::Limit, "Requests", "this call has made all requests that it may make"));
        }
        let done = act(request, hits.get());
        hits.set(hits.get() + usize::from(done.is_some()));
        done.unwrap_or_else(|| behind.borrow_mut().handle(request))
    });
    (World { engine, host, object }, count)
}

#[test]
fn a_pass_ends_after_a_bounded_number_of_requests_and_names_the_engine() {
    fn of(request: &HttpRequest, method: &str, part: &str) -> bool {
        request.method == method && request.url.contains(part)
    }
    let rows: [(&str, Act, &str); 14] = [
        (
            "a container of zeros",
            |r, _| of(r, "GET", "/containers/quick").then(|| answer(200, zeros()))?,
            "EngineGarbled",
        ),
        (
            "an id of megabytes",
            |r, _| of(r, "GET", "/containers/quick").then(|| answer(200, json!({"Id": long()}).to_string()))?,
            "EngineGarbled",
        ),
        (
            "a state of megabytes",
            |r, _| {
                let body = || json!({"Id": "c", "State": {"Status": long()}}).to_string();
                of(r, "GET", "/containers/quick").then(|| answer(200, body()))?
            },
            "EngineGarbled",
        ),
        (
            "execs without end",
            |r, _| {
                let body =
                    || json!({"Id": "c", "State": {"Status": "running"}, "ExecIDs": vec!["e"; 100_000]}).to_string();
                of(r, "GET", "/containers/quick").then(|| answer(200, body()))?
            },
            "EngineGarbled",
        ),
        (
            "depth",
            |r, _| of(r, "GET", "/containers/quick").then(|| answer(200, "[".repeat(MEGABYTES)))?,
            "EngineGarbled",
        ),
        ("an image of zeros", |r, _| of(r, "GET", "/images/").then(|| answer(200, zeros()))?, "EngineGarbled"),
        (
            "a pull that fails with megabytes",
            |r, _| of(r, "POST", "/images/create").then(|| answer(200, json!({"error": long()}).to_string()))?,
            "EngineRejected",
        ),
        ("a pull of zeros", |r, _| of(r, "POST", "/images/create").then(|| answer(200, zeros()))?, "EngineRejected"),
        (
            "a refusal of megabytes",
            |r, _| of(r, "POST", "/containers/create").then(|| answer(400, json!({"message": long()}).to_string()))?,
            "EngineRejected",
        ),
        ("a redirect", |r, _| of(r, "GET", "/containers/quick").then(|| answer(302, ""))?, "302"),
        (
            "an exec of megabytes",
            |r, _| of(r, "POST", "/exec").then(|| answer(201, json!({"Id": long()}).to_string()))?,
            "EngineGarbled",
        ),
        ("no archive", |r, _| of(r, "GET", "/archive").then(|| answer(200, long()))?, "EngineGarbled"),
        (
            "a code of megabytes",
            |r, _| of(r, "GET", "/archive").then(|| answer(200, steps(1, &"7".repeat(MEGABYTES))))?,
            "BootstrapFailed",
        ),
        (
            "more than may be",
            |r, _| {
                let message = "the response of docker.endpoint is larger than 8388608 bytes (limits.responseBytes)";
                let refused = || Some(Err(Refused::new(Refusal::Limit, "ResponseTooLarge", message)));
                of(r, "GET", "/containers/quick").then(refused)?
            },
            "EngineUnreachable",
        ),
    ];
    for (name, act, told) in rows {
        let (mut world, count) = hostile(world_of(false), act);
        let problem = (0..MOST_PASSES).find_map(|_| {
            count.set(0);
            pass(&mut world)?.err()
        });
        let problem = problem.unwrap_or_else(|| panic!("{name}: no problem"));
        let said = format!("{}: {}", problem.reason, problem.message);
        let beginning: String = said.chars().take(2_000).collect();
        assert!(said.contains(told), "{name}: {beginning}");
        let is_named = ["the engine", "docker.endpoint"].iter().any(|engine| said.contains(engine));
        assert!(is_named || told == "BootstrapFailed", "{name}: {beginning}");
        assert!(said.len() < 2_000 && world.object.to_string().len() < 10_000, "{name}: {} bytes", said.len());
        assert!(count.get() < 40, "{name}: {} requests", count.get());
    }
}

#[test]
fn a_log_without_end_is_told_by_its_last_lines() {
    let act: Act = |request, _| request.url.contains("/logs").then(|| answer(200, vec![0xff; MEGABYTES]))?;
    let (mut world, _) = hostile(world_of(false), act);
    pass(&mut world);
    world.engine.borrow_mut().containers.values_mut().for_each(|container| container.state = "exited");
    let problem = pass(&mut world).unwrap().unwrap_err();
    assert_eq!((problem.reason.as_str(), problem.message.chars().count() < 2_000), ("ContainerExited", true));
}

/// Step 0 has ended, nothing was begun, step 0 has ended …
#[test]
fn an_engine_that_shows_another_state_at_each_look_does_not_keep_a_pass_going() {
    let act: Act = |request, count| {
        let is_look = request.method == "GET" && request.url.contains("/archive");
        is_look.then(|| answer(200, steps(count % 2, "0")))?
    };
    let (mut world, count) = hostile(world_of(false), act);
    for _ in 0..10 {
        count.set(0);
        let (result, _) = world.pass(|host, object| provision_machine::<Docker>(host, object)).unwrap();
        assert!(result.is_ok() && count.get() < 40, "{} requests: {result:?}", count.get());
    }
}

#[test]
fn containers_without_end_are_removed_some_at_a_time_and_not_read_beyond_a_limit() {
    fn found(request: &HttpRequest, count: usize) -> Option<Result<HttpResponse, Refused>> {
        let found = || (0..count).map(|id| json!({"Id": id.to_string()})).collect::<Value>().to_string();
        request.url.contains("/containers/json").then(|| answer(200, found()))?
    }
    let rows: [(Act, Result<bool, &str>); 2] =
        [(|request, _| found(request, 1_000), Ok(false)), (|request, _| found(request, 100_000), Err("EngineGarbled"))];
    for (act, expected) in rows {
        let (mut world, count) = hostile(world_of(false), act);
        let (gone, _) = world.pass(|host, object| deprovision_machine::<Docker>(host, object)).unwrap();
        assert_eq!(gone.as_ref().map_err(|problem| problem.reason.as_str()), expected.as_ref().map_err(|told| *told));
        assert!(count.get() < 40, "{} requests", count.get());
        assert_eq!(world.object["status"]["conditions"][0]["reason"], "Deleting", "{}", world.object["status"]);
    }
}
