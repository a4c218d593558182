//! HTTP responses.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// An HTTP response. A guest has its own bytes, a host (`bytes::Bytes`) those of the connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(serialize = "B: AsRef<[u8]>", deserialize = "B: From<Vec<u8>>"))]
pub struct HttpResponse<B = Vec<u8>> {
    /// Status code, such as 200.
    pub status: u16,
    /// Lower-case names and values, in the order of arrival.
    pub headers: Vec<(String, String)>,
    /// The complete body; may be empty.
    #[serde(with = "crate::payload")]
    pub body: B,
}

impl From<HttpResponse<Bytes>> for HttpResponse {
    fn from(response: HttpResponse<Bytes>) -> HttpResponse {
        HttpResponse { status: response.status, headers: response.headers, body: response.body.into() }
    }
}
