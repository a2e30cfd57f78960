//! One thread's share of a plan: what a free connection does now.
//!
//! Both models of load answer the same three questions, so the loop that moves the bytes does not know which one it
//! drives:
//!
//! | question | closed loop | open loop |
//! |---|---|---|
//! | [`Feed::due`]: what does the clock ask for? | the next user starts | the next arrival is due |
//! | [`Feed::next_on`]: a connection is free: what now? | its user asks again at once | the longest-waiting arrival, if any |
//! | [`Feed::next_due`]: when is `due` to be asked again? | the next user's start | the next arrival |
//!
//! Nothing is stored per waiting arrival: what waits because no connection is free is just the stretch of the
//! schedule between "handed out" and "now", so a backlog of a billion costs no memory.

use std::collections::VecDeque;
use std::ops::Range;

use super::deal::Shard;
use super::nanos::Nanos;
use super::schedule::{Schedule, ScheduledArrival};
use super::users::Users;

/// A request to start now, and who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueRequest {
    /// What to send, and when it was meant to start.
    pub arrival: ScheduledArrival,
    /// The user who asks; 0 in the open loop, which has none.
    pub user: u32,
}

/// A thread's share of a plan.
#[derive(Clone, Debug)]
pub enum Feed {
    /// N users, each waits for its answer.
    Closed(ClosedFeed),
    /// Arrivals come whether or not answers do.
    Open(OpenFeed),
}

impl Feed {
    /// What the clock asks for at `now`: it needs an idle connection, or a new one.
    pub fn due(&mut self, now: Nanos) -> Option<DueRequest> {
        match self {
            Self::Closed(feed) => feed.due(now),
            Self::Open(feed) => feed.due(now),
        }
    }

    /// When `due` is to be asked again; `None`: never.
    pub fn next_due(&self) -> Option<Nanos> {
        match self {
            Self::Closed(feed) => feed.next_due(),
            Self::Open(feed) => feed.next.map(|arrival| arrival.intended),
        }
    }

    /// The connection that `user` had is free at `now`: what it sends next. `None` in the closed loop means that the
    /// user has gone.
    pub fn next_on(&mut self, user: u32, now: Nanos) -> Option<DueRequest> {
        match self {
            Self::Closed(feed) => feed.next_on(user, now),
            Self::Open(feed) => feed.due(now),
        }
    }

    /// Like `again`, for a user whose connection could not be made: not before `until`. Without a pause, a refused
    /// port would be tried a hundred thousand times a second.
    pub fn pause_user(&mut self, user: u32, until: Nanos) {
        if let Self::Closed(feed) = self {
            feed.paused.push_back((until, user));
        }
    }

    /// Nothing more is to start: the run is over. What was due by `now` and is still waiting counts as dropped.
    pub fn stop(&mut self, now: Nanos) {
        match self {
            Self::Closed(feed) => feed.stop(),
            Self::Open(feed) => feed.stop(now),
        }
    }

    /// Arrivals that were due and never sent: they waited longer than their patience, or the run ended.
    pub fn dropped(&self) -> u64 {
        match self {
            Self::Closed(_) => 0,
            Self::Open(feed) => feed.dropped,
        }
    }

    /// Arrivals that were due so far and count for the result: sent, or dropped.
    pub fn offered(&self) -> u64 {
        match self {
            Self::Closed(_) => 0,
            Self::Open(feed) => feed.offered,
        }
    }

    /// Arrivals that are due at `now` and wait for a connection.
    pub fn backlog(&mut self, now: Nanos) -> u64 {
        match self {
            Self::Closed(_) => 0,
            Self::Open(feed) => feed.backlog(now),
        }
    }
}

/// The closed loop.
#[derive(Clone, Debug)]
pub struct ClosedFeed {
    users: Users,
    /// This thread's users are `next_user`, `next_user + step`, ...
    next_user: u64,
    step: u64,
    /// Requests left of each user that has started, by its local number.
    remaining: Vec<u64>,
    /// Users that wait after a failed connection, the earliest first: all pauses are equally long.
    paused: VecDeque<(Nanos, u32)>,
    /// Which of its agent's requests this thread may still make.
    permits: Range<u64>,
    /// The numbers that its agent's requests have in the whole plan.
    numbers: Shard,
    until: Nanos,
}

impl ClosedFeed {
    /// The users of thread `index` of `of` of the agent that has this part of them; they ask until `until`, and while there
    /// are tickets ([`Self::grant`]).
    pub fn new(users: Users, until: Nanos, agent: Shard, index: u64, of: u64) -> Self {
        let ours = agent.split(index, of);
        let local = ours.count(users.count);
        Self {
            users,
            next_user: ours.first(),
            step: ours.step(),
            remaining: Vec::with_capacity(usize::try_from(local).unwrap_or(0)),
            paused: VecDeque::new(),
            permits: 0..0,
            numbers: agent,
            until,
        }
    }

    /// How many tickets are left; the edge grants more before they run out.
    pub fn permits_remaining(&self) -> u64 {
        self.permits.end - self.permits.start
    }

    /// Replaces the used-up tickets.
    pub fn grant(&mut self, tickets: Range<u64>) {
        self.permits = tickets;
    }

    fn due(&mut self, now: Nanos) -> Option<DueRequest> {
        if let Some(&(until, user)) = self.paused.front()
            && until <= now
        {
            self.paused.pop_front();
            return self.next_on(user, now);
        }
        if self.next_user >= self.users.count || self.users.start(self.next_user) > now || now >= self.until {
            return None;
        }
        let user = u32::try_from(self.remaining.len()).unwrap_or(u32::MAX);
        self.remaining.push(self.users.loops.unwrap_or(u64::MAX));
        self.next_user = self.next_user.saturating_add(self.step);
        self.next_on(user, now)
    }

    fn next_due(&self) -> Option<Nanos> {
        if self.permits.is_empty() {
            return None;
        }
        let start =
            (self.next_user < self.users.count).then(|| self.users.start(self.next_user)).filter(|t| *t < self.until);
        let pause = self.paused.front().map(|(until, _)| *until).filter(|t| *t < self.until);
        start.into_iter().chain(pause).min()
    }

    fn next_on(&mut self, user: u32, now: Nanos) -> Option<DueRequest> {
        let left = self.remaining.get_mut(user as usize)?;
        if *left == 0 || now >= self.until {
            return None;
        }
        let number = self.numbers.nth(self.permits.next()?);
        *left -= 1;
        Some(DueRequest { arrival: ScheduledArrival { intended: now, number }, user })
    }

    fn stop(&mut self) {
        self.until = Nanos::ZERO;
        self.paused.clear();
    }
}

/// The open loop.
#[derive(Clone, Debug)]
pub struct OpenFeed {
    schedule: Schedule,
    /// The next arrival to hand out; due or not.
    next: Option<ScheduledArrival>,
    /// Runs ahead of `schedule` to the present, to count what waits.
    ahead: std::iter::Peekable<Schedule>,
    /// Arrivals that `ahead` has passed, and that were handed out or dropped.
    arrived: u64,
    dequeued: u64,
    /// How long an arrival waits for a connection before it is dropped.
    max_wait: Nanos,
    /// Drops of arrivals meant to start before this (the warm-up) are not counted.
    counted_from: Nanos,
    offered: u64,
    dropped: u64,
    /// Arrivals from this number on are not sent.
    limit: u64,
}

impl OpenFeed {
    /// A share of a schedule; arrivals with a number of `limit` or more are left out, and one that has waited longer
    /// than `patience` for a connection is dropped.
    pub fn new(mut schedule: Schedule, limit: u64, max_wait: Nanos) -> Self {
        let ahead = schedule.clone().peekable();
        let next = schedule.next().filter(|a| a.number < limit);
        Self {
            schedule,
            next,
            ahead,
            arrived: 0,
            dequeued: 0,
            max_wait,
            counted_from: Nanos::ZERO,
            offered: 0,
            dropped: 0,
            limit,
        }
    }

    /// Counts dropped arrivals only from those on that are meant to start at `from`, the end of the warm-up.
    pub fn counting_from(self, from: Nanos) -> Self {
        Self { counted_from: from, ..self }
    }

    fn due(&mut self, now: Nanos) -> Option<DueRequest> {
        loop {
            let arrival = self.take_due(now)?;
            if now - arrival.intended <= self.max_wait {
                return Some(DueRequest { arrival, user: 0 });
            }
            self.drop(&arrival);
        }
    }

    /// The next arrival, if it is due.
    fn take_due(&mut self, now: Nanos) -> Option<ScheduledArrival> {
        let arrival = self.next.filter(|a| a.intended <= now)?;
        self.next = self.schedule.next().filter(|a| a.number < self.limit);
        self.dequeued += 1;
        self.offered += u64::from(arrival.intended >= self.counted_from);
        Some(arrival)
    }

    fn drop(&mut self, arrival: &ScheduledArrival) {
        self.dropped += u64::from(arrival.intended >= self.counted_from);
    }

    fn backlog(&mut self, now: Nanos) -> u64 {
        let limit = self.limit;
        while self.ahead.next_if(|a| a.intended <= now && a.number < limit).is_some() {
            self.arrived += 1;
        }
        self.arrived.saturating_sub(self.dequeued)
    }

    fn stop(&mut self, now: Nanos) {
        while let Some(arrival) = self.take_due(now) {
            self.drop(&arrival);
        }
        self.next = None;
    }
}

#[cfg(test)]
mod tests {
    use super::super::schedule::{Arrivals, LoadStage};
    use super::*;
    use proptest::prelude::*;

    fn open(rate: f64, seconds: u64, patience: Nanos) -> Feed {
        let stages = vec![LoadStage { from_per_s: rate, to_per_s: rate, length: Nanos::from_secs(seconds) }];
        Feed::Open(OpenFeed::new(Schedule::new(stages, Arrivals::Constant, 0), u64::MAX, patience))
    }

    fn closed(users: Users, until: Nanos, tickets: u64) -> Feed {
        let mut feed = ClosedFeed::new(users, until, Shard::WHOLE, 0, 1);
        feed.grant(0..tickets);
        Feed::Closed(feed)
    }

    #[test]
    fn what_waits_for_a_connection_keeps_its_intended_time() {
        let mut feed = open(10.0, 1, Nanos::NEVER);
        let late = Nanos::from_millis(450);
        assert_eq!(feed.backlog(late), 5);
        let times: Vec<u64> =
            std::iter::from_fn(|| feed.next_on(0, late)).map(|s| s.arrival.intended.0 / 1_000_000).collect();
        assert_eq!(times, [0, 100, 200, 300, 400]);
        assert_eq!(feed.next_due(), Some(Nanos::from_millis(500)));
        assert_eq!(feed.backlog(late), 0);
    }

    #[test]
    fn an_arrival_that_waits_beyond_its_patience_is_dropped_and_counted() {
        let mut feed = open(10.0, 1, Nanos::from_millis(250));
        let first = feed.due(Nanos::from_millis(500));
        assert_eq!(first.map(|s| s.arrival.number), Some(3));
        assert_eq!(feed.dropped(), 3);
        feed.stop(Nanos::from_millis(700));
        assert_eq!(feed.dropped(), 3 + 4, "0.4, 0.5, 0.6 and 0.7 s were due");
        assert_eq!(feed.next_due(), None);
    }

    #[test]
    fn what_is_dropped_in_the_warm_up_does_not_count() {
        let Feed::Open(feed) = open(10.0, 1, Nanos::from_millis(250)) else { return };
        let mut feed = Feed::Open(feed.counting_from(Nanos::from_millis(150)));
        assert_eq!(feed.due(Nanos::from_millis(500)).map(|s| s.arrival.number), Some(3));
        assert_eq!(feed.dropped(), 1, "of 0, 0.1 and 0.2 s");
        feed.stop(Nanos::from_millis(700));
        assert_eq!(feed.dropped(), 1 + 4);
    }

    #[test]
    fn a_user_makes_its_loops_and_goes() {
        let users = Users { count: 2, ramp_up: Nanos::from_secs(10), loops: Some(3) };
        let mut feed = closed(users, Nanos::NEVER, u64::MAX);
        let first = feed.due(Nanos::ZERO);
        assert_eq!(first.map(|s| s.user), Some(0));
        assert!(feed.due(Nanos(1)).is_none(), "the second user starts at 5 s");
        assert_eq!(feed.next_due(), Some(Nanos::from_secs(5)));
        assert!(feed.next_on(0, Nanos(2)).is_some() && feed.next_on(0, Nanos(3)).is_some());
        assert!(feed.next_on(0, Nanos(4)).is_none());
        assert_eq!(feed.due(Nanos::from_secs(5)).map(|s| s.user), Some(1));
    }

    #[test]
    fn a_user_whose_connection_failed_pauses() {
        let users = Users { count: 1, ramp_up: Nanos::ZERO, loops: None };
        let mut feed = closed(users, Nanos::from_secs(1), u64::MAX);
        assert!(feed.due(Nanos::ZERO).is_some());
        feed.pause_user(0, Nanos::from_millis(100));
        assert!(feed.due(Nanos::from_millis(99)).is_none());
        assert_eq!(feed.next_due(), Some(Nanos::from_millis(100)));
        assert!(feed.due(Nanos::from_millis(100)).is_some());
        feed.pause_user(0, Nanos::from_secs(2));
        assert_eq!(feed.next_due(), None, "the run is over by then");
    }

    #[test]
    fn no_more_requests_than_tickets() {
        let users = Users { count: 3, ramp_up: Nanos::ZERO, loops: None };
        let mut feed = closed(users, Nanos::NEVER, 5);
        let mut made = std::iter::from_fn(|| feed.due(Nanos(1))).count();
        while feed.next_on(0, Nanos(2)).is_some() {
            made += 1;
        }
        assert_eq!(made, 5);
        assert_eq!(feed.next_due(), None);
    }

    proptest! {
        /// Whatever the moments at which connections are free: every arrival is handed out once, in order, never
        /// before its time, or is counted as dropped.
        #[test]
        fn each_arrival_is_sent_once_or_dropped(
            rate in 1.0..500.0_f64, patience_ms in 0..400_u64, steps in prop::collection::vec((0..80_u64, 0..6_usize), 1..80)
        ) {
            let mut feed = open(rate, 2, Nanos::from_millis(patience_ms));
            let total = Schedule::new(
                vec![LoadStage { from_per_s: rate, to_per_s: rate, length: Nanos::from_secs(2) }], Arrivals::Constant, 0
            ).filter(|a| a.intended.0 <= steps.iter().map(|s| s.0 * 1_000_000).sum()).count() as u64;
            let (mut now, mut sent, mut last) = (Nanos::ZERO, 0_u64, None);
            for (ms, free) in steps {
                now += Nanos::from_millis(ms);
                for _ in 0..free {
                    if let Some(start) = feed.due(now) {
                        prop_assert!(start.arrival.intended <= now);
                        prop_assert!(now - start.arrival.intended <= Nanos::from_millis(patience_ms));
                        prop_assert!(last.is_none_or(|l| l < start.arrival.number));
                        last = Some(start.arrival.number);
                        sent += 1;
                    }
                }
                prop_assert_eq!(feed.backlog(now) + sent + feed.dropped(), feed.backlog(now) + match &feed {
                    Feed::Open(o) => o.dequeued,
                    Feed::Closed(_) => 0,
                });
            }
            feed.stop(now);
            prop_assert_eq!(sent + feed.dropped(), total);
        }
    }
}
