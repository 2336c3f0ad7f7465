//! A store in this process: how fast a sync is, appends, and the whole way of an event.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use laneway::prelude::*;

use super::super::measure::sync_time;
use super::super::store::folder_of;
use super::{KEYS, Measured, Meter, PAYLOAD, name};
use crate::exit::Fault;
use crate::http::chain;
use crate::output::{Progress, Writer};
use crate::seam;

/// Who appends at the same time, and how many events each call has.
const PRODUCERS: u64 = 16;
const PER_CALL: u64 = 10;
/// Events that may be on their way at the same time.
const AHEAD_MAX: u64 = 50_000;
/// How long runs may take to finish.
const DRAIN: Duration = Duration::from_secs(10);

#[derive(Record, Serialize, Deserialize)]
#[record(key = "key")]
struct Tick {
    key: u64,
    payload: String,
}

async fn count(Event(_): Event<Tick>, State(meter): State<Arc<Meter>>) -> Result<()> {
    meter.add(1);
    Ok(())
}

/// A folder that is removed afterwards.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "this folder stays behind");
        }
    }
}

pub(super) async fn measure(
    store: Option<String>,
    length: Duration,
    writer: Writer,
) -> Result<Vec<Measured>, Fault> {
    let own = store.is_none().then(|| Folder(PathBuf::from(format!("./.laneway-{}", name()))));
    let url = store.unwrap_or_else(|| {
        format!("file:{}", own.as_ref().map_or("", |own| own.0.to_str().unwrap_or_default()))
    });
    let app = Laneway::open(&url).await.map_err(|error| Fault::failed(chain(&error)))?;
    let durability = app.engine().stores().store.about().capabilities.durability.to_string();
    let progress = Progress::of_steps("measuring", writer.is_quiet());
    let mut measured = Vec::new();
    if url.starts_with("file:") {
        let folder = folder_of(&url)?;
        let time = seam::blocking(move || sync_time(Path::new(&folder))).await;
        let time = time.map_err(|error| Fault::failed(format!("{url}: {error}")))?;
        measured.push(Measured {
            work: "one sync of 4 KiB".to_owned(),
            per_second: None,
            milliseconds: Some(time.as_secs_f64() * 1e3),
            durability: "disk".to_owned(),
        });
    }
    progress.say("appends");
    let names = [format!("{}-append", name()), format!("{}-cycle", name())];
    let (appended, took) = append(&app, &names[0], length).await?;
    measured.push(Measured::rate("append, 16 producers, 10 events per call", appended, took, &durability));
    progress.say("the whole way");
    let (done, took, app) = cycle(app, &names[1], length).await?;
    measured.push(Measured::rate("append, run and settle, 10,000 lanes", done, took, &durability));
    for name in &names {
        app.engine().remove_stream(name, DRAIN).await.map_err(Fault::internal)?;
    }
    app.stop(DRAIN).await;
    drop(own);
    Ok(measured)
}

async fn append(app: &Laneway, name: &str, length: Duration) -> Result<(u64, Duration), Fault> {
    let (stream, meter) = (app.stream::<Tick>(name), Arc::new(Meter::default()));
    produce(&stream, &meter, length, u64::MAX, None).await
}

async fn cycle(app: Laneway, name: &str, length: Duration) -> Result<(u64, Duration, Laneway), Fault> {
    let done = Arc::new(Meter::default());
    let app = app.state(Arc::clone(&done));
    let stream = app.stream::<Tick>(name);
    app.processor(&format!("{name}-count"), &stream, count);
    app.start().await.map_err(Fault::internal)?;
    let sent = Arc::new(Meter::default());
    let (counted, took) = produce(&stream, &sent, length, AHEAD_MAX, Some(&done)).await?;
    Ok((counted, took, app))
}

/// Appends for a while, with at most so much on its way; answers what the meter counted: what was done, or what was sent.
async fn produce(
    stream: &Stream<Tick>,
    sent: &Arc<Meter>,
    length: Duration,
    ahead_max: u64,
    done: Option<&Arc<Meter>>,
) -> Result<(u64, Duration), Fault> {
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|number| {
            let (stream, sent, done) = (stream.clone(), Arc::clone(sent), done.cloned());
            seam::spawn(async move {
                let next = AtomicU64::new(number);
                while !sent.is_over() {
                    let ended = done.as_ref().map(|done| done.count.load(Ordering::Relaxed));
                    if ended.is_some_and(|ended| sent.count.load(Ordering::Relaxed) > ended + ahead_max) {
                        tokio::task::yield_now().await;
                        continue;
                    }
                    let ticks: Vec<Tick> =
                        (0..PER_CALL).map(|_| tick(next.fetch_add(7_919, Ordering::Relaxed))).collect();
                    for receipt in stream.send_many(&ticks).await? {
                        receipt?;
                    }
                    sent.add(ticks.len());
                }
                Ok::<(), laneway::SendError>(())
            })
        })
        .collect();
    let measured = done.unwrap_or(sent).run(length).await;
    sent.end();
    for producer in producers {
        producer.await.map_err(Fault::internal)?.map_err(Fault::internal)?;
    }
    Ok(measured)
}

fn tick(number: u64) -> Tick {
    Tick { key: number % KEYS, payload: "x".repeat(PAYLOAD) }
}
