//! Errors as a Kubernetes `Status` with a machine-readable reason.

use serde_json::{Value, json};

use crate::store::StoreError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    pub reason: String,
    pub message: String,
    pub field: String,
}

/// The object of `details`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct About {
    pub group: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
}

/// A failed request. Boxed, since most requests do not fail and every result has room for it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub(crate) struct ApiError(Box<Failure>);

#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
    pub about: Option<About>,
    pub causes: Vec<Cause>,
    pub retry_after: Option<u32>,
    /// Continue token with which an expired list can go on.
    pub continue_token: Option<String>,
}

pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl std::ops::Deref for ApiError {
    type Target = Failure;

    fn deref(&self) -> &Failure {
        &self.0
    }
}

impl std::ops::DerefMut for ApiError {
    fn deref_mut(&mut self) -> &mut Failure {
        &mut self.0
    }
}

impl ApiError {
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Failure {
            code,
            reason,
            message: message.into(),
            about: None,
            causes: Vec::new(),
            retry_after: None,
            continue_token: None,
        }))
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403, "Forbidden", message)
    }

    /// 404 for a path without a resource.
    pub fn no_such_path() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource")
    }

    pub fn method_not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    }

    pub fn not_acceptable(supported: &str) -> Self {
        Self::new(406, "NotAcceptable", format!("only the following media types are accepted: {supported}"))
    }

    pub fn unsupported_media_type(supported: &str) -> Self {
        let message =
            format!("the body of the request was in an unknown format - accepted media types include: {supported}");
        Self::new(415, "UnsupportedMediaType", message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        let message: String = message.into();
        Self::new(500, "InternalError", format!("Internal error occurred: {message}"))
    }

    pub fn not_found(group: &str, plural: &str, name: &str) -> Self {
        let error = Self::new(404, "NotFound", format!("{} \"{name}\" not found", qualified(plural, group)));
        error.about(group, plural, name)
    }

    pub fn already_exists(group: &str, plural: &str, name: &str) -> Self {
        let error = Self::new(409, "AlreadyExists", format!("{} \"{name}\" already exists", qualified(plural, group)));
        error.about(group, plural, name)
    }

    pub fn conflict(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", qualified(plural, group));
        Self::new(409, "Conflict", message).about(group, plural, name)
    }

    /// 409: the object was written since the client read it.
    pub fn modified(group: &str, plural: &str, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(group, plural, name, why)
    }

    /// 422 with one cause per field.
    pub fn invalid(group: &str, kind: &str, name: &str, causes: Vec<Cause>) -> Self {
        let list: Vec<String> = causes
            .iter()
            .map(|cause| {
                if cause.field.is_empty() {
                    cause.message.clone()
                } else {
                    format!("{}: {}", cause.field, cause.message)
                }
            })
            .collect();
        let all = if let [one] = list.as_slice() { one.clone() } else { format!("[{}]", list.join(", ")) };
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let mut error =
            Self::new(422, "Invalid", format!("{qualified} \"{name}\" is invalid: {all}")).about(group, kind, name);
        error.causes = causes;
        error
    }

    pub fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        let uid = String::new();
        self.about = Some(About { group: group.to_owned(), kind: kind.to_owned(), name: name.to_owned(), uid });
        self
    }

    pub fn cause(mut self, reason: &str, message: impl Into<String>, field: &str) -> Self {
        self.causes.push(Cause { reason: reason.to_owned(), message: message.into(), field: field.to_owned() });
        self
    }

    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// 410: the requested history is compacted.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub fn to_status(&self) -> Value {
        let mut metadata = json!({});
        if let Some(token) = &self.continue_token {
            metadata["continue"] = json!(token);
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata,
            "status": "Failure", "message": self.message, "reason": self.reason, "code": self.code,
        });
        let mut details = json!({});
        if let Some(about) = &self.about {
            for (field, value) in
                [("group", &about.group), ("kind", &about.kind), ("name", &about.name), ("uid", &about.uid)]
            {
                if !value.is_empty() {
                    details[field] = json!(value);
                }
            }
        }
        if !self.causes.is_empty() {
            details["causes"] = self.causes.iter().map(cause_json).collect();
        }
        if let Some(seconds) = self.retry_after {
            details["retryAfterSeconds"] = json!(seconds);
        }
        if details.as_object().is_some_and(|details| !details.is_empty()) {
            status["details"] = details;
        }
        status
    }
}

fn cause_json(cause: &Cause) -> Value {
    let mut json = json!({"reason": cause.reason, "message": cause.message});
    if !cause.field.is_empty() {
        json["field"] = json!(cause.field);
    }
    json
}

fn qualified(plural: &str, group: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Compacted { asked, oldest } => {
                Self::expired(format!("too old resource version: {asked} ({oldest})"))
            }
            StoreError::Closed => Self::new(503, "ServiceUnavailable", "the server is shutting down"),
            StoreError::Disk { full: true, .. } => Self::new(507, "InsufficientStorage", error.to_string()),
            StoreError::Disk { .. } | StoreError::Doubtful => Self::new(503, "ServiceUnavailable", error.to_string()),
            other => Self::internal(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_carry_kubernetes_wording_and_details() {
        let error = ApiError::not_found("cluster.x-k8s.io", "machines", "m1");
        let status = error.to_status();
        assert_eq!(status["message"], "machines.cluster.x-k8s.io \"m1\" not found");
        assert_eq!(status["details"], json!({"group": "cluster.x-k8s.io", "kind": "machines", "name": "m1"}));
        assert_eq!((&status["code"], &status["reason"]), (&json!(404), &json!("NotFound")));
    }

    #[test]
    fn an_invalid_object_lists_every_cause_in_its_message() {
        let cause = |field: &str| Cause {
            reason: "FieldValueRequired".into(),
            message: "Required value".into(),
            field: field.into(),
        };
        let one = ApiError::invalid("", "ConfigMap", "c", vec![cause("data")]);
        assert_eq!(one.message, "ConfigMap \"c\" is invalid: data: Required value");
        let two = ApiError::invalid("g", "K", "k", vec![cause("a"), cause("b")]);
        assert_eq!(two.message, "K.g \"k\" is invalid: [a: Required value, b: Required value]");
        assert_eq!(two.to_status()["details"]["causes"].as_array().map(Vec::len), Some(2));
    }
}
