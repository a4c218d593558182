//! Authorization for a registry that answers 401: basic, or a token of the named service.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use form_urlencoded::Serializer;
use http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, Response, Uri};
use hyper::body::Incoming;
use serde::Deserialize;

use super::Repository;
use crate::credentials::Credentials;
use crate::error::Error;

/// Largest token in bytes.
const LARGEST_TOKEN: u64 = 256 << 10;

/// A supported challenge of `WWW-Authenticate`.
#[derive(Debug, PartialEq, Eq)]
enum Challenge {
    Basic,
    Bearer { realm: String, service: Option<String>, scope: Option<String> },
}

#[derive(Deserialize)]
struct Token {
    #[serde(default)]
    token: String,
    #[serde(default)]
    access_token: String,
}

impl Repository {
    /// `Authorization` header for the challenge; `None` when credentials for it are missing.
    pub(super) async fn authorize(&self, refused: &Response<Incoming>) -> Result<Option<HeaderValue>, Error> {
        if let Some(Credentials::Bearer(token)) = &self.credentials {
            return self.header(format!("Bearer {token}")).map(Some);
        }
        let offered = refused.headers().get_all(WWW_AUTHENTICATE);
        let challenge = offered.iter().filter_map(|value| value.to_str().ok()).find_map(challenge);
        match (challenge, &self.credentials) {
            (Some(Challenge::Basic), Some(Credentials::Basic { username, password })) => {
                self.header(basic(username, password)).map(Some)
            }
            (Some(Challenge::Bearer { realm, service, scope }), credentials) => {
                let scope = scope.unwrap_or_else(|| format!("repository:{}:pull", self.repository));
                let token = self.token(&realm, service.as_deref(), &scope, credentials.as_ref()).await?;
                self.header(format!("Bearer {token}")).map(Some)
            }
            _ => Ok(None),
        }
    }

    async fn token(
        &self,
        realm: &str,
        service: Option<&str>,
        scope: &str,
        credentials: Option<&Credentials>,
    ) -> Result<String, Error> {
        let bad = |why: String| self.protocol(format!("its token service {realm:?} cannot be used: {why}"));
        let Request { method, uri, body } = request(realm, service, scope, credentials).map_err(bad)?;
        if !self.connection.may_reach(&uri) {
            return Err(Error::PlainHttp(realm.to_owned()));
        }
        let mut headers = HeaderMap::new();
        if method == Method::POST {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        } else if let Some(Credentials::Basic { username, password }) = credentials {
            headers.insert(AUTHORIZATION, self.header(basic(username, password))?);
        }
        let response = self.connection.send(&method, &uri, headers, body).await?;
        let response = self.expect("a token", response).await?;
        let bytes = self.connection.read(response, LARGEST_TOKEN, "the token").await?;
        // The error of the parser would show a part of the token.
        let token: Token = serde_json::from_slice(&bytes).map_err(|_| bad("it answers without a token".to_owned()))?;
        let token = if token.token.is_empty() { token.access_token } else { token.token };
        if token.is_empty() { Err(bad("it answers without a token".to_owned())) } else { Ok(token) }
    }

    fn header(&self, text: String) -> Result<HeaderValue, Error> {
        let mut value = HeaderValue::try_from(text)
            .map_err(|_| self.protocol("the credentials do not fit into a header".to_owned()))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// Request to a token service: a form with the refresh token, else a query.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    method: Method,
    uri: Uri,
    body: Bytes,
}

fn request(
    realm: &str,
    service: Option<&str>,
    scope: &str,
    credentials: Option<&Credentials>,
) -> Result<Request, String> {
    let mut fields = Serializer::new(String::new());
    if let Some(service) = service {
        fields.append_pair("service", service);
    }
    fields.append_pair("scope", scope);
    let parse = |text: &str| text.parse::<Uri>().map_err(|error| error.to_string());
    if let Some(Credentials::Identity(refresh)) = credentials {
        fields.append_pair("grant_type", "refresh_token").append_pair("client_id", "capwasm");
        fields.append_pair("refresh_token", refresh);
        return Ok(Request { method: Method::POST, uri: parse(realm)?, body: fields.finish().into() });
    }
    let separator = if realm.contains('?') { '&' } else { '?' };
    let uri = parse(&format!("{realm}{separator}{}", fields.finish()))?;
    Ok(Request { method: Method::GET, uri, body: Bytes::new() })
}

fn basic(username: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{username}:{password}")))
}

fn challenge(header: &str) -> Option<Challenge> {
    let challenges = http_auth::parse_challenges(header).ok()?;
    challenges.iter().find_map(|challenge| {
        let parameter = |wanted: &str| {
            let found = challenge.params.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            found.map(|(_, value)| value.to_unescaped())
        };
        if challenge.scheme.eq_ignore_ascii_case("basic") {
            Some(Challenge::Basic)
        } else if challenge.scheme.eq_ignore_ascii_case("bearer") {
            let realm = parameter("realm")?;
            Some(Challenge::Bearer { realm, service: parameter("service"), scope: parameter("scope") })
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_asked_for_by_query_or_with_a_refresh_token_as_a_form() {
        let asked = request("https://a.example/t?x=1", Some("r"), "repository:a/b:pull", None).unwrap();
        assert_eq!(asked.uri, "https://a.example/t?x=1&service=r&scope=repository%3Aa%2Fb%3Apull");
        let refresh = Credentials::Identity("se&cret".to_owned());
        let asked = request("https://a.example/t", None, "s", Some(&refresh)).unwrap();
        assert_eq!((asked.method, asked.uri.to_string().as_str()), (Method::POST, "https://a.example/t"));
        assert_eq!(asked.body, "scope=s&grant_type=refresh_token&client_id=capwasm&refresh_token=se%26cret");
        assert!(request("not a uri", None, "s", None).is_err());
    }

    #[test]
    fn the_first_challenge_that_can_be_answered_is_taken() {
        let bearer = |realm: &str, service: Option<&str>, scope: Option<&str>| {
            Some(Challenge::Bearer {
                realm: realm.to_owned(),
                service: service.map(str::to_owned),
                scope: scope.map(str::to_owned),
            })
        };
        for (header, expected) in [
            ("Basic realm=\"x\"", Some(Challenge::Basic)),
            ("basic", Some(Challenge::Basic)),
            (
                "Bearer realm=\"https://auth.example/token\",service=\"registry.example\",scope=\"repository:a/b:pull,push\"",
                bearer("https://auth.example/token", Some("registry.example"), Some("repository:a/b:pull,push")),
            ),
            ("Negotiate, Bearer realm=\"r\"", bearer("r", None, None)),
            ("Bearer service=\"r\"", None),
            ("Digest realm=\"x\"", None),
            ("Bearer realm=\"unfinished", None),
            ("", None),
        ] {
            assert_eq!(challenge(header), expected, "{header}");
        }
    }
}
