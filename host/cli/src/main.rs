//! capwasm
fn main() {}
