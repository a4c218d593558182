//! SDK for provider authors.
