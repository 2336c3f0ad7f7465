//! Definitions. One is written to the catalogue in one step, with a mark that its shards have not all taken it over; then
//! each shard takes it over in a step of its own, by version, and the mark goes. Whoever finds a mark finishes the work, so
//! that a caller that died in between leaves nothing half done.

use futures::{StreamExt, TryStreamExt, stream};
use laneway_core::limits::{
    ADOPTION_JUMP, ADOPTION_SINCE, CLOCK_IDS_MAX, CLOCK_IDS_PER_MILLI, STREAMS_MAX, VALUE_BYTES_MAX,
};
use laneway_core::store::{Define, Defined, Import};
use laneway_core::{
    Mode, Partition, ProcessorId, ProcessorInfo, Refusal, Result, Shard, StoreError, StreamId, StreamInfo,
    StreamSettings, check_name,
};

use crate::failure::{Failure, Subject};
use crate::methods::start;
use crate::pack::{Arg, named, parts};
use crate::reply::{Reply, corrupt};
use crate::store::RedisStore;
use crate::wire;

/// Shards that take a definition over at one time.
const SHARDS_AT_ONCE: usize = 32;

/// A definition as the catalogue has it.
struct Row {
    info: StreamInfo,
    /// Where each processor begins, as shards take it.
    starts: Vec<Arg>,
    sealed: Vec<u64>,
    importing: bool,
    removed: bool,
}

fn read_row(mut from: Reply) -> Result<Row> {
    let (id, name, version) = (StreamId(from.small()?), from.text()?, from.number()?);
    let settings: StreamSettings = wire::load(from.bytes()?)?;
    let layout = from.small()?;
    let (mut processors, mut starts) = (Vec::new(), Vec::new());
    for mut found in from.list()?.each(Reply::list)? {
        let id = ProcessorId(found.small()?);
        processors.push(ProcessorInfo { id, name: found.text()?, settings: found.bytes()? });
        let mut start = found.list()?;
        starts.push(parts![id.0, parts![start.number()?, start.number()?]]);
    }
    let sealed = from.list()?.each(Reply::number)?;
    let importing = from.flag()?;
    let info = StreamInfo { id, name, version, settings, layout, processors };
    Ok(Row { info, starts, sealed, importing, removed: false })
}

/// What a row says to others.
pub(crate) fn read_info(from: Reply) -> Result<StreamInfo> {
    read_row(from).map(|row| row.info)
}

fn settings_call(settings: &StreamSettings) -> Arg {
    named! {
        settings: wire::store(settings), partitions: settings.partitions,
        mode: u8::from(settings.mode == Mode::Latest), streams_max: STREAMS_MAX,
    }
}

impl RedisStore {
    pub(crate) async fn change_definition(&self, define: Define) -> Result<Defined> {
        let (subject, call) = match define {
            Define::Stream { name, expect, settings } => {
                check_name("name of a stream", &name)?;
                settings.check()?;
                let call = settings_call(&settings).with("name", &name[..]);
                let call = match expect {
                    None => call.with("op", "create"),
                    Some(version) => call.with("op", "change").with("expect", version),
                };
                (Subject::Store, call)
            }
            Define::RemoveStream { stream, expect } => {
                let call = named! { op: "remove", id: stream.0, expect: expect };
                let mut row = self.catalogue(Subject::Stream(stream), &call).await?;
                row.removed = true;
                self.spread(&row).await?;
                return Ok(Defined { stream: None });
            }
            Define::Processor { stream, name, start: begin, settings } => {
                check_name("name of a processor", &name)?;
                Refusal::check_max("bytes of a processor's settings", settings.len(), VALUE_BYTES_MAX)?;
                let (kind, value) = start(begin);
                let call = named! {
                    op: "register", id: stream.0, name: &name[..], settings: settings, start: parts![kind, value],
                };
                (Subject::Stream(stream), call)
            }
            Define::RemoveProcessor { processor } => {
                (Subject::Processor(processor), named! { op: "unregister", processor: processor.0 })
            }
            Define::Seal { shard } => {
                let call = named! { op: "seal", id: shard.stream.0, partition: shard.partition.0 };
                (Subject::Shard(shard), call)
            }
            Define::Adopt { shard, stored } => {
                let call = named! {
                    adopt: stored.0, jump: ADOPTION_JUMP, since: ADOPTION_SINCE.0, per_milli: CLOCK_IDS_PER_MILLI,
                    by_clock_max: CLOCK_IDS_MAX,
                };
                self.on_shard(&self.scripts().place, shard, &call).await?;
                return self.defined(shard.stream).await;
            }
            Define::Import(Import::Stream(info)) => {
                self.unsettle_clock().await?;
                return self.import_stream(info).await;
            }
            Define::Import(piece) => return self.import(piece).await,
        };
        let row = self.catalogue(subject, &call).await?;
        self.spread(&row).await?;
        Ok(Defined { stream: Some(row.info) })
    }

    /// The definition of a stream.
    pub(crate) async fn defined(&self, stream: StreamId) -> Result<Defined> {
        let call = named! { op: "get", id: stream.0 };
        let row = self.catalogue(Subject::Stream(stream), &call).await?;
        Ok(Defined { stream: Some(row.info) })
    }

    async fn catalogue(&self, subject: Subject, call: &Arg) -> Result<Row> {
        read_row(self.ask_catalogue(subject, call).await?.list()?)
    }

    /// Calls the script of the catalogue.
    pub(crate) async fn ask_catalogue(&self, subject: Subject, call: &Arg) -> Result<Reply> {
        let keys = self.names().catalogue();
        self.call(&self.scripts().define, subject, &keys, call).await.map_err(|failure| match failure {
            Failure::Missing(error) | Failure::Final(error) => error,
            Failure::Learn { .. } | Failure::Clock => corrupt("the catalogue has no seats"),
        })
    }

    /// Has every shard take a definition over, then takes its mark away.
    async fn spread(&self, row: &Row) -> Result<bool> {
        let (stream, version) = (row.info.id, row.info.version);
        let shards = (0..row.info.settings.partitions)
            .map(|partition| Shard { stream, partition: Partition(partition) });
        let importing: Vec<bool> = stream::iter(shards)
            .map(|shard| self.place(row, shard))
            .buffer_unordered(SHARDS_AT_ONCE)
            .try_collect()
            .await?;
        let call = named! { op: "done", id: stream.0, version: version };
        self.ask_catalogue(Subject::Stream(stream), &call).await?;
        Ok(importing.iter().all(|importing| *importing))
    }

    /// Has one shard take a definition over; answers whether the shard is being imported.
    async fn place(&self, row: &Row, shard: Shard) -> Result<bool> {
        let settings = &row.info.settings;
        let mut seats: Vec<ProcessorId> = row.info.processors.iter().map(|processor| processor.id).collect();
        let numbers = parts![
            u8::from(settings.mode == Mode::Latest),
            settings.keep,
            settings.max_pending_of_partition(),
            settings.dedup_max,
            settings.dead_keep,
            settings.forget_lanes_after.unwrap_or_default()
        ];
        let call = named! {
            def: row.info.version, live: !row.removed, importing: row.importing, layout: row.info.layout,
            sealed: row.sealed.contains(&u64::from(shard.partition.0)), settings: numbers,
            processors: Arg::List(row.starts.clone()),
        };
        loop {
            let keys = self.names().shard(shard, &seats);
            let call = call.clone().with("seats", Arg::list(seats.iter().map(|seat| seat.0)));
            match self.call(&self.scripts().place, Subject::Shard(shard), &keys, &call).await {
                Ok(mut reply) => return reply.flag(),
                Err(Failure::Learn { processors, .. }) => {
                    let more: Vec<ProcessorId> =
                        processors.into_iter().filter(|processor| !seats.contains(processor)).collect();
                    if more.is_empty() {
                        return Err(corrupt(format!("shard {shard} asks for seats that it was given")));
                    }
                    seats.extend(more);
                }
                Err(Failure::Missing(error) | Failure::Final(error)) => return Err(error),
                Err(Failure::Clock) => return Err(corrupt("a script asked for a time that it was given")),
            }
        }
    }

    /// Finishes definitions that shards have not all taken over; answers whether there were any.
    pub(crate) async fn finish_definitions(&self) -> Result<bool> {
        let mut reply = self.ask_catalogue(Subject::Store, &named! { op: "todo" }).await?;
        let rows = reply.list()?.each(|rows| {
            let mut found = rows.list()?;
            let row = read_row(found.list()?)?;
            Ok(Row { removed: found.flag()?, ..row })
        })?;
        for row in &rows {
            self.spread(row).await?;
        }
        Ok(!rows.is_empty())
    }

    async fn import_stream(&self, info: StreamInfo) -> Result<Defined> {
        info.settings.check_form()?;
        let processors = info
            .processors
            .iter()
            .map(|found| parts![found.id.0, &found.name[..], found.settings.clone(), parts![0u8, 0u8]]);
        let row = named! {
            id: info.id.0, name: &info.name[..], version: info.version, settings: wire::store(&info.settings),
            partitions: info.settings.partitions, mode: u8::from(info.settings.mode == Mode::Latest), layout: info.layout,
            sealed: Arg::List(Vec::new()), processors: Arg::list(processors), importing: true,
        };
        let call = named! { op: "import", row: row, streams_max: STREAMS_MAX };
        let mut reply = self.ask_catalogue(Subject::Stream(info.id), &call).await?;
        let row = read_row(reply.list()?)?;
        let is_repeat = reply.flag()?;
        if !self.spread(&row).await? && is_repeat {
            let limit = "above the last one given here; this one has been imported and is in use";
            return Err(StoreError::from(Refusal::new("number of the stream", info.id.to_string(), limit)));
        }
        Ok(Defined { stream: Some(row.info) })
    }
}
