//! `laneway stream …`: create, change and look. Sending and following have files of their own.

use laneway_client::Client;
use laneway_client::wire::{Mode, Stream, StreamSettings};

use super::watch::watched;
use crate::args::{Kept, ModeArg, StreamCreate, StreamEdit, StreamVerb};
use crate::exit::Fault;
use crate::output::{Cell, Column, Detail, Row, Writer, agree, grouped};
use crate::signals::End;

/// How a length is said that never comes.
const NEVER: &str = "never";

pub(super) async fn run(client: &Client, writer: Writer, verb: StreamVerb, end: End) -> Result<(), Fault> {
    match verb {
        StreamVerb::Ls(watch) => {
            watched(writer, &watch, async || {
                writer.list(&client.streams().await?, "no streams; make one: laneway stream create NAME")
            })
            .await
        }
        StreamVerb::Create(args) => create(client, writer, args).await,
        StreamVerb::Get(name) => writer.one(&client.stream(&name.stream).await?),
        StreamVerb::Edit(args) => edit(client, writer, args).await,
        StreamVerb::Rm(args) => {
            let stream = client.stream(&args.stream).await?;
            let what = format!("remove stream {} with {}", stream.name, contents(&stream));
            if args.consent.dry_run {
                return writer.done(format!("would {what}"), &stream, &stream.name);
            }
            agree(args.consent, &what)?;
            client.delete_stream(&stream.name).await?;
            writer.done(format!("stream {} is removed", stream.name), &stream, &stream.name)
        }
        StreamVerb::Send(args) => super::send::run(client, writer, args, end).await,
        StreamVerb::Tail(args) => super::tail::run(client, writer, args).await,
    }
}

async fn create(client: &Client, writer: Writer, args: StreamCreate) -> Result<(), Fault> {
    let mode = args.mode.map(|mode| match mode {
        ModeArg::Queue => Mode::Queue,
        ModeArg::Latest => Mode::Latest,
    });
    let mut settings = StreamSettings { partitions: args.partitions, mode, ..kept(args.kept) };
    settings.forget_lanes_after = settings.forget_lanes_after.filter(|after| after != NEVER);
    let stream = client.put_stream(&args.stream, &settings).await?;
    let sentence =
        format!("stream {} has {} partitions, mode {}", stream.name, stream.partitions, mode_of(&stream));
    writer.done(sentence, &stream, &stream.name)
}

/// What is not said stays as it is: the server takes settings as a whole.
async fn edit(client: &Client, writer: Writer, args: StreamEdit) -> Result<(), Fault> {
    let changes = kept(args.kept);
    if changes == StreamSettings::default() {
        let hint = "say --keep, --keep-done, --max-pending, --responder, --forget-lanes-after, --dedup-window or --dedup-max";
        return Err(Fault::usage("nothing to change").hint(hint));
    }
    let now = client.stream(&args.stream).await?;
    let settings = StreamSettings {
        partitions: Some(now.partitions),
        mode: Some(now.mode),
        keep: changes.keep.or(Some(now.keep)),
        keep_done: changes.keep_done.or(Some(now.keep_done)),
        max_pending: changes.max_pending.or(now.max_pending),
        responder: changes.responder.or(now.responder),
        forget_lanes_after: changes
            .forget_lanes_after
            .or(now.forget_lanes_after)
            .filter(|after| after != NEVER),
        dedup_window: changes.dedup_window.or(Some(now.dedup_window)),
        dedup_max: changes.dedup_max.or(Some(now.dedup_max)),
    };
    let stream = client.put_stream(&args.stream, &settings).await?;
    let bound = stream.max_pending.map_or_else(|| "no bound".to_owned(), grouped);
    let sentence = format!(
        "stream {} keeps events {}, ends of jobs {}, idle lanes {}, waiting at most: {bound}",
        stream.name,
        stream.keep,
        stream.keep_done,
        stream.forget_lanes_after.as_deref().unwrap_or("for ever")
    );
    writer.done(sentence, &stream, &stream.name)
}

fn kept(kept: Kept) -> StreamSettings {
    StreamSettings {
        keep: kept.keep,
        keep_done: kept.keep_done,
        max_pending: kept.max_pending,
        responder: kept.responder,
        forget_lanes_after: kept.forget_lanes_after,
        dedup_window: kept.dedup_window,
        dedup_max: kept.dedup_max,
        ..StreamSettings::default()
    }
}

fn mode_of(stream: &Stream) -> &'static str {
    match stream.mode {
        Mode::Queue => "queue",
        Mode::Latest => "latest",
    }
}

/// How many events there ever were.
fn events_of(stream: &Stream) -> u64 {
    stream.heads.iter().map(|head| head.events).sum()
}

/// How much is in it, as far as the server says.
fn contents(stream: &Stream) -> String {
    let events = events_of(stream);
    let names: Vec<&str> = stream.processors.iter().map(|processor| processor.processor.as_str()).collect();
    match names[..] {
        [] => format!("its {} events", grouped(events)),
        _ => format!("its {} events and the progress of {}", grouped(events), names.join(", ")),
    }
}

impl Row for Stream {
    const COLUMNS: &'static [Column] = &[
        Column::left("STREAM").cut(),
        Column::right("PARTITIONS"),
        Column::left("MODE"),
        Column::right("EVENTS"),
        Column::left("PROCESSORS").cut(),
        Column::right("LAG"),
        Column::right("HELD"),
        Column::right("DEAD"),
    ];

    fn id(&self) -> String {
        self.name.clone()
    }

    fn cells(&self) -> Vec<Cell> {
        let processors: Vec<&str> =
            self.processors.iter().map(|processor| processor.processor.as_str()).collect();
        let slowest = self.processors.iter().map(|processor| processor.lag).max().unwrap_or_default();
        vec![
            Cell::Text(self.name.clone()),
            Cell::Number(self.partitions.into()),
            Cell::Text(mode_of(self).to_owned()),
            Cell::Number(events_of(self)),
            Cell::maybe((!processors.is_empty()).then(|| processors.join(","))),
            Cell::Number(slowest),
            Cell::trouble(self.processors.iter().map(|processor| processor.held_lanes).sum()),
            Cell::trouble(self.processors.iter().map(|processor| processor.dead_letters).sum()),
        ]
    }
}

impl Detail for Stream {
    fn id(&self) -> String {
        self.name.clone()
    }

    fn parts(&self) -> Vec<(&'static str, Cell)> {
        let mut parts = vec![
            ("stream", Cell::Text(self.name.clone())),
            ("partitions", Cell::Number(self.partitions.into())),
            ("mode", Cell::Text(mode_of(self).to_owned())),
            ("keep", Cell::Text(self.keep.clone())),
            ("keep done", Cell::Text(self.keep_done.clone())),
            ("max pending", self.max_pending.map_or(Cell::Nothing, Cell::Number)),
            ("responder", Cell::maybe(self.responder.clone())),
            ("forget lanes after", Cell::maybe(self.forget_lanes_after.clone())),
            ("dedup window", Cell::Text(self.dedup_window.clone())),
            ("dedup max", Cell::Number(self.dedup_max)),
            ("dedup evicted", Cell::trouble(self.dedup_evicted)),
        ];
        let heads: Vec<String> =
            self.heads.iter().map(|head| format!("{}:{}", head.partition, head.head)).collect();
        parts.push(("heads", Cell::maybe((!heads.is_empty()).then(|| heads.join(" ")))));
        for processor in &self.processors {
            let words = format!(
                "{}: lag {}, {} lanes held, {} dead letters",
                processor.processor,
                grouped(processor.lag),
                grouped(processor.held_lanes),
                grouped(processor.dead_letters)
            );
            parts.push(("processor", Cell::Text(words)));
        }
        parts
    }
}
