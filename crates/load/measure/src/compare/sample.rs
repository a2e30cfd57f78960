//! Figures of a variant, one per run.

use super::metric::ComparisonScale;

/// Value of a metric in one run, with the run's round and trust.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunFigure {
    /// Round of interleaved runs: those of a round were made next to each other, in any order.
    pub round: u64,
    /// Value in the unit of the metric.
    pub value: f64,
    /// Whether the run is trusted ([`crate::trust`]).
    pub trusted: bool,
}

/// Figures of a variant of one metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricSample {
    /// Figures, one per run, in any order.
    pub figures: Vec<RunFigure>,
    /// Whether `round` is valid: runs of the same round on both sides are then compared with each other, which cancels
    /// changes from round to round (a warm machine, a busy neighbour).
    pub in_rounds: bool,
}

impl MetricSample {
    /// Sample of trusted runs in rounds, one after the other.
    pub fn in_rounds(values: impl IntoIterator<Item = f64>) -> Self {
        Self { in_rounds: true, ..Self::unpaired(values) }
    }

    /// Sample of trusted runs without rounds.
    pub fn unpaired(values: impl IntoIterator<Item = f64>) -> Self {
        let figures = values.into_iter().zip(0..).map(|(value, round)| RunFigure { round, value, trusted: true });
        Self { figures: figures.collect(), in_rounds: false }
    }

    /// Number of runs that are not trusted.
    pub fn untrusted(&self) -> usize {
        self.figures.iter().filter(|figure| !figure.trusted).count()
    }

    /// Whether more than one run in five is not trusted. Such runs are still used: they are untrusted under load, so
    /// the remaining ones would be biased.
    pub fn is_doubtful(&self) -> bool {
        self.untrusted() * 5 > self.figures.len()
    }

    /// Finite figures on the linear scale, with their rounds.
    pub(super) fn linear_values(&self, scale: ComparisonScale) -> Vec<(u64, f64)> {
        let flat = self.figures.iter().map(|figure| (figure.round, scale.to_linear(figure.value)));
        flat.filter(|(_, value)| value.is_finite()).collect()
    }
}
