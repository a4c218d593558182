//! Workload clusters whose API server misbehaves: the connection says so, and another kubeconfig connects as ever.

use capwasm_test_support::hostile::{Ending, Server, behaviours};

use crate::support::{WorkloadServer, World, until};

fn kubeconfig(server: &Server) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
         clusters: [{{name: c, cluster: {{server: 'http://{}'}}}}]\nusers: [{{name: u, user: {{token: t}}}}]\n",
        server.address
    )
}

/// The limits are the real ones, so nothing that is slow is among them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_hostile_api_server_does_stands_in_words_where_it_is_not_connected() {
    let world = World::start().await;
    world.add_cluster().await;
    for behaviour in behaviours() {
        let words = match (behaviour.name, behaviour.ending) {
            ("a body without end" | "chunks without end", _) => "the API server's answer is larger than 67108864 bytes",
            (_, Ending::Headers | Ending::Broken) if !behaviour.script.first.is_empty() => "",
            _ => continue,
        };
        let server = Server::start(behaviour.script);
        world.set_kubeconfig(&kubeconfig(&server)).await;
        // Readers are not woken by other words for the same reason.
        until(behaviour.name, || async {
            let told = world.pass().await.err().filter(|error| error.reason == "Unreachable");
            server.sent() > 0 && told.is_some_and(|error| error.message.contains(words))
        })
        .await;
    }
    let good = WorkloadServer::start("w").await;
    world.set_kubeconfig(&good.kubeconfig).await;
    world.passes_until("connected", Result::is_ok).await;
    good.stop.cancel();
}
