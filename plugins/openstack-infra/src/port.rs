//! Ports and trunks of servers.
