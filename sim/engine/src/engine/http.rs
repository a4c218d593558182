//! The Docker Engine API over HTTP: from method and path to the engine, and back.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use percent_encoding::percent_decode_str;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use super::containers::frame;
use super::documents::Filters;
use super::execs::Output;
use super::{API_VERSION, Engine, NAME, Refused};
use capwasm_sim_service::faults::{Fault, Verdict};

/// Largest request body: an archive of bootstrap data is a few hundred kilobytes.
const MAX_BODY: usize = 64 << 20;
const RAW_STREAM: &str = "application/vnd.docker.raw-stream";

type Answer = Response<Full<Bytes>>;

/// Serves one connection until it ends.
pub(crate) async fn serve(engine: Arc<Engine>, stream: UnixStream) {
    let service = hyper::service::service_fn(move |request| {
        let engine = Arc::clone(&engine);
        answer(engine, request)
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        // Clients keep idle connections, and only this user can connect at all.
        .header_read_timeout(None)
        .max_buf_size(16 << 10)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection to the engine broke");
    }
}

/// A connection that ends without an answer, as when an engine dies over it.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed on request")]
struct Closed;

async fn answer(engine: Arc<Engine>, request: Request<Incoming>) -> Result<Answer, Closed> {
    let head = request.method() == Method::HEAD;
    let path = plain_path(request.uri().path());
    let verdict =
        if path.starts_with("/capwasm/") { None } else { engine.faults.judge(request.method().as_str(), &path) };
    let outcome = match verdict {
        None => whole(engine, request).await,
        Some(Verdict(fault)) => {
            if fault.takes_effect {
                // What it came to is what the caller does not learn.
                let _ = whole(engine, request).await;
            }
            tokio::time::sleep(Duration::from_millis(fault.delay_ms)).await;
            if fault.status == 0 {
                return Err(Closed);
            }
            let message = if fault.message.is_empty() { "simulated failure" } else { &fault.message };
            match (fault.body, StatusCode::from_u16(fault.status)) {
                (Some(body), Ok(code)) => Ok(content(code, "application/json", body)),
                _ => Err(Refused::new(fault.status, message)),
            }
        }
    };
    let mut response = match outcome {
        Ok(response) => response,
        Err(refused) if refused.status == 304 => status(StatusCode::NOT_MODIFIED),
        Err(refused) => {
            let code = StatusCode::from_u16(refused.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            document(code, &serde_json::json!({ "message": refused.message }))
        }
    };
    let headers = response.headers_mut();
    for (name, value) in [("api-version", API_VERSION), ("docker-experimental", "false"), ("ostype", "linux")] {
        headers.insert(name, http::HeaderValue::from_static(value));
    }
    headers.insert(header::SERVER, http::HeaderValue::from_static(NAME));
    if head {
        *response.body_mut() = Full::default();
    }
    Ok(response)
}

/// A path without its version.
fn plain_path(path: &str) -> String {
    let rest = path.strip_prefix("/v").and_then(|rest| rest.split_once('/'));
    match rest {
        Some((version, rest)) if version.chars().all(|c| c.is_ascii_digit() || c == '.') => format!("/{rest}"),
        _ => path.to_owned(),
    }
}

/// Does what was asked to its end, also when its client goes meanwhile: half a creation would keep a name for ever, half a
/// start a container without its process. Only who waits for a container just stops waiting.
async fn whole(engine: Arc<Engine>, request: Request<Incoming>) -> Result<Answer, Refused> {
    if request.uri().path().ends_with("/wait") {
        return route(engine, request).await;
    }
    let requests = engine.requests.clone();
    requests.spawn(route(engine, request)).await.unwrap_or_else(|error| Err(Refused::internal(error)))
}

fn status(code: StatusCode) -> Answer {
    let mut response = Response::new(Full::default());
    *response.status_mut() = code;
    response
}

fn content(code: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response
}

fn document(code: StatusCode, body: &Value) -> Answer {
    content(code, "application/json", format!("{body}\n"))
}

/// Splits `/v1.41/containers/x` into its segments, refusing versions that are not spoken.
fn path_segments(path: &str) -> Result<Vec<String>, Refused> {
    let decode = |segment: &str| percent_decode_str(segment).decode_utf8_lossy().into_owned();
    let mut segments: Vec<String> = path.split('/').skip(1).map(decode).collect();
    let version = segments.first().and_then(|first| first.strip_prefix('v')).map(|version| version.to_owned());
    let minor =
        version.as_deref().and_then(|version| version.strip_prefix("1.")).and_then(|minor| minor.parse::<u32>().ok());
    if let (Some(version), Some(minor)) = (version, minor) {
        if minor > 41 {
            return Err(Refused::new(
                400,
                format!("client version {version} is too new. Maximum supported API version is {API_VERSION}"),
            ));
        }
        if minor < 12 {
            return Err(Refused::new(
                400,
                format!("client version {version} is too old. Minimum supported API version is 1.12"),
            ));
        }
        segments.remove(0);
    }
    Ok(segments)
}

struct Query(HashMap<String, String>);

impl Query {
    fn parse(text: Option<&str>) -> Query {
        Query(form_urlencoded::parse(text.unwrap_or_default().as_bytes()).into_owned().collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn is_set(&self, name: &str) -> bool {
        self.get(name)
            .is_some_and(|value| !matches!(value.to_ascii_lowercase().as_str(), "0" | "false" | "no" | "none"))
    }

    fn filters(&self) -> Result<Filters, Refused> {
        Filters::parse(self.get("filters").unwrap_or_default())
    }

    fn required(&self, name: &str) -> Result<&str, Refused> {
        self.get(name).ok_or_else(|| Refused::new(400, format!("bad parameter: '{name}' cannot be empty")))
    }
}

async fn body(request: Request<Incoming>) -> Result<Bytes, Refused> {
    let collected = Limited::new(request.into_body(), MAX_BODY).collect().await;
    collected
        .map(|body| body.to_bytes())
        .map_err(|error| Refused::new(400, format!("unable to read the request body: {error}")))
}

async fn json_body(request: Request<Incoming>) -> Result<Value, Refused> {
    let bytes = body(request).await?;
    if bytes.is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let value: Value =
        serde_json::from_slice(&bytes).map_err(|error| Refused::new(400, format!("invalid JSON: {error}")))?;
    if value.is_object() { Ok(value) } else { Err(Refused::new(400, "invalid JSON: an object is expected")) }
}

async fn route(engine: Arc<Engine>, request: Request<Incoming>) -> Result<Answer, Refused> {
    const OK: StatusCode = StatusCode::OK;
    let (method, query) = (request.method().clone(), Query::parse(request.uri().query()));
    let segments = path_segments(request.uri().path())?;
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let no_content = || status(StatusCode::NO_CONTENT);
    Ok(match (method.as_str(), segments.as_slice()) {
        ("GET" | "HEAD", ["_ping"]) => content(OK, "text/plain; charset=utf-8", "OK"),
        ("GET", ["version"]) => document(OK, &engine.version()),
        ("GET", ["info"]) => document(OK, &engine.info()),

        ("GET", ["images", "json"]) => document(OK, &engine.list_images()),
        ("POST", ["images", "create"]) => match query.get("fromImage") {
            Some(image) => content(OK, "application/json", engine.pull(image, query.get("tag")).await?),
            None => return Err(Refused::new(400, format!("the {NAME} has no real images and imports none"))),
        },
        ("GET", ["images", name @ .., "json"]) => document(OK, &engine.inspect_image(&name.join("/"))?),
        ("GET", ["images", name @ .., "get"]) => {
            content(OK, "application/x-tar", engine.export_image(&name.join("/"))?)
        }
        ("DELETE", ["images", name @ ..]) => document(OK, &engine.remove_image(&name.join("/")).await?),

        ("GET", ["networks"]) => document(OK, &engine.list_networks(&query.filters()?)),
        ("POST", ["networks", "create"]) => {
            document(StatusCode::CREATED, &engine.create_network(json_body(request).await?).await?)
        }
        ("GET", ["networks", name]) => document(OK, &engine.inspect_network(name)?),
        ("DELETE", ["networks", name]) => {
            engine.remove_network(name).await?;
            no_content()
        }

        ("GET", ["volumes"]) => document(OK, &engine.list_volumes(&query.filters()?)),
        ("POST", ["volumes", "create"]) => {
            document(StatusCode::CREATED, &engine.create_volume(json_body(request).await?).await?)
        }
        ("GET", ["volumes", name]) => document(OK, &engine.inspect_volume(name)?),
        ("DELETE", ["volumes", name]) => {
            engine.remove_volume(name, query.is_set("force")).await?;
            no_content()
        }

        ("GET", ["capwasm", "faults"]) => document(OK, &serde_json::json!(engine.faults.list())),
        ("POST", ["capwasm", "faults"]) => {
            let fault: Fault = serde_json::from_value(json_body(request).await?)
                .map_err(|error| Refused::new(400, format!("this is no fault: {error}")))?;
            document(StatusCode::CREATED, &serde_json::json!({ "id": engine.faults.inject(fault) }))
        }
        ("DELETE", ["capwasm", "faults"]) => {
            engine.faults.lift_all();
            no_content()
        }
        ("DELETE", ["capwasm", "faults", id]) => {
            if !engine.faults.lift(id) {
                return Err(Refused::new(404, format!("there is no fault {id}")));
            }
            no_content()
        }

        ("GET", ["containers", "json"]) => {
            document(OK, &engine.list_containers(query.is_set("all"), &query.filters()?))
        }
        ("POST", ["containers", "create"]) => {
            let config = json_body(request).await?;
            document(StatusCode::CREATED, &engine.create_container(query.get("name"), config).await?)
        }
        ("GET", ["containers", name, "json"]) => document(OK, &engine.inspect_container(name)?),
        ("POST", ["containers", name, "start"]) => {
            engine.start_container(name).await?;
            no_content()
        }
        ("POST", ["containers", name, "stop"]) => {
            engine.stop_container(name, 137).await?;
            no_content()
        }
        ("POST", ["containers", name, "restart"]) => {
            match engine.stop_container(name, 137).await {
                Err(refused) if refused.status != 304 => return Err(refused),
                _ => engine.start_container(name).await?,
            }
            no_content()
        }
        ("POST", ["containers", name, "kill"]) => {
            engine.kill_container(name, query.get("signal").unwrap_or_default()).await?;
            no_content()
        }
        ("POST", ["containers", name, "wait"]) => document(OK, &engine.wait_container(name).await?),
        ("DELETE", ["containers", name]) => {
            engine.remove_container(name, query.is_set("force")).await?;
            no_content()
        }
        ("GET", ["containers", name, "logs"]) => {
            let tail = query.get("tail").and_then(|tail| tail.parse().ok());
            content(OK, RAW_STREAM, engine.logs(name, tail)?)
        }
        ("PUT", ["containers", name, "archive"]) => {
            let path = query.required("path")?;
            let archive = body(request).await?;
            engine.put_archive(name, path, archive).await?;
            status(OK)
        }
        ("GET" | "HEAD", ["containers", name, "archive"]) => {
            let (stat, archive) = engine.get_archive(name, query.required("path")?, method == Method::GET)?;
            let mut response = content(OK, "application/x-tar", archive);
            let encoded = base64::engine::general_purpose::STANDARD.encode(stat.to_string());
            let value = encoded.parse().map_err(Refused::internal)?;
            response.headers_mut().insert("x-docker-container-path-stat", value);
            response
        }

        ("POST", ["containers", name, "exec"]) => {
            document(StatusCode::CREATED, &engine.create_exec(name, json_body(request).await?).await?)
        }
        ("GET", ["exec", id, "json"]) => document(OK, &engine.inspect_exec(id)?),
        ("POST", ["exec", id, "resize"]) => {
            engine.exec(id)?;
            status(OK)
        }
        ("POST", ["exec", id, "start"]) => start_exec(&engine, id, request).await?,
        _ => return Err(Refused::new(404, "page not found")),
    })
}

async fn start_exec(engine: &Arc<Engine>, id: &str, mut request: Request<Incoming>) -> Result<Answer, Refused> {
    let upgrade = request.headers().contains_key(header::UPGRADE).then(|| hyper::upgrade::on(&mut request));
    let options = json_body(request).await?;
    let tty = engine.exec(id)?.record.lock().config["Tty"].as_bool().unwrap_or(false);
    let running = engine.start_exec(id).await?;
    if options["Detach"].as_bool().unwrap_or(false) {
        return Ok(status(StatusCode::OK));
    }
    let frames = move |output: Output| {
        if tty { [output.out, output.error].concat() } else { framed(&output) }
    };
    let Some(upgrade) = upgrade else {
        let output = running.await.map_err(Refused::internal)?;
        return Ok(content(StatusCode::OK, RAW_STREAM, frames(output)));
    };
    tokio::spawn(async move {
        let (Ok(output), Ok(upgraded)) = (running.await, upgrade.await) else { return };
        let mut stream = TokioIo::new(upgraded);
        // Whoever asked may have gone.
        let _ = stream.write_all(&frames(output)).await;
        let _ = stream.shutdown().await;
    });
    let mut response = content(StatusCode::SWITCHING_PROTOCOLS, RAW_STREAM, Bytes::new());
    response.headers_mut().insert(header::CONNECTION, http::HeaderValue::from_static("Upgrade"));
    response.headers_mut().insert(header::UPGRADE, http::HeaderValue::from_static("tcp"));
    Ok(response)
}

fn framed(output: &Output) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (stream, text) in [(1, &output.out), (2, &output.error)] {
        if !text.is_empty() {
            bytes.extend(frame(stream, text));
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn versions_in_paths_are_dropped_or_refused() {
        assert_eq!(path_segments("/v1.41/containers/a%2Fb/json").unwrap(), ["containers", "a/b", "json"]);
        assert_eq!(path_segments("/_ping").unwrap(), ["_ping"]);
        assert_eq!(path_segments("/v1.45/info").unwrap_err().status, 400);
        assert_eq!(path_segments("/v1.2/info").unwrap_err().status, 400);
    }

    #[test]
    fn queries_are_decoded() {
        let query = Query::parse(Some("all=1&path=%2Fa%20b&force=false&filters="));
        assert!(query.is_set("all") && !query.is_set("force") && !query.is_set("missing"));
        assert_eq!(query.get("path"), Some("/a b"));
        assert_eq!(query.get("filters"), None);
    }
}
