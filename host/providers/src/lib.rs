//! Reconciles provider kinds by calling WebAssembly components.
