//! Tables: steps, and failures with a sample.

use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Text};
use ratatui::widgets::{Row, Table};

use super::run_view::RunView;
use super::view_head::{bold, cut, dim, failed_style, grouped, three_digits};
use weir_measure::Histogram;
use weir_measure::step_counts::StepInterval;

/// Columns of a figure.
const FIGURE_COLUMNS: u16 = 9;
/// Columns of a number.
const COUNT_COLUMNS: u16 = 11;
/// Columns of a kind of failure.
const KIND_COLUMNS: u16 = 12;

/// Rows of the table of steps, with its heading.
pub(crate) fn step_rows(view: &RunView) -> u16 {
    u16::try_from(view.steps.len() + 2).unwrap_or(u16::MAX)
}

/// Steps of the run so far, and all requests; without scenarios the latter alone.
pub(crate) fn steps<'a>(view: &RunView, area: Rect) -> Table<'a> {
    let width_s = view.subject.interval.as_secs_f64().max(1e-9);
    let fixed = 6 * FIGURE_COLUMNS + 2 * COUNT_COLUMNS;
    // A narrow screen has the name, the rate, failures and two percentiles.
    let is_narrow = area.width < fixed.saturating_add(12);
    let row = |name: String, rate: f64, counts: (u64, u64), times: &Histogram| {
        let quantile = |q| if times.count() > 0 { times.quantile(q).to_string() } else { "-".to_owned() };
        let (requests, failed) = counts;
        let rate = right(three_digits(rate), Style::new());
        let failed = right(grouped(failed), failed_style(failed));
        let figure = |q| right(quantile(q), Style::new());
        let cells = match is_narrow {
            true => vec![Text::from(name), rate, failed, figure(0.5), figure(0.99)],
            false => vec![
                Text::from(name),
                rate,
                right(grouped(requests), Style::new()),
                failed,
                figure(0.5),
                figure(0.9),
                figure(0.95),
                figure(0.99),
                figure(1.0),
            ],
        };
        Row::new(cells)
    };
    let name_columns =
        usize::from(area.width.saturating_sub(if is_narrow { 4 * FIGURE_COLUMNS } else { fixed })).max(1);
    let name = |text: &str| format!(" {}", cut(text, name_columns.saturating_sub(2)));
    // Heading and sum stay where not all steps fit.
    let shown = usize::from(area.height.saturating_sub(2));
    let first = view.first_step.min(view.steps.len().saturating_sub(shown));
    let latest = |index: usize| view.latest.steps.get(index).map_or(0, |step: &StepInterval| step.requests);
    let mut rows: Vec<Row<'a>> = view
        .steps
        .iter()
        .enumerate()
        .skip(first)
        .take(shown)
        .map(|(index, step)| {
            let rate = latest(index) as f64 / width_s;
            row(name(&view.step_name(index)), rate, (step.requests, step.failed), &step.times)
        })
        .collect();
    let rate = (view.latest.ok + view.latest.failed) as f64 / width_s;
    rows.push(row(name("all"), rate, (view.ok + view.failed, view.failed), &view.times).style(bold()));
    let hidden = view.steps.len().saturating_sub(shown);
    let heading = match (view.steps.is_empty(), hidden) {
        (true, _) => String::new(),
        (false, 0) => "step".to_owned(),
        (false, hidden) => format!("step ({} to {}, {hidden} more)", first + 1, first + shown.min(view.steps.len())),
    };
    let names: &[&str] = match is_narrow {
        true => &["/s", "failed", "p50", "p99"],
        false => &["/s", "requests", "failed", "p50", "p90", "p95", "p99", "max"],
    };
    let heading = [Text::from(name(&heading))].into_iter().chain(names.iter().map(|name| right((*name).into(), dim())));
    let widths = names.iter().map(|name| match *name {
        "requests" => COUNT_COLUMNS,
        "failed" if !is_narrow => COUNT_COLUMNS,
        _ => FIGURE_COLUMNS,
    });
    let widths = [Constraint::Min(1)].into_iter().chain(widths.map(Constraint::Length)).collect::<Vec<_>>();
    Table::new(rows, widths).header(Row::new(heading.collect::<Vec<_>>()).style(dim())).column_spacing(0)
}

/// Failure by kind, with its number and a sample.
struct FailureRow {
    kind: String,
    count: u64,
    sample: String,
}

/// Failures of the run so far: kinds, statuses, and steps with their first failure.
fn failures(view: &RunView) -> Vec<FailureRow> {
    let kinds = view.failures.iter().map(|(kind, n)| {
        let sample = view.messages.get(kind).cloned().unwrap_or_default();
        FailureRow { kind: (*kind).to_owned(), count: *n, sample }
    });
    let statuses = view.statuses.iter().filter(|(status, _)| **status >= 400);
    let statuses =
        statuses.map(|(status, n)| FailureRow { kind: format!("status {status}"), count: *n, sample: String::new() });
    let mut rows: Vec<FailureRow> = kinds.chain(statuses).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    let steps = view.steps.iter().enumerate().filter(|(_, step)| step.failed > 0).filter_map(|(index, step)| {
        let sample = view.samples.get(&u32::try_from(index).ok()?)?;
        Some(FailureRow {
            kind: "step".to_owned(),
            count: step.failed,
            sample: format!("{}: {sample}", view.step_name(index)),
        })
    });
    rows.extend(steps);
    rows
}

/// Rows of the table of failures, with its heading.
pub(crate) fn failure_rows(view: &RunView) -> u16 {
    u16::try_from(failures(view).len().max(1) + 1).unwrap_or(u16::MAX)
}

/// Failures with samples.
pub(crate) fn failure_table<'a>(view: &RunView, area: Rect) -> Table<'a> {
    let all = failures(view);
    let free = usize::from(area.width.saturating_sub(KIND_COLUMNS + COUNT_COLUMNS + 3));
    let rows = all.iter().map(|row| {
        let cells = [
            Text::from(format!(" {}", row.kind)),
            right(grouped(row.count), failed_style(row.count)),
            Text::from(format!("  {}", cut(&row.sample, free))),
        ];
        Row::new(cells)
    });
    let none = all.is_empty().then(|| Row::new([Text::from(" none")]));
    let heading = [Text::from(" failures"), right(String::new(), dim()), Text::from("  first one")];
    let widths = [Constraint::Length(KIND_COLUMNS), Constraint::Length(COUNT_COLUMNS), Constraint::Min(1)];
    Table::new(rows.chain(none), widths).header(Row::new(heading).style(dim())).column_spacing(0)
}

fn right(text: String, style: Style) -> Text<'static> {
    Text::from(Line::styled(text, style)).right_aligned()
}
