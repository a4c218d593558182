//! Serves an API server from a folder until it is interrupted: `cargo run -p capwasm-apiserver --example serve -- DIR [ADDR]`.

use std::error::Error;
use std::path::PathBuf;

use capwasm_apiserver::{Server, ServerConfig, Store, pki};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir = PathBuf::from(arguments.next().ok_or("usage: serve DIR [ADDR]")?);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:6443".to_owned());
    let pki = pki::ensure(&dir, &["localhost".to_owned(), "127.0.0.1".to_owned()])?;
    let store = Store::open(&dir.join("store.redb"), 16 << 20)?;
    let server = Server::start(store, ServerConfig::new("management")).await?;
    let listener = tokio::net::TcpListener::bind(address).await?;
    let url = format!("https://{}", listener.local_addr()?);
    let kubeconfig = dir.join("kubeconfig");
    pki::write_private(&kubeconfig, &pki.admin_kubeconfig(&url)?)?;
    println!("ready: KUBECONFIG={} {url}", kubeconfig.display());
    let stop = CancellationToken::new();
    let interrupted = stop.clone();
    tokio::spawn(async move {
        // Without the signal there is nothing to do; with or without an error, it ends.
        let _ = tokio::signal::ctrl_c().await;
        interrupted.cancel();
    });
    server.serve(listener, pki.tls(), stop).await?;
    server.shutdown().await;
    Ok(())
}
