//! What the simulated services and their nodes stand on: [loopback addresses](address) of their own, a [load balancer](balancer)
//! that really proxies TCP, [failures on request](faults), and the [client](docker) of a container engine.

pub mod address;
pub mod balancer;
pub mod docker;
pub mod faults;
