//! Brings batches to the server, in order: again where it is busy or gone for a while, event by event where one is bad.

use std::time::Duration;

use laneway_client::wire::{Appended, AppendedAs, EventDraft, EventReceipt};
use laneway_client::{Client, ClientError};

use crate::exit::{Exit, Fault};
use crate::output::Progress;
use crate::seam;

/// How long a server may be busy or gone, without taking anything, before the sending is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// First and longest wait before it is tried again.
const WAIT: Duration = Duration::from_millis(200);
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Events with the numbers of their lines.
pub(super) type Numbered = Vec<(u64, EventDraft)>;

/// What became of events.
#[derive(Debug, Default)]
pub(super) struct Delivered {
    /// Those that the server took, with the numbers of their lines.
    pub(super) taken: Vec<(u64, EventReceipt)>,
    /// Those that it never will, with the reason.
    pub(super) bad: Vec<(u64, String)>,
    /// How safe those that were taken are.
    pub(super) durability: Option<String>,
}

/// Brings events to one stream.
pub(super) struct Delivery<'a> {
    pub(super) client: &'a Client,
    pub(super) stream: &'a str,
    /// Where the events have positions; without it each has a name of its own.
    pub(super) origin: Option<String>,
    pub(super) progress: &'a Progress,
    /// Whether the server has answered before: then it is waited for.
    pub(super) has_met: bool,
}

impl Delivery<'_> {
    /// Brings a batch; whatever is still undecided when patience ends is an error.
    pub(super) async fn bring(&mut self, batch: Numbered) -> Result<Delivered, Fault> {
        let mut delivered = Delivered::default();
        // Parts are taken from the end, so the first is pushed last.
        let mut parts: Vec<Numbered> = Some(batch).into_iter().filter(|batch| !batch.is_empty()).collect();
        let (mut wait, mut waited) = (WAIT, Duration::ZERO);
        while let Some(part) = parts.pop() {
            let drafts: Vec<EventDraft> = part.iter().map(|(_, draft)| draft.clone()).collect();
            let again = match self.append(&drafts).await {
                Ok(appended) => {
                    self.has_met = true;
                    delivered.sort(part, appended)
                }
                Err(error) if self.may_pass(&error) => {
                    self.progress.say(format!("waiting: {}", Fault::from(error).words.join(" ")));
                    part
                }
                Err(ClientError::Problem(problem)) if is_about_an_event(problem.status) => {
                    self.has_met = true;
                    split(part, &problem.detail, &mut parts, &mut delivered);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if again.is_empty() {
                (wait, waited) = (WAIT, Duration::ZERO);
                continue;
            }
            if waited >= PATIENCE {
                let words = format!("the server took nothing for {}s", PATIENCE.as_secs());
                return Err(Fault::new(Exit::TimedOut, words));
            }
            seam::pass(wait).await;
            waited += wait;
            wait = (wait * 2).min(WAIT_MAX);
            parts.push(again);
        }
        Ok(delivered)
    }

    async fn append(&self, drafts: &[EventDraft]) -> Result<Appended, ClientError> {
        match &self.origin {
            Some(origin) => self.client.append_from(origin, self.stream, drafts).await,
            None => self.client.append(self.stream, drafts).await,
        }
    }

    /// Whether the same may work in a moment.
    fn may_pass(&self, error: &ClientError) -> bool {
        match error {
            ClientError::Problem(problem) => problem.retryable,
            ClientError::Unreachable { .. } | ClientError::TimedOut { .. } => self.has_met,
            _ => false,
        }
    }
}

impl Delivered {
    /// Sorts what became of events; answers those that were not taken for now.
    fn sort(&mut self, part: Numbered, appended: Appended) -> Numbered {
        let mut again = Vec::new();
        self.durability = Some(appended.durability);
        for ((number, draft), receipt) in part.into_iter().zip(appended.events) {
            match (receipt.append, &receipt.problem) {
                (AppendedAs::Refused, Some(problem)) if problem.retryable => again.push((number, draft)),
                (AppendedAs::Refused | AppendedAs::Conflict, problem) => {
                    let why = problem
                        .as_ref()
                        .map_or_else(|| "refused".to_owned(), |problem| problem.detail.clone());
                    self.bad.push((number, why));
                }
                _ => self.taken.push((number, receipt)),
            }
        }
        again
    }
}

/// Whether an answer is about what was sent, so that its neighbours may fare better without it.
fn is_about_an_event(status: u16) -> bool {
    matches!(status, 400 | 409 | 412 | 413 | 422)
}

/// Halves, first half first; or the one that is bad.
fn split(mut part: Numbered, why: &str, parts: &mut Vec<Numbered>, delivered: &mut Delivered) {
    if let [(number, _)] = part[..] {
        delivered.bad.push((number, why.to_owned()));
        return;
    }
    let second = part.split_off(part.len() / 2);
    parts.extend([second, part]);
}
