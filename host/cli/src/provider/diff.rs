//! `capwasm provider diff`: what another component would have done in calls of the one that serves.
//!
//! From recordings, by itself; where there are none, from what a host that rehearses the component tells in the WasmProvider.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use capwasm_object::json;
use capwasm_providers::RecordingFolder;
use capwasm_providers::rehearse::{Paint, With, rehearse};
use capwasm_providers::wasm_provider::history::{History, Rehearsal};
use capwasm_providers::wasm_provider::{self, UpdatePolicy};
use capwasm_runtime::Limits;
use capwasm_runtime::record::Recording;
use clap::Args;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use serde_json::Value;

use crate::compile;
use crate::kubeconfig::Connection;
use crate::output::{Output, printable};
use crate::replay::DIFFERS;

/// Where `capwasm up --data-dir ./data` records.
const BESIDE: &str = "data/recordings";

/// Options of `capwasm provider diff`.
#[derive(Args)]
#[command(after_help = "Ends with 0 when nothing differs, 3 when something does, 1 when nothing could be compared.")]
pub struct Options {
    /// Name of the provider.
    name: String,
    /// The other component.
    file: PathBuf,
    /// Folder of recordings. Default: where the host of the management cluster records, or ./data/recordings; with no call in either,
    /// what the host says that has this component rehearse.
    #[arg(long, value_name = "DIR")]
    recordings: Option<PathBuf>,
    /// Look at this many recorded calls, the last ones; 0 is all.
    #[arg(long, default_value_t = 1_000)]
    last: usize,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    output: Output,
}

pub async fn run(options: Options) -> Result<ExitCode> {
    let bytes = compile::read(&options.file)?;
    let same = match compared(&options, &capwasm_runtime::digest(&bytes)).await? {
        Compared::Recordings(recordings) => {
            // Limits of the last call: those that the next one would have, too.
            let limits = recordings.last().map(|newest| newest.limits.clone()).unwrap_or_default();
            let candidate = compile::load(&options.file, &bytes, Limits { concurrency: 1, ..limits }).await?;
            let name = &candidate.descriptor().name;
            if *name != options.name {
                bail!("{} is provider {name}, not {}", options.file.display(), options.name);
            }
            let report = rehearse(&candidate, &With::default(), &recordings).await;
            options.output.print(&report, |report| report.people(Paint::of_stdout()))?;
            report.is_empty()
        }
        Compared::ByHost(rehearsal) => {
            options.output.print(&rehearsal, |rehearsal| {
                // The host has made it fit for a terminal, but others may write the object.
                let lines = rehearsal.summary.lines().map(|line| printable(line) + "\n").collect::<String>();
                format!("rehearsed by the host\n{lines}")
            })?;
            rehearsal.differences == 0
        }
    };
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::from(DIFFERS) })
}

/// Source of the comparison.
enum Compared {
    /// At least one recorded call, to be rehearsed here.
    Recordings(Vec<Recording>),
    /// Result of a rehearsal by the host.
    ByHost(Rehearsal),
}

async fn compared(options: &Options, digest: &str) -> Result<Compared> {
    let recorded = |folder: &Path| -> Result<Option<Compared>> {
        let found = RecordingFolder::open(folder)?.last(&options.name, options.last)?;
        Ok((!found.is_empty()).then_some(Compared::Recordings(found)))
    };
    let name = &options.name;
    if let Some(folder) = &options.recordings {
        return recorded(folder)?.with_context(|| {
            format!(
                "no call of provider {name} is recorded in {}: start the host with --record DIR, or set spec.record of its \
                 WasmProvider",
                folder.display()
            )
        });
    }
    let provider = find(options).await;
    let told = provider.as_ref().ok().and_then(|object| json::text(object, "/status/recordingsFolder"));
    let folders: Vec<PathBuf> = told.map(PathBuf::from).into_iter().chain([PathBuf::from(BESIDE)]).collect();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        if let Some(found) = recorded(folder)? {
            eprintln!("compared with the calls in {}", folder.display());
            return Ok(found);
        }
    }
    let provider = provider.context(format!(
        "there are no recordings in ./{BESIDE} and no host to ask: name a folder of recordings with --recordings, or the host's cluster \
         with --kubeconfig"
    ))?;
    match by_host(&provider, digest) {
        Some(rehearsal) => Ok(Compared::ByHost(rehearsal)),
        None => Err(anyhow!(advice(options, &provider, digest))),
    }
}

async fn find(options: &Options) -> Result<Value> {
    let gvk = GroupVersionKind::gvk(wasm_provider::GROUP, "v1alpha1", wasm_provider::KIND);
    let api: Api<DynamicObject> = Api::all_with(options.connection.client().await?, &ApiResource::from_gvk(&gvk));
    let found =
        api.get_opt(&options.name).await.context("unable to read WasmProviders: does capwasm run on this cluster?")?;
    let found =
        found.with_context(|| format!("there is no WasmProvider {:?}; see `capwasm provider list`", options.name))?;
    Ok(serde_json::to_value(found)?)
}

/// The host's rehearsal of this component, if there is one.
fn by_host(provider: &Value, digest: &str) -> Option<Rehearsal> {
    let candidate = History::of(provider).candidate.filter(|candidate| candidate.component.digest == digest)?;
    candidate.rehearsal.filter(|rehearsal| rehearsal.calls > 0)
}

/// Advice when there is nothing to compare with.
fn advice(options: &Options, provider: &Value, digest: &str) -> String {
    let (name, file) = (&options.name, options.file.display());
    let text = |pointer: &str| json::text(provider, pointer).unwrap_or_default();
    if text("/status/active/digest") == digest {
        return format!("{file} is the component that serves as {name}: there is nothing to compare");
    }
    if text("/status/candidate/digest") == digest
        && History::of(provider).candidate.is_some_and(|c| c.waits_for_approval())
    {
        return format!(
            "the host rehearses {file} on each call of {name} from now on, and there was none yet: change one of its objects, or wait, \
             and ask again"
        );
    }
    let policy =
        provider.pointer("/spec/update/policy").cloned().and_then(|policy| serde_json::from_value(policy).ok());
    let set = match policy {
        Some(UpdatePolicy::RehearseFirst | UpdatePolicy::Manual) => String::new(),
        _ => format!(
            "kubectl patch wasmprovider {name} --type merge -p '{{\"spec\":{{\"update\":{{\"policy\":\"Manual\"}}}}}}' && "
        ),
    };
    let folder = match text("/status/recordingsFolder") {
        "" => "recordings of the host's data folder".to_owned(),
        folder => printable(folder),
    };
    format!(
        "there is no call of {name} to compare with. Either record some, and ask again once there are:\n  \
         kubectl patch wasmprovider {name} --type merge -p '{{\"spec\":{{\"record\":true}}}}'\n  \
         (into {folder}; copy it here and name it with --recordings if the host is on another machine)\n\
         or let the host rehearse {file} on live calls, without effect, and ask again:\n  \
         {set}capwasm provider swap {name} {file}"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    fn provider(active: &str, candidate: &str, reason: &str, calls: usize) -> Value {
        let candidate = json!({"digest": candidate, "reason": reason, "message": "", "generation": 1,
            "rehearsal": {"calls": calls, "differences": 0, "summary": "s"}});
        json!({"status": {"active": {"digest": active}, "candidate": candidate, "recordingsFolder": "/r"}})
    }

    #[test]
    fn a_host_is_believed_about_the_component_that_it_rehearsed() {
        assert_eq!(by_host(&provider("a", "b", "RehearsalDiffers", 3), "b").unwrap().calls, 3);
        assert_eq!(by_host(&provider("a", "b", "RehearsalDiffers", 3), "c"), None, "it is about another one");
        assert_eq!(by_host(&provider("a", "b", "NothingRecorded", 0), "b"), None, "nothing was rehearsed");
        assert_eq!(by_host(&json!({}), "b"), None);
    }

    #[test]
    fn where_nothing_can_be_compared_it_is_said_what_to_do() {
        let options = Options {
            name: "p".into(),
            file: "new.wasm".into(),
            recordings: None,
            last: 0,
            connection: Connection::default(),
            output: Output::default(),
        };
        let mut guarded = provider("a", "", "", 0);
        guarded["spec"] = json!({"update": {"policy": "RehearseFirst"}});
        let rows: [(&str, Value, &[&str], &[&str]); 4] = [
            ("it serves", provider("n", "", "", 0), &["nothing to compare"], &["kubectl"]),
            ("it waits", provider("a", "n", "NothingRecorded", 0), &["and there was none yet"], &["kubectl"]),
            (
                "it is unknown",
                provider("a", "", "", 0),
                &[
                    r#"'{"spec":{"record":true}}'"#,
                    "into /r;",
                    r#""policy":"Manual""#,
                    "&& capwasm provider swap p new.wasm",
                ],
                &[],
            ),
            ("it would wait", guarded, &["\n  capwasm provider swap p new.wasm"], &["policy"]),
        ];
        for (name, provider, parts, absent) in rows {
            let text = advice(&options, &provider, "n");
            assert!(parts.iter().all(|part| text.contains(part)), "{name}: {text}");
            assert!(!absent.iter().any(|part| text.contains(part)), "{name}: {text}");
        }
    }
}
