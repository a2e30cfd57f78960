//! Options of the service.

use std::collections::HashSet;
use std::ops::Range;

use super::RateLimitHeaderSet;
use crate::number_range::check_number;
use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_limits::models::{LimitModel, LimitWindow};
use weir_workload::delay::{Delay, DelayRange};

/// Options of the service; the defaults are those of the reference rate-limited API.
#[derive(Clone, Debug)]
pub struct Options {
    /// Rate limits per key; a request has to be accepted by all.
    pub limits: Vec<LimitWindow>,
    /// Accepted API keys; generated without any.
    pub keys: Vec<String>,
    /// Number of generated keys; [`Self::DEFAULT_KEY_COUNT`] without it.
    pub key_count: Option<usize>,
    /// One-delay delay of requests.
    pub latency_in: OneWayDelay,
    /// One-delay delay of responses.
    pub latency_out: OneWayDelay,
    /// Number of rate-limit rejections that block a key for good; 0: never.
    pub block_after: u64,
    /// Query parameter with the weight of a request; none: weight 1.
    pub weight_by: Option<String>,
    /// Rate-limit headers of responses.
    pub headers: RateLimitHeaderSet,
    /// HTTP/1.1 with keep-alive; otherwise HTTP/1.0 with one response per connection.
    pub keep_alive: bool,
    /// Seed of the delays.
    pub seed: u64,
}

/// Distribution of a one-delay delay, with a resolution.
#[derive(Clone, Debug, PartialEq)]
pub struct OneWayDelay {
    delay: Delay,
    resolution: Nanos,
}

/// Keys of the reference rate-limited API.
const DEFAULT_KEYS: [&str; 5] = [
    "UT4NHL1J796WCHULA1750MXYF9F5JYA6",
    "8TY2F3KIL38T741G1UCBMCAQ75XU9F5O",
    "954IXKJN28CBDKHSKHURQIVLQHZIEEM9",
    "EUU46ID478HOO7GOXFASKPOZ9P91XGYS",
    "46V5EZ5K2DFAGW85J18L50SGO25WJ5JE",
];

impl Default for Options {
    fn default() -> Self {
        let delay = OneWayDelay::in_whole_millis(0..50);
        Self {
            limits: LimitWindow::new(LimitModel::SlidingLog, 20, Nanos::SECOND).into_iter().collect(),
            keys: Vec::new(),
            key_count: None,
            latency_in: delay.clone(),
            latency_out: delay,
            block_after: 10,
            weight_by: None,
            headers: RateLimitHeaderSet::default(),
            keep_alive: false,
            seed: 0,
        }
    }
}

impl OneWayDelay {
    /// Parses the syntax of [`Delay::read`]. A range between whole milliseconds, as `0ms..50ms`, gives whole
    /// milliseconds, both ends included.
    ///
    /// # Errors
    /// Expected syntax, in one line.
    pub fn read(text: &str) -> Result<Self, String> {
        let whole = |at: Nanos| at.0.is_multiple_of(Nanos::MILLI.0).then_some(at.as_millis());
        let delay = Delay::read(text)?;
        if let Delay::Uniform(DelayRange { low, high }) = delay
            && let (Some(low), Some(high)) = (whole(low), whole(high))
        {
            return Ok(Self::in_whole_millis(low..high));
        }
        Ok(Self { delay, resolution: Nanos(1) })
    }

    /// Uniform distribution over whole milliseconds, both ends included.
    fn in_whole_millis(range: Range<u64>) -> Self {
        let high = Nanos::from_millis(range.end) + (Nanos::MILLI - Nanos(1));
        let delay = Delay::Uniform(DelayRange { low: Nanos::from_millis(range.start), high });
        Self { delay, resolution: Nanos::MILLI }
    }

    /// Delay of request `number`.
    pub(super) fn at(&self, rng: &SeededRng, number: u64) -> Nanos {
        let delay = self.delay.at(rng, number);
        Nanos(delay.0 - delay.0 % self.resolution.0)
    }
}

impl Options {
    /// Default rate limit, by the default algorithm.
    pub const DEFAULT_LIMIT: &str = "20/1s";
    /// Default number of generated keys.
    pub const DEFAULT_KEY_COUNT: usize = DEFAULT_KEYS.len();

    /// Checks the options.
    ///
    /// # Errors
    /// First invalid option, by its flag, in one line.
    pub fn check(&self) -> Result<(), String> {
        if self.key_count.is_some() && !self.keys.is_empty() {
            return Err("--key cannot be used with --keys, the number of generated keys".to_owned());
        }
        check_number("keys", self.key_count.unwrap_or(1), 1..=100_000)?;
        if self.limits.is_empty() {
            return Err("no rate limit; add e.g. --limit 20/1s".to_owned());
        }
        let mut seen = HashSet::new();
        match self.keys.iter().find(|key| !seen.insert(*key)) {
            Some(key) => Err(format!("duplicate API key '{key}'; remove one")),
            None => Ok(()),
        }
    }

    /// Accepted API keys: those that are given, or generated ones.
    pub(super) fn accepted_keys(&self) -> Vec<String> {
        if self.keys.is_empty() {
            return generate_keys(self.key_count.unwrap_or(Self::DEFAULT_KEY_COUNT), self.seed);
        }
        self.keys.clone()
    }
}

/// `count` keys: those of the reference workload first, then keys of the same form, derived from the seed.
fn generate_keys(count: usize, seed: u64) -> Vec<String> {
    let mut rng = SeededRng::new(seed, 20);
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    let letter = move |_| char::from(letters[(rng.bits() % letters.len() as u64) as usize]);
    let mut others = (0..).map(letter);
    let others = std::iter::repeat_with(|| others.by_ref().take(32).collect());
    DEFAULT_KEYS.iter().map(|key| (*key).to_owned()).chain(others).take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_whole_milliseconds_is_uniform() {
        let (delay, rng) = (OneWayDelay::read("0ms..50ms").expect("valid"), SeededRng::new(1, 21));
        let mut counts = [0_u32; 51];
        for number in 0..51_000 {
            let took = delay.at(&rng, number);
            assert!(took.0.is_multiple_of(1_000_000));
            counts[(took.0 / 1_000_000) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn other_delays_keep_their_resolution() {
        let rng = SeededRng::new(1, 21);
        assert_eq!(OneWayDelay::read("3ms").map(|delay| delay.at(&rng, 7)), Ok(Nanos::from_millis(3)));
        let fine = OneWayDelay::read("10us..900us").expect("valid");
        assert!((0..100).map(|number| fine.at(&rng, number).0).all(|ns| (10_000..=900_000).contains(&ns)));
        assert!(OneWayDelay::read("fast").is_err());
    }

    #[test]
    fn keys_of_the_reference_workload_come_first() {
        assert_eq!(generate_keys(2, 9), DEFAULT_KEYS[..2]);
        let many = generate_keys(1000, 9);
        assert_eq!(many[..5], DEFAULT_KEYS);
        assert_eq!(many, generate_keys(1000, 9));
        assert_ne!(many[5], generate_keys(6, 8)[5]);
        assert!(many.iter().all(|key| key.len() == 32));
        assert_eq!(many.iter().collect::<std::collections::HashSet<_>>().len(), 1000);
    }
}
