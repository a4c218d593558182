//! Cluster API provider docker-infra as a WebAssembly component.
