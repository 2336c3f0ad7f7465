//! One pushed item and the line of items that wait in a lane.
//!
//! Most lanes hold one item at a time, so the first sits in the lane itself and only a second one allocates.

use std::collections::VecDeque;
use std::fmt;

use super::latest::Version;
use super::words::{Priority, Tick};

/// The number of a push, growing in the order of the pushes of one table, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemId(pub(super) u64);

impl ItemId {
    pub(crate) const fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// The bare number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Item<T> {
    pub(super) id: ItemId,
    pub(super) payload: T,
    pub(super) version: Version,
    /// Not started by then: expired. Cleared at the first start.
    pub(super) expires: Option<Tick>,
    /// Runs so far, the present one included.
    pub(super) attempt: u32,
    pub(super) priority: Priority,
}

/// Items in push order, which is also id order.
#[derive(Debug)]
pub(super) struct Line<T> {
    first: Option<Item<T>>,
    /// Empty whenever there is no first.
    rest: VecDeque<Item<T>>,
}

impl<T> Line<T> {
    pub(super) const fn new() -> Self {
        Self { first: None, rest: VecDeque::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Item<T>> {
        self.first.iter().chain(&self.rest)
    }

    pub(super) fn first(&self) -> Option<&Item<T>> {
        self.first.as_ref()
    }

    pub(super) fn first_mut(&mut self) -> Option<&mut Item<T>> {
        self.first.as_mut()
    }

    pub(super) fn second(&self) -> Option<&Item<T>> {
        self.rest.front()
    }

    pub(super) fn contains(&self, id: ItemId) -> bool {
        self.first.as_ref().is_some_and(|item| item.id == id)
            || self.rest.binary_search_by_key(&id, |item| item.id).is_ok()
    }

    pub(super) fn push_back(&mut self, item: Item<T>) {
        if self.first.is_none() {
            self.first = Some(item);
        } else {
            self.rest.push_back(item);
        }
    }

    pub(super) fn pop_first(&mut self) -> Option<Item<T>> {
        let item = self.first.take()?;
        if self.rest.capacity() > 0 {
            self.first = self.pop_second();
        }
        Some(item)
    }

    pub(super) fn pop_second(&mut self) -> Option<Item<T>> {
        let item = self.rest.pop_front();
        self.give_room_back();
        item
    }

    /// A lane that was hot once and lives on must not keep the room it needed then.
    fn give_room_back(&mut self) {
        if self.rest.is_empty() && self.rest.capacity() > ROOM_KEPT_MAX {
            self.rest = VecDeque::new();
        }
    }

    pub(super) fn remove(&mut self, id: ItemId) -> Option<Item<T>> {
        if self.first.as_ref()?.id == id {
            return self.pop_first();
        }
        let place = self.rest.binary_search_by_key(&id, |item| item.id).ok()?;
        let item = self.rest.remove(place);
        self.give_room_back();
        item
    }
}

/// Places an emptied line keeps for the next burst.
const ROOM_KEPT_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::{Item, ItemId, Line, Priority, ROOM_KEPT_MAX, Version};

    #[test]
    fn line_that_empties_from_the_middle_gives_its_room_back() {
        let mut line = Line::new();
        for id in (1..1_000).map(ItemId) {
            let (version, priority) = (Version::default(), Priority::Normal);
            line.push_back(Item { id, payload: (), version, expires: None, attempt: 0, priority });
        }
        for id in (2..1_000).map(ItemId) {
            assert!(line.remove(id).is_some());
        }
        assert_eq!(line.len(), 1);
        assert!(line.rest.capacity() <= ROOM_KEPT_MAX, "room for {} items is left", line.rest.capacity());
    }
}
