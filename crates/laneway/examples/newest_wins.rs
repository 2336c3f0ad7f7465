//! Newest wins: a slow target is kept in sync with things that change faster than it can follow.
//!
//! `cargo run -p laneway --example newest_wins`

use std::io::Write;

use laneway::{Append, Terminal, WaitError, prelude::*};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A thing as it should be. A higher revision is newer, whatever order they arrive in.
#[derive(Record, Serialize, Deserialize)]
#[record(key = "name", generation = "revision", deleted = "gone")]
struct Pod {
    name: String,
    revision: u64,
    gone: bool,
}

/// A target that tells what it does, and takes until it is told to go on.
struct Target {
    told: UnboundedSender<String>,
    go_on: Mutex<UnboundedReceiver<()>>,
}

async fn sync(Event(pod): Event<Pod>, State(target): State<Target>, ctx: Ctx) -> Result<()> {
    let before = ctx.last_done().map_or("nothing".to_owned(), |last| format!("revision {}", last.generation));
    let wanted = if pod.gone { "gone".to_owned() } else { format!("revision {}", pod.revision) };
    target.told.send(format!("{}: {before} -> {wanted}", pod.name)).permanent()?;
    target.go_on.lock().await.recv().await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    run(&mut std::io::stdout()).await
}

/// Changes one pod a hundred times while the target is busy with the first change.
pub(crate) async fn run(out: &mut impl Write) -> Result<()> {
    let (told, mut tells) = unbounded_channel();
    let (next, go_on) = unbounded_channel();
    let app = Laneway::open("memory:").await?.state(Target { told, go_on: Mutex::new(go_on) });
    let pods = app.stream::<Pod>("pods").mode(Mode::Latest);
    app.processor("sync", &pods, sync);
    app.start().await?;
    let mut tell = async || tells.recv().await.ok_or_else(|| Error::new("nobody syncs"));
    let pod = |revision, gone| Pod { name: "web".to_owned(), revision, gone };

    pods.send(&pod(1, false)).await?;
    writeln!(out, "sync   {}", tell().await?)?;
    let second = pods.submit_as::<()>(&pod(2, false)).await?;
    for revision in 3..=100 {
        pods.send(&pod(revision, false)).await?;
    }
    let late = pods.send(&pod(50, false)).await?;
    if let Append::Stale { generation, .. } = late.append {
        writeln!(out, "stale  web: revision 50 came after revision {generation}")?;
    }
    next.send(())?;
    writeln!(out, "sync   {}", tell().await?)?;
    next.send(())?;
    if let Err(WaitError::Ended { end: Terminal::Superseded, .. }) = second.wait(secs(10)).await {
        writeln!(out, "job    web: revision 2 was superseded and never ran")?;
    }

    pods.send(&pod(101, true)).await?;
    writeln!(out, "sync   {}", tell().await?)?;
    next.send(())?;
    app.stop(secs(10)).await;
    Ok(())
}
