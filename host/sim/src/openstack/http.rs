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
use super::request::Request;
use super::{cinder, glance, keystone, neutron, nova, octavia};
use crate::faults::{Faults, Verdict};

/// Largest request body: images of tests are small.
const MAX_BODY: usize = 64 << 20;

/// What a connection needs.
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
        return Ok(response(Answer::json(413, &json!({ "message": "the body is too large or broke off" })), head));
    };
    let (method, path) = (parts.method.as_str(), parts.uri.path());
    let query = parts.uri.query().unwrap_or_default();
    let body = body.to_bytes();
    let read = |prefix: &str| Request::new(method, path, prefix, query, parts.headers.clone(), body.clone());
    if path.starts_with("/capwasm/") {
        let request = read("/capwasm");
        return Ok(response(control::answer(&front, &request), head));
    }
    let Some((service, prefix)) = Service::of(path) else {
        return Ok(response(Answer::json(404, &json!({ "message": "there is no service at this path" })), head));
    };
    let request = read(prefix);
    let accept = request.header("accept").unwrap_or_default();
    let note = |status: u16| {
        front.journal.add(Call { method: method.to_owned(), path: path.to_owned(), query: query.to_owned(), status });
    };
    let Some(Verdict(fault)) = front.faults.judge(method, path) else {
        let answer = perform(&front.cloud, service, &request).accepted(accept);
        note(answer.status);
        return Ok(response(answer, head));
    };
    let delay = Duration::from_millis(fault.delay_ms);
    if fault.status == 200 {
        // Only late.
        tokio::time::sleep(delay).await;
        let answer = perform(&front.cloud, service, &request).accepted(accept);
        note(answer.status);
        return Ok(response(answer, head));
    }
    if fault.takes_effect {
        // What it came to is what the caller does not learn.
        let _ = perform(&front.cloud, service, &request);
    }
    note(fault.status);
    tokio::time::sleep(delay).await;
    if fault.status == 0 {
        return Err(Closed);
    }
    let mut answer = Answer::simulated(service, fault.status, &fault.message);
    if let Some(seconds) = fault.retry_after {
        answer.headers.retain(|(name, _)| *name != "retry-after");
        answer = answer.with("retry-after", seconds.to_string());
    }
    Ok(response(answer.accepted(accept), head))
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
        None if request.parts.len() <= 1 && request.method == "GET" => Default::default(),
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
    answer
}

fn response(answer: Answer, head: bool) -> Response<Full<Bytes>> {
    let body = if head { Bytes::new() } else { answer.body };
    let mut response = Response::new(Full::new(body));
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
