//! Arrivals of an open loop on one thread.

use super::DueRequest;
use crate::arrival_queue::ArrivalQueue;
use crate::schedule::{LoadStage, Schedule, ScheduledArrival};
use weir_base::nanos::Nanos;

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

/// Source of arrivals.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one per thread; that of a plain load is not behind a pointer")]
enum ArrivalSource {
    /// A schedule, which computes them.
    Schedule(ScheduledSource),
    /// A queue that is filled from outside.
    Queue(ArrivalQueue),
    /// The same, of what arrives when a user is free, and never waits.
    Pool(ArrivalQueue),
}

/// Arrivals of a schedule.
#[derive(Clone, Debug)]
struct ScheduledSource {
    schedule: Schedule,
    /// Next arrival to send; due or not.
    next: Option<ScheduledArrival>,
    /// Copy of the schedule that runs up to the present, to count waiting arrivals; and its next one.
    ahead: Schedule,
    next_ahead: Option<ScheduledArrival>,
    /// Arrivals that `ahead` has passed, and arrivals that were sent or dropped.
    arrived: u64,
    dequeued: u64,
    /// Number of the first arrival that is not sent.
    limit: u64,
}

impl ScheduledSource {
    fn change(&mut self, stages: &[LoadStage]) {
        self.schedule.replace_stages(stages.to_vec());
        self.ahead.replace_stages(stages.to_vec());
        self.next = self.schedule.peek().filter(|a| a.number < self.limit);
        self.next_ahead = self.ahead.peek().filter(|a| a.number < self.limit);
    }

    /// Next arrival, if it is due.
    fn take_due(&mut self, now: Nanos) -> Option<ScheduledArrival> {
        let arrival = self.next.filter(|a| a.intended <= now)?;
        self.schedule.advance();
        self.next = self.schedule.peek().filter(|a| a.number < self.limit);
        self.dequeued += 1;
        Some(arrival)
    }

    fn backlog(&mut self, now: Nanos) -> u64 {
        while self.next_ahead.is_some_and(|a| a.intended <= now) {
            self.arrived += 1;
            self.ahead.advance();
            self.next_ahead = self.ahead.peek().filter(|a| a.number < self.limit);
        }
        self.arrived.saturating_sub(self.dequeued)
    }
}

impl OpenFeed {
    /// Shard of a schedule. Arrivals with a number of `limit` or more are left out; an arrival that waits longer than
    /// `max_wait` for a connection is dropped.
    pub fn new(mut schedule: Schedule, limit: u64, max_wait: Nanos) -> Self {
        let next = schedule.peek().filter(|a| a.number < limit);
        let ahead = schedule.clone();
        let source = ScheduledSource { schedule, next, ahead, next_ahead: next, arrived: 0, dequeued: 0, limit };
        Self::of(ArrivalSource::Schedule(source), max_wait)
    }

    /// Arrivals that are pushed into [`Self::queue`]; one that waits longer than `max_wait` for a connection is
    /// dropped.
    pub fn queued(max_wait: Nanos) -> Self {
        Self::of(ArrivalSource::Queue(ArrivalQueue::default()), max_wait)
    }

    /// What is pushed into [`Self::queue`] and due arrives when a user is free for it; what is left at the end has not arrived.
    pub fn pooled() -> Self {
        Self::of(ArrivalSource::Pool(ArrivalQueue::default()), Nanos::NEVER)
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
            ArrivalSource::Queue(queue) | ArrivalSource::Pool(queue) => Some(queue),
        }
    }

    pub(super) fn next_due(&self) -> Option<Nanos> {
        match &self.source {
            ArrivalSource::Schedule(source) => source.next.map(|arrival| arrival.intended),
            ArrivalSource::Queue(queue) | ArrivalSource::Pool(queue) => queue.next_due(),
        }
    }

    /// Replaces the stages; arrivals that were sent or dropped stay so. Those of a queue have no stages.
    pub(super) fn change(&mut self, stages: &[LoadStage]) {
        if let ArrivalSource::Schedule(source) = &mut self.source {
            source.change(stages);
        }
    }

    pub(super) fn is_exhausted(&self) -> bool {
        match &self.source {
            ArrivalSource::Schedule(source) => source.schedule.number() >= source.limit,
            ArrivalSource::Queue(queue) | ArrivalSource::Pool(queue) => queue.next_due().is_none(),
        }
    }

    pub(super) fn take_offered(&mut self) -> u64 {
        std::mem::take(&mut self.offered)
    }

    pub(super) fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    pub(super) fn due(&mut self, now: Nanos) -> Option<DueRequest> {
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
            ArrivalSource::Pool(queue) => queue.take_due(now).map(|taken| ScheduledArrival { intended: now, ..taken }),
        }?;
        self.offered += u64::from(arrival.intended >= self.counted_from);
        Some(arrival)
    }

    fn drop(&mut self, arrival: &ScheduledArrival) {
        self.dropped += u64::from(arrival.intended >= self.counted_from);
    }

    pub(super) fn backlog(&mut self, now: Nanos) -> u64 {
        match &mut self.source {
            ArrivalSource::Schedule(source) => source.backlog(now),
            ArrivalSource::Queue(queue) => queue.backlog(now),
            ArrivalSource::Pool(_) => 0,
        }
    }

    pub(super) fn stop(&mut self, now: Nanos) {
        if let ArrivalSource::Pool(queue) = &mut self.source {
            return queue.clear();
        }
        while let Some(arrival) = self.take_due(now) {
            self.drop(&arrival);
        }
        match &mut self.source {
            ArrivalSource::Schedule(source) => source.next = None,
            ArrivalSource::Queue(queue) | ArrivalSource::Pool(queue) => queue.clear(),
        }
    }
}
