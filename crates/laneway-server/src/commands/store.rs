//! `laneway store …`: stores on this machine, without a server; and a backup by a server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use laneway::core::copying;
use laneway::files::{self, Backup, FileStore, VerifyReport};
use laneway::{Laneway, StoreOptions, without_user};
use laneway_client::wire;

use crate::args::{OutputArgs, ServerArgs, StoreVerb};
use crate::connection::connect;
use crate::exit::{Exit, Fault};
use crate::http::chain;
use crate::output::{Progress, Writer, grouped};
use crate::seam;
use crate::settings::is_single;
use crate::terminal::say;

/// How long to wait for a server that makes a backup.
const BACKUP_WITHIN: Duration = Duration::from_secs(24 * 3600);

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
            let progress =
                Progress::of_steps(&format!("copying to {}", args.to.display()), writer.is_quiet());
            let made = match &args.store {
                Some(url) => offline(url, args.to).await?,
                None => online(&args.server, &args.to).await?,
            };
            drop(progress);
            let wire::Backup { folder, bytes, segments, .. } = &made;
            let (bytes, segments) = (grouped(*bytes), grouped(*segments));
            let sentence = format!(
                "{bytes} bytes in {segments} log segments are in {folder}; serve them with --store file:{folder}"
            );
            let answer =
                serde_json::json!({"bytes": made.bytes, "segments": made.segments, "folder": folder});
            writer.done(sentence, &answer, folder)
        }
    }
}

/// Backs up a store that nobody works on.
async fn offline(url: &str, to: PathBuf) -> Result<wire::Backup, Fault> {
    let from = folder_of(url)?;
    check_there(&from)?;
    let folder = to.display().to_string();
    let made = seam::blocking(move || backup(&from, &to)).await;
    let Backup { bytes, segments, .. } = made.map_err(|error| {
        let fault = of_store(error);
        if fault.hint.is_some() {
            fault.hint("its server makes the backup: laneway store backup NAME; or stop the server first")
        } else {
            fault
        }
    })?;
    Ok(wire::Backup { name: folder.clone(), folder, bytes, segments: segments as u64 })
}

/// Has a running server back up its store.
async fn online(server: &ServerArgs, name: &Path) -> Result<wire::Backup, Fault> {
    let client = connect(server)?.with_timeout(BACKUP_WITHIN);
    let name = name.to_str().ok_or_else(|| Fault::usage(format!("{} is not text", name.display())))?;
    Ok(client.backup(name).await?)
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
