//! How far apart two samples are, and how well that is known: a studentised bootstrap over runs.
//!
//! The plain percentile bootstrap of five runs calls far too many differences: resamples of few values are too much
//! alike. Here each resample is measured in its own standard errors (Efron and Tibshirani, "An Introduction to the
//! Bootstrap", 1993, ch. 12.5), which makes up for that; the mean is a trimmed one, as a single disturbed run is no rarity
//! (Wilcox, "Introduction to Robust Estimation and Hypothesis Testing", 5th ed., ch. 4.4 and 5.4).

use crate::decide::dice::Dice;

/// Resamples: enough for a p-value of 0.0005 to mean something.
const RESAMPLES: usize = 9_999;

/// A difference of two samples on the flat scale.
#[derive(Clone, Debug)]
pub(super) struct Shift {
    /// The difference.
    pub(super) at: f64,
    /// Its standard error; never 0.
    error: f64,
    /// How many standard errors resamples lie away from it, in rising order.
    distances: Vec<f64>,
}

/// A trimmed mean and its squared standard error.
#[derive(Clone, Copy, Debug)]
struct Middle {
    mean: f64,
    error_squared: f64,
}

impl Shift {
    /// From differences by round.
    pub(super) fn paired(differences: &[f64], dice: Dice) -> Self {
        Self::of(&[differences], |middles| middles[0].mean, dice)
    }

    /// Of `other` from `base`, whose runs have nothing to do with each other.
    pub(super) fn apart(base: &[f64], other: &[f64], dice: Dice) -> Self {
        Self::of(&[base, other], |middles| middles[1].mean - middles[0].mean, dice)
    }

    fn of(sides: &[&[f64]], difference: impl Fn(&[Middle]) -> f64, mut dice: Dice) -> Self {
        let error = |middles: &[Middle]| middles.iter().map(|middle| middle.error_squared).sum::<f64>().sqrt();
        let mut scratch = sides.concat();
        let mut middles: Vec<Middle> = sides.iter().map(|side| middle(&mut side.to_vec())).collect();
        let at = difference(&middles);
        // Equal figures have no error; rounding has.
        let error_of_all = error(&middles).max(1e-9);
        let mut distances = Vec::with_capacity(RESAMPLES);
        for _ in 0..RESAMPLES {
            for (side, middle_of) in sides.iter().zip(&mut middles) {
                let drawn = &mut scratch[..side.len()];
                drawn.fill_with(|| side[dice.below(side.len())]);
                *middle_of = middle(drawn);
            }
            let away = (difference(&middles) - at).abs();
            // A resample of equal values knows no error: as far away as can be, which is the careful side.
            distances.push(match error(&middles) {
                error if error > 1e-12 => away / error,
                _ if away > 1e-12 => f64::INFINITY,
                _ => 0.0,
            });
        }
        distances.sort_unstable_by(f64::total_cmp);
        Self { at, error: error_of_all, distances }
    }

    /// How likely a difference this far from `truth` would be if that were the true one; two-sided, in (0, 1].
    pub(super) fn p(&self, truth: f64) -> f64 {
        let distance = (self.at - truth).abs() / self.error;
        let below = self.distances.partition_point(|d| *d < distance);
        (1 + self.distances.len() - below) as f64 / (1 + self.distances.len()) as f64
    }

    /// How likely it would be to look this far inside (-`edge`, `edge`) from outside of it; one-sided, the larger of the
    /// two (the two one-sided tests of Schuirmann).
    pub(super) fn p_outside(&self, edge: f64) -> f64 {
        if self.at.abs() >= edge { 1.0 } else { (self.p(self.at.signum() * edge) / 2.0).max(self.p(-self.at.signum() * edge) / 2.0) }
    }

    /// Half the width of the interval that holds the true difference with this confidence.
    pub(super) fn half_width(&self, confidence: f64) -> f64 {
        let rank = (confidence * (self.distances.len() + 1) as f64).ceil() as usize;
        let distance = self.distances.get(rank.saturating_sub(1)).copied().unwrap_or(f64::INFINITY);
        distance * self.error
    }
}

/// The mean of the middle three fifths; sorts the values.
fn middle(values: &mut [f64]) -> Middle {
    values.sort_unstable_by(f64::total_cmp);
    let (n, cut) = (values.len(), values.len() / 5);
    let kept = &values[cut..n - cut];
    let mean = kept.iter().sum::<f64>() / kept.len() as f64;
    // Winsorised: what is cut counts as the outermost that is kept.
    let (low, high) = (kept[0], kept[kept.len() - 1]);
    let whole = (kept.iter().sum::<f64>() + cut as f64 * (low + high)) / n as f64;
    let squares = values.iter().map(|value| (value.clamp(low, high) - whole).powi(2)).sum::<f64>();
    let kept = kept.len() as f64;
    Middle { mean, error_squared: squares / (kept * (kept - 1.0)) }
}
