//! HTML report of a comparison: verdict, figures of all sides, percentiles, and run by run.

use super::advice::advice;
use super::phrases::{change, overall, rule};
use super::{
    ComparedPair, ComparedSide, MetricSelector, MetricVerdict, OverallFinding, RunComparison, SavedRun, Side, letter,
    pairing, step_table,
};
use crate::page::manifest::rerun_command;
use crate::page::{
    AxisScale, BarChart, BarRow, Block, Chart, ChartAxis, ChartLine, KeyFigure, PageTable, PageVerdict, ReportPage,
    Section, TableCell, Tone, ValueInterval, ValueUnit, VerdictPoint,
};
use weir_histogram::Histogram;
use weir_measure::compare::Finding;

/// Maximum length of a side's name in legends; longer ones are replaced by the letter.
const MAX_NAME_CHARS: usize = 16;
/// Quantiles of a curve per factor of ten in rarity.
const QUANTILES_PER_DECADE: f64 = 12.0;

/// HTML report of a comparison of `sides` in `metrics`; `command` is its command line.
pub fn of_comparison(
    comparison: &RunComparison,
    sides: &[Side],
    metrics: &[MetricSelector],
    command: &[String],
) -> ReportPage {
    let names: Vec<&str> = comparison.sides.iter().map(|side| side.name.as_str()).collect();
    let title =
        names.split_first().map_or_else(String::new, |(base, others)| format!("{} vs {base}", others.join(", ")));
    let seen = ComparisonView { comparison, sides, metrics };
    let sections = [seen.metrics(), seen.percentiles(), seen.run_by_run(), seen.full_section(), seen.method(command)];
    ReportPage {
        title,
        about: comparison.sides.iter().map(side).collect(),
        verdict: verdict(comparison),
        key_figures: key_figures(comparison),
        sections: sections.into_iter().filter(|section| !section.blocks.is_empty()).collect(),
    }
}

/// `A: 10 runs of weir`.
fn side(side: &ComparedSide) -> String {
    let (runs, tool) = (side.runs.len(), side.runs.first().map_or("", |run| run.tool.as_str()));
    format!("{}: {runs} run{} of {tool}", side.letter, if runs == 1 { "" } else { "s" })
}

fn tone(finding: OverallFinding) -> Tone {
    match finding {
        OverallFinding::Better => Tone::Good,
        OverallFinding::Worse | OverallFinding::Mixed => Tone::Bad,
        OverallFinding::Same => Tone::Plain,
        OverallFinding::Inconclusive => Tone::Doubt,
    }
}

fn verdict(comparison: &RunComparison) -> PageVerdict {
    let headline = |pair: &ComparedPair| format!("{} vs {}: {}", pair.other, pair.base, overall(pair));
    let worse = comparison.pairs.iter().filter(|pair| tone(pair.finding) == Tone::Bad).count();
    let (tone_of_all, words) = match &comparison.pairs[..] {
        [] => (Tone::Doubt, "Nothing to compare".to_owned()),
        [pair] => (tone(pair.finding), headline(pair)),
        pairs if worse > 0 => (Tone::Bad, format!("{worse} of {} sides are worse", pairs.len())),
        pairs => {
            let all = |finding| pairs.iter().all(|pair| pair.finding == finding);
            match (all(OverallFinding::Same), all(OverallFinding::Better)) {
                (true, _) => (Tone::Plain, "All are the same".to_owned()),
                (_, true) => (Tone::Good, "All are better".to_owned()),
                _ if pairs.iter().any(|pair| pair.finding == OverallFinding::Inconclusive) => {
                    (Tone::Doubt, "None is worse with confidence".to_owned())
                }
                _ => (Tone::Good, "None is worse".to_owned()),
            }
        }
    };
    let mut points: Vec<VerdictPoint> = Vec::new();
    if comparison.pairs.len() > 1 {
        points.extend(comparison.pairs.iter().map(|pair| VerdictPoint::new(tone(pair.finding), headline(pair))));
    }
    let advised = comparison.pairs.iter().flat_map(|pair| {
        let of = if comparison.pairs.len() > 1 { format!("{} vs {}, ", pair.other, pair.base) } else { String::new() };
        advice(pair, comparison).into_iter().map(move |words| format!("To decide {of}{words}."))
    });
    points.extend(advised.map(|words| VerdictPoint::new(Tone::Plain, words)));
    points.extend(comparison.notes.iter().map(|note| VerdictPoint::new(Tone::Doubt, note.as_str())));
    let untrusted = |side: &ComparedSide| side.runs.iter().filter(|run| !run.warnings.is_empty()).count();
    for side in comparison.sides.iter().filter(|side| untrusted(side) > 0) {
        let words = format!("{} of {} runs of {} are not trusted.", untrusted(side), side.runs.len(), side.letter);
        points.push(VerdictPoint::new(Tone::Doubt, words));
    }
    let by_round = comparison.pairs.iter().any(|pair| pair.by_round);
    let turns = if by_round { " Runs of the same round were compared with each other." } else { "" };
    let named = comparison.sides.iter().filter(|side| side.letter != side.name);
    let named: Vec<String> = named.map(|side| format!("{} is {}", side.letter, side.name)).collect();
    let named = if named.is_empty() { String::new() } else { format!("{}.", named.join(", ")) };
    let sentence = format!("{named}{turns}").trim_start().to_owned();
    PageVerdict { tone: tone_of_all, headline: words, sentence, points }
}

/// Metrics of the other side with their changes, of a single pair.
fn key_figures(comparison: &RunComparison) -> Vec<KeyFigure> {
    let [pair] = &comparison.pairs[..] else { return Vec::new() };
    let figure = |judged: &MetricVerdict| {
        let name = format!("{} of {}", judged.metric.name, pair.other);
        let beside = format!("{} vs {}", change(&judged.metric, judged.effect), pair.base);
        let tone = match judged.verdict.finding {
            Finding::Better | Finding::Worse => Tone::of(judged.verdict.finding),
            Finding::Same | Finding::Unclear(_) => Tone::Plain,
        };
        Some(KeyFigure::new(&name, judged.other?, ValueUnit::of(&judged.metric)).with_note(beside).in_tone(tone))
    };
    pair.verdicts.iter().filter_map(figure).collect()
}

/// Input of the sections.
struct ComparisonView<'a> {
    comparison: &'a RunComparison,
    sides: &'a [Side],
    metrics: &'a [MetricSelector],
}

impl ComparisonView<'_> {
    fn name(&self, side: usize) -> String {
        let name = &self.sides[side].name;
        let is_short = name.chars().count() <= MAX_NAME_CHARS && *name != letter(side);
        if is_short { format!("{}: {name}", letter(side)) } else { letter(side) }
    }

    /// Figure of a side in its verdict.
    fn figure(&self, side: usize, metric: usize) -> Option<f64> {
        let of = |pair: usize| self.comparison.pairs.get(pair)?.verdicts.get(metric);
        match side {
            0 => of(0)?.base,
            other => of(other - 1)?.other,
        }
    }

    fn values(&self, side: usize, metric: usize) -> impl Iterator<Item = f64> {
        self.sides[side]
            .runs
            .iter()
            .filter_map(move |run| self.metrics[metric].value(&run.result))
            .filter(|v| v.is_finite())
    }

    fn metrics(&self) -> Section {
        let bars = |metric: usize| {
            let of = self.metrics[metric].metric();
            let bar = |side: usize| {
                let value = self.figure(side, metric)?;
                let range = self
                    .values(side, metric)
                    .fold(ValueInterval { low: f64::INFINITY, high: f64::NEG_INFINITY }, |range, value| {
                        ValueInterval { low: range.low.min(value), high: range.high.max(value) }
                    });
                let interval = (self.values(side, metric).count() > 1).then_some(range);
                let untrusted = self.comparison.sides[side].untrusted;
                Some(BarRow { interval, hue: side, untrusted, ..BarRow::new(self.name(side), value) })
            };
            let bars: Vec<BarRow> = (0..self.sides.len()).filter_map(bar).collect();
            let columns = ["side".to_owned(), of.name.clone()];
            (!bars.is_empty()).then(|| {
                Block::Bars(BarChart {
                    title: of.name.clone(),
                    note: String::new(),
                    columns,
                    unit: ValueUnit::of(&of),
                    bars,
                })
            })
        };
        let mut blocks: Vec<Block> = (0..self.metrics.len()).filter_map(bars).collect();
        if !blocks.is_empty() {
            let words = "The mean over the runs of a side; the interval is from the lowest to the highest run.";
            blocks.insert(0, Block::Text(words.into()));
        }
        Section::new("Side by side", blocks)
    }

    fn percentiles(&self) -> Section {
        let lines = (0..self.sides.len()).filter_map(|side| {
            let curve = curve(&self.sides[side].runs)?;
            let points = curve.iter().map(|(quantile, [middle, ..])| (*quantile, Some(*middle)));
            let line = ChartLine::new(self.name(side), points).in_hue(side);
            let apart = curve.iter().any(|(_, [_, low, high])| low < high);
            let range = |[_, low, high]: &[f64; 3]| Some(ValueInterval { low: *low, high: *high });
            Some(if apart { line.within(curve.iter().map(|(_, times)| range(times))) } else { line })
        });
        let lines: Vec<ChartLine> = lines.collect();
        if lines.is_empty() {
            return Section::default();
        }
        let scale = AxisScale::fitting(lines.iter().flat_map(|line| line.y.iter().flatten().copied()));
        let x = ChartAxis::new("fraction of responses at least as fast", ValueUnit::Quantile).scaled(AxisScale::Tail);
        let mut chart = Chart::new("Percentiles", x, ChartAxis::new("time", ValueUnit::Milliseconds).scaled(scale));
        chart.note = "All runs of a side together; the band is from the lowest to the highest run.".into();
        chart.lines = lines;
        Section::new("Response time", vec![Block::Chart(chart)])
    }

    /// Each run in order of time, which shows a drift.
    fn run_by_run(&self) -> Section {
        if self.sides.iter().all(|side| side.runs.len() < 3) {
            return Section::default();
        }
        let rounds = pairing::match_rounds(self.sides);
        let at = |side: usize, run: usize| rounds.as_ref().map_or(run as u64, |rounds| rounds[side][run]) + 1;
        let chart = |selector: &MetricSelector| {
            let metric = selector.metric();
            let line = |side: usize| {
                let mut runs: Vec<(u64, &SavedRun)> =
                    self.sides[side].runs.iter().enumerate().map(|(i, run)| (at(side, i), run)).collect();
                runs.sort_by_key(|(at, _)| *at);
                let untrusted = runs.iter().enumerate().filter(|(_, (_, run))| !run.result.doubts.is_empty());
                let untrusted: Vec<usize> = untrusted.map(|(i, _)| i).collect();
                let points = runs.iter().map(|(at, run)| (*at as f64, selector.value(&run.result)));
                ChartLine::new(self.name(side), points).in_hue(side).doubting(untrusted)
            };
            let x = ChartAxis::new(if rounds.is_some() { "round" } else { "run" }, ValueUnit::Count);
            let mut chart = Chart::new(&metric.name, x, ChartAxis::new(&metric.name, ValueUnit::of(&metric)));
            chart.lines = (0..self.sides.len()).map(line).collect();
            chart.group = "runs".into();
            chart
        };
        let has_values =
            |chart: &Chart| chart.lines.iter().flat_map(|line| &line.y).flatten().any(|value| *value != 0.0);
        let charts: Vec<Chart> = self.metrics.iter().map(chart).filter(has_values).collect();
        Section::new("Run by run", charts.into_iter().map(Block::Chart).collect())
    }

    fn full_section(&self) -> Section {
        let confidence = self.comparison.confidence;
        let mut blocks: Vec<Block> =
            self.comparison.pairs.iter().map(|pair| Block::Table(table(pair, confidence))).collect();
        let with_steps =
            self.comparison.pairs.iter().filter(|pair| pair.steps.iter().any(super::ComparedStep::is_shown));
        blocks.extend(with_steps.map(|pair| Block::Table(step_table::step_table(pair, confidence))));
        blocks.push(Block::Table(self.runs()));
        Section::new("Details", blocks)
    }

    fn runs(&self) -> PageTable {
        let names = self.metrics.iter().map(|selector| selector.metric().name);
        let columns = ["side", "file"].map(str::to_owned).into_iter().chain(names).chain(["trust".to_owned()]);
        let mut table = PageTable { columns: columns.collect(), folded: true, ..PageTable::new("All runs", &[]) };
        for (side, of) in self.sides.iter().enumerate() {
            for run in &of.runs {
                let mut row = vec![TableCell::text(letter(side)), TableCell::text(&run.file)];
                row.extend(self.metrics.iter().map(|selector| {
                    let value = selector.value(&run.result).filter(|value| value.is_finite());
                    value.map_or(TableCell::Empty, |value| TableCell::Number(value, ValueUnit::of(&selector.metric())))
                }));
                row.push(match run.result.doubts.join(" ") {
                    doubts if doubts.is_empty() => TableCell::Toned(Tone::Good, "trusted".into()),
                    doubts => TableCell::Toned(Tone::Doubt, doubts),
                });
                table.rows.push(row);
            }
        }
        table
    }

    fn method(&self, command: &[String]) -> Section {
        let mut blocks = vec![
            Block::Text(rule(self.comparison)),
            Block::Text(
                "Verdicts are over runs, not requests: the variation between runs decides what is significant. \
                 The intervals are for each row alone."
                    .into(),
            ),
        ];
        blocks.extend(rerun_command(command));
        let mut facts = vec![("weir".to_owned(), self.comparison.weir.clone())];
        let machine = self.sides.iter().flat_map(|side| &side.runs).find_map(|run| run.result.machine.as_ref());
        if let Some(machine) = machine {
            facts.push(("machine".into(), machine.hostname.clone()));
            facts.push(("system".into(), machine.os.clone()));
            facts.push(("processor".into(), machine.cpu.clone()));
            facts.push(("cores".into(), machine.cores.to_string()));
        }
        facts.retain(|(_, words)| !words.is_empty());
        blocks.push(Block::Facts(facts));
        Section::new("Method and manifest", blocks)
    }
}

fn table(pair: &ComparedPair, confidence: f64) -> PageTable {
    let interval_name = format!("{:.0}% interval", confidence * 100.0);
    let title = format!("{} vs {}", pair.other, pair.base);
    let columns = ["", pair.base.as_str(), &pair.other, "change", &interval_name, "verdict"];
    let rows = pair.verdicts.iter().map(|judged| step_table::cells(judged).collect()).collect();
    PageTable { rows, ..PageTable::new(&title, &columns) }
}

/// Quantiles of all runs together, with the lowest and the highest run; of other tools the median over runs. None
/// without any.
fn curve(runs: &[SavedRun]) -> Option<Vec<(f64, [f64; 3])>> {
    let own: Option<Vec<Histogram>> =
        runs.iter().map(|run| run.result.run.as_ref()?.response_histogram().ok()).collect();
    let points: Vec<(f64, [f64; 3])> = match own {
        Some(histograms) => {
            let mut all = Histogram::precise();
            histograms.iter().for_each(|histogram| all.add(histogram));
            // A quantile with fewer than ten responses beyond it is chance.
            let end = (all.count() as f64 / 10.0).max(1.0).log10();
            let quantiles = (0..=(end * QUANTILES_PER_DECADE) as u64)
                .map(|i| 1.0 - 10_f64.powf(-(i as f64) / QUANTILES_PER_DECADE));
            let ends = |quantile: f64| {
                let each = histograms.iter().filter_map(|histogram| histogram.quantile_ms(quantile));
                each.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), ms| (low.min(ms), high.max(ms)))
            };
            let point = |quantile: f64| {
                let (low, high) = ends(quantile);
                Some((quantile, [all.quantile_ms(quantile)?, low, high]))
            };
            quantiles.filter_map(point).collect()
        }
        None => {
            let known = &runs.first()?.result.percentiles;
            let point = |percentile: f64| {
                let mut values: Vec<f64> =
                    runs.iter().map(|run| run.result.percentile_ms(percentile)).collect::<Option<_>>()?;
                values.sort_by(f64::total_cmp);
                let (low, high) = (*values.first()?, *values.last()?);
                Some((percentile / 100.0, [*values.get(values.len() / 2)?, low, high]))
            };
            let mut points: Vec<_> = known.iter().filter_map(|(percentile, _)| point(*percentile)).collect();
            points.retain(|(quantile, _)| (0.0..1.0).contains(quantile));
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            points
        }
    };
    (!points.is_empty()).then_some(points)
}
