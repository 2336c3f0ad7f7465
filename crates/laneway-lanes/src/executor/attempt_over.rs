//! What an attempt that is over leaves behind: nothing.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::attempt::{Attempt, Rules};
use super::entry::Entry;
use super::outcome::Outcome;
use super::seam::Clock;
use super::settings::Settings;
use crate::table::{self, Arrival, Table, Tick};

#[tokio::test(start_paused = true)]
async fn attempt_that_is_over_leaves_no_listener_in_its_entry() {
    let mut table = Table::new(table::Settings::default());
    let entry: Arc<Entry<u32, (), ()>> = Arc::new(Entry::new(1));
    table.push(Arrival::new(1_u32, Arc::clone(&entry)));
    let turn = table.start(Tick::START).expect("it may run");
    let rules = Rules::new(&Settings::default(), Clock::start());
    let mut polls = 0;
    let handler = std::future::poll_fn(move |_| {
        polls += 1;
        if polls == 1 { Poll::Pending } else { Poll::Ready(Outcome::Done(())) }
    });
    let mut attempt = Attempt::new(turn, Box::pin(Some(handler)), rules, Tick::START);
    let mut context = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut attempt).poll(&mut context).is_pending());
    assert_eq!(entry.stop_listeners_len(), 1);
    assert!(Pin::new(&mut attempt).poll(&mut context).is_ready());
    assert_eq!(entry.stop_listeners_len(), 0, "one more of them would be left by every attempt");
}
