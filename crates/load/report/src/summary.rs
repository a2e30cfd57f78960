//! Summary of a run as Markdown, for the page of a job in continuous integration or a comment.

use super::number_format::{count, ms, percentage, rate, sanitize};
use super::page::{Tone, verdict_of_run};
use super::streams;
use super::text::facts;
use super::websocket;
use weir_histogram::percentiles::Percentiles;
use weir_measure::Run;
use weir_measure::failure_text::failure_name;

/// Maximum number of steps in the table.
const MAX_STEPS: usize = 50;
/// Width of a chart in characters.
const CHART_COLUMNS: usize = 60;

/// Summary of a run as GitHub's Markdown; `comparison` with another one follows it.
pub fn render(run: &Run, comparison: Option<&str>) -> String {
    let verdict = verdict_of_run(run);
    let sign = match verdict.tone {
        Tone::Good => "🟢",
        Tone::Bad => "🔴",
        Tone::Doubt => "🟡",
        Tone::Plain => "⚪",
    };
    let target = format!("{} {}", run.target.method, run.target.url);
    let mut lines = vec![
        format!("### {sign} {}", cell(&verdict.headline)),
        String::new(),
        format!("`{}`: {}", code(target.trim()), cell(&facts(run).join(" · "))),
        String::new(),
        cell(&verdict.sentence),
    ];
    lines.extend(table(&objectives(run)));
    let doubts = verdict.points.iter().filter(|point| point.tone == Tone::Doubt);
    let doubts: Vec<String> = doubts.map(|point| format!("- 🟡 {}", cell(&point.text))).collect();
    if !doubts.is_empty() {
        lines.push(String::new());
        lines.extend(doubts);
    }
    lines.extend(table(&times(run)));
    lines.extend(table(&steps(run)));
    lines.extend(table(&failures(run)));
    lines.extend(course(run));
    if let Some(comparison) = comparison {
        lines.extend([String::new(), comparison.trim_end().to_owned()]);
    }
    lines.join("\n") + "\n"
}

/// Rows of a table, the first of which is its heading; none without others.
fn table(rows: &[Vec<String>]) -> Vec<String> {
    let [heading, _, ..] = rows else { return Vec::new() };
    let rule = format!("|---{}|", "|---:".repeat(heading.len() - 1));
    let mut lines: Vec<String> = rows.iter().map(|row| format!("| {} |", row.join(" | "))).collect();
    lines.insert(1, rule);
    lines.insert(0, String::new());
    lines
}

fn objectives(run: &Run) -> Vec<Vec<String>> {
    let row = |held: &weir_measure::run::SloResult| {
        let sign = if held.ok { "✅" } else { "❌" };
        // A table ends a cell at a bar within backquotes, too.
        vec![format!("{sign} `{}`", code(&held.objective).replace('|', "\\|")), cell(&held.measured)]
    };
    [vec!["objective".to_owned(), "measured".to_owned()]].into_iter().chain(run.slo.iter().map(row)).collect()
}

fn times(run: &Run) -> Vec<Vec<String>> {
    let heading = ["", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"].map(str::to_owned).to_vec();
    let row = |name: &str, times: &Percentiles| {
        let Percentiles { mean, p50, p90, p95, p99, p999, max, .. } = *times;
        [name.to_owned()].into_iter().chain([mean, p50, p90, p95, p99, p999, max].map(ms)).collect::<Vec<_>>()
    };
    let all = [("response time", &run.response_ms), ("service time", &run.service_ms), ("of failures", &run.failed_ms)];
    // Connections that listen are as long as their load.
    let all = all.into_iter().filter(|(_, times)| times.max.is_some() && !run.listens());
    let all = all.chain(if run.listens() { websocket::times(run) } else { streams::times(run) });
    [heading].into_iter().chain(all.map(|(name, times)| row(name, times))).collect()
}

fn steps(run: &Run) -> Vec<Vec<String>> {
    let heading = ["step", "requests", "failed", "per second", "p50", "p99"].map(str::to_owned).to_vec();
    let row = |step: &weir_measure::run_steps::RunStep| {
        vec![
            cell(&step.name),
            count(step.requests),
            count(step.failed),
            rate(step.rate_per_s),
            ms(step.response_ms.p50),
            ms(step.response_ms.p99),
        ]
    };
    [heading].into_iter().chain(run.steps.iter().take(MAX_STEPS).map(row)).collect()
}

fn failures(run: &Run) -> Vec<Vec<String>> {
    let heading = ["failure", "requests", "of all", "first"].map(str::to_owned).to_vec();
    let all = run.requests.total.max(1) as f64;
    let row = |(kind, n): (&String, &u64)| {
        let first = run.target.failure_details.get(kind).map_or("", String::as_str);
        vec![cell(failure_name(kind, run.failed_statuses())), count(*n), percentage(*n as f64 / all), cell(first)]
    };
    [heading].into_iter().chain(run.failures.iter().map(row)).collect()
}

/// Rate and response times over time, as lines of blocks; none of a short run.
fn course(run: &Run) -> Vec<String> {
    if run.series.len() < 3 {
        return Vec::new();
    }
    let rates: Vec<f64> = run.series.iter().map(weir_measure::series::SeriesPoint::rate_per_s).collect();
    // An interval without a response is as low as a bar can be.
    let p99: Vec<f64> = run.series.iter().map(|point| point.p99_ms.unwrap_or(0.0)).collect();
    let line = |name: &str, values: &[f64], format: &dyn Fn(f64) -> String| {
        let most = values.iter().copied().fold(0.0, f64::max);
        format!("{name:<5} {} max {}", blocks(values, CHART_COLUMNS), format(most))
    };
    vec![
        String::new(),
        "```text".to_owned(),
        line("rate", &rates, &|value| format!("{}/s", rate(value))),
        line("p99", &p99, &|value| ms(value)),
        "```".to_owned(),
    ]
}

/// Values as blocks whose height is that of the maximum of as many values as share a column; the base is 0.
pub fn blocks(values: &[f64], columns: usize) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let per_column = values.len().div_ceil(columns).max(1);
    let block = |values: &[f64]| {
        let top = values.iter().copied().fold(0.0, f64::max);
        let height = (top / most * BLOCKS.len() as f64).ceil().clamp(1.0, BLOCKS.len() as f64);
        BLOCKS[height as usize - 1]
    };
    values.chunks(per_column).map(block).collect()
}

/// Text of a table cell, escaped.
pub(crate) fn cell(words: &str) -> String {
    sanitize(words).replace('|', "\\|").replace('<', "&lt;")
}

/// Text between backquotes, escaped.
pub(crate) fn code(words: &str) -> String {
    sanitize(words).replace('`', "'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures;

    #[test]
    fn a_summary_is_readable_at_a_glance() {
        let goldens = [
            (fixtures::closed(), include_str!("golden/closed.summary.md"), "closed.summary.md"),
            (fixtures::open(), include_str!("golden/open.summary.md"), "open.summary.md"),
            (fixtures::shop(), include_str!("golden/shop.summary.md"), "shop.summary.md"),
        ];
        for (run, golden, name) in goldens {
            fixtures::same(&render(&run, None), golden, name);
        }
    }

    #[test]
    fn a_chart_shows_the_highest_value_of_each_column() {
        assert_eq!(blocks(&[0.0, 1.0, 4.0, 8.0], 60), "▁▁▄█");
        assert_eq!(blocks(&[0.0, 8.0, 1.0, 2.0], 2), "█▂");
        assert_eq!(blocks(&[0.0, 0.0], 60), "▁▁");
        assert_eq!(blocks(&[], 60), "");
    }

    #[test]
    fn names_of_a_service_stay_in_their_cells() {
        let mut run = fixtures::shop();
        run.steps[0].name = "a | b <script> `c`\n| d".into();
        let summary = render(&run, None);
        assert!(summary.contains("| a \\| b &lt;script> `c`"), "{summary}");
        let row = summary.lines().find(|line| line.contains("&lt;script>")).expect("the row");
        assert_eq!(row.replace("\\|", "").matches('|').count(), 7, "{row}");
    }
}
