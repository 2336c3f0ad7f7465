//! `laneway dead …`: dead letters.

use std::fs::File;
use std::io::Write;

use laneway_client::Client;
use laneway_client::wire::{DeadAnswer, DeadAnswers, DeadFilter, DeadLetter, DeadRequest, RedriveTo};

use super::watch::watched;
use crate::args::{DeadChoice, DeadExport, DeadList, DeadPick, DeadVerb, RedriveToArg};
use crate::exit::{Exit, Fault};
use crate::output::{Cell, Column, Row, Writer, agree, grouped, key_of};

/// Dead letters of one call.
const PAGE: usize = 1_000;

pub(super) async fn run(client: &Client, writer: Writer, verb: DeadVerb) -> Result<(), Fault> {
    match verb {
        DeadVerb::Ls(args) => watched(writer, &args.watch, async || list(client, writer, &args).await).await,
        DeadVerb::Redrive(args) => {
            let to = match args.to {
                RedriveToArg::Place => RedriveTo::Place,
                RedriveToArg::Tail => RedriveTo::Tail,
            };
            let request = DeadRequest { to: Some(to), ..request(&args.choice)? };
            decide(client, writer, Verb::Redrive, &args.choice, request).await
        }
        DeadVerb::Export(args) => export(client, writer, args).await,
        DeadVerb::Discard(args) => {
            let request = request(&args.choice)?;
            decide(client, writer, Verb::Discard, &args.choice, request).await
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Redrive,
    Discard,
}

impl Verb {
    async fn call(self, client: &Client, request: &DeadRequest) -> Result<DeadAnswers, Fault> {
        Ok(match self {
            Self::Redrive => client.redrive(request).await?,
            Self::Discard => client.discard(request).await?,
        })
    }
}

fn filter(pick: &DeadPick) -> DeadFilter {
    DeadFilter {
        stream: pick.stream.clone(),
        processor: pick.processor.clone(),
        key: pick.key.clone(),
        key_b64: None,
    }
}

/// Names, or what they have in common; never simply all.
fn request(choice: &DeadChoice) -> Result<DeadRequest, Fault> {
    let pick = &choice.pick;
    if !choice.refs.is_empty() {
        if pick.stream.is_some() || pick.key.is_some() {
            return Err(Fault::usage("say refs, or --stream and --key, not both"));
        }
        let refs = choice.refs.clone();
        return Ok(DeadRequest { refs, processor: pick.processor.clone(), ..DeadRequest::default() });
    }
    if pick.stream.is_none() && pick.processor.is_none() {
        let hint = "say their refs, or --stream or --processor, and maybe --key";
        return Err(Fault::usage("which dead letters?").hint(hint));
    }
    Ok(DeadRequest { filter: Some(filter(pick)), ..DeadRequest::default() })
}

/// Looks first what would be hit, so that the question can name it.
async fn decide(
    client: &Client,
    writer: Writer,
    verb: Verb,
    choice: &DeadChoice,
    mut request: DeadRequest,
) -> Result<(), Fault> {
    let looked = verb.call(client, &DeadRequest { dry_run: true, ..request.clone() }).await?;
    let count = format!(
        "{}{} dead letters",
        grouped(looked.count),
        if looked.next.is_some() { " or more" } else { "" }
    );
    let what = match verb {
        Verb::Redrive => format!("bring back {count}"),
        Verb::Discard => format!("forget {count} for good"),
    };
    if choice.consent.dry_run {
        writer.list(&looked.items, "no dead letters are meant")?;
        writer.remark(format_args!("would {what}"));
        return Ok(());
    }
    if looked.count > 0 && verb == Verb::Discard {
        agree(choice.consent, &what)?;
    }
    let (mut count, mut refused) = (0, Vec::new());
    loop {
        let answers = verb.call(client, &request).await?;
        count += answers.count;
        if !writer.is_for_people() {
            writer.list(&answers.items, "")?;
        }
        refused.extend(answers.items.into_iter().filter(|item| !item.accepted));
        if answers.next.is_none() {
            break;
        }
        request.cursor = answers.next;
    }
    let done = if verb == Verb::Redrive { "brought back" } else { "forgotten" };
    if writer.is_for_people() {
        refused.iter().try_for_each(|item| writer.next(item))?;
        writer.done(
            format!("{} {done}, {} refused", grouped(count), grouped(refused.len() as u64)),
            &count,
            count,
        )?;
    }
    if count == 0 && !refused.is_empty() { Err(Fault::silent(Exit::Conflict)) } else { Ok(()) }
}

async fn list(client: &Client, writer: Writer, args: &DeadList) -> Result<(), Fault> {
    let (found, more) = found(client, &args.pick, args.limit).await?;
    writer.list(&found, "no dead letters")?;
    if more {
        writer.remark(format_args!("there are more; raise --limit ({})", args.limit));
    }
    Ok(())
}

/// At most so many, page by page, and whether there are more.
async fn found(client: &Client, pick: &DeadPick, limit: usize) -> Result<(Vec<DeadLetter>, bool), Fault> {
    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let page = client
            .dead_letters(&filter(pick), cursor.as_deref(), (limit - found.len()).clamp(1, PAGE))
            .await?;
        found.extend(page.items);
        cursor = page.next;
        if cursor.is_none() || found.len() >= limit {
            return Ok((found, cursor.is_some()));
        }
    }
}

/// All of them as JSON lines, a page at a time.
async fn export(client: &Client, writer: Writer, args: DeadExport) -> Result<(), Fault> {
    let mut out: Box<dyn Write> = match &args.file {
        Some(path) => Box::new(
            File::create_new(path)
                .map_err(|error| Fault::usage(format!("--file {}: {error}", path.display())))?,
        ),
        None => Box::new(std::io::stdout()),
    };
    let (mut count, mut cursor) = (0_u64, None::<String>);
    loop {
        let page = client.dead_letters(&filter(&args.pick), cursor.as_deref(), PAGE).await?;
        for letter in &page.items {
            let line = serde_json::to_string(letter).map_err(Fault::internal)?;
            writeln!(out, "{line}").map_err(|error| Fault::failed(format!("cannot write: {error}")))?;
            count += 1;
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    out.flush().map_err(|error| Fault::failed(format!("cannot write: {error}")))?;
    writer.remark(format_args!("{} dead letters written", grouped(count)));
    Ok(())
}

impl Row for DeadLetter {
    const COLUMNS: &'static [Column] = &[
        Column::left("REF"),
        Column::left("PROCESSOR").cut(),
        Column::left("KEY").cut(),
        Column::right("ATTEMPTS"),
        Column::left("AT"),
        Column::left("CAUSE").cut(),
    ];

    fn id(&self) -> String {
        self.reference.clone()
    }

    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::Text(self.reference.clone()),
            Cell::Text(self.processor.clone()),
            key_of(self.key.as_deref(), self.key_b64.as_deref()),
            Cell::Number(self.attempts.into()),
            Cell::Time(self.at.clone()),
            Cell::Text(self.cause.clone()),
        ]
    }
}

impl Row for DeadAnswer {
    const COLUMNS: &'static [Column] = &[
        Column::left("REF"),
        Column::left("PROCESSOR").cut(),
        Column::left("ACCEPTED"),
        Column::left("WHY").cut(),
    ];

    fn id(&self) -> String {
        self.reference.clone()
    }

    fn cells(&self) -> Vec<Cell> {
        let accepted = match (self.accepted, self.pending) {
            (true, true) => "once it runs",
            (true, false) => "yes",
            (false, _) => "no",
        };
        vec![
            Cell::Text(self.reference.clone()),
            Cell::Text(self.processor.clone()),
            Cell::Text(accepted.to_owned()),
            Cell::maybe(self.detail.clone().or_else(|| self.code.clone())),
        ]
    }
}
