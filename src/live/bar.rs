//! One line on the terminal: how far, how fast, how it feels.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::decide::Nanos;
use crate::measure::Progress;

/// What a run will take, as far as that is known.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Its length, or [`Nanos::NEVER`].
    pub until: Nanos,
    /// Its number of requests.
    pub requests: Option<u64>,
}

/// A progress bar on stderr; nothing at all where that is no terminal.
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
    extent: Extent,
    last: String,
}

impl Bar {
    /// Begins to draw.
    pub fn new(extent: Extent) -> Self {
        let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr_with_hz(10));
        // The template is a constant; an error in it would only cost its looks.
        if let Ok(style) = ProgressStyle::with_template("{bar:24.cyan/dim} {msg}") {
            bar.set_style(style.progress_chars("━╸─"));
        }
        Self { bar, extent, last: String::new() }
    }

    /// Draws how far the run is.
    pub fn update(&mut self, progress: &Progress<'_>) {
        if let Some(second) = progress.second {
            let failed = if second.failed > 0 { format!("  {} failed/s", second.failed) } else { String::new() };
            let backlog = if second.backlog > 0 { format!("  {} waiting", second.backlog) } else { String::new() };
            self.last = format!(
                "{}/s  p50 {}  p99 {}{failed}{backlog}",
                second.ok + second.failed,
                second.response.quantile(0.5),
                second.response.quantile(0.99)
            );
        }
        let elapsed = Duration::from_secs(progress.elapsed.0 / 1_000_000_000);
        let (share, end) = match self.extent {
            Extent { until, .. } if until != Nanos::NEVER => {
                (progress.elapsed.as_secs_f64() / until.as_secs_f64(), format!("/{:?}", until.as_duration()))
            }
            Extent { requests: Some(n), .. } => {
                (progress.ended as f64 / n.max(1) as f64, format!("  {}/{n}", progress.ended))
            }
            Extent { .. } => (0.0, String::new()),
        };
        self.bar.set_position((share.clamp(0.0, 1.0) * 1000.0) as u64);
        let note = if share > 1.0 { "  waiting for the last answers" } else { "" };
        self.bar.set_message(format!("{elapsed:?}{end}  {}{note}", self.last));
    }

    /// Takes the line away.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}
