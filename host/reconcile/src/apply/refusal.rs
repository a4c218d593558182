//! What a failed request means for the one who wanted it.

use crate::{
    cache::CacheError,
    plan::{ErrorKind, OperationError},
};

impl From<kube::Error> for OperationError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => {
                let kind = match (status.reason.as_str(), status.code) {
                    ("AlreadyExists", _) => ErrorKind::AlreadyExists,
                    ("Conflict", _) | (_, 409) => ErrorKind::Conflict,
                    ("NotFound", _) | (_, 404) => ErrorKind::NotFound,
                    (_, 401 | 403) => ErrorKind::Denied,
                    (_, 429) => ErrorKind::Limit,
                    (_, 405 | 406 | 415) => ErrorKind::Unsupported,
                    (_, 400..500) => ErrorKind::Invalid,
                    _ => ErrorKind::Unavailable,
                };
                let reason = if status.reason.is_empty() { format!("Http{}", status.code) } else { status.reason };
                Self { kind, reason, message: status.message }
            }
            kube::Error::SerdeError(_) | kube::Error::BuildRequest(_) | kube::Error::HttpError(_) => {
                Self { kind: ErrorKind::Invalid, reason: "BadRequest".to_owned(), message: error.to_string() }
            }
            other => {
                Self { kind: ErrorKind::Unavailable, reason: "Unreachable".to_owned(), message: other.to_string() }
            }
        }
    }
}

impl From<CacheError> for OperationError {
    fn from(error: CacheError) -> Self {
        let (kind, reason) = match &error {
            CacheError::UnknownKind { .. } => (ErrorKind::NotFound, "UnknownKind"),
            CacheError::Decode(_) => (ErrorKind::Invalid, "Undecodable"),
            _ => (ErrorKind::Unavailable, "Unreachable"),
        };
        Self { kind, reason: reason.to_owned(), message: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn refusals_follow_reason_before_code() {
        let table = [
            ("AlreadyExists", 409, ErrorKind::AlreadyExists),
            ("Conflict", 409, ErrorKind::Conflict),
            ("", 409, ErrorKind::Conflict),
            ("NotFound", 404, ErrorKind::NotFound),
            ("Forbidden", 403, ErrorKind::Denied),
            ("Unauthorized", 401, ErrorKind::Denied),
            ("TooManyRequests", 429, ErrorKind::Limit),
            ("Invalid", 422, ErrorKind::Invalid),
            ("UnsupportedMediaType", 415, ErrorKind::Unsupported),
            ("InternalError", 500, ErrorKind::Unavailable),
        ];
        for (reason, code, expected) in table {
            let status = Status::failure("m", reason).with_code(code).boxed();
            assert_eq!(OperationError::from(kube::Error::Api(status)).kind, expected, "{reason} {code}");
        }
    }
}
