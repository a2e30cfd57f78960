//! A service of limited capacity: N requests at a time, the others wait in a queue.
//!
//! In queueing theory a G/G/N station, first come first served. It works in virtual time: when a request arrives, its
//! start and end are determined, so they are returned at once and need no events.
//!
//! ```text
//!              queue           N servers
//!  arrive ──► ○ ○ ○ ○ ──────► [■][■][■] ──► done
//!               │ full?
//!               └─► rejected, or service times grow
//! ```
//!
//! A request is served even if its caller disconnects: like most services, the station notices that only when it
//! responds.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use weir_base::nanos::Nanos;

/// Behaviour of a station at more than its capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StationOverflow {
    /// Requests that find the queue full are rejected.
    Reject {
        /// Maximum queue length; 0: requests are rejected when all servers are busy.
        queue: usize,
    },
    /// No rejections, but service times grow with the load, as when a machine thrashes: the n-th request in the station
    /// takes 1 + (n - N) / N times as long, for n > N. At n = 2N that is twice as long; throughput is below the
    /// capacity, and falls for as long as the overload lasts.
    Slow,
}

/// Outcome of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StationOutcome {
    /// The request is accepted.
    Done {
        /// Start of its service.
        start: Nanos,
        /// Time of its response.
        done: Nanos,
    },
    /// The request is rejected.
    Rejected {
        /// Time until the queue has a free place, if no other request takes it.
        retry_after: Nanos,
    },
}

/// N servers and their queue. An arrival costs O(log N), amortized.
#[derive(Clone, Debug)]
pub struct Station {
    servers: usize,
    overflow: StationOverflow,
    /// End of the work that is assigned to each busy server.
    busy: BinaryHeap<Reverse<Nanos>>,
    /// Start of service of each waiting request, in order of arrival.
    waiting: VecDeque<Nanos>,
    now: Nanos,
}

impl Station {
    /// A station of `servers` >= 1.
    pub fn new(servers: usize, overflow: StationOverflow) -> Self {
        Self { servers: servers.max(1), overflow, busy: BinaryHeap::new(), waiting: VecDeque::new(), now: Nanos::ZERO }
    }

    /// Adds a request that arrives at `now` with a service time. Time does not run backwards: an arrival that is
    /// reported late counts as simultaneous with the one before.
    pub fn arrive(&mut self, now: Nanos, service: Nanos) -> StationOutcome {
        self.advance(now);
        let service = match self.overflow {
            StationOverflow::Reject { queue } => {
                if let Some(free) = self.full_until(queue) {
                    return StationOutcome::Rejected { retry_after: free - self.now };
                }
                service
            }
            StationOverflow::Slow => self.degraded(service),
        };
        let start = if self.busy.len() < self.servers {
            self.now
        } else {
            let start = self.busy.pop().map_or(self.now, |Reverse(free)| free);
            self.waiting.push_back(start);
            start
        };
        let done = start + service;
        self.busy.push(Reverse(done));
        StationOutcome::Done { start, done }
    }

    /// Requests in the station at `now`, in service or waiting.
    pub fn in_system(&mut self, now: Nanos) -> usize {
        self.advance(now);
        self.busy.len() + self.waiting.len()
    }

    /// Removes the past: requests whose service has begun, servers that are free again.
    fn advance(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        while self.waiting.front().is_some_and(|start| *start <= self.now) {
            self.waiting.pop_front();
        }
        while self.busy.peek().is_some_and(|Reverse(free)| *free <= self.now) {
            self.busy.pop();
        }
    }

    /// Time at which the queue has a free place; `None` if it has one now.
    fn full_until(&self, queue: usize) -> Option<Nanos> {
        if self.busy.len() < self.servers || self.waiting.len() < queue {
            return None;
        }
        self.waiting.front().copied().or_else(|| self.busy.peek().map(|Reverse(free)| *free))
    }

    fn degraded(&self, service: Nanos) -> Nanos {
        // 1 + (n - N) / N is n / N; the arrival itself counts.
        let n = self.busy.len() + self.waiting.len() + 1;
        let longer = u128::from(service.0) * (n.max(self.servers) as u128) / self.servers as u128;
        Nanos(u64::try_from(longer).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_base::rng::SeededRng;

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    fn done(verdict: StationOutcome) -> Nanos {
        match verdict {
            StationOutcome::Done { done, .. } => done,
            StationOutcome::Rejected { .. } => panic!("refused"),
        }
    }

    #[test]
    fn two_servers_and_a_place_to_wait() {
        let mut station = Station::new(2, StationOverflow::Reject { queue: 1 });
        assert_eq!(station.arrive(ms(0), ms(100)), StationOutcome::Done { start: ms(0), done: ms(100) });
        assert_eq!(station.arrive(ms(10), ms(50)), StationOutcome::Done { start: ms(10), done: ms(60) });
        assert_eq!(station.arrive(ms(20), ms(70)), StationOutcome::Done { start: ms(60), done: ms(130) });
        assert_eq!(station.in_system(ms(20)), 3);
        assert_eq!(station.arrive(ms(30), ms(1)), StationOutcome::Rejected { retry_after: ms(30) });
        assert_eq!(station.arrive(ms(60), ms(1)), StationOutcome::Done { start: ms(100), done: ms(101) });
        assert_eq!(station.in_system(ms(129)), 1);
        assert_eq!(station.in_system(ms(130)), 0);
    }

    #[test]
    fn without_a_queue_requests_are_rejected_while_all_servers_are_busy() {
        let mut station = Station::new(1, StationOverflow::Reject { queue: 0 });
        assert_eq!(done(station.arrive(ms(0), ms(10))), ms(10));
        assert_eq!(station.arrive(ms(4), ms(10)), StationOutcome::Rejected { retry_after: ms(6) });
        assert_eq!(done(station.arrive(ms(10), ms(10))), ms(20));
    }

    #[test]
    fn with_twice_as_many_as_servers_work_takes_twice_as_long() {
        let mut station = Station::new(4, StationOverflow::Slow);
        let all: Vec<Nanos> = (0..8).map(|_| done(station.arrive(ms(0), ms(100)))).collect();
        assert_eq!(all[..4], [ms(100); 4]);
        assert_eq!(all[4..], [ms(225), ms(250), ms(275), ms(300)]);
    }

    #[test]
    fn an_arrival_that_is_reported_late_does_not_turn_time_back() {
        let mut station = Station::new(2, StationOverflow::Reject { queue: 9 });
        station.arrive(ms(50), ms(1));
        assert_eq!(station.arrive(ms(40), ms(1)), StationOutcome::Done { start: ms(50), done: ms(51) });
        assert_eq!(station.arrive(ms(40), ms(1)), StationOutcome::Done { start: ms(51), done: ms(52) });
    }

    fn is_done(verdict: StationOutcome) -> bool {
        matches!(verdict, StationOutcome::Done { .. })
    }

    /// Mean response time, in units of the mean service time, and the mean number that an arrival finds.
    fn simulated(utilisation: f64, exponential: bool) -> (f64, f64) {
        let mut station = Station::new(1, StationOverflow::Reject { queue: usize::MAX });
        let mut rng = SeededRng::new(3, 9);
        let (mut now, mut response, mut found, n) = (0.0, 0.0, 0, 400_000);
        for _ in 0..n {
            now += rng.exponential() / utilisation;
            let service = if exponential { rng.exponential() } else { 1.0 };
            let at = Nanos::from_secs_f64(now);
            found += station.in_system(at);
            response += (done(station.arrive(at, Nanos::from_secs_f64(service))) - at).as_secs_f64();
        }
        (response / f64::from(n), found as f64 / f64::from(n))
    }

    #[test]
    fn response_times_are_those_of_the_textbook() {
        for (utilisation, exponential) in [(0.5, true), (0.7, true), (0.5, false), (0.8, false)] {
            // Pollaczek and Khinchin: waiting is rho / (1 - rho), and half of that if service is constant.
            let waiting = utilisation / (1.0 - utilisation) * if exponential { 1.0 } else { 0.5 };
            let (response, found) = simulated(utilisation, exponential);
            assert!((response / (1.0 + waiting) - 1.0).abs() < 0.02, "{utilisation} {exponential}: {response}");
            // Little's law; Poisson arrivals find the average over time.
            assert!((found / (utilisation * response) - 1.0).abs() < 0.02, "{utilisation} {exponential}: {found}");
        }
    }

    /// Naive model: servers and a queue, event by event.
    struct NaiveStation {
        overflow: StationOverflow,
        /// Request and end of its service, by server.
        servers: Vec<Option<(usize, Nanos)>>,
        queue: VecDeque<(usize, Nanos)>,
        started: Vec<Option<(Nanos, Nanos)>>,
    }

    impl NaiveStation {
        fn run_until(&mut self, now: Nanos) {
            while let Some(server) = (0..self.servers.len())
                .filter(|s| self.servers[*s].is_some_and(|(_, end)| end <= now))
                .min_by_key(|s| self.servers[*s].map(|(_, end)| end))
            {
                let end = self.servers[server].take().map_or(now, |(_, end)| end);
                if let Some((number, service)) = self.queue.pop_front() {
                    self.begin(server, number, end, service);
                }
            }
        }

        fn begin(&mut self, server: usize, number: usize, at: Nanos, service: Nanos) {
            self.servers[server] = Some((number, at + service));
            self.started[number] = Some((at, at + service));
        }

        fn in_system(&self) -> usize {
            self.servers.iter().flatten().count() + self.queue.len()
        }

        fn arrive(&mut self, now: Nanos, service: Nanos) -> bool {
            self.run_until(now);
            let number = self.started.len();
            self.started.push(None);
            let free = self.servers.iter().position(Option::is_none);
            let service = match self.overflow {
                StationOverflow::Reject { queue } if free.is_none() && self.queue.len() >= queue => return false,
                StationOverflow::Reject { .. } => service,
                StationOverflow::Slow => {
                    let (n, servers) = (self.in_system() + 1, self.servers.len());
                    let beyond = n.saturating_sub(servers) as u64;
                    Nanos(service.0 + service.0 * beyond / servers as u64)
                }
            };
            match free {
                Some(server) => self.begin(server, number, now, service),
                None => self.queue.push_back((number, service)),
            }
            true
        }
    }

    proptest! {
        #[test]
        fn outcomes_at_arrival_are_those_of_event_by_event(
            servers in 1..5_usize,
            queue in prop::option::of(0..6_usize),
            arrivals in prop::collection::vec((0..40_u64, 0..100_u64), 1..120),
        ) {
            let overflow = queue.map_or(StationOverflow::Slow, |queue| StationOverflow::Reject { queue });
            let mut station = Station::new(servers, overflow);
            let mut naive =
                NaiveStation { overflow, servers: vec![None; servers], queue: VecDeque::new(), started: Vec::new() };
            let (mut now, mut started, mut work, mut last) = (Nanos::ZERO, Vec::new(), 0, Nanos::ZERO);
            for (gap, service) in arrivals {
                now += Nanos(gap);
                naive.run_until(now);
                prop_assert_eq!(station.in_system(now), naive.in_system());
                let verdict = station.arrive(now, Nanos(service));
                prop_assert_eq!(naive.arrive(now, Nanos(service)), is_done(verdict));
                match verdict {
                    StationOutcome::Done { start, done } => {
                        prop_assert!(now <= start && done.0 - start.0 >= service);
                        work += done.0 - start.0;
                        last = last.max(done);
                        started.push(Some((start, done)));
                    }
                    StationOutcome::Rejected { retry_after } => {
                        prop_assert!(retry_after > Nanos::ZERO);
                        let taken = |after| is_done(station.clone().arrive(now + after, Nanos(1)));
                        prop_assert!(taken(retry_after) && !taken(retry_after - Nanos(1)));
                        started.push(None);
                    }
                }
            }
            naive.run_until(Nanos::NEVER);
            prop_assert_eq!(started, naive.started);
            prop_assert!(work <= last.0 * servers as u64, "no more work than the servers have time");
        }
    }
}
