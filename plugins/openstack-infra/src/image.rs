//! Typed calls of Glance.
