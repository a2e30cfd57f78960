//! What has to be read digit by digit: how requests ended, all clocks, and the course of the run.

use crate::measure::Run;
use crate::measure::agent::Agent;
use crate::measure::series::{MOST, Point as Stretch};
use crate::report::figure;
use crate::report::page::{Cell, Table, Tone, Unit};
use crate::report::text::is_failure;

pub(super) fn ends(run: &Run) -> Option<Table> {
    let mut table = Table::new("How requests ended", &["status or failure", "requests", "share", ""]);
    let all = run.requests.total as f64;
    let mut row = |tone: Tone, name: &str, n: u64, words: &str| {
        let share = Cell::Number(n as f64 / all, Unit::Share);
        table.rows.push(vec![Cell::Judged(tone, name.to_owned()), Cell::count(n), share, Cell::text(words)]);
    };
    for (status, n) in &run.status {
        row(if is_failure(status) { Tone::Bad } else { Tone::Good }, status, *n, "");
    }
    // The classes of statuses are in the rows above.
    for (kind, n) in run.failures.iter().filter(|(kind, _)| !kind.ends_with("xx")) {
        row(Tone::Bad, kind, *n, run.target.failure_details.get(kind).map_or("", String::as_str));
    }
    (!table.rows.is_empty()).then_some(table)
}

pub(super) fn clocks(run: &Run) -> Option<Table> {
    let columns = ["", "mean", "sd", "min", "p50", "p75", "p90", "p95", "p99", "p99.9", "max"];
    let clocks = [
        ("response time", &run.response_ms),
        ("service time", &run.service_ms),
        ("first byte", &run.first_byte_ms),
        ("of failures", &run.failed_ms),
        ("connecting", &run.connect_ms),
        ("lateness of weir", &run.lateness_ms),
    ];
    let rows = clocks.into_iter().filter(|(_, spread)| spread.max > 0.0).map(|(name, s)| {
        let values = [s.mean, s.sd, s.min, s.p50, s.p75, s.p90, s.p95, s.p99, s.p999, s.max];
        [Cell::text(name)].into_iter().chain(values.map(Cell::ms)).collect()
    });
    let table = Table { rows: rows.collect(), ..Table::new("Times by all clocks", &columns) };
    (!table.rows.is_empty()).then_some(table)
}

pub(super) fn agents(run: &Run) -> Option<Table> {
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
        "began",
        "clock error",
        "",
    ];
    let row = |(index, agent): (usize, &Agent)| {
        let Agent { response_ms, lateness_ms, .. } = agent;
        let lost = agent.lost.as_ref();
        let end = lost.map_or(Cell::Empty, |why| Cell::Judged(Tone::Doubt, format!("lost: {why}")));
        let [p50, p99, max] = [response_ms.p50, response_ms.p99, response_ms.max].map(Cell::ms);
        let busy = Cell::Number(agent.cpu_share, Unit::Share);
        let (rate, ok) = (Cell::Number(agent.rate_per_s, Unit::PerSecond), Cell::count(agent.ok));
        let [late, began, error] = [lateness_ms.p99, agent.began_ms, agent.clock_error_ms].map(Cell::ms);
        let (number, node) = (Cell::count(index as u64 + 1), Cell::text(&agent.node));
        vec![number, node, rate, ok, p50, p99, max, late, busy, began, error, end]
    };
    // As with points: a file may hold any number.
    (1..=MOST)
        .contains(&run.agents.len())
        .then(|| Table { rows: run.agents.iter().enumerate().map(row).collect(), ..Table::new("Agents", &columns) })
}

pub(super) fn stretches(run: &Run) -> Option<Table> {
    // A file may hold any number of points, and nobody reads more than a run keeps.
    if run.series.is_empty() || run.series.len() > MOST {
        return None;
    }
    let columns = ["start", "ok", "failed", "per second", "in flight", "waiting", "p50", "p99", "max"];
    let row = |p: &Stretch| {
        let time = |ms: f64| if p.max_ms > 0.0 { Cell::ms(ms) } else { Cell::Empty };
        let rate = Cell::Number(p.rate_per_s(), Unit::PerSecond);
        let [ok, failed, in_flight, backlog] = [p.ok, p.failed, p.in_flight, p.backlog].map(Cell::count);
        let [p50, p99, max] = [p.p50_ms, p.p99_ms, p.max_ms].map(time);
        vec![Cell::Number(p.t_s, Unit::Seconds), ok, failed, rate, in_flight, backlog, p50, p99, max]
    };
    let title = format!("Second by second, {} rows", figure::count(run.series.len() as u64));
    Some(Table { rows: run.series.iter().map(row).collect(), folded: true, ..Table::new(&title, &columns) })
}
