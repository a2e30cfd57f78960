//! State shared by the run and the requests of the page, and the description of the run for pages.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::access::{AccessRules, WebRole};
use super::live_health::LiveHealth;
use super::live_store::{LiveStore, MAX_BINS};
use weir_base::Nanos;
use weir_load::LoadControl;
use weir_machine::lock::lock;
use weir_measure::LoadModel;
use weir_pace::live_load::{LevelKind, LoadChange};
use weir_report::page::{ChartLevel, ValueUnit};

/// Description of a run, for its page.
#[derive(Clone, Debug, Default)]
pub struct PageSubject {
    /// Subject, e.g. `GET http://localhost:8080/`.
    pub title: String,
    /// Names of the steps of its scenarios, in order; of a program those so far.
    pub steps: Vec<String>,
    /// Objectives as given.
    pub objectives: Vec<String>,
    /// Length of an interval.
    pub interval: Nanos,
    /// Length of the warm-up.
    pub warmup: Nanos,
    /// Whether responses are read as streams of events.
    pub reads_events: bool,
    /// Kind of loop.
    pub model: LoadModel,
    /// Whether it busy-waits.
    pub spins: bool,
    /// Whether the levels of a closed loop are connections, and not users.
    pub has_connections: bool,
}

/// State shared by the run and the requests of the page.
#[derive(Debug)]
pub(crate) struct LiveShared {
    pub(crate) rules: AccessRules,
    pub(crate) control: LoadControl,
    pub(crate) subject: PageSubject,
    /// Names of the steps so far; a program names its own as it goes.
    pub(crate) steps: Mutex<Vec<String>>,
    /// Name of the run, by which a page notices another one at the same address.
    pub(crate) run: String,
    pub(crate) store: Mutex<LiveStore>,
    pub(crate) health: Mutex<LiveHealth>,
    pub(crate) end: Mutex<Option<Value>>,
    /// Checks and metrics of a script so far; null without one.
    pub(crate) script: Mutex<Value>,
    /// Number of the state that pages are shown without a new interval.
    pub(crate) ticks: AtomicU64,
    pub(crate) wakes: watch::Sender<u64>,
}

impl LiveShared {
    /// Wakes pages to read what is new.
    pub(crate) fn wake(&self) {
        self.wakes.send_modify(|wakes| *wakes = wakes.wrapping_add(1));
    }

    /// Description of the run for a page of this role, as JSON.
    pub(crate) fn hello(&self, role: WebRole) -> Value {
        let subject = &self.subject;
        let load = self.control.load();
        let kind = match load.kind() {
            LevelKind::Rate if load.is_recorded() => "log",
            LevelKind::Rate => "rate",
            LevelKind::Users if subject.has_connections => "connections",
            LevelKind::Users => "users",
        };
        let levels = |unit: &ValueUnit| {
            let all = subject.objectives.iter().filter_map(|text| ChartLevel::of_objective(text, unit));
            all.map(|level| json!([level.at, level.name])).collect::<Vec<_>>()
        };
        json!({
            "run": self.run,
            "title": subject.title,
            "kind": kind,
            "steps": *lock(&self.steps),
            "reads_events": subject.reads_events,
            "time_objectives": levels(&ValueUnit::Milliseconds),
            "rate_objectives": levels(&ValueUnit::PerSecond),
            "interval_s": subject.interval.as_secs_f64(),
            "warmup_s": subject.warmup.as_secs_f64(),
            "may_change": role == WebRole::Operator,
            "max_bins": MAX_BINS,
        })
    }

    /// Names of all steps, if there are more than a page knows.
    pub(crate) fn more_steps(&self, known: &mut usize) -> Option<Value> {
        let steps = lock(&self.steps);
        let has_more = steps.len() > *known;
        *known = steps.len();
        has_more.then(|| json!(*steps))
    }

    /// Bins that a page lacks, and the number of the interval after them; `None` if it lacks none.
    pub(crate) fn missed(&self, since: &mut Option<u64>) -> Option<Value> {
        let store = lock(&self.store);
        if *since == Some(store.next()) {
            return None;
        }
        let missed = store.missed(*since);
        drop(store);
        *since = Some(missed.next);
        Some(json!({ "all": missed.is_all, "next": missed.next, "bins": missed.bins }))
    }

    /// Load as it is now.
    pub(crate) fn load(&self) -> Value {
        let load = self.control.load();
        let elapsed = self.control.elapsed();
        let seconds = |time: Nanos| (time < Nanos::NEVER).then(|| time.as_secs_f64());
        let name = |change: LoadChange| match change {
            LoadChange::Rate(_) => "rate",
            LoadChange::Users(_) => "users",
            LoadChange::Pause => "pause",
            LoadChange::Resume => "resume",
            LoadChange::Stop => "stop",
        };
        let health = lock(&self.health);
        let (marks, parts) = (health.marks(), health.parts());
        drop(health);
        json!({
            "marks": marks,
            "parts": parts,
            "script": *lock(&self.script),
            "elapsed_s": elapsed.map(Nanos::as_secs_f64),
            "until_s": seconds(load.until()),
            "is_paused": load.is_paused(),
            "is_stopped": load.changes().last().is_some_and(|made| made.change == LoadChange::Stop),
            "level": load.latest_level(elapsed.unwrap_or_default()),
            "stages": load.stages().iter().map(|stage| json!([stage.from_per_s, stage.to_per_s, stage.length.as_secs_f64()])).collect::<Vec<_>>(),
            "changes": load.changes().iter().map(|made| json!([made.at.as_secs_f64(), name(made.change), made.level])).collect::<Vec<_>>(),
        })
    }

    /// End of the run, if it is over.
    pub(crate) fn end(&self) -> Option<Value> {
        lock(&self.end).clone()
    }
}
