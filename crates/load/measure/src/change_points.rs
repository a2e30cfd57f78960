//! Change points of a series of results: where its level changed for good.
//!
//! The method of Fleming et al., "Hunter: Using Open Source Tools to Detect Performance Regressions" (ICPE 2023,
//! <https://doi.org/10.1145/3578244.3583719>), which is that of Apache Otava: the E-divisive means of Matteson and
//! James (2014) propose points in sliding windows, a t-test accepts them in place of random permutations, so that the
//! same series always has the same points, and what is weak or small in the light of the whole series is merged away.
//!
//! Two differences: a level between two others is found although the rest of its window is on average no different, and
//! after a merge both neighbours are judged again.

use std::ops::Range;

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Number of results that are tested together. A longer window finds smaller changes, and merges close ones.
const WINDOW: usize = 50;
/// How much weaker the evidence may be of points that the merging then judges.
const FIRST_PASS: f64 = 10.0;

/// Minimum number of results of a level that lies between two others.
const MIN_LEVEL: usize = 5;

/// Change of the level of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// Index of the first result of the new level.
    pub index: usize,
    /// Mean of the level before.
    pub before: f64,
    /// Mean of the level after.
    pub after: f64,
    /// Probability of such a difference without a change.
    pub p_value: f64,
}

/// Thresholds of a change: significance and size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeSettings {
    /// Maximum probability of a change by chance, in (0, 1).
    pub max_p_value: f64,
    /// Minimum relative change of the level; 0.03 is 3%.
    pub min_effect: f64,
}

impl Default for ChangeSettings {
    fn default() -> Self {
        Self { max_p_value: 0.001, min_effect: 0.0 }
    }
}

impl ChangePoint {
    /// Relative change: 0.1 is 10% more than before; infinite from 0.
    pub fn effect(&self) -> f64 {
        if self.before == self.after { 0.0 } else { (self.after - self.before) / self.before.abs() }
    }

    /// Size of the change in either direction: 10% up and back are the same.
    fn magnitude(&self) -> f64 {
        let back = Self { before: self.after, after: self.before, ..*self };
        self.effect().abs().max(back.effect().abs())
    }

    /// Point between two levels, the values from `begin` to `index` and from there to `end`.
    fn between(values: &[f64], begin: usize, index: usize, end: usize) -> Self {
        let (left, right) = (Level::of(&values[begin..index]), Level::of(&values[index..end]));
        Self { index, before: left.mean, after: right.mean, p_value: left.p_value(&right) }
    }
}

/// Change points of a series of finite values, in order.
pub fn change_points(values: &[f64], settings: &ChangeSettings) -> Vec<ChangePoint> {
    find(values, settings, WINDOW)
}

fn find(values: &[f64], settings: &ChangeSettings, window: usize) -> Vec<ChangePoint> {
    let first_pass = match settings.max_p_value {
        p if p < 0.05 => p * FIRST_PASS,
        p if p < 0.5 => p * 2.0,
        p => p,
    };
    merge(values, split(values, window, first_pass), settings)
}

/// Weak points: those of all windows, each of which begins at the last point of the one before, or half a window on.
fn split(values: &[f64], window: usize, max_p_value: f64) -> Vec<usize> {
    let (mut points, mut begin): (Vec<usize>, usize) = (Vec::new(), 0);
    while begin < values.len() {
        let end = (begin + window).min(values.len());
        let found = split_window(&values[begin..end], max_p_value);
        let last = found.last().map_or(0, |point| begin + point);
        points.extend(found.iter().map(|point| begin + point));
        begin = last.max(begin + window / 2);
    }
    points.sort_unstable();
    points.dedup();
    points
}

/// Points of a window: the most different one splits it, then the most different one of any part, as long as the parts
/// of the split differ significantly.
fn split_window(values: &[f64], max_p_value: f64) -> Vec<usize> {
    let distances = Distances::of(values);
    let mut points: Vec<usize> = Vec::new();
    loop {
        let parts = parts(&points, values.len());
        let mut best: Option<(f64, (usize, usize, usize), usize)> = None;
        for (begin, end) in parts.into_iter().filter(|(begin, end)| end - begin > 1) {
            let (divergence, index, until) = distances.candidate(begin, end);
            if best.is_none_or(|(most, ..)| divergence > most) {
                best = Some((divergence, (begin, index, end), until));
            }
        }
        let Some((_, (begin, index, end), until)) = best else { return points };
        let is_change = |end: usize| ChangePoint::between(values, begin, index, end).p_value <= max_p_value;
        // Where another level follows, the whole rest may be no different on average. Hunter gives up there; only a few
        // values would be an outlier, and no level.
        let is_level = (index - begin).min(until - index) >= MIN_LEVEL;
        if !(is_change(end) || is_level && is_change(until)) {
            return points;
        }
        points.push(index);
        points.sort_unstable();
    }
}

/// Parts between the points of a series of `count` values.
fn parts(points: &[usize], count: usize) -> Vec<(usize, usize)> {
    let begins = std::iter::once(0).chain(points.iter().copied());
    begins.zip(points.iter().copied().chain([count])).collect()
}

/// Removes the weakest point until all are significant and large enough; its neighbours' levels grow by its own.
fn merge(values: &[f64], mut weak: Vec<usize>, settings: &ChangeSettings) -> Vec<ChangePoint> {
    loop {
        let parts = parts(&weak, values.len());
        let found: Vec<ChangePoint> =
            parts.windows(2).map(|pair| ChangePoint::between(values, pair[0].0, pair[1].0, pair[1].1)).collect();
        let least_sure = found.iter().max_by(|a, b| a.p_value.total_cmp(&b.p_value).then(b.index.cmp(&a.index)));
        let smallest = found.iter().min_by(|a, b| a.magnitude().total_cmp(&b.magnitude()));
        let removed = match (least_sure, smallest) {
            (Some(point), _) if point.p_value >= settings.max_p_value => point.index,
            (_, Some(point)) if point.magnitude() <= settings.min_effect => point.index,
            _ => return found,
        };
        weak.retain(|index| *index != removed);
    }
}

/// Values between two points.
struct Level {
    count: f64,
    mean: f64,
    variance: f64,
}

impl Level {
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        // Hunter's estimate, which divides by the number of values.
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        Self { count, mean, variance }
    }

    /// Student's two-sided t-test with a common variance.
    fn p_value(&self, other: &Self) -> f64 {
        let freedom = self.count + other.count - 2.0;
        if freedom <= 0.0 || self.mean == other.mean {
            return 1.0;
        }
        let sums = (self.count - 1.0) * self.variance + (other.count - 1.0) * other.variance;
        let error = (sums / freedom * (1.0 / self.count + 1.0 / other.count)).sqrt();
        if error == 0.0 {
            return 0.0;
        }
        let t = ((self.mean - other.mean) / error).abs();
        StudentsT::new(0.0, 1.0, freedom).map_or(1.0, |distribution| 2.0 * distribution.sf(t))
    }
}

/// Sums of distances between the values of a window.
struct Distances {
    /// Sum over all pairs of one of the first `i` and one of the first `j`, at `i * (count + 1) + j`.
    sums: Vec<f64>,
    width: usize,
}

impl Distances {
    fn of(values: &[f64]) -> Self {
        let width = values.len() + 1;
        let mut sums = vec![0.0; width * width];
        for (i, a) in values.iter().enumerate() {
            for (j, b) in values.iter().enumerate() {
                let above = sums[i * width + j + 1] + sums[(i + 1) * width + j] - sums[i * width + j];
                sums[(i + 1) * width + j + 1] = above + (a - b).abs();
            }
        }
        Self { sums, width }
    }

    /// Sum of the distances over all pairs of an index of `left` and one of `right`.
    fn between(&self, left: &Range<usize>, right: &Range<usize>) -> f64 {
        let at = |i: usize, j: usize| self.sums[i * self.width + j];
        at(left.end, right.end) - at(left.start, right.end) - at(left.end, right.start) + at(left.start, right.start)
    }

    /// Split of a part with the greatest divergence, and the latter. What is behind some later value may be left out of
    /// the comparison, since it may be another level.
    fn candidate(&self, begin: usize, end: usize) -> (f64, usize, usize) {
        let mut best = (f64::NEG_INFINITY, begin + 1, end);
        for split in begin + 1..end {
            for until in split + 1..=end {
                let divergence = self.divergence(begin, split, until);
                if divergence > best.0 {
                    best = (divergence, split, until);
                }
            }
        }
        best
    }

    /// How far two neighbouring parts are from each other, in relation to how far their own values are.
    fn divergence(&self, begin: usize, split: usize, until: usize) -> f64 {
        let (left, right) = (begin..split, split..until);
        let (n, m) = ((split - begin) as f64, (until - split) as f64);
        // Each pair of a part is in its sum twice.
        let within = |part: &Range<usize>, own: f64, other: f64| match own > 1.0 {
            true => other / (m + n) / (own - 1.0) * self.between(part, part),
            false => 0.0,
        };
        2.0 / (m + n) * self.between(&left, &right) - within(&left, n, m) - within(&right, m, n)
    }
}

#[cfg(test)]
mod tests;
