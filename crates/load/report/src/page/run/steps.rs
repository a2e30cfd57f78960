//! Scenarios of a run: iterations, steps, checks, and the first failures of each step.

use crate::number_format;
use crate::page::{BarChart, BarRow, Block, PageTable, Section, TableCell, Tone, ValueUnit};
use crate::steps::{failure_reason, failures_of_kind};
use weir_histogram::percentiles::Percentiles;
use weir_measure::Run;
use weir_measure::run_steps::{RunCheck, RunIterations, RunStep};
use weir_measure::run_trace::{RunTrace, TracedClient};

/// Maximum number of rows of a table; a file may contain any number of steps.
const MAX_ROWS: usize = 1000;
/// Maximum number of bars.
const MAX_BARS: usize = 40;
/// Maximum number of checks in a table that is open though none has failed.
const MAX_OPEN_CHECKS: usize = 20;

/// Section on the scenarios; empty without scenarios.
pub(super) fn scenarios(run: &Run) -> Section {
    let Some(all) = &run.iterations else { return Section::default() };
    let clients = run.trace.as_ref().and_then(clients);
    let tables = [clients, Some(iterations(run, all)), Some(steps(run)), checks(run), samples(run)];
    let mut blocks = vec![Block::Text(sentence(run, all))];
    blocks.extend(tables.into_iter().flatten().map(Block::Table));
    blocks.extend(bars(run).map(Block::Bars));
    Section::new("Steps", blocks)
}

fn sentence(run: &Run, all: &RunIterations) -> String {
    let count = number_format::count;
    let mut words = format!(
        "{} iterations, {} failed, {}; an iteration took {} on average.",
        count(all.total),
        count(all.failed),
        ValueUnit::PerSecond.format(all.rate_per_s.achieved),
        ValueUnit::Milliseconds.format(all.time_ms.mean),
    );
    if all.dropped > 0 {
        words += &format!(" {} never started: no user was free in time.", count(all.dropped));
    }
    if all.unfinished > 0 {
        words += &format!(" {} were cut off by the end and are not counted.", count(all.unfinished));
    }
    if run.steps.iter().any(|step| step.redirects + step.retries > 0) {
        words += " Redirects and retries are requests of their step.";
    }
    words
}

fn bars(run: &Run) -> Option<BarChart> {
    let bar = |step: &RunStep| {
        Some(BarRow { untrusted: step.untrusted, ..BarRow::new(step.name.as_str(), step.response_ms.p95?) })
    };
    let bars: Vec<BarRow> = run.steps.iter().filter_map(bar).take(MAX_BARS).collect();
    (bars.len() > 1).then(|| BarChart {
        title: "Response time by step".into(),
        note: "95th percentile of successes.".into(),
        columns: ["step".into(), "p95".into()],
        unit: ValueUnit::Milliseconds,
        bars,
    })
}

/// Clients of a composition; none of a recorded trace.
fn clients(trace: &RunTrace) -> Option<PageTable> {
    let columns = [
        "client",
        "sessions",
        "requests",
        "tokens in",
        "tokens out",
        "TTFT p50",
        "p99",
        "TPOT p50",
        "p99",
        "end to end p99",
    ];
    let row = |client: &TracedClient| {
        let each = |tokens: u64| {
            TableCell::Number(tokens as f64 / client.requests.max(1) as f64, ValueUnit::Other("per request".into()))
        };
        let (ttft, tpot) = (&client.ttft_ms, &client.tpot_ms);
        let mut cells = vec![TableCell::text(&client.name)];
        cells.extend([client.sessions, client.requests].map(TableCell::count));
        cells.extend([client.input_tokens, client.output_tokens].map(each));
        cells.extend([ttft.p50, ttft.p99, tpot.p50, tpot.p99, client.e2e_ms.p99].map(TableCell::ms));
        cells
    };
    let rows: Vec<_> = trace.clients.iter().map(row).collect();
    (!rows.is_empty()).then(|| PageTable { rows, ..PageTable::new("Clients", &columns) })
}

fn iterations(run: &Run, all: &RunIterations) -> PageTable {
    let columns = ["scenario", "iterations", "failed", "cut off", "per second", "mean", "p50", "p95", "p99", "max"];
    let mut table = PageTable::new("Iterations", &columns);
    let mut row = |name: &str, counts: [u64; 3], rate: f64, times: &Percentiles| {
        let [total, failed, cut] = counts;
        let mut cells = vec![TableCell::text(name)];
        cells.extend([total, failed, cut].map(TableCell::count));
        cells.push(TableCell::Number(rate, ValueUnit::PerSecond));
        cells.extend([times.mean, times.p50, times.p95, times.p99, times.max].map(TableCell::ms));
        table.rows.push(cells);
    };
    for scenario in run.scenarios.iter().take(MAX_ROWS) {
        let counts = [scenario.iterations, scenario.failed, scenario.unfinished];
        row(&scenario.name, counts, scenario.rate_per_s, &scenario.time_ms);
    }
    if run.scenarios.len() != 1 {
        row("all", [all.total, all.failed, all.unfinished], all.rate_per_s.achieved, &all.time_ms);
    }
    table
}

fn steps(run: &Run) -> PageTable {
    let columns = ["step", "requests", "failed", "", "per second", "p50", "p95", "p99", "max", "redirects", "retries"];
    let row = |step: &RunStep| {
        let times = &step.response_ms;
        let mut kinds: Vec<String> = step.failures.iter().map(|(kind, n)| failures_of_kind(step, kind, *n)).collect();
        kinds.extend((step.unsent > 0).then(|| format!("{} not sent", number_format::count(step.unsent))));
        let kinds = match kinds.is_empty() {
            true => TableCell::Empty,
            false => TableCell::Toned(Tone::Bad, kinds.join(", ")),
        };
        let name = match step.untrusted {
            true => TableCell::Toned(Tone::Doubt, step.name.clone()),
            false => TableCell::text(&step.name),
        };
        let mut cells = vec![name, TableCell::count(step.requests), TableCell::count(step.failed)];
        cells.extend([kinds, TableCell::Number(step.rate_per_s, ValueUnit::PerSecond)]);
        cells.extend([times.p50, times.p95, times.p99, times.max].map(TableCell::ms));
        cells.extend([step.redirects, step.retries].map(TableCell::count));
        cells
    };
    let rows = run.steps.iter().take(MAX_ROWS).map(row).collect();
    PageTable { rows, ..PageTable::new("Steps", &columns) }
}

fn checks(run: &Run) -> Option<PageTable> {
    let columns = ["step", "check", "passed", "failed", "failed of all"];
    let row = |(step, check): (&RunStep, &RunCheck)| {
        let all = (check.passed + check.failed).max(1) as f64;
        let tone = if check.failed > 0 { Tone::Bad } else { Tone::Good };
        vec![
            TableCell::text(&step.name),
            TableCell::Toned(tone, check.text.clone()),
            TableCell::count(check.passed),
            TableCell::count(check.failed),
            TableCell::Number(check.failed as f64 / all, ValueUnit::Fraction),
        ]
    };
    let all = run.steps.iter().flat_map(|step| step.checks.iter().map(move |check| (step, check)));
    let rows: Vec<_> = all.clone().take(MAX_ROWS).map(row).collect();
    let folded = rows.len() > MAX_OPEN_CHECKS && all.clone().all(|(_, check)| check.failed == 0);
    (!rows.is_empty()).then(|| PageTable { rows, folded, ..PageTable::new("Checks", &columns) })
}

fn samples(run: &Run) -> Option<PageTable> {
    let all = run.steps.iter().flat_map(|step| step.samples.iter().map(move |sample| (step, sample)));
    let rows: Vec<Vec<TableCell>> = all
        .take(MAX_ROWS)
        .map(|(step, sample)| {
            let response = TableCell::text(sample.response.as_str());
            vec![
                TableCell::text(&step.name),
                TableCell::Toned(Tone::Bad, failure_reason(run, &sample.reason).to_owned()),
                response,
            ]
        })
        .collect();
    let columns = ["step", "what was wrong", "response"];
    (!rows.is_empty()).then(|| PageTable { rows, folded: true, ..PageTable::new("First failures", &columns) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{of_run, render};
    use crate::tests::fixtures;

    #[test]
    fn a_run_of_scenarios_has_a_section_with_its_steps_checks_and_failures_and_others_have_none() {
        let page = render(&of_run(&fixtures::shop()));
        for words in
            ["Response time by step", "shop: order", "20 check", "sold out", "Set-Cookie: ***", "First failures"]
        {
            assert!(page.contains(words), "{words}");
        }
        assert!(scenarios(&fixtures::closed()).blocks.is_empty());
    }

    #[test]
    fn a_step_that_weir_sent_late_is_marked() {
        let mut run = fixtures::shop();
        let marks = |run: &Run| render(&of_run(run)).matches("aria-label=\"doubtful\">!</span>shop: order").count();
        assert_eq!(marks(&run), 0);
        run.steps[1].untrusted = true;
        assert_eq!(marks(&run), 2, "its bar and its row");
    }

    #[test]
    fn names_and_responses_of_the_service_are_text_and_not_html() {
        let mut run = fixtures::shop();
        run.steps[1].name = "<script>alert(1)</script>".into();
        run.steps[1].samples[0].response = "<img src=x onerror=alert(2)>".into();
        let page = render(&of_run(&run));
        assert!(!page.contains("<script>alert(1)") && !page.contains("<img src=x"));
    }
}
