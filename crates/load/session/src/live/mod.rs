//! Display and control of a running load, shared by `load`, `llm` and `replay`: keys of the terminal, the live page,
//! and outputs.
//!
//! - [`LiveOptions`]: options; [`OutOptions`]: those of the outputs
//! - `LiveSession`: all of it; `live_keys`: keys; `live_tui`: the full-screen view; `OutSession`: outputs, also those of a
//!   search

mod job_control;
mod live_keys;
mod live_options;
mod live_tui;
mod out_options;
mod out_session;
mod span_feed;

use std::sync::{Arc, mpsc};

use self::job_control::JobControl;
use self::live_keys::LiveKeys;
pub use self::live_options::LiveOptions;
use self::live_tui::LiveTui;
pub use self::out_options::{OutOptions, PrometheusOutput, header_line, label, receiver_url, statsd_address};
pub(crate) use self::out_session::{OutEnd, OutSession};
use self::span_feed::SpanFeed;
use crate::output::OutputFile;
use weir_base::Nanos;
use weir_command::Interrupt;
use weir_command::Messages;
use weir_load::{LoadControl, LoadPlan, Options};
use weir_measure::{Run, RunProgress};
use weir_terminal::progress_bar::ProgressBar;
use weir_web::{LivePage, PageListener, PageSubject};

/// Terminal keys, live page and outputs of a running load.
#[derive(Debug, Default)]
pub(crate) struct LiveSession {
    control: Option<LoadControl>,
    keys: Option<LiveKeys>,
    /// Present while the terminal is taken.
    jobs: Option<JobControl>,
    /// Whether the terminal was given back for a while, by Ctrl-Z.
    is_suspended: bool,
    interrupt: Option<Arc<Interrupt>>,
    outputs: OutSession,
    spans: Option<SpanFeed>,
    tui: Option<LiveTui>,
    page: Option<LivePage>,
}

impl LiveSession {
    /// Opens what the arguments and the terminal allow; the plan becomes one that may be changed if anything does.
    ///
    /// # Errors
    /// One line: the page cannot be served, or an output cannot begin.
    pub(crate) fn open(
        args: &LiveOptions,
        (options, plan): (&Options, LoadPlan),
        objectives: &[String],
        interrupt: &Arc<Interrupt>,
        (messages, lines): (&Messages, Option<&OutputFile>),
    ) -> Result<(LoadPlan, Self), String> {
        if args.tui && messages.is_quiet() {
            return Err("--tui and --quiet cannot be combined".to_owned());
        }
        let has_keys = !messages.is_quiet() && LiveKeys::are_possible();
        if !has_keys && args.web.is_none() && !args.outputs.has_any() && !args.tui {
            return Ok((plan, Self::default()));
        }
        let (plan, control) = plan.controlled();
        let interrupt = Arc::clone(interrupt);
        let mut session =
            Self { control: Some(control.clone()), interrupt: Some(Arc::clone(&interrupt)), ..Self::default() };
        session.open_page(args, (options, &plan), objectives, *messages)?;
        session.outputs = OutSession::start(&args.outputs, &plan, objectives, lines)?;
        let plan = session.open_spans(args, plan)?;
        // Addresses come before the screen.
        session.outputs.take_notes().iter().for_each(|note| messages.note(note));
        let forward = session.open_tui(args, (options, &plan), objectives)?;
        if has_keys {
            if forward.is_none() {
                messages.note(live_keys::words(&control.load()));
            }
            session.keys = LiveKeys::listen(&control, move || interrupt.is_requested(), forward);
            // Without it Ctrl-Z stops the process as it is.
            session.jobs = JobControl::take().ok();
        }
        Ok((plan, session))
    }

    /// Whether the view has taken the screen.
    pub(crate) fn has_screen(&self) -> bool {
        self.tui.is_some()
    }

    /// The plan with traces of requests, if they are asked for.
    fn open_spans(&mut self, args: &LiveOptions, plan: LoadPlan) -> Result<LoadPlan, String> {
        let Some(fraction) = args.trace else { return Ok(plan) };
        let (plan, spans) = SpanFeed::start(fraction, &args.outputs, plan, &self.outputs.logger())?;
        self.spans = Some(spans);
        Ok(plan)
    }

    /// Takes the screen if it is asked for; the keys that are sent to it.
    fn open_tui(
        &mut self,
        args: &LiveOptions,
        load: (&Options, &LoadPlan),
        objectives: &[String],
    ) -> Result<Option<mpsc::Sender<u8>>, String> {
        if !args.tui {
            return Ok(None);
        }
        let (forward, keys) = mpsc::channel();
        self.tui = Some(LiveTui::open(load, objectives, keys)?);
        Ok(Some(forward))
    }

    fn open_page(
        &mut self,
        args: &LiveOptions,
        (options, plan): (&Options, &LoadPlan),
        objectives: &[String],
        messages: Messages,
    ) -> Result<(), String> {
        let (Some(address), Some(control)) = (&args.web, &self.control) else { return Ok(()) };
        let subject = PageSubject {
            title: format!("{} {}", plan.method, plan.shown_url()).trim_start().to_owned(),
            steps: step_names(plan),
            objectives: objectives.to_vec(),
            reads_events: plan.streams.is_some(),
            interval: plan.interval,
            model: plan.model(),
            spins: plan.spin,
            warmup: plan.warmup,
            has_connections: options.has_connections(),
        };
        let logger = weir_machine::logger::Logger::new(move |text| messages.note(text));
        let listener = PageListener { flag: "--web", address: address.as_ref(), token: args.web_token.as_deref() };
        let page = LivePage::start(listener, subject, control.clone(), &logger)?;
        let [operator, spectator] = page.urls();
        // Also with --quiet: without the token the page cannot be opened.
        messages.always(&format!("live page {operator} (to watch only: {spectator})"));
        self.page = Some(page);
        Ok(())
    }

    /// Takes the progress of the run of a plan.
    pub(crate) fn update(
        &mut self,
        progress: &RunProgress<'_>,
        mut bar: Option<&mut ProgressBar>,
        (plan, messages): (&LoadPlan, &Messages),
    ) {
        let load = self.control.as_ref().map(LoadControl::load).filter(|load| !load.is_recorded());
        // What is left at the end belongs to the time before it.
        let level = load.map(|load| (load.kind(), load.level_at(progress.elapsed.min(load.until() - Nanos(1)))));
        let is_new = progress.interval.is_some() || progress.partial.is_some();
        let is_shown = self.outputs.has_any() || self.page.is_some();
        let script = (is_new && is_shown).then(|| plan.measured(progress.elapsed)).flatten();
        self.outputs.update(progress, level, &|| plan.step_facts(), script.as_ref());
        if let Some(spans) = &mut self.spans {
            spans.update(&|| plan.step_facts());
        }
        for note in self.outputs.take_notes() {
            match bar.as_deref_mut() {
                Some(bar) => bar.print_above(|| messages.note(&note)),
                None => self.note(&note, messages),
            }
        }
        if let (Some(bar), Some(control)) = (bar, &self.control) {
            bar.follow(&control.load(), control.until());
        }
        self.stop_if_asked();
        self.draw(progress, plan);
        if let Some(page) = &self.page {
            page.update(progress, || plan.step_facts(), script.as_ref());
        }
    }

    /// Gives the terminal back and stops the process after Ctrl-Z; takes it again once the process is in the
    /// foreground.
    fn stop_if_asked(&mut self) {
        let Some(jobs) = &self.jobs else { return };
        if jobs.take_request() {
            if let Some(tui) = &mut self.tui {
                tui.suspend();
            }
            if let Some(keys) = &self.keys {
                keys.suspend();
            }
            self.is_suspended = true;
            JobControl::stop();
        }
        if self.is_suspended && LiveKeys::is_foreground() {
            self.is_suspended = false;
            if let Some(keys) = &self.keys {
                keys.resume();
            }
            if let Some(tui) = &mut self.tui {
                tui.resume();
            }
        }
    }

    /// Shows a note on the screen, or prints it.
    fn note(&mut self, note: &str, messages: &Messages) {
        if let Some(tui) = &mut self.tui {
            tui.note(note);
            return;
        }
        messages.note(note);
    }

    fn draw(&mut self, progress: &RunProgress<'_>, plan: &LoadPlan) {
        // A second signal ends the process at once, and would leave the screen as it is.
        if self.interrupt.as_ref().is_some_and(|interrupt| interrupt.is_requested()) {
            self.tui = None;
        }
        if let (Some(tui), Some(control)) = (&mut self.tui, &self.control) {
            tui.update(progress, control, plan);
        }
    }

    /// Gives the terminal back: the load is over.
    pub(crate) fn end_keys(&mut self) {
        drop(self.tui.take());
        self.keys = None;
        self.jobs = None;
    }

    /// Shows the end of the run on the page, and delivers the rest of the outputs; returns the exit code.
    pub(crate) fn finish(self, run: Result<&Run, &str>, messages: &Messages) -> u8 {
        let end = || run.map_or_else(|why| OutEnd::Failure(why.to_owned()), |run| OutEnd::Run(run.to_json()));
        if let Some(spans) = self.spans {
            spans.finish(messages);
        }
        let code = self.outputs.finish(end, messages);
        if let Some(page) = self.page {
            page.finish(run);
        }
        code
    }
}

/// Names of the steps of a plan; none without scenarios.
pub(crate) fn step_names(plan: &LoadPlan) -> Vec<String> {
    plan.step_facts().into_iter().map(|step| step.name).collect()
}
