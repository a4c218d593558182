//! When a key runs.
