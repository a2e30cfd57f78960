//! What holds for a delivery.

use super::super::window;
use super::super::{Nanos, policy};

/// What holds for a delivery.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// What holds for each key.
    pub key: window::Rules,
    /// If the way in is not given: whether it is learnt from answers and refusals, or only answers count.
    pub learns_way_in: bool,
    /// The time since 1970 at the run's start; nonces are milliseconds of it.
    pub epoch: Nanos,
    /// At most so many requests without an answer, over all keys; at least 1.
    pub in_flight: usize,
    /// Which job goes first.
    pub order: Order,
    /// A job without a TTL, or with a longer one, takes its turn as if it had this one.
    pub patience: Nanos,
    /// How long a job would have to wait to be preferred as much as by one step of priority.
    pub priority_step: Nanos,
    /// A request without an answer after so long has failed.
    pub attempt_timeout: Nanos,
    /// After which failures a job is tried again, how often, and when. A refusal for rate is status 429, a nonce that
    /// was overtaken 400; neither needs to be covered. Its back-off is that of jobs that fail of themselves, from its
    /// shortest wait doubling, and bounds the waits between the probes of a host that is down.
    pub retry: policy::Retry,
    /// The jobs of a host that has answered nobody for so long are given up; None: they wait for it.
    pub give_up_after: Option<Nanos>,
    /// What all retries together may come to; None is without limit.
    pub budget: Option<policy::Budget>,
    /// What becomes of jobs that expire.
    pub renew: Option<Renew>,
    /// What becomes of jobs that may have been sent before a crash.
    pub maybe_sent: MaybeSent,
}

impl Default for Rules {
    fn default() -> Self {
        let mut retryable =
            policy::Retryable { statuses: vec![(408, 408), (425, 425), (500, 599)], ..Default::default() };
        // What is not HTTP says nothing about the job, and neither does a handshake.
        retryable.kinds.extend([policy::Kind::Protocol, policy::Kind::Tls]);
        let backoff = policy::Backoff { first: Nanos::from_millis(500), most: Nanos::from_secs(60) };
        Self {
            key: window::Rules::default(),
            learns_way_in: true,
            epoch: Nanos::ZERO,
            in_flight: 1000,
            order: Order::default(),
            patience: Nanos::from_secs(60),
            priority_step: Nanos::from_secs(10),
            attempt_timeout: Nanos::from_secs(30),
            retry: policy::Retry { times: 5, on: retryable, backoff, ..policy::Retry::default() },
            give_up_after: None,
            budget: None,
            renew: None,
            maybe_sent: MaybeSent::default(),
        }
    }
}

/// Which job goes first. In both, a step of priority counts as some time of waiting, so that nobody waits for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The one that expires first.
    #[default]
    Deadline,
    /// The one that came first.
    FirstIn,
}

/// An expired job gets a new TTL and goes on. Without it a job that was not sent in time is never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renew {
    /// So often at most.
    pub times: u32,
    /// The new TTL, counted from when the old one was over.
    pub ttl: Nanos,
}

/// What becomes of a job that was on its way when an earlier process crashed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MaybeSent {
    /// It is sent again, and said to be: at least once.
    #[default]
    Again,
    /// A person decides: at most once.
    Bury,
}
