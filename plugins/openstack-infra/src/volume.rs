//! Typed calls of Cinder.
