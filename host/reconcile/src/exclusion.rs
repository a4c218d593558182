//! What never runs at the same time.
