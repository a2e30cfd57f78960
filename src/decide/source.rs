//! Which request to send next.

use super::dice::Dice;

/// A weighted choice among requests: which one the k-th arrival takes depends on the seed and k alone.
#[derive(Clone, Debug)]
pub struct RequestSource {
    /// Running sums of the weights, scaled so that the last is 1; never empty.
    bounds: Vec<f64>,
    dice: Dice,
}

impl RequestSource {
    /// A choice among `weights.len()` requests; none, or only zeros, counts as one request.
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
        Self { bounds, dice: Dice::new(seed, SOURCE_SALT) }
    }

    /// The index of the request for arrival `number`.
    pub fn pick(&self, number: u64) -> usize {
        if self.bounds.len() == 1 {
            return 0;
        }
        let u = self.dice.unit_at(number);
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
