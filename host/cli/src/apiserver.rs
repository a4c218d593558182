//! `capwasm apiserver`: the embedded server alone, and its store while nobody has it open.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use capwasm_apiserver::{Finding, Findings, Repaired, check_store, repair_store};
use capwasm_server::diagnostics::Diagnostics;
use capwasm_server::embedded;
use clap::{Args, Subcommand};

use crate::output::{Output, printable};
use crate::{output, signals};

/// Options of `capwasm apiserver`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    server: Option<Embedded>,
}

#[derive(Subcommand)]
enum Command {
    /// Look whether everything in the store is what was written; changes nothing. Exits with 1 when it is not.
    Check(OfStore),
    /// Put a new store of all that can be read in the place of a damaged one, which is kept beside it. Exits with 1 when an
    /// object is lost.
    Repair(OfStore),
}

#[derive(Args)]
struct OfStore {
    /// The data folder. No server may run on it.
    #[arg(long)]
    data_dir: PathBuf,
    #[command(flatten)]
    output: Output,
}

/// Options of every command that runs the embedded server.
#[derive(Args, Clone, Debug)]
pub struct Embedded {
    /// Folder of everything that outlives the process.
    #[arg(long)]
    data_dir: PathBuf,
    /// Address to listen on. Port 0 picks a free one; the kubeconfig says which.
    #[arg(long, default_value = "127.0.0.1:6443")]
    listen: SocketAddr,
    /// Where to write the admin kubeconfig (mode 0600). Default: `kubeconfig` in the data folder.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
}

impl Embedded {
    pub fn server(&self) -> embedded::Options {
        embedded::Options { data_dir: self.data_dir.clone(), listen: self.listen, kubeconfig: self.kubeconfig.clone() }
    }
}

/// Serves until SIGINT or SIGTERM, or does what is asked for with the store.
pub async fn run(options: Options) -> Result<ExitCode> {
    match options {
        Options { command: Some(Command::Check(of)), .. } => tokio::task::spawn_blocking(move || check(&of)).await?,
        Options { command: Some(Command::Repair(of)), .. } => tokio::task::spawn_blocking(move || repair(&of)).await?,
        Options { server: Some(server), .. } => serve(&server).await.map(|()| ExitCode::SUCCESS),
        // clap asks for the data folder.
        Options { command: None, server: None } => Ok(ExitCode::FAILURE),
    }
}

async fn serve(options: &Embedded) -> Result<()> {
    let shutdown = signals::shutdown()?;
    let server = embedded::start(&options.server(), &Diagnostics::default()).await?;
    let kubeconfig = server.kubeconfig.display();
    output::write(&format!("capwasm apiserver is ready on {} (kubeconfig: {kubeconfig})\n", server.url))?;
    shutdown.cancelled().await;
    server.stop().await
}

impl OfStore {
    fn path(&self) -> PathBuf {
        self.data_dir.join(embedded::STORE)
    }

    fn findings(&self) -> Result<Findings> {
        // What panics on damaged pages is an error that is told.
        std::panic::set_hook(Box::new(|_| {}));
        check_store(&self.path()).with_context(|| format!("unable to check {}", self.path().display()))
    }
}

fn check(of: &OfStore) -> Result<ExitCode> {
    let findings = of.findings()?;
    of.output.print(&findings, |findings| checked(of, findings))?;
    Ok(if findings.sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn repair(of: &OfStore) -> Result<ExitCode> {
    let findings = of.findings()?;
    if findings.sound() {
        let untouched = Repaired { kept: findings.objects, ..Repaired::default() };
        of.output.print(&untouched, |_| checked(of, &findings))?;
        return Ok(ExitCode::SUCCESS);
    }
    let repaired = repair_store(&of.path()).with_context(|| {
        let path = of.path();
        format!("unable to repair {}, which is as it was", path.display())
    })?;
    of.output.print(&repaired, mended)?;
    Ok(if repaired.lost.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn checked(of: &OfStore, findings: &Findings) -> String {
    let mut text = String::new();
    lines(&mut text, "damaged", &findings.damaged);
    if findings.unreadable_versions > 0 {
        let _ = writeln!(text, "{} versions cannot be read, superseded ones among them", findings.unreadable_versions);
    }
    if let Some(pages) = &findings.pages {
        let _ = writeln!(text, "the database: {}", printable(pages));
    }
    let _ = match findings.sound() {
        true => writeln!(text, "{} objects, and nothing is damaged", findings.objects),
        false => writeln!(text, "To mend it: capwasm apiserver repair --data-dir {}", of.data_dir.display()),
    };
    text
}

fn mended(repaired: &Repaired) -> String {
    let mut text = String::new();
    lines(&mut text, "restored", &repaired.restored);
    lines(&mut text, "lost", &repaired.lost);
    let _ = writeln!(text, "{} objects are as they were. What was is in {}", repaired.kept, repaired.before.display());
    text
}

fn lines(text: &mut String, what: &str, findings: &[Finding]) {
    for Finding { object, why } in findings {
        let _ = writeln!(text, "{what} {}: {}", printable(object), printable(why));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn it_serves_checks_or_repairs_and_asks_for_the_folder() {
        let of = |line: &str| Line::try_parse_from(line.split(' ')).map(|line| line.options);
        assert!(matches!(of("apiserver --data-dir d"), Ok(Options { server: Some(_), command: None })));
        assert!(matches!(
            of("apiserver check --data-dir d -o json"),
            Ok(Options { command: Some(Command::Check(_)), .. })
        ));
        assert!(matches!(of("apiserver repair --data-dir d"), Ok(Options { command: Some(Command::Repair(_)), .. })));
        for line in ["apiserver", "apiserver check", "apiserver --listen 127.0.0.1:1", "apiserver --data-dir d check"] {
            assert!(of(line).is_err(), "{line}");
        }
    }

    #[test]
    fn what_is_damaged_is_told_in_lines_with_what_to_do() {
        let of = OfStore { data_dir: "d".into(), output: Output::default() };
        let damaged = vec![Finding { object: "things/a/b".into(), why: "its checksum is another".into() }];
        let sound = Findings { objects: 3, ..Findings::default() };
        assert_eq!(checked(&of, &sound), "3 objects, and nothing is damaged\n");
        let found = Findings { damaged: damaged.clone(), unreadable_versions: 1, pages: Some("pages".into()), ..sound };
        let told = "damaged things/a/b: its checksum is another\n1 versions cannot be read, superseded ones among them\n\
            the database: pages\nTo mend it: capwasm apiserver repair --data-dir d\n";
        assert_eq!(checked(&of, &found), told);
        let repaired = Repaired { kept: 2, restored: Vec::new(), lost: damaged, before: "d/x".into() };
        assert_eq!(
            mended(&repaired),
            "lost things/a/b: its checksum is another\n2 objects are as they were. What was is in d/x\n"
        );
    }
}
