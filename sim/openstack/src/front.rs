//! The services over HTTP: faults, tokens, the journal, and the way to each service.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::net::TcpListener;

use super::answer::{Answer, Service};
use super::cloud::Cloud;
use super::control;
use super::journal::{Call, Journal};
use super::pace::{Pace, shown_in};
use super::request::Request;
use super::{cinder, glance, keystone, neutron, nova, octavia};
use capwasm_sim_service::faults::{CallFault, Faults, Verdict};

/// Largest request body: images of tests are small.
const MAX_BODY: usize = 64 << 20;

/// What every connection of the HTTP server shares.
#[derive(Clone)]
pub(super) struct Front {
    pub cloud: Arc<Cloud>,
    pub faults: Faults,
    pub journal: Journal,
}

/// Accepts connections until the cloud ends.
pub(super) async fn serve(front: Front, listener: TcpListener) {
    loop {
        let (stream, _) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "unable to accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "unable to set TCP_NODELAY");
        }
        let (cloud, front) = (Arc::clone(&front.cloud), front.clone());
        cloud.spawn(async move {
            let service = hyper::service::service_fn(move |request| answer(front.clone(), request));
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                // Clients keep idle connections.
                .header_read_timeout(None)
                .serve_connection(TokioIo::new(stream), service);
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the simulated OpenStack broke");
            }
        });
    }
}

/// A connection that ends without an answer, as when a service dies over it.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed on request")]
struct Closed;

async fn answer(front: Front, request: http::Request<Incoming>) -> Result<Response<Full<Bytes>>, Closed> {
    let head = request.method() == Method::HEAD;
    let (parts, body) = request.into_parts();
    let Ok(body) = Limited::new(body, MAX_BODY).collect().await else {
        let answer = Answer::json(413, &json!({ "message": "the body is too large or broke off" }));
        return Ok(response(answer, head).map(Full::new));
    };
    let request = http::Request::from_parts(parts, body.to_bytes());
    let fault = front.judge(&request);
    let delay = fault.as_ref().map_or(Duration::ZERO, |fault| Duration::from_millis(fault.delay_ms));
    // What is only late takes effect late, too.
    let is_late = fault.as_ref().is_some_and(CallFault::is_late);
    if is_late {
        tokio::time::sleep(delay).await;
    }
    let answer = front.settle(&request, fault);
    if !is_late {
        tokio::time::sleep(delay).await;
    }
    answer.map(|answer| response(answer, head).map(Full::new)).ok_or(Closed)
}

impl Front {
    /// How a call goes wrong, if it does.
    pub fn judge(&self, request: &http::Request<Bytes>) -> Option<CallFault> {
        let path = request.uri().path();
        Service::of(path)?;
        self.faults.judge(request.method().as_str(), path).map(|Verdict(fault)| fault)
    }

    /// Answers a call; `None` is a connection that is closed without an answer.
    pub fn settle(&self, request: &http::Request<Bytes>, fault: Option<CallFault>) -> Option<Answer> {
        let (method, path) = (request.method().as_str(), request.uri().path());
        let query = request.uri().query().unwrap_or_default();
        let (headers, body) = (request.headers(), request.body());
        let read = |prefix: &str| Request::new(method, path, prefix, query, headers.clone(), body.clone());
        if path.starts_with("/capwasm/") {
            return Some(control::answer(self, &read("/capwasm")));
        }
        let Some((service, prefix)) = Service::of(path) else {
            return Some(Answer::json(404, &json!({ "message": "there is no service at this path" })));
        };
        let request = read(prefix);
        let accept = request.header("accept").unwrap_or_default();
        let note = |status: u16| {
            let (method, path, query) = (method.to_owned(), path.to_owned(), query.to_owned());
            self.journal.add(Call { method, path, query, status });
        };
        let Some(fault) = fault.filter(|fault| !fault.is_late()) else {
            let answer = perform(&self.cloud, service, &request).accepted(accept);
            note(answer.status);
            return Some(answer);
        };
        if fault.takes_effect {
            // What it came to is what the caller does not learn.
            let _ = perform(&self.cloud, service, &request);
        }
        note(fault.status);
        if fault.status == 0 {
            return None;
        }
        if let Some(body) = fault.body {
            return Some(Answer { body: body.into(), ..Answer::json(fault.status, &json!(null)) });
        }
        let mut answer = Answer::simulated(service, fault.status, &fault.message);
        if let Some(seconds) = fault.retry_after {
            answer.headers.retain(|(name, _)| *name != "retry-after");
            answer = answer.with("retry-after", seconds.to_string());
        }
        Some(answer.accepted(accept))
    }
}

/// Has a service answer, when the caller may ask it.
fn perform(cloud: &Cloud, service: Service, request: &Request) -> Answer {
    if service == Service::Keystone {
        return keystone::answer(cloud, request);
    }
    let token = request.header("x-auth-token").unwrap_or_default();
    let scope = cloud.look(|state| state.identity.scope(token));
    let scope = match scope {
        Some(scope) => scope,
        // What versions there are is nobody's secret.
        None if request.segments.len() <= 1 && request.method == "GET" => Default::default(),
        None => return Answer::unauthorized(service, &format!("{}/identity", cloud.base)),
    };
    let answer = match service {
        Service::Keystone => keystone::answer(cloud, request),
        Service::Nova => nova::answer(cloud, &scope, request),
        Service::Glance => glance::answer(cloud, &scope, request),
        Service::Neutron => neutron::answer(cloud, &scope, request),
        Service::Octavia => octavia::answer(cloud, &scope, request),
        Service::Cinder => cinder::answer(cloud, &scope, request),
    };
    if request.method != "GET" {
        cloud.changed.notify_one();
    }
    if let Pace::Looks(looks) = &cloud.pace {
        let shown = if request.method == "GET" { shown_in(&answer.body) } else { Vec::new() };
        looks.seen(cloud, &shown);
    }
    answer
}

/// An answer as it goes over the wire.
pub(super) fn response(answer: Answer, head: bool) -> Response<Bytes> {
    let body = if head { Bytes::new() } else { answer.body };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if !answer.content_type.is_empty() {
        headers.insert(header::CONTENT_TYPE, http::HeaderValue::from_static(answer.content_type));
    }
    for (name, value) in answer.headers {
        if let Ok(value) = value.parse() {
            headers.insert(name, value);
        }
    }
    let id = format!("req-{}", super::cloud::new_id());
    if let Ok(id) = id.parse() {
        headers.insert("x-openstack-request-id", id);
    }
    response
}
