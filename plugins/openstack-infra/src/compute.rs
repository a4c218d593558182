//! Typed calls of Nova.
