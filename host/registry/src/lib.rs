//! Providers as OCI artifacts: one repository of a registry or a folder, and who signed what is in it.
//!
//! An artifact is an image manifest in the CNCF's layout for WebAssembly (a config of
//! `application/vnd.wasm.config.v0+json` and one layer `application/wasm`). Signatures are cosign's with key pairs: a second
//! manifest beside it, tagged with the digest of what it signs.
//!
//! Nothing that comes from a registry is trusted: every read has a cap, every blob its digest, and a signature is checked on
//! the digest of the manifest before a byte of the manifest is parsed.
//!
//! Not the crate `oci-client` (as of 0.18): it holds a manifest, a token and the text of an error whole before anything can look at
//! their size; it leaves redirects to reqwest, without a way to say which are followed; it has no limit for the time of a whole
//! answer, takes no identity token as `docker login` keeps them (OAuth 2), and knows no folders (OCI image layouts). Its referrers API
//! is not needed, since signatures are found by their tags. reqwest would come with it, beside the HTTP client that is here.
//!
//! ```
//! use capwasm_registry::{Artifact, Layout, Reference, Verification, pull};
//! # use bytes::Bytes;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let reference: Reference = "registry.example.com/team/provider:1.0".parse()?;
//! let folder = Layout::create(folder.path())?.repository(&reference);
//! let component = Bytes::from_static(b"\0asm\x0d\0\x01\0");
//! Artifact::build(component.clone(), Default::default())?.push(&folder, &reference).await?;
//! let pulled = pull(&folder, &reference, &Verification::None, 64 << 20).await?;
//! assert_eq!(pulled.component, component);
//! # Ok(())
//! # })
//! # }
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests"))]

mod artifact;
mod copy;
mod credentials;
mod digest;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod layout;
mod manifest;
mod reference;
mod remote;
mod sign;
mod store;

pub use artifact::{Artifact, LARGEST_COMPONENT, Pulled, pull, resolve};
pub use copy::copy;
pub use credentials::{Credentials, DockerConfig};
pub use digest::Digest;
pub use error::Error;
pub use layout::{Layout, LayoutRepository};
pub use manifest::Descriptor;
pub use reference::{Reference, ReferenceError, Version};
pub use remote::{Access, Repository};
pub use sign::blob::{sign_blob, verify_blob};
pub use sign::key::{KeyError, PrivateKey, PublicKey};
pub use sign::{Verification, sign, verify};
pub use store::Store;
