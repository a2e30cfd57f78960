//! Runs to a language model at several values of a flag: the curve of throughput against response times.

use super::super::ansi::AnsiPaint;
use super::super::number_format::{count, ms, percentage, rate, wrap};
use crate::page::manifest::manifest_section;
use crate::page::{
    AxisScale, Block, Chart, ChartAxis, ChartLevel, ChartLine, KeyFigure, PageTable, PageVerdict, ReportPage, Section,
    TableCell, Tone, ValueUnit, VerdictPoint, date,
};
use weir_base::Nanos;
use weir_histogram::percentiles::Percentiles;
use weir_measure::Run;
use weir_measure::goodput::GoodputObjectives;
use weir_measure::run_llm::RunLlm;

/// Fraction of requests that meet all objectives, above which a load is good.
const GOOD_FRACTION: f64 = 0.99;

/// Runs at several values of a flag.
#[derive(Clone, Debug, PartialEq)]
pub struct LlmSweep {
    /// Name of the flag, such as `rate`.
    pub flag: String,
    /// Runs, in ascending order of the flag's values.
    pub points: Vec<LlmSweepPoint>,
}

/// Run at one value.
#[derive(Clone, Debug, PartialEq)]
pub struct LlmSweepPoint {
    /// Value of the flag.
    pub value: f64,
    /// Run.
    pub run: Run,
}

impl LlmSweepPoint {
    fn llm(&self) -> RunLlm {
        self.run.llm.clone().unwrap_or_default()
    }

    /// Fraction of all requests that met all objectives; none without objectives.
    fn good_fraction(&self) -> Option<f64> {
        let llm = self.llm();
        (!llm.objectives.is_empty()).then(|| llm.good as f64 / self.run.requests.total.max(1) as f64)
    }
}

/// Columns of the table in text: heading, width.
const COLUMNS: [(&str, usize); 9] = [
    ("req/s", 7),
    ("tok/s", 8),
    ("TTFT p50", 9),
    ("p99", 7),
    ("TPOT p50", 9),
    ("p99", 7),
    ("E2E p99", 8),
    ("good", 6),
    ("failed", 7),
];
const FIRST_WIDTH: usize = 11;

impl LlmSweep {
    /// Table of all runs, with ANSI colours if `color`.
    pub fn text(&self, color: bool) -> String {
        let paint = AnsiPaint { enabled: color };
        let heading: String = COLUMNS.iter().map(|(name, width)| format!("{name:>width$}")).collect();
        let mut lines = vec![paint.dim(&format!("{:<FIRST_WIDTH$}{heading}", self.flag))];
        lines.extend(self.points.iter().map(|point| {
            let line = row(point);
            match (point.run.trust.ok, point.run.only_digits_in_doubt()) {
                (true, _) => line,
                (false, true) => paint.yellow(&format!("{line}!")),
                (false, false) => paint.red(&format!("{line}!")),
            }
        }));
        for (is_caution, words) in self.doubts() {
            let reasons = wrap("! ", &words);
            lines.extend(reasons.iter().map(|line| if is_caution { paint.yellow(line) } else { paint.red(line) }));
        }
        lines.push(String::new());
        lines.push(self.finding());
        lines.join("\n") + "\n"
    }

    /// Reasons not to trust runs, each once with the values of all runs that have it, and whether only digits are in doubt:
    /// `concurrency 1, 2: caution: too few successes ...`.
    fn doubts(&self) -> Vec<(bool, String)> {
        let mut all: Vec<(bool, String, Vec<String>)> = Vec::new();
        for point in self.points.iter().filter(|point| !point.run.trust.ok) {
            let (is_caution, reasons) = (point.run.only_digits_in_doubt(), point.run.trust.reasons.join("; "));
            match all.iter_mut().find(|(_, known, _)| *known == reasons) {
                Some((.., values)) => values.push(point.value.to_string()),
                None => all.push((is_caution, reasons, vec![point.value.to_string()])),
            }
        }
        let words = |(is_caution, reasons, values): (bool, String, Vec<String>)| {
            let verdict = match (is_caution, values.len()) {
                (true, _) => ": caution:",
                (false, 1) => " is not trusted:",
                (false, _) => " are not trusted:",
            };
            (is_caution, format!("{} {}{verdict} {reasons}", self.flag, values.join(", ")))
        };
        all.into_iter().map(words).collect()
    }

    /// Conclusion from all runs: the highest value at which the server meets the objectives, in one line.
    fn finding(&self) -> String {
        let objectives = self.points.first().map(|point| point.llm().objectives).unwrap_or_default();
        if objectives.is_empty() {
            let with_tokens = self.points.iter().filter(|point| point.llm().output_tokens_per_s > 0.0);
            let best = with_tokens.max_by(|a, b| a.llm().output_tokens_per_s.total_cmp(&b.llm().output_tokens_per_s));
            return best.map_or_else(
                || "no run has tokens".to_owned(),
                |point| {
                    let tokens = rate(point.llm().output_tokens_per_s);
                    format!("highest output: {tokens} tokens/s at {} {}", self.flag, point.value)
                },
            );
        }
        let is_good = |point: &&LlmSweepPoint| point.good_fraction().is_some_and(|good| good >= GOOD_FRACTION);
        // The highest value below the first one that is not good: a good one above that was luck.
        let good = self.points.iter().take_while(is_good).last();
        let words = format!("{objectives} for {}% of requests", GOOD_FRACTION * 100.0);
        match good {
            Some(point) if Some(point.value) == self.points.last().map(|last| last.value) => {
                format!("{words}: met at all values, up to {} {}", self.flag, point.value)
            }
            Some(point) => format!("{words}: met up to {} {}", self.flag, point.value),
            None => format!("{words}: not met, even at {} {}", self.flag, self.points.first().map_or(0.0, |p| p.value)),
        }
    }

    /// All runs as JSON: flag, values and runs.
    pub fn to_json(&self) -> String {
        let run = |point: &LlmSweepPoint| serde_json::from_str::<serde_json::Value>(&point.run.to_json()).ok();
        let points: Vec<_> =
            self.points.iter().map(|point| serde_json::json!({ "value": point.value, "run": run(point) })).collect();
        format!("{}\n", serde_json::json!({ "sweep": self.flag, "points": points }))
    }

    /// HTML report.
    pub fn page(&self) -> ReportPage {
        let first = self.points.first();
        let url = first.map(|point| point.run.target.url.clone()).unwrap_or_default();
        let points = self.doubts().into_iter().map(|(_, words)| VerdictPoint::new(Tone::Doubt, words));
        let points: Vec<VerdictPoint> = points.collect();
        let verdict = PageVerdict {
            tone: if points.is_empty() { Tone::Plain } else { Tone::Doubt },
            headline: self.finding(),
            sentence: format!("{} runs, one after the other.", self.points.len()),
            points,
        };
        let mut sections = vec![self.curve(), self.by_value(), self.table()];
        if let Some(point) = first {
            sections.push(manifest_section(&point.run.weir, &point.run.manifest, &[]));
        }
        ReportPage {
            title: format!("Sweep of {} · {url}", self.flag),
            about: first.and_then(|point| date(point.run.manifest.started_unix_s)).into_iter().collect(),
            verdict,
            key_figures: self.key_figures(),
            sections,
        }
    }

    fn key_figures(&self) -> Vec<KeyFigure> {
        let per_s = |of: fn(&RunLlm) -> f64| self.points.iter().map(|point| of(&point.llm())).fold(0.0, f64::max);
        vec![
            KeyFigure::new("most tokens out", per_s(|llm| llm.output_tokens_per_s), ValueUnit::PerSecond),
            KeyFigure::new("most requests", per_s(|llm| llm.requests_per_s), ValueUnit::PerSecond),
        ]
    }

    /// Throughput against times.
    fn curve(&self) -> Section {
        let limits = self.limits();
        let charts = [
            self.time_chart("TTFT", |llm| &llm.ttft_ms, limits.ttft),
            self.time_chart("TPOT", |llm| &llm.tpot_ms, limits.tpot),
            self.time_chart("End to end", |llm| &llm.e2e_ms, limits.e2e),
        ];
        let charts = charts.into_iter().filter(|chart| !chart.is_empty()).map(Block::Chart);
        let words = format!("Each point is a run; its name is the {}.", self.flag);
        Section::new("Throughput against time", [Block::Text(words)].into_iter().chain(charts).collect())
    }

    /// Chart of times over tokens per second, with their objective.
    fn time_chart(&self, title: &str, times: fn(&RunLlm) -> &Percentiles, limit: Option<Nanos>) -> Chart {
        let mut points: Vec<(f64, RunLlm)> = self.points.iter().map(|point| (point.value, point.llm())).collect();
        points.sort_by(|a, b| a.1.output_tokens_per_s.total_cmp(&b.1.output_tokens_per_s));
        let line = |name: &str, of: fn(&Percentiles) -> Option<f64>| {
            let value = |(_, llm): &(f64, RunLlm)| (llm.output_tokens_per_s, of(times(llm)));
            ChartLine::new(name, points.iter().map(value))
        };
        let both = |(_, llm): &(f64, RunLlm)| [times(llm).p50, times(llm).p99];
        let scale = AxisScale::fitting(points.iter().flat_map(both).flatten());
        let names = points.iter().map(|(value, _)| value.to_string());
        let x = ChartAxis::new("tokens out per second", ValueUnit::Other("tokens/s".into()));
        let y = ChartAxis::new("time", ValueUnit::Milliseconds).scaled(scale);
        let mut chart = Chart::new(title, x, y)
            .line(line("p50", |times| times.p50))
            .line(line("p99", |times| times.p99).labelled(names));
        let level = |limit: Nanos| ChartLevel { at: limit.as_millis_f64(), name: "objective".to_owned() };
        chart.levels.extend(limit.map(level));
        chart
    }

    fn limits(&self) -> GoodputObjectives {
        let objectives = self.points.first().map(|point| point.llm().objectives).unwrap_or_default();
        GoodputObjectives::parse(&objectives).unwrap_or_default()
    }

    fn by_value(&self) -> Section {
        let x = || {
            let unit = if self.flag == "rate" { ValueUnit::PerSecond } else { ValueUnit::Count };
            let values = || self.points.iter().map(|point| point.value);
            ChartAxis::new(&self.flag, unit).scaled(AxisScale::fitting(values())).marking(values())
        };
        let line = |name: &str, of: &dyn Fn(&LlmSweepPoint) -> f64| {
            ChartLine::new(name, self.points.iter().map(|point| (point.value, Some(of(point)))))
        };
        let tokens =
            Chart::new("Tokens", x(), ChartAxis::new("tokens per second", ValueUnit::Other("tokens/s".into())))
                .line(line("out", &|point| point.llm().output_tokens_per_s))
                .line(line("in", &|point| point.llm().input_tokens_per_s));
        let mut requests = Chart::new("Requests", x(), ChartAxis::new("requests per second", ValueUnit::PerSecond))
            .line(line("succeeded", &|point| point.llm().requests_per_s));
        if self.points.iter().any(|point| point.good_fraction().is_some()) {
            requests.lines.push(line("met all objectives", &|point| point.llm().goodput_per_s));
        }
        Section::new("By load", vec![Block::Chart(tokens), Block::Chart(requests)])
    }

    fn table(&self) -> Section {
        let names: Vec<&str> = [self.flag.as_str()].into_iter().chain(COLUMNS.map(|(name, _)| name)).collect();
        let rows = self.points.iter().map(|point| {
            let llm = point.llm();
            let per_s = |value| TableCell::Number(value, ValueUnit::PerSecond);
            let good = point.good_fraction().map_or(TableCell::Empty, |good| {
                let tone = if good >= GOOD_FRACTION { Tone::Good } else { Tone::Bad };
                TableCell::Toned(tone, percentage(good))
            });
            vec![
                // Concurrencies and most rates are whole numbers.
                match point.value.fract() == 0.0 {
                    true => TableCell::Number(point.value, ValueUnit::Count),
                    false => TableCell::Number(point.value, ValueUnit::Other(String::new())),
                },
                per_s(llm.requests_per_s),
                TableCell::Number(llm.output_tokens_per_s, ValueUnit::Other("tokens/s".into())),
                TableCell::ms(llm.ttft_ms.p50),
                TableCell::ms(llm.ttft_ms.p99),
                TableCell::ms(llm.tpot_ms.p50),
                TableCell::ms(llm.tpot_ms.p99),
                TableCell::ms(llm.e2e_ms.p99),
                good,
                TableCell::count(point.run.requests.failed),
            ]
        });
        let table = PageTable { rows: rows.collect(), ..PageTable::new("Runs", &names) };
        Section::new("Details", vec![Block::Table(table)])
    }
}

fn row(point: &LlmSweepPoint) -> String {
    let llm = point.llm();
    let cells = [
        rate(llm.requests_per_s),
        rate(llm.output_tokens_per_s),
        ms(llm.ttft_ms.p50),
        ms(llm.ttft_ms.p99),
        ms(llm.tpot_ms.p50),
        ms(llm.tpot_ms.p99),
        ms(llm.e2e_ms.p99),
        point.good_fraction().map_or_else(|| "-".to_owned(), percentage),
        count(point.run.requests.failed),
    ];
    let cells: String = cells.iter().zip(COLUMNS).map(|(cell, (_, width))| format!("{cell:>width$}")).collect();
    format!("{:<FIRST_WIDTH$}{cells}", point.value)
}
