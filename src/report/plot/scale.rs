//! From values to places in a picture.

/// An axis.
#[derive(Clone, Debug)]
pub(super) struct PlotAxis {
    from: f64,
    to: f64,
    low: f64,
    high: f64,
    kind: Kind,
    marked: Vec<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Linear,
    Logarithmic,
    /// Shares below 1: each nine has as much room.
    Nines,
}

/// A marked place.
#[derive(Clone, Debug)]
pub(super) struct AxisTick {
    pub(super) at: f64,
    pub(super) label: String,
}

/// More values than this are not marked one by one.
const MAX_MARKED_VALUES: usize = 14;
/// From this ratio on, what was varied grows by factors.
const LOG_SCALE_MIN_RATIO: f64 = 8.0;
/// From this ratio on, heights are drawn by factors.
const Y_LOG_SCALE_MIN_RATIO: f64 = 50.0;

impl PlotAxis {
    /// For values that were chosen; each is marked.
    pub(super) fn of_values(from: f64, to: f64, values: &[f64]) -> Self {
        let mut marked: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        marked.sort_by(f64::total_cmp);
        marked.dedup();
        let (low, high) = (marked.first().copied().unwrap_or(0.0), marked.last().copied().unwrap_or(1.0));
        let kind = if low > 0.0 && high / low >= LOG_SCALE_MIN_RATIO { Kind::Logarithmic } else { Kind::Linear };
        if marked.len() > MAX_MARKED_VALUES {
            marked = match kind {
                Kind::Linear => round_steps(low, high),
                _ => round_factors(low, high),
            };
        }
        // Points do not stand on the edge.
        let inset = (to - from) * 0.04;
        let (low, high) = if low < high { (low, high) } else { (low - 1.0, high + 1.0) };
        Self { from: from + inset, to: to - inset, low, high, kind, marked }
    }

    /// For a course in time: from its start on.
    pub(super) fn of_time(from: f64, to: f64, seconds: &[f64]) -> Self {
        let last = seconds.iter().copied().filter(|s| s.is_finite()).fold(0.0, f64::max);
        let high = if last > 0.0 { last } else { 1.0 };
        Self { from, to: to - 8.0, low: 0.0, high, kind: Kind::Linear, marked: round_steps(0.0, high) }
    }

    /// For what was measured: from 0, or by factors if it spans a lot.
    pub(super) fn of_range(from: f64, to: f64, values: &[f64]) -> Self {
        let values = values.iter().copied().filter(|value| value.is_finite() && *value >= 0.0);
        let (low, high) =
            values.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), value| (low.min(value), high.max(value)));
        // By factors nothing would ever reach 0.
        if low > 0.0 && low < high && high / low >= Y_LOG_SCALE_MIN_RATIO {
            let marked = round_factors(low, high);
            let low = marked.first().copied().unwrap_or(low).min(low);
            return Self { from, to, low, high: high * 1.05, kind: Kind::Logarithmic, marked };
        }
        let marked = round_steps(0.0, if high > 0.0 { high * 1.05 } else { 1.0 });
        Self { from, to, low: 0.0, high: if high > 0.0 { high * 1.05 } else { 1.0 }, kind: Kind::Linear, marked }
    }

    /// For shares of requests.
    pub(super) fn percentiles(from: f64, to: f64, shares: &[f64]) -> Self {
        let high = shares.iter().copied().filter(|share| *share < 1.0).fold(0.9, f64::max);
        let marked = [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999].into_iter().filter(|share| *share <= high).collect();
        Self { from, to: to - 8.0, low: 0.0, high, kind: Kind::Nines, marked }
    }

    /// For names in a row, at 0, 1, 2, ...
    pub(super) fn categories(from: f64, to: f64, count: usize) -> Self {
        let half = (to - from) / count.max(1) as f64 / 2.0;
        let high = count.saturating_sub(1).max(1) as f64;
        let to = if count > 1 { to - half } else { to };
        Self { from: from + half, to, low: 0.0, high, kind: Kind::Linear, marked: Vec::new() }
    }

    /// Where a value stands; on the edge, if it lies beyond.
    pub(super) fn at(&self, value: f64) -> f64 {
        let flat = |value: f64| match self.kind {
            Kind::Linear => value,
            Kind::Logarithmic => value.max(self.low).ln(),
            Kind::Nines => -(1.0 - value.clamp(0.0, 0.999_999_9)).ln(),
        };
        let (low, high) = (flat(self.low), flat(self.high));
        let share = ((flat(value) - low) / (high - low)).clamp(0.0, 1.0);
        self.from + (self.to - self.from) * if share.is_finite() { share } else { 0.0 }
    }

    pub(super) fn ticks(&self) -> Vec<AxisTick> {
        let label = |value: f64| match self.kind {
            Kind::Nines if value == 0.0 => "0%".to_owned(),
            Kind::Nines => format!("p{}", trim(format!("{:.4}", value * 100.0))),
            _ => short_number(value),
        };
        self.marked.iter().map(|value| AxisTick { at: self.at(*value), label: label(*value) }).collect()
    }
}

/// 0, 20, 40, ...: about five round values.
fn round_steps(low: f64, high: f64) -> Vec<f64> {
    let raw = (high - low) / 6.0;
    if raw <= 0.0 || !raw.is_finite() {
        return vec![low];
    }
    let power = 10_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].iter().map(|m| m * power).find(|step| *step >= raw).unwrap_or(raw);
    let first = (low / step).ceil() as i64;
    (first..).map(|i| i as f64 * step).take_while(|value| *value <= high * (1.0 + 1e-9)).take(20).collect()
}

/// 1, 10, 100, ...; with 2 and 5 between, if that gives few.
fn round_factors(low: f64, high: f64) -> Vec<f64> {
    let (from, to) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let between: &[f64] = if to - from > 3 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let all = (from..=to).flat_map(|power| between.iter().map(move |m| m * 10_f64.powi(power)));
    all.filter(|value| *value <= high * 1.05 && *value >= low * 0.5).collect()
}

/// Few digits: `0.25`, `40`, `12k`, `3M`.
pub(super) fn short_number(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        v if v >= 1e9 => (value / 1e9, "G"),
        v if v >= 1e6 => (value / 1e6, "M"),
        v if v >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let decimals = match scaled.abs() {
        v if v >= 100.0 => 1,
        v if v >= 1.0 => 2,
        v if v >= 0.01 => 3,
        _ => 6,
    };
    format!("{}{unit}", trim(format!("{scaled:.decimals$}")))
}

fn trim(text: String) -> String {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(round_steps(0.0, 105.0), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(round_steps(0.0, 0.0), [0.0]);
        assert_eq!(round_factors(3.0, 700.0), [2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0]);
        assert_eq!(
            [0.25, 40.0, 12_500.0, 3e6, 1000.0, 0.0].map(short_number),
            ["0.25", "40", "12.5k", "3M", "1000", "0"]
        );
    }

    #[test]
    fn what_was_varied_by_factors_is_evenly_apart() {
        let axis = PlotAxis::of_values(0.0, 100.0, &[1.0, 2.0, 4.0, 8.0]);
        let at: Vec<f64> = [1.0, 2.0, 4.0, 8.0].map(|value| axis.at(value)).to_vec();
        let steps: Vec<f64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(steps.iter().all(|step| (step - steps[0]).abs() < 1e-9), "{at:?}");
        assert_eq!(axis.ticks().len(), 4);
    }

    #[test]
    fn each_nine_has_as_much_room() {
        let axis = PlotAxis::percentiles(0.0, 100.0, &[0.0, 0.5, 0.999]);
        let at = [0.9, 0.99, 0.999].map(|share| axis.at(share));
        assert!(((at[1] - at[0]) - (at[2] - at[1])).abs() < 1e-6, "{at:?}");
        let labels: Vec<String> = axis.ticks().into_iter().map(|tick| tick.label).collect();
        assert_eq!(labels, ["0%", "p50", "p90", "p99", "p99.9"]);
    }
}
