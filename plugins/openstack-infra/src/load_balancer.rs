//! Typed calls of Octavia.
