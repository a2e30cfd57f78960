//! A queue that is judged by how long it has not been empty, newest first while it is judged full.
//!
//! As Facebook has published it ("Fail at Scale", ACM Queue 2015): who comes may wait for 100 ms if the queue was empty
//! within the last 100 ms, else for 5 ms; and in the latter case the newest goes first. Behind it stands a number of
//! workers that somebody has set.

use std::collections::VecDeque;

use super::REFUSAL;
use crate::decide::Nanos;
use crate::decide::admit::Arrival;
use crate::simulate::gate::{Ended, Entry, Gate, Id, Told};

const SHORT: Nanos = Nanos::from_millis(5);
const LONG: Nanos = Nanos::from_millis(100);

#[derive(Debug)]
pub(in crate::simulate) struct Codel {
    workers: u32,
    in_flight: u32,
    queue: VecDeque<(Id, Nanos)>,
    empty_at: Nanos,
}

impl Codel {
    pub(in crate::simulate) fn new(workers: u32) -> Self {
        Self { workers, in_flight: 0, queue: VecDeque::new(), empty_at: Nanos::ZERO }
    }

    fn overloaded(&self, now: Nanos) -> bool {
        now - self.empty_at > LONG
    }

    fn take(&mut self, now: Nanos, id: Id) {
        self.queue.retain(|(waiting, _)| *waiting != id);
        if self.queue.is_empty() {
            self.empty_at = now;
        }
    }
}

impl Gate for Codel {
    fn arrive(&mut self, now: Nanos, id: Id, _: &Arrival, _: &mut Vec<Told>) -> Entry {
        if self.queue.is_empty() {
            self.empty_at = now;
            if self.in_flight < self.workers {
                self.in_flight += 1;
                return Entry::Run;
            }
        }
        let until = now + if self.overloaded(now) { SHORT } else { LONG };
        self.queue.push_back((id, until));
        Entry::Wait(until)
    }

    fn ended(&mut self, now: Nanos, _: &Ended, told: &mut Vec<Told>) {
        self.in_flight -= 1;
        while self.in_flight < self.workers {
            let next = if self.overloaded(now) { self.queue.back() } else { self.queue.front() };
            let Some((id, until)) = next.copied() else { return };
            self.take(now, id);
            if until <= now {
                told.push(Told::Refuse(id, REFUSAL));
            } else {
                self.in_flight += 1;
                told.push(Told::Run(id));
            }
        }
    }

    fn overdue(&mut self, now: Nanos, id: Id, told: &mut Vec<Told>) -> Option<Nanos> {
        self.take(now, id);
        told.push(Told::Refuse(id, REFUSAL));
        None
    }

    fn withdraw(&mut self, id: Id) {
        self.queue.retain(|(waiting, _)| *waiting != id);
    }

    fn limit(&self) -> Option<u32> {
        Some(self.workers)
    }

    fn in_flight(&self) -> u32 {
        self.in_flight
    }

    fn waiting(&self) -> u32 {
        self.queue.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::admit::Priority;
    use crate::simulate::gate::How;

    const CALL: Arrival = Arrival { deadline: Nanos::NEVER, priority: Priority::Normal, spread: 0 };

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    fn arrive(codel: &mut Codel, at: u64, id: Id) -> Entry {
        codel.arrive(ms(at), id, &CALL, &mut Vec::new())
    }

    fn next(codel: &mut Codel, at: u64) -> Vec<Told> {
        let mut told = Vec::new();
        codel.ended(ms(at), &Ended { began: Nanos::ZERO, beside: 1, lag: Nanos::ZERO, how: How::Answered }, &mut told);
        told
    }

    #[test]
    fn who_comes_waits_for_long_if_the_queue_was_empty_of_late_and_the_oldest_is_next() {
        let mut codel = Codel::new(1);
        assert_eq!(arrive(&mut codel, 1000, 0), Entry::Run);
        assert_eq!(arrive(&mut codel, 1000, 1), Entry::Wait(ms(1100)));
        assert_eq!(arrive(&mut codel, 1050, 2), Entry::Wait(ms(1150)));
        assert_eq!(next(&mut codel, 1060), [Told::Run(1)]);
    }

    #[test]
    fn if_it_was_not_it_waits_for_five_milliseconds_and_the_newest_is_next() {
        let mut codel = Codel::new(1);
        for (at, id) in [(1000, 0), (1000, 1), (1090, 2)] {
            arrive(&mut codel, at, id);
        }
        let mut told = Vec::new();
        assert_eq!(codel.overdue(ms(1100), 1, &mut told), None);
        assert_eq!(arrive(&mut codel, 1101, 3), Entry::Wait(ms(1106)));
        assert_eq!(next(&mut codel, 1102), [Told::Run(3)]);
        assert_eq!(next(&mut codel, 1103), [Told::Run(2)]);
        assert_eq!((codel.in_flight(), codel.waiting()), (1, 0));
    }
}
