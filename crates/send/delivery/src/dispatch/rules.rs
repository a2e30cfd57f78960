//! Configuration of a delivery.

use crate::key_window;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_retry::backoff::Backoff;
use weir_retry::policy;

/// Configuration of a delivery.
#[derive(Clone, Debug, PartialEq)]
pub struct DispatchRules {
    /// Limits of each key.
    pub key: key_window::KeyRules,
    /// Without a given one-way delay bound: whether it is learnt from responses, or only responses count.
    pub learns_delay_bound: bool,
    /// Time since 1970 at the start of the run, for nonces in ms.
    pub epoch: Nanos,
    /// Maximum requests in flight, over all keys; at least 1.
    pub max_in_flight: usize,
    /// Order of jobs.
    pub order: DispatchOrder,
    /// Maximum TTL for the order: a job without a TTL, or with a longer one, is ordered as with this one.
    pub max_rank_ttl: Nanos,
    /// Waiting time that is worth as much as one step of priority.
    pub priority_step: Nanos,
    /// Timeout of a request.
    pub attempt_timeout: Nanos,
    /// Retries: failures, maximum and backoff. Rate-limit rejections (429) and overtaken nonces (400) need not be
    /// covered. The backoff doubles from its minimum for jobs that fail by themselves, and bounds the waits between the
    /// probes of a host that is down.
    pub retry: policy::RetryPolicy,
    /// Time without responses after which a host's jobs are dead-lettered; `None`: they wait.
    pub give_up_after: Option<Nanos>,
    /// Longest pause of a key by `Retry-After` or a reset, whatever a response states.
    pub max_pause: Nanos,
    /// Bound on all retries together; `None` for no limit.
    pub budget: Option<policy::BudgetRule>,
    /// Extension of expired jobs; `None`: they expire.
    pub ttl_extension: Option<TtlExtension>,
    /// Handling of jobs that may have been sent before a crash.
    pub delivery: DeliveryGuarantee,
}

impl Default for DispatchRules {
    fn default() -> Self {
        let mut retryable = policy::Retryable { statuses: vec![408..=408, 425..=425, 500..=599], ..Default::default() };
        // Protocol errors and failed handshakes are not the job's failures.
        retryable.kinds.extend([FailureKind::Protocol, FailureKind::Tls]);
        let backoff = Backoff { min: Nanos::from_millis(500), max: Nanos::from_secs(60) };
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
            max_pause: Nanos::from_secs(3600),
            budget: None,
            ttl_extension: None,
            delivery: DeliveryGuarantee::default(),
        }
    }
}

/// Order of jobs. A step of priority counts as some waiting time, so that no job waits for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DispatchOrder {
    /// Earliest expiry first.
    #[default]
    Deadline,
    /// First in, first out.
    Fifo,
}

/// Extension of an expired job's TTL; without it a job that was not sent in time is never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TtlExtension {
    /// Maximum extensions per job.
    pub max_extensions: u32,
    /// New TTL, from the end of the old one.
    pub ttl: Nanos,
}

/// Handling of a job that was in flight when an earlier process crashed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeliveryGuarantee {
    /// The job is sent again and flagged: at least once.
    #[default]
    AtLeastOnce,
    /// The job is dead-lettered: at most once.
    AtMostOnce,
}
