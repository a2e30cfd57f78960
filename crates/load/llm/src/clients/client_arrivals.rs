//! Arrivals of several clients.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weir_base::Nanos;
use weir_pace::schedule::Schedule;

use super::client_mix::ClientMix;

/// Arrival of a client's session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientArrival {
    /// Time.
    pub at: Nanos,
    /// Client, from 0.
    pub client: usize,
    /// Number among the client's own arrivals, from 0.
    pub number: u64,
}

/// Arrivals of all clients of a composition, in the order of time; those of the same time in the order of the clients.
#[derive(Clone, Debug)]
pub struct ClientArrivals {
    schedules: Vec<Schedule>,
    /// Next arrival of each client that has one, with its number.
    next: BinaryHeap<Reverse<(Nanos, usize)>>,
}

impl ClientArrivals {
    /// Arrivals of a composition, by seed.
    pub fn new(mix: &ClientMix, seed: u64) -> Self {
        let mut schedules: Vec<Schedule> = mix.clients.iter().map(|client| client.schedule(seed)).collect();
        let first = |(client, schedule): (usize, &mut Schedule)| Some(Reverse((schedule.peek()?.intended, client)));
        let next = schedules.iter_mut().enumerate().filter_map(first).collect();
        Self { schedules, next }
    }
}

impl Iterator for ClientArrivals {
    type Item = ClientArrival;

    fn next(&mut self) -> Option<ClientArrival> {
        let Reverse((at, client)) = self.next.pop()?;
        let schedule = self.schedules.get_mut(client)?;
        let number = schedule.next()?.number;
        if let Some(next) = schedule.peek() {
            self.next.push(Reverse((next.intended, client)));
        }
        Some(ClientArrival { at, client, number })
    }
}
