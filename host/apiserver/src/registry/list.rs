//! Lists: consistent, at a chosen revision, in pages.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{Filter, Registry};
use crate::catalog::Resource;
use crate::request::Query;
use crate::status::{ApiError, ApiResult, Cause};
use crate::store::{Key, StoreError};
use crate::turn;

/// How long a request waits for a `resourceVersion` that is not reached yet.
const FUTURE_WAIT: Duration = Duration::from_secs(3);

/// `resourceVersionMatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    Exact,
    NotOlderThan,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ListRequest {
    pub namespace: Option<String>,
    pub filter: Filter,
    pub limit: Option<usize>,
    pub start: Option<Token>,
    pub revision: Option<u64>,
    pub exact: bool,
}

/// Continue token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Token {
    /// Revision of the list; 0: the newest, after the original one expired.
    rv: u64,
    /// Last key of the page before.
    after: String,
}

impl Token {
    fn encode(&self) -> String {
        // A struct of a number and a string always serialises.
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    fn decode(text: &str) -> ApiResult<Self> {
        let invalid = || ApiError::bad_request(format!("continue key is not valid: {text}"));
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).map_err(|_| invalid())?).map_err(|_| invalid())
    }
}

pub(crate) struct Page {
    pub revision: u64,
    /// Keys, and objects in the version of the request.
    pub items: Vec<(Key, Bytes)>,
    pub next: Option<String>,
    pub remaining: Option<u64>,
}

fn invalid(field: &str, reason: &str, message: String) -> ApiError {
    let cause = Cause { reason: reason.to_owned(), message, field: field.to_owned() };
    ApiError::invalid("meta.k8s.io", "ListOptions", "", vec![cause])
}

/// `resourceVersion` as a number; 0 and absence differ.
pub(crate) fn revision(query: &Query) -> ApiResult<Option<u64>> {
    let parse = |text: &str| {
        let message = || format!("Invalid value: \"{text}\": strconv.ParseUint: parsing \"{text}\": invalid syntax");
        text.parse().map_err(|_| ApiError::bad_request(format!("resourceVersion: {}", message())))
    };
    query.get("resourceVersion").map(parse).transpose()
}

pub(crate) fn version_match(query: &Query) -> ApiResult<Option<Match>> {
    match query.get("resourceVersionMatch") {
        None => Ok(None),
        Some("Exact") => Ok(Some(Match::Exact)),
        Some("NotOlderThan") => Ok(Some(Match::NotOlderThan)),
        Some(other) => {
            let message =
                format!("Unsupported value: \"{other}\": supported values: \"Exact\", \"NotOlderThan\", \"\"");
            Err(invalid("resourceVersionMatch", "FieldValueNotSupported", message))
        }
    }
}

impl ListRequest {
    pub fn parse(query: &Query, resource: &Resource, namespace: Option<&str>) -> ApiResult<Self> {
        if query.get("sendInitialEvents").is_some() {
            let message = "Forbidden: sendInitialEvents is forbidden for list".to_owned();
            return Err(invalid("sendInitialEvents", "FieldValueForbidden", message));
        }
        let (revision, matching) = (revision(query)?, version_match(query)?);
        let start = query.get("continue").map(Token::decode).transpose()?;
        if matching.is_some() && start.is_some() {
            let message = "Forbidden: resourceVersionMatch is forbidden when continue is provided".to_owned();
            return Err(invalid("resourceVersionMatch", "FieldValueForbidden", message));
        }
        if matching.is_some() && revision.is_none() {
            let message = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided".to_owned();
            return Err(invalid("resourceVersionMatch", "FieldValueForbidden", message));
        }
        if matching == Some(Match::Exact) && revision == Some(0) {
            let message = "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"".to_owned();
            return Err(invalid("resourceVersionMatch", "FieldValueForbidden", message));
        }
        if start.is_some() && revision.is_some_and(|revision| revision != 0) {
            return Err(ApiError::bad_request("specifying resource version is not allowed when using continue"));
        }
        let limit = match query.get("limit").map(str::parse::<usize>) {
            None | Some(Ok(0)) => None,
            Some(Ok(limit)) => Some(limit),
            Some(Err(_)) => return Err(ApiError::bad_request("limit must be a non-negative number")),
        };
        // A limit with a revision and no match asks for that very revision (legacy).
        let exact =
            matching == Some(Match::Exact) || matching.is_none() && limit.is_some() && revision.is_some_and(|r| r != 0);
        let filter = Filter::parse(query, resource)?;
        Ok(Self { namespace: namespace.map(str::to_owned), filter, limit, start, revision, exact })
    }
}

impl Registry {
    /// Waits up to [`FUTURE_WAIT`] for `revision`.
    pub async fn wait_for(&self, revision: Option<u64>) -> ApiResult<()> {
        let Some(revision) = revision else { return Ok(()) };
        if tokio::time::timeout(FUTURE_WAIT, self.store.reached(revision)).await.is_ok() {
            return Ok(());
        }
        let current = self.store.revision();
        let error =
            ApiError::new(504, "Timeout", format!("Too large resource version: {revision}, current: {current}"));
        Err(error.cause("ResourceVersionTooLarge", "Too large resource version", "").retry_after(1))
    }

    /// A page of objects, in key order.
    pub async fn list(&self, resource: &Resource, request: &ListRequest) -> ApiResult<Page> {
        self.wait_for(request.revision).await?;
        if let Some(page) = self.page(resource, request, turn::SHORT)? {
            return Ok(page);
        }
        turn::long(usize::MAX).await;
        self.list_now(resource, request)
    }

    /// As [`Registry::list`], for requests that do not name a revision to wait for.
    pub fn list_now(&self, resource: &Resource, request: &ListRequest) -> ApiResult<Page> {
        // It ends with the objects, or with the page.
        let page = self.page(resource, request, usize::MAX)?;
        page.ok_or_else(|| ApiError::internal("a list was given up"))
    }

    /// The page, unless objects of more than `bytes` have to be looked at for it.
    fn page(&self, resource: &Resource, request: &ListRequest, bytes: usize) -> ApiResult<Option<Page>> {
        let store_name = &resource.store;
        let prefix = Key::prefix(store_name, request.namespace.as_deref());
        let after = request.start.as_ref().map(|token| token.after.clone());
        let at = match (&request.start, request.exact) {
            (Some(token), _) => Some(token.rv).filter(|rv| *rv != 0),
            (None, true) => request.revision,
            (None, false) => None,
        };
        // A single name in a single namespace is a look-up.
        let single = match (request.filter.name(), &request.namespace, resource.namespaced, at) {
            (Some(name), Some(namespace), true, None) => Some(Key::new(store_name, namespace, name)),
            (Some(name), None, false, None) => Some(Key::new(store_name, "", name)),
            _ => None,
        };
        // What was then follows from the whole history.
        if at.is_some() && bytes != usize::MAX {
            return Ok(None);
        }
        let mut left = bytes;
        let mut given_up = false;
        let (mut charged, mut refused) = (0, None);
        let limit = request.limit.unwrap_or(usize::MAX);
        let mut records = Vec::new();
        let (mut more, mut beyond) = (false, 0_u64);
        let count_rest = request.filter.selects_everything();
        let read = self.store.read(&self.keyspace, |view| {
            let mut visit = |record: crate::store::Record| {
                let Some(rest) = left.checked_sub(record.data.len()) else {
                    given_up = true;
                    return false;
                };
                left = if bytes == usize::MAX { bytes } else { rest };
                if records.len() < limit {
                    if request.filter.matches(&record.key, &record.data) {
                        refused = turn::charge(record.data.len()).err();
                        charged += record.data.len();
                        records.push(record);
                    }
                    return refused.is_none();
                }
                more = true;
                beyond += 1;
                count_rest
            };
            match &single {
                Some(key) => {
                    if let Some(record) = view.get(key)? {
                        visit(record);
                    }
                }
                None => view.walk(&prefix, after.as_deref(), at, &mut visit)?,
            }
            Ok(at.unwrap_or_else(|| view.revision()))
        });
        let revision = match read {
            Err(StoreError::Compacted { .. }) if request.start.is_some() => return Err(expired_continue(after)),
            other => other?,
        };
        if let Some(refused) = refused {
            return Err(refused);
        }
        if given_up {
            turn::give_back(charged);
            return Ok(None);
        }
        let next = more
            .then(|| records.last())
            .flatten()
            .map(|last| Token { rv: revision, after: last.key.as_str().to_owned() }.encode());
        let shown = self.conversion.show_all(resource, &records)?;
        let items = records.into_iter().map(|record| record.key).zip(shown).collect();
        Ok(Some(Page { revision, items, next, remaining: (more && count_rest).then_some(beyond) }))
    }
}

/// 410 with a token by which the client can go on without consistency.
fn expired_continue(after: Option<String>) -> ApiError {
    let mut error = ApiError::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, \
         or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an \
         inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );
    error.continue_token = after.map(|after| Token { rv: 0, after }.encode());
    error
}
