//! `laneway doctor`: looks whether everything here is fit to run a server, and says what to do where it is not.

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use laneway::core::Durability;
use laneway_client::wire::Readiness;
use laneway_client::{Client, ClientError};
use rustix::process::{Resource, getrlimit};
use serde::Serialize;

use super::measure::sync_time;
use super::store::folder_of;
use crate::args::DoctorArgs;
use crate::connection::connect;
use crate::exit::{Exit, Fault};
use crate::http::chain;
use crate::output::{Cell, Column, Row, Writer, grouped};
use crate::seam;
use crate::settings::{Environment, Faults, Sources, Store, load};

/// Open files below which many connections cannot be served.
const FILES_WANTED: u64 = 4_096;
/// Free bytes below which a disk fills soon.
const FREE_WANTED: u64 = 1 << 30;
/// A sync that takes longer makes every answer slow.
const SYNC_SLOW: Duration = Duration::from_millis(20);
/// Clocks further apart than this make dates of different machines hard to compare.
const CLOCKS_APART: Duration = Duration::from_secs(2);
/// How long a server may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(3);
/// 2026-01-01: a clock before it was never set.
const CLOCK_FIRST_US: u64 = 1_767_225_600_000_000;

/// What was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    /// `ok`, `warn` or `fail`.
    status: &'static str,
    found: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, status: "ok", found: found.into(), advice: None }
    }

    fn warn(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { check, status: "warn", found: found.into(), advice: Some(advice.into()) }
    }

    fn fail(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { status: "fail", ..Self::warn(check, found, advice) }
    }
}

impl Row for Finding {
    const COLUMNS: &'static [Column] =
        &[Column::left("CHECK"), Column::left("STATUS"), Column::left("FOUND")];

    fn id(&self) -> String {
        self.check.to_owned()
    }

    fn cells(&self) -> Vec<Cell> {
        let advice = self.advice.as_ref().map(|advice| format!("; {advice}")).unwrap_or_default();
        vec![
            Cell::Text(self.check.to_owned()),
            Cell::status(self.status),
            Cell::Text(format!("{}{advice}", self.found)),
        ]
    }
}

pub(super) async fn run(args: DoctorArgs) -> Result<(), Fault> {
    let writer = Writer::new(args.common.output);
    let client = connect(&args.common.server)?.with_timeout(PATIENCE);
    let mut findings = vec![files()];
    match load(&Sources { flags: args.flags, environment: Environment::of_process() }) {
        Err(Faults(faults)) => {
            findings.extend(faults.into_iter().map(|fault| Finding::fail("settings", fault, "correct it")));
        }
        Ok(loaded) => {
            let file = loaded.file.map_or_else(|| "no file".to_owned(), |file| file.display().to_string());
            findings.push(Finding::ok("settings", format!("{file}; laneway config show --origin shows all")));
            findings.extend(store_checks(&loaded.settings.store).await);
            findings.push(port(&loaded.settings.http.listen, &client));
        }
    }
    findings.extend(server_checks(&client).await);
    writer.list(&findings, "")?;
    if findings.iter().any(|finding| finding.status == "fail") {
        return Err(Fault::silent(Exit::Failed));
    }
    Ok(())
}

/// How many files the process may have open: each connection and each segment is one.
fn files() -> Finding {
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < FILES_WANTED => Finding::warn(
            "open files",
            format!("at most {}", grouped(limit)),
            format!("raise it: ulimit -n {FILES_WANTED}, or LimitNOFILE of the service"),
        ),
        limit => Finding::ok(
            "open files",
            limit.map_or_else(|| "no limit".to_owned(), |limit| format!("at most {}", grouped(limit))),
        ),
    }
}

/// Whether a server could listen where the settings say, unless the one that is asked listens there already.
fn port(listen: &str, client: &Client) -> Finding {
    match TcpListener::bind(listen) {
        Ok(_) => Finding::ok("port", format!("{listen} is free")),
        Err(_) if client.address().ends_with(listen) => {
            Finding::ok("port", format!("{listen} is taken, by the server below if it answers"))
        }
        Err(error) => {
            Finding::warn("port", format!("{listen}: {error}"), "choose another: --listen ADDRESS:PORT")
        }
    }
}

async fn store_checks(store: &Store) -> Vec<Finding> {
    let url = &store.url[..];
    if !store.is_single() {
        return vec![server_of_store(store).await];
    }
    if url == "memory:" {
        return vec![Finding::warn(
            "store",
            "memory: keeps nothing",
            "fit for tests only; --store file:PATH keeps everything",
        )];
    }
    let folder = match folder_of(url) {
        Ok(folder) => folder,
        Err(fault) => {
            return vec![Finding::fail(
                "store",
                fault.words.join(" "),
                "correct --store or LANEWAY_STORE_URL",
            )];
        }
    };
    let Some(there) = folder.ancestors().find(|folder| folder.is_dir() || folder.as_os_str().is_empty())
    else {
        return vec![Finding::fail(
            "store",
            format!("{} cannot be made", folder.display()),
            "choose another folder",
        )];
    };
    let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
    let exists = folder.join("log").is_dir();
    let found = if exists { "there is a store" } else { "no store yet; the first start makes one" };
    let mut findings = vec![Finding::ok("store", format!("{}: {found}", folder.display()))];
    findings.push(space(there));
    findings.push(syncs(there).await);
    findings
}

/// What the server of a store says of itself.
async fn server_of_store(store: &Store) -> Finding {
    let found = match laneway::redis::examine(&store.url, &store.options()).await {
        Ok(found) => found,
        Err(error) => return Finding::fail("store", chain(&error), "correct [store], or mend the server"),
    };
    let words = found.to_string();
    match found.durability {
        Durability::Memory => Finding::warn(
            "store",
            words,
            "a restart of the server loses everything: set appendonly yes, and save it in its file",
        ),
        Durability::Buffered => Finding::warn(
            "store",
            words,
            "a power cut loses about a second: appendfsync always, or store.wait_replicas, or live with it",
        ),
        Durability::Synced | Durability::Replicated(_) => Finding::ok("store", words),
    }
}

fn space(folder: &Path) -> Finding {
    match rustix::fs::statvfs(folder) {
        Err(error) => Finding::fail(
            "disk space",
            format!("{}: {error}", folder.display()),
            "choose a folder that can be read",
        ),
        Ok(found) => {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            let words = format!("{} MiB free at {}", grouped(free >> 20), folder.display());
            if free < FREE_WANTED {
                return Finding::warn(
                    "disk space",
                    words,
                    "below 1 GiB: appends are refused once it is full",
                );
            }
            Finding::ok("disk space", words)
        }
    }
}

async fn syncs(folder: &Path) -> Finding {
    let folder = folder.to_path_buf();
    match seam::blocking(move || sync_time(&folder)).await {
        Err(error) => {
            Finding::fail("disk sync", format!("cannot write: {error}"), "let this user write there")
        }
        Ok(time) => {
            let words = format!("{:.2} ms per sync", time.as_secs_f64() * 1e3);
            if time > SYNC_SLOW {
                return Finding::warn("disk sync", words, "slow: every synced answer waits for one");
            }
            Finding::ok("disk sync", words)
        }
    }
}

async fn server_checks(client: &Client) -> Vec<Finding> {
    let address = client.address();
    let answer = client.send(laneway_client::Method::GET, "/readyz?verbose", &[], None).await;
    let answer = match answer {
        Ok(answer) => answer,
        Err(error @ (ClientError::Unreachable { .. } | ClientError::TimedOut { .. })) => {
            let words = Fault::from(error).words.join(" ");
            return vec![
                clock(None),
                Finding::warn("server", words, "start one: laneway serve, or name it: --server URL"),
            ];
        }
        Err(error) => {
            return vec![
                clock(None),
                Finding::fail("server", Fault::from(error).words.join(" "), "correct --server"),
            ];
        }
    };
    let date = answer.headers.get("date").and_then(|date| date.to_str().ok());
    let date = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok()).map(|date| date.timestamp());
    let ready = if answer.status.is_success() {
        Finding::ok("server", format!("{address} is ready"))
    } else {
        Finding::fail(
            "server",
            format!("{address} answers {}", answer.status),
            "its log says why it is not ready",
        )
    };
    let mut findings = vec![clock(date)];
    if let Ok(readiness) = serde_json::from_slice::<Readiness>(&answer.body) {
        findings.extend(readiness.clock.map(|words| unsettled(&words)));
        findings.extend(readiness.clock_ahead.map(|ahead| log_time(&ahead)));
        findings.extend(readiness.held.into_iter().map(held));
    }
    findings.extend([ready, called(client).await]);
    findings
}

/// Warns that the store does not trust its wall clock.
fn unsettled(words: &str) -> Finding {
    Finding::warn(
        "clock of the server",
        words.to_owned(),
        "check its time service; until it has settled nothing is deleted by its age",
    )
}

/// Log time never goes back, so it waits for a clock that has.
fn log_time(ahead: &str) -> Finding {
    Finding::warn(
        "log time",
        format!("{ahead} ahead of the clock, which was wrong for longer than it takes to settle"),
        "new events carry that time until the clock has caught up; dates, delays and lives are right",
    )
}

/// Warns that a processor keeps the store from deleting old files.
fn held(words: String) -> Finding {
    Finding::warn(
        "files of the store",
        words,
        "`laneway why` shows what the lane waits for; retry or skip the event, or remove the processor",
    )
}

/// Whether calls are allowed.
async fn called(client: &Client) -> Finding {
    match client.streams().await {
        Ok(streams) => Finding::ok("calls", format!("{} streams can be seen", streams.len())),
        Err(error) => {
            let fault = Fault::from(error);
            Finding::fail(
                "calls",
                fault.words.join(" "),
                fault.hint.unwrap_or_else(|| "see its log".to_owned()),
            )
        }
    }
}

/// Whether the clock was ever set, and how far it is from that of the server.
fn clock(server: Option<jiff::Timestamp>) -> Finding {
    let now = seam::now().0;
    if now < CLOCK_FIRST_US {
        return Finding::fail(
            "clock",
            "it is before 2026",
            "set it: dates, schedules and keep times follow it",
        );
    }
    let Some(server) = server else { return Finding::ok("clock", "it was set") };
    let server_us = u64::try_from(server.as_microsecond()).unwrap_or_default();
    // The server says whole seconds.
    let apart = Duration::from_micros(now.abs_diff(server_us));
    let words = format!("{} s from that of the server", apart.as_secs());
    if apart > CLOCKS_APART {
        return Finding::warn("clock", words, "run a time service on both machines");
    }
    Finding::ok("clock", words)
}
