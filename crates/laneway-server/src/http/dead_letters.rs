//! Dead letters: look at them, bring them back, forget them (contract 1.17).

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use laneway::core::store::{RedriveTo, RequestOp};
use laneway::core::{Key, LaneName, Seat};
use laneway::engine::lane::Answer;
use laneway::engine::observe::DeadLetter;
use laneway::{EventId, Partition, Ref};
use laneway_client::wire;

use super::answer::Json;
use super::code::Code;
use super::error::{Each, Failure, Result};
use super::lanes::processor_of;
use super::paging::{self, Page, Paging};
use super::processors::APPLIED_WITHIN;
use super::{body, under_way, wire as convert};
use crate::node::Node;

/// Most dead letters of one call.
const LETTERS_MAX: usize = 1_000;

/// A dead letter and whose it is.
struct Letter {
    stream: String,
    processor: String,
    dead: DeadLetter,
}

impl Letter {
    fn id(&self) -> EventId {
        self.dead.letter.event.id
    }

    fn lane(&self) -> LaneName {
        self.dead.letter.event.key.clone().map_or(LaneName::Event(self.id()), LaneName::Key)
    }

    fn reference(&self) -> String {
        convert::reference(&self.stream, self.dead.partition, self.id())
    }

    fn place(&self) -> (String, Partition, LaneName, EventId) {
        (self.processor.clone(), self.dead.partition, self.lane(), self.id())
    }

    fn is_with(&self, other: &Self) -> bool {
        (&self.processor, self.dead.partition, self.lane())
            == (&other.processor, other.dead.partition, other.lane())
    }
}

/// Which dead letters somebody means.
#[derive(Default)]
struct Wanted {
    stream: Option<String>,
    processor: Option<String>,
    key: Option<Key>,
}

/// Dead letters, by processor, partition and id.
#[utoipa::path(
    get, path = "/v1/dead-letters", tag = "dead letters",
    params(
        ("stream" = Option<String>, Query, description = "only of this stream"),
        ("processor" = Option<String>, Query, description = "only of this processor"),
        ("key" = Option<String>, Query, description = "only of the lane with this key"),
        ("key_b64" = Option<String>, Query, description = "the key in base64, when it is no UTF-8"),
        ("cursor" = Option<String>, Query, description = "where to go on: the next of the page before, with the same filter"),
        ("limit" = Option<usize>, Query, description = "at most so many, 1 to 1,000; default 100"),
    ),
    responses((status = 200, body = wire::DeadLetters, description = "a page; Link says where the next one is")),
)]
pub(super) async fn list(State(node): State<Node>, uri: Uri) -> Result<Page<wire::DeadLetters>> {
    let paging = Paging::read(&uri, &["stream", "processor", "key", "key_b64"])?;
    let filter = &paging.filter;
    let key = convert::key(filter.bytes("key"), filter.bytes("key_b64"))?;
    let wanted = Wanted { stream: filter.text("stream"), processor: filter.text("processor"), key };
    let (letters, next) = find(&node, &wanted, paging.place()?, paging.limit).await?;
    let next = next.map(|next| paging.cursor(&next));
    let items = letters.iter().map(told).collect();
    Ok(paging.answer(wire::DeadLetters { items, next: next.clone() }, next.as_deref()))
}

fn told(letter: &Letter) -> wire::DeadLetter {
    let dead = &letter.dead.letter;
    let convert::Named { key, key_b64 } = convert::named(dead.event.key.as_ref());
    let (data, data_b64) = convert::payload(&dead.event.data);
    wire::DeadLetter {
        reference: letter.reference(),
        processor: letter.processor.clone(),
        key,
        key_b64,
        kind: convert::kind(&dead.event.kind),
        data,
        data_b64,
        cause: String::from_utf8_lossy(&dead.cause).into_owned(),
        attempts: dead.attempts,
        at: convert::date_of(dead.at),
    }
}

/// Where a list of dead letters goes on: behind this event of this partition of this processor.
type Behind = (String, u32, u64);

/// Finds dead letters behind a place, and says where to go on.
async fn find(
    node: &Node,
    wanted: &Wanted,
    behind: Option<Behind>,
    limit: usize,
) -> Result<(Vec<Letter>, Option<Behind>)> {
    let engine = node.engine();
    engine.catalogue().refresh().await?;
    if let Some(stream) = &wanted.stream {
        engine.catalogue().stream(stream).await?;
    }
    if let Some(processor) = &wanted.processor {
        engine.catalogue().processor(processor).await?;
    }
    let mut letters: Vec<Letter> = Vec::new();
    for view in engine.processors().await? {
        let is_meant = wanted.stream.as_ref().is_none_or(|stream| *stream == view.stream)
            && wanted.processor.as_ref().is_none_or(|processor| *processor == view.name);
        let after = match &behind {
            Some((processor, ..)) if view.name < *processor => continue,
            Some((processor, partition, id)) if view.name == *processor => {
                Some((Partition(*partition), EventId(*id)))
            }
            _ => None,
        };
        if !is_meant {
            continue;
        }
        let room = limit - letters.len();
        let page = engine.looker().dead_letters_after(&view.name, wanted.key.as_ref(), after, room).await?;
        let (stream, processor) = (&view.stream, &view.name);
        letters.extend(page.letters.into_iter().map(|dead| Letter {
            stream: stream.clone(),
            processor: processor.clone(),
            dead,
        }));
        if let Some((partition, id)) = page.next {
            return Ok((letters, Some((view.name, partition.0, id.0))));
        }
    }
    Ok((letters, None))
}

/// What became of dead letters, all or some of them as asked.
type Changed = (StatusCode, Json<wire::DeadAnswers>);

/// What is told of one dead letter, and why if it was refused.
type Decided = (wire::DeadAnswer, Option<Failure>);

/// What is to become of dead letters.
#[derive(Clone, Copy)]
enum Wish {
    Redrive(RedriveTo),
    Discard,
}

/// Brings dead letters back, to their place in the lane or as a copy to its end. Those of one lane come back together. When
/// all are refused the call is too, with the reason, and says of each why.
#[utoipa::path(
    post, path = "/v1/dead-letters/redrive", tag = "dead letters",
    request_body = wire::DeadRequest,
    responses(
        (status = 200, body = wire::DeadAnswers, description = "what became of each: none was refused"),
        (status = 207, body = wire::DeadAnswers, description = "some were refused; each says why"),
    ),
)]
pub(super) async fn redrive(State(node): State<Node>, headers: HeaderMap, body: Body) -> Result<Changed> {
    let asked: wire::DeadRequest = body::object(&headers, body).await?;
    let to = match asked.to {
        Some(wire::RedriveTo::Tail) => RedriveTo::Tail,
        Some(wire::RedriveTo::Place) | None => RedriveTo::Place,
    };
    ask(&node, Wish::Redrive(to), asked).await
}

/// Forgets dead letters for good. A lane that diverts goes on diverting until it is resumed. When all are refused the call is
/// too, with the reason, and says of each why.
#[utoipa::path(
    post, path = "/v1/dead-letters/discard", tag = "dead letters",
    request_body = wire::DeadRequest,
    responses(
        (status = 200, body = wire::DeadAnswers, description = "what became of each: none was refused"),
        (status = 207, body = wire::DeadAnswers, description = "some were refused; each says why"),
    ),
)]
pub(super) async fn discard(State(node): State<Node>, headers: HeaderMap, body: Body) -> Result<Changed> {
    let asked: wire::DeadRequest = body::object(&headers, body).await?;
    if asked.to.is_some() {
        return Err(Failure::value("to", "set", "absent: what is discarded goes nowhere"));
    }
    ask(&node, Wish::Discard, asked).await
}

async fn ask(node: &Node, wish: Wish, asked: wire::DeadRequest) -> Result<Changed> {
    let (mut items, mut letters, next) = match (&asked.filter, asked.refs.is_empty()) {
        (Some(_), false) => {
            return Err(Failure::value("filter", "set beside refs", "the only one of the two"));
        }
        (None, true) => return Err(Failure::value("refs", "absent", "1 to 1000 names, or filter set")),
        (Some(_), true) if asked.processor.is_some() => {
            return Err(Failure::value("processor", "set beside filter", "a field of the filter"));
        }
        (Some(filter), true) => {
            let list = serde_json::to_string(filter).expect("a filter is plain data");
            let behind = paging::place("cursor", &list, asked.cursor.as_deref().map(str::as_bytes))?;
            let (letters, next) = find(node, &wanted(filter)?, behind, LETTERS_MAX).await?;
            (Vec::new(), letters, next.map(|next| paging::cursor(&list, &next)))
        }
        (None, false) if asked.cursor.is_some() => {
            return Err(Failure::value("cursor", "set beside refs", "absent unless filter is set"));
        }
        (None, false) => {
            if asked.refs.len() > LETTERS_MAX {
                return Err(Failure::value("refs", format!("{} names", asked.refs.len()), "1 to 1000"));
            }
            let (missing, letters) = named(node, &asked).await?;
            (missing, letters, None)
        }
    };
    // Those of a lane come back together, and in order.
    letters.sort_by_key(Letter::place);
    letters.dedup_by_key(|letter| letter.place());
    let mut rest = &letters[..];
    while let Some(first) = rest.first() {
        let with = rest.iter().take_while(|letter| letter.is_with(first)).count();
        let (lane, others) = rest.split_at(with);
        rest = others;
        let answers = match asked.dry_run {
            true => lane.iter().map(|letter| accepted(letter, false)).collect(),
            // A filter never means a part of a lane.
            false if asked.filter.is_some() => change_lane(node, wish, lane).await?,
            false => change(node, wish, lane).await?,
        };
        items.extend(answers);
    }
    let count = items.iter().filter(|(_, refusal)| refusal.is_none()).count();
    let is_whole = count == items.len();
    let (items, refusals): (Vec<_>, Vec<_>) = items.into_iter().unzip();
    let answers = wire::DeadAnswers { count: count as u64, items, next };
    if count > 0 || is_whole {
        let status = if is_whole { StatusCode::OK } else { StatusCode::MULTI_STATUS };
        return Ok((status, Json(answers)));
    }
    // Nothing at all was changed: a refusal, by the reason of one that is there if any is.
    let refusals = refusals.into_iter().flatten();
    let first = refusals.min_by_key(|failure| failure.code == Code::DeadLetterNotFound);
    Err(Failure { each: Some(Each::DeadLetters(answers)), ..first.expect("each was refused") })
}

fn wanted(filter: &wire::DeadFilter) -> Result<Wanted> {
    let key =
        convert::key(filter.key.as_ref().map(AsRef::as_ref), filter.key_b64.as_ref().map(AsRef::as_ref))?;
    if filter.stream.is_none() && filter.processor.is_none() {
        return Err(Failure::value("filter", "without stream and processor", "about one of them at least"));
    }
    Ok(Wanted { stream: filter.stream.clone(), processor: filter.processor.clone(), key })
}

/// The dead letters of these names; and what was none.
async fn named(node: &Node, asked: &wire::DeadRequest) -> Result<(Vec<Decided>, Vec<Letter>)> {
    let engine = node.engine();
    engine.catalogue().refresh().await?;
    let (mut missing, mut letters) = (Vec::new(), Vec::new());
    for text in &asked.refs {
        let Ref { stream, partition, id } = text.parse()?;
        let info = engine.catalogue().stream(&stream).await?;
        let processor = processor_of(&info, asked.processor.as_deref())?;
        match engine.looker().dead_letter(&processor, partition, id).await? {
            Some(dead) => letters.push(Letter { stream, processor, dead }),
            None => {
                let detail = format!("event {text} is no dead letter of processor {processor:?}");
                let failure = Failure::new(Code::DeadLetterNotFound, detail);
                missing.push(refused(text.clone(), processor, failure));
            }
        }
    }
    Ok((missing, letters))
}

/// Changes dead letters of one lane that were named: all it has at once, else one by one.
async fn change(node: &Node, wish: Wish, lane: &[Letter]) -> Result<Vec<Decided>> {
    let Some(first) = lane.first() else { return Ok(Vec::new()) };
    let looker = node.engine().looker();
    let all = match &first.dead.letter.event.key {
        Some(key) => looker.dead_letters_of(&first.processor, Some(key), lane.len() + 1).await?.len(),
        None => 1,
    };
    if lane.len() == all && all > 1 {
        return change_lane(node, wish, lane).await;
    }
    let mut items = Vec::with_capacity(lane.len());
    for letter in lane {
        let decided = file(node, wish, letter, Some(letter.id())).await?;
        items.push(item(letter, &decided));
    }
    Ok(items)
}

/// Changes all dead letters that a lane has; these are told.
async fn change_lane(node: &Node, wish: Wish, lane: &[Letter]) -> Result<Vec<Decided>> {
    let Some(first) = lane.first() else { return Ok(Vec::new()) };
    let decided = file(node, wish, first, None).await?;
    Ok(lane.iter().map(|letter| item(letter, &decided)).collect())
}

fn item(letter: &Letter, decided: &Result<bool>) -> Decided {
    match decided {
        Ok(applied) => accepted(letter, !applied),
        Err(failure) => refused(letter.reference(), letter.processor.clone(), failure.clone()),
    }
}

/// Asks the owner; answers whether it has decided yet.
async fn file(node: &Node, wish: Wish, letter: &Letter, id: Option<EventId>) -> Result<Result<bool>> {
    let engine = node.engine();
    let (info, processor) = engine.catalogue().processor(&letter.processor).await?;
    let seat = Seat { shard: info.shard(letter.dead.partition), processor };
    let lane = letter.lane();
    let op = match wish {
        Wish::Redrive(to) => RequestOp::Redrive { id, lane, to },
        Wish::Discard => RequestOp::Discard { id, lane },
    };
    let filed = engine.operator().file(seat, engine.env().token(), op).await?;
    Ok(match engine.operator().answer(filed, under_way::patience(APPLIED_WITHIN)).await? {
        Some(Answer::Applied | Answer::Already) => Ok(true),
        Some(Answer::Refused(why)) => Err(why.into()),
        None => Ok(false),
    })
}

fn accepted(letter: &Letter, pending: bool) -> Decided {
    let answer = wire::DeadAnswer {
        reference: letter.reference(),
        processor: letter.processor.clone(),
        accepted: true,
        pending,
        code: None,
        detail: None,
    };
    (answer, None)
}

fn refused(reference: String, processor: String, failure: Failure) -> Decided {
    let (code, detail) = (Some(failure.code.name().to_owned()), Some(failure.detail.clone()));
    let answer = wire::DeadAnswer { reference, processor, accepted: false, pending: false, code, detail };
    (answer, Some(failure))
}
