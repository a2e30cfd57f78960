//! How long calls took of late: a quantile of recent response times, in fixed memory.
//!
//! Two periods are kept, the one that goes on and the one before it, so that an estimate always has a whole period
//! behind it and forgets within two. Times are counted in buckets less than 1 % wide; the estimate is the upper edge of
//! the bucket that holds the quantile, so it is never below the quantile of what was recorded and at most 1 % above.
//!
//! What is recorded is for the caller to choose, and matters. A hedge that waits for a quantile of *first attempts*
//! must also record those that lost, with the time after which they were cancelled: leave them out, and the slow ones
//! are missing, the quantile shrinks, more copies are launched, and more slow ones are missing. Such a time is too
//! short (the attempt would have taken longer), so quantiles above the share of cancelled attempts are too low; the
//! quantile that is waited for is not, since a loser was cancelled after it.

use super::Nanos;

/// Fewer times than this have no quantile.
pub const FEWEST: u64 = 100;

/// An estimate is used again for so long.
const FRESH: Nanos = Nanos::from_millis(20);
/// A period that has too few times goes on, but not longer than so many periods.
const MOST_PERIODS: u64 = 60;

/// Below 2^4 ns nothing is told apart; every doubling from 2^11 ns has 2^7 buckets; all from 2^42 ns (73 min) is one.
const UNIT_BITS: u32 = 4;
const SPLIT_BITS: u32 = 7;
const BUCKETS: usize = 32 << SPLIT_BITS;

#[derive(Clone, Debug)]
struct Period {
    counts: Vec<u32>,
    total: u64,
}

/// An estimate that was made.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    q: f64,
    made: Nanos,
    value: Nanos,
}

/// The times of the last one to two periods.
///
/// Memory is fixed: 32 KiB. A record costs some nanoseconds, and so does a question: it is answered from memory, and
/// anew every 20 ms.
#[derive(Clone, Debug)]
pub struct Recent {
    period: Nanos,
    began: Nanos,
    current: Period,
    before: Period,
    /// One for each quantile that is asked for, up to four.
    estimates: [Option<Estimate>; 4],
}

impl Default for Recent {
    /// Periods of ten seconds.
    fn default() -> Self {
        Self::new(Nanos::from_secs(10))
    }
}

impl Recent {
    /// Nothing is known yet.
    pub fn new(period: Nanos) -> Self {
        let empty = Period { counts: vec![0; BUCKETS], total: 0 };
        let period = period.max(Nanos(1));
        Self { period, began: Nanos::ZERO, current: empty.clone(), before: empty, estimates: [None; 4] }
    }

    /// Something took so long, and ended now.
    pub fn record(&mut self, now: Nanos, took: Nanos) {
        self.rotate(now);
        let count = &mut self.current.counts[bucket(took)];
        *count = count.saturating_add(1);
        self.current.total += 1;
    }

    /// The time that this share took at most; None while fewer than [`FEWEST`] are known.
    ///
    /// It may be 20 ms old. [`Nanos::NEVER`] stands for more than 73 minutes.
    pub fn quantile(&mut self, now: Nanos, q: f64) -> Option<Nanos> {
        self.rotate(now);
        if self.len() < FEWEST {
            return None;
        }
        let same = |slot: &Option<Estimate>| slot.is_some_and(|known| known.q.to_bits() == q.to_bits());
        let place = self.estimates.iter().position(same);
        if let Some(known) = place.and_then(|place| self.estimates[place])
            && now < known.made + FRESH
        {
            return Some(known.value);
        }
        let value = self.estimate(q);
        let place = place.or_else(|| self.estimates.iter().position(Option::is_none)).unwrap_or(0);
        self.estimates[place] = Some(Estimate { q, made: now, value });
        Some(value)
    }

    /// How many times are known.
    pub fn len(&self) -> u64 {
        self.current.total + self.before.total
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn estimate(&self, q: f64) -> Nanos {
        // From above, for the quantiles that are asked for are high ones.
        let total = self.len();
        let rank = ((q * total as f64).ceil() as u64).clamp(1, total);
        let mut above = total - rank;
        for number in (0..BUCKETS).rev() {
            let here = u64::from(self.current.counts[number]) + u64::from(self.before.counts[number]);
            if here > above {
                return upper_edge(number);
            }
            above -= here;
        }
        Nanos::NEVER
    }

    /// Lets the next period begin if it is time. One with too few times goes on instead: a service that is seldom
    /// called has an estimate, too.
    fn rotate(&mut self, now: Nanos) {
        let age = now - self.began;
        if age < self.period {
            return;
        }
        let forgotten = age.0 / self.period.0 >= MOST_PERIODS;
        if self.current.total < FEWEST && !forgotten {
            return;
        }
        std::mem::swap(&mut self.current, &mut self.before);
        self.current.clear();
        if forgotten {
            self.before.clear();
        }
        self.began = now;
        self.estimates = [None; 4];
    }
}

impl Period {
    fn clear(&mut self) {
        self.counts.fill(0);
        self.total = 0;
    }
}

fn bucket(took: Nanos) -> usize {
    let units = took.0 >> UNIT_BITS;
    // How often it must be halved until 8 bits are left, of which the first is always 1.
    let halvings = (u64::BITS - units.leading_zeros()).saturating_sub(SPLIT_BITS + 1);
    let number = ((halvings as usize) << SPLIT_BITS) + (units >> halvings) as usize;
    number.min(BUCKETS - 1)
}

/// The greatest time in a bucket.
fn upper_edge(number: usize) -> Nanos {
    if number >= BUCKETS - 1 {
        return Nanos::NEVER;
    }
    let halvings = (number >> SPLIT_BITS).saturating_sub(1);
    let units = (number - (halvings << SPLIT_BITS) + 1) as u64;
    Nanos((units << halvings << UNIT_BITS) - 1)
}
