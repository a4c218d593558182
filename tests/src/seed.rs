//! Random moments and samples that can be repeated.

/// `CAPWASM_TEST_SEED` (`cargo xtask test --seed`), or a random one; a failure shows it.
pub fn seed() -> u64 {
    let told = std::env::var("CAPWASM_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = told.unwrap_or_else(rand::random::<u64>);
    eprintln!("CAPWASM_TEST_SEED={seed}");
    seed
}
