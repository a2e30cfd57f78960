//! When an upstream that fails gets no calls at all.
//!
//! A call to an upstream that is down costs its caller a timeout, and the upstream a connection that it cannot spare.
//! After enough of them it is better to say no at once (M. Nygard, "Release It!", 2007). The breaker is *closed* while
//! calls flow. It *opens* when of the calls that began in a window at least `least` have ended, and at least `share` of
//! these failed. Then it rests, and is *half open*: some calls go through, at most `probes` at a time. When that many
//! have succeeded in a row it closes; one that fails opens it again, for twice as long as before.
//!
//! It is a blunt tool. To refuse all calls of an upstream that answers half of them makes matters worse. So the
//! defaults are for one that is as good as down: 80 % of 40. A service that fails 2 calls of 11 and lets one more hang
//! gets there by chance with a probability below 1e-11 per window (a test counts it out); with the usual 50 % of 20 it
//! is 3 %, and the breaker would open every few minutes.
//!
//! A call counts by when it *began*. If it counted when it ended, traffic that stops would leave the slowest calls to
//! end alone, and those that hang would be all of a window. The price: a failure that took longer than the window says
//! nothing any more. So the window should be longer than an attempt may take.
//!
//! An upstream that says that it has too much to do is not down. Who throttles what it gets ([`super::throttle`]) gives
//! the passes of such calls up instead of counting them as failed.

#[cfg(test)]
mod oracle;

use super::Nanos;
use super::stretches::SlidingCount;

/// When the breaker opens and closes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakerRule {
    /// Calls that began so long ago do not count any more; longer than an attempt may take.
    pub window: Nanos,
    /// Fewer calls than this that have ended do not open it; at least 1.
    pub min_calls: u64,
    /// The share of failures that opens it, in (0, 1].
    pub failure_fraction: f64,
    /// How long it is open at first.
    pub open_time: Nanos,
    /// Rests are doubled up to this while probes fail.
    pub max_open_time: Nanos,
    /// So many calls go through at a time when it is half open, and so many must succeed in a row; at least 1.
    pub probes: u32,
}

impl Default for BreakerRule {
    /// Opens when 80 % of 40 calls or more of 10 s fail, for 1 s to 30 s; one success closes it.
    fn default() -> Self {
        let (rest, longest_rest) = (Nanos::SECOND, Nanos::from_secs(30));
        Self {
            window: Nanos::from_secs(10),
            min_calls: 40,
            failure_fraction: 0.8,
            open_time: rest,
            max_open_time: longest_rest,
            probes: 1,
        }
    }
}

impl BreakerRule {
    /// What is wrong with it, and the remedy.
    pub fn validation_error(&self) -> Option<(String, String)> {
        let Self {
            window,
            min_calls: least,
            failure_fraction: share,
            open_time: rest,
            max_open_time: longest_rest,
            probes,
        } = self;
        let (what, remedy) = if *window == Nanos::ZERO {
            (format!("a window of {window} holds no calls"), "make it longer than an attempt may take, e.g. 10s".into())
        } else if *least == 0 {
            ("a share of 0 calls is none".into(), "make least 1 at least, e.g. 40".into())
        } else if !(*share > 0.0 && *share <= 1.0) {
            (format!("a share of {share} is not possible"), "make it above 0 and 1 at most, e.g. 0.8".into())
        } else if *rest == Nanos::ZERO {
            (format!("a rest of {rest} is none"), "make it longer, e.g. 1s".into())
        } else if longest_rest < rest {
            let what = format!("the longest rest ({longest_rest}) is shorter than the first ({rest})");
            (what, format!("make it {rest} at least"))
        } else if *probes == 0 {
            ("without probes it never closes again".into(), "make it 1 at least".into())
        } else {
            return None;
        };
        Some((what, remedy))
    }
}

/// What the breaker does with calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// All go through.
    Closed,
    /// None does.
    Open,
    /// Some do, to find out.
    HalfOpen,
}

/// A call that was let through. It is given back when the call has [ended](Breaker::ended) or was
/// [given up](Breaker::cancelled).
#[derive(Debug)]
#[must_use]
pub struct BreakerPermit {
    began: Nanos,
    generation: u64,
}

/// The kinds that are counted.
const SUCCEEDED: usize = 0;
const FAILED: usize = 1;

#[derive(Clone, Copy, Debug)]
enum BreakerPhase {
    Closed,
    Open { until: Nanos },
    HalfOpen { in_flight: u32, successes: u32, latest: Nanos },
}

/// The circuit breaker of one upstream. Memory is fixed, and nothing is allocated.
#[derive(Clone, Debug)]
pub struct Breaker {
    rule: BreakerRule,
    counts: SlidingCount<2>,
    phase: BreakerPhase,
    /// Grows with each change. A pass of an earlier turn is old news.
    generation: u64,
    /// How long it rests, or would.
    open_time: Nanos,
    openings: u64,
}

impl Breaker {
    /// Closed.
    pub fn new(rule: BreakerRule) -> Self {
        let counts = SlidingCount::new(rule.window);
        Self { rule, counts, phase: BreakerPhase::Closed, generation: 0, open_time: rule.open_time, openings: 0 }
    }

    /// Whether a call may begin.
    ///
    /// # Errors
    /// How long to wait: when open, until the rest is over, exactly. When half open nobody knows what the probes will
    /// say; then it is the first rest, or less.
    pub fn allows(&mut self, now: Nanos) -> Result<BreakerPermit, Nanos> {
        match self.phase {
            BreakerPhase::Closed => return Ok(BreakerPermit { began: now, generation: self.generation }),
            BreakerPhase::Open { until } if now < until => return Err(until - now),
            BreakerPhase::Open { .. } => {
                self.transition(BreakerPhase::HalfOpen { in_flight: 0, successes: 0, latest: now });
            }
            BreakerPhase::HalfOpen { in_flight, latest, .. } if in_flight >= self.rule.probes.max(1) => {
                // Nobody told how these ended, and if it were told now it would not count: they make room.
                let lost = latest + self.rule.window;
                if now < lost {
                    return Err((lost - now).min(self.rule.open_time).max(Nanos(1)));
                }
                self.transition(BreakerPhase::HalfOpen { in_flight: 0, successes: 0, latest: now });
            }
            BreakerPhase::HalfOpen { .. } => {}
        }
        if let BreakerPhase::HalfOpen { in_flight, latest, .. } = &mut self.phase {
            *in_flight += 1;
            *latest = now.max(*latest);
        }
        Ok(BreakerPermit { began: now, generation: self.generation })
    }

    /// A call has ended, well or not.
    #[expect(clippy::needless_pass_by_value, reason = "a call ends once, and so its pass is used up")]
    pub fn ended(&mut self, now: Nanos, pass: BreakerPermit, ok: bool) {
        if pass.generation != self.generation {
            return;
        }
        match &mut self.phase {
            BreakerPhase::Closed => {
                self.counts.count_at(now, pass.began, if ok { SUCCEEDED } else { FAILED });
                if !ok && self.is_failing() {
                    self.open(now);
                }
            }
            BreakerPhase::HalfOpen { in_flight, successes, .. } => {
                *in_flight = in_flight.saturating_sub(1);
                *successes += u32::from(ok);
                if !ok {
                    self.open_time =
                        Nanos(self.open_time.0.saturating_mul(2)).min(self.rule.max_open_time).max(self.rule.open_time);
                    self.open(now);
                } else if *successes >= self.rule.probes {
                    self.open_time = self.rule.open_time;
                    self.counts.clear();
                    self.transition(BreakerPhase::Closed);
                }
            }
            BreakerPhase::Open { .. } => {}
        }
    }

    /// A call was given up without a verdict: its caller has gone, or another attempt was faster. A probe makes room
    /// for the next one.
    #[expect(clippy::needless_pass_by_value, reason = "a call ends once, and so its pass is used up")]
    pub fn cancelled(&mut self, pass: BreakerPermit) {
        if let BreakerPhase::HalfOpen { in_flight, .. } = &mut self.phase
            && pass.generation == self.generation
        {
            *in_flight = in_flight.saturating_sub(1);
        }
    }

    /// What it does with a call that comes now.
    pub fn state(&self, now: Nanos) -> State {
        match self.phase {
            BreakerPhase::Closed => State::Closed,
            BreakerPhase::Open { until } if now < until => State::Open,
            BreakerPhase::Open { .. } | BreakerPhase::HalfOpen { .. } => State::HalfOpen,
        }
    }

    /// How often it has opened.
    pub fn openings(&self) -> u64 {
        self.openings
    }

    fn is_failing(&self) -> bool {
        let [succeeded, failed] = self.counts.totals();
        let ended = succeeded + failed;
        ended >= self.rule.min_calls && failed as f64 >= self.rule.failure_fraction * ended as f64
    }

    fn open(&mut self, now: Nanos) {
        self.openings += 1;
        self.transition(BreakerPhase::Open { until: now + self.open_time });
    }

    fn transition(&mut self, next: BreakerPhase) {
        self.generation += 1;
        self.phase = next;
    }
}

#[cfg(test)]
mod tests {
    use super::super::dice::Dice;
    use super::*;

    /// The probability that at least this share of `n` calls fails, of which 3 in 11 do.
    fn tail(n: u32, share: f64) -> f64 {
        let least = (share * f64::from(n)).ceil() as u32;
        let log_choose = |k: u32| (0..k).map(|i| (f64::from(n - i) / f64::from(i + 1)).ln()).sum::<f64>();
        let log =
            |k: u32| log_choose(k) + f64::from(k) * (3.0_f64 / 11.0).ln() + f64::from(n - k) * (8.0_f64 / 11.0).ln();
        (least..=n).map(|k| log(k).exp()).sum()
    }

    #[test]
    fn a_service_that_fails_three_calls_of_eleven_opens_it_by_chance_in_one_window_of_a_hundred_billion() {
        let BreakerRule { min_calls: least, failure_fraction: share, .. } = BreakerRule::default();
        let worst = (least as u32..300).map(|n| tail(n, share)).fold(0.0, f64::max);
        assert!(worst < 1e-11, "{worst}");
        assert!((0.02..0.04).contains(&tail(20, 0.5)), "{}", tail(20, 0.5));
    }

    /// Of 11, 8 are well after 100 to 600 ms, 2 fail as fast, 1 fails after 10 s.
    #[test]
    fn a_service_that_fails_and_hangs_never_opens_it_at_any_rate_nor_when_traffic_stops() {
        for per_s in [2, 4, 5, 10, 100, 1000] {
            let mut breaker = Breaker::new(BreakerRule::default());
            let mut dice = Dice::new(7, per_s);
            let mut ends = std::collections::BTreeMap::<(Nanos, u64), (BreakerPermit, bool)>::new();
            let mut now = Nanos::ZERO;
            for call in 0..100_000_u64 {
                // After every thousandth call nothing comes for half a minute.
                now +=
                    Nanos(1_000_000_000 / per_s) + if call % 1000 == 999 { Nanos::from_secs(30) } else { Nanos::ZERO };
                while let Some(first) = ends.first_entry().filter(|first| first.key().0 <= now) {
                    let ((at, _), (pass, ok)) = first.remove_entry();
                    breaker.ended(at, pass, ok);
                }
                let kind = (dice.unit() * 11.0).ceil() as u32;
                let took = if kind == 11 { 10.0 } else { 0.1 + 0.5 * dice.unit() };
                let pass = breaker.allows(now).expect("closed");
                ends.insert((now + Nanos::from_secs_f64(took), call), (pass, kind <= 8));
            }
            assert_eq!(breaker.openings(), 0, "{per_s}");
        }
    }

    fn fails(breaker: &mut Breaker, now: Nanos, calls: u32) {
        let passes: Vec<BreakerPermit> = (0..calls).flat_map(|_| breaker.allows(now)).collect();
        passes.into_iter().for_each(|pass| breaker.ended(now, pass, false));
    }

    #[test]
    fn rests_double_while_probes_fail_and_one_success_closes_it() {
        let mut breaker = Breaker::new(BreakerRule::default());
        let mut now = Nanos::from_secs(100);
        fails(&mut breaker, now, 39);
        assert_eq!(breaker.state(now), State::Closed);
        fails(&mut breaker, now, 1);
        for rest in [1, 2, 4, 8, 16, 30, 30] {
            assert_eq!(breaker.state(now), State::Open);
            assert_eq!(breaker.allows(now).expect_err("open"), Nanos::from_secs(rest), "exactly");
            now += Nanos::from_secs(rest);
            assert_eq!(breaker.allows(now - Nanos(1)).expect_err("open"), Nanos(1));
            assert_eq!(breaker.state(now), State::HalfOpen);
            let probe = breaker.allows(now).expect("a probe");
            assert!(breaker.allows(now).is_err_and(|wait| wait == Nanos::SECOND), "one at a time");
            breaker.ended(now, probe, false);
        }
        now += Nanos::from_secs(30);
        let probe = breaker.allows(now).expect("a probe");
        breaker.ended(now, probe, true);
        assert_eq!((breaker.state(now), breaker.openings()), (State::Closed, 8));
        fails(&mut breaker, now, 40);
        assert_eq!(breaker.allows(now).expect_err("open"), Nanos::SECOND, "from the start");
    }

    #[test]
    fn a_probe_without_a_verdict_does_not_leave_it_half_open() {
        let mut breaker = Breaker::new(BreakerRule { probes: 2, ..BreakerRule::default() });
        fails(&mut breaker, Nanos::ZERO, 40);
        let now = Nanos::SECOND;
        let (one, two) = (breaker.allows(now).expect("a probe"), breaker.allows(now).expect("another"));
        assert!(breaker.allows(now).is_err());
        breaker.cancelled(one);
        let three = breaker.allows(now).expect("in its place");
        // Nobody says what became of the two.
        let lost = now + Nanos::from_secs(10);
        assert_eq!(breaker.allows(lost - Nanos(1)).expect_err("half open"), Nanos(1));
        let four = breaker.allows(lost).expect("in their place");
        breaker.ended(lost, two, false);
        breaker.ended(lost, three, true);
        assert_eq!(breaker.state(lost), State::HalfOpen, "their news is too old");
        let five = breaker.allows(lost).expect("the second of two");
        breaker.ended(lost, four, true);
        breaker.ended(lost, five, true);
        assert_eq!(breaker.state(lost), State::Closed);
    }

    #[test]
    fn calls_that_began_before_it_opened_do_not_open_it_again() {
        let mut breaker = Breaker::new(BreakerRule::default());
        let old: Vec<BreakerPermit> = (0..500).flat_map(|_| breaker.allows(Nanos::ZERO)).collect();
        fails(&mut breaker, Nanos::MILLI, 40);
        let now = Nanos::from_secs(2);
        let probe = breaker.allows(now).expect("a probe");
        breaker.ended(now, probe, true);
        old.into_iter().for_each(|pass| breaker.ended(now, pass, false));
        assert_eq!(breaker.state(now), State::Closed);
    }

    #[test]
    fn a_rule_that_cannot_be_meant_is_told_with_its_remedy() {
        let rule = BreakerRule::default();
        assert_eq!(rule.validation_error(), None);
        let faults = [
            BreakerRule { window: Nanos::ZERO, ..rule },
            BreakerRule { min_calls: 0, ..rule },
            BreakerRule { failure_fraction: 1.5, ..rule },
            BreakerRule { open_time: Nanos::ZERO, ..rule },
            BreakerRule { max_open_time: Nanos::MILLI, ..rule },
            BreakerRule { probes: 0, ..rule },
        ];
        let told = faults
            .map(|rule| rule.validation_error().map(|(what, remedy)| format!("{what}; {remedy}")).unwrap_or_default());
        assert_eq!(
            told,
            [
                "a window of 0ns holds no calls; make it longer than an attempt may take, e.g. 10s",
                "a share of 0 calls is none; make least 1 at least, e.g. 40",
                "a share of 1.5 is not possible; make it above 0 and 1 at most, e.g. 0.8",
                "a rest of 0ns is none; make it longer, e.g. 1s",
                "the longest rest (1ms) is shorter than the first (1s); make it 1s at least",
                "without probes it never closes again; make it 1 at least",
            ]
        );
    }
}
