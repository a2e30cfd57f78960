//! When one key may send next, so that no limit of the server is overrun as the *server* counts it.
//!
//! A client that counts its sends is refused: the server counts arrivals, and two requests that left 1000 ms apart may
//! arrive 960 ms apart. One that waits for every answer wastes its windows. What is known of a request is this:
//!
//! ```text
//!     s                    U = min(r, s + J)          r
//!  ───┼──────────────────────────┼────────────────────┼────► time
//!     it leaves        it has surely arrived        its answer is here
//! ```
//!
//! J bounds the way in. A new request arrives at or after the moment it is sent. So if, for every request that may still
//! count, U is taken for its arrival and the new one is taken to arrive at once, then whatever the ways in were like,
//! the server counts no more than we do. For N requests per T that reads: send k when now >= U(k - N) + T + one tick of
//! the server's clock. It costs J / (T + J) of the rate at worst, and mostly less, for answers come early.
//!
//! The argument needs no order: look at the requests of any stretch that the server judges, and at the one of them that
//! was *sent* last. All others were sent before it and counted when it was sent, those that would be overtaken, too.
//!
//! - Without a J nothing but an answer tells that a request has arrived: U = r.
//! - A request without an answer has arrived all the same, by s + J; without J, by when it was given up.
//! - Nonces that must be in order *at arrival*: send k when now > U(k - 1), too.
//! - Several windows at once: the latest of their answers. Which count bounds which model is said in `meter.rs`.
//! - A [refusal](KeyWindows::rejected) says that something of this was wrong. The key holds still for as long as it was
//!   told, the request counts as if it had been accepted, and less is believed of the limit.
//! - What an answer says of the limits is [heeded](KeyWindows::apply_quotas) where it says less than we know: somebody else spends
//!   from the same limit, or we have forgotten what we spent.
//!
//! - Where no limit is stated, a sustainable [pace](super::pace) is learnt.
//!
//! What it does not know: what is sent, by whom, and what becomes of it.

mod allowance;
mod belief;
mod bucket;
mod history;
mod log;
mod meter;
mod others;
#[cfg(test)]
mod reports;
mod road;
mod running;
mod way_in;

use self::allowance::ServerQuota;
pub use self::history::{KeyHistory, WindowHistory};
use self::meter::{CountSnapshot, WindowCount};
use self::road::{InFlightRequests, OpenRequest};
pub use self::way_in::OneWayDelayBound;
#[cfg(test)]
mod world;

use super::Nanos;
use super::limit;
use super::pace::AdaptivePace;

/// A key has at most so many limits at once.
pub const MAX_WINDOWS: usize = 8;

/// The shortest wait for the response to a probe.
const MIN_PROBE_TIMEOUT: Nanos = Nanos::from_millis(50);

/// What a request counts in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitUnit {
    /// One.
    Requests,
    /// What it weighs: tokens, points.
    #[default]
    Weight,
}

impl LimitUnit {
    /// What a request of this weight counts.
    pub const fn amount(self, weight: u64) -> u64 {
        match self {
            Self::Requests => 1,
            Self::Weight => weight,
        }
    }
}

/// One limit of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyLimit {
    /// As the server states it.
    pub window: limit::LimitWindow,
    /// What is counted.
    pub unit: LimitUnit,
}

/// What holds for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRules {
    /// All hold at once; those after the first [`MAX_WINDOWS`] are not looked at.
    pub limits: Vec<KeyLimit>,
    /// Requests must arrive in the order of their sending.
    pub ordered: bool,
    /// The longest way in; None: not known. [`KeyWindows::set_delay_bound`] changes it.
    pub delay_bound: Option<Nanos>,
    /// The tick of the server's clock, by which its windows may be longer than they say: 1 ms for one that counts whole
    /// milliseconds and wants *more* than `per` between; 1 ns for one that is exact.
    pub clock_tick: Nanos,
    /// Where no limit is stated, a sustainable pace is learnt from responses; false: unlimited.
    pub learns_pace: bool,
}

impl Default for KeyRules {
    fn default() -> Self {
        Self { limits: Vec::new(), ordered: false, delay_bound: None, clock_tick: Nanos::MILLI, learns_pace: true }
    }
}

/// One request that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WindowSlot(u64);

/// The windows of one key.
///
/// Instants should be told in order; one before the latest counts as the latest. Each slot is to be ended once:
/// [`Self::responded`], [`Self::abandoned`] or [`Self::unsent`]. Memory: two words for each request that may count in a
/// log, and some for each that has not ended.
#[derive(Clone, Debug)]
pub struct KeyWindows {
    counts: Vec<WindowCount>,
    in_flight: InFlightRequests,
    ordered: bool,
    delay_bound: Option<Nanos>,
    clock_tick: Nanos,
    /// Nothing is sent before.
    held_until: Nanos,
    /// When the last refusal came of something that was sent after the one before.
    rejected_at: Option<Nanos>,
    /// After a rejection by a limit of which reports tell the count, one request goes first.
    probe: Option<RejectionProbe>,
    /// What has been learnt, if no limit is stated.
    pace: Option<AdaptivePace>,
    /// What the server has said of limits that are not among the meters.
    server_quotas: Vec<ServerQuota>,
    /// By when the last of those that have arrived had.
    last_arrival: Option<Nanos>,
    latest: Nanos,
}

/// The first request after a rejection: what others have spent meanwhile is in its report, and not known before.
#[derive(Clone, Copy, Debug)]
struct RejectionProbe {
    /// A rejection would be here after so long.
    timeout: Nanos,
    /// Which, and until when it is waited for.
    in_flight: Option<(WindowSlot, Nanos)>,
}

impl KeyWindows {
    /// Nothing was sent yet.
    pub fn new(rules: &KeyRules) -> Self {
        Self {
            counts: rules.limits.iter().take(MAX_WINDOWS).map(|limit| WindowCount::new(*limit, rules)).collect(),
            in_flight: InFlightRequests::default(),
            ordered: rules.ordered,
            delay_bound: rules.delay_bound,
            clock_tick: rules.clock_tick,
            held_until: Nanos::ZERO,
            rejected_at: None,
            probe: None,
            pace: (rules.learns_pace && rules.limits.is_empty()).then(AdaptivePace::default),
            server_quotas: Vec::new(),
            last_arrival: None,
            latest: Nanos::ZERO,
        }
    }

    /// Whether a request of this weight can be sent at all.
    pub fn fits(&self, weight: u64) -> bool {
        self.counts.iter().all(|meter| meter.limit.unit.amount(weight) <= meter.limit.window.limit())
    }

    /// How many requests per second go through its limits on requests, as far as these are believed now; infinite if there
    /// is none that counts by time.
    pub fn rate_per_s(&self) -> f64 {
        let rates = self.counts.iter().filter(|meter| meter.limit.unit == LimitUnit::Requests).map(|meter| {
            let per = match meter.limit.window.model() {
                limit::LimitModel::Concurrency => Nanos::ZERO,
                limit::LimitModel::TokenBucket => meter.limit.window.per(),
                _ => meter.limit.window.per() + self.clock_tick + self.delay_bound.unwrap_or_default(),
            };
            meter.estimate() as f64 / per.as_secs_f64()
        });
        rates.fold(self.pace.as_ref().map_or(f64::INFINITY, AdaptivePace::rate_per_s), f64::min)
    }

    /// When a request of this weight may be sent, if nothing else is sent and nothing else is heard; it may have passed.
    /// [`Nanos::NEVER`]: not before something is heard of those on their way.
    pub fn earliest(&self, weight: u64) -> Nanos {
        let mut earliest = self.held_until.max(self.pace.as_ref().map_or(Nanos::ZERO, AdaptivePace::next_send_at));
        if let Some(RejectionProbe { in_flight: Some((_, until)), .. }) = self.probe {
            earliest = earliest.max(until);
        }
        if self.ordered {
            let all = self.in_flight.all_arrived_by(self.delay_bound).or(self.last_arrival);
            // Later, and not at the same instant: who is first then?
            earliest = earliest.max(all.map_or(Nanos::ZERO, |all| all + Nanos(1)));
        }
        let paced = self.pace.as_ref().is_some_and(AdaptivePace::is_limited);
        let is_idle = self.in_flight.in_flight(LimitUnit::Requests) == 0;
        for allowance in &self.server_quotas {
            earliest = earliest.max(allowance.earliest(weight, paced, is_idle));
        }
        for meter in &self.counts {
            let ahead = self.in_flight.in_transit(meter.limit.unit, self.delay_bound);
            earliest = earliest.max(meter.earliest(meter.limit.unit.amount(weight), &ahead));
        }
        earliest
    }

    /// A request of this weight is sent. Until it has [left](Self::departed) nothing bounds its arrival.
    pub fn sent(&mut self, now: Nanos, weight: u64) -> WindowSlot {
        let now = self.advance(now);
        let mut marks = [CountSnapshot::default(); MAX_WINDOWS];
        for (meter, mark) in self.counts.iter_mut().zip(&mut marks) {
            let amount = meter.limit.unit.amount(weight);
            *mark = meter.snapshot(now, &self.in_flight.in_transit(meter.limit.unit, self.delay_bound));
            meter.send(amount);
        }
        self.server_quotas.iter_mut().for_each(|allowance| allowance.send(weight));
        let pace = self.pace.as_mut().map(|pace| pace.sent(now, weight));
        let slot = self.in_flight.push(OpenRequest {
            intended_at: now,
            departed_at: None,
            weight,
            arrived: false,
            ended: false,
            snapshots: marks,
            pace,
        });
        self.probe = self.probe.filter(|probe| probe.in_flight.is_none());
        if let Some(probe) = &mut self.probe {
            probe.in_flight = Some((slot, now + probe.timeout));
        }
        slot
    }

    /// Its bytes go out now, and not earlier. Said at once where a connection is ready; else when there is one, so that
    /// the way in does not have to bound that.
    pub fn departed(&mut self, slot: WindowSlot, now: Nanos) {
        let now = self.advance(now);
        self.in_flight.depart(slot, now);
    }

    /// Its answer is here: it had arrived by now. How long it took since it left, if it was waited for.
    ///
    /// What took clearly longer than is `usual` may have lost that time on its way in, whatever is said of that: of its
    /// arrival only the answer tells. [`Nanos::NEVER`]: nobody knows what is usual.
    pub fn responded(&mut self, slot: WindowSlot, now: Nanos, usual: Nanos) -> Option<Nanos> {
        let now = self.advance(now);
        let grain = self.clock_tick;
        let open = self.in_flight.get(slot)?;
        let (left, weight) = (open.departed_at, open.weight);
        self.mark_arrived(slot.0, now);
        self.end(slot, now + grain);
        let took = now - left?;
        // What is slower by a tenth is only one of many slow ones.
        if let (Some(left), Some(way_in)) = (left, self.delay_bound)
            && took > (usual + Nanos(usual.0 / 10)).max(way_in)
        {
            for meter in &mut self.counts {
                meter.postpone(left + way_in, now, meter.limit.unit.amount(weight));
            }
            self.last_arrival = self.last_arrival.max(Some(now));
        }
        Some(took)
    }

    /// It is not waited for any longer. It counts as arrived, and as being worked on for as long again as it was.
    pub fn abandoned(&mut self, slot: WindowSlot, now: Nanos) {
        let now = self.advance(now);
        let Some(open) = self.in_flight.get(slot) else { return };
        let (asked, left) = (open.intended_at, open.departed_at);
        if self.delay_bound.is_none() || left.is_none() {
            self.mark_arrived(slot.0, now);
        }
        self.end(slot, now + (now - asked));
    }

    /// It was never sent, and surely never arrives.
    pub fn unsent(&mut self, slot: WindowSlot, now: Nanos) {
        let now = self.advance(now);
        if self.in_flight.get(slot).is_some() {
            self.in_flight.arrive(slot.0);
            self.end(slot, now);
        }
    }

    /// It was accepted: the server is no longer displeased. Called before its slot ends.
    pub fn accepted(&mut self, slot: WindowSlot, now: Nanos) {
        let now = self.advance(now);
        self.counts.iter_mut().for_each(WindowCount::accepted);
        let Some(open) = self.in_flight.get(slot) else { return };
        if let (Some(pace), Some(sent)) = (&mut self.pace, open.pace.take()) {
            pace.accepted(now, sent);
        }
    }

    /// It was refused for its rate; called before its slot ends. Nothing is sent before `retry_after` is over, or as long
    /// as the window is if nothing was said. With `shrink`, less is believed of the window that had the least room; all
    /// that was sent before the first refusal came is one refusal.
    pub fn rejected(&mut self, slot: WindowSlot, now: Nanos, retry_after: Option<Nanos>, shrink: bool) {
        let now = self.advance(now);
        let Some(open) = self.in_flight.get(slot) else { return };
        if let (Some(pace), Some(sent)) = (&mut self.pace, open.pace.take()) {
            return pace.rejected(now, sent, retry_after);
        }
        let (marks, weight, asked) = (open.snapshots, open.weight, open.intended_at);
        let first = self.rejected_at.filter(|first| open.intended_at < *first);
        let news = first.is_none();
        let windows = self.counts.iter_mut().zip(marks);
        let fullest = windows.min_by_key(|(meter, mark)| meter.min_remaining(mark, weight));
        let mut hold = Nanos::SECOND;
        if let Some((meter, mark)) = fullest {
            if shrink {
                let used = meter.snapshot(now, &self.in_flight.in_transit(meter.limit.unit, self.delay_bound)).used;
                meter.shrink(now, asked, (mark.used, used), weight, first);
            }
            hold = meter.hold(now, news);
            if news && meter.needs_probe() {
                let patience = Nanos((now - asked).0.saturating_mul(4)).max(MIN_PROBE_TIMEOUT);
                self.probe = Some(RejectionProbe { timeout: patience, in_flight: None });
            }
        }
        if news {
            self.rejected_at = Some(now);
        }
        self.hold_until(now + retry_after.unwrap_or(hold));
    }

    /// Nothing is sent before.
    pub fn hold_until(&mut self, at: Nanos) {
        self.held_until = self.held_until.max(at);
    }

    /// Another bound on the way in, from now on.
    pub fn set_delay_bound(&mut self, now: Nanos, way_in: Option<Nanos>) {
        let now = self.advance(now);
        self.delay_bound = way_in;
        self.counts.iter_mut().for_each(|meter| meter.set_delay_bound(now, way_in));
        if way_in.is_none() {
            // Of those that were given up no answer will tell.
            for number in self.in_flight.ended_in_transit() {
                self.mark_arrived(number, now);
            }
            self.in_flight.prune();
        }
    }

    /// What has arrived by now by the bound alone; what windows have let go.
    pub fn advance(&mut self, now: Nanos) -> Nanos {
        self.latest = self.latest.max(now);
        let now = self.latest;
        if let Some(way_in) = self.delay_bound {
            while let Some((by, number)) = self.in_flight.next_arrived(now, way_in) {
                self.mark_arrived(number, by);
            }
        }
        self.counts.iter_mut().for_each(|meter| meter.advance(now));
        self.server_quotas.retain_mut(|allowance| allowance.is_active(now));
        now
    }

    /// Counts it as arrived, if it is not yet.
    fn mark_arrived(&mut self, number: u64, by: Nanos) {
        if let Some(open) = self.in_flight.arrive(number) {
            self.arrive(by, open.weight);
        }
    }

    fn arrive(&mut self, by: Nanos, weight: u64) {
        let by = by.max(self.last_arrival.unwrap_or_default());
        self.last_arrival = Some(by);
        for meter in &mut self.counts {
            meter.arrive(by, meter.limit.unit.amount(weight));
        }
    }

    fn end(&mut self, slot: WindowSlot, at: Nanos) {
        if self.probe.is_some_and(|probe| probe.in_flight.is_some_and(|(out, _)| out == slot)) {
            self.probe = None;
        }
        if let Some(open) = self.in_flight.end(slot) {
            let weight = open.weight;
            if let (Some(pace), Some(_)) = (&mut self.pace, open.pace.take()) {
                pace.ended();
            }
            for (meter, mark) in self.counts.iter_mut().zip(&open.snapshots) {
                meter.end(at, meter.limit.unit.amount(weight), mark);
            }
        }
        self.in_flight.prune();
    }
}

impl KeyLimit {
    /// A limit on what requests weigh.
    pub const fn new(window: limit::LimitWindow) -> Self {
        Self { window, unit: LimitUnit::Weight }
    }
}
