//! What shows and changes a load while it runs: keys of the terminal, the live page, and outputs.

use std::ffi::OsString;
#[cfg(feature = "web")]
use std::io;
use std::sync::{Arc, Mutex, mpsc};

use clap::Args;
#[cfg(feature = "web")]
use rustix::process::{Signal, getpid, kill_process};

use super::live_keys::{KEYS, LiveKeys};
#[cfg(feature = "tui")]
use super::live_tui::LiveTui;
#[cfg(feature = "outputs")]
use super::out_args::OutArgs;
#[cfg(feature = "web")]
use super::outputs::step_names;
use crate::exit;
use crate::interrupt::Interrupt;
use crate::messages::Messages;
use crate::output::OutputFile;
use weir_live::progress_bar::ProgressBar;
use weir_load::{LoadControl, LoadPlan, Options};
use weir_machine::lock::lock;
use weir_measure::{Run, RunProgress};
#[cfg(feature = "outputs")]
use weir_outputs::{OutputSubject, RunOutputs};
#[cfg(feature = "web")]
use weir_web::{LivePage, PageListener, PageSubject, WebAddress};

const LIVE: &str = "Live";

/// Flags of the live page, and of outputs while the load runs.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct LiveArgs {
    /// page to watch and change the load while it runs [default address: 127.0.0.1:8089]
    #[cfg(feature = "web")]
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, require_equals = true, help_heading = LIVE)]
    web: Option<Option<WebAddress>>,
    /// token of the page's address [default: random]; needed for addresses of other machines
    #[cfg(feature = "web")]
    #[arg(long, value_name = "TOKEN", requires = "web", help_heading = LIVE)]
    web_token: Option<String>,
    /// end when stdin does, as a run of weir ui
    #[cfg(feature = "web")]
    #[arg(long, hide = true, requires = "web")]
    until_stdin_ends: bool,
    /// full-screen view in the terminal while the load runs
    #[cfg(feature = "tui")]
    #[arg(long, help_heading = LIVE)]
    tui: bool,
    #[cfg(feature = "outputs")]
    #[command(flatten)]
    pub(super) out_args: OutArgs,
}

/// Arguments that `weir ui` adds, without dashes; the command of a run does not have them.
#[cfg(feature = "web")]
const UI_ARGS: [&str; 6] = ["label", "log-format", "out", "save", "until-stdin-ends", "web"];

/// What shows and changes a load while it runs.
#[derive(Debug, Default)]
pub(super) struct LiveSession {
    control: Option<LoadControl>,
    keys: Option<LiveKeys>,
    interrupt: Option<Arc<Interrupt>>,
    /// Notes of outputs that were not printed yet.
    notes: Arc<Mutex<Vec<String>>>,
    #[cfg(feature = "tui")]
    tui: Option<LiveTui>,
    #[cfg(feature = "web")]
    page: Option<LivePage>,
    #[cfg(feature = "outputs")]
    outputs: Option<RunOutputs>,
}

impl LiveArgs {
    /// Whether there is a page.
    fn has_page(&self) -> bool {
        #[cfg(feature = "web")]
        return self.web.is_some();
        #[cfg(not(feature = "web"))]
        false
    }

    /// Ends the run when stdin ends, if the page of `weir ui` has started it: also after that was killed.
    pub(super) fn watch_stdin(&self) {
        #[cfg(feature = "web")]
        if self.until_stdin_ends {
            std::thread::spawn(|| {
                let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
                // As Ctrl-C: what was measured is kept.
                let _ = kill_process(getpid(), Signal::INT);
            });
        }
    }

    /// Command line of the run, without what `weir ui` has added.
    pub(super) fn own_args(&self, args: &[OsString]) -> Vec<OsString> {
        #[cfg(feature = "web")]
        if self.until_stdin_ends {
            let is_added = |arg: &&OsString| {
                let name = arg.to_str().and_then(|arg| arg.strip_prefix("--")?.split('=').next());
                name.is_some_and(|name| UI_ARGS.contains(&name))
            };
            let own = args.iter().skip(1).filter(|arg| !is_added(arg)).cloned();
            return [OsString::from("weir")].into_iter().chain(own).collect();
        }
        args.to_vec()
    }

    /// Whether there is an output.
    fn has_outputs(&self) -> bool {
        #[cfg(feature = "outputs")]
        return self.out_args.has_any();
        #[cfg(not(feature = "outputs"))]
        false
    }

    /// Whether the view takes the whole screen.
    pub(super) fn has_tui(&self) -> bool {
        #[cfg(feature = "tui")]
        return self.tui;
        #[cfg(not(feature = "tui"))]
        false
    }

    /// Token of the page and credentials of outputs, which messages and results leave out.
    pub(super) fn secrets(&self) -> Vec<String> {
        let mut secrets: Vec<String> = Vec::new();
        #[cfg(feature = "web")]
        secrets.extend(self.web_token.clone());
        #[cfg(feature = "outputs")]
        secrets.extend(self.out_args.secrets());
        secrets
    }
}

impl LiveSession {
    /// Opens what the arguments and the terminal allow; the plan becomes one that may be changed if anything does.
    ///
    /// # Errors
    /// One line: the page cannot be served, or an output cannot begin.
    pub(super) fn open(
        args: &LiveArgs,
        (options, plan): (&Options, LoadPlan),
        objectives: &[String],
        interrupt: &Arc<Interrupt>,
        (messages, lines): (&Messages, Option<&OutputFile>),
    ) -> Result<(LoadPlan, Self), String> {
        if args.has_tui() && messages.is_quiet() {
            return Err("--tui and --quiet do not go together".to_owned());
        }
        let has_keys = !messages.is_quiet() && LiveKeys::are_possible();
        if !has_keys && !args.has_page() && !args.has_outputs() && !args.has_tui() {
            return Ok((plan, Self::default()));
        }
        let (plan, control) = plan.controlled();
        let interrupt = Arc::clone(interrupt);
        let mut session =
            Self { control: Some(control.clone()), interrupt: Some(Arc::clone(&interrupt)), ..Self::default() };
        session.open_page(args, (options, &plan), objectives, *messages)?;
        session.open_outputs(args, &plan, objectives, lines)?;
        // Addresses come before the screen.
        session.take_notes().iter().for_each(|note| messages.note(note));
        let forward = session.open_tui(args, (options, &plan), objectives)?;
        if has_keys {
            if forward.is_none() {
                messages.note(KEYS);
            }
            session.keys = LiveKeys::listen(&control, move || interrupt.is_requested(), forward);
        }
        Ok((plan, session))
    }

    /// Takes the screen if it is asked for; the keys that are sent to it.
    #[cfg(feature = "tui")]
    fn open_tui(
        &mut self,
        args: &LiveArgs,
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

    #[cfg(not(feature = "tui"))]
    fn open_tui(
        &mut self,
        _: &LiveArgs,
        _: (&Options, &LoadPlan),
        _: &[String],
    ) -> Result<Option<mpsc::Sender<u8>>, String> {
        Ok(None)
    }

    /// Notes of outputs since the last call.
    fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.notes))
    }

    #[cfg(feature = "web")]
    fn open_page(
        &mut self,
        args: &LiveArgs,
        (options, plan): (&Options, &LoadPlan),
        objectives: &[String],
        messages: Messages,
    ) -> Result<(), String> {
        let (Some(address), Some(control)) = (&args.web, &self.control) else { return Ok(()) };
        let subject = PageSubject {
            title: format!("{} {}", plan.method, plan.target.url).trim_start().to_owned(),
            steps: step_names(plan),
            objectives: objectives.to_vec(),
            reads_events: plan.streams.is_some(),
            interval: plan.interval,
            model: plan.model(),
            spins: plan.spin,
            warmup: plan.warmup,
            has_connections: options.has_connections(),
        };
        let logger = weir_server::Logger::new(move |text| messages.note(text));
        let listener = PageListener { flag: "--web", address: address.as_ref(), token: args.web_token.as_deref() };
        let page = LivePage::start(listener, subject, control.clone(), &logger)?;
        let [operator, spectator] = page.urls();
        // Also with --quiet: without the token the page cannot be opened.
        messages.always(&format!("live page {operator} (to watch only: {spectator})"));
        self.page = Some(page);
        Ok(())
    }

    #[cfg(not(feature = "web"))]
    fn open_page(&mut self, _: &LiveArgs, _: (&Options, &LoadPlan), _: &[String], _: Messages) -> Result<(), String> {
        Ok(())
    }

    #[cfg(feature = "outputs")]
    fn open_outputs(
        &mut self,
        args: &LiveArgs,
        plan: &LoadPlan,
        objectives: &[String],
        lines: Option<&OutputFile>,
    ) -> Result<(), String> {
        let specs = args.out_args.specs(lines)?;
        if specs.is_empty() {
            return Ok(());
        }
        let subject = OutputSubject {
            method: plan.method.clone(),
            url: plan.target.url.split('?').next().unwrap_or_default().to_owned(),
            objectives: objectives.to_vec(),
            labels: args.out_args.labels().to_vec(),
            interval: plan.interval,
            warmup: plan.warmup,
        };
        let notes = Arc::clone(&self.notes);
        let logger = weir_server::Logger::new(move |text| lock(&notes).push(text.to_owned()));
        self.outputs = Some(RunOutputs::start(specs, subject, &logger)?);
        Ok(())
    }

    #[cfg(not(feature = "outputs"))]
    fn open_outputs(&mut self, _: &LiveArgs, _: &LoadPlan, _: &[String], _: Option<&OutputFile>) -> Result<(), String> {
        Ok(())
    }

    /// Takes the progress of the run of a plan.
    pub(super) fn update(
        &mut self,
        progress: &RunProgress<'_>,
        mut bar: Option<&mut ProgressBar>,
        (plan, messages): (&LoadPlan, &Messages),
    ) {
        #[cfg(feature = "outputs")]
        if let Some(outputs) = &mut self.outputs {
            let load = self.control.as_ref().map(LoadControl::load);
            let level = load.map(|load| (load.kind(), load.level_at(progress.elapsed)));
            outputs.update(progress, level, &|| plan.step_facts());
        }
        for note in self.take_notes() {
            match bar.as_deref_mut() {
                Some(bar) => bar.print_above(|| messages.note(&note)),
                None => self.note(&note, messages),
            }
        }
        if let (Some(bar), Some(control)) = (bar, &self.control) {
            bar.follow(&control.load(), control.until());
        }
        self.draw(progress, plan);
        #[cfg(feature = "web")]
        if let Some(page) = &self.page {
            page.update(progress);
        }
    }

    /// Shows a note on the screen, or prints it.
    fn note(&mut self, note: &str, messages: &Messages) {
        #[cfg(feature = "tui")]
        if let Some(tui) = &mut self.tui {
            tui.note(note);
            return;
        }
        messages.note(note);
    }

    #[cfg(feature = "tui")]
    fn draw(&mut self, progress: &RunProgress<'_>, plan: &LoadPlan) {
        // A second signal ends the process at once, and would leave the screen as it is.
        if self.interrupt.as_ref().is_some_and(|interrupt| interrupt.is_requested()) {
            self.tui = None;
        }
        if let (Some(tui), Some(control)) = (&mut self.tui, &self.control) {
            tui.update(progress, control, plan);
        }
    }

    #[cfg(not(feature = "tui"))]
    fn draw(&mut self, _: &RunProgress<'_>, _: &LoadPlan) {}

    /// Gives the terminal back: the load is over.
    pub(super) fn end_keys(&mut self) {
        #[cfg(feature = "tui")]
        drop(self.tui.take());
        self.keys = None;
    }

    /// Shows the end of the run on the page, and delivers the rest of the outputs; returns the exit code.
    pub(super) fn finish(self, run: Result<&Run, &str>, messages: &Messages) -> u8 {
        let mut code = exit::OK;
        let notes = Arc::clone(&self.notes);
        #[cfg(feature = "outputs")]
        for report in self.outputs.map(|outputs| outputs.finish(run)).unwrap_or_default() {
            let Some(loss) = report.loss() else { continue };
            if report.is_file {
                code = messages.usage_error(&loss);
            } else {
                messages.always(&loss);
            }
        }
        // What was said at the end only.
        lock(&notes).drain(..).for_each(|note| messages.note(&note));
        #[cfg(feature = "web")]
        if let Some(page) = self.page {
            page.finish(run);
        }
        #[cfg(not(all(feature = "outputs", feature = "web")))]
        let _ = (run, messages, &mut code);
        code
    }
}
