//! Path, query and headers of a request.

use percent_encoding::percent_decode_str;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/`
    Root,
    /// `/healthz`, `/livez`, `/readyz` (with checks below).
    Health,
    Version,
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/{group}`
    Group(String),
    /// `/api/v1`, `/apis/{group}/{version}`
    Resources {
        group: String,
        version: String,
    },
    /// `/openapi/v3`
    OpenApiIndex,
    /// `/openapi/v3/{path}`
    OpenApi(String),
    Resource(Target),
    Unknown,
}

/// The resource, and within it the object, that a path names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub group: String,
    pub version: String,
    pub plural: String,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub subresource: Option<String>,
}

impl Route {
    /// Parses a path. Never fails: what it does not know is [`Route::Unknown`].
    pub fn parse(path: &str) -> Self {
        let decode = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
        let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(decode).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match parts.as_slice() {
            [] => Self::Root,
            ["healthz" | "livez" | "readyz", ..] => Self::Health,
            ["version"] => Self::Version,
            ["api"] => Self::CoreVersions,
            ["apis"] => Self::Groups,
            ["apis", group] => Self::Group((*group).to_owned()),
            ["api", version] => Self::Resources { group: String::new(), version: (*version).to_owned() },
            ["apis", group, version] => Self::Resources { group: (*group).to_owned(), version: (*version).to_owned() },
            ["api", version, rest @ ..] => resource("", version, rest),
            ["apis", group, version, rest @ ..] => resource(group, version, rest),
            ["openapi", "v3"] => Self::OpenApiIndex,
            ["openapi", "v3", rest @ ..] => Self::OpenApi(rest.join("/")),
            _ => Self::Unknown,
        }
    }
}

fn resource(group: &str, version: &str, rest: &[&str]) -> Route {
    let owned = |part: &&str| (**part).to_owned();
    let mut target = Target { group: group.to_owned(), version: version.to_owned(), ..Target::default() };
    let rest = match rest {
        // `namespaces/{name}/status` and `/finalize` belong to the namespace itself.
        ["namespaces", _, "status" | "finalize"] => rest,
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => {
            target.namespace = Some((*namespace).to_owned());
            rest
        }
        rest => rest,
    };
    // The old `/watch/` prefix is gone from every supported client.
    let [plural, rest @ ..] = rest else { return Route::Unknown };
    if rest.len() > 2 {
        return Route::Unknown;
    }
    target.plural = (*plural).to_owned();
    target.name = rest.first().map(owned);
    target.subresource = rest.get(1).map(owned);
    Route::Resource(target)
}

/// Decoded query parameters, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub fn parse(query: &str) -> Self {
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// First value of a parameter, if it is there and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    /// All values of a parameter.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether a boolean parameter is set; `watch` and `watch=1` count as set.
    pub fn flag(&self, name: &str) -> bool {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .is_some_and(|(_, value)| matches!(value.as_str(), "" | "1" | "t" | "T" | "true" | "True" | "TRUE"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(group: &str, plural: &str, namespace: Option<&str>, name: Option<&str>, sub: Option<&str>) -> Route {
        let owned = |part: Option<&str>| part.map(str::to_owned);
        Route::Resource(Target {
            group: group.into(),
            version: "v1".into(),
            plural: plural.into(),
            namespace: owned(namespace),
            name: owned(name),
            subresource: owned(sub),
        })
    }

    #[test]
    fn paths_name_what_they_name_in_kubernetes() {
        let rows = [
            ("/api/v1/namespaces", target("", "namespaces", None, None, None)),
            ("/api/v1/namespaces/a", target("", "namespaces", None, Some("a"), None)),
            ("/api/v1/namespaces/a/finalize", target("", "namespaces", None, Some("a"), Some("finalize"))),
            ("/api/v1/namespaces/a/pods", target("", "pods", Some("a"), None, None)),
            ("/api/v1/namespaces/a/pods/p/status", target("", "pods", Some("a"), Some("p"), Some("status"))),
            ("/apis/g/v1/things", target("g", "things", None, None, None)),
            ("/apis/g/v1/namespaces/a/things/t/scale", target("g", "things", Some("a"), Some("t"), Some("scale"))),
            ("/apis/g", Route::Group("g".into())),
            ("/api/v1", Route::Resources { group: String::new(), version: "v1".into() }),
            ("/openapi/v3/apis/g/v1", Route::OpenApi("apis/g/v1".into())),
            ("/", Route::Root),
            ("", Route::Root),
            ("/livez/ping", Route::Health),
            ("/openapi/v2", Route::Unknown),
            ("/apis/g/v1/namespaces/a/things/t/proxy/x", Route::Unknown),
        ];
        for (path, expected) in rows {
            assert_eq!(Route::parse(path), expected, "{path}");
        }
    }

    #[test]
    fn queries_are_decoded_and_empty_values_count_as_absent() {
        let query = Query::parse(
            "fieldSelector=metadata.name%3Dx&labelSelector=a+in+%28b%29&watch=1&continue=&dryRun=All&dryRun=X",
        );
        assert_eq!(query.get("fieldSelector"), Some("metadata.name=x"));
        assert_eq!(query.get("labelSelector"), Some("a in (b)"));
        assert!(query.flag("watch") && !query.flag("pretty"));
        assert_eq!(query.get("continue"), None);
        assert_eq!(query.all("dryRun").collect::<Vec<_>>(), ["All", "X"]);
    }
}
