//! Test of recovery in the HTML report: the course over time, and every phase.

use super::recovery::{clients, headline, phase_name, rest};
use crate::page::{
    Block, Chart, ChartAxis, ChartLevel, ChartLine, ChartSpan, PageTable, Section, TableCell, Tone, ValueUnit,
    VerdictPoint,
};
use weir_measure::recovery::recovery_report::SecondReport;
use weir_measure::recovery::{RecoveryPhase, RecoveryReport, RecoveryVerdict};

/// Tone of a verdict.
pub(super) fn tone(verdict: RecoveryVerdict) -> Tone {
    match verdict {
        RecoveryVerdict::Recovered | RecoveryVerdict::Undisturbed => Tone::Good,
        RecoveryVerdict::Degraded | RecoveryVerdict::Metastable => Tone::Bad,
        RecoveryVerdict::Inconclusive => Tone::Doubt,
    }
}

/// Verdict with its reasons, as points.
pub(super) fn points(tested: &RecoveryReport, with_headline: bool) -> Vec<VerdictPoint> {
    let mut points = Vec::new();
    if with_headline {
        points.push(VerdictPoint::new(tone(tested.verdict), format!("Recovery: {}", headline(tested))));
    }
    points.push(VerdictPoint::new(Tone::Plain, format!("Reason: {}", tested.reason)));
    points.extend(rest(tested).map(|words| VerdictPoint::new(Tone::Plain, format!("Rest: {words}"))));
    points.extend(tested.doubts.iter().map(|words| VerdictPoint::new(Tone::Doubt, format!("Not trusted: {words}"))));
    points
}

/// Plots over time, and the table of phases.
pub(super) fn section(tested: &RecoveryReport) -> Section {
    if tested.series.len() < 2 {
        return Section::default();
    }
    let line = |name: &str, of: &dyn Fn(&SecondReport) -> Option<f64>| {
        ChartLine::new(name, tested.series.iter().map(|second| (second.t_s as f64, of(second))))
    };
    let x = || ChartAxis::new("time", ValueUnit::Seconds);
    let calls = Chart::new("Calls", x(), ChartAxis::new("calls per second", ValueUnit::PerSecond))
        .line(line("good", &|second| Some(second.good as f64)))
        .line(line("offered", &|second| Some(second.offered_per_s)))
        .line(line("requests", &|second| Some(second.requests as f64)))
        .line(line("failed", &|second| Some(second.failed as f64)).in_tone(Tone::Bad));
    let mut times = Chart::new("Time of good calls", x(), ChartAxis::new("time", ValueUnit::Milliseconds))
        .line(line("p50", &|second| second.p50_ms))
        .line(line("p90", &|second| second.p90_ms));
    times.levels.extend(tested.max_p50_ms.map(|at| ChartLevel { at, name: "highest normal p50".into() }));
    let in_flight = Chart::new("Requests in flight", x(), ChartAxis::new("requests", ValueUnit::Count))
        .line(line("in flight", &|second| Some(second.in_flight as f64)));
    let charts = [calls, times, in_flight].into_iter().map(|mut chart| {
        chart.group = "recovery".into();
        chart.spans = spans(tested);
        Block::Chart(chart)
    });
    let words = format!(
        "A call is what a user wants: a request with its retries. Clients: {}. Bands: the trigger, and the rest with \
         little load.",
        clients(tested)
    );
    let blocks = [Block::Text(words)].into_iter().chain(charts).chain([Block::Table(phases(tested))]);
    Section::new("Recovery", blocks.collect())
}

fn spans(tested: &RecoveryReport) -> Vec<ChartSpan> {
    let marked = [RecoveryPhase::WarmUp, RecoveryPhase::Trigger, RecoveryPhase::Rest];
    let phases = tested.phases.iter().filter(|phase| marked.contains(&phase.phase));
    phases
        .map(|phase| ChartSpan {
            from: phase.from_s as f64,
            to: (phase.from_s + phase.duration_s) as f64,
            name: phase_name(phase.phase).into(),
        })
        .collect()
}

fn phases(tested: &RecoveryReport) -> PageTable {
    let columns = ["phase", "time", "offered", "good", "failed", "p50", "p99", "requests per call"];
    let table = PageTable::new("Phases", &columns);
    tested.phases.iter().fold(table, |table, phase| {
        let per_s = |value: f64| TableCell::Number(value, ValueUnit::PerSecond);
        let time = |ms: Option<f64>| ms.map_or(TableCell::Empty, TableCell::ms);
        let requests = phase.requests_per_call;
        table.row([
            TableCell::text(phase_name(phase.phase)),
            TableCell::Number(phase.duration_s as f64, ValueUnit::Seconds),
            per_s(phase.offered_per_s),
            per_s(phase.good_per_s),
            per_s(phase.failed_per_s),
            time(phase.p50_ms),
            time(phase.p99_ms),
            requests.map_or(TableCell::Empty, |requests| TableCell::Number(requests, ValueUnit::Other(String::new()))),
        ])
    })
}
