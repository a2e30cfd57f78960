//! The screen at any size: what is less important gives way.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::widgets::Widget;

use super::run_view::RunView;
use super::view_agents::{agent_rows, agent_table};
use super::view_charts::{chart, connections, rate_label, response_times, throughput, time_label};
use super::view_head::{figures, foot, progress, title};
use super::view_tables::{failure_rows, failure_table, step_rows, steps};

/// Rows of head and foot.
const HEAD_ROWS: u16 = 4;
const FOOT_ROWS: u16 = 1;
/// Rows of the charts: at least, and at most.
const MIN_CHART_ROWS: u16 = 6;
const MAX_CHART_ROWS: u16 = 14;
/// Width from which charts stand side by side: of each of them.
const MIN_COLUMNS_OF_CHART: u16 = 30;

/// Rows of the parts below the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PartRows {
    charts: u16,
    steps: u16,
    failures: u16,
    agents: u16,
}

/// Divides rows among charts, and tables that want a number of rows each.
fn divide(rows: u16, steps: u16, failures: u16, agents: u16) -> PartRows {
    // Heading, one step and the sum; heading and one row.
    let (min_steps, min_failures, min_agents) = (steps.min(3), failures.min(2), agents.min(2));
    let least = min_steps + min_failures + min_agents;
    let wanted = steps.saturating_add(failures).saturating_add(agents);
    let free = rows.saturating_sub(least);
    let charts = match free {
        free if free < MIN_CHART_ROWS => 0,
        // What the tables do not want, and half of the rest.
        free => (free / 2).max(rows.saturating_sub(wanted)).clamp(MIN_CHART_ROWS, MAX_CHART_ROWS),
    };
    let left = rows.saturating_sub(charts);
    let wanted_failures = failures;
    let failures = failures.min(left.saturating_sub(min_steps + min_agents)).min(min_failures.max(left / 3));
    let others = left - failures;
    let agents = agents.min(others.saturating_sub(min_steps)).min(min_agents.max(others / 2));
    let steps = steps.min(others - agents);
    PartRows { charts, steps, failures: wanted_failures.min(left - agents - steps), agents }
}

/// Draws the screen.
pub(crate) fn render(view: &RunView, area: Rect, buffer: &mut Buffer) {
    let width = area.width;
    let rows = area.height.saturating_sub(HEAD_ROWS + FOOT_ROWS);
    let parts = divide(rows, step_rows(view), failure_rows(view), agent_rows(view));
    let heights = [HEAD_ROWS, parts.charts, parts.steps, parts.failures, parts.agents];
    let heights =
        heights.map(Constraint::Length).into_iter().chain([Constraint::Min(0), Constraint::Length(FOOT_ROWS)]);
    let [head, charts, step_area, failure_area, agent_area, _, last] = Layout::vertical(heights).areas(area);
    let [now, latest] = figures(view);
    let lines = [title(view, width), progress(view, width), now, latest];
    for (line, row) in lines.into_iter().zip(head.rows()) {
        line.render(row, buffer);
    }
    if charts.height > 0 {
        let (times, rates, held) = (response_times(view), throughput(view), connections(view));
        // The most important one first: the others give way.
        let mut all =
            vec![chart(view, "response times", &times, time_label), chart(view, "throughput", &rates, rate_label)];
        if !held.is_empty() {
            all.push(chart(view, "connections", &held, rate_label));
        }
        all.truncate(usize::from(width / MIN_COLUMNS_OF_CHART).max(1));
        let places = Layout::horizontal(all.iter().map(|_| Constraint::Fill(1))).split(charts);
        // Times stand on the right of the throughput.
        let count = all.len().min(2);
        all[..count].reverse();
        all.into_iter().zip(places.iter()).for_each(|(chart, area)| chart.render(*area, buffer));
    }
    Widget::render(steps(view, step_area), step_area, buffer);
    Widget::render(failure_table(view, failure_area), failure_area, buffer);
    Widget::render(agent_table(view), agent_area, buffer);
    if area.height > HEAD_ROWS {
        foot(view).render(last, buffer);
    }
}

/// The screen as text, without the keys, and without blanks at the ends of lines.
pub(crate) fn text(view: &RunView, width: u16, height: u16) -> String {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    render(view, area, &mut buffer);
    let rows = height.saturating_sub(FOOT_ROWS);
    let line = |y| (0..width).map(|x| buffer.cell((x, y)).map_or(" ", |cell| cell.symbol())).collect::<String>();
    let lines: Vec<String> = (0..rows).map(|y| line(y).trim_end().to_owned()).collect();
    let end = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |at| at + 1);
    lines[..end].join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_view::{ViewLoad, ViewSubject};
    use proptest::prelude::*;
    use weir_base::Nanos;
    use weir_base::failure::FailureKind;
    use weir_measure::outcome_counts::OutcomeCounts;
    use weir_measure::recorder::Interval;
    use weir_measure::step_counts::StepInterval;
    use weir_measure::websocket_series::WebSocketPoint;
    use weir_pace::live_load::LevelKind;

    fn view(steps: usize, seconds: u64) -> RunView {
        let subject = ViewSubject {
            title: "GET http://127.0.0.1:8080/items".to_owned(),
            objectives: vec!["p99<200ms".to_owned()],
            interval: Nanos::SECOND,
            ..ViewSubject::default()
        };
        let mut view = RunView::new(subject);
        view.name_steps((0..steps).map(|step| format!("step\u{1b}[2J number {step}")));
        let load =
            ViewLoad { kind: LevelKind::Rate, level: Some(200.0), is_paused: false, until: Nanos::from_secs(60) };
        for number in 0..seconds {
            let mut interval = Interval { ok: 195, failed: 5, bytes_in: 20_000, in_flight: 3, ..Interval::default() };
            (1..=195).for_each(|ms| interval.response.record(Nanos::from_millis(ms)));
            let mut step = StepInterval { requests: 10, failed: 1, ..StepInterval::default() };
            step.times.record(Nanos::from_millis(7));
            interval.steps = vec![step; steps];
            let mut outcomes = OutcomeCounts::default();
            (0..195).for_each(|_| outcomes.statuses.record(200));
            (0..3).for_each(|_| outcomes.statuses.record(503));
            outcomes.failures[FailureKind::Timeout as usize] = 2;
            outcomes.details.insert(FailureKind::Timeout, "no response within 1s\u{7}".to_owned());
            interval.outcomes = Some(Box::new(outcomes));
            view.set_state(Nanos::from_secs(number + 1), 200 * (number + 1), Some(load));
            view.add(number, &interval);
        }
        view
    }

    #[test]
    fn at_80_by_24_all_parts_are_there() {
        let text = text(&view(0, 20), 80, 24);
        for part in [
            "GET http://127.0.0.1:8080/items",
            "200/s set",
            "20s of 60s",
            "4,000 requests",
            "100 failed (2.5%)",
            "throughput: set, requests/s",
            "response times: p99, p50",
            "p95",
            "status 503",
            "timeout",
            "no response within 1s",
            "objectives p99<200ms",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80) && text.lines().count() <= 23, "{text}");
    }

    #[test]
    fn connections_of_websocket_have_a_chart_where_there_is_room_and_always_figures() {
        let mut view = view(0, 3);
        let websocket = Some(Box::new(WebSocketPoint { held: 1200, upgraded: 50 }));
        view.add(3, &Interval { ok: 7, websocket, ..Interval::default() });
        for (width, has_chart) in [(40, false), (80, false), (90, true), (200, true)] {
            let text = text(&view, width, 24);
            assert_eq!(text.contains("connections: held, upgraded/s"), has_chart, "{text}");
            assert!(width < 60 || text.contains("throughput: set, requests/s"), "{text}");
            assert!(width < 80 || text.contains("1,200 held, 50 upgraded/s"), "{text}");
        }
    }

    #[test]
    fn steps_scroll() {
        let mut view = view(40, 3);
        let shown = |view: &RunView| text(view, 100, 30);
        assert!(shown(&view).contains("step [2J number 0 "), "{}", shown(&view));
        (0..5).for_each(|_| view.press(crate::ViewKey::Down));
        let text = shown(&view);
        assert!(!text.contains("number 4 ") && text.contains("number 5 ") && text.contains(" all "), "{text}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_size_is_drawn(width in 1..200_u16, height in 1..80_u16, steps in 0..40_usize, seconds in 0..5_u64) {
            let text = text(&view(steps, seconds), width, height);
            prop_assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
            prop_assert!(text.lines().count() <= usize::from(height));
        }

        #[test]
        fn parts_fit(rows in 0..300_u16, steps in 2..1000_u16, failures in 2..50_u16, agents in 0..50_u16) {
            let parts = divide(rows, steps, failures, agents);
            prop_assert!(parts.charts + parts.steps + parts.failures + parts.agents <= rows, "{parts:?}");
            prop_assert!(parts.steps <= steps && parts.failures <= failures && parts.agents <= agents);
            prop_assert!(rows < 13 || parts.agents >= agents.min(2), "{parts:?}");
            prop_assert!(rows < 13 || (parts.charts >= MIN_CHART_ROWS && parts.steps >= 2 && parts.failures >= 2), "{parts:?}");
        }
    }
}
