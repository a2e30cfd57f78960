//! Page of a run: a server on a thread of its own, which takes progress and gives changes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::live_bin::LiveBin;
use super::live_health::LiveHealth;
use super::live_service::LiveService;
use super::live_shared::{LiveShared, PageSubject};
use super::page_server::{PageListener, page_urls};
use super::page_service::PageService;
use weir_load::LoadControl;
use weir_machine::lock::lock;
use weir_machine::logger::Logger;
use weir_measure::live_marks::LiveMarks;
use weir_measure::run_script::{RunScript, ScriptCheck, ScriptMetric};
use weir_measure::run_steps::StepFacts;
use weir_measure::slo::Slo;
use weir_measure::{Run, RunProgress};
use weir_report::page::{self, Tone};
use weir_server::RunningServer;

/// Page of a run.
#[derive(Debug)]
pub struct LivePage {
    shared: Arc<LiveShared>,
    server: RunningServer,
}

/// Time that pages have to read the end of the run.
const END_GRACE: Duration = Duration::from_secs(2);

impl LivePage {
    /// Starts the page.
    ///
    /// # Errors
    /// One line: an address that cannot be listened on, or is not of this machine alone without a token.
    pub fn start(
        listener: PageListener<'_>,
        mut subject: PageSubject,
        control: LoadControl,
        logger: &Logger,
    ) -> Result<Self, String> {
        let slos: Vec<Slo> = subject.objectives.iter().filter_map(|text| text.parse().ok()).collect();
        let (model, spins) = (subject.model, subject.spins);
        let marks = LiveMarks::new(&slos, (model, spins), subject.interval, subject.warmup);
        let shared = Arc::new(LiveShared {
            health: Mutex::new(LiveHealth::new(marks, model, spins)),
            rules: listener.rules()?,
            control,
            steps: Mutex::new(std::mem::take(&mut subject.steps)),
            subject,
            run: listener.random()?,
            store: Mutex::default(),
            end: Mutex::default(),
            script: Mutex::default(),
            ticks: AtomicU64::new(0),
            wakes: watch::Sender::new(0),
        });
        let server = listener.start(|| PageService(LiveService(Arc::clone(&shared))), logger)?;
        Ok(Self { shared, server })
    }

    /// Addresses of those who may change the load, and of those who may only read.
    pub fn urls(&self) -> [String; 2] {
        page_urls(&self.shared.rules, &self.server)
    }

    /// Adds the progress of the run. `steps` is called when an interval has more steps than are known so far.
    /// `script`: what a script has measured itself so far.
    pub fn update(
        &self,
        progress: &RunProgress<'_>,
        steps: impl FnOnce() -> Vec<StepFacts>,
        script: Option<&RunScript>,
    ) {
        if let Some(script) = script {
            *lock(&self.shared.script) = script_tables(script);
        }
        if let Some(interval) = progress.interval {
            let mut names = lock(&self.shared.steps);
            if interval.steps.len() > names.len() {
                let facts = if progress.named_steps.is_empty() { steps() } else { progress.named_steps.to_vec() };
                *names = facts.into_iter().map(|step| step.name).collect();
            }
            drop(names);
            let cpu = lock(&self.shared.health).add(progress, self.shared.control.load().until());
            lock(&self.shared.store).add(LiveBin::of(progress.number, interval, cpu));
            self.shared.ticks.fetch_add(1, Ordering::Relaxed);
            self.shared.wake();
        }
    }

    /// Shows the end of the run, and stops.
    pub fn finish(self, run: Result<&Run, &str>) {
        *lock(&self.shared.end) = Some(match run {
            Ok(run) => end_of(run),
            Err(why) => json!({ "tone": "bad", "headline": "The run has failed", "sentence": why, "points": [] }),
        });
        self.shared.wake();
        self.server.stop(END_GRACE);
    }
}

/// Checks and metrics of a script as rows of tables.
fn script_tables(script: &RunScript) -> Value {
    let check = |check: &ScriptCheck| {
        let path = check.group.split("::").filter(|name| !name.is_empty()).chain([check.name.as_str()]);
        json!([path.collect::<Vec<_>>().join(" / "), check.passed, check.failed])
    };
    let metric = |metric: &ScriptMetric| json!([metric.name, metric.kind, metric.unit, metric.values]);
    json!({
        "checks": script.checks.iter().map(check).collect::<Vec<_>>(),
        "metrics": script.metrics.iter().map(metric).collect::<Vec<_>>(),
    })
}

/// Verdict on a run, its figures and its report.
fn end_of(run: &Run) -> Value {
    let report = page::of_run(run);
    let tone = |tone: Tone| match tone {
        Tone::Plain => "plain",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Doubt => "doubt",
    };
    let point = |point: &page::VerdictPoint| json!({ "tone": tone(point.tone), "text": point.text });
    let figure = |figure: &page::KeyFigure| json!([figure.name, figure.unit.format(figure.value), figure.note]);
    json!({
        "tone": tone(report.verdict.tone),
        "headline": report.verdict.headline,
        "sentence": report.verdict.sentence,
        "points": report.verdict.points.iter().map(point).collect::<Vec<_>>(),
        "figures": report.key_figures.iter().map(figure).collect::<Vec<_>>(),
        "ended_s": run.series.last().map(|point| point.t_s + point.width_s),
        "stages": run.changes.as_ref().map(|changes| &changes.stages).filter(|stages| !stages.is_empty()),
        "report": page::render(&report),
    })
}
