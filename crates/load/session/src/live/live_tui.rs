//! Full-screen view of a load in the terminal.

use std::sync::mpsc::Receiver;

use super::live_keys::LiveKeys;
use weir_base::Nanos;
use weir_base::terminal_text::single_line;
use weir_load::{LoadControl, LoadPlan, Options};
use weir_measure::RunProgress;
use weir_terminal::{KeyReader, RunView, TuiScreen, ViewKey, ViewLoad, ViewSubject};

/// Full-screen view of a load.
#[derive(Debug)]
pub(super) struct LiveTui {
    screen: TuiScreen,
    view: RunView,
    keys: Receiver<u8>,
    reader: KeyReader,
    /// Second that was drawn last.
    drawn_s: Option<u64>,
}

impl LiveTui {
    /// Takes the screen; `keys` are those that do not change the load.
    ///
    /// # Errors
    /// One line: stdin or stderr is not a terminal, or it cannot be used.
    pub(super) fn open(
        (options, plan): (&Options, &LoadPlan),
        objectives: &[String],
        keys: Receiver<u8>,
    ) -> Result<Self, String> {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
        if is_dumb || !LiveKeys::are_possible() {
            return Err(
                "--tui needs a terminal on stdin and stderr; leave it out for a line every ten seconds".to_owned()
            );
        }
        let subject = ViewSubject {
            title: single_line(format!("{} {}", plan.method, plan.shown_url()).trim_start()),
            objectives: objectives.to_vec(),
            requests: plan.expected_requests(),
            warmup: plan.warmup,
            interval: plan.interval,
            has_connections: options.has_connections(),
        };
        let screen = TuiScreen::open().map_err(|error| format!("--tui: the terminal cannot be used: {error}"))?;
        let (reader, view) = (KeyReader::default(), RunView::new(subject));
        Ok(Self { screen, view, keys, reader, drawn_s: None })
    }

    /// Takes the progress of the run of a plan, and keys.
    pub(super) fn update(&mut self, progress: &RunProgress<'_>, control: &LoadControl, plan: &LoadPlan) {
        // Before the load is read, so that a copy has the changes of the keys before it.
        let bytes: Vec<u8> = self.keys.try_iter().collect();
        let load = control.load();
        let level = (!load.is_recorded()).then(|| load.latest_level(progress.elapsed));
        let (kind, is_paused) = (load.kind(), load.is_paused());
        let load = ViewLoad { kind, level, is_paused, until: control.until() };
        self.view.set_state(progress.elapsed, progress.ended, Some(load));
        if let Some(interval) = progress.interval {
            if self.view.lacks_names(interval) {
                let named = progress.named_steps;
                let steps = if named.is_empty() { plan.step_facts() } else { named.to_vec() };
                self.view.name_steps(steps.into_iter().map(|facts| facts.name));
            }
            self.view.add(progress.number, interval);
            self.view.set_parts(progress.parts);
        }
        let has_changed = progress.interval.is_some() || !bytes.is_empty() || self.screen.is_resized();
        // Keys that change the load are forwarded, too.
        for key in bytes.into_iter().filter_map(|byte| self.reader.read(byte)) {
            match key {
                ViewKey::Copy => self.screen.toggle_copy(&self.view),
                ViewKey::Up | ViewKey::Down => self.view.press(key),
            }
        }
        let now_s = progress.elapsed.0 / Nanos::SECOND.0;
        if has_changed || self.drawn_s != Some(now_s) {
            self.drawn_s = Some(now_s);
            self.screen.draw(&self.view);
        }
    }

    /// Leaves the screen: the process is about to stop.
    pub(super) fn suspend(&mut self) {
        self.screen.suspend();
    }

    /// Takes the screen again.
    pub(super) fn resume(&mut self) {
        self.screen.resume(&self.view);
    }

    /// Shows a note in place of the keys.
    pub(super) fn note(&mut self, note: &str) {
        self.view.set_note(note);
    }
}
