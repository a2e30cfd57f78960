//! What shows and changes a load while it runs: keys of the terminal, and the live page.

use std::sync::Arc;

use clap::Args;

use super::live_keys::{KEYS, LiveKeys};
#[cfg(feature = "web")]
use super::outputs::step_names;
use crate::interrupt::Interrupt;
use crate::messages::Messages;
use weir_live::progress_bar::ProgressBar;
use weir_load::{LoadControl, LoadPlan, Options};
use weir_measure::{Run, RunProgress};
#[cfg(feature = "web")]
use weir_web::{LivePage, PageSubject, WebAddress};

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
}

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
            warmup: plan.warmup,
            has_connections: options.has_connections(),
        };
        let logger = weir_server::Logger::new(move |text| messages.note(text));
        let page = LivePage::start(address.as_ref(), args.web_token.as_deref(), subject, control.clone(), &logger)?;
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
