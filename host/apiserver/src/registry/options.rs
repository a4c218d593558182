//! Options of a write, from its query parameters.

use crate::identity::Identity;
use crate::request::Query;
use crate::status::{ApiError, ApiResult, Cause};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

#[derive(Clone, Debug)]
pub(crate) struct WriteOptions {
    pub dry_run: bool,
    pub validation: FieldValidation,
    /// Never empty.
    pub manager: String,
    pub force: bool,
    pub user: Identity,
    /// The server's own controllers may write where users may not, such as into a terminating namespace.
    pub internal: bool,
}

impl WriteOptions {
    pub fn internal(manager: &str) -> Self {
        Self {
            dry_run: false,
            validation: FieldValidation::Ignore,
            manager: manager.to_owned(),
            force: false,
            user: Identity::admin("system:apiserver"),
            internal: true,
        }
    }

    /// Parses the options of a request; the manager defaults to the user agent up to its first slash.
    pub fn parse(query: &Query, user_agent: &str, user: &Identity) -> ApiResult<Self> {
        let validation = match query.get("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => return Err(unsupported("fieldValidation", other, "\"Ignore\", \"Strict\", \"Warn\"")),
        };
        let manager = match query.get("fieldManager") {
            Some(manager) if manager.len() > 128 => {
                let cause = Cause {
                    reason: "FieldValueTooLong".into(),
                    message: "Too long: may not be more than 128 bytes".into(),
                    field: "fieldManager".into(),
                };
                return Err(ApiError::invalid("meta.k8s.io", "CreateOptions", "", vec![cause]));
            }
            Some(manager) => manager.to_owned(),
            None => user_agent.split('/').next().filter(|agent| !agent.is_empty()).unwrap_or("unknown").to_owned(),
        };
        Ok(Self {
            dry_run: dry_run(query.all("dryRun"))?,
            validation,
            manager,
            force: query.flag("force"),
            user: user.clone(),
            internal: false,
        })
    }
}

pub(crate) fn dry_run<'a>(mut values: impl Iterator<Item = &'a str>) -> ApiResult<bool> {
    values.try_fold(false, |_, value| match value {
        "All" => Ok(true),
        other => Err(unsupported("dryRun", other, "\"All\"")),
    })
}

fn unsupported(field: &str, value: &str, supported: &str) -> ApiError {
    let message = format!("Unsupported value: \"{value}\": supported values: {supported}");
    let cause = Cause { reason: "FieldValueNotSupported".into(), message, field: field.into() };
    ApiError::invalid("meta.k8s.io", "CreateOptions", "", vec![cause])
}
