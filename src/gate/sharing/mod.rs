//! Limits that several gates share: what of them is ours, kept by a thread that asks a Redis server.
//!
//! [`crate::decide::portion`] decides what is said and when. Here is the rest: a thread that says it ([`table`]), takes from
//! rates and budgets what is wanted, and tells them what is theirs ([`limit`]). No call waits for it, and no event loop.

mod limit;
mod table;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub(super) use self::limit::{Limit, hash};
use self::table::{NoAnswer, Table};
use super::config::ShareConfig;
use super::current::Current;
use super::setup::Setup;
use crate::decide::Nanos;
use crate::decide::portion::{Portion, Portions};
use crate::machine::clock::Clock;
use crate::server::Tell;

/// Beyond a lease a gate does not wait for its part before it begins; a busy machine is late.
const LATE: Duration = Duration::from_secs(1);

/// What is ours of limits that several gates share.
#[derive(Debug)]
pub(super) struct Sharing {
    pub(super) terms: ShareConfig,
    /// Of the places of callers; another one in each process.
    pub(super) salt: u64,
    portions: Mutex<Portions>,
    clock: Clock,
    done: AtomicU64,
    failed: AtomicU64,
}

/// What a person is told of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct State {
    /// Our part of all of which nothing else is said, in [0, 1].
    pub(super) share: f64,
    /// Gates; 0 if nobody has said.
    pub(super) gates: u32,
    /// Callers and budgets with parts of their own.
    pub(super) claims: usize,
    /// The server has not answered for a lease.
    pub(super) is_away: bool,
    /// Questions that were answered, and those that were not.
    pub(super) renewals: [(&'static str, u64); 2],
}

impl Sharing {
    /// Nothing is ours yet, and nobody is asked.
    pub(super) fn new(terms: &ShareConfig) -> Self {
        let alone = Portion::even(terms.gates);
        Self {
            terms: terms.clone(),
            salt: RandomState::new().hash_one(0),
            portions: Mutex::new(Portions::new(terms.lease, alone)),
            clock: Clock::starting_in(Nanos::ZERO),
            done: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    fn portions(&self) -> MutexGuard<'_, Portions> {
        self.portions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it stands.
    pub(super) fn state(&self) -> State {
        let portions = self.portions();
        State {
            share: portions.usual().share(),
            gates: portions.gates(),
            claims: portions.claims(),
            is_away: portions.is_away(self.clock.now()),
            renewals: [("done", self.done.load(Relaxed)), ("failed", self.failed.load(Relaxed))],
        }
    }

    /// Tells all limits of a setup what is ours of them.
    pub(super) fn tell(&self, setup: &Setup, now: Nanos) {
        let portions = self.portions();
        setup.limits().for_each(|limit| limit.follow(now, &portions));
    }

    /// Asks the server if it is time to.
    fn renew(&self, table: &mut Table, current: &Current) -> Option<Result<(), NoAnswer>> {
        let wanted = || current.get().limits().flat_map(|limit| limit.wanted(current.now())).collect();
        let ask = self.portions().due(self.clock.now(), wanted)?;
        let said = table.renew(&ask);
        let now = self.clock.now();
        let renewed = match said {
            Ok(said) => {
                self.portions().heard(now, &ask, &said);
                self.done.fetch_add(1, Relaxed);
                Ok(())
            }
            Err(why) => {
                self.portions().failed(now);
                self.failed.fetch_add(1, Relaxed);
                Err(why)
            }
        };
        self.tell(&current.get(), current.now());
        Some(renewed)
    }
}

/// The thread that asks.
#[derive(Debug)]
pub(super) struct Asking {
    /// It ends when this is gone.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Asking {
    /// Begins, and waits until there is something of each limit for us: as soon as the other gates have made room, or the
    /// server does not answer. The last words are said when it is dropped.
    ///
    /// # Errors
    /// The server is there and does not take us, or the system has no thread; in one line.
    pub(super) fn start(sharing: Arc<Sharing>, current: Arc<Current>, tell: Tell) -> Result<Self, String> {
        let mut table = Table::new(&sharing.terms)?;
        let patience = sharing.terms.lease.as_duration() + LATE;
        let (stop, stopped) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let thread = thread::Builder::new().name("share".to_owned());
        let thread = thread.spawn(move || run(&sharing, &current, &mut table, &stopped, &ready, &tell));
        let thread = thread.map_err(|error| format!("share: the system has no thread: {error}"))?;
        let asking = Self { stop: Some(stop), thread: Some(thread) };
        // Who waited in vain begins with what it has.
        is_ready.recv_timeout(patience).unwrap_or(Ok(()))?;
        Ok(asking)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(
    sharing: &Sharing,
    current: &Current,
    table: &mut Table,
    stopped: &Receiver<()>,
    ready: &Sender<Result<(), String>>,
    tell: &Tell,
) {
    let (mut is_begun, mut is_told) = (false, false);
    loop {
        if let Some(renewed) = sharing.renew(table, current) {
            let (is_away, share, has_room) = {
                let portions = sharing.portions();
                let now = sharing.clock.now();
                (portions.is_away(now), portions.usual().share(), portions.has_room())
            };
            let shown = sharing.terms.redis.shown();
            match &renewed {
                Err(NoAnswer::Refused(why)) if !is_begun => {
                    let _ = ready.send(Err(format!("share: {shown}: {why}; see to the address, or leave share out")));
                    return;
                }
                // If it was away from the first, this is what we were told to begin with.
                Err(_) => is_begun |= share > 0.0,
                Ok(()) => is_begun |= has_room,
            }
            if is_begun {
                // Only the first is heard.
                let _ = ready.send(Ok(()));
            }
            if let (Err(why), true, false) = (&renewed, is_away, is_told) {
                let percent = share * 100.0;
                tell.say(&format!("share: {shown} does not answer ({why}): limits go on with {percent:.3} % of each"));
                is_told = true;
            } else if let (Ok(()), true) = (&renewed, is_told) {
                tell.say(&format!("share: {shown} answers again"));
                is_told = false;
            }
        }
        let wait = sharing.portions().wake().min(sharing.clock.now() + sharing.terms.lease) - sharing.clock.now();
        match stopped.recv_timeout(wait.as_duration()) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    // Whoever does not hear it waits for the end of our lease.
    let last = sharing.portions().leave();
    let _ = table.renew(&last);
}
