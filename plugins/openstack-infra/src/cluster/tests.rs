//! The cluster against a scripted OpenStack, pass after pass.
