//! Gate, apply, queue and cache: observed state in, a plan out, one executor.
