//! Request mix of a load: which request an arrival sends.

use weir_base::rng::SeededRng;

/// Weighted random choice among requests: a function of the seed and the number of the arrival alone.
#[derive(Clone, Debug)]
pub struct RequestSource {
    /// Running sums of the weights, scaled to a total of 1; never empty.
    bounds: Vec<f64>,
    rng: SeededRng,
}

impl RequestSource {
    /// Choice among `weights.len()` requests; without weights, or with zeros only, there is one request.
    pub fn new(weights: &[f64], seed: u64) -> Self {
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        let mut bounds: Vec<f64> = weights
            .iter()
            .map(|w| {
                sum += w;
                sum / total
            })
            .collect();
        if bounds.is_empty() || total <= 0.0 {
            bounds = vec![1.0];
        }
        Self { bounds, rng: SeededRng::new(seed, SOURCE_SALT) }
    }

    /// Index of the request for arrival `number`.
    pub fn pick(&self, number: u64) -> usize {
        if self.bounds.len() == 1 {
            return 0;
        }
        let u = self.rng.unit_at(number);
        self.bounds.partition_point(|b| *b < u).min(self.bounds.len() - 1)
    }
}

const SOURCE_SALT: u64 = 2;

#[cfg(test)]
mod tests {
    use super::RequestSource;

    #[test]
    fn requests_come_in_the_shares_of_their_weights() {
        let source = RequestSource::new(&[1.0, 0.0, 3.0], 9);
        let mut counts = [0_u32; 3];
        for k in 0..40_000 {
            counts[source.pick(k)] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!(counts[0].abs_diff(10_000) < 300, "{counts:?}");
    }

    #[test]
    fn the_same_seed_picks_the_same_in_any_order() {
        let source = RequestSource::new(&[1.0; 7], 3);
        let forwards: Vec<usize> = (0..100).map(|k| source.pick(k)).collect();
        let mut backwards: Vec<usize> = (0..100).rev().map(|k| source.pick(k)).collect();
        backwards.reverse();
        assert_eq!(forwards, backwards);
    }
}
