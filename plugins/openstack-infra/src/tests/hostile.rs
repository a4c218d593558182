//! A cloud in which one service answers as none should.

use capwasm_sdk::{HttpRequest, HttpResponse};

use super::server::{everything, world_of};
use super::*;
use crate::testing::ORIGIN;
use crate::testing::hostile::behaviours;

#[test]
fn a_pass_ends_after_a_bounded_number_of_requests_and_names_the_service_and_its_host() {
    let services = [("Nova", "/compute/"), ("Neutron", "/networking/"), ("Glance", "/image/"), ("Cinder", "/volume/")];
    for behaviour in behaviours() {
        for (service, root) in services {
            let mut world = world_of(everything());
            let (host, count) = behaviour.behind(world.host, &world.cloud, root);
            world.host = host;
            let told = (0..MOST_PASSES).find_map(|_| {
                let result = world.pass(|host, object| reconcile_object::<Provider>(host, object));
                (count.get() > 0).then_some(result)
            });
            let problem =
                told.flatten().and_then(Result::err).unwrap_or_else(|| panic!("{service}, {}", behaviour.name));
            behaviour.check(service, &problem, count.get());
            assert!(world.host.requests().iter().all(|request| request.url.starts_with(ORIGIN)), "{service}");
        }
    }
}

/// A token of Keystone with this in its body, that was given out a moment ago.
fn token(header: String, body: &Value) -> HttpResponse {
    let mut token =
        json!({"project": {"id": PROJECT}, "issued_at": "2023-11-14T22:13:20Z", "expires_at": "2023-11-14T23:13:20Z"});
    object::merge(&mut token, body);
    let headers = vec![("x-subject-token".to_owned(), header)];
    HttpResponse { status: 201, headers, body: json!({"token": token}).to_string().into_bytes() }
}

fn catalog(count: usize, url: &str) -> Value {
    let endpoint = |at: usize| json!({"interface": "public", "region_id": format!("R{at}"), "url": url});
    json!({"catalog": [{"type": "compute", "endpoints": (0..count).map(endpoint).collect::<Vec<_>>()}]})
}

#[test]
fn a_hostile_keystone_is_asked_twice_at_most_and_named() {
    type Act = fn(&HttpRequest) -> HttpResponse;
    let rows: [(&str, Act, &str); 8] = [
        (
            "a catalog of megabytes",
            |_| token("t".into(), &catalog(60_000, &format!("{ORIGIN}/{}", "x".repeat(60)))),
            "AnswerTooLarge",
        ),
        ("a catalog that is none", |_| token("t".into(), &json!({"catalog": "x"})), "ServiceNotInCatalog"),
        ("no token", |_| HttpResponse { headers: Vec::new(), ..token("t".into(), &json!({})) }, "AnswerGarbled"),
        (
            "tokens that are old at once",
            |_| token("t".into(), &json!({"issued_at": "1999-01-01T00:00:00Z"})),
            "ServiceNotInCatalog",
        ),
        ("depth", |_| HttpResponse { body: b"[".repeat(8 << 20), ..token("t".into(), &json!({})) }, "AnswerGarbled"),
        ("an error of megabytes", |_| answer(503, "x".repeat(7 << 20)), "503"),
        ("a redirect", |_| answer(302, String::new()), "UnexpectedRedirect"),
        ("a refusal", |_| answer(401, String::new()), "401"),
    ];
    for (name, act, told) in rows {
        let world = world_of(json!({}));
        let host = world.host.http(move |request| Ok(act(request)));
        let (result, _) = reconcile_object::<Provider>(&host, &world.object);
        let problem = result.unwrap_err();
        let said = format!("{}: {}", problem.reason, problem.message);
        assert!(said.contains(told) && said.contains("Keystone at https://cloud.test"), "{name}: {said}");
        assert!(said.len() < 3_000, "{name}: {} bytes", said.len());
        assert!(host.requests().len() <= 2, "{name}: {:?}", host.requests().len());
    }
}

fn answer(status: u16, body: String) -> HttpResponse {
    HttpResponse { status, headers: Vec::new(), body: body.into_bytes() }
}
