//! What was sent and is not yet known to have arrived.

use std::collections::VecDeque;

use super::meter::Mark;
use super::{MOST_WINDOWS, Nanos, Slot, Unit};
use crate::decide::pace::Sent;

/// One request that was sent.
#[derive(Clone, Debug)]
pub(super) struct Open {
    /// When it was meant to be sent.
    pub(super) asked: Nanos,
    /// When it left; None: it is still here.
    pub(super) left: Option<Nanos>,
    pub(super) weight: u64,
    /// The windows count it among what arrived.
    pub(super) arrived: bool,
    /// Nothing more will be heard of it.
    pub(super) ended: bool,
    /// What each window had counted when it was sent.
    pub(super) marks: [Mark; MOST_WINDOWS],
    /// As the pace knows it; None: it has been told what came of it.
    pub(super) pace: Option<Sent>,
}

/// All that were sent and of which something is yet to be heard.
#[derive(Clone, Debug, Default)]
pub(super) struct Road {
    open: VecDeque<Open>,
    /// The number of the first.
    first: u64,
    /// Those that left, in the order in which they did; some of them have arrived meanwhile.
    left: VecDeque<(Nanos, u64)>,
    requests: u64,
    weight: u64,
    /// Those that have not ended, and their weight.
    in_flight: (u64, u64),
}

impl Road {
    /// An empty one, whose slots have other numbers.
    pub(super) fn anew(&self) -> Self {
        Self { first: self.first + self.open.len() as u64, ..Self::default() }
    }

    pub(super) fn push(&mut self, open: Open) -> Slot {
        self.requests += 1;
        self.weight = self.weight.saturating_add(open.weight);
        self.in_flight = (self.in_flight.0 + 1, self.in_flight.1.saturating_add(open.weight));
        self.open.push_back(open);
        Slot(self.first + self.open.len() as u64 - 1)
    }

    pub(super) fn get(&mut self, slot: Slot) -> Option<&mut Open> {
        let index = usize::try_from(slot.0.checked_sub(self.first)?).ok()?;
        self.open.get_mut(index).filter(|open| !open.ended)
    }

    /// Nothing more will be heard of it.
    pub(super) fn end(&mut self, slot: Slot) -> Option<&mut Open> {
        let weight = self.get(slot)?.weight;
        self.in_flight = (self.in_flight.0 - 1, self.in_flight.1.saturating_sub(weight));
        let open = self.get(slot)?;
        open.ended = true;
        Some(open)
    }

    /// What has not ended.
    pub(super) fn in_flight(&self, unit: Unit) -> u64 {
        match unit {
            Unit::Requests => self.in_flight.0,
            Unit::Weight => self.in_flight.1,
        }
    }

    fn at(&self, number: u64) -> Option<&Open> {
        self.open.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    pub(super) fn leave(&mut self, slot: Slot, now: Nanos) {
        if let Some(open) = self.get(slot)
            && !open.arrived
            && open.left.is_none()
        {
            open.left = Some(now);
            // Instants are told in order; a clock that disagrees must not spoil it, and later is safe.
            let latest = self.left.back().map_or(now, |(last, _)| now.max(*last));
            self.left.push_back((latest, slot.0));
        }
    }

    /// It is on its way no more.
    pub(super) fn arrive(&mut self, number: u64) -> Option<Open> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let open = self.open.get_mut(index).filter(|open| !open.arrived)?;
        open.arrived = true;
        let open = open.clone();
        self.requests -= 1;
        self.weight = self.weight.saturating_sub(open.weight);
        Some(open)
    }

    /// The next that has arrived by `now` if no way in is longer than that.
    pub(super) fn next_arrived(&mut self, now: Nanos, way_in: Nanos) -> Option<(Nanos, u64)> {
        self.forget();
        let (left, number) = self.left.front().copied()?;
        (left + way_in <= now).then_some((left + way_in, number))
    }

    /// Those that nothing more is heard of, and that only the bound lets arrive.
    pub(super) fn given_up(&self) -> Vec<u64> {
        let given_up =
            |(index, open): (usize, &Open)| (open.ended && !open.arrived).then_some(self.first + index as u64);
        self.open.iter().enumerate().filter_map(given_up).collect()
    }

    /// Drops what is over, from the front.
    pub(super) fn forget(&mut self) {
        while let Some((_, number)) = self.left.front().copied()
            && self.at(number).is_none_or(|open| open.arrived)
        {
            self.left.pop_front();
        }
        while self.open.front().is_some_and(|open| open.arrived && open.ended) {
            self.open.pop_front();
            self.first += 1;
        }
    }

    /// By when everything has arrived; NEVER: not before something is heard. None: nothing is on its way.
    pub(super) fn all_arrived(&self, way_in: Option<Nanos>) -> Option<Nanos> {
        if self.requests == 0 {
            return None;
        }
        let travelling = self.left.iter().filter(|(_, number)| self.at(*number).is_some_and(|open| !open.arrived));
        let (count, last) = travelling.fold((0, Nanos::ZERO), |(count, _), (left, _)| (count + 1, *left));
        Some(way_in.filter(|_| count == self.requests).map_or(Nanos::NEVER, |way_in| last + way_in))
    }

    pub(super) fn ahead(&self, unit: Unit, way_in: Option<Nanos>) -> Ahead<'_> {
        Ahead { road: self, unit, way_in }
    }

    /// All whose fate is not known: when they left (or should have), and their weights.
    pub(super) fn unknown(&self) -> impl Iterator<Item = (Nanos, u64)> {
        self.open.iter().filter(|open| !open.arrived).map(|open| (open.left.unwrap_or(open.asked), open.weight))
    }
}

/// What is on its way, as one window counts it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead<'a> {
    road: &'a Road,
    unit: Unit,
    way_in: Option<Nanos>,
}

impl Ahead<'_> {
    pub(super) fn total(&self) -> u64 {
        match self.unit {
            Unit::Requests => self.road.requests,
            Unit::Weight => self.road.weight,
        }
    }

    /// By when each has surely arrived, and how much it counts, the earliest first. What has not left is in the total
    /// alone.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Nanos, u64)> {
        self.road.left.iter().filter_map(|(left, number)| {
            let open = self.road.at(*number).filter(|open| !open.arrived)?;
            Some((self.way_in.map_or(Nanos::NEVER, |way_in| *left + way_in), self.unit.amount(open.weight)))
        })
    }
}
