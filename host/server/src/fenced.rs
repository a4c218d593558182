//! Clients of API servers that write only while this host holds its Lease.

use async_trait::async_trait;
use capwasm_fence::Fence;
use capwasm_reconcile::ClusterId;
use capwasm_remote::connector::{ConnectError, Connector, KubeconfigConnector};
use http::{Method, Request};
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use tower::BoxError;

/// Groups whose objects are questions: they are created, and nothing is stored.
const QUESTIONS: [&str; 2] = ["/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/"];

/// A client of the management cluster, whose writes have to pass `fence`, and whose connections go no step further once it has fallen.
pub fn connect(config: Config, fence: &Fence) -> kube::Result<Client> {
    let connected = ClientBuilder::try_from((config, fence.clone()))?.build();
    Ok(client(connected, fence))
}

/// The client, whose writes have to pass `fence`.
fn client(client: Client, fence: &Fence) -> Client {
    let (namespace, fence) = (client.default_namespace().to_owned(), fence.clone());
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, fence) = (client.clone(), fence.clone());
        async move {
            let answer = if is_write(request.method(), request.uri().path()) {
                fence.guard(client.send(request)).await.map_err(BoxError::from)?
            } else {
                client.send(request).await
            };
            answer.map_err(BoxError::from)
        }
    });
    Client::new(service, namespace)
}

/// Whether a request changes anything.
fn is_write(method: &Method, path: &str) -> bool {
    match *method {
        Method::GET | Method::HEAD | Method::OPTIONS => false,
        Method::POST => !QUESTIONS.iter().any(|group| path.starts_with(group)),
        _ => true,
    }
}

/// Connects to workload clusters over the network, for writes that have to pass the fence.
pub struct FencedConnector(pub Fence);

#[async_trait]
impl Connector for FencedConnector {
    async fn connect(&self, cluster: &ClusterId, kubeconfig: &[u8]) -> Result<Client, ConnectError> {
        Ok(client(KubeconfigConnector.connect(cluster, kubeconfig).await?, &self.0))
    }

    /// Only port-forwards, whose requests are reads, go over these.
    async fn connect_for_forwarding(&self, cluster: &ClusterId, kubeconfig: &[u8]) -> Result<Client, ConnectError> {
        KubeconfigConnector.connect_for_forwarding(cluster, kubeconfig).await
    }

    fn fence(&self) -> Fence {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use capwasm_apiserver::{Identity, Server, ServerConfig, Store};
    use capwasm_fence::Term;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Api;
    use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_changes_nothing_is_no_write() {
        let (collection, object) = ("/api/v1/namespaces/a/secrets", "/api/v1/namespaces/a/secrets/b");
        for (method, path, expected) in [
            (Method::GET, collection, false),
            (Method::HEAD, object, false),
            (Method::POST, collection, true),
            (Method::PUT, object, true),
            (Method::PATCH, object, true),
            (Method::DELETE, object, true),
            (Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", false),
            (Method::POST, "/apis/authentication.k8s.io/v1/tokenreviews", false),
            (Method::POST, "/apis/certificates.k8s.io/v1/certificatesigningrequests", true),
            (Method::POST, "/apis/coordination.k8s.io/v1/namespaces/a/leases", true),
        ] {
            assert_eq!(is_write(&method, path), expected, "{method} {path}");
        }
    }

    /// A host that stood still for half a minute reads as before, and writes nothing, whatever kind of write it is.
    #[tokio::test]
    async fn a_host_whose_lease_ran_out_writes_nothing() {
        let server = Server::start(Store::memory().unwrap(), ServerConfig::new("fenced")).await.unwrap();
        let clock = Arc::new(AtomicU64::new(1_000));
        let read = clock.clone();
        let term = Term { duration: Duration::from_secs(5), margin: Duration::from_secs(1) };
        let fence = Fence::with_clock(term, move || Duration::from_secs(read.load(Ordering::Relaxed)));
        let fenced = client(server.client(Identity::admin("host")), &fence);
        let maps: Api<ConfigMap> = Api::namespaced(fenced.clone(), "default");
        let map = |name: &str| serde_json::from_value(json!({"metadata": {"name": name}, "data": {"a": "b"}})).unwrap();
        let create = async |name: &str| maps.create(&PostParams::default(), &map(name)).await;
        let refused = |error: kube::Error| {
            let kube::Error::Service(cause) = error else { panic!("{error:?}") };
            assert!(cause.is::<capwasm_fence::Down>(), "{cause}");
        };

        refused(create("too-early").await.unwrap_err());
        fence.renewed(fence.now());
        let written = create("a").await.unwrap();

        clock.fetch_add(30, Ordering::Relaxed);
        refused(create("b").await.unwrap_err());
        refused(maps.replace("a", &PostParams::default(), &written).await.unwrap_err());
        let merge = Patch::Merge(json!({"data": {"a": "c"}}));
        refused(maps.patch("a", &PatchParams::default(), &merge).await.unwrap_err());
        let apply = Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "d"}}));
        refused(maps.patch("a", &PatchParams::apply("host").force(), &apply).await.unwrap_err());
        refused(maps.delete("a", &DeleteParams::default()).await.unwrap_err());
        refused(maps.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap_err());
        assert_eq!(maps.get("a").await.unwrap(), written, "reads go on, and nothing was written");
    }
}
