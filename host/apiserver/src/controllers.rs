//! Controllers: tasks that react to writes, without threads of their own.
//!
//! One task per server receives all events of its keyspace and passes each to the modules below. They keep
//! little state: the garbage collector an index of owners, the others none. So an idle server costs one
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
