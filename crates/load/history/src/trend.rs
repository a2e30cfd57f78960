//! Trends: how a figure of like runs has changed over time.

use super::stored_run::StoredRun;
use weir_measure::change_points::{ChangePoint, ChangeSettings, change_points};
use weir_measure::compare::{Better, ComparisonScale, Metric};

/// Runs that measure the same thing on the same kind of machine, by their start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LikeRuns {
    /// The runs.
    pub runs: Vec<StoredRun>,
    /// Number of runs that were left out: not trusted, or interrupted.
    pub left_out: u64,
}

/// Course of a figure over like runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Trend {
    /// Figure.
    pub metric: Metric,
    /// Runs that have it: their places among the like runs, and the figures.
    pub points: Vec<(usize, f64)>,
    /// Changes of its level, in order; the index is one of `points`.
    pub changes: Vec<ChangePoint>,
}

/// Runs between which a level has changed, by their places among the like runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedRuns {
    /// Last run of the old level.
    pub last_before: usize,
    /// First run of the new one.
    pub first: usize,
}

impl LikeRuns {
    /// Groups of like runs, in the order of their first ones.
    pub fn group(runs: Vec<StoredRun>) -> Vec<Self> {
        // The first run of a group stands for it, also where it is left out.
        let mut groups: Vec<(StoredRun, Self)> = Vec::new();
        for run in runs {
            let at = groups.iter().position(|(first, _)| first.is_like(&run)).unwrap_or_else(|| {
                groups.push((run.clone(), Self::default()));
                groups.len() - 1
            });
            let group = &mut groups[at].1;
            if run.is_trusted && !run.is_interrupted {
                group.runs.push(run);
            } else {
                group.left_out += 1;
            }
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }

    /// Trend of a metric; none if no run has it.
    pub fn trend(&self, metric: &Metric, settings: &ChangeSettings) -> Option<Trend> {
        let points: Vec<(usize, f64)> =
            self.runs.iter().enumerate().filter_map(|(at, run)| Some((at, run.figure(&metric.name)?))).collect();
        let values: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
        // Fractions change by points: from no error to few is not infinitely many.
        let is_ratio = metric.scale == ComparisonScale::Ratio;
        let of_ratio = ChangeSettings { min_effect: if is_ratio { settings.min_effect } else { 0.0 }, ..*settings };
        let mut changes = change_points(&values, &of_ratio);
        if !is_ratio {
            changes.retain(|change| (change.after - change.before).abs() >= MIN_CHANGE_POINTS);
        }
        (!points.is_empty()).then(|| Trend { metric: metric.clone(), points, changes })
    }
}

/// Minimum change of a fraction: one percentage point.
const MIN_CHANGE_POINTS: f64 = 0.01;

impl Trend {
    /// Whether a change is one for the worse.
    pub fn is_worse(&self, change: &ChangePoint) -> bool {
        match self.metric.better {
            Better::Higher => change.after < change.before,
            Better::Lower => change.after > change.before,
        }
    }

    /// Runs between which a change is.
    pub fn runs_of(&self, change: &ChangePoint) -> ChangedRuns {
        let place = |index: usize| self.points.get(index).map_or(0, |(at, _)| *at);
        ChangedRuns { last_before: place(change.index.saturating_sub(1)), first: place(change.index) }
    }

    /// Whether the level became worse with one of the last `recent` runs.
    pub fn has_become_worse(&self, recent: usize) -> bool {
        let from = self.points.len().saturating_sub(recent);
        self.changes.iter().any(|change| change.index >= from && self.is_worse(change))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunNote;

    fn run(id: i64, p99: f64) -> StoredRun {
        StoredRun {
            id,
            started_unix_s: id as f64,
            note: RunNote::default(),
            plan: "GET http://localhost/, closed loop, 10 users".to_owned(),
            offered_per_s: None,
            machine: "cpu, 2 cores, 24 GiB".to_owned(),
            is_trusted: true,
            is_interrupted: false,
            missed: 0,
            figures: vec![("p99".to_owned(), p99), ("errors".to_owned(), if id > 20 { 0.05 } else { 0.0 })],
        }
    }

    /// A level of 10 ms with 2% of scatter, and from run 21 on 12 ms.
    fn slower() -> Vec<StoredRun> {
        (1..=40).map(|id| run(id, if id > 20 { 12.0 } else { 10.0 } + 0.1 * (id % 5) as f64)).collect()
    }

    #[test]
    fn a_level_that_becomes_worse_is_found_at_its_first_run() {
        let [group] = &LikeRuns::group(slower())[..] else { panic!("one group") };
        let settings = ChangeSettings { min_effect: 0.03, ..ChangeSettings::default() };
        let trend = group.trend(&Metric::ratio("p99", "ms", Better::Lower), &settings).expect("a trend");
        let [change] = &trend.changes[..] else { panic!("{:?}", trend.changes) };
        assert_eq!(trend.runs_of(change), ChangedRuns { last_before: 19, first: 20 });
        assert!(trend.is_worse(change) && (change.effect() - 0.196).abs() < 0.01, "{change:?}");
        assert!(trend.has_become_worse(20) && !trend.has_become_worse(19));
        let errors = group.trend(&Metric::fraction("errors", Better::Lower), &settings).expect("a trend");
        assert!(errors.changes.len() == 1 && errors.is_worse(&errors.changes[0]));
        let better = Trend { metric: Metric::ratio("p99", "ms", Better::Higher), ..trend };
        assert!(!better.has_become_worse(40));
        assert!(group.trend(&Metric::ratio("p50", "ms", Better::Lower), &settings).is_none());
    }

    #[test]
    fn runs_of_other_plans_machines_and_rates_are_apart_and_doubtful_ones_left_out() {
        let mut runs = slower();
        runs[3].is_trusted = false;
        runs[4].is_interrupted = true;
        runs[5].machine.push('x');
        runs[6].plan.push('x');
        for (at, offered) in [(7, 100.0), (8, 103.0), (9, 150.0)] {
            runs[at].offered_per_s = Some(offered);
        }
        let groups = LikeRuns::group(runs);
        let sizes: Vec<(usize, u64)> = groups.iter().map(|group| (group.runs.len(), group.left_out)).collect();
        assert_eq!(sizes, [(33, 2), (1, 0), (1, 0), (2, 0), (1, 0)]);
    }
}
