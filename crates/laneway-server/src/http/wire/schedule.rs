//! Schedules: what one is to be, and how it stands.

use bytes::Bytes;
use laneway::Timestamp;
use laneway::core::Mode;
use laneway::core::{Headers, Kind};
use laneway::engine::upkeep::ScheduleStanding;
use laneway::engine::upkeep::schedule::{CatchUp, Firing, Overlap, Schedule, Spec};
use laneway_client::wire;

use super::key::{Named, key, named};
use super::payload::payload;
use super::time::{date_of, length};
use super::{header_texts, kind};
use crate::http::error::{Failure, Result};
use laneway::core::period::text as length_text;

/// Most missed firings that are made up for, unless it is said.
const CATCH_UP_MAX: u32 = 1_000;

/// What a schedule is to be, on a stream of this mode.
pub(crate) fn schedule_in(name: &str, asked: wire::ScheduleSettings, mode: Mode) -> Result<Schedule> {
    let spec = match (asked.cron, asked.every.as_deref()) {
        (Some(_), Some(_)) => {
            return Err(Failure::value("every", "set beside cron", "the only one of the two"));
        }
        (None, None) => return Err(Failure::value("cron", "absent", "set, or every")),
        (Some(expression), None) => {
            Spec::Cron { expression, zone: asked.zone.unwrap_or_else(|| "UTC".to_owned()) }
        }
        (None, Some(_)) if asked.zone.is_some() => {
            return Err(Failure::value(
                "zone",
                "set beside every",
                "absent: a beat is the same in all zones",
            ));
        }
        (None, Some(every)) => Spec::Every { length: length("every", every)?, anchor: Timestamp(0) },
    };
    let catch_up = match (asked.catch_up, asked.catch_up_max) {
        (Some(wire::CatchUp::All), max) => CatchUp::All { max: max.unwrap_or(CATCH_UP_MAX) },
        (_, Some(_)) => return Err(Failure::value("catch_up_max", "set", "absent unless catch_up is all")),
        (Some(wire::CatchUp::None), None) => CatchUp::None,
        (Some(wire::CatchUp::Last) | None, None) => CatchUp::Last,
    };
    let overlap = match asked.overlap {
        Some(wire::Overlap::Allow) if mode == Mode::Latest => {
            let limit = "queue or skip where the newest wins, because every event there has a key";
            return Err(Failure::value("overlap", "allow", limit));
        }
        Some(wire::Overlap::Allow) => Overlap::Allow,
        Some(wire::Overlap::Skip) => Overlap::Skip,
        Some(wire::Overlap::Queue) | None => Overlap::Queue,
    };
    let data = asked.data.as_ref().map_or("null", |data| data.get());
    let firing = Firing {
        stream: asked.stream,
        key: key(asked.key.as_ref().map(AsRef::as_ref), asked.key_b64.as_ref().map(AsRef::as_ref))?,
        kind: Kind::new(asked.kind.unwrap_or_default())?,
        data: Bytes::copy_from_slice(data.as_bytes()),
        headers: Headers::new(asked.headers)?,
        processor: asked.processor,
    };
    // When it takes effect is decided where it is stored.
    let since = Timestamp(0);
    let schedule =
        Schedule { name: name.to_owned(), spec, overlap, catch_up, paused: asked.paused, since, firing };
    schedule.check()?;
    Ok(schedule)
}

/// A schedule as it stands.
pub(crate) fn schedule_out(standing: ScheduleStanding) -> wire::Schedule {
    let ScheduleStanding { schedule, version: _, last_due, last_job, next } = standing;
    let (cron, zone, every) = match schedule.spec {
        Spec::Cron { expression, zone } => (Some(expression), Some(zone), None),
        Spec::Every { length, anchor: _ } => (None, None, Some(length_text(length))),
    };
    let (catch_up, catch_up_max) = match schedule.catch_up {
        CatchUp::None => (wire::CatchUp::None, None),
        CatchUp::Last => (wire::CatchUp::Last, None),
        CatchUp::All { max } => (wire::CatchUp::All, Some(max)),
    };
    let overlap = match schedule.overlap {
        Overlap::Queue => wire::Overlap::Queue,
        Overlap::Skip => wire::Overlap::Skip,
        Overlap::Allow => wire::Overlap::Allow,
    };
    let firing = schedule.firing;
    let Named { key, key_b64 } = named(firing.key.as_ref());
    wire::Schedule {
        name: schedule.name,
        settings: wire::ScheduleSettings {
            stream: firing.stream,
            cron,
            zone,
            every,
            overlap: Some(overlap),
            catch_up: Some(catch_up),
            catch_up_max,
            key,
            key_b64,
            kind: kind(&firing.kind),
            data: payload(&firing.data).0,
            headers: header_texts(&firing.headers),
            processor: firing.processor,
            paused: schedule.paused,
        },
        next: next.into_iter().map(date_of).collect(),
        last_due_at: last_due.map(date_of),
        last_job: last_job.map(|job| job.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Schedule> {
        schedule_in("tick", serde_json::from_str(json).unwrap(), Mode::Queue)
    }

    #[test]
    fn settings_come_back_as_they_were() {
        for json in [
            r#"{"stream":"a","cron":"0 3 * * *","zone":"Europe/Berlin","overlap":"skip","catch_up":"none","key":"k",
                "type":"t","data":{"n":1.0},"headers":{"h":"v"},"processor":"p","paused":true}"#,
            r#"{"stream":"a","every":"10m","overlap":"allow","catch_up":"all","catch_up_max":7,"data":null}"#,
        ] {
            let schedule = read(json).unwrap();
            let standing =
                ScheduleStanding { schedule, version: 1, last_due: None, last_job: None, next: Vec::new() };
            let told = serde_json::to_value(schedule_out(standing).settings).unwrap();
            assert_eq!(told, serde_json::from_str::<serde_json::Value>(json).unwrap());
        }
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        for (json, says) in [
            (r#"{"stream":"a"}"#, "cron is absent"),
            (r#"{"stream":"a","cron":"* * * * *","every":"1m"}"#, "the only one of the two"),
            (r#"{"stream":"a","every":"1m","zone":"UTC"}"#, "zone is set"),
            (r#"{"stream":"a","every":"1m","catch_up_max":3}"#, "catch_up_max is set"),
            (r#"{"stream":"a","every":"1ms"}"#, "every"),
            (r#"{"stream":"a","every":"1m","overlap":"skip"}"#, "overlap is skip"),
            (r#"{"stream":"a","cron":"0 3 * * *","zone":"Mars/Base"}"#, "Mars/Base"),
        ] {
            let told = read(json).unwrap_err().detail;
            assert!(told.contains(says), "{json}: {told}");
        }
    }
}
