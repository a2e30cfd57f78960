//! Quantiles of recent response times, in fixed memory.
//!
//! Two periods are kept, the current and the previous one, so that an estimate covers at least a whole period and
//! forgets within two. Times are counted in buckets less than 1% wide; the estimate is the upper edge of the quantile's
//! bucket, never below the quantile of the recorded times and at most 1% above. Where there are many of them and a
//! rough estimate is enough, [`LatencyQuantile::coarse`] has wider buckets, and fewer.
//!
//! The selection of samples matters. A hedge that waits for a quantile of *first attempts* must also record those that
//! were cancelled, with their time until then: without them slow ones are missing, the quantile falls, more hedges are
//! sent, and more slow ones are missing. Such a time is too short, so quantiles above the fraction of cancelled
//! attempts are too low; the hedge's own quantile is not, since attempts are cancelled after it.

use weir_base::Nanos;

/// Samples below which there is no quantile.
pub const MIN_SAMPLES: u64 = 100;

/// Lifetime of a cached estimate.
const ESTIMATE_TTL: Nanos = Nanos::from_millis(20);
/// A period with too few samples is prolonged, up to this many periods.
const MAX_PERIODS: u64 = 60;

/// Resolution: 2^4 ns up to 2^11 ns; then 2^7 buckets per doubling; one bucket from 2^42 ns (73 min).
const UNIT_BITS: u32 = 4;
const SPLIT_BITS: u32 = 7;
/// The same, coarse: 2^4 ns up to 2^7 ns; then 2^3 buckets per doubling; one bucket from 2^38 ns (4.6 min).
const COARSE_SPLIT_BITS: u32 = 3;

#[derive(Clone, Debug)]
struct LatencyPeriod {
    counts: Vec<u32>,
    total: u64,
}

/// Cached estimate.
#[derive(Clone, Copy, Debug)]
struct QuantileEstimate {
    q: f64,
    made: Nanos,
    value: Nanos,
}

/// Quantiles of the times of the last one to two periods.
///
/// Memory is fixed: 32 KiB, or 2 KiB if coarse. A record costs some nanoseconds, and so does a query: estimates are cached for 20 ms.
#[derive(Clone, Debug)]
pub struct LatencyQuantile {
    split_bits: u32,
    period: Nanos,
    started: Nanos,
    current: LatencyPeriod,
    previous: LatencyPeriod,
    /// Cached estimates, one per quantile, up to four.
    estimates: [Option<QuantileEstimate>; 4],
}

impl Default for LatencyQuantile {
    /// Periods of ten seconds.
    fn default() -> Self {
        Self::new(Nanos::from_secs(10))
    }
}

impl LatencyQuantile {
    /// No samples.
    pub fn new(period: Nanos) -> Self {
        Self::with_resolution(period, SPLIT_BITS)
    }

    /// No samples, and buckets less than 13% wide: the estimate is at most 13% above the quantile.
    pub fn coarse(period: Nanos) -> Self {
        Self::with_resolution(period, COARSE_SPLIT_BITS)
    }

    fn with_resolution(period: Nanos, split_bits: u32) -> Self {
        let empty = LatencyPeriod { counts: vec![0; bucket_count(split_bits)], total: 0 };
        let period = period.max(Nanos(1));
        Self { split_bits, period, started: Nanos::ZERO, current: empty.clone(), previous: empty, estimates: [None; 4] }
    }

    /// Records a time that ended now.
    pub fn record(&mut self, now: Nanos, time: Nanos) {
        self.rotate(now);
        let count = &mut self.current.counts[bucket(self.split_bits, time)];
        *count = count.saturating_add(1);
        self.current.total += 1;
    }

    /// The `q` quantile, `q` in (0, 1]; `None` with fewer than [`MIN_SAMPLES`] samples.
    ///
    /// Up to 20 ms old. [`Nanos::NEVER`] stands for more than 73 minutes.
    pub fn quantile(&mut self, now: Nanos, q: f64) -> Option<Nanos> {
        self.rotate(now);
        if self.len() < MIN_SAMPLES {
            return None;
        }
        let same = |slot: &Option<QuantileEstimate>| slot.is_some_and(|cached| cached.q.to_bits() == q.to_bits());
        let slot = self.estimates.iter().position(same);
        if let Some(cached) = slot.and_then(|slot| self.estimates[slot])
            && now < cached.made + ESTIMATE_TTL
        {
            return Some(cached.value);
        }
        let value = self.estimate(q);
        let slot = slot.or_else(|| self.estimates.iter().position(Option::is_none)).unwrap_or(0);
        self.estimates[slot] = Some(QuantileEstimate { q, made: now, value });
        Some(value)
    }

    /// Number of samples.
    pub fn len(&self) -> u64 {
        self.current.total + self.previous.total
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn estimate(&self, q: f64) -> Nanos {
        // From above, since usual quantiles are high.
        let total = self.len();
        let rank = ((q * total as f64).ceil() as u64).clamp(1, total);
        let mut above = total - rank;
        for number in (0..self.current.counts.len()).rev() {
            let here = u64::from(self.current.counts[number]) + u64::from(self.previous.counts[number]);
            if here > above {
                return upper_edge(self.split_bits, number);
            }
            above -= here;
        }
        Nanos::NEVER
    }

    /// Begins the next period if it is time. A period with too few samples is prolonged: a service with few calls has
    /// an estimate, too.
    fn rotate(&mut self, now: Nanos) {
        let age = now - self.started;
        if age < self.period {
            return;
        }
        let forgotten = age.0 / self.period.0 >= MAX_PERIODS;
        if self.current.total < MIN_SAMPLES && !forgotten {
            return;
        }
        std::mem::swap(&mut self.current, &mut self.previous);
        self.current.clear();
        if forgotten {
            self.previous.clear();
        }
        self.started = now;
        self.estimates = [None; 4];
    }
}

impl LatencyPeriod {
    fn clear(&mut self) {
        self.counts.fill(0);
        self.total = 0;
    }
}

fn bucket_count(split_bits: u32) -> usize {
    32 << split_bits
}

fn bucket(split_bits: u32, time: Nanos) -> usize {
    let units = time.0 >> UNIT_BITS;
    // Halvings until `split_bits` + 1 bits are left, of which the first is always 1.
    let halvings = (u64::BITS - units.leading_zeros()).saturating_sub(split_bits + 1);
    let number = ((halvings as usize) << split_bits) + (units >> halvings) as usize;
    number.min(bucket_count(split_bits) - 1)
}

/// Longest time in a bucket.
fn upper_edge(split_bits: u32, number: usize) -> Nanos {
    if number >= bucket_count(split_bits) - 1 {
        return Nanos::NEVER;
    }
    let halvings = (number >> split_bits).saturating_sub(1);
    let units = (number - (halvings << split_bits) + 1) as u64;
    Nanos((units << halvings << UNIT_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_time_is_in_a_bucket_less_than_one_percent_wide_or_thirteen() {
        for (split_bits, percent, minutes) in [(SPLIT_BITS, 1, 73), (COARSE_SPLIT_BITS, 13, 4)] {
            let last_bucket = bucket_count(split_bits) - 1;
            let mut last = None;
            for number in 0..last_bucket {
                let edge = upper_edge(split_bits, number);
                let both = [edge, Nanos(edge.0 + 1)].map(|time| bucket(split_bits, time));
                assert_eq!(both, [number, number + 1]);
                if let Some(Nanos(last)) = last {
                    assert!(
                        edge.0 - last == 1 << UNIT_BITS || (edge.0 - last) * 100 <= percent * last,
                        "{number}: {last}"
                    );
                }
                last = Some(edge);
            }
            assert_eq!(
                (bucket(split_bits, Nanos::NEVER), upper_edge(split_bits, last_bucket)),
                (last_bucket, Nanos::NEVER)
            );
            assert!(upper_edge(split_bits, last_bucket - 1) > Nanos::from_secs(minutes * 60));
        }
    }

    #[test]
    fn a_hundred_samples_give_the_first_estimate() {
        let mut recent = LatencyQuantile::default();
        for n in 0..MIN_SAMPLES {
            assert_eq!((recent.is_empty(), recent.len()), (n == 0, n));
            assert_eq!(recent.quantile(Nanos::from_millis(n), 0.9), None);
            recent.record(Nanos::from_millis(n), Nanos::from_millis(n));
        }
        let estimate = recent.quantile(Nanos::from_millis(100), 0.9).unwrap_or_default().as_millis_f64();
        assert!((89.0..90.0).contains(&estimate), "{estimate}");
    }

    #[test]
    fn slow_times_are_forgotten_within_two_periods() {
        let mut recent = LatencyQuantile::new(Nanos::from_secs(10));
        let mut at = |ms: u64, time: u64| {
            recent.record(Nanos::from_millis(ms), Nanos::from_millis(time));
            recent.quantile(Nanos::from_millis(ms), 0.5).map(|time| time.as_millis_f64().round())
        };
        let half: Vec<_> = (0..40_000_u64).step_by(10).map(|ms| at(ms, if ms < 10_000 { 100 } else { 10 })).collect();
        assert_eq!(half[500], Some(100.0));
        assert_eq!((half[2100], half[3999]), (Some(10.0), Some(10.0)));
        assert_eq!(recent.quantile(Nanos::from_secs(10_000), 0.5), None, "after a long silence");
    }

    #[test]
    fn a_service_with_few_calls_has_an_estimate() {
        let mut recent = LatencyQuantile::default();
        let cached = (0..400).map(|s| {
            recent.record(Nanos::from_secs(s), Nanos::MILLI);
            recent.quantile(Nanos::from_secs(s), 0.99)
        });
        assert!(cached.skip(100).all(|cached| cached.is_some()));
    }

    proptest! {
        #[test]
        fn an_estimate_is_the_quantile_or_up_to_one_percent_above(
            times in prop::collection::vec(prop_oneof![0_u64..1000, 0_u64..1 << 36, 1_000_000_u64..90_000_000], 100..400),
            q in prop_oneof![0.0..=1.0_f64, Just(0.5), Just(0.98), Just(0.999)],
        ) {
            let mut recent = LatencyQuantile::default();
            // Half in the previous period.
            for (k, time) in times.iter().enumerate() {
                let now = if k < times.len() / 2 { Nanos(1) } else { Nanos::from_secs(11) };
                recent.record(now, Nanos(*time));
            }
            let mut sorted = times.clone();
            sorted.sort_unstable();
            let rank = ((q * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len());
            let exact = sorted[rank - 1];
            let estimate = recent.quantile(Nanos::from_secs(12), q).unwrap_or_default().0;
            prop_assert!(estimate >= exact && estimate - exact <= (exact / 100).max(16), "{estimate} for {exact}");
            prop_assert_eq!(recent.quantile(Nanos::from_secs(12), q), Some(Nanos(estimate)));
        }

        #[test]
        fn no_times_make_it_panic(records in prop::collection::vec((any::<u64>(), any::<u64>(), any::<f64>()), 1..300)) {
            let mut recent = LatencyQuantile::new(Nanos(records[0].0 >> 40));
            for (now, time, q) in records {
                recent.record(Nanos(now), Nanos(time));
                recent.quantile(Nanos(now), q);
            }
        }
    }
}
