//! What an HTTP request is answered with.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// One whole response. Its body is a guest's own bytes, or in a host (`bytes::Bytes`) those of the connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(serialize = "B: AsRef<[u8]>", deserialize = "B: From<Vec<u8>>"))]
pub struct HttpResponse<B = Vec<u8>> {
    /// The status code: 200.
    pub status: u16,
    /// Names in lower case, and values, in the order of arrival.
    pub headers: Vec<(String, String)>,
    /// All of it; may be empty.
    #[serde(with = "crate::payload")]
    pub body: B,
}

impl From<HttpResponse<Bytes>> for HttpResponse {
    fn from(response: HttpResponse<Bytes>) -> HttpResponse {
        HttpResponse { status: response.status, headers: response.headers, body: response.body.into() }
    }
}
