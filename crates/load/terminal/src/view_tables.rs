//! Tables: steps, and failures with a sample.

use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Text};
use ratatui::widgets::{Row, Table};
use weir_base::grpc_status::{is_success_status, status_text};

use super::run_view::RunView;
use super::view_head::{bold, cut, dim, failed_style, three_digits};
use weir_base::number_text::count;
use weir_histogram::Histogram;
use weir_histogram::percentiles::time_text;
use weir_measure::step_counts::StepInterval;

/// Columns of a figure.
const FIGURE_COLUMNS: u16 = 10;
/// Columns that are left for a name.
const MIN_NAME_COLUMNS: u16 = 16;
/// Columns of a number of failures.
const COUNT_COLUMNS: u16 = 11;
/// Columns of a kind of failure.
const KIND_COLUMNS: u16 = 12;

/// Rows of the table of steps, with its heading.
pub(crate) fn step_rows(view: &RunView) -> u16 {
    u16::try_from(view.steps.len() + 2).unwrap_or(u16::MAX)
}

/// Column of the table of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepColumn {
    Rate,
    Requests,
    Failed,
    /// Percentile, in hundredths of a percent.
    Percentile(u32),
}

/// Columns in their order, with the order in which they are shown on a wider and wider screen.
const STEP_COLUMNS: [(StepColumn, &str, usize); 8] = [
    (StepColumn::Rate, "/s", 0),
    (StepColumn::Requests, "requests", 4),
    (StepColumn::Failed, "failed", 1),
    (StepColumn::Percentile(5000), "p50", 2),
    (StepColumn::Percentile(9000), "p90", 7),
    (StepColumn::Percentile(9500), "p95", 5),
    (StepColumn::Percentile(9900), "p99", 3),
    (StepColumn::Percentile(10_000), "max", 6),
];

/// Columns that fit beside a name, in their order.
fn columns(width: u16) -> Vec<(StepColumn, &'static str)> {
    let fitting = usize::from(width.saturating_sub(MIN_NAME_COLUMNS) / FIGURE_COLUMNS).max(1);
    let shown = STEP_COLUMNS.iter().filter(|(_, _, rank)| *rank < fitting);
    shown.map(|(column, name, _)| (*column, *name)).collect()
}

/// Steps of the run so far, and all requests; without scenarios the latter alone.
pub(crate) fn steps<'a>(view: &RunView, area: Rect) -> Table<'a> {
    let width_s = view.subject.interval.as_secs_f64().max(1e-9);
    let columns = columns(area.width);
    let row = |name: String, rate: f64, (requests, failed): (u64, u64), times: &Histogram| {
        let cell = |column: &StepColumn| match column {
            StepColumn::Rate => right(three_digits(rate), Style::new()),
            StepColumn::Requests => right(count(requests), Style::new()),
            StepColumn::Failed => right(count(failed), failed_style(failed)),
            StepColumn::Percentile(hundredths) => {
                right(time_text(times.quantile(f64::from(*hundredths) / 1e4)), Style::new())
            }
        };
        let cells = [Text::from(name)].into_iter().chain(columns.iter().map(|(column, _)| cell(column)));
        Row::new(cells.collect::<Vec<_>>())
    };
    let fixed = FIGURE_COLUMNS.saturating_mul(u16::try_from(columns.len()).unwrap_or(u16::MAX));
    let name_columns = usize::from(area.width.saturating_sub(fixed)).max(1);
    let name = |text: &str| format!(" {}", cut(text, name_columns.saturating_sub(2)));
    // Heading and sum stay where not all steps fit.
    let shown = usize::from(area.height.saturating_sub(2));
    let first = view.first_step.min(view.steps.len().saturating_sub(shown));
    let latest = |index: usize| view.latest.steps.get(index).map_or(0, |step: &StepInterval| step.requests);
    let visible = view.steps.iter().enumerate().skip(first).take(shown);
    let mut rows: Vec<Row<'a>> = visible
        .map(|(index, step)| {
            let rate = latest(index) as f64 / width_s;
            row(name(&view.step_name(index)), rate, (step.requests, step.failed), &step.times)
        })
        .collect();
    let rate = (view.latest.ok + view.latest.failed) as f64 / width_s;
    rows.push(row(name("all"), rate, (view.ok + view.failed, view.failed), &view.times).style(bold()));
    let heading = match (view.steps.len(), view.steps.len().saturating_sub(shown)) {
        (0, _) => String::new(),
        (_, 0) => "step".to_owned(),
        (all, _) => format!("step {} to {} of {all}", first + 1, first + shown),
    };
    let names = columns.iter().map(|(_, name)| right((*name).to_owned(), dim()));
    let heading = [Text::from(name(&heading))].into_iter().chain(names).collect::<Vec<_>>();
    let widths = columns.iter().map(|_| Constraint::Length(FIGURE_COLUMNS));
    let widths = [Constraint::Min(1)].into_iter().chain(widths).collect::<Vec<_>>();
    Table::new(rows, widths).header(Row::new(heading).style(dim())).column_spacing(0)
}

/// Failure by kind, with its number and a sample.
struct FailureRow {
    kind: String,
    count: u64,
    sample: String,
}

/// Failures of the run so far: kinds and steps, which have a first one, and then statuses.
fn failures(view: &RunView) -> Vec<FailureRow> {
    let kinds = view.failures.iter().map(|(kind, n)| {
        let sample = view.messages.get(kind).cloned().unwrap_or_default();
        FailureRow { kind: (*kind).to_owned(), count: *n, sample }
    });
    let steps = view.steps.iter().enumerate().filter(|(_, step)| step.failed > 0).filter_map(|(index, step)| {
        let sample = view.samples.get(&u32::try_from(index).ok()?)?;
        let sample = format!("{}: {sample}", view.step_name(index));
        Some(FailureRow { kind: "step".to_owned(), count: step.failed, sample })
    });
    let failed = |(status, n): (&u16, &u64)| (*status, n - view.accepted.get(status).copied().unwrap_or(0).min(*n));
    let statuses =
        view.statuses.iter().filter(|(status, _)| !is_success_status(**status)).map(failed).filter(|(_, n)| *n > 0);
    let statuses = statuses.map(|(status, n)| FailureRow {
        kind: format!("status {}", status_text(status)),
        count: n,
        sample: view.messages.get(&*status_text(status)).cloned().unwrap_or_default(),
    });
    let sorted = |mut rows: Vec<FailureRow>| {
        rows.sort_by_key(|row| std::cmp::Reverse(row.count));
        rows
    };
    [sorted(kinds.chain(steps).collect()), sorted(statuses.collect())].into_iter().flatten().collect()
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
            right(count(row.count), failed_style(row.count)),
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
