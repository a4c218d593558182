//! Runs provider components: engine, limits, capabilities.
