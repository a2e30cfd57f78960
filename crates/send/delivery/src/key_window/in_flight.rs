//! Requests in flight: sent and without an outcome, or not known to have arrived.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::count_snapshot::CountSnapshot;
use super::{LimitUnit, MAX_WINDOWS, Nanos, WindowSlot};
use crate::pace::PacedRequest;

/// A sent request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct OpenRequest {
    /// Time of the decision to send.
    pub(super) intended_at: Nanos,
    /// Time when the bytes were written; None: not yet.
    pub(super) departed_at: Option<Nanos>,
    pub(super) weight: u64,
    /// Whether the windows count the request as arrived.
    pub(super) arrived: bool,
    /// Whether the request has an outcome.
    pub(super) ended: bool,
    /// Each window's count at the send.
    #[serde(with = "super::count_snapshot")]
    pub(super) snapshots: [CountSnapshot; MAX_WINDOWS],
    /// The pace's record; None: the pace has the outcome.
    #[serde(skip)]
    pub(super) pace: Option<PacedRequest>,
}

/// All requests that have no outcome or have not arrived.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct InFlightRequests {
    requests: VecDeque<OpenRequest>,
    /// Number of the first request in `requests`.
    first_number: u64,
    /// Departures in order: time and number; some have arrived meanwhile.
    #[serde(skip)]
    departures: VecDeque<(Nanos, u64)>,
    #[serde(skip)]
    in_transit_requests: u64,
    #[serde(skip)]
    in_transit_weight: u64,
    /// Number of the requests without an outcome.
    #[serde(skip)]
    in_flight_requests: u64,
    /// Their weight.
    #[serde(skip)]
    in_flight_weight: u64,
}

impl InFlightRequests {
    /// An empty set whose slots have new numbers.
    pub(super) fn emptied(&self) -> Self {
        Self { first_number: self.first_number + self.requests.len() as u64, ..Self::default() }
    }

    /// Numbers the requests from here on, if there are none.
    pub(super) fn number_from(&mut self, first: u64) {
        if self.requests.is_empty() {
            self.first_number = self.first_number.max(first);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub(super) fn push(&mut self, open: OpenRequest) -> WindowSlot {
        self.in_transit_requests += 1;
        self.in_transit_weight = self.in_transit_weight.saturating_add(open.weight);
        self.in_flight_requests += 1;
        self.in_flight_weight = self.in_flight_weight.saturating_add(open.weight);
        self.requests.push_back(open);
        WindowSlot(self.first_number + self.requests.len() as u64 - 1)
    }

    pub(super) fn get(&mut self, slot: WindowSlot) -> Option<&mut OpenRequest> {
        let index = usize::try_from(slot.0.checked_sub(self.first_number)?).ok()?;
        self.requests.get_mut(index).filter(|open| !open.ended)
    }

    /// Records the outcome of a request.
    pub(super) fn end(&mut self, slot: WindowSlot) -> Option<&mut OpenRequest> {
        let weight = self.get(slot)?.weight;
        self.in_flight_requests -= 1;
        self.in_flight_weight = self.in_flight_weight.saturating_sub(weight);
        let open = self.get(slot)?;
        open.ended = true;
        Some(open)
    }

    /// Amount without an outcome.
    pub(super) fn in_flight(&self, unit: LimitUnit) -> u64 {
        match unit {
            LimitUnit::Requests => self.in_flight_requests,
            LimitUnit::Weight => self.in_flight_weight,
        }
    }

    /// Computes what is not stored; false: the numbers contradict one another.
    pub(super) fn restore(&mut self) -> bool {
        let open = || self.requests.iter().filter(|open| !open.ended);
        let in_transit = || self.requests.iter().filter(|open| !open.arrived);
        let weight = |sum: u64, open: &OpenRequest| sum.saturating_add(open.weight);
        (self.in_flight_requests, self.in_flight_weight) = (open().count() as u64, open().fold(0, weight));
        (self.in_transit_requests, self.in_transit_weight) =
            (in_transit().count() as u64, in_transit().fold(0, weight));
        let numbered = self.requests.iter().zip(self.first_number..);
        let departed = numbered.filter(|(open, _)| !open.arrived);
        let mut departures: Vec<_> = departed.filter_map(|(open, number)| Some((open.departed_at?, number))).collect();
        departures.sort_unstable();
        self.departures = departures.into();
        self.first_number < super::stored_bounds::MAX_NUMBER
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
            // Departures stay in order even if the clock goes back; later is safe.
            let latest = self.departures.back().map_or(now, |(last, _)| now.max(*last));
            self.departures.push_back((latest, slot.0));
        }
    }

    /// Marks the request as arrived, and returns it.
    pub(super) fn arrive(&mut self, number: u64) -> Option<OpenRequest> {
        let index = usize::try_from(number.checked_sub(self.first_number)?).ok()?;
        let open = self.requests.get_mut(index).filter(|open| !open.arrived)?;
        open.arrived = true;
        let open = open.clone();
        self.in_transit_requests -= 1;
        self.in_transit_weight = self.in_transit_weight.saturating_sub(open.weight);
        Some(open)
    }

    /// The next request that has arrived by `now` by the delay bound alone, and when.
    pub(super) fn next_arrived(&mut self, now: Nanos, max_delay: Nanos) -> Option<(Nanos, u64)> {
        self.prune();
        let (departed_at, number) = self.departures.front().copied()?;
        (departed_at + max_delay <= now).then_some((departed_at + max_delay, number))
    }

    /// Numbers of the requests with an outcome of which only the bound decides the arrival.
    pub(super) fn ended_in_transit(&self) -> Vec<u64> {
        let is_abandoned = |(index, open): (usize, &OpenRequest)| {
            (open.ended && !open.arrived).then_some(self.first_number + index as u64)
        };
        self.requests.iter().enumerate().filter_map(is_abandoned).collect()
    }

    /// Drops finished entries from the front.
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

    /// Time by which everything has arrived; NEVER: unknown without a response; None: nothing is in transit.
    pub(super) fn all_arrived_by(&self, max_delay: Option<Nanos>) -> Option<Nanos> {
        if self.in_transit_requests == 0 {
            return None;
        }
        let in_transit =
            self.departures.iter().filter(|(_, number)| self.request(*number).is_some_and(|open| !open.arrived));
        let (count, last) = in_transit.fold((0, Nanos::ZERO), |(count, _), (departed_at, _)| (count + 1, *departed_at));
        Some(max_delay.filter(|_| count == self.in_transit_requests).map_or(Nanos::NEVER, |max_delay| last + max_delay))
    }

    pub(super) fn in_transit(&self, unit: LimitUnit, max_delay: Option<Nanos>) -> InTransit<'_> {
        InTransit { in_flight: self, unit, delay_bound: max_delay }
    }

    /// Requests not known to have arrived: departure (or decision) times and weights.
    pub(super) fn unarrived(&self) -> impl Iterator<Item = (Nanos, u64)> {
        self.requests
            .iter()
            .filter(|open| !open.arrived)
            .map(|open| (open.departed_at.unwrap_or(open.intended_at), open.weight))
    }
}

/// Requests in transit, as one window counts them.
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

    /// Latest arrival and amount of each, the earliest first. Requests that have not departed are in the total only.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Nanos, u64)> {
        self.in_flight.departures.iter().filter_map(|(departed_at, number)| {
            let open = self.in_flight.request(*number).filter(|open| !open.arrived)?;
            Some((
                self.delay_bound.map_or(Nanos::NEVER, |max_delay| *departed_at + max_delay),
                self.unit.amount(open.weight),
            ))
        })
    }
}

/// Requests without an outcome.
pub(super) struct OutstandingRequests<'a> {
    /// Requests that may not have arrived.
    pub(super) in_transit: InTransit<'a>,
    /// Amount without a response, except for the reporting request.
    pub(super) in_flight: u64,
}
