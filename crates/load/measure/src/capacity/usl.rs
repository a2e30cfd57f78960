//! Fit of the universal scalability law: throughput over users.
//!
//! X(N) = g N / (1 + a (N - 1) + b N (N - 1)): g is the throughput of one user, a the loss by contention, b the loss by
//! coherency (Gunther, "Guerrilla Capacity Planning", 2007). N / X is linear in 1/g, a/g and b/g, so the fit is linear,
//! with non-negative coefficients and relative residuals.

use serde::{Deserialize, Serialize};

/// Throughput at a number of users.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct UslPoint {
    /// Number of users, or connections.
    pub users: f64,
    /// Responses per second.
    pub rate_per_s: f64,
}

/// Fitted law.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usl {
    /// Throughput of one user, per second.
    pub per_user: f64,
    /// Contention: fraction of work that waits for others.
    pub contention: f64,
    /// Coherency: cost of each pair of users.
    pub coherency: f64,
    /// Distance of each measurement from the curve, as a fraction of the curve, in order.
    pub residuals: Vec<f64>,
    /// Root mean square of the residuals.
    pub rms_residual: f64,
    /// Highest number of users; nothing is extrapolated beyond twice as many.
    pub max_users: f64,
}

/// Minimum number of different user counts: the curve has three parameters.
pub const MIN_USER_COUNTS: usize = 4;
/// Maximum extrapolation, as a multiple of the highest number of users.
const MAX_EXTRAPOLATION_FACTOR: f64 = 2.0;

impl Usl {
    /// Best fit by relative least squares; none below [`MIN_USER_COUNTS`] different numbers of users.
    pub fn fit(measured: &[UslPoint]) -> Option<Self> {
        let points: Vec<UslPoint> = measured.iter().copied().filter(|m| m.users >= 1.0 && m.rate_per_s > 0.0).collect();
        let mut users: Vec<f64> = points.iter().map(|m| m.users).collect();
        users.sort_by(f64::total_cmp);
        users.dedup();
        if users.len() < MIN_USER_COUNTS {
            return None;
        }
        // Divided by N / X, so that the target of each row is 1 and its error is relative.
        let rows: Vec<[f64; 3]> = points
            .iter()
            .map(|UslPoint { users: n, rate_per_s }| [1.0, n - 1.0, n * (n - 1.0)].map(|term| term * rate_per_s / n))
            .collect();
        // Coefficients are non-negative: the best of all fits with some of them fixed at 0.
        let ways = [[true, true, true], [true, true, false], [true, false, true], [true, false, false]];
        let fits =
            ways.iter().filter_map(|way| solve(&rows, *way)).filter(|c| c[0] > 0.0 && c.iter().all(|c| *c >= 0.0));
        let best = fits.min_by(|a, b| error(&rows, a).total_cmp(&error(&rows, b)))?;
        let mut usl = Self {
            per_user: 1.0 / best[0],
            contention: best[1] / best[0],
            coherency: best[2] / best[0],
            residuals: Vec::new(),
            rms_residual: 0.0,
            max_users: users.last().copied()?,
        };
        usl.residuals = points.iter().map(|m| m.rate_per_s / usl.curve(m.users) - 1.0).collect();
        usl.rms_residual = (usl.residuals.iter().map(|r| r * r).sum::<f64>() / usl.residuals.len() as f64).sqrt();
        Some(usl)
    }

    /// Throughput at a number of users, per second; none beyond twice the highest number measured.
    pub fn at(&self, users: f64) -> Option<f64> {
        (users >= 1.0 && users <= MAX_EXTRAPOLATION_FACTOR * self.max_users).then(|| self.curve(users))
    }

    /// Number of users with the highest throughput, if within twice the highest number measured.
    pub fn peak(&self) -> Option<f64> {
        let peak = ((1.0 - self.contention).max(0.0) / self.coherency).sqrt().max(1.0);
        (peak <= MAX_EXTRAPOLATION_FACTOR * self.max_users).then_some(peak)
    }

    /// Number of users beyond which most of them wait: the intersection of linear growth with the highest throughput
    /// within the data (Denning and Buzen's asymptotes).
    pub fn knee(&self) -> f64 {
        let within = self.peak().map_or(self.max_users, |peak| peak.min(self.max_users));
        (self.curve(within) / self.per_user).max(1.0)
    }

    fn curve(&self, n: f64) -> f64 {
        self.per_user * n / (1.0 + self.contention * (n - 1.0) + self.coherency * n * (n - 1.0))
    }
}

fn error(rows: &[[f64; 3]], c: &[f64; 3]) -> f64 {
    rows.iter().map(|row| (row.iter().zip(c).map(|(a, b)| a * b).sum::<f64>() - 1.0).powi(2)).sum()
}

/// Least squares of `rows` c = 1 over the free coefficients, all others 0, by normal equations with scaled columns.
fn solve(rows: &[[f64; 3]], free: [bool; 3]) -> Option<[f64; 3]> {
    let columns: Vec<usize> = (0..3).filter(|i| free[*i]).collect();
    let scale: Vec<f64> = columns.iter().map(|c| rows.iter().map(|row| row[*c].powi(2)).sum::<f64>().sqrt()).collect();
    if scale.iter().any(|s| !(*s > 0.0 && s.is_finite())) {
        return None;
    }
    let n = columns.len();
    // Augmented matrix.
    let mut matrix = [[0.0; 4]; 3];
    for row in rows {
        for (i, a) in columns.iter().enumerate() {
            for (j, b) in columns.iter().enumerate() {
                matrix[i][j] += row[*a] / scale[i] * row[*b] / scale[j];
            }
            matrix[i][n] += row[*a] / scale[i];
        }
    }
    for i in 0..n {
        let pivot = (i..n).max_by(|a, b| matrix[*a][i].abs().total_cmp(&matrix[*b][i].abs()))?;
        matrix.swap(i, pivot);
        if matrix[i][i].abs() < 1e-12 {
            return None;
        }
        for j in (0..n).filter(|j| *j != i) {
            let (factor, from) = (matrix[j][i] / matrix[i][i], matrix[i]);
            matrix[j].iter_mut().zip(from).skip(i).for_each(|(to, from)| *to -= factor * from);
        }
    }
    let mut solution = [0.0; 3];
    columns.iter().enumerate().for_each(|(i, c)| solution[*c] = matrix[i][n] / matrix[i][i] / scale[i]);
    Some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn law(per_user: f64, contention: f64, coherency: f64) -> Usl {
        Usl { per_user, contention, coherency, residuals: Vec::new(), rms_residual: 0.0, max_users: 1.0 }
    }

    fn measured(law: &Usl, users: &[f64]) -> Vec<UslPoint> {
        users.iter().map(|n| UslPoint { users: *n, rate_per_s: law.curve(*n) }).collect()
    }

    const USERS: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

    proptest! {
        #[test]
        fn a_law_is_recovered_from_its_own_points(
            per_user in 1.0..1e5_f64, contention in 0.0..0.5_f64, coherency in prop_oneof![Just(0.0), 1e-5..0.01_f64]
        ) {
            let fitted = Usl::fit(&measured(&law(per_user, contention, coherency), &USERS)).expect("enough points");
            prop_assert!((fitted.per_user / per_user - 1.0).abs() < 1e-4, "{fitted:?}");
            prop_assert!((fitted.contention - contention).abs() < 1e-4, "{fitted:?}");
            prop_assert!((fitted.coherency - coherency).abs() < 1e-6, "{fitted:?}");
            prop_assert!(fitted.rms_residual < 1e-6);
        }

        /// For any measurements, nothing is negative and nothing is extrapolated beyond twice the data.
        #[test]
        fn no_fit_is_absurd(rates in prop::collection::vec(0.1..1e6_f64, 7)) {
            let points: Vec<_> = USERS.iter().zip(rates).map(|(users, rate_per_s)| UslPoint { users: *users, rate_per_s }).collect();
            let fitted = Usl::fit(&points).expect("one user's rate is a fit");
            prop_assert!(fitted.per_user > 0.0 && fitted.contention >= 0.0 && fitted.coherency >= 0.0);
            prop_assert!(fitted.rms_residual.is_finite() && fitted.knee() >= 1.0 && fitted.knee().is_finite());
            prop_assert_eq!(fitted.at(128.1), None);
            prop_assert!(fitted.peak().is_none_or(|peak| peak <= 128.0));
        }
    }

    #[test]
    fn the_peak_is_that_of_the_law_and_none_beyond_twice_the_data() {
        let near = Usl::fit(&measured(&law(100.0, 0.05, 0.001), &USERS)).expect("enough points");
        let peak = near.peak().expect("within the data");
        assert!((peak - (0.95_f64 / 0.001).sqrt()).abs() < 0.1, "{peak}");
        let far = Usl::fit(&measured(&law(100.0, 0.05, 0.00001), &USERS)).expect("enough points");
        assert_eq!(far.peak(), None, "at 308 users, and 64 were measured");
    }

    #[test]
    fn ten_slots_bend_at_ten_users() {
        // Asymptotes of a service of ten slots of 10 ms.
        let points: Vec<_> = USERS.iter().map(|n| UslPoint { users: *n, rate_per_s: 100.0 * n.min(10.0) }).collect();
        let knee = Usl::fit(&points).expect("enough points").knee();
        assert!((6.0..16.0).contains(&knee), "{knee}");
    }

    #[test]
    fn few_points_have_no_fit() {
        let points = measured(&law(100.0, 0.1, 0.0), &[1.0, 2.0, 4.0, 4.0]);
        assert_eq!(Usl::fit(&points), None);
    }
}
