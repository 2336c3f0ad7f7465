//! `laneway lane …`, and `laneway why` for lanes.

use laneway_client::Client;
use laneway_client::wire::{Lane, LaneAnswer, LaneFilter, LaneRequest, LaneStatus, ListedLane};

use super::watch::watched;
use crate::args::{LaneList, LanePick, LaneStatusArg, LaneVerb};
use crate::exit::{Exit, Fault};
use crate::output::{Cell, Column, Detail, Row, Writer, agree, grouped, key_of};
use crate::terminal::say;

pub(super) async fn run(client: &Client, writer: Writer, verb: LaneVerb) -> Result<(), Fault> {
    match verb {
        LaneVerb::Ls(args) => watched(writer, &args.watch, async || list(client, writer, &args).await).await,
        LaneVerb::Get(name) => writer.one(&client.lane(&name.stream, name.key.as_bytes()).await?),
        LaneVerb::Pause(pick) => operate(client, writer, Verb::Pause, pick).await,
        LaneVerb::Resume(pick) => operate(client, writer, Verb::Resume, pick).await,
        LaneVerb::Retry(pick) => operate(client, writer, Verb::Retry, pick).await,
        LaneVerb::Skip(pick) => operate(client, writer, Verb::Skip, pick).await,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Pause,
    Resume,
    Retry,
    Skip,
}

impl Verb {
    fn word(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Retry => "retry",
            Self::Skip => "skip",
        }
    }

    async fn call(self, client: &Client, stream: &str, lane: &LaneRequest) -> Result<LaneAnswer, Fault> {
        Ok(match self {
            Self::Pause => client.pause_lane(stream, lane).await?,
            Self::Resume => client.resume_lane(stream, lane).await?,
            Self::Retry => client.retry_lane(stream, lane).await?,
            Self::Skip => client.skip_lane(stream, lane).await?,
        })
    }
}

/// Lanes of a status, or all that are held up, page by page.
async fn list(client: &Client, writer: Writer, args: &LaneList) -> Result<(), Fault> {
    let status = args.status.map(LaneStatus::from);
    let (mut found, mut cursor, mut partial) = (Vec::new(), None, false);
    loop {
        let page = client.lanes(&args.stream, status, cursor.as_deref()).await?;
        partial |= page.partial;
        let meant = |lane: &ListedLane| args.processor.as_ref().is_none_or(|name| *name == lane.processor);
        found.extend(page.items.into_iter().filter(meant));
        cursor = page.next;
        if cursor.is_none() || found.len() >= args.limit {
            break;
        }
    }
    let more = cursor.is_some() || found.len() > args.limit;
    found.truncate(args.limit);
    writer.list(&found, "no such lanes")?;
    if more {
        writer.remark(format_args!("there are more; raise --limit ({})", args.limit));
    }
    if partial {
        writer.remark("gathered from what moves meanwhile: a lane may be missing");
    }
    Ok(())
}

impl From<LaneStatusArg> for LaneStatus {
    fn from(status: LaneStatusArg) -> Self {
        match status {
            LaneStatusArg::Waiting => Self::Waiting,
            LaneStatusArg::Running => Self::Running,
            LaneStatusArg::Retrying => Self::Retrying,
            LaneStatusArg::Parked => Self::Parked,
            LaneStatusArg::Paused => Self::Paused,
            LaneStatusArg::Diverting => Self::Diverting,
        }
    }
}

impl Row for ListedLane {
    const COLUMNS: &'static [Column] = &[
        Column::left("KEY").cut(),
        Column::left("PROCESSOR").cut(),
        Column::left("STATUS"),
        Column::left("HEAD"),
        Column::right("ATTEMPTS"),
        Column::left("NEXT TRY").rare(),
        Column::left("CAUSE").cut(),
    ];

    fn id(&self) -> String {
        self.key.clone().or_else(|| self.head.clone()).unwrap_or_default()
    }

    fn cells(&self) -> Vec<Cell> {
        vec![
            key_of(self.key.as_deref(), self.key_b64.as_deref()),
            Cell::Text(self.processor.clone()),
            Cell::status(&self.status),
            Cell::maybe(self.head.clone()),
            Cell::Number(self.attempt.into()),
            Cell::time(self.next_attempt_at.as_deref()),
            Cell::maybe(self.cause.clone()),
        ]
    }
}

async fn operate(client: &Client, writer: Writer, verb: Verb, pick: LanePick) -> Result<(), Fault> {
    let what = match (&pick.key, &pick.reference, pick.status) {
        (Some(key), _, _) => format!("lane {key:?} of {}", pick.stream),
        (None, Some(reference), _) => format!("the lane of {reference}"),
        (None, None, Some(status)) => format!("the {status:?} lanes of {}", pick.stream).to_lowercase(),
        (None, None, None) => {
            return Err(Fault::usage("no lane is named").hint("say its KEY, --ref or --status"));
        }
    };
    let mut request = LaneRequest {
        key: pick.key,
        reference: pick.reference,
        processor: pick.processor,
        filter: pick.status.map(|status| LaneFilter { status: status.into() }),
        dry_run: true,
        ..LaneRequest::default()
    };
    if pick.consent.dry_run {
        let answer = all(client, verb, &pick.stream, &mut request).await?;
        let words = format!("would {} {}: {what}", verb.word(), lanes(answer.count));
        return writer.done(words, &answer, answer.count);
    }
    if verb == Verb::Skip {
        agree(pick.consent, &format!("pass over the head of {what}"))?;
    }
    request.dry_run = false;
    let answer = all(client, verb, &pick.stream, &mut request).await?;
    let refused =
        if answer.refused > 0 { format!(", {} refused", grouped(answer.refused)) } else { String::new() };
    let when = if answer.applied { "" } else { "; it has its effect once the processor runs" };
    writer.done(format!("{}: {}{refused}{when}", verb.word(), lanes(answer.count)), &answer, answer.count)
}

/// Page by page, until the filter finds no more.
async fn all(
    client: &Client,
    verb: Verb,
    stream: &str,
    request: &mut LaneRequest,
) -> Result<LaneAnswer, Fault> {
    let mut whole = LaneAnswer { count: 0, applied: true, refused: 0, next: None };
    loop {
        let answer = verb.call(client, stream, request).await?;
        whole.count += answer.count;
        whole.refused += answer.refused;
        whole.applied &= answer.applied;
        request.cursor = answer.next;
        if request.cursor.is_none() {
            return Ok(whole);
        }
    }
}

fn lanes(count: u64) -> String {
    if count == 1 { "1 lane".to_owned() } else { format!("{} lanes", grouped(count)) }
}

impl Detail for Lane {
    fn id(&self) -> String {
        self.key.clone().unwrap_or_default()
    }

    fn parts(&self) -> Vec<(&'static str, Cell)> {
        let mut parts = vec![
            ("stream", Cell::Text(self.stream.clone())),
            ("key", key_of(self.key.as_deref(), self.key_b64.as_deref())),
            ("partition", Cell::Number(self.partition.into())),
            ("events", Cell::Number(self.last_seq)),
            ("pending", Cell::Number(self.pending)),
            ("last", Cell::maybe(self.last_id.map(|id| format!("{}/{}/{id}", self.stream, self.partition)))),
        ];
        if let Some(generation) = self.generation {
            parts.push(("generation", Cell::Number(generation)));
        }
        if let Some(object) = &self.object {
            let version = self.object_version.unwrap_or_default();
            parts.push(("object", Cell::Text(format!("{} (version {version})", object.get()))));
        }
        for processor in &self.processors {
            parts.push(("processor", Cell::Text(processor.processor.clone())));
            parts.push(("  status", Cell::status(&processor.status)));
            parts.push(("  head", Cell::maybe(processor.head.clone())));
            parts.push(("  attempts", Cell::Number(processor.attempt.into())));
            if processor.next_attempt_at.is_some() {
                parts.push(("  next try", Cell::time(processor.next_attempt_at.as_deref())));
            }
            if let Some(state) = &processor.state {
                parts.push(("  state", Cell::Text(state.get().to_owned())));
            }
            parts.push(("  why", Cell::Text(processor.why.to_string())));
        }
        parts
    }
}

/// One sentence per processor.
pub(super) async fn why(
    client: &Client,
    writer: Writer,
    stream: &str,
    key: &str,
    processor: Option<&str>,
) -> Result<(), Fault> {
    let lane = client.lane(stream, key.as_bytes()).await?;
    let meant: Vec<_> =
        lane.processors.iter().filter(|lane| processor.is_none_or(|name| lane.processor == name)).collect();
    if let (Some(name), []) = (processor, &meant[..]) {
        let words = format!("stream {stream:?} has no processor {name:?}");
        return Err(Fault::new(Exit::NotFound, words).hint("laneway stream get shows those it has"));
    }
    if !writer.is_for_people() {
        return writer.json(&meant);
    }
    if lane.last_seq == 0 {
        say(format_args!("lane {key:?} of {stream} has no events"));
    } else if meant.is_empty() {
        say(format_args!("lane {key:?} of {stream}: no processor runs its events"));
    }
    for lane in meant.iter().filter(|_| lane.last_seq > 0) {
        say(format_args!("lane {key:?} of {stream}, {}: {}", lane.processor, lane.why));
    }
    Ok(())
}
