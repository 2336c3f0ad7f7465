//! `laneway stream tail`: events as they come. A connection that ends is made again, and goes on where it was.

use std::time::Duration;

use laneway_client::{Client, ClientError, Follow, Followed, Following};

use crate::args::{TailArgs, TailFrom};
use crate::exit::Fault;
use crate::output::Writer;
use crate::seam;

/// First and longest wait before a connection is made again.
const WAIT: Duration = Duration::from_millis(200);
const WAIT_MAX: Duration = Duration::from_secs(5);

/// How a connection ended.
enum Cut {
    /// Enough was seen.
    Enough,
    /// It may go on.
    Again,
}

pub(super) async fn run(client: &Client, writer: Writer, args: TailArgs) -> Result<(), Fault> {
    let mut wish = Follow {
        partition: args.partition,
        key: args.key.clone().map(String::into_bytes),
        from_beginning: args.from == TailFrom::Beginning,
        last_id: None,
    };
    let mut left = args.count.unwrap_or(u64::MAX);
    let (mut wait, mut has_met) = (WAIT, false);
    loop {
        match client.follow_as(&args.stream, &wish).await {
            Ok(mut following) => {
                (has_met, wait) = (true, WAIT);
                let cut = print(&mut following, writer, &mut left).await?;
                wish.last_id = following.last_id().map(str::to_owned).or(wish.last_id);
                if matches!(cut, Cut::Enough) {
                    return Ok(());
                }
            }
            Err(ClientError::Unreachable { .. } | ClientError::TimedOut { .. }) if has_met => {}
            Err(ClientError::Problem(problem)) if problem.retryable && has_met => {}
            Err(error) => return Err(error.into()),
        }
        seam::pass(wait).await;
        wait = (wait * 2).min(WAIT_MAX);
    }
}

/// Prints what comes until the connection ends.
async fn print(following: &mut Following, writer: Writer, left: &mut u64) -> Result<Cut, Fault> {
    while *left > 0 {
        match following.next().await {
            Ok(Some(Followed::Event(event))) => {
                writer.next(&*event)?;
                *left -= 1;
            }
            Ok(Some(Followed::Trimmed(told))) => {
                writer.remark(format_args!("some events are gone by retention: {told}"));
            }
            Ok(Some(Followed::Ended(told))) => writer.remark(format_args!("the server ended it: {told}")),
            Ok(None) => return Ok(Cut::Again),
            Err(error @ ClientError::Unreachable { .. }) => {
                writer.remark(Fault::from(error).words.join(" "));
                return Ok(Cut::Again);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Cut::Enough)
}
