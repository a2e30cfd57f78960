//! One window, as it must be kept so that the server's count is never above its limit.

use super::belief::{Belief, HIGH};
use super::bucket::Bucket;
use super::log::Log;
use super::others::{Others, Report, Seen};
use super::road::Ahead;
use super::running::Running;
use super::{Limit, Nanos, Past, Rules};
use crate::decide::feedback::Quota;
use crate::decide::limit::Model;

/// One window and its count.
///
/// | the server's model | kept here | why that is enough |
/// |---|---|---|
/// | log | a log of `per` | it counts what arrived within `per`, and so does the log, with the latest arrivals and the earliest next one |
/// | aligned | a log of `per` | an aligned window is one of those that the log keeps to the limit |
/// | bucket | a bucket | see [`Bucket`] |
/// | counter | a bucket of B that gets N - B back in `per`, or a log of 2 x `per`, whichever lets go first | its estimate is at most B + (N - B) in the one case, and at most what two windows hold in the other |
/// | concurrency | what has not ended | that is what it counts |
#[derive(Clone, Debug)]
pub(super) struct Meter {
    pub(super) limit: Limit,
    belief: Belief,
    kind: Kind,
    grain: Nanos,
    /// The longest way in, as far as the counter's bucket is cut for it.
    way_in: Nanos,
    /// All that was ever sent.
    sent: u64,
    /// All that ever arrived, or was booked for others.
    arrived: i128,
    others: Others,
    /// Whether the last report told how much is left, and the limit itself, too.
    is_counted: bool,
    has_limit: bool,
    /// When it came, and when all of the limit, or more of it, is free by it.
    reset: Option<(Nanos, Nanos)>,
    refusals_in_a_row: u32,
    event: Option<Event>,
}

/// The latest refusal, and those that had been sent before it came.
#[derive(Clone, Copy, Debug)]
struct Event {
    /// When it was sent.
    asked: Nanos,
    /// What had been sent when its refusal came, and what was counted.
    sent: u64,
    used: u64,
    /// What has been refused since.
    refused: u64,
    /// What had been sent since the refusal before, and for how long.
    stretch: Option<(u64, Nanos)>,
}

impl Event {
    /// What has gone through in `per` since the refusal before, so many percent of it.
    fn measured(&self, per: Nanos, percent: u64) -> Option<u64> {
        let (sent, length) = self.stretch?;
        let taken = u128::from(sent.saturating_sub(self.refused));
        u64::try_from(taken * u128::from(per.0 / 100 * percent) / u128::from(length.0.max(1))).ok()
    }
}

#[derive(Clone, Debug)]
enum Kind {
    Log(Log),
    Bucket(Bucket),
    Either(Bucket, Log),
    Running(Running),
}

/// Without a word from the server, nobody holds a key for longer after the first refusal.
const FIRST_HOLD: Nanos = Nanos::from_secs(60);
/// Fewer that went through between two refusals are no measure, and what is measured is believed with a margin.
const FEW: u64 = 20;
const MARGIN_PERCENT: u64 = 98;
const REPORTED_PERCENT: u64 = 104;
/// Ways in that differ spoil no measure that is this long.
const SHORT: Nanos = Nanos::from_millis(500);

impl Meter {
    pub(super) fn new(limit: Limit, rules: &Rules) -> Self {
        let per = limit.window.per();
        let way_in = rules.way_in.unwrap_or(Nanos(per.0 / 4));
        let span = per + rules.grain;
        let most = limit.window.limit();
        let kind = match limit.window.model() {
            Model::SlidingLog | Model::AlignedWindow => Kind::Log(Log::new(span)),
            Model::TokenBucket => Kind::Bucket(Bucket::whole(most, per, rules.grain)),
            Model::SlidingCounter => Kind::Either(Bucket::part(most, per, rules.grain, way_in), Log::new(per + span)),
            Model::Concurrency => Kind::Running(Running::default()),
        };
        let belief = Belief::new(most, per);
        Self {
            limit,
            belief,
            kind,
            grain: rules.grain,
            way_in,
            sent: 0,
            arrived: 0,
            others: Others::default(),
            is_counted: false,
            has_limit: false,
            reset: None,
            event: None,
            refusals_in_a_row: 0,
        }
    }

    /// Another bound on the way in: a counter's bucket is cut for it, and holds enough for timers that are late.
    /// Any cut is safe; without a bound the last one stays.
    pub(super) fn set_way_in(&mut self, now: Nanos, way_in: Option<Nanos>) {
        let Some(way_in) = way_in else { return };
        self.way_in = way_in.max(Nanos(self.limit.window.per().0 / 50));
        if matches!(self.kind, Kind::Either(..)) {
            self.resize(now);
        }
    }

    pub(super) fn believed(&self) -> u64 {
        self.belief.now()
    }

    /// After a rejection one request goes first, since its report tells what others have spent meanwhile.
    pub(super) fn is_probed(&self) -> bool {
        self.is_counted && self.limit.window.limit() >= HIGH
    }

    pub(super) fn advance(&mut self, now: Nanos) {
        match &mut self.kind {
            Kind::Log(log) | Kind::Either(_, log) => log.advance(now),
            Kind::Running(running) => running.advance(now),
            Kind::Bucket(_) => {}
        }
        if self.belief.advance(now) {
            self.resize(now);
        }
    }

    pub(super) fn send(&mut self, amount: u64) {
        self.sent = self.sent.wrapping_add(amount);
        if let Kind::Running(running) = &mut self.kind {
            running.start(amount);
        }
    }

    /// It had surely arrived by then.
    pub(super) fn arrive(&mut self, by: Nanos, amount: u64) {
        self.arrived += i128::from(amount);
        match &mut self.kind {
            Kind::Log(log) => log.arrive(by, amount),
            Kind::Bucket(bucket) => bucket.arrive(by, amount),
            Kind::Either(bucket, log) => {
                bucket.arrive(by, amount);
                log.arrive(by, amount);
            }
            Kind::Running(_) => {}
        }
    }

    /// This much, which was taken to have arrived at `from`, may have done so as late as at `to`.
    pub(super) fn postpone(&mut self, from: Nanos, to: Nanos, amount: u64) {
        match &mut self.kind {
            Kind::Log(log) => log.postpone(from, to),
            Kind::Bucket(bucket) => bucket.postpone(from, to, amount),
            Kind::Either(bucket, log) => {
                bucket.postpone(from, to, amount);
                log.postpone(from, to);
            }
            Kind::Running(_) => {}
        }
    }

    /// The server is done with the marked request at `at`, and no later.
    pub(super) fn end(&mut self, at: Nanos, amount: u64, mark: &Mark) {
        if !mark.is_heard {
            self.others.unheard(amount);
        }
        if let Kind::Running(running) = &mut self.kind {
            running.end(at, amount);
        }
    }

    /// When a request that counts so much may be sent.
    pub(super) fn room(&self, amount: u64, ahead: &Ahead<'_>) -> Nanos {
        let most = self.believed();
        // What weighs more than is believed goes when it has all to itself.
        let amount = amount.saturating_add(self.others.reserve(most)).min(most);
        match &self.kind {
            _ if amount == 0 => Nanos::ZERO,
            Kind::Log(log) => log.room(amount, most, ahead),
            Kind::Bucket(bucket) => bucket.room(amount, ahead),
            Kind::Either(bucket, log) => bucket.room(amount, ahead).min(log.room(amount, most, ahead)),
            Kind::Running(running) => running.room(amount, most),
        }
    }

    /// What is counted, without what is on its way.
    fn used(&self, now: Nanos) -> u64 {
        match &self.kind {
            Kind::Log(log) | Kind::Either(_, log) => log.used(),
            Kind::Bucket(bucket) => bucket.used(now),
            Kind::Running(running) => running.used(),
        }
    }

    /// The count of this moment, to compare with what the response to a request that is sent now reports.
    pub(super) fn mark(&self, now: Nanos, ahead: &Ahead<'_>) -> Mark {
        let is_running = matches!(self.kind, Kind::Running(_));
        let used = self.used(now).saturating_add(if is_running { 0 } else { ahead.total() });
        Mark { used, sent: self.sent, seen: self.others.seen(), is_heard: false }
    }

    /// What must be left when all that was sent up to now is judged, too, as far as the limit is believed.
    pub(super) fn least(&self, mark: &Mark, weight: u64) -> u64 {
        let (own, since) = self.since(mark, weight);
        self.believed().saturating_sub(mark.used.saturating_add(own).saturating_add(since))
    }

    /// What the marked request counts, and what was sent after it.
    fn since(&self, mark: &Mark, weight: u64) -> (u64, u64) {
        let own = self.limit.unit.amount(weight);
        (own, self.sent.wrapping_sub(mark.sent).saturating_sub(own))
    }

    /// How long to hold still after a refusal that says nothing about it: the window, at first at most a minute, then
    /// twice as long each time.
    /// No longer than the reset that the same response reports.
    pub(super) fn hold(&mut self, now: Nanos, news: bool) -> Nanos {
        let reset = self.reset.filter(|(at, _)| *at == now).map_or(Nanos::NEVER, |(_, reset)| reset);
        let per = self.limit.window.per().max(Nanos::SECOND);
        self.refusals_in_a_row += u32::from(news);
        // Of a high limit the count itself tells how long to wait.
        let least = if self.limit.window.model() == Model::TokenBucket { SHORT } else { Nanos::SECOND };
        let per = if self.limit.window.limit() >= HIGH { Nanos(per.0 / 10).max(least) } else { per };
        let longer = 1_u64 << self.refusals_in_a_row.saturating_sub(1).min(16);
        Nanos(per.min(FIRST_HOLD).0.saturating_mul(longer)).min(per.max(FIRST_HOLD)).min(reset) + self.grain
    }

    pub(super) fn accepted(&mut self) {
        self.refusals_in_a_row = 0;
    }

    /// What was sent at `asked`, when it may have counted so much, was refused; `first`: it was sent before the refusal
    /// then. `counted`: before it was sent, and now.
    pub(super) fn shrink(&mut self, now: Nanos, asked: Nanos, counted: (u64, u64), weight: u64, first: Option<Nanos>) {
        let amount = self.limit.unit.amount(weight);
        let is_high = self.limit.window.limit() >= HIGH;
        let (before, used) = counted;
        let mut event = match self.event.filter(|_| first.is_some()) {
            Some(event) => event,
            None => Event { asked, sent: self.sent, used, refused: 0, stretch: self.stretch(asked) },
        };
        event.refused = event.refused.saturating_add(amount);
        self.event = Some(event);
        // Where the rest is reported, a little more does no harm: what is not there is booked.
        let percent = if self.is_counted { REPORTED_PERCENT } else { MARGIN_PERCENT };
        let measured = event.measured(self.limit.window.per(), percent).filter(|_| is_high);
        // The server itself reports its count: others have spent it, or there is less of it, and that is booked.
        if self.is_counted && is_high {
            self.others.shared();
            if self.has_limit || measured.is_none() {
                return;
            }
        }
        // Many arrive in any order: what is left of them when all rejections are here is what went through.
        let counted = if is_high { event.used.saturating_sub(event.refused) } else { before };
        match first {
            None => self.belief.refused(now, counted, measured),
            Some(first) => self.belief.refused_too(first, measured.unwrap_or(counted)),
        }
        self.resize(now);
        if let Kind::Bucket(bucket) = &mut self.kind {
            // Not even this was left in it.
            bucket.lacked(now, amount);
        }
    }

    /// What has been sent since the refusal before and was not refused then, and how long that took, if it is a measure.
    fn stretch(&self, asked: Nanos) -> Option<(u64, Nanos)> {
        let before = self.event?;
        let per = self.limit.window.per();
        let taken = self.sent.wrapping_sub(before.sent);
        let length = asked - before.asked;
        let shortest = match self.limit.window.model() {
            Model::Concurrency => return None,
            // It was empty both times.
            Model::TokenBucket => Nanos(per.0 / 2).min(SHORT),
            _ => Nanos(per.0 / 2),
        };
        // Over a long time it was not always used.
        let longest = Nanos(per.max(Nanos::SECOND).0.saturating_mul(20));
        (taken >= FEW && (shortest..longest).contains(&length)).then_some((taken, length))
    }

    /// Whether the server speaks of this limit.
    pub(super) fn is_meant(&self, quota: &Quota) -> bool {
        let window = self.limit.window;
        let longest = window.per() + window.per() + Nanos::SECOND;
        let seconds = Nanos(window.per().0.div_ceil(Nanos::SECOND.0).saturating_mul(Nanos::SECOND.0));
        window.model() != Model::Concurrency
            && quota.unit.is_none_or(|unit| unit == self.limit.unit)
            && quota.per.is_none_or(|per| per == window.per() || per == seconds)
            && quota.limit.is_none_or(|limit| limit <= window.limit())
            && quota.reset.is_none_or(|reset| reset <= longest)
    }

    /// What the server reports of this limit in the response to the marked request: `own` is what it weighs, `ahead` what is on
    /// its way, `in_flight` what has no response yet, without itself. What others have spent is booked
    /// ([`Others`]). A report without the limit is taken to be of the limit that is believed.
    pub(super) fn heard(&mut self, quota: &Quota, mark: &Mark, weight: u64, out: &Out<'_>, now: Nanos) {
        if quota.limit.is_some_and(|limit| self.belief.told(limit)) {
            self.resize(now);
        }
        self.reset = quota.reset.map(|reset| (now, reset));
        let Some(remaining) = quota.remaining else { return };
        let (own, since) = self.since(mark, weight);
        let used = self.used(now);
        let report = Report {
            counted: quota.limit.unwrap_or(self.believed()).saturating_sub(remaining),
            at_send: (mark.used.saturating_add(own), mark.sent, mark.seen),
            since,
            in_flight: out.in_flight,
            believed: used.saturating_add(out.ahead.total()),
            used,
            arrived: self.arrived,
            sent: self.sent,
            limit: self.limit.window.limit(),
            per: self.limit.window.per(),
        };
        let booked = self.others.heard(&report, now);
        match u64::try_from(booked) {
            Ok(0) => {}
            Ok(more) => self.arrive(now, more),
            Err(_) => self.take_back(u64::try_from(-booked).unwrap_or(u64::MAX)),
        }
        (self.is_counted, self.has_limit) = (true, quota.limit.is_some());
    }

    /// This much of what was booked last was counted twice.
    fn take_back(&mut self, amount: u64) {
        let until = self.others.booked_at();
        self.arrived -= i128::from(amount);
        match &mut self.kind {
            Kind::Log(log) => log.give_back(until, amount),
            Kind::Bucket(bucket) => bucket.give_back(amount),
            Kind::Either(bucket, log) => {
                bucket.give_back(amount);
                log.give_back(until, amount);
            }
            Kind::Running(_) => {}
        }
    }

    fn resize(&mut self, now: Nanos) {
        let most = self.believed();
        let per = self.limit.window.per();
        match &mut self.kind {
            Kind::Bucket(bucket) => {
                *bucket = Bucket::whole(most, per, self.grain).after(bucket, now).at_worst_empty(now);
            }
            Kind::Either(bucket, _) => *bucket = Bucket::part(most, per, self.grain, self.way_in).after(bucket, now),
            Kind::Log(_) | Kind::Running(_) => {}
        }
    }

    pub(super) fn past(&self, now: Nanos) -> Past {
        let (arrived, full_in) = match &self.kind {
            Kind::Log(log) => (log.ages(now).collect(), None),
            Kind::Bucket(bucket) => (Vec::new(), Some(bucket.full() - now)),
            Kind::Either(bucket, log) => (log.ages(now).collect(), Some(bucket.full() - now)),
            Kind::Running(_) => (Vec::new(), None),
        };
        Past { window: self.limit.window, believed: self.believed(), arrived, full_in }
    }

    /// Takes up what another has kept, `since` after that.
    pub(super) fn resume(&mut self, past: &Past, now: Nanos, since: Nanos) {
        self.belief.resume(past.believed, now);
        self.resize(now);
        for (ago, amount) in &past.arrived {
            let by = now - (*ago + since);
            if let Kind::Log(log) | Kind::Either(_, log) = &mut self.kind {
                log.arrive(by, *amount);
            }
        }
        if let (Kind::Bucket(bucket) | Kind::Either(bucket, _), Some(full_in)) = (&mut self.kind, past.full_in) {
            bucket.set_full(now + (full_in - since));
        }
    }

    /// Nobody knows what was sent before `by`: a bucket may have been empty then.
    pub(super) fn forgot(&mut self, by: Nanos) {
        if let Kind::Bucket(bucket) | Kind::Either(bucket, _) = &mut self.kind {
            bucket.empty_at(by);
        }
    }
}

/// A window's count at the moment of a send.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    /// The most that the server may count, what is on its way included, without the request itself.
    pub(super) used: u64,
    /// All that was ever sent, without the request itself.
    sent: u64,
    seen: Seen,
    /// Its response has reported on the limit.
    pub(super) is_heard: bool,
}

/// What has been sent and of which something is yet to be heard.
pub(super) struct Out<'a> {
    /// What may not have arrived.
    pub(super) ahead: Ahead<'a>,
    /// What has no response, without the request that is reported on.
    pub(super) in_flight: u64,
}
