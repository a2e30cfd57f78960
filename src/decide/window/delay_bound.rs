//! How long the way in can be, if nobody says so.
//!
//! All that is seen is the way there and back. It bounds the way in, but only once it is over: at first, therefore, only
//! an answer tells that a request has arrived, and nothing can go wrong. When many answers have come without a refusal,
//! half of the longest round trip of late, and a tenth more, is taken for the bound: most ways are about as long in as
//! out. A refusal takes that back at once. The next try is nearer to the whole of it and comes after four times as many
//! answers; after five refusals there is none. A request that is out longer than any before it raises the bound while it
//! is out.
//!
//! A bound that is given may be broken all the same: a packet is lost and sent again, a machine stands still. Such a request
//! shows itself by its round trip, which is longer than nearly all of late; only its answer tells that it has arrived.

use super::Nanos;

/// The bound on the way in, for all keys of a service.
#[derive(Clone, Copy, Debug)]
pub struct OneWayDelayBound {
    fixed: Option<Nanos>,
    learns: bool,
    /// The longest round trip of this stretch of answers, and of the one before it.
    longest_round_trips: [Nanos; 2],
    responses: u32,
    /// The longest few of this stretch, and of the one before it; the longest first.
    slowest_round_trips: [[Nanos; SLOW_RESPONSES]; 2],
    /// Answers since the last refusal, and how many it takes.
    responses_since_rejection: u64,
    required_responses: u64,
    /// Of the longest round trip, in percent; 100: only answers tell.
    percent: u64,
    next_percent: u64,
    /// When the bound was taken back last.
    revoked_at: Nanos,
}

const INTERVAL_RESPONSES: u32 = 500;
const MIN_RESPONSES_TO_LEARN: u64 = 500;
/// In a stretch so many may be unusually slow: 2 %.
const SLOW_RESPONSES: usize = 10;
/// Fewer answers tell nothing of what is usual.
const MIN_USUAL_RESPONSES: u32 = 250;
const FIRST_PERCENT: u64 = 50;
const MARGIN_PERCENT: u64 = 110;
/// Shares above this gain nothing over waiting for the answer.
const MAX_PERCENT: u64 = 98;

impl OneWayDelayBound {
    /// It is never longer than this.
    pub fn fixed(bound: Nanos) -> Self {
        Self { fixed: Some(bound), ..Self::unknown() }
    }

    /// Only answers tell.
    pub fn unknown() -> Self {
        Self {
            fixed: None,
            learns: false,
            longest_round_trips: [Nanos::ZERO; 2],
            responses: 0,
            slowest_round_trips: [[Nanos::ZERO; SLOW_RESPONSES]; 2],
            responses_since_rejection: 0,
            required_responses: MIN_RESPONSES_TO_LEARN,
            percent: 100,
            next_percent: FIRST_PERCENT,
            revoked_at: Nanos::ZERO,
        }
    }

    /// It is learnt from round trips and refusals.
    pub fn learnt() -> Self {
        Self { learns: true, ..Self::unknown() }
    }

    /// The bound; None: only answers tell.
    pub fn bound(&self) -> Option<Nanos> {
        let learnt = || {
            let longest = u128::from(self.longest_round_trips[0].max(self.longest_round_trips[1]).0);
            let bound = longest * u128::from(self.percent * MARGIN_PERCENT) / 10_000;
            (self.percent < 100).then(|| Nanos(u64::try_from(bound).unwrap_or(u64::MAX)))
        };
        self.fixed.or_else(learnt)
    }

    /// An answer came after so long, and was no refusal.
    pub fn responded(&mut self, round_trip: Nanos) {
        self.responses += 1;
        if self.responses > INTERVAL_RESPONSES {
            self.responses = 1;
            self.longest_round_trips = [Nanos::ZERO, self.longest_round_trips[0]];
            self.slowest_round_trips = [[Nanos::ZERO; SLOW_RESPONSES], self.slowest_round_trips[0]];
        }
        if let Some(place) = self.slowest_round_trips[0].iter().position(|slow| *slow < round_trip) {
            self.slowest_round_trips[0][place..].rotate_right(1);
            self.slowest_round_trips[0][place] = round_trip;
        }
        self.outstanding_for(round_trip);
        self.responses_since_rejection += 1;
        if self.learns && self.responses_since_rejection >= self.required_responses {
            self.percent = self.next_percent;
        }
    }

    /// The time that 98 % of round trips do not exceed, if the bound is given and so may be broken; NEVER: not known yet.
    pub fn usual_round_trip(&self) -> Nanos {
        let slow = match self.slowest_round_trips[1][SLOW_RESPONSES - 1] {
            // Of the first stretch it is as many as there may be so far; the first to answer are the quick ones.
            Nanos::ZERO => self.slowest_round_trips[0]
                .get(self.responses as usize / 50)
                .filter(|_| self.responses >= MIN_USUAL_RESPONSES)
                .copied(),
            slow => Some(slow),
        };
        slow.filter(|_| self.fixed.is_some()).unwrap_or(Nanos::NEVER)
    }

    /// A request has been out for so long already.
    pub fn outstanding_for(&mut self, age: Nanos) {
        self.longest_round_trips[0] = self.longest_round_trips[0].max(age);
    }

    /// A request that was sent then was refused, or overtaken. Whether a bound that was learnt may be to blame; it is none
    /// any more.
    pub fn rejected(&mut self, now: Nanos, sent: Nanos) -> bool {
        self.responses_since_rejection = 0;
        if self.percent < 100 {
            self.next_percent = (self.percent + 100) / 2;
            self.required_responses = self.required_responses.saturating_mul(4);
            self.percent = 100;
            self.learns = self.next_percent < MAX_PERCENT;
            self.revoked_at = now;
        }
        sent < self.revoked_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    #[test]
    fn a_bound_is_learnt_from_many_answers_and_raised_at_once() {
        let mut way_in = OneWayDelayBound::learnt();
        for n in 0..MIN_RESPONSES_TO_LEARN {
            assert_eq!(way_in.bound(), None);
            way_in.responded(ms(n % 101));
        }
        assert_eq!(way_in.bound(), Some(ms(55)));
        way_in.outstanding_for(ms(200));
        assert_eq!(way_in.bound(), Some(ms(110)));
    }

    #[test]
    fn a_refusal_takes_the_bound_back_and_few_are_ever_risked() {
        let mut way_in = OneWayDelayBound::learnt();
        let mut refusals = 0;
        for n in 1..1_000_000 {
            way_in.responded(ms(100));
            if way_in.bound().is_some() {
                assert!(way_in.rejected(ms(n), ms(n - 1)));
                assert!(!way_in.rejected(ms(n), ms(n)), "what was sent after that has another reason");
                assert_eq!(way_in.bound(), None);
                refusals += 1;
            }
        }
        assert_eq!(refusals, 5);
    }

    #[test]
    fn what_is_usual_is_what_nearly_all_of_the_last_stretch_took() {
        let mut way_in = OneWayDelayBound::fixed(ms(50));
        for n in 0..INTERVAL_RESPONSES {
            assert_eq!(way_in.usual_round_trip() == Nanos::NEVER, n < MIN_USUAL_RESPONSES);
            // Five out of five hundred stand still.
            way_in.responded(if n % 100 == 7 { ms(1000) } else { ms(u64::from(n % 100)) });
        }
        way_in.responded(ms(1000));
        assert_eq!(way_in.usual_round_trip(), ms(99));
        let mut learnt = OneWayDelayBound::learnt();
        (0..2 * INTERVAL_RESPONSES).for_each(|_| learnt.responded(ms(100)));
        assert_eq!(learnt.usual_round_trip(), Nanos::NEVER, "a bound that is learnt covers what was seen");
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let mut way_in = OneWayDelayBound::learnt();
        way_in.responded(ms(1000));
        (0..2 * INTERVAL_RESPONSES).for_each(|_| way_in.responded(ms(10)));
        assert_eq!(way_in.bound(), Some(Nanos(5_500_000)));
        let mut given = OneWayDelayBound::fixed(ms(50));
        assert!(!given.rejected(ms(2), ms(1)));
        assert_eq!(given.bound(), Some(ms(50)));
    }
}
