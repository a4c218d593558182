//! Answers, and how each service says that something went wrong.

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

/// The services, as the first part of the path has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    Keystone,
    Nova,
    Glance,
    Neutron,
    Octavia,
    Cinder,
}

impl Service {
    /// All of them with their part of the path.
    pub const ALL: [(Service, &'static str); 6] = [
        (Service::Keystone, "/identity"),
        (Service::Nova, "/compute"),
        (Service::Glance, "/image"),
        (Service::Neutron, "/networking"),
        (Service::Octavia, "/load-balancer"),
        (Service::Cinder, "/volume"),
    ];

    /// The service of a path, with its part of it.
    pub fn of(path: &str) -> Option<(Service, &'static str)> {
        let below =
            |prefix: &str| path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        Service::ALL.into_iter().find(|(_, prefix)| below(prefix))
    }
}

#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub content_type: &'static str,
    pub body: Bytes,
}

/// What was done, or the refusal of it.
pub(super) type Outcome = Result<Answer, Answer>;

const JSON: &str = "application/json";
const HTML: &str = "text/html; charset=UTF-8";

impl Answer {
    pub fn json(status: u16, body: &Value) -> Answer {
        Answer { status, headers: Vec::new(), content_type: JSON, body: body.to_string().into() }
    }

    pub fn empty(status: u16) -> Answer {
        Answer { status, headers: Vec::new(), content_type: "", body: Bytes::new() }
    }

    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Answer {
        self.headers.push((name, value.into()));
        self
    }

    /// A page as WebOb makes them.
    pub fn page(status: u16, message: &str) -> Answer {
        Answer::page_with(status, message, "")
    }

    /// A page with something more to say.
    pub fn page_with(status: u16, message: &str, detail: &str) -> Answer {
        let message = format!("{message}<br /><br />\n{detail}\n\n");
        Answer { status, headers: Vec::new(), content_type: HTML, body: message.into() }
    }

    /// The answer as its asker takes it: pages in JSON for who accepts that.
    pub fn accepted(mut self, accept: &str) -> Answer {
        if self.content_type != HTML || self.body.is_empty() {
            return self;
        }
        let message = String::from_utf8_lossy(&self.body).into_owned();
        let (title, reason) = (format!("{} {}", self.status, reason(self.status)), reason(self.status));
        self.body = if accept.contains("application/json") {
            self.content_type = JSON;
            json!({ "message": message, "code": title, "title": reason }).to_string().into()
        } else {
            format!(
                "<html>\n <head>\n  <title>{title}</title>\n </head>\n <body>\n  <h1>{title}</h1>\n  {message}\n </body>\n</html>"
            )
            .into()
        };
        self
    }

    /// How a service says that something went wrong. `kind` is Neutron's name of the problem.
    pub fn failure(service: Service, status: u16, kind: &str, message: &str) -> Answer {
        match service {
            Service::Keystone => Answer::json(
                status,
                &json!({ "error": { "code": status, "message": message, "title": reason(status) } }),
            ),
            Service::Neutron => {
                Answer::json(status, &json!({ "NeutronError": { "type": kind, "message": message, "detail": "" } }))
            }
            Service::Octavia => {
                let code = if status >= 500 { "Server" } else { "Client" };
                Answer::json(status, &json!({ "faultcode": code, "faultstring": message, "debuginfo": null }))
            }
            Service::Nova | Service::Cinder => {
                let mut problem = json!({ "code": status, "message": message });
                let mut answer = Answer::empty(status);
                if matches!(status, 413 | 429) {
                    problem["retryAfter"] = json!("0");
                    answer = answer.with("retry-after", "0");
                }
                let body = json!({ compute_fault(status): problem });
                Answer { body: body.to_string().into(), content_type: JSON, ..answer }
            }
            Service::Glance => Answer::page(status, message),
        }
    }

    /// A failure on request, as the service itself would say it.
    pub fn simulated(service: Service, status: u16, message: &str) -> Answer {
        if status == 401 {
            return Answer::unauthorized(service, "");
        }
        let message = if message.is_empty() { "simulated failure" } else { message };
        Answer::failure(service, status, &format!("HTTP{}", reason(status).replace(' ', "")), message)
    }

    /// No token, or one that is not valid.
    pub fn unauthorized(service: Service, keystone: &str) -> Answer {
        const MESSAGE: &str = "The request you have made requires authentication.";
        let answer = match service {
            Service::Keystone => Answer::failure(service, 401, "", MESSAGE),
            Service::Glance => Answer::page(
                401,
                "This server could not verify that you are authorized to access the document you requested. Either you supplied the wrong credentials (e.g., bad password), or your browser does not understand how to supply the credentials required.",
            ),
            _ => Answer::json(401, &json!({ "error": { "code": 401, "title": "Unauthorized", "message": MESSAGE } })),
        };
        answer.with("www-authenticate", format!("Keystone uri=\"{keystone}\""))
    }
}

/// Standard text of a status code.
fn reason(status: u16) -> &'static str {
    StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Error")
}

/// Nova's and Cinder's name of a status code.
fn compute_fault(status: u16) -> &'static str {
    match status {
        400 => "badRequest",
        401 => "unauthorized",
        403 => "forbidden",
        404 => "itemNotFound",
        405 => "badMethod",
        409 => "conflictingRequest",
        413 | 429 => "overLimit",
        415 => "badMediaType",
        501 => "notImplemented",
        503 => "serviceUnavailable",
        _ => "computeFault",
    }
}
