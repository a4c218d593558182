//! Cluster API core reconcilers.
