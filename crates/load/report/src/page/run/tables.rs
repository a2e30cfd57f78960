//! Tables of a run: outcomes of requests, all clocks, agents, and the time series.

use crate::number_format;
use crate::page::{PageTable, TableCell, Tone, ValueUnit};
use crate::text::accepted_text;
use weir_histogram::percentiles::Percentiles;
use weir_measure::Run;
use weir_measure::agent_counts::Agent;
use weir_measure::series::{MAX_POINTS, SeriesPoint};

pub(super) fn outcomes(run: &Run) -> Option<PageTable> {
    let mut table = PageTable::new("Outcomes of requests", &["status or failure", "requests", "percent", ""]);
    let all = run.requests.total as f64;
    let mut row = |tone: Tone, name: &str, n: u64, words: &str| {
        let percentage = TableCell::Number(n as f64 / all, ValueUnit::Fraction);
        table.rows.push(vec![
            TableCell::Toned(tone, name.to_owned()),
            TableCell::count(n),
            percentage,
            TableCell::text(words),
        ]);
    };
    for (status, n) in &run.status {
        let tone = if run.failed_by_status(status) > 0 { Tone::Bad } else { Tone::Good };
        let words = accepted_text(run, status, *n);
        row(tone, status, *n, run.target.failure_details.get(status).unwrap_or(&words));
    }
    // Classes and names of statuses are in the rows above.
    let is_status = |kind: &String| kind.ends_with("xx") || run.status.contains_key(kind);
    for (kind, n) in run.failures.iter().filter(|(kind, _)| !is_status(kind)) {
        row(Tone::Bad, kind, *n, run.target.failure_details.get(kind).map_or("", String::as_str));
    }
    (!table.rows.is_empty()).then_some(table)
}

pub(super) fn clocks(run: &Run) -> Option<PageTable> {
    let clocks = [
        ("response time", &run.response_ms),
        ("service time", &run.service_ms),
        ("first byte", &run.first_byte_ms),
        ("of failures", &run.failed_ms),
        ("connecting", &run.connect_ms),
        ("lateness of weir", &run.lateness_ms),
    ];
    spreads("Times by all clocks", &clocks)
}

/// Table of times, a row each; none without any time.
pub(super) fn spreads(title: &str, times: &[(&str, &Percentiles)]) -> Option<PageTable> {
    let columns = ["", "mean", "sd", "min", "p50", "p75", "p90", "p95", "p99", "p99.9", "max"];
    let rows = times.iter().filter(|(_, spread)| spread.max.is_some_and(|ms| ms > 0.0)).map(|(name, s)| {
        let values = [s.mean, s.sd, s.min, s.p50, s.p75, s.p90, s.p95, s.p99, s.p999, s.max];
        [TableCell::text(*name)].into_iter().chain(values.map(TableCell::ms)).collect()
    });
    let table = PageTable { rows: rows.collect(), ..PageTable::new(title, &columns) };
    (!table.rows.is_empty()).then_some(table)
}

pub(super) fn agents(run: &Run) -> Option<PageTable> {
    let columns = [
        "agent",
        "node",
        "per second",
        "ok",
        "p50",
        "p99",
        "max",
        "late p99",
        "busiest thread",
        "start offset",
        "clock error",
        "",
    ];
    let row = |(index, agent): (usize, &Agent)| {
        let Agent { response_ms, lateness_ms, .. } = agent;
        let lost = agent.failure.as_ref();
        let end = lost.map_or(TableCell::Empty, |why| TableCell::Toned(Tone::Doubt, format!("lost: {why}")));
        let [p50, p99, max] = [response_ms.p50, response_ms.p99, response_ms.max].map(TableCell::ms);
        let busy = TableCell::Number(agent.cpu_utilization, ValueUnit::Fraction);
        let (rate, ok) = (TableCell::Number(agent.rate_per_s, ValueUnit::PerSecond), TableCell::count(agent.ok));
        let late = TableCell::ms(lateness_ms.p99);
        let [began, error] = [agent.start_offset_ms, agent.clock_error_ms].map(TableCell::ms);
        let (number, node) = (TableCell::count(index as u64 + 1), TableCell::text(&agent.node));
        vec![number, node, rate, ok, p50, p99, max, late, busy, began, error, end]
    };
    // A file may contain any number of agents.
    (1..=MAX_POINTS).contains(&run.agents.len()).then(|| PageTable {
        rows: run.agents.iter().enumerate().map(row).collect(),
        ..PageTable::new("Agents", &columns)
    })
}

pub(super) fn intervals(run: &Run) -> Option<PageTable> {
    // A file may contain any number of intervals; weir itself writes at most this number.
    if run.series.is_empty() || run.series.len() > MAX_POINTS {
        return None;
    }
    let columns = ["start", "ok", "failed", "per second", "in flight", "waiting", "p50", "p99", "max"];
    let row = |p: &SeriesPoint| {
        let rate = TableCell::Number(p.rate_per_s(), ValueUnit::PerSecond);
        let [ok, failed, in_flight, backlog] = [p.ok, p.failed, p.in_flight, p.backlog].map(TableCell::count);
        let [p50, p99, max] = [p.p50_ms, p.p99_ms, p.max_ms].map(TableCell::ms);
        vec![TableCell::Number(p.t_s, ValueUnit::Seconds), ok, failed, rate, in_flight, backlog, p50, p99, max]
    };
    let title = format!("Time series, {} rows", number_format::count(run.series.len() as u64));
    Some(PageTable { rows: run.series.iter().map(row).collect(), folded: true, ..PageTable::new(&title, &columns) })
}
