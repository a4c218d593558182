//! What a service may answer instead of what it should, and a host behind which one service does.

use std::cell::Cell;
use std::rc::Rc;

use capwasm_sdk::test::TestHost;
use capwasm_sdk::{HttpRequest, HttpResponse, Problem, Refusal, Refused};
use serde_json::{Value, json};

use super::{ORIGIN, OpenStack};

/// An answer to the request with this number.
type Act = fn(&HttpRequest, usize) -> Result<HttpResponse, Refused>;

/// One way to misbehave.
pub struct Behaviour {
    /// For messages of tests.
    pub name: &'static str,
    act: Act,
    /// A reason, or words of the message.
    told: &'static str,
    /// Requests of a pass to the service, more than those that it makes anyway.
    requests: usize,
}

/// All of them. Where a list is asked for, it has one item that could be any.
pub fn behaviours() -> Vec<Behaviour> {
    let row = |name, told, requests, act: Act| Behaviour { name, act, told, requests };
    vec![
        row("pages without end", "more than 100 pages", 101, |request, count| {
            list(request, &[item()], &format!("{ORIGIN}/x?marker={count}"))
        }),
        row("empty pages without end", "more than 100 pages", 101, |request, count| {
            list(request, &[], &format!("/x?marker={count}"))
        }),
        row("pages of another origin", "more than 100 pages", 101, |request, count| {
            list(request, &[item()], &format!("https://elsewhere.test/v2/things?marker={count}"))
        }),
        row("a page that leads to itself", "leads back", 3, |request, _| list(request, &[item()], "/x?marker=a")),
        row("pages in a circle", "leads back", 4, |request, _| {
            let next = if request.url.contains("marker=a") { "b" } else { "a" };
            list(request, &[item()], &format!("/x?marker={next}"))
        }),
        row("a link without end", "too long", 2, |request, _| {
            list(request, &[item()], &format!("/x?marker={}", "x".repeat(1 << 20)))
        }),
        row("pages of megabytes", "AnswerTooLarge", 6, |request, count| {
            let item = json!({"id": "x", "name": "x", "pad": "x".repeat(7 << 20)});
            list(request, &[item], &format!("/x?marker={count}"))
        }),
        row("zeros", "AnswerTooLarge", 1, |request, _| {
            answer(200, format!("{{\"{}\": [0{}]}}", key(request), ",0".repeat((8 << 20) / 2 - 50)))
        }),
        row("a list of texts", "AnswerGarbled", 2, |request, _| list(request, &[json!("x".repeat(1 << 20))], "")),
        row("ids that are numbers", "AnswerGarbled", 2, |request, _| list(request, &[json!({"id": 7, "name": 7})], "")),
        row("a list that is none", "AnswerGarbled", 2, |request, _| {
            answer(200, json!({key(request): "x"}).to_string())
        }),
        row("depth", "AnswerGarbled", 2, |_, _| answer(200, "[".repeat(8 << 20))),
        row("no JSON", "AnswerGarbled", 2, |_, _| answer(200, "<html>".to_owned())),
        row("nothing", "AnswerGarbled", 2, |_, _| answer(200, String::new())),
        row("a redirect", "UnexpectedRedirect", 1, |_, _| {
            let headers = vec![("location".to_owned(), "https://elsewhere.test/".to_owned())];
            Ok(HttpResponse { status: 302, headers, body: Vec::new() })
        }),
        row("an error of megabytes", "500", 1, |_, _| answer(500, "<p>x</p> ".repeat(800_000))),
        row("an error of JSON", "500", 1, |_, _| answer(500, json!({"message": "x".repeat(7 << 20)}).to_string())),
        row("a token that is never good", "401", 2, |_, _| answer(401, "{}".to_owned())),
        row("more than may be", "larger than", 1, |_, _| {
            let message = "the response of cloud.test is larger than 8388608 bytes (limits.responseBytes)";
            Err(Refused::new(Refusal::Limit, "ResponseTooLarge", message))
        }),
        row("no answer", "did not answer", 1, |_, _| {
            Err(Refused::new(Refusal::Limit, "RequestTimeout", "cloud.test did not answer within 30s"))
        }),
    ]
}

fn item() -> Value {
    json!({"id": "x", "name": "x"})
}

fn answer(status: u16, body: String) -> Result<HttpResponse, Refused> {
    Ok(HttpResponse { status, headers: Vec::new(), body: body.into_bytes() })
}

/// What the list is called that is asked for: `/security-groups?…`, `/servers/detail`.
fn key(request: &HttpRequest) -> String {
    let path = request.url.split('?').next().unwrap_or_default().trim_end_matches("/detail");
    let last = path.rsplit('/').next().unwrap_or_default();
    last.trim_start_matches("os-").replace('-', "_")
}

fn list(request: &HttpRequest, items: &[Value], next: &str) -> Result<HttpResponse, Refused> {
    let key = key(request);
    let links = format!("{key}_links");
    answer(200, json!({key: items, links: [{"rel": "next", "href": next}], "next": next}).to_string())
}

/// Requests that were answered so.
pub type Count = Rc<Cell<usize>>;

impl Behaviour {
    /// `host` with this cloud, in which whatever is below the path `root` does this.
    pub fn behind(&self, host: TestHost, cloud: &OpenStack, root: &str) -> (TestHost, Count) {
        let (cloud, act, root) = (cloud.clone(), self.act, format!("{ORIGIN}{root}"));
        let count = Count::default();
        let counted = count.clone();
        let host = host.http(move |request| {
            if !request.url.starts_with(&root) {
                return cloud.handle(request);
            }
            counted.set(counted.get() + 1);
            act(request, counted.get())
        });
        (host, count)
    }

    /// Checks what a pass came to in which the service was asked so often.
    pub fn check(&self, service: &str, problem: &Problem, requests: usize) {
        let (name, told) = (self.name, format!("{}: {}", problem.reason, problem.message));
        let beginning: String = told.chars().take(3_000).collect();
        assert!(told.contains(self.told), "{service}, {name}: {beginning}");
        assert!(told.contains(service) && told.contains("cloud.test"), "{service}, {name}: {beginning}");
        assert!(told.len() < 3_000, "{service}, {name}: a message of {} bytes", told.len());
        assert!((1..=self.requests).contains(&requests), "{service}, {name}: {requests} requests");
    }
}
