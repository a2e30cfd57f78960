//! Quotas of all keys.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Options;
use weir_base::Nanos;
use weir_limits::key_quota::{KeyQuota, QuotaDecision};
use weir_limits::models::{LimitUsage, ServerLimiter};
use weir_machine::clock;
use weir_machine::lock::lock;
use weir_server::RequestContext;

/// Resolution of times in the limiter, as in the reference workload.
const CLOCK_RESOLUTION: Nanos = Nanos::MILLI;

/// Quotas of all keys, each behind its own lock, so that keys do not contend.
#[derive(Debug)]
pub(super) struct KeyAccounts {
    pub(super) keys: HashMap<String, Mutex<KeyQuota>>,
    pub(super) invalid_key: AtomicU64,
    pub(super) invalid_weight: AtomicU64,
    /// Start of the server, since 1970: aligned windows begin with the minutes of the wall clock.
    epoch: Nanos,
}

/// Decision on a request, and the usage of its key after it.
#[derive(Debug)]
pub(super) struct RequestDecision<'a> {
    pub(super) decision: QuotaDecision,
    /// Usage of each window; empty unless requested.
    pub(super) window_usages: Vec<LimitUsage>,
    /// Time of the decision, since 1970.
    pub(super) unix_time: Nanos,
    pub(super) slot: Option<AccountSlot<'a>>,
}

/// Concurrency slot of a request, held until its response or its disconnect.
#[derive(Debug)]
pub(super) struct AccountSlot<'a> {
    account: &'a Mutex<KeyQuota>,
    weight: u64,
}

impl KeyAccounts {
    /// Quotas by these options.
    pub(super) fn new(options: &Options) -> Self {
        let account = KeyQuota::new(ServerLimiter::new(&options.limits, CLOCK_RESOLUTION), options.block_after);
        let keys = options.accepted_keys().into_iter().map(|key| (key, Mutex::new(account.clone()))).collect();
        let epoch = Nanos::from_secs_f64(clock::unix_s());
        Self { keys, invalid_key: AtomicU64::new(0), invalid_weight: AtomicU64::new(0), epoch }
    }

    /// Quota of a key; counts unknown keys.
    pub(super) fn account(&self, key: Option<&str>) -> Option<&Mutex<KeyQuota>> {
        let account = key.and_then(|key| self.keys.get(key));
        if account.is_none() {
            self.invalid_key.fetch_add(1, Ordering::Relaxed);
        }
        account
    }

    /// Current time since 1970.
    pub(super) fn unix_now(&self, context: &RequestContext) -> Nanos {
        self.epoch + context.now()
    }

    /// Judges a request, by the time at which it gets the lock.
    pub(super) fn decide<'a>(
        &self,
        account: &'a Mutex<KeyQuota>,
        (weight, nonce): (u64, Option<i128>),
        with_usages: bool,
        context: &RequestContext,
    ) -> RequestDecision<'a> {
        let mut quota = lock(account);
        // Read behind the lock, so that times are in the order of decisions.
        let at = self.unix_now(context);
        let decision = quota.judge(at, weight, nonce);
        let window_usages = if with_usages { quota.limiter().usages(at) } else { Vec::new() };
        drop(quota);
        RequestDecision {
            decision,
            window_usages,
            unix_time: at,
            slot: decision.consumed_slot().then_some(AccountSlot { account, weight }),
        }
    }
}

impl Drop for AccountSlot<'_> {
    fn drop(&mut self) {
        lock(self.account).finished(self.weight);
    }
}
