//! Every input that is kept has to be taken by its target: what fuzzing once found stays mended. Proves part 5 of the provider
//! lifecycle: corpora are replayed in CI.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Bytes of all corpora together: they are kept in the repository.
const MOST: u64 = 500 << 10;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn inputs(target: &str) -> Vec<PathBuf> {
    let folder = folder().join(target);
    let entries = folder.read_dir().unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty: nothing is proven", folder.display());
    files
}

fn replay(target: &str) {
    let run = capwasm_fuzz::target(target).expect("a target").run;
    let refused: Vec<PathBuf> = inputs(target)
        .into_iter()
        .filter(|file| {
            let input = std::fs::read(file).unwrap();
            catch_unwind(AssertUnwindSafe(|| run(&input))).is_err()
        })
        .collect();
    assert!(refused.is_empty(), "the target {target} panics with {refused:#?}");
}

macro_rules! replayed {
    ($($target:ident)+) => {
        /// Nobody adds a target without its test.
        #[test]
        fn every_target_is_replayed() {
            assert_eq!(capwasm_fuzz::TARGETS.map(|target| target.name), [$(stringify!($target)),+]);
        }

        mod every_input_is_taken_by_the_target {
            $(
                #[test]
                fn $target() {
                    super::replay(stringify!($target));
                }
            )+
        }
    };
}

replayed!(
    loader descriptor outcome write_back origin endpoint narrowing reference artifact recording kubeconfig
    cloud_config clouds cel apply resume etcd
);

#[test]
fn hostile_components_are_taken_by_the_loader() {
    let hostile = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/hostile");
    let run = capwasm_fuzz::target("loader").expect("a target").run;
    let mut count = 0;
    for entry in hostile.read_dir().unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_some_and(|extension| extension == "wat") {
            run(&wat::parse_file(&file).unwrap());
            count += 1;
        }
    }
    assert!(count > 10, "only {count} in {}", hostile.display());
}

#[test]
fn corpora_are_small_and_belong_to_a_target() {
    let mut size = 0;
    for entry in folder().read_dir().unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(capwasm_fuzz::target(&name).is_some(), "corpus/{name} belongs to no target");
        size += inputs(&name).iter().map(|file| file.metadata().unwrap().len()).sum::<u64>();
    }
    assert!(size < MOST, "the corpora have {size} bytes; keep what finds something");
}
