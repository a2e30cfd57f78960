//! A variant's figures, one per run.

use super::metric::ComparisonScale;

/// The figure of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunFigure {
    /// Which round of interleaved runs it belongs to: runs of one round were made next to each other, in any order.
    pub round: u64,
    /// The figure.
    pub value: f64,
    /// Whether the run may be trusted ([`crate::measure::trust`]).
    pub trusted: bool,
}

/// A variant's figures of one metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricSample {
    /// One per run, in any order.
    pub figures: Vec<RunFigure>,
    /// Whether `round` says something: runs of the same round on both sides are then compared with each other, and what
    /// changes from round to round (a warm machine, a busy neighbour) drops out.
    pub in_rounds: bool,
}

impl MetricSample {
    /// Trusted runs that were made in rounds, one after the other.
    pub fn in_rounds(values: impl IntoIterator<Item = f64>) -> Self {
        Self { in_rounds: true, ..Self::unpaired(values) }
    }

    /// Trusted runs whose order says nothing.
    pub fn unpaired(values: impl IntoIterator<Item = f64>) -> Self {
        let figures = values.into_iter().zip(0..).map(|(value, round)| RunFigure { round, value, trusted: true });
        Self { figures: figures.collect(), in_rounds: false }
    }

    /// Runs that may not be trusted.
    pub fn untrusted(&self) -> usize {
        self.figures.iter().filter(|figure| !figure.trusted).count()
    }

    /// Whether more than one run in five may not be trusted. None of them is left out for it: runs go wrong under load,
    /// so those that are left would flatter.
    pub fn is_doubtful(&self) -> bool {
        self.untrusted() * 5 > self.figures.len()
    }

    /// The figures that the scale can hold, with their rounds.
    pub(super) fn linear_values(&self, scale: ComparisonScale) -> Vec<(u64, f64)> {
        let flat = self.figures.iter().map(|figure| (figure.round, scale.to_linear(figure.value)));
        flat.filter(|(_, value)| value.is_finite()).collect()
    }
}
