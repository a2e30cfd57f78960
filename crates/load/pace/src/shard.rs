//! Shard of a plan: the request numbers of one agent, or of one of its threads.

/// The numbers `first`, `first + step`, `first + 2 step`, ...: the shard of an agent, or of a thread.
///
/// Part `a` of `n`, and of that part `b` of `m`, is part `a + n b` of `n m`: so N threads get the same shards whether
/// they belong to one agent or to several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    first: u64,
    step: u64,
}

impl Shard {
    /// All numbers.
    pub const WHOLE: Self = Self { first: 0, step: 1 };

    /// Part `index` of `of` equal ones of this; `index` < `of`.
    pub fn split(self, index: u64, of: u64) -> Self {
        Self {
            first: self.first.saturating_add(index.saturating_mul(self.step)),
            step: self.step.saturating_mul(of.max(1)),
        }
    }

    /// The first number.
    pub fn first(self) -> u64 {
        self.first
    }

    /// How far apart they are; >= 1.
    pub fn step(self) -> u64 {
        self.step
    }

    /// How many of the numbers below `total` belong to it.
    pub fn count(self, total: u64) -> u64 {
        total.saturating_sub(self.first).div_ceil(self.step)
    }

    /// Number of the part's item `k`, from 0.
    pub fn nth(self, k: u64) -> u64 {
        self.first.saturating_add(self.step.saturating_mul(k))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Shard;
    use crate::feed::{ClosedFeed, Feed, OpenFeed};
    use crate::schedule::{Arrivals, LoadStage, Schedule};
    use crate::source::RequestSource;
    use crate::users::Users;
    use weir_base::nanos::Nanos;

    /// The numbers of agents that have to make the same of a plan.
    const AGENTS: [u64; 4] = [1, 2, 4, 7];

    /// Number, intended start and body of all that the feeds of `agents` agents with `threads` threads start.
    fn started(
        agents: u64,
        threads: u64,
        source: &RequestSource,
        feed: impl Fn(Shard, u64) -> Feed,
    ) -> Vec<(u64, Nanos, usize)> {
        let mut all = Vec::new();
        for agent in 0..agents {
            for thread in 0..threads {
                let mut feed = feed(Shard::WHOLE.split(agent, agents), thread);
                while let Some(at) = feed.next_due() {
                    let Some(start) = feed.due(at) else { break };
                    let arrival = start.arrival;
                    all.push((arrival.number, arrival.intended, source.pick(arrival.number)));
                }
            }
        }
        all.sort_unstable();
        all
    }

    fn stages() -> impl Strategy<Value = Vec<LoadStage>> {
        let stage = (0.0..200.0_f64, 0.0..200.0_f64, 1..2000_u64);
        prop::collection::vec(stage, 1..4).prop_map(|stages| {
            let stage = |(from_per_s, to_per_s, ms)| LoadStage { from_per_s, to_per_s, length: Nanos::from_millis(ms) };
            stages.into_iter().map(stage).collect()
        })
    }

    proptest! {
        #[test]
        fn each_number_is_in_one_part_of_one_part(agents in 1..9_u64, threads in 1..5_u64, total in 0..400_u64) {
            let mut all = Vec::new();
            for agent in 0..agents {
                let whole = Shard::WHOLE.split(agent, agents);
                let parts: Vec<Shard> = (0..threads).map(|thread| whole.split(thread, threads)).collect();
                prop_assert_eq!(parts.iter().map(|part| part.count(total)).sum::<u64>(), whole.count(total));
                for (thread, part) in (0..).zip(&parts) {
                    prop_assert_eq!(*part, Shard::WHOLE.split(agent + agents * thread, agents * threads));
                    all.extend((0..part.count(total)).map(|k| part.nth(k)));
                    prop_assert!(part.nth(part.count(total)) >= total);
                }
            }
            all.sort_unstable();
            prop_assert_eq!(all, (0..total).collect::<Vec<_>>());
        }

        #[test]
        fn any_number_of_agents_makes_the_same_arrivals_bodies_and_stages(
            stages in stages(), seed: u64, poisson: bool, threads in 1..4_u64, limit in prop::option::of(0..300_u64),
            weights in prop::collection::vec(0.0..9.0_f64, 0..5)
        ) {
            let kind = if poisson { Arrivals::Poisson } else { Arrivals::Constant };
            let source = RequestSource::new(&weights, seed);
            let limit = limit.unwrap_or(u64::MAX);
            let whole: Vec<_> = Schedule::new(stages.clone(), kind, seed)
                .filter(|arrival| arrival.number < limit)
                .map(|arrival| (arrival.number, arrival.intended, source.pick(arrival.number)))
                .collect();
            for agents in AGENTS {
                let feed = |deal: Shard, thread: u64| {
                    let schedule = Schedule::new(stages.clone(), kind, seed).sharded(deal.split(thread, threads));
                    Feed::Open(OpenFeed::new(schedule, limit, Nanos::NEVER))
                };
                prop_assert_eq!(&started(agents, threads, &source, feed), &whole, "{} agents", agents);
            }
        }

        /// Each user asks once, when it is its turn to start: by number, since an agent numbers what it sends by
        /// itself.
        #[test]
        fn any_number_of_agents_has_the_same_users(
            count in 1..60_u64, ramp_up_ms in 0..5000_u64, threads in 1..4_u64
        ) {
            let users = Users { count, ramp_up: Nanos::from_millis(ramp_up_ms), loops: Some(1) };
            let whole: Vec<Nanos> = (0..count).map(|user| users.start(user)).collect();
            for agents in AGENTS {
                let feed = |deal: Shard, thread: u64| {
                    let mut feed = ClosedFeed::new(users, Nanos::NEVER, deal, thread, threads);
                    feed.grant(0..u64::MAX);
                    Feed::Closed(feed)
                };
                let mut starts: Vec<Nanos> =
                    started(agents, threads, &RequestSource::new(&[], 0), feed).into_iter().map(|(_, at, _)| at).collect();
                starts.sort_unstable();
                prop_assert_eq!(&starts, &whole, "{} agents", agents);
            }
        }

        #[test]
        fn any_number_of_agents_sends_the_same_bounded_number_of_requests_and_bodies(limit in 0..300_u64, seed: u64) {
            let users = Users { count: 28, ramp_up: Nanos::ZERO, loops: None };
            let source = RequestSource::new(&[1.0, 2.0, 3.0], seed);
            let whole: Vec<(u64, usize)> = (0..limit).map(|number| (number, source.pick(number))).collect();
            for agents in AGENTS {
                let mut all = Vec::new();
                for agent in 0..agents {
                    let deal = Shard::WHOLE.split(agent, agents);
                    let mut feed = ClosedFeed::new(users, Nanos::NEVER, deal, 0, 1);
                    feed.grant(0..deal.count(limit));
                    let mut feed = Feed::Closed(feed);
                    let mut next = feed.due(Nanos::ZERO);
                    while let Some(start) = next {
                        all.push((start.arrival.number, source.pick(start.arrival.number)));
                        next = feed.next_on(start.user, Nanos::ZERO);
                    }
                }
                all.sort_unstable();
                prop_assert_eq!(&all, &whole, "{} agents", agents);
            }
        }
    }
}
