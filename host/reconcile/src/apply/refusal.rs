//! Classifies errors of requests.

use capwasm_contract::{Refusal, Refused};

use crate::cache::CacheError;

pub(super) fn of_request(error: kube::Error) -> Refused {
    match error {
        kube::Error::Api(status) => {
            let refusal = match (status.reason.as_str(), status.code) {
                ("AlreadyExists", _) => Refusal::AlreadyExists,
                ("Conflict", _) | (_, 409) => Refusal::Conflict,
                ("NotFound", _) | (_, 404) => Refusal::NotFound,
                (_, 401 | 403) => Refusal::Denied,
                (_, 429) => Refusal::Limit,
                (_, 405 | 406 | 415) => Refusal::Unsupported,
                (_, 400..500) => Refusal::Invalid,
                _ => Refusal::Unavailable,
            };
            let reason = if status.reason.is_empty() { format!("Http{}", status.code) } else { status.reason };
            Refused { refusal, reason, message: status.message }
        }
        kube::Error::SerdeError(_) | kube::Error::BuildRequest(_) | kube::Error::HttpError(_) => {
            Refused { refusal: Refusal::Invalid, reason: "BadRequest".to_owned(), message: error.to_string() }
        }
        other => {
            Refused { refusal: Refusal::Unavailable, reason: "Unreachable".to_owned(), message: other.to_string() }
        }
    }
}

impl From<CacheError> for Refused {
    fn from(error: CacheError) -> Self {
        let (refusal, reason) = match &error {
            CacheError::UnknownKind { .. } => (Refusal::NotFound, "UnknownKind"),
            CacheError::Decode(_) => (Refusal::Invalid, "Undecodable"),
            _ => (Refusal::Unavailable, "Unreachable"),
        };
        Self { refusal, reason: reason.to_owned(), message: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn refusals_follow_reason_before_code() {
        let table = [
            ("AlreadyExists", 409, Refusal::AlreadyExists),
            ("Conflict", 409, Refusal::Conflict),
            ("", 409, Refusal::Conflict),
            ("NotFound", 404, Refusal::NotFound),
            ("Forbidden", 403, Refusal::Denied),
            ("Unauthorized", 401, Refusal::Denied),
            ("TooManyRequests", 429, Refusal::Limit),
            ("Invalid", 422, Refusal::Invalid),
            ("UnsupportedMediaType", 415, Refusal::Unsupported),
            ("InternalError", 500, Refusal::Unavailable),
        ];
        for (reason, code, expected) in table {
            let status = Status::failure("m", reason).with_code(code).boxed();
            assert_eq!(of_request(kube::Error::Api(status)).refusal, expected, "{reason} {code}");
        }
    }
}
