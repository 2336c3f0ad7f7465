//! Commands that ask a server, work for it, or look at this machine. A signal ends them, most of them at once.

use clap::CommandFactory as _;
use laneway_client::Client;
use tokio::sync::oneshot;

use super::{
    bench, cluster, dead, doctor, event, job, lane, processor, schedule, send, store, stream, tail, verify,
    work,
};
use crate::args::{Args, Common, Operation, StreamVerb, WhyArgs};
use crate::connection::connect;
use crate::exit::{Exit, Fault};
use crate::output::Writer;
use crate::signals::{End, Signals};

/// How long tasks that do not give way may hold up the end.
const LAST_TASKS: std::time::Duration = std::time::Duration::from_millis(100);

pub(super) fn run(command: Operation) -> Result<(), Fault> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault::failed(format!("cannot begin: {error}")))?;
    let ended = runtime.block_on(async {
        let signals = Signals::new().map_err(|error| Fault::failed(format!("signals: {error}")))?;
        let ended = signals.end(|end| Box::pin(until_signal(command, end))).await;
        ended.unwrap_or_else(|| Err(Fault::silent(Exit::Interrupted)))
    });
    runtime.shutdown_timeout(LAST_TASKS);
    ended
}

/// Sending hears of the signal itself, because it has to tell how to go on, and a worker, because it finishes what it has;
/// everything else just ends.
async fn until_signal(command: Operation, end: End) -> Result<(), Fault> {
    let hears = match &command {
        Operation::Send(_) | Operation::Work(_) => true,
        Operation::Stream(args) => matches!(args.verb, StreamVerb::Send(_)),
        _ => false,
    };
    if hears {
        return one(command, end).await;
    }
    let (_kept, never) = oneshot::channel();
    tokio::select! {
        done = Box::pin(one(command, never)) => done,
        _ = end => Err(Fault::silent(Exit::Interrupted)),
    }
}

async fn one(command: Operation, end: End) -> Result<(), Fault> {
    match command {
        Operation::Stream(args) => {
            let (client, writer) = begin(&args.common)?;
            stream::run(&client, writer, args.verb, end).await
        }
        Operation::Send(short) => {
            let (client, writer) = begin(&short.common)?;
            send::run(&client, writer, short.args, end).await
        }
        Operation::Tail(short) => {
            let (client, writer) = begin(&short.common)?;
            tail::run(&client, writer, short.args).await
        }
        Operation::Schedule(args) => {
            let (client, writer) = begin(&args.common)?;
            schedule::run(&client, writer, args.verb).await
        }
        Operation::Node(args) => {
            let (client, writer) = begin(&args.common)?;
            cluster::node(&client, writer, args.verb).await
        }
        Operation::Lease(args) => {
            let (client, writer) = begin(&args.common)?;
            cluster::lease(&client, writer, args.verb).await
        }
        Operation::Cluster(args) => {
            let (client, writer) = begin(&args.common)?;
            cluster::cluster(&client, writer, args.verb).await
        }
        Operation::Verify(short) => {
            let (client, writer) = begin(&short.common)?;
            verify::run(&client, writer, short.args).await
        }
        Operation::Lane(args) => {
            let (client, writer) = begin(&args.common)?;
            lane::run(&client, writer, args.verb).await
        }
        Operation::Job(args) => {
            let (client, writer) = begin(&args.common)?;
            job::run(&client, writer, args.verb).await
        }
        Operation::Event(args) => {
            let (client, writer) = begin(&args.common)?;
            event::run(&client, writer, args.verb).await
        }
        Operation::Processor(args) => {
            let (client, writer) = begin(&args.common)?;
            processor::run(&client, writer, args.verb).await
        }
        Operation::Dead(args) => {
            let (client, writer) = begin(&args.common)?;
            dead::run(&client, writer, args.verb).await
        }
        Operation::Why(args) => why(args).await,
        Operation::Work(args) => work::run(args, end).await,
        Operation::Store(args) => store::run(args.output, args.verb).await,
        Operation::Doctor(args) => doctor::run(args).await,
        Operation::Bench(args) => bench::run(args).await,
        Operation::Completions(args) => {
            clap_complete::generate(
                args.shell,
                &mut Args::command(),
                "laneway",
                &mut std::io::stdout().lock(),
            );
            Ok(())
        }
    }
}

/// One reason: of a lane if a key is said, else of a job.
async fn why(args: WhyArgs) -> Result<(), Fault> {
    let (client, writer) = begin(&args.common)?;
    match &args.key {
        Some(key) => lane::why(&client, writer, &args.what, key, args.processor.as_deref()).await,
        None => job::why(&client, writer, &args.what).await,
    }
}

fn begin(common: &Common) -> Result<(Client, Writer), Fault> {
    Ok((connect(&common.server)?, Writer::new(common.output)))
}
