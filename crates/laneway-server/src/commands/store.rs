//! `laneway store …`: stores on this machine, without a server.

use std::path::{Path, PathBuf};

use laneway::core::copying;
use laneway::files::{self, Backup, FileStore, VerifyReport};
use laneway::{Laneway, StoreOptions, without_user};

use crate::args::{OutputArgs, StoreVerb};
use crate::exit::{Exit, Fault};
use crate::http::chain;
use crate::output::{Progress, Writer, grouped};
use crate::seam;
use crate::settings::is_single;
use crate::terminal::say;

pub(super) async fn run(output: OutputArgs, verb: StoreVerb) -> Result<(), Fault> {
    let writer = Writer::new(output);
    match verb {
        StoreVerb::Verify(args) => {
            let folder = folder_of(&args.store)?;
            let progress = Progress::of_steps(&format!("reading {}", folder.display()), writer.is_quiet());
            let report = seam::blocking(move || files::verify(&folder)).await.map_err(of_store)?;
            drop(progress);
            verified(writer, &args.store, &report)
        }
        StoreVerb::Copy(args) => {
            let shared = StoreOptions {
                namespace: args.namespace,
                tls_ca: args.tls_ca,
                tls_cert: args.tls_cert,
                tls_key: args.tls_key,
                ..StoreOptions::default()
            };
            if is_single(&args.from) && is_single(&args.to) && shared != StoreOptions::default() {
                let words = "--namespace, --tls-ca, --tls-cert, --tls-key: neither store has a server, so none can be given";
                return Err(Fault::usage(words.to_owned()));
            }
            let shown = without_user(&args.to);
            let (from, to) = (opened(&args.from, &shared).await?, opened(&args.to, &shared).await?);
            let progress = Progress::of_steps(&format!("copying to {shown}"), writer.is_quiet());
            let (from, to) = (from.engine(), to.engine());
            let (source, target) = (&*from.stores().store, &*to.stores().store);
            let report = copying::copy(source, target).await.map_err(of_store)?;
            progress.say("verifying");
            let verified = copying::verify(source, target).await.map_err(of_store)?;
            let schedules = to.schedules().copy_from(from.schedules()).await;
            let schedules = schedules.map_err(|error| Fault::failed(chain(&error)))?;
            drop(progress);
            let answer = serde_json::json!({
                "streams": report.streams, "shards": report.shards, "processors": report.processors,
                "events": report.events, "jobs": report.jobs, "rows": report.rows, "bytes": report.bytes,
                "schedules": schedules,
                "verified": {
                    "events": verified.events, "lanes": verified.lanes, "jobs": verified.jobs,
                    "states": verified.states, "dead": verified.dead,
                },
            });
            writer.done(format_args!("{report}; {verified}; {schedules} schedules"), &answer, shown)
        }
        StoreVerb::Backup(args) => {
            let folder = folder_of(&args.store)?;
            check_there(&folder)?;
            let to = args.to.clone();
            let progress = Progress::of_steps(&format!("copying to {}", to.display()), writer.is_quiet());
            let made = seam::blocking(move || backup(&folder, &to)).await.map_err(of_store)?;
            drop(progress);
            let Backup { bytes, segments, .. } = made;
            let sentence = format!(
                "{} bytes in {} log segments are in {}; serve them with --store file:{}",
                grouped(bytes),
                grouped(segments as u64),
                args.to.display(),
                args.to.display()
            );
            let answer = serde_json::json!({"bytes": bytes, "segments": segments, "folder": args.to});
            writer.done(sentence, &answer, args.to.display())
        }
    }
}

fn backup(folder: &Path, to: &Path) -> laneway::core::Result<Backup> {
    let store = FileStore::open(folder)?;
    let made = store.backup(to);
    store.close()?;
    made
}

/// The folder of a store in files.
pub(super) fn folder_of(url: &str) -> Result<PathBuf, Fault> {
    match url.split_once(':') {
        Some(("file", path)) if !path.is_empty() => {
            Ok(PathBuf::from(path.strip_prefix("//").unwrap_or(path)))
        }
        Some((scheme, _)) => {
            let url = without_user(url);
            Err(Fault::usage(format!("store {url:?}: {scheme}: has no files, must be file:PATH")))
        }
        None => Err(Fault::usage(format!(
            "store {url:?}: is no URL, must be file:PATH (for a folder: file:{url})"
        ))),
    }
}

/// Opening a folder would make a store in it; only one that is there is meant.
fn check_there(folder: &Path) -> Result<(), Fault> {
    if folder.join("log").is_dir() {
        return Ok(());
    }
    Err(Fault::new(Exit::NotFound, format!("there is no store in {}", folder.display())))
}

/// A store to copy; one for a single process takes no options.
async fn opened(url: &str, shared: &StoreOptions) -> Result<Laneway, Fault> {
    let alone = StoreOptions::default();
    let options = if is_single(url) { &alone } else { shared };
    Laneway::open_with(url, options).await.map_err(|error| {
        let fault = Fault::failed(chain(&error));
        if matches!(error, laneway::OpenError::Url { .. }) {
            Fault { exit: Exit::Usage, ..fault }
        } else {
            fault
        }
    })
}

fn of_store(error: laneway::core::StoreError) -> Fault {
    use laneway::core::StoreError::{Down, NotFound, Refused};
    let exit = match error {
        NotFound { .. } => Exit::NotFound,
        Refused(_) => Exit::Conflict,
        _ => Exit::Failed,
    };
    let words = chain(&error);
    let in_use = matches!(error, Down { .. }) && words.contains("in use");
    let fault = Fault::new(exit, words);
    if in_use { fault.hint("stop the server first: a store has one process at a time") } else { fault }
}

/// What a verification found, for programs.
#[derive(serde::Serialize)]
struct Found {
    kind: String,
    wrong: String,
}

fn verified(writer: Writer, url: &str, report: &VerifyReport) -> Result<(), Fault> {
    let findings: Vec<Found> = report
        .findings
        .iter()
        .map(|finding| Found { kind: finding.kind.to_string(), wrong: finding.to_string() })
        .collect();
    if writer.is_for_people() {
        say(report);
    } else {
        let answer = serde_json::json!({
            "store": url, "segments": report.segments, "frames": report.frames, "bytes": report.bytes,
            "events": report.events, "lanes": report.lanes, "job_ends": report.job_ends,
            "torn_bytes": report.torn_bytes, "findings": findings, "more": report.more,
        });
        writer.done("", &answer, url)?;
    }
    if report.is_clean() {
        return Ok(());
    }
    let hint =
        "damaged stores are not mended: restore a backup, or copy what can be read (laneway store copy)";
    Err(Fault::failed(format!("{url} is damaged")).hint(hint))
}
