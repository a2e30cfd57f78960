//! One key of a limiter that several users share: threads, tasks, and the processes of a machine or of several.
//!
//! The windows are those of the sender ([`key_window`](crate::key_window)). All requests of a key are one sequence,
//! whichever process sends them, so its argument holds: each decision is made with all earlier ones. What is added here
//! is what a program does with a slot: it may take it late, give it back, never end it, or be killed.
//!
//! ```text
//!   granted ──► departed ──► responded, abandoned      a slot, as its holder reports it
//!      │            └──────► forgotten, lost           counts as sent; over after the bound, or a second
//!      └───────► unsent                                counts as nothing
//! ```
//!
//! A holder that is told of its grant over a network may take it until [`GRANT_VALIDITY`] has passed, and not later.
//! Until it reports when it took it, the slot counts as taken at the end of that time.

use serde::{Deserialize, Serialize};

use crate::key_window::{KeyRules, KeyWindows, OneWayDelayBound, WindowSlot};
use crate::limit_headers::RateLimitHeaders;
use weir_base::Nanos;

/// Time for which a grant may be taken, if its holder learns of it over a network.
pub const GRANT_VALIDITY: Nanos = Nanos::from_millis(250);
/// Time after which a request that was forgotten has arrived and ended, if no delay bound is known.
pub const FORGOTTEN_AFTER: Nanos = Nanos::SECOND;
/// Time after which slots that are held no longer count, if their key was not used by any process.
const HELD_MEMORY: Nanos = Nanos::from_secs(3600);
/// Maximum number of log entries of a shared key.
const MAX_LOG_ENTRIES: u64 = 1000;

/// Rules of a limiter, for each key.
#[derive(Clone, Debug)]
pub struct LimiterRules {
    /// Limits and the declared delay bound.
    pub key: KeyRules,
    /// Whether the delay bound is learnt.
    pub learns_delay_bound: bool,
    /// Longest pause by a response.
    pub max_pause: Nanos,
}

impl LimiterRules {
    /// The rules for keys that are stored: their logs have a bounded size.
    #[must_use]
    pub fn stored(mut self) -> Self {
        self.key.max_log_entries = Some(MAX_LOG_ENTRIES);
        self
    }

    /// Limits as text, to compare those of two processes.
    pub fn limits_text(&self) -> String {
        let unit = |limit: &crate::key_window::KeyLimit| match limit.unit {
            weir_limits::limit_unit::LimitUnit::Requests => "",
            weir_limits::limit_unit::LimitUnit::Weight => " by weight",
        };
        let all = self.key.limits.iter().map(|limit| format!("{}{}", limit.window, unit(limit)));
        all.collect::<Vec<_>>().join(", ")
    }
}

/// Process, or limiter, that holds slots.
pub type HolderId = u64;

/// What a response reports about the limits.
#[derive(Clone, Debug, Default)]
pub struct ResponseReport {
    /// Status code.
    pub status: u16,
    /// Rate-limit headers.
    pub headers: RateLimitHeaders,
}

/// End of a slot, or a step before it.
#[derive(Clone, Debug)]
pub enum SlotEvent {
    /// The holder took the slot, and may send from now on.
    Departed,
    /// A response has come.
    Responded(Option<ResponseReport>),
    /// The request was given up, or its outcome is unknown.
    Abandoned,
    /// Nothing was sent.
    Unsent,
    /// The holder has dropped the slot without a word.
    Forgotten,
}

/// State of a slot that has not ended.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct HeldSlot {
    slot: WindowSlot,
    holder: HolderId,
    phase: SlotPhase,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum SlotPhase {
    /// The holder may take it until then.
    Granted(Nanos),
    Departed(Nanos),
    /// Counts as over from then on.
    Forgotten(Nanos),
}

/// Windows of one key, and the slots that its users hold.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LimiterKey {
    windows: KeyWindows,
    delay_bound: OneWayDelayBound,
    held: Vec<HeldSlot>,
}

impl LimiterKey {
    /// A key without requests.
    pub fn new(rules: &LimiterRules) -> Self {
        let delay_bound = match rules.key.delay_bound {
            Some(bound) => OneWayDelayBound::fixed(bound),
            None if rules.learns_delay_bound => OneWayDelayBound::learnt(),
            None => OneWayDelayBound::unknown(),
        };
        Self { windows: KeyWindows::new(&rules.key), delay_bound, held: Vec::new() }
    }

    /// A key without requests, whose slots are those of no other key before it: they are numbered by the microsecond.
    pub fn begun_at(rules: &LimiterRules, now: Nanos) -> Self {
        let mut key = Self::new(rules);
        key.windows.number_from(now.0 / 1000);
        key
    }

    /// A key that was read; None: it is not of these rules, or its numbers contradict one another.
    pub fn restored(self, rules: &LimiterRules) -> Option<Self> {
        let declared = rules.key.delay_bound.map(OneWayDelayBound::fixed);
        let windows = self.windows.restored(&rules.key)?;
        Some(Self { windows, delay_bound: declared.unwrap_or(self.delay_bound), held: self.held })
    }

    /// A key whose past is lost: as if all that its limits allow had been sent just now.
    pub fn worst_case(rules: &LimiterRules, now: Nanos) -> Self {
        let mut key = Self::begun_at(rules, now);
        key.windows.resume(now, &crate::key_window::KeyHistory::worst_case(&rules.key), Nanos::ZERO);
        key
    }

    /// The key by another clock: `since` has passed by that clock since its last change.
    #[must_use]
    pub fn moved(mut self, rules: &LimiterRules, now: Nanos, since: Nanos) -> Self {
        let history = self.windows.history(Nanos::ZERO);
        let mut key = Self { delay_bound: self.delay_bound, ..Self::begun_at(rules, now) };
        key.windows.set_delay_bound(now, key.delay_bound.bound());
        key.windows.resume(now, &history, since);
        key
    }

    /// Whether the weight is within every limit.
    pub fn fits(&self, weight: u64) -> bool {
        self.windows.fits(weight)
    }

    /// Moves time forward. Grants that can no longer be taken count as sent, and forgotten requests end.
    pub fn advance(&mut self, now: Nanos) {
        for index in (0..self.held.len()).rev() {
            let HeldSlot { slot, phase, .. } = self.held[index];
            match phase {
                SlotPhase::Granted(until) if until <= now => {
                    self.windows.departed(slot, until);
                    self.held[index].phase = SlotPhase::Departed(until);
                }
                // Not `now`: a look that changes nothing else is not stored, and the next one has to find the same.
                SlotPhase::Forgotten(until) if until <= now => {
                    self.held.swap_remove(index);
                    self.windows.abandoned(slot, until);
                }
                _ => {}
            }
        }
        self.windows.advance(now);
    }

    /// Earliest time to grant this weight; [`Nanos::NEVER`]: not before an event of a slot.
    pub fn earliest(&mut self, now: Nanos, weight: u64) -> Nanos {
        self.advance(now);
        match self.windows.earliest(weight) {
            Nanos::NEVER => self.next_change().unwrap_or(Nanos::NEVER),
            at => at,
        }
    }

    /// Time of the next change that needs no event.
    fn next_change(&self) -> Option<Nanos> {
        let time = |held: &HeldSlot| match held.phase {
            SlotPhase::Granted(until) | SlotPhase::Forgotten(until) => Some(until),
            SlotPhase::Departed(_) => None,
        };
        self.held.iter().filter_map(time).min()
    }

    /// Grants a slot if the limits allow one now; otherwise returns the time to look again.
    ///
    /// # Errors
    /// The earliest time.
    pub fn grant(
        &mut self,
        now: Nanos,
        weight: u64,
        holder: HolderId,
        validity: Option<Nanos>,
    ) -> Result<WindowSlot, Nanos> {
        self.advance(now);
        let at = self.earliest(now, weight);
        if self.windows.earliest(weight) > now {
            return Err(at);
        }
        let slot = self.windows.sent(now, weight);
        let phase = match validity {
            Some(validity) => SlotPhase::Granted(now + validity),
            None => {
                self.windows.departed(slot, now);
                SlotPhase::Departed(now)
            }
        };
        self.held.push(HeldSlot { slot, holder, phase });
        Ok(slot)
    }

    /// Takes in an event of a slot; one of a slot that has ended changes nothing.
    pub fn apply(&mut self, rules: &LimiterRules, slot: WindowSlot, event: &SlotEvent, now: Nanos) {
        self.advance(now);
        let Some(index) = self.held.iter().position(|held| held.slot == slot) else { return };
        let phase = self.held[index].phase;
        if let (SlotPhase::Granted(_), SlotEvent::Departed | SlotEvent::Responded(_)) = (phase, event) {
            self.windows.departed(slot, now);
            self.held[index].phase = SlotPhase::Departed(now);
        }
        match event {
            SlotEvent::Departed => {}
            SlotEvent::Responded(report) => {
                self.held.swap_remove(index);
                let sent = if let SlotPhase::Departed(at) = phase { at } else { now };
                self.responded(rules, slot, sent, report.as_ref(), now);
            }
            SlotEvent::Abandoned => {
                self.held.swap_remove(index);
                if let SlotPhase::Departed(at) = phase {
                    self.delay_bound.outstanding_for(now - at);
                }
                self.windows.abandoned(slot, now);
            }
            SlotEvent::Unsent => {
                self.held.swap_remove(index);
                self.windows.unsent(slot, now);
            }
            SlotEvent::Forgotten => self.forget(index, now),
        }
    }

    fn forget(&mut self, index: usize, now: Nanos) {
        let slot = self.held[index].slot;
        self.windows.departed(slot, now);
        self.held[index].phase =
            SlotPhase::Forgotten(now + FORGOTTEN_AFTER.max(self.delay_bound.bound().unwrap_or_default()));
    }

    fn responded(
        &mut self,
        rules: &LimiterRules,
        slot: WindowSlot,
        sent: Nanos,
        report: Option<&ResponseReport>,
        now: Nanos,
    ) {
        let is_rejected = report.is_some_and(|report| report.status == 429);
        let usual = self.usual_round_trip(rules, now - sent);
        if let Some(ResponseReport { status, headers }) = report {
            let is_bound_exceeded = is_rejected && self.delay_bound.rejected(now, sent);
            self.windows.apply_quotas(slot, now, &headers.quotas, rules.max_pause);
            // A wait of nothing is not a wait.
            let stated = headers.retry_after.map(|wait| wait.min(rules.max_pause)).filter(|wait| *wait > Nanos::ZERO);
            match (status, stated) {
                // A learnt delay bound is raised first; the estimate is lowered only if that did not help.
                (429, stated) => self.windows.rejected(slot, now, stated, !is_bound_exceeded),
                (503, Some(wait)) => self.windows.hold_until(now + wait),
                (200..400, _) => self.windows.accepted(slot, now),
                _ => {}
            }
        }
        let round_trip = self.windows.responded(slot, now, usual);
        if let Some(round_trip) = round_trip.filter(|_| !is_rejected) {
            self.delay_bound.responded(round_trip);
        }
        self.windows.set_delay_bound(now, self.delay_bound.bound());
    }

    /// Round trip above which only the response shows the arrival. Before it is known, twice the declared bound: a
    /// program may be late itself, most of all with its first connections. A response that takes a large part of a
    /// window is of a slow service. A bound that is a small part of a window gains little: any response that comes soon
    /// after it is the safer proof.
    fn usual_round_trip(&self, rules: &LimiterRules, round_trip: Nanos) -> Nanos {
        let shortest = rules.key.limits.iter().map(|limit| limit.window.per()).filter(|per| *per > Nanos::ZERO).min();
        let is_below = |time: Nanos, part: u64| shortest.is_some_and(|per| time < Nanos(per.0 / part));
        match (self.delay_bound.usual_round_trip(), self.delay_bound.bound()) {
            (_, Some(bound)) if is_below(bound, 50) && is_below(round_trip, 20) => Nanos::ZERO,
            // A learnt bound is a part of the longest round trip so far.
            _ if rules.key.delay_bound.is_none() => self.delay_bound.longest_round_trip(),
            (Nanos::NEVER, Some(bound)) if is_below(round_trip, 4) => bound + bound,
            (usual, _) => usual,
        }
    }

    /// Forgets the slots of a holder that is gone.
    pub fn lost(&mut self, holder: HolderId, now: Nanos) {
        for index in 0..self.held.len() {
            let held = self.held[index];
            if held.holder == holder && !matches!(held.phase, SlotPhase::Forgotten(_)) {
                self.forget(index, now);
            }
        }
    }

    /// Holders of slots that no delay bound ends.
    pub fn holders(&self) -> Vec<HolderId> {
        let held = self.held.iter().filter(|held| !matches!(held.phase, SlotPhase::Forgotten(_)));
        let mut all: Vec<HolderId> = held.map(|held| held.holder).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Time for which the key may count if nothing happens; an hour more while slots are held.
    pub fn memory(&self, now: Nanos) -> Nanos {
        let held = if self.held.is_empty() { Nanos::ZERO } else { HELD_MEMORY };
        self.windows.idle_by(now) - now + held
    }

    /// Whether a new key is the same.
    pub fn is_idle(&mut self, now: Nanos) -> bool {
        self.advance(now);
        self.held.is_empty() && self.windows.is_idle(now)
    }

    /// The delay bound; None: only responses show arrivals.
    pub fn delay_bound(&self) -> Option<Nanos> {
        self.delay_bound.bound()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
mod tests;
