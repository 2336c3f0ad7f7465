//! Advance: time passes; back-offs end and waiting items expire.

use std::hash::Hash;

use super::state::{Ending, Join, Table};
use super::words::Tick;

impl<K: Hash + Eq + Clone, T: Clone> Table<K, T> {
    /// Lets time pass up to `now`: heads whose back-off is over become ready, items not started in time end expired.
    ///
    /// A head that was run before does not expire. Going back in time changes nothing.
    pub fn advance(&mut self, now: Tick) {
        while let Some((&(at, id), &place)) = self.expiries.first_key_value()
            && at <= now
        {
            self.expiries.remove(&(at, id));
            let item = self.shelf[place].leave(id).expect("an expiry names a waiting item");
            self.end_waiting(item, Ending::Expired);
            self.place(place, Join::Back);
        }
        while let Some((&(at, _), &place)) = self.retries.first_key_value()
            && at <= now
        {
            self.unblock(place);
            self.place(place, Join::Back);
        }
    }
}
