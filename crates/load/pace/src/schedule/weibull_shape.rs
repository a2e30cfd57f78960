//! Shape of a Weibull distribution of gaps.

use serde::{Deserialize, Serialize};

/// Shape of a Weibull distribution of gaps with mean 1: below 1 arrivals come in bursts, 1 is Poisson, and above it they
/// are the more even the larger it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct WeibullShape {
    shape: f64,
    /// Mean of the distribution with scale 1.
    mean: f64,
}

impl WeibullShape {
    /// Smallest and largest value. Below, nearly all arrivals would be at once.
    const RANGE: std::ops::RangeInclusive<f64> = 0.1..=100.0;
    /// Coefficients of variation that a shape can have, and that are told apart.
    const VARIATIONS: std::ops::RangeInclusive<f64> = 0.05..=10.0;
    /// Halvings of the range of shapes: to the last bit.
    const HALVINGS: u32 = 64;

    /// Distribution of a shape.
    ///
    /// # Errors
    /// A shape out of its range.
    pub fn new(shape: f64) -> Result<Self, String> {
        match Self::RANGE.contains(&shape) {
            true => Ok(Self { shape, mean: ln_gamma(1.0 + 1.0 / shape).exp() }),
            false => Err(format!(
                "invalid shape {shape}; write a number from {} to {}",
                Self::RANGE.start(),
                Self::RANGE.end()
            )),
        }
    }

    /// Distribution with this coefficient of variation: standard deviation by mean.
    ///
    /// # Errors
    /// A coefficient that no shape has.
    pub fn of_variation(cv: f64) -> Result<Self, String> {
        if !Self::VARIATIONS.contains(&cv) {
            let (least, most) = (Self::VARIATIONS.start(), Self::VARIATIONS.end());
            return Err(format!("invalid coefficient of variation {cv}; write a number from {least} to {most}"));
        }
        // The larger the shape, the smaller the variation.
        let (mut low, mut high) = (*Self::RANGE.start(), *Self::RANGE.end());
        for _ in 0..Self::HALVINGS {
            let middle = (low * high).sqrt();
            if variation(middle) > cv {
                low = middle;
            } else {
                high = middle;
            }
        }
        Self::new(low)
    }

    /// Shape.
    pub fn shape(self) -> f64 {
        self.shape
    }

    /// Gap of mean 1, of an exponential one of mean 1.
    pub(super) fn gap(self, exponential: f64) -> f64 {
        exponential.powf(1.0 / self.shape) / self.mean
    }
}

/// Coefficient of variation of a Weibull distribution.
fn variation(shape: f64) -> f64 {
    let ln_ratio = ln_gamma(1.0 + 2.0 / shape) - 2.0 * ln_gamma(1.0 + 1.0 / shape);
    ln_ratio.exp_m1().max(0.0).sqrt()
}

/// Logarithm of the gamma function, for arguments from 1 (Lanczos 1964, with the coefficients of Godfrey for g = 7).
fn ln_gamma(x: f64) -> f64 {
    const G: f64 = 7.0;
    const FIRST_TERM: f64 = 0.999_999_999_999_809_9;
    const COEFFICIENTS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let sum = (1_u32..).zip(COEFFICIENTS).fold(FIRST_TERM, |sum, (at, part)| sum + part / (x + f64::from(at)));
    let t = x + G + 0.5;
    0.5 * std::f64::consts::TAU.ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

impl TryFrom<f64> for WeibullShape {
    type Error = String;

    fn try_from(shape: f64) -> Result<Self, String> {
        Self::new(shape)
    }
}

impl From<WeibullShape> for f64 {
    fn from(shape: WeibullShape) -> Self {
        shape.shape
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Moments of the distribution with scale 1, by the midpoints of its quantiles' exponentials: the integral of
    /// `t^(order / shape) e^-t`, in steps of the logarithm of t.
    fn moment(order: f64, shape: f64) -> f64 {
        const STEP: f64 = 1e-3;
        let steps = (-40_000..6_000).map(|k| (f64::from(k) + 0.5) * STEP);
        steps.map(|u| (u * (1.0 + order / shape) - u.exp()).exp() * STEP).sum()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Oracle: the moments by numeric integration.
        #[test]
        fn a_shape_has_the_variation_that_it_was_made_for(cv in 0.05..8.0_f64) {
            let shape = WeibullShape::of_variation(cv).expect("a shape");
            let (mean, square) = (moment(1.0, shape.shape()), moment(2.0, shape.shape()));
            let found = (square / (mean * mean) - 1.0).sqrt();
            prop_assert!((found / cv - 1.0).abs() < 1e-3, "{}: {}", cv, found);
            prop_assert!((mean / shape.mean - 1.0).abs() < 1e-6, "{} {}", mean, shape.mean);
        }
    }

    #[test]
    fn the_gamma_function_of_whole_numbers_is_a_factorial() {
        let mut factorial = 1.0_f64;
        for n in 1..20 {
            assert!((ln_gamma(f64::from(n)) - factorial.ln()).abs() < 1e-12, "{n}");
            factorial *= f64::from(n);
        }
    }

    #[test]
    fn shapes_and_variations_are_numbers_in_their_ranges() {
        for shape in [0.0, -1.0, f64::NAN, f64::INFINITY, 0.01] {
            assert!(WeibullShape::new(shape).is_err(), "{shape}");
        }
        for cv in [0.0, 0.01, 11.0, f64::NAN] {
            assert!(WeibullShape::of_variation(cv).is_err(), "{cv}");
        }
        assert!(WeibullShape::of_variation(1.0).is_ok_and(|one| (one.shape() - 1.0).abs() < 1e-9));
        assert_eq!(WeibullShape::try_from(0.5).map(f64::from), Ok(0.5));
    }
}
