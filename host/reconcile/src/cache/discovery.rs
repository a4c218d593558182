//! From group and kind to plural, scope and version, by asking the server.

use std::{
    collections::HashMap,
    sync::LazyLock,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::CacheError;
use crate::kind::Kind;

/// How long results are cached: a CRD may start to serve a newer version.
const BELIEVED_FOR: Duration = Duration::from_secs(600);

/// Bounds of the delay before an unknown kind is looked up again.
const SOONEST_LOOK: Duration = Duration::from_millis(200);
const LATEST_LOOK: Duration = Duration::from_secs(300);

/// Unknown kinds whose delays are remembered: any guest may ask for as many as it likes.
const MOST_MISSED: usize = 256;

static WELL_KNOWN: LazyLock<[Kind; 7]> = LazyLock::new(|| {
    [
        Kind::new("", "v1", "Event", "events", true),
        Kind::new("", "v1", "Node", "nodes", false),
        Kind::new("", "v1", "Secret", "secrets", true),
        Kind::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false),
        Kind::new("", "v1", "Pod", "pods", true),
        Kind::new("", "v1", "Namespace", "namespaces", false),
        Kind::new("", "v1", "ConfigMap", "configmaps", true),
    ]
});

/// `v1` Event.
pub fn event_kind() -> Kind {
    WELL_KNOWN[0].clone()
}

/// `v1` Node.
pub fn node_kind() -> Kind {
    WELL_KNOWN[1].clone()
}

/// `v1` Secret.
pub fn secret_kind() -> Kind {
    WELL_KNOWN[2].clone()
}

/// `apiextensions.k8s.io/v1` CustomResourceDefinition.
pub fn crd_kind() -> Kind {
    WELL_KNOWN[3].clone()
}

/// Group, version ("" = preferred) and kind.
type Question = (String, String, String);

/// Known kinds of a server.
pub(super) struct Discovery {
    client: kube::Client,
    known: Mutex<HashMap<Question, (Kind, Instant)>>,
    /// Unknown kinds: since when, and at which state of the CRDs.
    missed: Mutex<HashMap<(String, String), (u64, Instant)>>,
}

impl Discovery {
    pub(super) fn new(client: kube::Client) -> Self {
        Self { client, known: Mutex::default(), missed: Mutex::default() }
    }

    pub(super) async fn find(&self, group: &str, version: Option<&str>, kind: &str) -> Result<Kind, CacheError> {
        if let Some(known) = WELL_KNOWN
            .iter()
            .find(|known| known.is(group, kind) && version.is_none_or(|version| *known.version == *version))
        {
            return Ok(known.clone());
        }
        let key = (group.to_owned(), version.unwrap_or_default().to_owned(), kind.to_owned());
        if let Some((found, since)) = self.known.lock().get(&key)
            && since.elapsed() < BELIEVED_FOR
        {
            return Ok(found.clone());
        }
        let failed = |source| CacheError::Discover { group: group.to_owned(), source: Box::new(source) };
        let versions = match version {
            Some(version) => vec![version.to_owned()],
            None => self.versions(group).await.map_err(failed)?,
        };
        for version in versions {
            if let Some(found) = self.ask(group, &version, kind).await.map_err(failed)? {
                self.known.lock().insert(key, (found.clone(), Instant::now()));
                return Ok(found);
            }
        }
        let group_version = version.map_or_else(|| group.to_owned(), |version| format!("{group}/{version}"));
        Err(CacheError::UnknownKind { group_version, kind: kind.to_owned() })
    }

    /// When to look up an unknown kind again, with the CRDs at state `crds`. A CRD is served a little later than its
    /// status says; after that, only a change of the CRDs helps.
    pub(super) fn look_again_after(&self, group: &str, kind: &str, crds: u64) -> Duration {
        let (now, key) = (Instant::now(), (group.to_owned(), kind.to_owned()));
        let mut missed = self.missed.lock();
        if missed.len() >= MOST_MISSED && !missed.contains_key(&key) {
            missed.retain(|_, (_, since)| now.duration_since(*since) < LATEST_LOOK);
            // Whoever is forgotten begins anew, with a short delay.
            if missed.len() >= MOST_MISSED {
                missed.clear();
            }
        }
        let (seen, since) = missed.entry(key).or_insert((crds, now));
        if *seen != crds {
            (*seen, *since) = (crds, now);
        }
        // As long again as it has been missed already: a backoff, whoever and however many ask.
        now.duration_since(*since).clamp(SOONEST_LOOK, LATEST_LOOK)
    }

    /// Versions of a group, preferred one first.
    async fn versions(&self, group: &str) -> Result<Vec<String>, kube::Error> {
        if group.is_empty() {
            return Ok(vec!["v1".to_owned()]);
        }
        let groups = self.client.list_api_groups().await?.groups;
        let Some(found) = groups.into_iter().find(|found| found.name == group) else { return Ok(Vec::new()) };
        let mut versions: Vec<_> = found.preferred_version.map(|preferred| preferred.version).into_iter().collect();
        for version in found.versions {
            if !versions.contains(&version.version) {
                versions.push(version.version);
            }
        }
        Ok(versions)
    }

    async fn ask(&self, group: &str, version: &str, kind: &str) -> Result<Option<Kind>, kube::Error> {
        let answer = if group.is_empty() {
            self.client.list_core_api_resources(version).await
        } else {
            self.client.list_api_group_resources(&format!("{group}/{version}")).await
        };
        match answer {
            Ok(list) => Ok(list
                .resources
                .into_iter()
                .find(|resource| resource.kind == kind && !resource.name.contains('/'))
                .map(|resource| Kind::new(group, version, kind, &resource.name, resource.namespaced))),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn unknown_kinds_are_remembered_up_to_a_number() {
        let nobody = tower::service_fn(|_: http::Request<kube::client::Body>| async {
            Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("nobody is asked"))
        });
        let discovery = Discovery::new(kube::Client::new(nobody, "default"));
        for kind in 0..10 * MOST_MISSED {
            assert_eq!(discovery.look_again_after("g", &format!("K{kind}"), 1), SOONEST_LOOK);
            assert!(discovery.missed.lock().len() <= MOST_MISSED);
        }
    }
}
