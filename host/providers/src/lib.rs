//! Reconciles provider kinds by calling WebAssembly components.
//!
//! ```text
//! WasmProvider ─► loader: file, digest, grants, CRDs ─► a controller per kind
//!                                                          │
//! object ─► belongings ─► gate (pure) ─► guest call ─► write-back by contract (pure) ─► plan
//! ```
//!
//! The guest sees the object, its facts and what it was granted; the host keeps owner, pause, finalizer, readiness and
//! the shape of the Cluster API contract. Core does not know that any of this exists.

mod admission;
mod artifacts;
mod belongings;
mod components;
mod conversion;
mod crd;
mod draft;
mod etcd;
mod field;
#[doc(hidden)]
pub mod fuzzing;
mod gate;
mod generation;
mod host_keys;
mod layout;
mod lifecycle;
mod loader;
mod metrics;
mod own_paths;
mod own_secrets;
mod reads;
mod reconciler;
mod record;
pub mod rehearse;
mod related;
mod role;
pub mod wasm_provider;
mod write_back;

pub use admission::{Admissions, AdmittedKind, NotAdmitted};
pub use artifacts::{ArtifactRequest, Artifacts, FetchError, Fetched};
pub use components::{ComponentError, Components};
pub use conversion::{Conversions, NotConverted};
pub use crd::{PROVIDER as PROVIDER_LABEL, Serving, of_provider as crds, served, widened};
pub use loader::{FolderWatch, Found, Loader, LoaderDependencies, ProviderFiles};
pub use metrics::{CallMetrics, SwapMetrics};
pub use record::{FileOptions, FolderError, RecordingFolder, RecordingMetrics, Recordings};
