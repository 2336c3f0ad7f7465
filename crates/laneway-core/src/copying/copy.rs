//! The way of a copy: streams are created, shards filled, numbers kept, and only then everything is opened.

use super::report::CopyReport;
use super::rows::wrong_kind;
use super::seat::SeatCopy;
use super::shard::{ShardCopy, seats};
use super::shift::Shift;
use crate::error::{Refusal, Result};
use crate::ids::{Partition, Seat, Shard};
use crate::store::{Define, Import, Query, Rows, SeatView, Store, StoreView};
use crate::stream::{ShardInfo, StreamInfo};

/// Copies every stream of one store into another that has none of them. Nobody may work on either meanwhile.
///
/// Everything that a store promises to keep comes over under the same numbers: the next append at the target gets
/// the next id and `prev`, a job is found under its id, a repeated draft is told to be one. What differs at the
/// target, and why that is safe:
///
/// - It keeps its own incarnation; `adoptions` goes on. A shard that had to be adopted at the source must be
///   adopted at the target.
/// - Seats have no owner: whoever takes one gets a term above every term given at the source, so that the fence
///   shown to others only grows, and old holders are refused. Whether the last owner ended cleanly is kept.
/// - What is due by the steady clock keeps the time it has left. Dates stay.
/// - Ends of jobs whose time is over come without their result, and only while their event is there; a shortened
///   life comes as the life of its end.
/// - Chunks of results that no job's end names are not copied: the run that wrote them is over with its owner.
/// - Documents are no part of this seam. Those that tell of nodes must not travel, for leases must not; schedules are
///   documents too, and are copied by who knows them (the engine's `Schedules::copy_from`).
///
/// A copy that failed leaves shards at the target that nobody can use: begin again with an empty target, or remove
/// those streams. A target whose numbers of streams or processors are in use already is refused.
///
/// Memory is bounded by a page of rows, whatever the stores hold.
pub async fn copy(from: &dyn Store, to: &dyn Store) -> Result<CopyReport> {
    let streams = streams(from).await?;
    check_target(&streams, &self::streams(to).await?)?;
    let (source, target) = (view(from).await?, view(to).await?);
    let shift = Shift::between(&source, &target);
    let mut report = CopyReport::default();
    let mut copied = Vec::new();
    for stream in &streams {
        to.define(Define::Import(Import::Stream(stream.clone()))).await?;
        report.streams += 1;
        report.processors += stream.processors.len() as u64;
        for partition in 0..stream.settings.partitions {
            let shard = stream.shard(Partition(partition));
            let found = seats(from, shard).await?;
            copy_shard(from, to, (shard, shift), &found, &mut report).await?;
            copied.push((shard, found));
        }
    }
    to.define(Define::Import(Import::Numbers(source.streams, source.processors))).await?;
    // Only after everything: a stream of which a part can be used looks whole to a producer.
    for (shard, found) in copied {
        finish(from, to, shard, found).await?;
        report.shards += 1;
    }
    Ok(report)
}

pub(super) async fn streams(store: &dyn Store) -> Result<Vec<StreamInfo>> {
    match store.query(Query::Streams).await? {
        Rows::Streams(streams) => Ok(streams),
        _ => Err(wrong_kind()),
    }
}

async fn view(store: &dyn Store) -> Result<StoreView> {
    match store.query(Query::Store).await? {
        Rows::Store(view) => Ok(view),
        _ => Err(wrong_kind()),
    }
}

fn check_target(streams: &[StreamInfo], target: &[StreamInfo]) -> Result<()> {
    for stream in streams {
        let taken = target.iter().find(|found| found.name == stream.name || found.id == stream.id);
        if let Some(found) = taken {
            let value = format!("{} (number {}) at the target", found.name, found.id);
            return Err(Refusal::new("stream", value, "absent there, because it is to be copied").into());
        }
    }
    Ok(())
}

async fn copy_shard(
    from: &dyn Store,
    to: &dyn Store,
    (shard, shift): (Shard, Shift),
    (info, seats): &(ShardInfo, Vec<SeatView>),
    report: &mut CopyReport,
) -> Result<()> {
    let written = ShardCopy { from, to, shard, shift }.run(info, seats.clone()).await?;
    report.events += written.events.rows;
    report.jobs += written.ends.rows;
    let mut rest = written.rest;
    for view in seats {
        let seat = Seat { shard, processor: view.processor };
        rest += SeatCopy { from, to, seat, shift }.run().await?;
    }
    report.rows += rest.rows;
    report.bytes += written.events.bytes + written.ends.bytes + rest.bytes;
    Ok(())
}

/// Opens a shard at the target, if the source did not change under the copy.
async fn finish(
    from: &dyn Store,
    to: &dyn Store,
    shard: Shard,
    before: (ShardInfo, Vec<SeatView>),
) -> Result<()> {
    if seats(from, shard).await? != before {
        let value = format!("shard {shard}, which changed while it was copied");
        return Err(Refusal::new("source", value, "left alone until the copy has finished").into());
    }
    let mut info = before.0;
    if info.incarnation == from.about().incarnation {
        info.incarnation = to.about().incarnation;
    }
    to.define(Define::Import(Import::Finish(shard, info))).await?;
    Ok(())
}
