//! Findings of a study: metrics by variant and point, and verdicts on pairs of variants.

use serde::Serialize;

use super::StudyOutcome;
use super::definition::{Definition, StudyLoad};
use super::measurement::Measurement;
use super::study_point::StudyPoint;
use weir_measure::compare::{Better, ComparisonVerdict, Metric, MetricSample, Pair, RunFigure, Settings, judge};

/// Metric that a study compares, of a load or of the whole variant.
#[derive(Clone, Debug)]
pub struct StudyMetric {
    /// Name of the load; None for metrics of the whole variant.
    pub load: Option<String>,
    /// Name, unit and scale.
    pub metric: Metric,
    /// Whether this is a primary metric, which decides the study.
    pub is_primary: bool,
    source: MetricSource,
}

#[derive(Clone, Debug)]
enum MetricSource {
    Rate,
    Median,
    P99,
    Failed,
    Memory,
    Cpu,
    /// Metric of a client, by name.
    Client,
}

/// Verdict on a metric of two variants at a point.
#[derive(Clone, Debug)]
pub struct PairVerdict {
    /// Index of the metric.
    pub metric: usize,
    /// Index of the point.
    pub point: usize,
    /// Index of the baseline.
    pub base: usize,
    /// Index of the other variant.
    pub other: usize,
    /// Verdict on the other variant.
    pub verdict: ComparisonVerdict,
}

/// Two variants that are compared, by their indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariantPair {
    /// The baseline.
    pub base: usize,
    /// The other variant.
    pub other: usize,
}

/// Findings of a study.
#[derive(Debug)]
pub struct Findings<'a> {
    /// Definition of the study.
    pub definition: &'a Definition,
    /// Measurements.
    pub outcome: &'a StudyOutcome,
    /// Points of the sweep.
    pub points: Vec<StudyPoint>,
    /// Compared metrics.
    pub metrics: Vec<StudyMetric>,
    /// Verdicts, by metric, pair and point.
    pub verdicts: Vec<PairVerdict>,
}

/// Median and range of the runs of a variant at a point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RunRange {
    /// Median of the runs.
    pub median: f64,
    /// Lowest run.
    pub low: f64,
    /// Highest run.
    pub high: f64,
    /// Number of runs.
    pub runs: usize,
    /// Number of runs that are not trusted.
    pub untrusted: usize,
}

/// Maximum number of variants that are all compared with each other. More are compared with the first only: the
/// correction for multiple comparisons would leave no verdict conclusive.
const MAX_VARIANTS_FOR_ALL_PAIRS: usize = 4;

impl<'a> Findings<'a> {
    /// Judges the measurements.
    pub fn new(definition: &'a Definition, outcome: &'a StudyOutcome) -> Self {
        let points = definition.points();
        let mut findings =
            Self { definition, outcome, points, metrics: study_metrics(definition), verdicts: Vec::new() };
        findings.verdicts = (0..findings.metrics.len()).flat_map(|measure| findings.compare_metric(measure)).collect();
        findings.penalize_failures();
        findings
    }

    /// Verdicts on one metric, over all pairs and points together.
    fn compare_metric(&self, measure: usize) -> Vec<PairVerdict> {
        let places: Vec<(usize, usize, usize)> = self
            .pairs()
            .into_iter()
            .flat_map(|VariantPair { base, other }| self.points_of(measure).map(move |point| (base, other, point)))
            .collect();
        let sample = |variant, point| self.sample(measure, variant, point);
        let samples: Vec<(MetricSample, MetricSample)> =
            places.iter().map(|(base, other, point)| (sample(*base, *point), sample(*other, *point))).collect();
        let metric = &self.metrics[measure].metric;
        let pairs: Vec<Pair<'_>> = samples.iter().map(|(base, other)| Pair { metric, base, other }).collect();
        let verdicts = judge(&pairs, &self.settings());
        let judged = |((base, other, point), verdict)| PairVerdict { metric: measure, point, base, other, verdict };
        places.into_iter().zip(verdicts).map(judged).collect()
    }

    fn settings(&self) -> Settings {
        Settings { min_effect: self.definition.min_effect, seed: self.definition.seed, ..Settings::default() }
    }

    /// Withdraws wins of a variant with more errors: those under the same load or, for metrics of the whole variant,
    /// under any load.
    fn penalize_failures(&mut self) {
        let settings = self.settings();
        let of_failures = |it: &&PairVerdict| self.metrics[it.metric].is_failure_rate();
        let failures: Vec<PairVerdict> = self.verdicts.iter().filter(of_failures).cloned().collect();
        for judged in &mut self.verdicts {
            let measure = &self.metrics[judged.metric];
            if measure.is_failure_rate() {
                continue;
            }
            let same = |it: &&PairVerdict| {
                let load = &self.metrics[it.metric].load;
                (it.base, it.other, it.point) == (judged.base, judged.other, judged.point)
                    && (measure.load.is_none() || measure.load == *load)
            };
            for it in failures.iter().filter(same) {
                judged.verdict = judged.verdict.clone().unless_it_fails_more(&it.verdict, &settings);
            }
        }
    }

    /// Pairs of variants with measurements: each with each, or all with the first if they are many.
    pub fn pairs(&self) -> Vec<VariantPair> {
        let is_measured = |variant: &usize| {
            let name = self.variant(*variant);
            self.outcome.measurements.iter().any(|cell| cell.variant == name && cell.is_measured())
        };
        // A variant that always failed needs no verdict.
        let all: Vec<usize> = (0..self.definition.variants.len()).filter(is_measured).collect();
        let bases = if all.len() > MAX_VARIANTS_FOR_ALL_PAIRS { 1 } else { all.len() };
        let of_base = |at: usize| {
            let base = all[at];
            all[at + 1..].iter().map(move |other| VariantPair { base, other: *other })
        };
        (0..bases).flat_map(of_base).collect()
    }

    /// Points at which a metric exists: those at which its load is applied.
    pub fn points_of(&self, measure: usize) -> impl Iterator<Item = usize> {
        let name = self.metrics[measure].load.as_deref();
        let load = self.definition.loads.iter().find(|load| Some(load.name.as_str()) == name);
        (0..self.points.len()).filter(move |point| load.is_none_or(|load| load.is_driven_at(&self.points[*point])))
    }

    /// Name of the variant at an index, from 0 in the order of the study file. Panics beyond the last one.
    pub fn variant(&self, index: usize) -> &str {
        &self.definition.variants[index].program.name
    }

    /// Measurements of a variant at a point, by round.
    pub fn measurements(&self, variant: usize, point: usize) -> impl Iterator<Item = &'a Measurement> {
        let (name, point) = (self.variant(variant).to_owned(), self.points[point].clone());
        self.outcome.measurements.iter().filter(move |cell| cell.variant == name && cell.point == point)
    }

    fn sample(&self, measure: usize, variant: usize, point: usize) -> MetricSample {
        let of = &self.metrics[measure];
        // Failures are not random: the runs that remain are biased in favor of the variant.
        let failed = self.measurements(variant, point).filter(|cell| !cell.is_measured()).count();
        let is_sound = failed * 5 <= self.measurements(variant, point).count();
        let figure = |cell: &Measurement| {
            Some(RunFigure { round: cell.repeat, value: of.value(cell)?, trusted: is_sound && cell.is_trusted() })
        };
        MetricSample { figures: self.measurements(variant, point).filter_map(figure).collect(), in_rounds: true }
    }

    /// Range of a metric over the runs of a variant at a point; None without a run.
    pub fn run_range(&self, measure: usize, variant: usize, point: usize) -> Option<RunRange> {
        let sample = self.sample(measure, variant, point);
        let mut values: Vec<f64> = sample.figures.iter().map(|figure| figure.value).collect();
        values.sort_by(f64::total_cmp);
        RunRange::of(&values, sample.untrusted())
    }

    /// Verdicts on a metric of a pair, by point.
    pub fn verdicts_of_pair(&self, measure: usize, pair: VariantPair) -> impl Iterator<Item = &PairVerdict> {
        self.verdicts.iter().filter(move |it| it.metric == measure && it.pair() == pair)
    }
}

impl PairVerdict {
    /// The two variants.
    pub fn pair(&self) -> VariantPair {
        VariantPair { base: self.base, other: self.other }
    }
}

impl RunRange {
    /// Range of values in ascending order; None if empty.
    pub(super) fn of(values: &[f64], untrusted: usize) -> Option<Self> {
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            0 => (values.get(middle.checked_sub(1)?)? + values.get(middle)?) / 2.0,
            _ => *values.get(middle)?,
        };
        Some(Self { median, low: *values.first()?, high: *values.last()?, runs: values.len(), untrusted })
    }
}

impl StudyMetric {
    /// Value in a measurement; None if that failed or does not have the metric.
    pub fn value(&self, cell: &Measurement) -> Option<f64> {
        if !cell.is_measured() {
            return None;
        }
        let load = || cell.loads.iter().find(|load| Some(&load.load) == self.load.as_ref());
        match self.source {
            MetricSource::Rate => Some(load()?.rate_per_s),
            MetricSource::Median => load()?.p50_ms,
            MetricSource::P99 => load()?.p99_ms,
            MetricSource::Failed => Some(load()?.failed_fraction),
            MetricSource::Memory => {
                let usage = cell.usage.as_ref()?;
                Some(usage.pss_peak_bytes.unwrap_or(usage.rss_peak_bytes) as f64 / f64::from(1 << 20))
            }
            MetricSource::Cpu => cell.usage.as_ref()?.cpu_us_per_response,
            MetricSource::Client => cell.client_metrics.get(&self.metric.name).copied(),
        }
    }

    /// Whether this is the error rate of a load.
    pub fn is_failure_rate(&self) -> bool {
        matches!(self.source, MetricSource::Failed)
    }

    /// Whether this is a use of resources.
    pub fn is_resource_usage(&self) -> bool {
        matches!(self.source, MetricSource::Memory | MetricSource::Cpu)
    }

    /// Name, with that of the load: `work: p99`.
    pub fn name(&self) -> String {
        self.load.as_ref().map_or_else(|| self.metric.name.clone(), |load| format!("{load}: {}", self.metric.name))
    }
}

fn study_metrics(definition: &Definition) -> Vec<StudyMetric> {
    let mut measures = Vec::new();
    let services = definition.variants.iter().any(|variant| !variant.is_client);
    for load in definition.loads.iter().filter(|_| services) {
        // In an open loop the rate is given, so response times decide; in a closed loop, throughput does.
        let open = is_open(load);
        let mut add = |of, metric, is_primary| {
            measures.push(StudyMetric { load: Some(load.name.clone()), metric, is_primary, source: of });
        };
        add(MetricSource::Rate, Metric::ratio("successes", "/s", Better::Higher), !open);
        add(MetricSource::Median, Metric::ratio("p50", "ms", Better::Lower), false);
        add(MetricSource::P99, Metric::ratio("p99", "ms", Better::Lower), open);
        add(MetricSource::Failed, Metric::fraction("errors", Better::Lower), false);
    }
    for (at, metric) in definition.client_metrics.iter().enumerate() {
        measures.push(StudyMetric {
            load: None,
            metric: metric.clone(),
            is_primary: at == 0 && !services,
            source: MetricSource::Client,
        });
    }
    let mut add = |of, metric| measures.push(StudyMetric { load: None, metric, is_primary: false, source: of });
    add(MetricSource::Memory, Metric::ratio("memory peak", "MiB", Better::Lower));
    if services {
        add(MetricSource::Cpu, Metric::ratio("CPU per success", "us", Better::Lower));
    }
    measures
}

fn is_open(load: &StudyLoad) -> bool {
    load.flags.iter().any(|(flag, _)| flag == "rate" || flag == "stages")
}

#[cfg(test)]
mod tests {
    use super::super::text;
    use super::*;
    use crate::tests::fixtures::{STEADY_RATES_PER_S, definition, outcome};
    use weir_measure::compare::{Finding, UnclearReason};

    fn twice() -> [Option<f64>; 7] {
        STEADY_RATES_PER_S.map(|rate| rate.map(|rate| rate * 2.0))
    }

    fn finding(findings: &Findings<'_>, measure: &str) -> Finding {
        let of = findings.metrics.iter().position(|of| of.metric.name == measure).expect("measured");
        findings.verdicts_of_pair(of, VariantPair { base: 0, other: 1 }).next().expect("judged").verdict.finding
    }

    #[test]
    fn twice_the_successes_are_better() {
        let definition = definition("");
        let (_dir, outcome) = outcome(STEADY_RATES_PER_S, twice());
        let findings = Findings::new(&definition, &outcome);
        assert_eq!(finding(&findings, "successes"), Finding::Better);
        let summary = text::summary(&findings);
        assert!(summary.len() == 1 && summary[0].starts_with("b is better than a: successes"), "{summary:?}");
    }

    #[test]
    fn twice_the_successes_with_errors_are_not_better() {
        let definition = definition("");
        let (_dir, mut outcome) = outcome(STEADY_RATES_PER_S, twice());
        for cell in outcome.measurements.iter_mut().filter(|cell| cell.variant == "b") {
            cell.loads[0].failed_fraction = 0.3;
        }
        let findings = Findings::new(&definition, &outcome);
        assert_eq!(finding(&findings, "errors"), Finding::Worse);
        assert_eq!(finding(&findings, "successes"), Finding::Unclear(UnclearReason::Failures));
    }

    #[test]
    fn a_variant_with_failed_measurements_never_wins_and_its_failure_comes_first() {
        let definition = definition("");
        let mut crashes = twice();
        (crashes[1], crashes[4]) = (None, None);
        let (_dir, outcome) = outcome(STEADY_RATES_PER_S, crashes);
        let findings = Findings::new(&definition, &outcome);
        assert_eq!(finding(&findings, "successes"), Finding::Unclear(UnclearReason::Untrusted));
        let summary = text::summary(&findings);
        assert!(summary[0].starts_with("b fails in 2 of 7 measurements: it ended in the middle"), "{summary:?}");
        let report = text::markdown(&findings, &[]);
        assert!(report.contains("out of luck"), "{report}");
    }

    #[test]
    fn a_variant_that_always_fails_is_not_compared() {
        let definition = definition("");
        let (_dir, outcome) = outcome(STEADY_RATES_PER_S, [None; 7]);
        let findings = Findings::new(&definition, &outcome);
        assert_eq!(findings.pairs(), []);
        assert_eq!(text::summary(&findings).len(), 1);
    }

    #[test]
    fn the_primary_metric_of_an_open_loop_is_p99() {
        let definition = definition("rate = 5\n");
        let main = |definition: &Definition| {
            let measures = study_metrics(definition);
            measures.into_iter().filter(|of| of.is_primary).map(|of| of.metric.name).collect::<Vec<_>>()
        };
        assert_eq!(main(&definition), ["p99"]);
    }

    #[test]
    fn a_range_has_the_median_of_the_runs() {
        let definition = definition("");
        let (_dir, outcome) =
            outcome([Some(1.0), Some(9.0), Some(2.0), None, None, None, Some(4.0)], STEADY_RATES_PER_S);
        let findings = Findings::new(&definition, &outcome);
        let spread = findings.run_range(0, 0, 0).expect("four runs");
        assert_eq!((spread.median, spread.low, spread.high, spread.runs), (3.0, 1.0, 9.0, 4));
    }
}
