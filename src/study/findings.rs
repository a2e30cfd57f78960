//! What the measurements of a study say: figures by variant and point, and a verdict on each pair of variants.

use serde::Serialize;

use super::StudyOutcome;
use super::cell::Measurement;
use super::definition::{Definition, StudyLoad};
use crate::measure::compare::{
    Better, ComparisonVerdict, Finding, Metric, MetricSample, Pair, RunFigure, Settings, judge,
};

/// What is compared, of which load.
#[derive(Clone, Debug)]
pub struct StudyMetric {
    /// The load; none for what is of the whole variant.
    pub load: Option<String>,
    /// The metric.
    pub metric: Metric,
    /// Whether it is what the study is mainly about.
    pub is_main: bool,
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
    /// Of a client, by its name.
    Client,
}

/// A verdict, and what it is on.
#[derive(Clone, Debug)]
pub struct PairVerdict {
    /// Index of the measure.
    pub metric: usize,
    /// Index of the point.
    pub point: usize,
    /// Index of the variant that the other one is held against.
    pub base: usize,
    /// Index of the other one.
    pub other: usize,
    /// The verdict.
    pub verdict: ComparisonVerdict,
}

/// All that a study found.
#[derive(Debug)]
pub struct Findings<'a> {
    /// The study.
    pub definition: &'a Definition,
    /// Its measurements.
    pub outcome: &'a StudyOutcome,
    /// The points of its sweep.
    pub points: Vec<Vec<(String, String)>>,
    /// What is compared.
    pub metrics: Vec<StudyMetric>,
    /// The verdicts, by measure, pair and point.
    pub verdicts: Vec<PairVerdict>,
}

/// The middle and the ends of a variant's figures at a point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RunRange {
    /// The median of the runs.
    pub median: f64,
    /// The least.
    pub low: f64,
    /// The most.
    pub high: f64,
    /// How many there are.
    pub runs: usize,
    /// Runs that are not to be trusted.
    pub untrusted: usize,
}

/// A variant with many others is not held against each of them: the verdicts would say less and less.
const MAX_VARIANTS_FOR_ALL_PAIRS: usize = 4;

impl<'a> Findings<'a> {
    /// Judges what was measured.
    pub fn new(definition: &'a Definition, outcome: &'a StudyOutcome) -> Self {
        let points = definition.points();
        let mut findings =
            Self { definition, outcome, points, metrics: study_metrics(definition), verdicts: Vec::new() };
        findings.verdicts = (0..findings.metrics.len()).flat_map(|measure| findings.compare_metric(measure)).collect();
        findings.penalize_failures();
        findings
    }

    /// The verdicts on one measure, over all pairs and points together.
    fn compare_metric(&self, measure: usize) -> Vec<PairVerdict> {
        let places: Vec<(usize, usize, usize)> = self
            .pairs()
            .into_iter()
            .flat_map(|(base, other)| self.points_of(measure).map(move |point| (base, other, point)))
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
        Settings { min_effect: self.definition.minimum_effect, seed: self.definition.seed, ..Settings::default() }
    }

    /// Takes back what a variant won of which more requests failed: under the same load, or, for what is of the whole
    /// variant, under any.
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

    /// Which variants are held against which: each against each, or all against the first if they are many. Only those
    /// that have figures.
    pub fn pairs(&self) -> Vec<(usize, usize)> {
        let is_measured = |variant: &usize| {
            let name = self.variant(*variant);
            self.outcome.measurements.iter().any(|cell| cell.variant == name && cell.is_measured())
        };
        // Who has always failed has lost without a verdict.
        let all: Vec<usize> = (0..self.definition.variants.len()).filter(is_measured).collect();
        let bases = if all.len() > MAX_VARIANTS_FOR_ALL_PAIRS { 1 } else { all.len() };
        let others =
            |(at, base): (usize, &usize)| all[at + 1..].iter().map(|other| (*base, *other)).collect::<Vec<_>>();
        all[..bases].iter().enumerate().flat_map(others).collect()
    }

    /// The points at which a measure is taken: those at which its load is driven.
    pub fn points_of(&self, measure: usize) -> impl Iterator<Item = usize> {
        let name = self.metrics[measure].load.as_deref();
        let load = self.definition.loads.iter().find(|load| Some(load.name.as_str()) == name);
        (0..self.points.len()).filter(move |point| load.is_none_or(|load| load.is_driven_at(&self.points[*point])))
    }

    /// The name of a variant.
    pub fn variant(&self, index: usize) -> &str {
        &self.definition.variants[index].program.name
    }

    /// The measurements of a variant at a point, by round.
    pub fn measurements(&self, variant: usize, point: usize) -> impl Iterator<Item = &'a Measurement> {
        let (name, point) = (self.variant(variant).to_owned(), self.points[point].clone());
        self.outcome.measurements.iter().filter(move |cell| cell.variant == name && cell.point == point)
    }

    fn sample(&self, measure: usize, variant: usize, point: usize) -> MetricSample {
        let of = &self.metrics[measure];
        // Measurements fail when it matters, so those that are left flatter.
        let failed = self.measurements(variant, point).filter(|cell| !cell.is_measured()).count();
        let is_sound = failed * 5 <= self.measurements(variant, point).count();
        let figure = |cell: &Measurement| {
            Some(RunFigure { round: cell.repeat, value: of.value(cell)?, trusted: is_sound && cell.is_trusted() })
        };
        MetricSample { figures: self.measurements(variant, point).filter_map(figure).collect(), in_rounds: true }
    }

    /// A variant's figures at a point; None if there are none.
    pub fn run_range(&self, measure: usize, variant: usize, point: usize) -> Option<RunRange> {
        let sample = self.sample(measure, variant, point);
        let mut values: Vec<f64> = sample.figures.iter().map(|figure| figure.value).collect();
        values.sort_by(f64::total_cmp);
        RunRange::of(&values, sample.untrusted())
    }

    /// The verdicts of a pair on a measure, by point.
    pub fn verdicts_of_pair(&self, measure: usize, pair: (usize, usize)) -> impl Iterator<Item = &PairVerdict> {
        self.verdicts.iter().filter(move |it| it.metric == measure && (it.base, it.other) == pair)
    }

    /// Whether any main verdict tells a difference.
    pub fn has_finding(&self, finding: Finding) -> bool {
        self.verdicts.iter().any(|it| self.metrics[it.metric].is_main && it.verdict.finding == finding)
    }
}

impl RunRange {
    /// That of values in ascending order; None of no values.
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
    /// Its figure in a measurement; None if that has failed or has none.
    pub fn value(&self, cell: &Measurement) -> Option<f64> {
        if !cell.is_measured() {
            return None;
        }
        let load = || cell.loads.iter().find(|load| Some(&load.load) == self.load.as_ref());
        match self.source {
            MetricSource::Rate => Some(load()?.rate_per_s),
            // Without a success there is none of its times.
            MetricSource::Median => load().filter(|load| load.failed_fraction < 1.0).map(|load| load.p50_ms),
            MetricSource::P99 => load().filter(|load| load.failed_fraction < 1.0).map(|load| load.p99_ms),
            MetricSource::Failed => Some(load()?.failed_fraction),
            MetricSource::Memory => {
                let usage = cell.usage.as_ref()?;
                Some(usage.pss_peak_bytes.unwrap_or(usage.rss_peak_bytes) as f64 / f64::from(1 << 20))
            }
            MetricSource::Cpu => cell.usage.as_ref()?.cpu_us_per_response,
            MetricSource::Client => cell.client_metrics.get(&self.metric.name).copied(),
        }
    }

    /// Whether it says how much went wrong.
    pub fn is_failure_rate(&self) -> bool {
        matches!(self.source, MetricSource::Failed)
    }

    /// Whether it says what of the machine was used.
    pub fn is_resource_usage(&self) -> bool {
        matches!(self.source, MetricSource::Memory | MetricSource::Cpu)
    }

    /// Its name, with that of its load where there are several.
    pub fn name(&self) -> String {
        self.load.as_ref().map_or_else(|| self.metric.name.clone(), |load| format!("{load}: {}", self.metric.name))
    }
}

fn study_metrics(definition: &Definition) -> Vec<StudyMetric> {
    let mut measures = Vec::new();
    let services = definition.variants.iter().any(|variant| !variant.is_client);
    for load in definition.loads.iter().filter(|_| services) {
        // Who offers a rate asks what people wait; who asks all the time, how much gets done.
        let open = is_open(load);
        let mut add = |of, metric, is_main| {
            measures.push(StudyMetric { load: Some(load.name.clone()), metric, is_main, source: of });
        };
        add(MetricSource::Rate, Metric::ratio("good answers", "/s", Better::Higher), !open);
        add(MetricSource::Median, Metric::ratio("p50", "ms", Better::Lower), false);
        add(MetricSource::P99, Metric::ratio("p99", "ms", Better::Lower), open);
        add(MetricSource::Failed, Metric::fraction("failed", Better::Lower), false);
    }
    for (at, metric) in definition.client_metrics.iter().enumerate() {
        measures.push(StudyMetric {
            load: None,
            metric: metric.clone(),
            is_main: at == 0 && !services,
            source: MetricSource::Client,
        });
    }
    let mut add = |of, metric| measures.push(StudyMetric { load: None, metric, is_main: false, source: of });
    add(MetricSource::Memory, Metric::ratio("memory peak", "MiB", Better::Lower));
    if services {
        add(MetricSource::Cpu, Metric::ratio("CPU per good answer", "us", Better::Lower));
    }
    measures
}

fn is_open(load: &StudyLoad) -> bool {
    load.flags.iter().any(|(flag, _)| flag == "rate" || flag == "stages")
}

#[cfg(test)]
mod tests {
    use super::super::sample::{STEADY_RATES_PER_S, definition, outcome};
    use super::super::text;
    use super::*;
    use crate::measure::compare::UnclearReason;

    fn twice() -> [Option<f64>; 7] {
        STEADY_RATES_PER_S.map(|rate| rate.map(|rate| rate * 2.0))
    }

    fn finding(findings: &Findings<'_>, measure: &str) -> Finding {
        let of = findings.metrics.iter().position(|of| of.metric.name == measure).expect("measured");
        findings.verdicts_of_pair(of, (0, 1)).next().expect("judged").verdict.finding
    }

    #[test]
    fn who_answers_twice_as_much_is_better() {
        let definition = definition("");
        let (_dir, outcome) = outcome(STEADY_RATES_PER_S, twice());
        let findings = Findings::new(&definition, &outcome);
        assert_eq!(finding(&findings, "good answers"), Finding::Better);
        let sentences = text::sentences(&findings);
        assert!(sentences.len() == 1 && sentences[0].starts_with("b is better than a: good answers"), "{sentences:?}");
    }

    #[test]
    fn who_answers_twice_as_much_with_failures_is_not_better() {
        let definition = definition("");
        let (_dir, mut outcome) = outcome(STEADY_RATES_PER_S, twice());
        for cell in outcome.measurements.iter_mut().filter(|cell| cell.variant == "b") {
            cell.loads[0].failed_fraction = 0.3;
        }
        let findings = Findings::new(&definition, &outcome);
        assert_eq!(finding(&findings, "failed"), Finding::Worse);
        assert_eq!(finding(&findings, "good answers"), Finding::Unclear(UnclearReason::Failures));
    }

    #[test]
    fn who_fails_now_and_then_never_wins_and_says_so_first() {
        let definition = definition("");
        let mut crashes = twice();
        (crashes[1], crashes[4]) = (None, None);
        let (_dir, outcome) = outcome(STEADY_RATES_PER_S, crashes);
        let findings = Findings::new(&definition, &outcome);
        assert_eq!(finding(&findings, "good answers"), Finding::Unclear(UnclearReason::Untrusted));
        let sentences = text::sentences(&findings);
        assert!(sentences[0].starts_with("b fails in 2 of 7 measurements: it ended in the middle"), "{sentences:?}");
        let report = text::markdown(&findings, &[]);
        assert!(report.contains("out of luck"), "{report}");
    }

    #[test]
    fn who_always_fails_is_held_against_nobody() {
        let definition = definition("");
        let (_dir, outcome) = outcome(STEADY_RATES_PER_S, [None; 7]);
        let findings = Findings::new(&definition, &outcome);
        assert_eq!(findings.pairs(), []);
        assert_eq!(text::sentences(&findings).len(), 1);
    }

    #[test]
    fn an_open_loop_is_about_response_times() {
        let definition = definition("rate = 5\n");
        let main = |definition: &Definition| {
            let measures = study_metrics(definition);
            measures.into_iter().filter(|of| of.is_main).map(|of| of.metric.name).collect::<Vec<_>>()
        };
        assert_eq!(main(&definition), ["p99"]);
    }

    #[test]
    fn the_middle_of_runs_is_their_median() {
        let definition = definition("");
        let (_dir, outcome) =
            outcome([Some(1.0), Some(9.0), Some(2.0), None, None, None, Some(4.0)], STEADY_RATES_PER_S);
        let findings = Findings::new(&definition, &outcome);
        let spread = findings.run_range(0, 0, 0).expect("four runs");
        assert_eq!((spread.median, spread.low, spread.high, spread.runs), (3.0, 1.0, 9.0, 4));
    }
}
