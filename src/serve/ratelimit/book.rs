//! The accounts of all keys.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Options;
use crate::decide::Nanos;
use crate::decide::account::{KeyQuota, QuotaDecision};
use crate::decide::limit::{LimitUsage, ServerLimiter};
use crate::machine::clock;
use crate::server::RequestContext;

/// The exchange looks at times in whole milliseconds, as the document's does.
const CLOCK_RESOLUTION: Nanos = Nanos::MILLI;

/// The accounts of all keys, each behind a lock of its own: keys do not wait for one another.
#[derive(Debug)]
pub(super) struct KeyAccounts {
    pub(super) keys: HashMap<String, Mutex<KeyQuota>>,
    pub(super) invalid_key: AtomicU64,
    pub(super) invalid_weight: AtomicU64,
    /// The server's start in time since 1970: windows that are aligned begin with the minutes of the wall clock.
    epoch: Nanos,
}

/// What became of a request, and where its key stands after it.
#[derive(Debug)]
pub(super) struct RequestDecision<'a> {
    pub(super) decision: QuotaDecision,
    /// Empty unless asked for.
    pub(super) window_usages: Vec<LimitUsage>,
    /// When, since 1970.
    pub(super) unix_time: Nanos,
    pub(super) slot: Option<AccountSlot<'a>>,
}

/// What a request holds until it has been answered, or its client has left.
#[derive(Debug)]
pub(super) struct AccountSlot<'a> {
    account: &'a Mutex<KeyQuota>,
    weight: u64,
}

impl KeyAccounts {
    /// # Errors
    /// What is not possible, in one line.
    pub(super) fn new(options: &Options) -> Result<Self, String> {
        if options.limits.is_empty() {
            return Err("no rate limit; add e.g. --limit 20/1s".to_owned());
        }
        if options.keys.is_empty() {
            return Err("no API key; add one with --key".to_owned());
        }
        let account = KeyQuota::new(ServerLimiter::new(&options.limits, CLOCK_RESOLUTION), options.block_after);
        let mut keys = HashMap::new();
        for key in &options.keys {
            if keys.insert(key.clone(), Mutex::new(account.clone())).is_some() {
                return Err(format!("duplicate API key '{key}'; remove one"));
            }
        }
        let epoch = Nanos::from_secs_f64(clock::unix_s());
        Ok(Self { keys, invalid_key: AtomicU64::new(0), invalid_weight: AtomicU64::new(0), epoch })
    }

    /// The account of a key; counts those that there are none of.
    pub(super) fn account(&self, key: Option<&str>) -> Option<&Mutex<KeyQuota>> {
        let account = key.and_then(|key| self.keys.get(key));
        if account.is_none() {
            self.invalid_key.fetch_add(1, Ordering::Relaxed);
        }
        account
    }

    /// Time since 1970.
    pub(super) fn unix_now(&self, turn: &RequestContext) -> Nanos {
        self.epoch + turn.now()
    }

    pub(super) fn decide<'a>(
        &self,
        account: &'a Mutex<KeyQuota>,
        (weight, nonce): (u64, Option<i128>),
        with_standings: bool,
        turn: &RequestContext,
    ) -> RequestDecision<'a> {
        let mut held = lock_account(account);
        // Asked for behind the lock, so that what is judged first came first.
        let at = self.unix_now(turn);
        let judgement = held.judge(at, weight, nonce);
        let standings = if with_standings { held.limiter().usages(at) } else { Vec::new() };
        drop(held);
        RequestDecision {
            decision: judgement,
            window_usages: standings,
            unix_time: at,
            slot: judgement.consumed_slot().then_some(AccountSlot { account, weight }),
        }
    }
}

impl Drop for AccountSlot<'_> {
    fn drop(&mut self) {
        lock_account(self.account).finished(self.weight);
    }
}

/// An account is whole at any moment: a thread that ends while it holds one leaves nothing half done.
pub(super) fn lock_account(account: &Mutex<KeyQuota>) -> MutexGuard<'_, KeyQuota> {
    account.lock().unwrap_or_else(PoisonError::into_inner)
}
