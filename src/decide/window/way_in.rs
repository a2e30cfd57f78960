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
pub struct WayIn {
    given: Option<Nanos>,
    learns: bool,
    /// The longest round trip of this stretch of answers, and of the one before it.
    longest: [Nanos; 2],
    answers: u32,
    /// The longest few of this stretch, and of the one before it; the longest first.
    slowest: [[Nanos; SLOW]; 2],
    /// Answers since the last refusal, and how many it takes.
    clean: u64,
    patience: u64,
    /// Of the longest round trip, in percent; 100: only answers tell.
    share: u64,
    next_share: u64,
    /// When the bound was taken back last.
    taken_back: Nanos,
}

const STRETCH: u32 = 500;
const PATIENCE: u64 = 500;
/// In a stretch so many may be unusually slow: 2 %.
const SLOW: usize = 10;
/// Fewer answers tell nothing of what is usual.
const FEW: u32 = 250;
const HALF: u64 = 50;
const MARGIN_PERCENT: u64 = 110;
/// Shares above this gain nothing over waiting for the answer.
const MOST_SHARE: u64 = 98;

impl WayIn {
    /// It is never longer than this.
    pub fn given(bound: Nanos) -> Self {
        Self { given: Some(bound), ..Self::unknown() }
    }

    /// Only answers tell.
    pub fn unknown() -> Self {
        Self {
            given: None,
            learns: false,
            longest: [Nanos::ZERO; 2],
            answers: 0,
            slowest: [[Nanos::ZERO; SLOW]; 2],
            clean: 0,
            patience: PATIENCE,
            share: 100,
            next_share: HALF,
            taken_back: Nanos::ZERO,
        }
    }

    /// It is learnt from round trips and refusals.
    pub fn learnt() -> Self {
        Self { learns: true, ..Self::unknown() }
    }

    /// The bound; None: only answers tell.
    pub fn bound(&self) -> Option<Nanos> {
        let learnt = || {
            let longest = u128::from(self.longest[0].max(self.longest[1]).0);
            let bound = longest * u128::from(self.share * MARGIN_PERCENT) / 10_000;
            (self.share < 100).then(|| Nanos(u64::try_from(bound).unwrap_or(u64::MAX)))
        };
        self.given.or_else(learnt)
    }

    /// An answer came after so long, and was no refusal.
    pub fn answered(&mut self, round_trip: Nanos) {
        self.answers += 1;
        if self.answers > STRETCH {
            self.answers = 1;
            self.longest = [Nanos::ZERO, self.longest[0]];
            self.slowest = [[Nanos::ZERO; SLOW], self.slowest[0]];
        }
        if let Some(place) = self.slowest[0].iter().position(|slow| *slow < round_trip) {
            self.slowest[0][place..].rotate_right(1);
            self.slowest[0][place] = round_trip;
        }
        self.out_for(round_trip);
        self.clean += 1;
        if self.learns && self.clean >= self.patience {
            self.share = self.next_share;
        }
    }

    /// The time that 98 % of round trips do not exceed, if the bound is given and so may be broken; NEVER: not known yet.
    pub fn usual(&self) -> Nanos {
        let slow = match self.slowest[1][SLOW - 1] {
            // Of the first stretch it is as many as there may be so far; the first to answer are the quick ones.
            Nanos::ZERO => self.slowest[0].get(self.answers as usize / 50).filter(|_| self.answers >= FEW).copied(),
            slow => Some(slow),
        };
        slow.filter(|_| self.given.is_some()).unwrap_or(Nanos::NEVER)
    }

    /// A request has been out for so long already.
    pub fn out_for(&mut self, age: Nanos) {
        self.longest[0] = self.longest[0].max(age);
    }

    /// A request that was sent then was refused, or overtaken. Whether a bound that was learnt may be to blame; it is none
    /// any more.
    pub fn refused(&mut self, now: Nanos, sent: Nanos) -> bool {
        self.clean = 0;
        if self.share < 100 {
            self.next_share = (self.share + 100) / 2;
            self.patience = self.patience.saturating_mul(4);
            self.share = 100;
            self.learns = self.next_share < MOST_SHARE;
            self.taken_back = now;
        }
        sent < self.taken_back
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
        let mut way_in = WayIn::learnt();
        for n in 0..PATIENCE {
            assert_eq!(way_in.bound(), None);
            way_in.answered(ms(n % 101));
        }
        assert_eq!(way_in.bound(), Some(ms(55)));
        way_in.out_for(ms(200));
        assert_eq!(way_in.bound(), Some(ms(110)));
    }

    #[test]
    fn a_refusal_takes_the_bound_back_and_few_are_ever_risked() {
        let mut way_in = WayIn::learnt();
        let mut refusals = 0;
        for n in 1..1_000_000 {
            way_in.answered(ms(100));
            if way_in.bound().is_some() {
                assert!(way_in.refused(ms(n), ms(n - 1)));
                assert!(!way_in.refused(ms(n), ms(n)), "what was sent after that has another reason");
                assert_eq!(way_in.bound(), None);
                refusals += 1;
            }
        }
        assert_eq!(refusals, 5);
    }

    #[test]
    fn what_is_usual_is_what_nearly_all_of_the_last_stretch_took() {
        let mut way_in = WayIn::given(ms(50));
        for n in 0..STRETCH {
            assert_eq!(way_in.usual() == Nanos::NEVER, n < FEW);
            // Five out of five hundred stand still.
            way_in.answered(if n % 100 == 7 { ms(1000) } else { ms(u64::from(n % 100)) });
        }
        way_in.answered(ms(1000));
        assert_eq!(way_in.usual(), ms(99));
        let mut learnt = WayIn::learnt();
        (0..2 * STRETCH).for_each(|_| learnt.answered(ms(100)));
        assert_eq!(learnt.usual(), Nanos::NEVER, "a bound that is learnt covers what was seen");
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let mut way_in = WayIn::learnt();
        way_in.answered(ms(1000));
        (0..2 * STRETCH).for_each(|_| way_in.answered(ms(10)));
        assert_eq!(way_in.bound(), Some(Nanos(5_500_000)));
        let mut given = WayIn::given(ms(50));
        assert!(!given.refused(ms(2), ms(1)));
        assert_eq!(given.bound(), Some(ms(50)));
    }
}
