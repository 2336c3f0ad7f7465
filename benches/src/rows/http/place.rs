//! What every row over HTTP works on: a server on a new store, a bare handler, a raw log, and who sends.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::Runtime;

use crate::context::Context;
use crate::http::{Bare, LanewayServer, event, post};
use crate::raw_log::{RawLog, RawOptions};
use crate::workload::SHARDS;
use crate::{Failure, seam};

/// Name of the stream.
pub(super) const STREAM: &str = "bench";
/// Keys that events are spread over.
pub(super) const KEYS: u32 = 10_000;
/// Bytes of an answer of the bare handler: as many as the server answers to one event.
pub(super) const ANSWER_BYTES: usize = 130;

/// Events per call while a backlog is made.
const LOAD_PER_CALL: u32 = 1_000;
const FOLDER: &str = "http";

pub(super) struct Place {
    pub(super) server: LanewayServer,
    pub(super) bare: Bare,
    pub(super) raw: Arc<RawLog>,
    /// Sends on one thread, so that the server has what is left of the machine.
    pub(super) sending: Runtime,
    /// For the raw log, which shares this process with its callers.
    pub(super) runtime: Runtime,
    pub(super) folder: PathBuf,
}

impl Place {
    /// Starts everything; `more` comes after the stream in the server's settings.
    pub(super) fn new(context: &Context, more: &str) -> Result<Self, Failure> {
        let folder = context.place.join(FOLDER);
        let settings = format!("[[stream]]\nname = \"{STREAM}\"\npartitions = {SHARDS}\n{more}");
        Ok(Self {
            server: LanewayServer::start(&folder.join("server"), &settings)?,
            bare: Bare::start()?,
            raw: Arc::new(RawLog::create(&folder.join("raw"), RawOptions::default())?),
            sending: seam::sending_runtime()?,
            runtime: seam::runtime()?,
            folder,
        })
    }

    /// Appends so many events, over all keys.
    pub(super) fn load(&self, events: u32) -> Result<(), Failure> {
        self.sending.block_on(async {
            let mut connection = crate::http::Connection::open(self.server.address).await?;
            let (mut rng, path) = (fastrand::Rng::with_seed(5), format!("/v1/streams/{STREAM}/events"));
            for first in (0..events).step_by(LOAD_PER_CALL as usize) {
                let numbers = first..events.min(first + LOAD_PER_CALL);
                let drafts: Vec<String> = numbers.map(|number| event(&mut rng, number % KEYS)).collect();
                let answer = connection.call(&post(&path, &format!("[{}]", drafts.join(",")))).await?;
                if answer.status != 201 {
                    return Err(answer.unexpected());
                }
            }
            Ok(())
        })
    }

    /// Ends everything and removes its files.
    pub(super) fn end(self, context: &Context) -> Result<(), Failure> {
        let Self { server, bare, raw, .. } = self;
        drop((server, raw));
        bare.end()?;
        context.place.clear(FOLDER)
    }
}
