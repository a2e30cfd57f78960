//! One thread's shard of a load: what a free connection sends now.
//!
//! Both models of load answer the same three questions, so the loop that moves the bytes is independent of the model:
//!
//! | question | closed loop | open loop |
//! |---|---|---|
//! | [`Feed::due`]: what is due by the clock? | the next user's start | the next arrival |
//! | [`Feed::next_on`]: what does a free connection send? | its user's next request | the oldest waiting arrival |
//! | [`Feed::next_due`]: when is something due again? | the next user's start | the next arrival |
//!
//! Waiting arrivals are not stored: they are the part of the schedule between the last one sent and now, so a backlog
//! of a billion takes no memory.

use std::collections::VecDeque;
use std::ops::Range;

use super::arrival_queue::ArrivalQueue;
use super::schedule::{Schedule, ScheduledArrival};
use super::shard::Shard;
use super::users::Users;
use crate::base::nanos::Nanos;

/// Request to start now, and its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueRequest {
    /// Arrival: number and intended start.
    pub arrival: ScheduledArrival,
    /// Number of the user; 0 in the open loop.
    pub user: u32,
}

/// One thread's shard of a load.
#[derive(Clone, Debug)]
pub enum Feed {
    /// Closed loop: N users, each of which waits for its response.
    Closed(ClosedFeed),
    /// Open loop: arrivals at a rate, independent of responses.
    Open(OpenFeed),
}

impl Feed {
    /// Request that is due at `now`; it takes an idle connection, or a new one.
    pub fn due(&mut self, now: Nanos) -> Option<DueRequest> {
        match self {
            Self::Closed(feed) => feed.due(now),
            Self::Open(feed) => feed.due(now),
        }
    }

    /// Time of the next call of [`Self::due`]; `None`: never.
    pub fn next_due(&self) -> Option<Nanos> {
        match self {
            Self::Closed(feed) => feed.next_due(),
            Self::Open(feed) => feed.next_due(),
        }
    }

    /// Next request of a connection that `user` had, and that is free at `now`. In the closed loop `None` means that
    /// the user has ended.
    pub fn next_on(&mut self, user: u32, now: Nanos) -> Option<DueRequest> {
        match self {
            Self::Closed(feed) => feed.next_on(user, now),
            Self::Open(feed) => feed.due(now),
        }
    }

    /// Pauses a user whose connection failed, until a time. Without a pause a refused port would be tried a hundred
    /// thousand times per second.
    pub fn pause_user(&mut self, user: u32, until: Nanos) {
        if let Self::Closed(feed) = self {
            feed.paused.push_back((until, user));
        }
    }

    /// Ends the run: nothing more starts. Arrivals that were due by `now` and still wait count as dropped.
    pub fn stop(&mut self, now: Nanos) {
        match self {
            Self::Closed(feed) => feed.stop(),
            Self::Open(feed) => feed.stop(now),
        }
    }

    /// Arrivals since the last call that count for the result: sent or dropped.
    pub fn take_offered(&mut self) -> u64 {
        match self {
            Self::Closed(_) => 0,
            Self::Open(feed) => std::mem::take(&mut feed.offered),
        }
    }

    /// Of these, arrivals that were never sent: they waited too long, or the run ended.
    pub fn take_dropped(&mut self) -> u64 {
        match self {
            Self::Closed(_) => 0,
            Self::Open(feed) => std::mem::take(&mut feed.dropped),
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

/// Users of a closed loop on one thread.
#[derive(Clone, Debug)]
pub struct ClosedFeed {
    users: Users,
    /// Users of this thread: `next_user`, `next_user + step`, ...
    next_user: u64,
    step: u64,
    /// Remaining requests of each started user, by its local number.
    remaining: Vec<u64>,
    /// Their sum; `MAX` without a limit.
    remaining_sum: u64,
    /// Users that pause after a failed connection, the earliest first: all pauses are equally long.
    paused: VecDeque<(Nanos, u32)>,
    /// Requests of the agent that this thread may still send.
    permits: Range<u64>,
    /// Numbers of the agent's requests in the whole load.
    numbers: Shard,
    until: Nanos,
}

impl ClosedFeed {
    /// Users of thread `index` of `of` threads of an agent with this shard. They send until `until`, as long as there
    /// are permits ([`Self::grant`]).
    pub fn new(users: Users, until: Nanos, agent: Shard, index: u64, of: u64) -> Self {
        let ours = agent.split(index, of);
        let local = ours.count(users.count);
        Self {
            users,
            next_user: ours.first(),
            step: ours.step(),
            remaining: Vec::with_capacity(usize::try_from(local).unwrap_or(0)),
            remaining_sum: 0,
            paused: VecDeque::new(),
            permits: 0..0,
            numbers: agent,
            until,
        }
    }

    /// Remaining permits; the caller grants more before they run out.
    pub fn permits_remaining(&self) -> u64 {
        self.permits.end - self.permits.start
    }

    /// Whether a user has requests left to send, so that a permit would be used.
    pub fn has_demand(&self) -> bool {
        self.next_user < self.users.count || self.remaining_sum > 0
    }

    /// Replaces the permits.
    pub fn grant(&mut self, permits: Range<u64>) {
        self.permits = permits;
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
        let loops = self.users.loops.unwrap_or(u64::MAX);
        self.remaining.push(loops);
        self.remaining_sum = self.remaining_sum.saturating_add(loops);
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
        // Without a limit it never ends.
        self.remaining_sum = if self.users.loops.is_some() { self.remaining_sum - 1 } else { u64::MAX };
        Some(DueRequest { arrival: ScheduledArrival { intended: now, number }, user })
    }

    fn stop(&mut self) {
        self.until = Nanos::ZERO;
        self.paused.clear();
    }
}

/// Arrivals of an open loop on one thread.
#[derive(Clone, Debug)]
pub struct OpenFeed {
    source: ArrivalSource,
    /// Maximum wait of an arrival for a connection, after which it is dropped.
    max_wait: Nanos,
    /// End of the warm-up: arrivals with an earlier intended start are not counted.
    counted_from: Nanos,
    offered: u64,
    dropped: u64,
}

/// Where arrivals come from.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one per thread; that of a plain load is not behind a pointer")]
enum ArrivalSource {
    /// A schedule, which computes them.
    Schedule(ScheduledSource),
    /// A queue that is filled from outside.
    Queue(ArrivalQueue),
}

/// Arrivals of a schedule.
#[derive(Clone, Debug)]
struct ScheduledSource {
    schedule: Schedule,
    /// Next arrival to send; due or not.
    next: Option<ScheduledArrival>,
    /// Copy of the schedule that runs up to the present, to count waiting arrivals.
    ahead: std::iter::Peekable<Schedule>,
    /// Arrivals that `ahead` has passed, and arrivals that were sent or dropped.
    arrived: u64,
    dequeued: u64,
    /// Number of the first arrival that is not sent.
    limit: u64,
}

impl ScheduledSource {
    /// Next arrival, if it is due.
    fn take_due(&mut self, now: Nanos) -> Option<ScheduledArrival> {
        let arrival = self.next.filter(|a| a.intended <= now)?;
        self.next = self.schedule.next().filter(|a| a.number < self.limit);
        self.dequeued += 1;
        Some(arrival)
    }

    fn backlog(&mut self, now: Nanos) -> u64 {
        let limit = self.limit;
        while self.ahead.next_if(|a| a.intended <= now && a.number < limit).is_some() {
            self.arrived += 1;
        }
        self.arrived.saturating_sub(self.dequeued)
    }
}

impl OpenFeed {
    /// Shard of a schedule. Arrivals with a number of `limit` or more are left out; an arrival that waits longer than
    /// `max_wait` for a connection is dropped.
    pub fn new(mut schedule: Schedule, limit: u64, max_wait: Nanos) -> Self {
        let ahead = schedule.clone().peekable();
        let next = schedule.next().filter(|a| a.number < limit);
        let source = ScheduledSource { schedule, next, ahead, arrived: 0, dequeued: 0, limit };
        Self::of(ArrivalSource::Schedule(source), max_wait)
    }

    /// Arrivals that are pushed into [`Self::queue`]; one that waits longer than `max_wait` for a connection is dropped.
    pub fn queued(max_wait: Nanos) -> Self {
        Self::of(ArrivalSource::Queue(ArrivalQueue::default()), max_wait)
    }

    fn of(source: ArrivalSource, max_wait: Nanos) -> Self {
        Self { source, max_wait, counted_from: Nanos::ZERO, offered: 0, dropped: 0 }
    }

    /// Counts arrivals from the end of the warm-up on, by their intended start.
    pub fn counting_from(self, from: Nanos) -> Self {
        Self { counted_from: from, ..self }
    }

    /// Queue of arrivals that come from outside; `None` for those of a schedule.
    pub fn queue(&mut self) -> Option<&mut ArrivalQueue> {
        match &mut self.source {
            ArrivalSource::Schedule(_) => None,
            ArrivalSource::Queue(queue) => Some(queue),
        }
    }

    fn next_due(&self) -> Option<Nanos> {
        match &self.source {
            ArrivalSource::Schedule(source) => source.next.map(|arrival| arrival.intended),
            ArrivalSource::Queue(queue) => queue.next_due(),
        }
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

    /// Next arrival, if it is due.
    fn take_due(&mut self, now: Nanos) -> Option<ScheduledArrival> {
        let arrival = match &mut self.source {
            ArrivalSource::Schedule(source) => source.take_due(now),
            ArrivalSource::Queue(queue) => queue.take_due(now),
        }?;
        self.offered += u64::from(arrival.intended >= self.counted_from);
        Some(arrival)
    }

    fn drop(&mut self, arrival: &ScheduledArrival) {
        self.dropped += u64::from(arrival.intended >= self.counted_from);
    }

    fn backlog(&mut self, now: Nanos) -> u64 {
        match &mut self.source {
            ArrivalSource::Schedule(source) => source.backlog(now),
            ArrivalSource::Queue(queue) => queue.backlog(now),
        }
    }

    fn stop(&mut self, now: Nanos) {
        while let Some(arrival) = self.take_due(now) {
            self.drop(&arrival);
        }
        match &mut self.source {
            ArrivalSource::Schedule(source) => source.next = None,
            ArrivalSource::Queue(queue) => queue.clear(),
        }
    }
}

#[cfg(test)]
mod tests;
