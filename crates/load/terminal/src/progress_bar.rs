//! Progress line of a run: progress, rate, response times. It is updated in place on a terminal; elsewhere a line is
//! logged every ten seconds.

use std::io::{self, Write};
use std::time::Duration;

use console::Term;
use weir_machine::dashboard::{Dashboard, takes_escapes};

use super::sparkline::Sparkline;
use super::step_progress::StepProgress;
use weir_base::Nanos;
use weir_measure::RunProgress;
use weir_measure::recorder::Interval;
use weir_pace::live_load::{LevelKind, LiveLoad};

/// Planned length of a run.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Duration, or [`Nanos::NEVER`].
    pub until: Nanos,
    /// Number of requests, if it is limited.
    pub requests: Option<u64>,
}

/// Progress line of a run, on stderr.
#[derive(Debug)]
pub struct ProgressBar {
    /// None if the line cannot be updated in place: no terminal, or one without escapes.
    terminal: Option<Term>,
    extent: Extent,
    /// Level of the load, once it was changed.
    level: Option<String>,
    /// Summary of the last second, the most important part first.
    last_summary: Vec<String>,
    /// Rates, and 99th percentiles, of the last seconds.
    rates: Sparkline,
    p99s: Sparkline,
    /// Number of columns of the line on the terminal.
    shown_columns: usize,
    /// Time of the next line, without a terminal.
    next_line: Nanos,
    /// Steps of scenarios, and the lines with them.
    steps: StepProgress,
    step_lines: Dashboard,
}

/// Minimum terminal width for a bar before the text.
const MIN_COLUMNS_WITH_BAR: usize = 64;
/// Columns of the bar.
const BAR_COLUMNS: usize = 24;
/// Maximum columns of a trend.
const TREND_COLUMNS: usize = 10;
/// Minimum width that is assumed of a terminal.
const MIN_COLUMNS: usize = 20;
/// Interval of lines without a terminal.
const LINE_INTERVAL: Nanos = Nanos::from_secs(10);

impl ProgressBar {
    /// Progress line that is not drawn yet, of a run whose scenarios have steps of these names.
    pub fn of_steps(extent: Extent, names: &[String]) -> Self {
        Self { steps: StepProgress::new(names), ..Self::new(extent) }
    }

    /// Progress line that is not drawn yet.
    pub fn new(extent: Extent) -> Self {
        let terminal = Term::stderr();
        let changes = terminal.features().is_attended() && takes_escapes();
        Self {
            terminal: changes.then_some(terminal),
            extent,
            level: None,
            last_summary: Vec::new(),
            rates: Sparkline::default(),
            p99s: Sparkline::default(),
            shown_columns: 0,
            next_line: LINE_INTERVAL,
            steps: StepProgress::default(),
            step_lines: Dashboard::new(),
        }
    }

    /// Follows a load that may be changed while it runs: its end, and its level once it was changed.
    pub fn follow(&mut self, load: &LiveLoad, until: Nanos) {
        let Some(last) = load.changes().last() else { return };
        self.extent.until = until;
        self.level = Some(match (load.is_paused(), load.kind()) {
            _ if load.is_recorded() => "stopping".to_owned(),
            (true, _) => "paused".to_owned(),
            (false, LevelKind::Rate) => format!("set to {}/s", last.level),
            (false, LevelKind::Users) => format!("{} users", last.level),
        });
    }

    /// Draws the progress; without a terminal, returns a line to log if one is due.
    pub fn update(&mut self, progress: &RunProgress<'_>) -> Option<String> {
        if let Some(second) = progress.interval {
            self.steps.add(second);
            self.last_summary = [self.steps.summary(), summary(second)].concat();
            self.rates.push(Some((second.ok + second.failed) as f64));
            self.p99s.push(second.response.quantile_ms(0.99));
        }
        let elapsed = progress.elapsed;
        let (fraction, text) = self.progress(progress);
        let parts: Vec<String> =
            [text].into_iter().chain(self.level.clone()).chain(self.last_summary.iter().cloned()).collect();
        let Some(terminal) = &self.terminal else {
            if elapsed < self.next_line {
                return None;
            }
            self.next_line = Nanos((elapsed.0 / LINE_INTERVAL.0 + 1) * LINE_INTERVAL.0);
            return Some(parts.join("  "));
        };
        let waiting = (fraction > 1.0).then(|| "waiting for the last responses".to_owned());
        let parts: Vec<String> = parts.into_iter().chain(waiting).collect();
        // A character in the last column would wrap the line.
        let width = usize::from(terminal.size().1).max(MIN_COLUMNS) - 1;
        let line = fit(fraction, &parts, &[(is_rate, &self.rates), (is_p99, &self.p99s)], width);
        if self.steps.is_empty() {
            self.draw(&line);
        } else {
            // The row below the last line is the cursor's.
            let rows = self.step_lines.rows().saturating_sub(2);
            let lines = [line].into_iter().chain(self.steps.lines(width, rows)).collect();
            self.step_lines.show(lines);
        }
        None
    }

    /// Fraction of the run that is over, and its text.
    fn progress(&self, progress: &RunProgress<'_>) -> (f64, String) {
        let elapsed = Duration::from_secs(progress.elapsed.0 / 1_000_000_000);
        match self.extent {
            Extent { until, .. } if until != Nanos::NEVER => {
                (progress.elapsed.as_secs_f64() / until.as_secs_f64(), format!("{elapsed:?}/{:?}", until.as_duration()))
            }
            Extent { requests: Some(n), .. } => {
                (progress.ended as f64 / n.max(1) as f64, format!("{elapsed:?} {}/{n}", progress.ended))
            }
            Extent { .. } => (0.0, format!("{elapsed:?}")),
        }
    }

    fn draw(&mut self, line: &str) {
        let columns = line.chars().count();
        // Blanks overwrite the end of a longer previous line, without an escape.
        let rest = " ".repeat(self.shown_columns.saturating_sub(columns));
        self.shown_columns = columns;
        let mut stderr = io::stderr().lock();
        // A closed terminal is ignored.
        let _ = write!(stderr, "\r{line}{rest}").and_then(|()| stderr.flush());
    }

    /// Calls `print`, which writes to the terminal, above the line.
    pub fn print_above<T>(&mut self, print: impl FnOnce() -> T) -> T {
        if !self.steps.is_empty() {
            return self.step_lines.print_above(print);
        }
        self.clear_line();
        print()
    }

    /// Clears the line.
    pub fn finish(mut self) {
        std::mem::take(&mut self.step_lines).finish();
        self.clear_line();
    }

    fn clear_line(&mut self) {
        if self.shown_columns > 0 {
            self.draw("");
            let mut stderr = io::stderr().lock();
            let _ = write!(stderr, "\r").and_then(|()| stderr.flush());
        }
    }
}

/// Summary of a second, the most important part first. Times are those of successes.
fn summary(second: &Interval) -> Vec<String> {
    let mut words = vec![format!("{}/s", second.ok + second.failed)];
    if second.failed > 0 {
        words.push(format!("{} failed/s", second.failed));
    }
    let time = |(name, q)| second.response.quantile(q).map(|time| format!("{name} {time}"));
    words.extend([("p50", 0.5), ("p99", 0.99)].into_iter().filter_map(time));
    if second.backlog > 0 {
        words.push(format!("{} waiting", second.backlog));
    }
    words
}

/// Trend of a part of a line: whether a part is the one, and the values.
type LineTrend<'a> = (fn(&str) -> bool, &'a Sparkline);

/// Parts of a line that trends are of.
fn is_rate(part: &str) -> bool {
    part.strip_suffix("/s").is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_p99(part: &str) -> bool {
    part.starts_with("p99 ")
}

/// Line of the parts that fit into the width, after a bar if the width allows one; with the trends that fit beside their
/// parts.
fn fit(fraction: f64, parts: &[String], trends: &[LineTrend<'_>], width: usize) -> String {
    let bar = if width >= MIN_COLUMNS_WITH_BAR { format!("{} ", bar(fraction)) } else { String::new() };
    let mut columns = bar.chars().count();
    let mut shown: Vec<String> = Vec::new();
    for part in parts {
        let blanks = if shown.is_empty() { 0 } else { 2 };
        columns += blanks + part.chars().count();
        if columns > width {
            columns -= blanks + part.chars().count();
            break;
        }
        shown.push(part.clone());
    }
    let mut free = width - columns;
    for (is_part, trend) in trends {
        let part = shown.iter_mut().find(|part| is_part(part));
        // Beside the figure; one column shows none.
        let text = trend.text(free.saturating_sub(1).min(TREND_COLUMNS));
        let columns = text.chars().count();
        if let Some(part) = part.filter(|_| columns > 1) {
            part.push(' ');
            part.push_str(&text);
            free -= columns + 1;
        }
    }
    match parts.first() {
        Some(first) if shown.is_empty() && bar.is_empty() => first.chars().take(width).collect(),
        _ => bar + &shown.join("  "),
    }
}

fn bar(fraction: f64) -> String {
    let done = (fraction.clamp(0.0, 1.0) * BAR_COLUMNS as f64).round() as usize;
    "━".repeat(done) + &"─".repeat(BAR_COLUMNS - done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_fits_every_width_and_the_most_important_part_comes_first() {
        let parts =
            ["12s/1m30s", "12345/s", "17 failed/s", "p50 12.3ms", "p99 1.25s", "400 waiting"].map(str::to_owned);
        let mut trend = Sparkline::default();
        (1..=20).for_each(|value| trend.push(Some(f64::from(value))));
        for width in MIN_COLUMNS - 1..200 {
            let line = fit(0.3, &parts, &[(is_rate, &trend), (is_p99, &trend)], width);
            assert!(line.chars().count() <= width, "{width}: {line}");
            assert!(line.contains("12s/1m30s") && line.contains("12345/s"), "{width}: {line}");
        }
        assert!(fit(0.3, &parts, &[], 199).ends_with("400 waiting"));
        let with_trends = fit(0.3, &parts, &[(is_rate, &trend), (is_p99, &trend)], 199);
        assert!(with_trends.contains("12345/s ▅") && with_trends.contains("p99 1.25s ▅"), "{with_trends}");
        let endless = ["9".repeat(80)];
        assert_eq!(fit(0.0, &endless, &[], 19).chars().count(), 19);
    }

    #[test]
    fn without_a_terminal_a_line_is_logged_every_ten_seconds() {
        let extent = Extent { until: Nanos::from_secs(60), requests: None };
        let mut bar = ProgressBar { terminal: None, ..ProgressBar::new(extent) };
        let second = Interval { ok: 50, failed: 3, ..Interval::default() };
        let lines: Vec<String> = (0..350)
            .filter_map(|tenth| {
                let elapsed = Nanos::from_millis(100 * tenth);
                bar.update(&RunProgress { elapsed, interval: Some(&second), ..RunProgress::default() })
            })
            .collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert_eq!(lines[0], "10s/60s  53/s  3 failed/s");
    }
}
