//! `cargo xtask kinds`: the API server's table of built-in kinds, made from what Kubernetes publishes.
//!
//! Which kinds there are to be, and what nobody publishes of them, stands in `selection.txt` beside the table. The OpenAPI
//! documents of `k8s.io/kubernetes` say resource names, types, list types, merge keys and defaults. Numbers on the wire, and what
//! is a pointer, are in the tags of the Go structs that `generated.proto` is made of.

mod go;
mod message;
mod openapi;

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use self::go::Modules;
use self::message::Messages;
use self::openapi::OpenApi;
use crate::build;

/// Options of `cargo xtask kinds`.
#[derive(Args)]
pub struct Options {
    /// Write nothing; fail when the table is not what would be written.
    #[arg(long)]
    check: bool,
}

/// Makes the table, or checks it. Needs Go, and the network where its module cache is empty.
pub fn run(options: &Options) -> Result<()> {
    let folder = build::root().join("host/apiserver/src/builtin");
    let selection = read(folder.join("selection.txt"))?;
    let table = table(&selection, &Modules::download()?)?;
    let place = folder.join("table.txt");
    if options.check {
        ensure!(read(place)? == table, "the table of built-in kinds is out of date: run `cargo xtask kinds`");
        return Ok(());
    }
    std::fs::write(&place, table).with_context(|| format!("unable to write {}", place.display()))
}

fn read(file: PathBuf) -> Result<String> {
    std::fs::read_to_string(&file).with_context(|| format!("unable to read {}", file.display()))
}

fn table(selection: &str, modules: &Modules) -> Result<String> {
    let mut openapi = OpenApi::new(modules);
    let mut rows = String::new();
    let mut roots = Vec::new();
    let lines = selection.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        let mut words = line.split(' ');
        let (Some(what), Some(version), Some(kind)) = (words.next(), words.next(), words.next()) else {
            bail!("`{line}` names no kind")
        };
        let component = openapi.component(version, kind)?;
        write!(rows, "{line}")?;
        match what {
            "kind" => write!(rows, " {}", openapi.resource(version, kind)?)?,
            "body" => {}
            _ => bail!("`{line}` is neither a kind nor a body"),
        }
        writeln!(rows, " of={}", message::short(&component))?;
        roots.push(component);
    }
    let mut messages = Messages::new(&openapi, modules);
    for root in roots {
        messages.add(&root)?;
    }
    let version = modules.kubernetes();
    let head =
        format!("# Made by `cargo xtask kinds` from Kubernetes {version}: see builtin/table.rs for how to read it.");
    Ok(format!("{head}\n\n{rows}{}", messages.finish()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use capwasm_test_support::skip;

    #[test]
    fn the_table_of_built_in_kinds_is_what_kubernetes_publishes() {
        const TEST: &str = "the_table_of_built_in_kinds_is_what_kubernetes_publishes";
        if !skip::part("go", TEST) {
            return;
        }
        if let Err(error) = std::process::Command::new("go").arg("version").output() {
            return skip::skip(TEST, &format!("go cannot be started: {error}"));
        }
        super::run(&super::Options { check: true }).unwrap();
    }
}
