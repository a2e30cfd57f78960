//! Table of the agents: a slow one must not hide in the sum.

use ratatui::layout::Constraint;
use ratatui::style::Style;
use ratatui::text::{Line, Text};
use ratatui::widgets::{Row, Table};

use super::run_view::RunView;
use super::view_head::{bold, cut, dim, failed_style, three_digits};
use weir_base::number_text::count;
use weir_histogram::percentiles::time_text;

/// Columns of a figure.
const FIGURE_COLUMNS: u16 = 10;
/// Columns of a number of requests.
const COUNT_COLUMNS: u16 = 12;
/// CPU utilization from which an agent has no time left.
const BUSY_CPU: f64 = 0.9;

/// Rows of the table, with its heading; none without agents.
pub(crate) fn agent_rows(view: &RunView) -> u16 {
    match view.agents.len() {
        0 => 0,
        agents => u16::try_from(agents + 1).unwrap_or(u16::MAX),
    }
}

/// Agents with their rates and health.
pub(crate) fn agent_table<'a>(view: &RunView) -> Table<'a> {
    let rows = view.agents.iter().enumerate().map(|(index, agent)| {
        let name = format!(" {} {}", index + 1, cut(&agent.node, 24));
        let busy = if agent.cpu >= BUSY_CPU { bold().yellow() } else { Style::new() };
        let failure = agent.failure.as_ref().map_or_else(String::new, |why| format!("  lost: {why}"));
        Row::new([
            Text::from(name),
            right(three_digits(agent.rate_per_s), Style::new()),
            right(count(agent.requests), Style::new()),
            right(count(agent.failed), failed_style(agent.failed)),
            right(time_text(agent.lateness), Style::new()),
            right(format!("{:.0}%", 100.0 * agent.cpu), busy),
            right(agent.clock_error.to_string(), Style::new()),
            Text::styled(failure, bold().red()),
        ])
    });
    let names = ["/s", "requests", "failed", "late p99", "CPU", "clock ±"].map(|name| right(name.to_owned(), dim()));
    let heading = [Text::from(" agents")].into_iter().chain(names);
    let widths = [FIGURE_COLUMNS, COUNT_COLUMNS, FIGURE_COLUMNS, FIGURE_COLUMNS, FIGURE_COLUMNS - 3, FIGURE_COLUMNS];
    let widths = [Constraint::Min(1)].into_iter().chain(widths.map(Constraint::Length)).chain([Constraint::Min(0)]);
    let heading = Row::new(heading.collect::<Vec<_>>()).style(dim());
    Table::new(rows, widths.collect::<Vec<_>>()).header(heading).column_spacing(0)
}

fn right(text: String, style: Style) -> Text<'static> {
    Text::from(Line::styled(text, style)).right_aligned()
}
