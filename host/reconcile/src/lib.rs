//! Observed state in, a plan out, one executor: the machinery that every controller of the host shares.
//!
//! ```text
//! watch ─► cache ─► interests ─► queue ─► reconcile(view) ─► plan ─► executor ─► API server
//!            ▲                                   │ reads are remembered          │
//!            └───────────────────────────────────┴── a key runs again only when ◄┘
//!                                                    the cache shows its writes
//! ```
//!
//! It knows Kubernetes' API conventions and nothing of Cluster API. The pieces, each usable and tested on its own:
//!
//! - [`cache`]: one watch per kind and process, encoded objects, indexed by label and owner;
//! - [`interests`]: who read what, so that a change wakes exactly the keys that saw the old state;
//! - [`queue`], `fair_queue` and [`exclusion`]: when a key runs, whose turn it is, and what never runs at the same time;
//! - [`apply`]: a [`Plan`] becomes ordered requests, and nothing is written when nothing differs;
//! - [`manager`]: the loop that ties them together, for any number of controllers, at run time.

pub mod apply;
pub mod cache;
pub mod exclusion;
mod fair_queue;
pub mod interests;
pub mod kind;
pub mod manager;
pub mod metrics;
pub mod plan;
pub mod queue;
mod reconciler;
pub mod selector;
pub mod status_delay;
mod trace;
pub mod view;

pub use apply::{Applied, Executor, Unavailable, Workloads};
pub use cache::{Cache, CacheError};
pub use interests::{Interests, Token};
pub use kind::{ClusterId, Key, Kind, Source};
pub use manager::{ControllerHandle, Manager, ManagerOptions, WorkerSlots};
pub use metrics::Metrics;
// What plans and results are made of, in the contract's words.
pub use capwasm_contract::{Event, Refusal, Refused};
pub use plan::{Action, Operation, Place, Plan, Propagation, Results, Target, Verdict};
pub use reconciler::{Pass, ReconcileError, Reconciler};
pub use selector::Selector;
pub use view::View;
