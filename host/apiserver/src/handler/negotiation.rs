//! Content negotiation: which of a resource's forms the `Accept` header asks for.

use crate::status::{ApiError, ApiResult};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    /// `meta.k8s.io/v1` Table.
    Table,
    /// `PartialObjectMetadata` or its list.
    Metadata,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiscoveryForm {
    Legacy,
    Aggregated(&'static str),
}

struct Media<'a> {
    essence: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Media<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let essence = parts.next().unwrap_or_default();
        Self { essence, parameters: parts.filter_map(|part| part.split_once('=')).collect() }
    }

    fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    fn is_json(&self) -> bool {
        matches!(self.essence, "application/json" | "*/*" | "application/*")
    }
}

fn media(accept: &str) -> impl Iterator<Item = Media<'_>> {
    accept.split(',').map(str::trim).filter(|part| !part.is_empty()).map(Media::parse)
}

/// The form of an object or list. Protobuf is understood in requests only: a client that accepts nothing else gets 406.
pub(crate) fn form(accept: &str) -> ApiResult<Form> {
    if accept.trim().is_empty() {
        return Ok(Form::Json);
    }
    let form = media(accept).filter(Media::is_json).find_map(|media| {
        match (media.parameter("as"), media.parameter("g"), media.parameter("v")) {
            (None, _, _) => Some(Form::Json),
            (Some("Table"), Some("meta.k8s.io"), Some("v1" | "v1beta1")) => Some(Form::Table),
            (
                Some("PartialObjectMetadata" | "PartialObjectMetadataList"),
                Some("meta.k8s.io"),
                Some("v1" | "v1beta1"),
            ) => Some(Form::Metadata),
            _ => None,
        }
    });
    form.ok_or_else(|| ApiError::not_acceptable("application/json"))
}

pub(crate) fn discovery(accept: &str) -> DiscoveryForm {
    let find = |media: Media<'_>| match (media.parameter("as"), media.parameter("v")) {
        _ if !media.is_json() => None,
        (None, _) => Some(DiscoveryForm::Legacy),
        (Some("APIGroupDiscoveryList"), Some("v2")) => Some(DiscoveryForm::Aggregated("v2")),
        (Some("APIGroupDiscoveryList"), Some("v2beta1")) => Some(DiscoveryForm::Aggregated("v2beta1")),
        _ => None,
    };
    media(accept).find_map(find).unwrap_or(DiscoveryForm::Legacy)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_first_form_that_we_have_wins() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
        let rows = [
            ("", Form::Json),
            ("*/*", Form::Json),
            (kubectl, Form::Table),
            (metadata, Form::Metadata),
            ("application/vnd.kubernetes.protobuf,application/json", Form::Json),
            ("application/json;as=Strange;v=v1;g=meta.k8s.io, application/json", Form::Json),
        ];
        for (accept, expected) in rows {
            assert_eq!(form(accept).unwrap(), expected, "{accept}");
        }
        assert_eq!(form("application/vnd.kubernetes.protobuf").unwrap_err().code, 406);
    }

    #[test]
    fn discovery_is_aggregated_only_for_those_who_ask() {
        let kubectl = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
        assert_eq!(discovery(kubectl), DiscoveryForm::Aggregated("v2"));
        assert_eq!(discovery("application/json, */*"), DiscoveryForm::Legacy);
    }
}
