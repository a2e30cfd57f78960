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

mod closed;
mod open;

pub use self::closed::ClosedFeed;
pub use self::open::OpenFeed;
use crate::schedule::{LoadStage, ScheduledArrival};
use weir_base::nanos::Nanos;

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
            feed.pause(user, until);
        }
    }

    /// Replaces the stages of the load, from `now` on, and its end: of the rate in the open loop, of the number of users
    /// in the closed one. Up to `now` they are the same as before.
    pub fn change(&mut self, stages: &[LoadStage], until: Nanos, now: Nanos) {
        match self {
            Self::Closed(feed) => feed.change(stages, until, now),
            Self::Open(feed) => feed.change(stages),
        }
    }

    /// Whether no change could start anything more: the limit of requests, or of those per user, is reached.
    pub fn is_exhausted(&self) -> bool {
        match self {
            Self::Closed(feed) => feed.permits_remaining() == 0 || !feed.has_demand(),
            Self::Open(feed) => feed.is_exhausted(),
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
            Self::Open(feed) => feed.take_offered(),
        }
    }

    /// Of these, arrivals that were never sent: they waited too long, or the run ended.
    pub fn take_dropped(&mut self) -> u64 {
        match self {
            Self::Closed(_) => 0,
            Self::Open(feed) => feed.take_dropped(),
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

#[cfg(test)]
mod tests;
