//! Reads serving certificates without verification.

use std::sync::Arc;

use capwasm_pki::Unverified;
use rustls::{
    ClientConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName},
};
use tokio::io::DuplexStream;
use tokio_rustls::TlsConnector;

use crate::forward::{ForwardError, Forwarder, PodPort};

/// Certificate (PEM) that a port presents in a TLS handshake. Only possession of the key is verified.
pub(crate) async fn certificate(forwarder: &Forwarder, at: PodPort<'_>) -> Result<String, ForwardError> {
    let der = forwarder.reach(at, |stream| async move { shown(stream).await.map_err(|error| at.tls_error(error)) });
    Ok(capwasm_pki::certificate_pem(&der.await?))
}

async fn shown(stream: DuplexStream) -> std::io::Result<CertificateDer<'static>> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(std::io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Unverified(provider)))
        .with_no_client_auth();
    // Sent to nobody who would choose by it: what is asked is the port's only certificate, or its default one.
    let name = ServerName::IpAddress(std::net::IpAddr::from([127, 0, 0, 1]).into());
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let leaf = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first()).cloned();
    leaf.map(CertificateDer::into_owned).ok_or_else(|| std::io::Error::other("it shows no certificate"))
}
