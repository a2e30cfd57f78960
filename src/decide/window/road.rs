//! What was sent and is not yet known to have arrived.

use std::collections::VecDeque;

use super::meter::CountSnapshot;
use super::{LimitUnit, MAX_WINDOWS, Nanos, WindowSlot};
use crate::decide::pace::PacedRequest;

/// One request that was sent.
#[derive(Clone, Debug)]
pub(super) struct OpenRequest {
    /// When it was meant to be sent.
    pub(super) intended_at: Nanos,
    /// When it left; None: it is still here.
    pub(super) departed_at: Option<Nanos>,
    pub(super) weight: u64,
    /// The windows count it among what arrived.
    pub(super) arrived: bool,
    /// Nothing more will be heard of it.
    pub(super) ended: bool,
    /// What each window had counted when it was sent.
    pub(super) snapshots: [CountSnapshot; MAX_WINDOWS],
    /// As the pace knows it; None: it has been told what came of it.
    pub(super) pace: Option<PacedRequest>,
}

/// All that were sent and of which something is yet to be heard.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlightRequests {
    requests: VecDeque<OpenRequest>,
    /// The number of the first.
    first_number: u64,
    /// Those that left, in the order in which they did; some of them have arrived meanwhile.
    departures: VecDeque<(Nanos, u64)>,
    in_transit_requests: u64,
    in_transit_weight: u64,
    /// Those that have not ended, and their weight.
    in_flight: (u64, u64),
}

impl InFlightRequests {
    /// An empty one, whose slots have other numbers.
    pub(super) fn emptied(&self) -> Self {
        Self { first_number: self.first_number + self.requests.len() as u64, ..Self::default() }
    }

    pub(super) fn push(&mut self, open: OpenRequest) -> WindowSlot {
        self.in_transit_requests += 1;
        self.in_transit_weight = self.in_transit_weight.saturating_add(open.weight);
        self.in_flight = (self.in_flight.0 + 1, self.in_flight.1.saturating_add(open.weight));
        self.requests.push_back(open);
        WindowSlot(self.first_number + self.requests.len() as u64 - 1)
    }

    pub(super) fn get(&mut self, slot: WindowSlot) -> Option<&mut OpenRequest> {
        let index = usize::try_from(slot.0.checked_sub(self.first_number)?).ok()?;
        self.requests.get_mut(index).filter(|open| !open.ended)
    }

    /// Nothing more will be heard of it.
    pub(super) fn end(&mut self, slot: WindowSlot) -> Option<&mut OpenRequest> {
        let weight = self.get(slot)?.weight;
        self.in_flight = (self.in_flight.0 - 1, self.in_flight.1.saturating_sub(weight));
        let open = self.get(slot)?;
        open.ended = true;
        Some(open)
    }

    /// What has not ended.
    pub(super) fn in_flight(&self, unit: LimitUnit) -> u64 {
        match unit {
            LimitUnit::Requests => self.in_flight.0,
            LimitUnit::Weight => self.in_flight.1,
        }
    }

    fn request(&self, number: u64) -> Option<&OpenRequest> {
        self.requests.get(usize::try_from(number.checked_sub(self.first_number)?).ok()?)
    }

    pub(super) fn depart(&mut self, slot: WindowSlot, now: Nanos) {
        if let Some(open) = self.get(slot)
            && !open.arrived
            && open.departed_at.is_none()
        {
            open.departed_at = Some(now);
            // Instants are told in order; a clock that disagrees must not spoil it, and later is safe.
            let latest = self.departures.back().map_or(now, |(last, _)| now.max(*last));
            self.departures.push_back((latest, slot.0));
        }
    }

    /// It is on its way no more.
    pub(super) fn arrive(&mut self, number: u64) -> Option<OpenRequest> {
        let index = usize::try_from(number.checked_sub(self.first_number)?).ok()?;
        let open = self.requests.get_mut(index).filter(|open| !open.arrived)?;
        open.arrived = true;
        let open = open.clone();
        self.in_transit_requests -= 1;
        self.in_transit_weight = self.in_transit_weight.saturating_sub(open.weight);
        Some(open)
    }

    /// The next that has arrived by `now` if no way in is longer than that.
    pub(super) fn next_arrived(&mut self, now: Nanos, way_in: Nanos) -> Option<(Nanos, u64)> {
        self.prune();
        let (left, number) = self.departures.front().copied()?;
        (left + way_in <= now).then_some((left + way_in, number))
    }

    /// Those that nothing more is heard of, and that only the bound lets arrive.
    pub(super) fn ended_in_transit(&self) -> Vec<u64> {
        let given_up = |(index, open): (usize, &OpenRequest)| {
            (open.ended && !open.arrived).then_some(self.first_number + index as u64)
        };
        self.requests.iter().enumerate().filter_map(given_up).collect()
    }

    /// Drops what is over, from the front.
    pub(super) fn prune(&mut self) {
        while let Some((_, number)) = self.departures.front().copied()
            && self.request(number).is_none_or(|open| open.arrived)
        {
            self.departures.pop_front();
        }
        while self.requests.front().is_some_and(|open| open.arrived && open.ended) {
            self.requests.pop_front();
            self.first_number += 1;
        }
    }

    /// By when everything has arrived; NEVER: not before something is heard. None: nothing is on its way.
    pub(super) fn all_arrived_by(&self, way_in: Option<Nanos>) -> Option<Nanos> {
        if self.in_transit_requests == 0 {
            return None;
        }
        let travelling =
            self.departures.iter().filter(|(_, number)| self.request(*number).is_some_and(|open| !open.arrived));
        let (count, last) = travelling.fold((0, Nanos::ZERO), |(count, _), (left, _)| (count + 1, *left));
        Some(way_in.filter(|_| count == self.in_transit_requests).map_or(Nanos::NEVER, |way_in| last + way_in))
    }

    pub(super) fn in_transit(&self, unit: LimitUnit, way_in: Option<Nanos>) -> InTransit<'_> {
        InTransit { in_flight: self, unit, delay_bound: way_in }
    }

    /// All whose fate is not known: when they left (or should have), and their weights.
    pub(super) fn unarrived(&self) -> impl Iterator<Item = (Nanos, u64)> {
        self.requests
            .iter()
            .filter(|open| !open.arrived)
            .map(|open| (open.departed_at.unwrap_or(open.intended_at), open.weight))
    }
}

/// What is on its way, as one window counts it.
#[derive(Clone, Copy, Debug)]
pub(super) struct InTransit<'a> {
    in_flight: &'a InFlightRequests,
    unit: LimitUnit,
    delay_bound: Option<Nanos>,
}

impl InTransit<'_> {
    pub(super) fn total(&self) -> u64 {
        match self.unit {
            LimitUnit::Requests => self.in_flight.in_transit_requests,
            LimitUnit::Weight => self.in_flight.in_transit_weight,
        }
    }

    /// By when each has surely arrived, and how much it counts, the earliest first. What has not left is in the total
    /// alone.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Nanos, u64)> {
        self.in_flight.departures.iter().filter_map(|(left, number)| {
            let open = self.in_flight.request(*number).filter(|open| !open.arrived)?;
            Some((self.delay_bound.map_or(Nanos::NEVER, |way_in| *left + way_in), self.unit.amount(open.weight)))
        })
    }
}
