//! Core Cluster API kinds, conditions and contract accessors.
