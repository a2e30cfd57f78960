//! What shows and changes a load while it runs: keys of the terminal, and the live page.

use std::ffi::OsString;
#[cfg(feature = "web")]
use std::io;
use std::sync::Arc;

use clap::Args;
#[cfg(feature = "web")]
use rustix::process::{Signal, getpid, kill_process};

use super::live_keys::{KEYS, LiveKeys};
#[cfg(feature = "web")]
use super::outputs::step_names;
use crate::interrupt::Interrupt;
use crate::messages::Messages;
use weir_live::progress_bar::ProgressBar;
use weir_load::{LoadControl, LoadPlan, Options};
use weir_measure::{Run, RunProgress};
#[cfg(feature = "web")]
use weir_web::{LivePage, PageListener, PageSubject, WebAddress};

const LIVE: &str = "Live";

/// Flags of the live page.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct WebArgs {
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
}

/// Arguments that `weir ui` adds, without dashes; the command of a run does not have them.
#[cfg(feature = "web")]
const UI_ARGS: [&str; 6] = ["label", "log-format", "out", "save", "until-stdin-ends", "web"];

/// What shows and changes a load while it runs.
#[derive(Debug, Default)]
pub(super) struct LiveSession {
    control: Option<LoadControl>,
    keys: Option<LiveKeys>,
    #[cfg(feature = "web")]
    page: Option<LivePage>,
}

impl WebArgs {
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

    /// Token, which messages leave out.
    pub(super) fn secrets(&self) -> Vec<String> {
        #[cfg(feature = "web")]
        return self.web_token.iter().cloned().collect();
        #[cfg(not(feature = "web"))]
        Vec::new()
    }
}

impl LiveSession {
    /// Opens what the arguments and the terminal allow; the plan becomes one that may be changed if anything does.
    ///
    /// # Errors
    /// One line: the page cannot be served.
    pub(super) fn open(
        args: &WebArgs,
        (options, plan): (&Options, LoadPlan),
        objectives: &[String],
        interrupt: &Arc<Interrupt>,
        messages: &Messages,
    ) -> Result<(LoadPlan, Self), String> {
        let has_keys = !messages.is_quiet() && LiveKeys::are_possible();
        if !has_keys && !args.has_page() {
            return Ok((plan, Self::default()));
        }
        let (plan, control) = plan.controlled();
        let mut session = Self { control: Some(control.clone()), ..Self::default() };
        session.open_page(args, (options, &plan), objectives, *messages)?;
        if has_keys {
            messages.note(KEYS);
            let interrupt = Arc::clone(interrupt);
            session.keys = LiveKeys::listen(&control, move || interrupt.is_requested());
        }
        Ok((plan, session))
    }

    #[cfg(feature = "web")]
    fn open_page(
        &mut self,
        args: &WebArgs,
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
    fn open_page(&mut self, _: &WebArgs, _: (&Options, &LoadPlan), _: &[String], _: Messages) -> Result<(), String> {
        Ok(())
    }

    /// Takes the progress of the run.
    pub(super) fn update(&self, progress: &RunProgress<'_>, bar: Option<&mut ProgressBar>) {
        if let (Some(bar), Some(control)) = (bar, &self.control) {
            bar.follow(&control.load(), control.until());
        }
        #[cfg(feature = "web")]
        if let Some(page) = &self.page {
            page.update(progress);
        }
        #[cfg(not(feature = "web"))]
        let _ = progress;
    }

    /// Gives the terminal back: the load is over.
    pub(super) fn end_keys(&mut self) {
        self.keys = None;
    }

    /// Shows the end of the run on the page.
    pub(super) fn finish(self, run: Result<&Run, &str>) {
        #[cfg(feature = "web")]
        if let Some(page) = self.page {
            page.finish(run);
        }
        #[cfg(not(feature = "web"))]
        let _ = run;
    }
}
