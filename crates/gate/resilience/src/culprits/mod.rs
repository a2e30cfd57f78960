//! Culprits: the route or the caller that takes an upstream's time from all others with few calls.
//!
//! **Problem.** The shed threshold counts calls. Where two calls in a hundred take sixty times as long as the others,
//! they hold most slots, and of ten calls that are rejected for them nine are others'. To reject these two would have
//! been enough (Atropos, SOSP 2025: cancel the culprit instead of its victims).
//!
//! **Choice.** What a gateway sees of a call is the time for which it holds a slot, its route and its caller. So time in
//! slots is added up by origin, over a `window`. Under overload, a group of origins (a caller on a route, a caller, a
//! route) is a culprit if it takes `min_time` of all time with a fifth of the calls at most, and one call of it takes
//! `min_ratio` times as long as one of the others. From then on it has a limit of its own: the slots that the others
//! do not need. Nothing that is declared about a call counts, only the time that it took.
//!
//! **Overload** needs evidence: rejections of this moment, and more time demanded than there are slots. Of two calls
//! that cannot be told apart before they run none is a culprit.
//!
//! **Cost.** A lock and two look-ups for each call, and a pass over the table ten times per second while there is
//! overload. What the others may need is left free, so that up to a fifth of the slots is idle, more where there are few.
//!
//! It cannot help where callers change their names and use the route of all others, where a call is heavy and its
//! route and its caller are not, and before the first heavy calls have been admitted.

mod choice;
mod use_table;

#[cfg(test)]
mod tests;

use self::choice::{ChoiceContext, LimitedGroup, choose};
use self::use_table::UseTable;
use crate::admission::{Rejection, RejectionReason};
use weir_base::Nanos;
use weir_base::fault::Fault;

/// Definition of a culprit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CulpritRule {
    /// Time for which calls count.
    pub window: Nanos,
    /// Fraction of the time of all calls from which a group is a culprit, in (0, 1].
    pub min_time: f64,
    /// Multiple of the time of other calls from which a group's calls are those of a culprit; at least 2.
    pub min_ratio: f64,
    /// Maximum number of origins in the table, rounded up to 16 times a power of two.
    pub entries: usize,
}

impl Default for CulpritRule {
    /// A fifth of the time of the last 10 s, by calls that take ten times as long as others, of 4,096 origins (400 kB).
    fn default() -> Self {
        Self { window: Nanos::from_secs(5), min_time: 0.2, min_ratio: 10.0, entries: 4096 }
    }
}

impl CulpritRule {
    /// Fault of the first invalid field; `None` if the rule is valid.
    pub fn fault(&self) -> Option<Fault> {
        let Self { window, min_time, min_ratio, .. } = *self;
        if window < use_table::STEP {
            Some(Fault::new(format!("a window of {window} is too short"), "make it longer, e.g. 10s"))
        } else if !(min_time > 0.0 && min_time <= 1.0) {
            Some(Fault::new(format!("min_time {min_time} is not a fraction above 0"), "write it as e.g. 0.2"))
        } else if !(min_ratio >= 2.0 && min_ratio.is_finite()) {
            Some(Fault::new(format!("min_ratio {min_ratio} is below 2"), "write it as e.g. 10"))
        } else {
            None
        }
    }
}

/// Origin of a call: hashes of its route and its caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallOrigin {
    /// Route.
    pub route: u64,
    /// Caller: uniform in its low bits, and seeded, so that colliding names cannot be chosen.
    pub caller: u64,
}

/// Group of origins that can be a culprit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OriginGroup {
    /// One caller on one route.
    Origin(CallOrigin),
    /// One caller, on all routes.
    Caller(u64),
    /// One route, of all callers.
    Route(u64),
}

impl OriginGroup {
    /// Whether calls of this origin belong to the group.
    pub fn has(&self, origin: CallOrigin) -> bool {
        match *self {
            Self::Origin(own) => own == origin,
            Self::Caller(caller) => caller == origin.caller,
            Self::Route(route) => route == origin.route,
        }
    }
}

/// A culprit, and the slots that it may hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Culprit {
    /// Its calls.
    pub group: OriginGroup,
    /// Maximum number of slots.
    pub limit: u32,
    /// Slots that it holds.
    pub in_flight: u32,
    /// Mean time of one of its calls in a slot.
    pub service_time: Nanos,
}

/// Time for which rejections are evidence of overload. Chosen: longer than the tick of a limit that is being found, far
/// shorter than overload that matters.
const EVIDENCE_WINDOW: Nanos = Nanos::from_secs(2);
/// Rejections that are evidence, as a number and as a fraction of the calls of [`EVIDENCE_WINDOW`]. Chosen: a probe of the
/// limit or a stall of the host rejects fewer.
const MIN_EVIDENCE_CALLS: f64 = 5.0;
const MIN_EVIDENCE_FRACTION: f64 = 0.01;
/// Bounds of Retry-After.
const RETRY_AFTER_RANGE: (Nanos, Nanos) = (Nanos::SECOND, Nanos::from_secs(60));

/// Recent use of one upstream's slots, and the culprits among those who use them.
///
/// Each call [arrives](Self::arrive) once. If it may go on, it [ends](Self::ended) once, with its last byte, or it is
/// [rejected](Self::rejected) or [withdrawn](Self::withdrawn) before anything is sent.
#[derive(Clone, Debug)]
pub struct Culprits {
    rule: CulpritRule,
    table: UseTable,
    /// Recent arrivals, and recent rejections for overload, of all calls.
    arrived: f64,
    rejected: f64,
    evidence_at: Nanos,
    limited: Vec<LimitedGroup>,
}

impl Culprits {
    /// Nothing known of any call.
    pub fn new(rule: CulpritRule, now: Nanos) -> Self {
        Self {
            rule,
            table: UseTable::new(rule.window, rule.entries, now),
            arrived: 0.0,
            rejected: 0.0,
            evidence_at: now,
            limited: Vec::new(),
        }
    }

    /// Counts a call that arrives at an upstream of this number of slots, and decides whether it may go on.
    ///
    /// # Errors
    /// The rejection of a call of a culprit that holds all its slots.
    pub fn arrive(&mut self, now: Nanos, slots: u32, origin: CallOrigin) -> Result<(), Rejection> {
        self.advance(now, slots);
        self.arrived += 1.0;
        self.table.arrived(now, origin);
        if let Some(of) = self.limited.iter_mut().find(|of| of.culprit.group.has(origin)) {
            if of.culprit.in_flight >= of.culprit.limit {
                return Err(of.rejection());
            }
            of.culprit.in_flight += 1;
        }
        self.table.started(now, origin);
        Ok(())
    }

    /// Rejection of a call that would not be admitted now, e.g. before its body is read. `None` is not an admission, and
    /// nothing is counted.
    pub fn rejection(&mut self, now: Nanos, slots: u32, origin: CallOrigin) -> Option<Rejection> {
        self.advance(now, slots);
        let of = self.limited.iter().find(|of| of.culprit.group.has(origin))?;
        let rejection = (of.culprit.in_flight >= of.culprit.limit).then(|| of.rejection())?;
        self.arrived += 1.0;
        self.table.arrived(now, origin);
        Some(rejection)
    }

    /// A call was rejected for overload before it arrived here: evidence.
    pub fn shed(&mut self, now: Nanos, origin: CallOrigin) {
        self.arrived += 1.0;
        self.rejected += 1.0;
        self.table.arrived(now, origin);
    }

    /// The call has ended.
    pub fn ended(&mut self, now: Nanos, origin: CallOrigin) {
        self.table.ended(now, origin);
        if let Some(of) = self.limited.iter_mut().find(|of| of.culprit.group.has(origin)) {
            of.culprit.in_flight = of.culprit.in_flight.saturating_sub(1);
        }
    }

    /// The call was rejected for overload: evidence.
    pub fn rejected(&mut self, now: Nanos, origin: CallOrigin) {
        self.rejected += 1.0;
        self.withdrawn(now, origin);
    }

    /// The call has ended before anything was sent, for another reason than overload.
    pub fn withdrawn(&mut self, now: Nanos, origin: CallOrigin) {
        self.table.not_started(origin);
        self.ended(now, origin);
    }

    /// Culprits now; mostly none.
    pub fn culprits(&self) -> impl Iterator<Item = Culprit> {
        self.limited.iter().map(|of| of.culprit)
    }

    /// Looks for culprits, if a step of time is over.
    fn advance(&mut self, now: Nanos, slots: u32) {
        if !self.table.advance(now) {
            return;
        }
        let kept = (-(now - self.evidence_at).as_secs_f64() / EVIDENCE_WINDOW.as_secs_f64()).exp();
        self.evidence_at = now;
        self.arrived *= kept;
        self.rejected *= kept;
        let is_overloaded =
            self.rejected >= MIN_EVIDENCE_CALLS.max(MIN_EVIDENCE_FRACTION * self.arrived) && self.table.is_warm();
        if !is_overloaded && self.limited.is_empty() {
            return;
        }
        let rows = self.table.rows(now);
        let context =
            ChoiceContext { rule: &self.rule, now, slots, seconds: self.table.seconds(), before: &self.limited };
        self.limited = choose(&rows, &context);
        for at in 0..self.limited.len() {
            let (earlier, rest) = self.limited.split_at_mut(at);
            let group = rest[0].culprit.group;
            let own =
                rows.iter().filter(|row| row.is_in(&group) && !earlier.iter().any(|of| row.is_in(&of.culprit.group)));
            rest[0].culprit.in_flight = own.map(|row| row.in_flight).sum();
        }
    }
}

impl LimitedGroup {
    fn rejection(&self) -> Rejection {
        let retry_after = self.culprit.service_time.clamp(RETRY_AFTER_RANGE.0, RETRY_AFTER_RANGE.1);
        Rejection { reason: RejectionReason::Culprit, retry_after }
    }
}
