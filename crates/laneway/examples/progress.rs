//! A job that takes its time: its submitter looks at the progress, then gets the result.
//!
//! `cargo run -p laneway --example progress`

use std::io::Write;
use std::time::Duration;

use laneway::prelude::*;
use tokio::sync::watch;

#[derive(Job, Serialize, Deserialize)]
#[job(key = "account", output = "Statement", timeout = "60s", keep = "1h")]
struct MakeStatement {
    account: String,
    lines: u64,
}

#[derive(Serialize, Deserialize)]
struct Statement {
    lines: u64,
    pages: u64,
}

/// Becomes true when there is paper.
struct Printer(watch::Receiver<bool>);

async fn make(Job(job): Job<MakeStatement>, State(printer): State<Printer>, ctx: Ctx) -> Result<Statement> {
    ctx.progress(job.lines / 2, job.lines, format!("lines of {}", job.account));
    let mut paper = printer.0.clone();
    tokio::select! {
        there_is = paper.wait_for(|there_is| *there_is) => drop(there_is?),
        () = ctx.cancel().cancelled() => return Err(Error::permanent("stopped in the middle")),
    }
    Ok(Statement { lines: job.lines, pages: job.lines.div_ceil(50) })
}

#[tokio::main]
async fn main() -> Result<()> {
    run(&mut std::io::stdout()).await
}

/// Two jobs of one lane: the first is waited for, the one behind it is cancelled.
pub(crate) async fn run(out: &mut impl Write) -> Result<()> {
    let (paper, printer) = watch::channel(false);
    let app = Laneway::open("memory:").await?.state(Printer(printer));
    let statements = app.stream::<MakeStatement>("statements");
    app.processor("make", &statements, make);
    app.start().await?;

    let ask = MakeStatement { account: "a1".to_owned(), lines: 120 };
    let job = statements.submit(&ask).idempotency_key("a1/2026-11").await?;
    let again = statements.submit(&ask).idempotency_key("a1/2026-11").await?;
    writeln!(out, "asked  twice, one job: {}", job.id() == again.id())?;

    // There is no paper yet, so this is in vain; after a second its progress shows.
    while job.status().await?.progress.is_none() {
        let in_vain = job.wait(Duration::from_millis(200)).await;
        assert!(in_vain.is_err(), "there is no paper yet");
    }
    let status = job.status().await?;
    let progress = status.progress.map_or("unknown".to_owned(), |progress| progress.to_string());
    writeln!(out, "first  is {}, {progress}", status.status)?;

    let behind = statements.submit(&MakeStatement { account: "a1".to_owned(), lines: 7 }).await?;
    writeln!(out, "second is {}", behind.status().await?.status)?;
    behind.cancel().await?;
    if behind.wait(secs(10)).await.is_err() {
        writeln!(out, "second is {}", behind.status().await?.status)?;
    }

    paper.send_replace(true);
    let statement = job.wait(secs(30)).await?;
    writeln!(out, "result {} lines on {} pages", statement.lines, statement.pages)?;
    app.stop(secs(10)).await;
    Ok(())
}
