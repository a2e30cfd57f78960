//! The streams of a connection, by number.
//!
//! Numbers grow by two, and responses end roughly in the order of the requests. So a deque holds a place for each
//! number from the oldest open stream on, and a lookup is an index. A stream that stays open while thousands pass would
//! make it long; such a one is moved to a short list, and the deque begins behind it.

use std::collections::VecDeque;

use super::client_stream::ClientStream;
use crate::frame::MAX_31_BITS;

/// Places for each open stream, beyond which the oldest are moved to the list, ...
const PLACES_PER_OPEN_STREAM: usize = 8;
/// ... and places that are always there.
const MIN_PLACES: usize = 64;

/// State of a stream by its number (RFC 9113 section 5.1), as far as frames for it need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberState {
    /// Not used so far, or not a client's.
    Idle,
    /// Of an open stream.
    Open,
    /// Of a stream that has ended.
    Closed,
}

#[derive(Debug)]
pub(super) struct StreamTable {
    /// Number of the first place.
    front: u32,
    places: VecDeque<ClientStream>,
    /// Open streams below `front`, by number.
    old: Vec<ClientStream>,
    open: usize,
}

impl Default for StreamTable {
    fn default() -> Self {
        Self { front: 1, places: VecDeque::new(), old: Vec::new(), open: 0 }
    }
}

impl StreamTable {
    /// Number of open streams.
    #[inline]
    pub(super) fn open_count(&self) -> usize {
        self.open
    }

    /// Number of the next stream; `None` when all are used.
    #[inline]
    pub(super) fn next_number(&self) -> Option<u32> {
        let next = u64::from(self.front) + 2 * self.places.len() as u64;
        u32::try_from(next).ok().filter(|next| *next <= MAX_31_BITS)
    }

    /// Appends the stream of the next number.
    #[inline]
    pub(super) fn push(&mut self, stream: ClientStream) {
        self.places.push_back(stream);
        self.open += 1;
        if self.places.len() > MIN_PLACES + PLACES_PER_OPEN_STREAM * self.open {
            self.shorten();
        }
    }

    /// Moves the oldest streams to the list, until the deque is half as long.
    #[cold]
    fn shorten(&mut self) {
        let target = self.places.len() / 2;
        while self.places.len() > target
            && let Some(oldest) = self.places.pop_front()
        {
            self.front += 2;
            if oldest.is_open {
                self.old.push(oldest);
            }
        }
        self.drop_closed();
    }

    /// State of a stream by its number; forgets that a closed one was reset.
    pub(super) fn state(&mut self, number: u32) -> NumberState {
        let is_used = !number.is_multiple_of(2) && self.next_number().is_none_or(|next| number < next);
        match (is_used, self.get_mut(number)) {
            (_, Some(_)) => NumberState::Open,
            (true, None) => NumberState::Closed,
            (false, None) => NumberState::Idle,
        }
    }

    /// An open stream.
    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut ClientStream> {
        if number.is_multiple_of(2) {
            return None;
        }
        let Some(distance) = number.checked_sub(self.front) else {
            let place = self.old.binary_search_by_key(&number, |stream| stream.number).ok()?;
            return self.old.get_mut(place);
        };
        self.places.get_mut(distance as usize / 2).filter(|stream| stream.is_open)
    }

    /// Closes an open stream, and returns what it was.
    #[inline]
    pub(super) fn close(&mut self, number: u32) -> Option<ClientStream> {
        let stream = self.get_mut(number)?;
        stream.is_open = false;
        let closed = *stream;
        self.open -= 1;
        if number < self.front {
            self.old.retain(|stream| stream.number != number);
        } else {
            self.drop_closed();
        }
        Some(closed)
    }

    /// The open streams.
    pub(super) fn open_mut(&mut self) -> impl Iterator<Item = &mut ClientStream> {
        self.old.iter_mut().chain(self.places.iter_mut().filter(|stream| stream.is_open))
    }

    /// Number of an open stream above this number, the newest.
    pub(super) fn newest_above(&self, number: u32) -> Option<u32> {
        let newest = self.places.iter().rev().find(|stream| stream.is_open).or(self.old.last());
        newest.map(|stream| stream.number).filter(|newest| *newest > number)
    }

    /// Number of open streams above this number.
    pub(super) fn count_above(&self, number: u32) -> usize {
        self.old.iter().chain(self.places.iter().filter(|s| s.is_open)).filter(|s| s.number > number).count()
    }

    fn drop_closed(&mut self) {
        while self.places.front().is_some_and(|stream| !stream.is_open) {
            self.places.pop_front();
            self.front += 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::flow::{ReceiveWindow, SendWindow};

    fn stream(number: u32, key: u32) -> ClientStream {
        ClientStream {
            number,
            key,
            is_open: true,
            is_head: false,
            wants_head: false,
            is_queued: false,
            status: 0,
            send_window: SendWindow::new(1),
            receive_window: ReceiveWindow::default(),
            body_left: 0,
            body_sent: 0,
            content_length: None,
            grpc_status: None,
            body: 0,
            wire: 0,
        }
    }

    proptest! {
        #[test]
        fn the_table_is_that_of_a_map(actions in prop::collection::vec((0_u8..4, any::<prop::sample::Index>()), 0..600)) {
            let (mut table, mut map, mut next) = (StreamTable::default(), BTreeMap::new(), 1);
            for (action, index) in actions {
                // The oldest stays open for long.
                if action > 1 && map.len() > 1 {
                    let number = *map.keys().nth(1 + index.index(map.len() - 1)).expect("one");
                    prop_assert_eq!(table.close(number).map(|closed| closed.key), map.remove(&number));
                    prop_assert!(table.close(number).is_none());
                } else {
                    prop_assert_eq!(table.next_number(), Some(next));
                    table.push(stream(next, next * 7));
                    map.insert(next, next * 7);
                    next += 2;
                    prop_assert!(table.places.len() <= MIN_PLACES + PLACES_PER_OPEN_STREAM * table.open);
                }
                prop_assert_eq!(table.open_count(), map.len());
            }
            for number in 0..next + 3 {
                let expected = match map.get(&number) {
                    Some(_) => NumberState::Open,
                    None if number % 2 == 1 && number < next => NumberState::Closed,
                    None => NumberState::Idle,
                };
                prop_assert_eq!(table.state(number), expected);
                prop_assert_eq!(table.get_mut(number).map(|stream| stream.key), map.get(&number).copied());
                prop_assert_eq!(table.count_above(number), map.range(number + 1..).count());
                prop_assert_eq!(table.newest_above(number), map.range(number + 1..).next_back().map(|(number, _)| *number));
            }
            let open: Vec<u32> = table.open_mut().map(|stream| stream.key).collect();
            prop_assert_eq!(open, map.into_values().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_stream_that_stays_open_for_long_is_found_and_costs_no_place() {
        let mut table = StreamTable::default();
        table.push(stream(1, 42));
        for round in 1..100_000 {
            table.push(stream(2 * round + 1, round));
            table.close(2 * round + 1);
        }
        assert_eq!((table.open, table.old.len()), (1, 1));
        assert!(table.places.len() < 100, "{}", table.places.len());
        assert_eq!(table.get_mut(1).map(|stream| stream.key), Some(42));
    }

    #[test]
    fn numbers_end() {
        let mut table = StreamTable { front: MAX_31_BITS - 2, ..StreamTable::default() };
        for number in [MAX_31_BITS - 2, MAX_31_BITS] {
            assert_eq!(table.next_number(), Some(number));
            table.push(stream(number, 0));
        }
        assert_eq!(table.next_number(), None);
        table.close(MAX_31_BITS - 2);
        table.close(MAX_31_BITS);
        assert_eq!(table.next_number(), None);
        assert_eq!(table.state(MAX_31_BITS), NumberState::Closed);
    }
}
