//! `cargo xtask test`: all tests, their counts, and loudly what did not run.

use crate::{build, kubeadm, openstack, setup, shell};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

/// Options of `cargo xtask test`.
#[derive(Args)]
pub struct Options {
    /// Install nothing, start nothing.
    #[arg(long)]
    no_install: bool,
    /// Leave a part out: `docker`, `kubectl`, `kubeadm` or `openstack`. May be given again.
    #[arg(long, value_parser = ["docker", "kubectl", "kubeadm", "openstack"])]
    skip: Vec<String>,
    /// Run only tests whose name contains this.
    filter: Option<String>,
}

/// Runs the tests; an error when one fails.
pub fn run(options: &Options) -> Result<()> {
    let skipped = |part: &str| options.skip.iter().any(|skip| skip == part);
    // Real services of OpenStack start while everything is built.
    let mut services = (!skipped("openstack") && setup::has_python(options.no_install))
        .then(|| openstack::Services::start(!options.no_install));
    let machine = setup::run(&setup::Options { no_install: options.no_install, skip_kubeadm: skipped("kubeadm") })?;
    build::plugins()?;
    // Binaries and tests in one selection: another would have other features of what they share, and compile it twice.
    shell::run(build::cargo().args(["build", "--workspace", "--bins", "--tests"]))?;

    // Tests that cannot run write a line here: libtest would swallow it.
    let skips = build::target().join("skipped-tests.txt");
    std::fs::write(&skips, "").with_context(|| format!("unable to write {}", skips.display()))?;
    let mut command = build::cargo();
    command.args(["test", "--workspace", "--no-fail-fast"]);
    command.env("CAPWASM_SKIPS", &skips).env("CAPWASM_PREBUILT", "1");
    command.env("CAPWASM_KUBEADM", kubeadm::folder());
    for (part, there) in [("docker", machine.docker), ("kubectl", machine.kubectl), ("kubeadm", machine.kubeadm)] {
        if !there || skipped(part) {
            command.env(format!("CAPWASM_SKIP_{}", part.to_uppercase()), "1");
        }
    }
    // They had all the time of the build to start.
    match services.as_mut().and_then(openstack::Services::wait) {
        Some(clouds) => command.env("CAPWASM_OPENSTACK", clouds),
        None => command.env("CAPWASM_SKIP_OPENSTACK", "1"),
    };
    if let Some(filter) = &options.filter {
        command.arg(filter);
    }
    let mut child = command.stdout(Stdio::piped()).spawn().context("unable to start cargo test")?;
    let output = child.stdout.take().context("cargo test has no output")?;
    let mut counts = Counts::default();
    for line in BufReader::new(output).lines() {
        let line = line?;
        counts.read(&line);
        println!("{line}");
    }
    let status = child.wait()?;
    let skipped = std::fs::read_to_string(&skips).unwrap_or_default();
    let mut skipped: Vec<_> = skipped.lines().collect();
    skipped.sort_unstable();
    skipped.dedup();
    for line in &skipped {
        println!("SKIPPED: {line}");
    }
    println!(
        "{} passed, {} failed, {} skipped",
        counts.passed.saturating_sub(skipped.len()),
        counts.failed,
        counts.ignored + skipped.len()
    );
    std::io::stdout().flush()?;
    if !status.success() || counts.failed > 0 {
        bail!("tests failed");
    }
    if counts.passed == 0 {
        bail!("no test ran");
    }
    Ok(())
}

/// What the `test result:` lines add up to.
#[derive(Default)]
struct Counts {
    passed: usize,
    failed: usize,
    ignored: usize,
}

impl Counts {
    fn read(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix("test result: ") else { return };
        for part in rest.split(['.', ';']) {
            let mut words = part.split_whitespace();
            let (Some(Ok(number)), Some(what)) = (words.next().map(str::parse::<usize>), words.next()) else {
                continue;
            };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Counts;

    #[test]
    fn result_lines_are_added_up() {
        let mut counts = Counts::default();
        counts.read("test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.01s");
        counts
            .read("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s");
        counts.read("test some::name ... ok");
        assert_eq!((counts.passed, counts.failed, counts.ignored), (15, 2, 1));
    }
}
