//! `cargo xtask test`: tests in two tiers, their counts, and loudly what did not run.
//!
//! The first tier is what every change must pass. The second has the parts of [`Part`]: foreign builds, real clouds, whole fault
//! matrices. A test of a part asks for it by name (`capwasm_tests::skip`) and is told, not counted, where the part is left out.

mod binaries;
mod part;
mod report;
mod run;

use crate::{build, kubeadm, openstack, setup};
use anyhow::{Result, bail};
use clap::Args;
use part::Part;
use report::Told;
use std::process::Command;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Options of `cargo xtask test`.
#[derive(Args)]
pub struct Options {
    /// Both tiers: all parts, too. What a part needs is installed, built and started first; that takes up to an hour, once.
    #[arg(long)]
    all: bool,
    /// Only the test binaries of a part of the second tier. May be given again.
    #[arg(long, value_enum, conflicts_with = "all")]
    only: Vec<Part>,
    /// Leave a part out. May be given again.
    #[arg(long, value_enum)]
    skip: Vec<Part>,
    /// Install nothing, start nothing.
    #[arg(long)]
    no_install: bool,
    /// How many test binaries run beside each other: most of them wait most of the time.
    #[arg(long, default_value_t = 2 * std::thread::available_parallelism().map_or(1, usize::from))]
    jobs: usize,
    /// Repeats the random moments and samples of a run; a run prints its own.
    #[arg(long, default_value_t = seed())]
    seed: u64,
    /// Run only tests whose name contains this.
    filter: Option<String>,
}

impl Options {
    /// The parts that run, as far as the machine has what they need.
    fn parts(&self) -> Vec<Part> {
        let wanted = |part: &Part| (self.all || self.only.contains(part)) && !self.skip.contains(part);
        Part::ALL.into_iter().filter(wanted).collect()
    }
}

/// Runs the tests; an error when one fails.
pub fn run(options: &Options) -> Result<()> {
    let started = Instant::now();
    let mut parts = options.parts();
    // Real services of OpenStack start while everything is built.
    let mut services = (parts.contains(&Part::Openstack) && setup::has_python(options.no_install))
        .then(|| openstack::Services::start(!options.no_install));
    let wanted = setup::Options {
        no_install: options.no_install,
        docker: parts.contains(&Part::Docker),
        kubeadm: parts.contains(&Part::Kubeadm),
    };
    let machine = setup::run(&wanted)?;
    parts.retain(|part| match part {
        Part::Docker => machine.docker,
        Part::Kubeadm => machine.kubeadm,
        _ => true,
    });
    build::plugins_and_samples()?;
    let mut binaries = binaries::build()?;
    if !options.only.is_empty() {
        binaries.retain(|binary| options.only.iter().any(|part| part.binaries().contains(&&*binary.name)));
    }
    eprintln!("{} test binaries after {}", binaries.len(), run::clock(started.elapsed()));

    let skips = build::target().join("skipped-tests.txt");
    let mut environment = vec![
        ("CAPWASM_SKIPS", skips.clone().into_os_string()),
        ("CAPWASM_PREBUILT", "1".into()),
        ("CAPWASM_KUBEADM", kubeadm::folder().into()),
        ("CAPWASM_TEST_SEED", options.seed.to_string().into()),
    ];
    if !machine.kubectl {
        environment.push(("CAPWASM_SKIP_KUBECTL", "1".into()));
    }
    // They had all the time of the build to start.
    match services.as_mut().and_then(openstack::Services::wait) {
        Some(clouds) => environment.push(("CAPWASM_OPENSTACK", clouds.into())),
        None => parts.retain(|part| *part != Part::Openstack),
    }
    let names: Vec<&str> = parts.iter().map(|part| part.name()).collect();
    environment.push(("CAPWASM_PARTS", names.join(",").into()));
    eprintln!(
        "--seed {}; parts of the second tier: {}",
        options.seed,
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    );

    std::fs::write(&skips, "")?;
    let mut results = run::all(binaries, options.jobs, &environment, options.filter.as_deref())?;
    if options.only.is_empty() {
        results.push(doc_tests(&environment, options.filter.as_deref())?);
    }
    let told = Told::read(&std::fs::read_to_string(&skips).unwrap_or_default());
    drop(services);
    report::print(&results, &told, started.elapsed());
    if let Some(problem) = told.not_in_the_tables() {
        bail!("{problem}");
    }
    report::verdict(&results)
}

/// Examples in the documentation: cargo's own run, as rustdoc builds and runs them.
fn doc_tests(environment: &[(&str, std::ffi::OsString)], filter: Option<&str>) -> Result<run::Outcome> {
    let mut command: Command = build::cargo();
    command.args(["test", "--workspace", "--doc", "--quiet", "--no-fail-fast"]).args(filter);
    run::one("documentation", command.envs(environment.iter().map(|(name, value)| (name, value))))
}

fn seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos().into())
}
