//! What holds for a delivery.

use crate::decide::Nanos;
use crate::decide::base::failure::FailureKind;
use crate::decide::call::policy;
use crate::decide::delivery::key_window;

/// What holds for a delivery.
#[derive(Clone, Debug, PartialEq)]
pub struct DispatchRules {
    /// What holds for each key.
    pub key: key_window::KeyRules,
    /// If the way in is not given: whether it is learnt from answers and refusals, or only answers count.
    pub learns_delay_bound: bool,
    /// The time since 1970 at the run's start; nonces are milliseconds of it.
    pub epoch: Nanos,
    /// At most so many requests without an answer, over all keys; at least 1.
    pub max_in_flight: usize,
    /// Which job goes first.
    pub order: DispatchOrder,
    /// A job without a TTL, or with a longer one, takes its turn as if it had this one.
    pub max_rank_ttl: Nanos,
    /// How long a job would have to wait to be preferred as much as by one step of priority.
    pub priority_step: Nanos,
    /// A request without an answer after so long has failed.
    pub attempt_timeout: Nanos,
    /// After which failures a job is tried again, how often, and when. A refusal for rate is status 429, a nonce that
    /// was overtaken 400; neither needs to be covered. Its back-off is that of jobs that fail of themselves, from its
    /// shortest wait doubling, and bounds the waits between the probes of a host that is down.
    pub retry: policy::RetryPolicy,
    /// The jobs of a host that has answered nobody for so long are given up; None: they wait for it.
    pub give_up_after: Option<Nanos>,
    /// What all retries together may come to; None is without limit.
    pub budget: Option<policy::BudgetRule>,
    /// What becomes of jobs that expire.
    pub ttl_extension: Option<TtlExtension>,
    /// What becomes of jobs that may have been sent before a crash.
    pub delivery: DeliveryGuarantee,
}

impl Default for DispatchRules {
    fn default() -> Self {
        let mut retryable =
            policy::Retryable { statuses: vec![(408, 408), (425, 425), (500, 599)], ..Default::default() };
        // What is not HTTP says nothing about the job, and neither does a handshake.
        retryable.kinds.extend([FailureKind::Protocol, FailureKind::Tls]);
        let backoff = policy::Backoff { min: Nanos::from_millis(500), max: Nanos::from_secs(60) };
        Self {
            key: key_window::KeyRules::default(),
            learns_delay_bound: true,
            epoch: Nanos::ZERO,
            max_in_flight: 1000,
            order: DispatchOrder::default(),
            max_rank_ttl: Nanos::from_secs(60),
            priority_step: Nanos::from_secs(10),
            attempt_timeout: Nanos::from_secs(30),
            retry: policy::RetryPolicy { max_retries: 5, on: retryable, backoff, ..policy::RetryPolicy::default() },
            give_up_after: None,
            budget: None,
            ttl_extension: None,
            delivery: DeliveryGuarantee::default(),
        }
    }
}

/// Which job goes first. In both, a step of priority counts as some time of waiting, so that nobody waits for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DispatchOrder {
    /// The one that expires first.
    #[default]
    Deadline,
    /// The one that came first.
    Fifo,
}

/// An expired job gets a new TTL and goes on. Without it a job that was not sent in time is never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TtlExtension {
    /// So often at most.
    pub max_extensions: u32,
    /// The new TTL, counted from when the old one was over.
    pub ttl: Nanos,
}

/// What becomes of a job that was on its way when an earlier process crashed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeliveryGuarantee {
    /// It is sent again, and said to be: at least once.
    #[default]
    AtLeastOnce,
    /// A person decides: at most once.
    AtMostOnce,
}
