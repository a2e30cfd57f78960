//! The accounts of all keys.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Options;
use crate::decide::Nanos;
use crate::decide::account::{Account, Judgement};
use crate::decide::limit::{Limiter, Standing};
use crate::machine::clock;
use crate::server::Turn;

/// The exchange looks at times in whole milliseconds, as the document's does.
const TICK: Nanos = Nanos::MILLI;

/// The accounts of all keys, each behind a lock of its own: keys do not wait for one another.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) keys: HashMap<String, Mutex<Account>>,
    pub(super) invalid_key: AtomicU64,
    pub(super) invalid_weight: AtomicU64,
    /// The server's start in time since 1970: windows that are aligned begin with the minutes of the wall clock.
    epoch: Nanos,
}

/// What became of a request, and where its key stands after it.
#[derive(Debug)]
pub(super) struct Judged<'a> {
    pub(super) judgement: Judgement,
    /// Empty unless asked for.
    pub(super) standings: Vec<Standing>,
    /// When, since 1970.
    pub(super) at: Nanos,
    pub(super) slot: Option<Slot<'a>>,
}

/// What a request holds until it has been answered, or its client has left.
#[derive(Debug)]
pub(super) struct Slot<'a> {
    account: &'a Mutex<Account>,
    weight: u64,
}

impl Book {
    /// # Errors
    /// What is not possible, in one line.
    pub(super) fn new(options: &Options) -> Result<Self, String> {
        if options.limits.is_empty() {
            return Err("an exchange needs a limit, e.g. --limit 20/1s".to_owned());
        }
        if options.keys.is_empty() {
            return Err("an exchange needs a key; give one with --key".to_owned());
        }
        let account = Account::new(Limiter::new(&options.limits, TICK), options.block_after);
        let mut keys = HashMap::new();
        for key in &options.keys {
            if keys.insert(key.clone(), Mutex::new(account.clone())).is_some() {
                return Err(format!("the key '{key}' is given twice; give each key once"));
            }
        }
        let epoch = Nanos::from_secs_f64(clock::unix_s());
        Ok(Self { keys, invalid_key: AtomicU64::new(0), invalid_weight: AtomicU64::new(0), epoch })
    }

    /// The account of a key; counts those that there are none of.
    pub(super) fn account(&self, key: Option<&str>) -> Option<&Mutex<Account>> {
        let account = key.and_then(|key| self.keys.get(key));
        if account.is_none() {
            self.invalid_key.fetch_add(1, Ordering::Relaxed);
        }
        account
    }

    /// Time since 1970.
    pub(super) fn now(&self, turn: &Turn) -> Nanos {
        self.epoch + turn.now()
    }

    pub(super) fn judge<'a>(
        &self,
        account: &'a Mutex<Account>,
        (weight, nonce): (u64, Option<i128>),
        with_standings: bool,
        turn: &Turn,
    ) -> Judged<'a> {
        let mut held = lock(account);
        // Asked for behind the lock, so that what is judged first came first.
        let at = self.now(turn);
        let judgement = held.judge(at, weight, nonce);
        let standings = if with_standings { held.limiter().standings(at) } else { Vec::new() };
        drop(held);
        Judged { judgement, standings, at, slot: judgement.took_slot().then_some(Slot { account, weight }) }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        lock(self.account).finished(self.weight);
    }
}

/// An account is whole at any moment: a thread that ends while it holds one leaves nothing half done.
pub(super) fn lock(account: &Mutex<Account>) -> MutexGuard<'_, Account> {
    account.lock().unwrap_or_else(PoisonError::into_inner)
}
