//! Steps of scenarios during a run: a row each, with rate, mean response time and failures so far.

use weir_base::Nanos;
use weir_base::terminal_text::single_line;
use weir_measure::recorder::Interval;
use weir_measure::step_counts::StepInterval;

/// Steps of a run so far.
#[derive(Debug, Default)]
pub struct StepProgress {
    names: Vec<String>,
    second: Vec<StepInterval>,
    total: Vec<StepInterval>,
    iterations: u64,
}

/// Columns of rate, mean response time and failures.
const FIGURE_COLUMNS: usize = 9;
/// Minimum width of a row with all figures; below, it has the name and the rate.
const MIN_COLUMNS_WITH_ALL: usize = 45;
/// Maximum number of steps that are shown.
const MAX_SHOWN_STEPS: usize = 12;

impl StepProgress {
    /// Progress of steps with these names; empty without scenarios.
    pub fn new(names: &[String]) -> Self {
        let names: Vec<String> = names.iter().map(|name| single_line(name)).collect();
        Self { total: vec![StepInterval::default(); names.len()], names, ..Self::default() }
    }

    /// Whether there are no scenarios.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Takes the counts of a second.
    pub fn add(&mut self, second: &Interval) {
        self.second.clone_from(&second.steps);
        self.second.resize(self.names.len(), StepInterval::default());
        self.total.iter_mut().zip(&self.second).for_each(|(total, second)| total.add(second));
        self.iterations = second.iterations;
    }

    /// Iterations of the last second and checks that failed so far, as phrases.
    pub fn summary(&self) -> Vec<String> {
        if self.is_empty() {
            return Vec::new();
        }
        let failed: u64 = self.total.iter().map(|step| step.checks_failed).sum();
        let checks = (failed > 0).then(|| format!("{failed} checks failed"));
        [format!("{} iterations/s", self.iterations)].into_iter().chain(checks).collect()
    }

    /// A heading and a row for each step, within `width` columns and `rows` rows.
    pub fn lines(&self, width: usize, rows: usize) -> Vec<String> {
        if self.is_empty() || rows < 2 {
            return Vec::new();
        }
        let shown = self.names.len().min(MAX_SHOWN_STEPS).min(rows - 1);
        let mut lines = vec![line("step", &["/s", "mean", "failed"].map(str::to_owned), width)];
        for ((name, second), total) in self.names.iter().zip(&self.second).zip(&self.total).take(shown) {
            let mean = match second.requests {
                0 => "-".to_owned(),
                n => Nanos(second.response.0 / n).to_string(),
            };
            lines.push(line(name, &[second.requests.to_string(), mean, total.failed.to_string()], width));
        }
        let more = self.names.len() - shown;
        if more > 0 && lines.len() > 1 {
            let words = format!("{} more steps", more + 1);
            lines.pop();
            lines.push(words.chars().take(width).collect());
        }
        lines
    }
}

/// Row of at most `width` columns.
fn line(name: &str, figures: &[String; 3], width: usize) -> String {
    let figures = if width < MIN_COLUMNS_WITH_ALL { &figures[..1] } else { &figures[..] };
    let cells: String = figures.iter().map(|figure| format!("{figure:>FIGURE_COLUMNS$}")).collect();
    let name_columns = width.saturating_sub(cells.chars().count()).min(40);
    let name = match name.chars().count() {
        length if length < name_columns => name.to_owned(),
        _ => name.chars().take(name_columns.saturating_sub(2)).chain(['…']).collect(),
    };
    format!("{name:<name_columns$}{cells}").chars().take(width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second() -> Interval {
        let step = |n: u64| StepInterval {
            requests: n,
            failed: n / 2,
            response: Nanos(n * 3_000_000),
            checks_failed: 1,
            ..StepInterval::default()
        };
        Interval { iterations: 7, steps: (0..30).map(step).collect(), ..Interval::default() }
    }

    fn progress(steps: usize) -> StepProgress {
        let names = (0..steps).map(|number| format!("GET /items/{number}/with\u{1b}[2J/a/long/path/and/more"));
        let mut progress = StepProgress::new(&names.collect::<Vec<_>>());
        progress.add(&second());
        progress.add(&second());
        progress
    }

    #[test]
    fn rows_fit_every_terminal_and_contain_no_control_characters() {
        for (width, rows) in (19..200).flat_map(|width| [2, 5, 50].map(|rows| (width, rows))) {
            let lines = progress(30).lines(width, rows);
            assert!(lines.len() <= rows, "{width}x{rows}: {lines:?}");
            let fits = |line: &String| line.chars().count() <= width && !line.contains(char::is_control);
            assert!(lines.iter().all(fits), "{width}: {lines:?}");
        }
    }

    #[test]
    fn a_row_has_the_rate_and_mean_of_the_last_second_and_all_failures() {
        let lines = progress(4).lines(80, 24);
        assert_eq!(lines.len(), 5);
        let words: Vec<&str> = lines[4].split_whitespace().collect();
        assert_eq!(words[words.len() - 3..], ["3", "3ms", "2"], "{lines:?}");
        assert_eq!(progress(4).summary(), ["7 iterations/s", "8 checks failed"]);
        assert!(StepProgress::default().summary().is_empty() && StepProgress::default().lines(80, 24).is_empty());
    }
}
