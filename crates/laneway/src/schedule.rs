//! Schedules: records that send themselves, by the clock of a zone or at an even beat.
//!
//! A schedule lives in the store, so it goes on with any app that runs on it, and fires once per due time however many
//! do.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use laneway_core::store::Receipt;
use laneway_core::{Draft, JobId, Mode, Refusal, Timestamp};
use laneway_engine::Engine;
use laneway_engine::upkeep::ScheduleError as EngineError;
use laneway_engine::upkeep::schedule::{CatchUp, Firing, Overlap, Schedule, Spec};

use crate::record::Record;
use crate::stream::{SendError, Stream, draft_of};

/// A schedule on its way: say when, then `.await`. One that exists under the name is changed; one that somebody paused
/// stays paused, so a program may say at every start what it wants.
///
/// ```
/// use laneway::prelude::*;
/// use laneway::testing::App;
/// use laneway::{CatchUp, Overlap};
///
/// # #[derive(Record, Serialize, Deserialize, Debug, PartialEq)]
/// # #[record(key = "kind")]
/// # struct Report { kind: String }
/// # async fn make(Event(_): Event<Report>) -> Result<()> { Ok(()) }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// let app = App::new();
/// let reports = app.stream::<Report>("reports");
/// app.processor("make", &reports, make);
/// app.start().await?;
///
/// let nightly = Report { kind: "nightly".to_owned() };
/// app.schedule("nightly-report", &reports, &nightly)
///     .cron("0 3 * * *", "Europe/Berlin")
///     .catch_up(CatchUp::Last) // a night that was missed is made up for
///     .await?;
/// app.schedule("pulse", &reports, &Report { kind: "pulse".to_owned() })
///     .every(hours(1))
///     .processor("make") // each firing is a job, so its end is known
///     .overlap(Overlap::Skip) // none begins while the one before has not ended
///     .await?;
///
/// app.advance(days(2)).await;
/// let sent = app.sent(&reports).await;
/// assert_eq!(sent.iter().filter(|report| **report == nightly).count(), 2);
/// assert_eq!(sent.len(), 2 + 48);
/// # Ok(()) }
/// ```
#[must_use = "nothing is scheduled before it is awaited"]
#[derive(Debug)]
pub struct Scheduling<'a, T> {
    engine: &'a Engine,
    stream: &'a Stream<T>,
    name: String,
    firing: Result<Firing, SendError>,
    /// What a firing cannot say, with its value.
    state_of_thing: Option<(&'static str, String)>,
    spec: Option<Spec>,
    overlap: Overlap,
    catch_up: CatchUp,
}

/// Why nothing was scheduled, by what to do next.
///
/// ```
/// use laneway::ScheduleError;
/// use laneway::prelude::*;
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(keyless)]
/// # struct Sweep;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let app = Laneway::open("memory:").await?;
/// let sweeps = app.stream::<Sweep>("sweeps");
/// let wrong = app.schedule("sweep", &sweeps, &Sweep).cron("0 25 * * *", "Europe/Zurich").await.unwrap_err();
/// assert!(matches!(wrong, ScheduleError::Schedule(_)));
/// assert!(wrong.to_string().contains("25"), "{wrong}");
/// # Ok(()) }
/// ```
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The record cannot be sent, or its stream could not be made as declared.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The schedule could never be, does not exist, or the store could not.
    #[error(transparent)]
    Schedule(#[from] EngineError),
}

impl<'a, T: Record> Scheduling<'a, T> {
    pub(crate) fn new(engine: &'a Engine, name: &str, stream: &'a Stream<T>, record: &T) -> Self {
        let draft = draft_of(record);
        let state_of_thing = draft.as_ref().ok().and_then(state_of_thing);
        let firing = draft.map(|draft| Firing {
            key: draft.key,
            kind: draft.kind,
            data: draft.data,
            ..Firing::new(stream.name())
        });
        let (overlap, catch_up) = (Overlap::default(), CatchUp::default());
        let name = name.to_owned();
        Self { engine, stream, name, firing, state_of_thing, spec: None, overlap, catch_up }
    }

    /// When the clocks of a time zone match: minute, hour, day, month and weekday, with seconds before them if there are
    /// six fields.
    pub fn cron(self, expression: &str, zone: &str) -> Self {
        let spec = Spec::Cron { expression: expression.to_owned(), zone: zone.to_owned() };
        Self { spec: Some(spec), ..self }
    }

    /// Again and again after this length of real time, counted from 1970, so that the beat is the same after a restart.
    pub fn every(self, length: Duration) -> Self {
        Self { spec: Some(Spec::Every { length, anchor: Timestamp(0) }), ..self }
    }

    /// What happens when the firing before has not ended. Default: the new one waits behind it in its lane.
    pub fn overlap(self, overlap: Overlap) -> Self {
        Self { overlap, ..self }
    }

    /// What happens to firings that nobody was there for. Default: the last one is made up for.
    pub fn catch_up(self, catch_up: CatchUp) -> Self {
        Self { catch_up, ..self }
    }

    /// Makes every firing a job that this processor answers; [`Overlap::Skip`] needs it. Default: plain events.
    pub fn processor(mut self, name: impl Into<String>) -> Self {
        if let Ok(firing) = &mut self.firing {
            firing.processor = Some(name.into());
        }
        self
    }

    async fn put(self) -> Result<(), ScheduleError> {
        let when = || Refusal::new("schedule", format!("{:?}", self.name), "given a time, by cron or every");
        let spec = self.spec.clone().ok_or_else(when).map_err(SendError::Refused)?;
        self.stream.define().await?;
        self.check_newest_wins().await?;
        let schedule = Schedule {
            name: self.name,
            spec,
            overlap: self.overlap,
            catch_up: self.catch_up,
            paused: false,
            since: Timestamp(0),
            firing: self.firing?,
        };
        Ok(self.engine.schedules().declare(schedule).await?)
    }

    /// Refuses a record that says which state of its thing it is: every firing says the same, so only the first would
    /// run.
    async fn check_newest_wins(&self) -> Result<(), ScheduleError> {
        let info = self.engine.catalogue().stream(self.stream.name()).await.map_err(EngineError::from)?;
        if info.settings.mode == Mode::Latest
            && let Some((field, value)) = &self.state_of_thing
        {
            let limit =
                "absent in a schedule where the newest wins, because all its firings would be the same";
            return Err(SendError::Refused(Refusal::new(field, value, limit)).into());
        }
        Ok(())
    }
}

/// What a record says of the state of its thing.
fn state_of_thing(draft: &Draft) -> Option<(&'static str, String)> {
    let generation = draft.generation.map(|generation| ("generation", generation.to_string()));
    let incarnation = (draft.incarnation > 0).then(|| ("incarnation", draft.incarnation.to_string()));
    generation.or(incarnation).or_else(|| draft.delete.then(|| ("deleted", "true".to_owned())))
}

impl<'a, T: Record> IntoFuture for Scheduling<'a, T> {
    type Output = Result<(), ScheduleError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.put())
    }
}

/// The schedules of a store; see [`Laneway::schedules`](crate::Laneway::schedules).
///
/// ```
/// use laneway::prelude::*;
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(keyless)]
/// # struct Sweep;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let app = Laneway::open("memory:").await?;
/// let sweeps = app.stream::<Sweep>("sweeps");
/// app.schedule("sweep", &sweeps, &Sweep).every(mins(10)).await?;
///
/// let schedules = app.schedules();
/// schedules.run_now("sweep").await?; // besides its time table
/// schedules.pause("sweep").await?;
/// assert!(schedules.get("sweep").await?.paused);
/// assert_eq!(schedules.list().await?.len(), 1);
/// schedules.resume("sweep").await?;
/// schedules.remove("sweep").await?;
/// assert!(schedules.list().await?.is_empty());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Schedules {
    engine: Engine,
}

impl Schedules {
    pub(crate) fn new(engine: Engine) -> Self {
        Self { engine }
    }

    /// All of them, by name.
    pub async fn list(&self) -> Result<Vec<Schedule>, EngineError> {
        self.engine.schedules().list().await
    }

    /// One of them.
    pub async fn get(&self, name: &str) -> Result<Schedule, EngineError> {
        self.engine.schedules().get(name).await
    }

    /// Fires it now, besides its time table. Answers the job, if it makes jobs.
    pub async fn run_now(&self, name: &str) -> Result<Option<JobId>, EngineError> {
        match self.engine.schedules().run(name).await?.receipt {
            Receipt::New { job, .. } | Receipt::Scheduled { job, .. } => Ok(job),
            Receipt::Duplicate { .. } | Receipt::Stale { .. } => Ok(None),
        }
    }

    /// Passes over what is due until it is resumed.
    pub async fn pause(&self, name: &str) -> Result<(), EngineError> {
        let schedule = self.get(name).await?;
        self.engine.schedules().put(Schedule { paused: true, ..schedule }).await
    }

    /// Lets it fire again; what was due meanwhile is not made up for.
    pub async fn resume(&self, name: &str) -> Result<(), EngineError> {
        let schedule = self.get(name).await?;
        self.engine.schedules().put(Schedule { paused: false, ..schedule }).await
    }

    /// Removes it; what it fired stays.
    pub async fn remove(&self, name: &str) -> Result<(), EngineError> {
        self.engine.schedules().remove(name).await
    }
}
