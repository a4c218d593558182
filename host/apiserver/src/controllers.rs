//! What runs beside the requests: tasks that react to what was written, and no threads.
//!
//! One task per server listens to everything in its keyspace and hands each event to the small parts below. They keep
//! little: the garbage collector an index of owners, the others nothing. So a server in which nothing happens costs a
//! sleeping task.

mod bootstrap;
mod certificates;
mod cleanup;
mod expiry;
mod garbage;
mod namespaces;
mod work;

pub(crate) use bootstrap::bootstrap;
pub(crate) use work::start;
