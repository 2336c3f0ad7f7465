//! Streams.

use laneway::Mode;
use laneway::core::{StreamInfo, StreamSettings};
use laneway::engine::observe::StreamStanding;
use laneway_client::wire;

use super::time::length;
use crate::http::error::Result;
use laneway::core::period::text as length_text;

/// What a stream is to be. Partitions and mode never change, so leaving them out leaves them as they are.
pub(crate) fn stream_in(asked: &wire::StreamSettings, there: Option<&StreamInfo>) -> Result<StreamSettings> {
    let default = StreamSettings::default();
    let fixed = there.map_or(&default, |info| &info.settings);
    let mode = match asked.mode {
        Some(wire::Mode::Queue) => Mode::Queue,
        Some(wire::Mode::Latest) => Mode::Latest,
        None => fixed.mode,
    };
    let settings = StreamSettings {
        partitions: asked.partitions.unwrap_or(fixed.partitions),
        mode,
        keep: asked.keep.as_deref().map_or(Ok(default.keep), |keep| length("keep", keep))?,
        keep_done: asked
            .keep_done
            .as_deref()
            .map_or(Ok(default.keep_done), |keep| length("keep_done", keep))?,
        max_pending: asked.max_pending,
        responder: asked.responder.clone(),
        forget_lanes_after: asked
            .forget_lanes_after
            .as_deref()
            .map(|after| length("forget_lanes_after", after))
            .transpose()?,
        dedup_window: asked
            .dedup_window
            .as_deref()
            .map_or(Ok(default.dedup_window), |window| length("dedup_window", window))?,
        dedup_max: asked.dedup_max.unwrap_or(default.dedup_max),
        ..fixed.clone()
    };
    settings.check()?;
    Ok(settings)
}

/// A stream as it stands.
pub(crate) fn stream_out(standing: &StreamStanding) -> wire::Stream {
    let StreamStanding { info, partitions } = standing;
    let heads = partitions.iter().filter(|partition| partition.events > 0);
    let heads =
        heads.map(|at| wire::PartitionHead { partition: at.partition.0, head: at.head.0, events: at.events });
    let processors = info.processors.iter().map(|processor| {
        let seats = partitions.iter().flat_map(|partition| &partition.processors);
        let seats = seats.filter(|seat| seat.processor == processor.name);
        let mut told = wire::StreamProcessor {
            processor: processor.name.clone(),
            lag: standing.lag(&processor.name),
            held_lanes: 0,
            dead_letters: 0,
        };
        for seat in seats {
            told.held_lanes += seat.held_lanes;
            told.dead_letters += seat.dead_letters;
        }
        told
    });
    wire::Stream {
        name: info.name.clone(),
        partitions: info.settings.partitions,
        mode: match info.settings.mode {
            Mode::Queue => wire::Mode::Queue,
            Mode::Latest => wire::Mode::Latest,
        },
        keep: length_text(info.settings.keep),
        keep_done: length_text(info.settings.keep_done),
        max_pending: info.settings.max_pending,
        responder: info.settings.responder.clone(),
        forget_lanes_after: info.settings.forget_lanes_after.map(length_text),
        dedup_window: length_text(info.settings.dedup_window),
        dedup_max: info.settings.dedup_max,
        dedup_evicted: partitions.iter().map(|partition| partition.dedup_evicted).sum(),
        heads: heads.collect(),
        processors: processors.collect(),
    }
}
