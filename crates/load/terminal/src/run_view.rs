//! State of a run that the screen shows.

use std::collections::BTreeMap;

use super::agent_view::AgentView;
use super::view_history::ViewHistory;
use super::view_key::ViewKey;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_base::grpc_status::GRPC_STATUS_NAMES;
use weir_base::terminal_text::single_line;
use weir_histogram::Histogram;
use weir_measure::agent_counts::AgentCounts;
use weir_measure::recorder::Interval;
use weir_measure::step_counts::StepInterval;
use weir_pace::live_load::LevelKind;

/// Description of a run, for its screen.
#[derive(Clone, Debug, Default)]
pub struct ViewSubject {
    /// Subject, e.g. `GET http://localhost:8080/`.
    pub title: String,
    /// Objectives as given.
    pub objectives: Vec<String>,
    /// Number of requests, if it is limited.
    pub requests: Option<u64>,
    /// Length of the warm-up.
    pub warmup: Nanos,
    /// Length of an interval.
    pub interval: Nanos,
    /// Whether the levels of a closed loop are connections, and not users.
    pub has_connections: bool,
}

/// Load as it is set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ViewLoad {
    /// Unit of the level.
    pub kind: LevelKind,
    /// Arrivals per second, or number of users; none of recorded times.
    pub level: Option<f64>,
    /// Whether it is paused.
    pub is_paused: bool,
    /// End, or [`Nanos::NEVER`].
    pub until: Nanos,
}

/// Values shown on the screen.
#[derive(Clone, Debug)]
pub struct RunView {
    pub(crate) subject: ViewSubject,
    pub(crate) load: Option<ViewLoad>,
    pub(crate) elapsed: Nanos,
    /// Requests, or iterations, that have ended.
    pub(crate) ended: u64,
    pub(crate) ok: u64,
    pub(crate) failed: u64,
    pub(crate) bytes_in: u64,
    /// Response times of all successes.
    pub(crate) times: Histogram,
    pub(crate) history: ViewHistory,
    /// Last interval.
    pub(crate) latest: Interval,
    pub(crate) step_names: Vec<String>,
    pub(crate) steps: Vec<StepInterval>,
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// Successes with a status of 400 and above, by status.
    pub(crate) accepted: BTreeMap<u16, u64>,
    pub(crate) failures: BTreeMap<&'static str, u64>,
    /// First message of each kind of failure.
    pub(crate) messages: BTreeMap<&'static str, String>,
    /// First failure of each step.
    pub(crate) samples: BTreeMap<u32, String>,
    /// Agents; none if this process alone generates the load.
    pub(crate) agents: Vec<AgentView>,
    /// Time at which the agents' counts were last read.
    agents_at: Nanos,
    /// Number of the first step that is shown.
    pub(crate) first_step: usize,
    /// Latest note of an output.
    pub(crate) note: Option<String>,
}

impl RunView {
    /// View of a run without an interval.
    pub fn new(subject: ViewSubject) -> Self {
        Self {
            subject,
            load: None,
            elapsed: Nanos::ZERO,
            ended: 0,
            ok: 0,
            failed: 0,
            bytes_in: 0,
            times: Histogram::coarse(),
            history: ViewHistory::default(),
            latest: Interval::default(),
            step_names: Vec::new(),
            steps: Vec::new(),
            statuses: BTreeMap::new(),
            accepted: BTreeMap::new(),
            failures: BTreeMap::new(),
            messages: BTreeMap::new(),
            samples: BTreeMap::new(),
            agents: Vec::new(),
            agents_at: Nanos::ZERO,
            first_step: 0,
            note: None,
        }
    }

    /// Takes the time, what has ended, and the load as it is set.
    pub fn set_state(&mut self, elapsed: Nanos, ended: u64, load: Option<ViewLoad>) {
        self.elapsed = elapsed;
        self.ended = ended;
        self.load = load;
    }

    /// Takes a note.
    pub fn set_note(&mut self, note: &str) {
        self.note = Some(single_line(note));
    }

    /// Takes the names of the steps, if there are more than before.
    pub fn name_steps(&mut self, names: impl Iterator<Item = String>) {
        self.step_names = names.map(|name| single_line(&name)).collect();
    }

    /// Whether the names of some steps are not known.
    pub fn lacks_names(&self, interval: &Interval) -> bool {
        interval.steps.len() > self.step_names.len()
    }

    /// Adds interval `number`.
    pub fn add(&mut self, number: u64, interval: &Interval) {
        self.ok += interval.ok;
        self.failed += interval.failed;
        self.bytes_in += interval.bytes_in;
        self.times.add(&interval.response);
        if self.steps.len() < interval.steps.len() {
            self.steps.resize(interval.steps.len(), StepInterval::default());
        }
        self.steps.iter_mut().zip(&interval.steps).for_each(|(total, step)| total.add(step));
        if let Some(outcomes) = interval.outcomes.as_deref() {
            outcomes.statuses.iter().for_each(|(status, n)| *self.statuses.entry(status).or_default() += n);
            outcomes.accepted.iter().for_each(|(status, n)| *self.accepted.entry(status).or_default() += n);
            for (kind, n) in FailureKind::ALL.iter().zip(outcomes.failures).filter(|(_, n)| *n > 0) {
                *self.failures.entry(kind.name()).or_default() += n;
            }
            for (kind, message) in &outcomes.details {
                self.messages.entry(kind.name()).or_insert_with(|| single_line(message));
            }
            for (status, message) in &outcomes.messages {
                if let Some(name) = GRPC_STATUS_NAMES.get(usize::from(*status)) {
                    self.messages.entry(name).or_insert_with(|| single_line(message));
                }
            }
            for (step, sample) in &outcomes.samples {
                self.samples.entry(*step).or_insert_with(|| single_line(&sample.reason));
            }
        }
        let width = self.subject.interval;
        let end_s = Nanos(number.saturating_add(1).saturating_mul(width.0)).as_secs_f64();
        let target = self.load.filter(|load| load.kind == LevelKind::Rate).and_then(|load| load.level);
        self.history.push(end_s, width.as_secs_f64(), interval, target);
        self.latest = interval.clone();
    }

    /// Takes the counts of the agents so far; one part is this process.
    pub fn set_parts(&mut self, parts: &[AgentCounts]) {
        if parts.len() < 2 {
            return;
        }
        let seconds = (self.elapsed - self.agents_at).as_secs_f64();
        let of = |(index, part)| AgentView::of(part, self.agents.get(index), seconds);
        self.agents = parts.iter().enumerate().map(of).collect();
        self.agents_at = self.elapsed;
    }

    /// Changes what is shown.
    pub fn press(&mut self, key: ViewKey) {
        let last = self.steps.len().saturating_sub(1);
        match key {
            ViewKey::Up => self.first_step = self.first_step.saturating_sub(1),
            ViewKey::Down => self.first_step = (self.first_step + 1).min(last),
            ViewKey::Copy => {}
        }
    }

    /// Name of a step by its index.
    pub(crate) fn step_name(&self, index: usize) -> String {
        self.step_names.get(index).cloned().unwrap_or_else(|| format!("step {}", index + 1))
    }

    /// Fraction of the run that is over; none if it has no end.
    pub(crate) fn progress(&self) -> Option<f64> {
        let until = self.load.map(|load| load.until).filter(|until| *until != Nanos::NEVER && *until > Nanos::ZERO);
        let by_time = until.map(|until| self.elapsed.as_secs_f64() / until.as_secs_f64());
        let by_count = self.subject.requests.map(|requests| self.ended as f64 / requests.max(1) as f64);
        by_time.or(by_count).map(|fraction| fraction.clamp(0.0, 1.0))
    }
}
