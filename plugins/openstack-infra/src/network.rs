//! Typed calls of Neutron.
