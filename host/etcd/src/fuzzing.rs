//! Internals for the fuzz targets in `fuzz/`. Not a stable API.

use std::convert::Infallible;

use bytes::Bytes;
use http::uri::PathAndQuery;
use tonic::body::Body;
use tonic_prost::ProstCodec;

use crate::client::said;

/// What a client takes an answer for: `body` with gRPC's framing, and its headers and trailers.
///
/// # Errors
/// What a caller is told, when it is no answer.
pub async fn answered<A>(answer: http::Response<Body>) -> Result<A, String>
where
    A: prost::Message + Default + 'static,
{
    let mut answer = Some(answer);
    let channel = tower::service_fn(move |_: http::Request<Body>| {
        let answer = answer.take().unwrap_or_default();
        async move { Ok::<_, Infallible>(answer) }
    });
    let request = tonic::Request::new(crate::message::StatusRequest {});
    let path = PathAndQuery::from_static("/etcdserverpb.Maintenance/Status");
    let codec = ProstCodec::<crate::message::StatusRequest, A>::default();
    let answer = tonic::client::Grpc::new(channel).unary(request, path, codec).await;
    answer.map(tonic::Response::into_inner).map_err(|status| said(&status))
}

/// An answer of these headers, body and trailers.
pub fn answer(headers: http::HeaderMap, body: Bytes, trailers: http::HeaderMap) -> http::Response<Body> {
    use http_body_util::BodyExt as _;
    let body = http_body_util::Full::new(body).with_trailers(std::future::ready(Some(Ok(trailers))));
    let mut answer = http::Response::new(Body::new(body));
    *answer.headers_mut() = headers;
    answer
}
