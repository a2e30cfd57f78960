//! One test of recovery: the load with its trigger, in one run, so that clients go on through all phases.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::drive::{Driver, run};
use super::recovery_options::{RecoveryOptions, RecoveryTrigger};
use super::{CapacityCallback, CapacityError, CapacityEvent};
use weir_load::{LoadControl, LoadError, Options};
use weir_machine as machine;
use weir_measure::Run;
use weir_measure::recovery::{
    RecoveryAction, RecoveryFacts, RecoveryPhase, RecoveryReport, RecoverySecond, RecoveryTest,
};
use weir_pace::live_load::LoadChange;

/// Connections beyond those that the longest calls need, as a fraction and in number.
const SPARE_CONNECTIONS: (f64, u64) = (1.2, 100);
/// Maximum number of connections, unless `-c` says otherwise.
const MAX_DEFAULT_CONNECTIONS: u64 = 20_000;

/// Result of a test.
#[derive(Debug)]
pub(super) struct RecoveryOutcome {
    pub(super) report: RecoveryReport,
    /// Whether the callback ended it.
    pub(super) interrupted: bool,
}

impl Driver<'_> {
    /// Tests recovery at a load, in calls per second; `fraction` is what it is of the capacity that was found.
    pub(super) fn test_recovery(
        &mut self,
        recovery: &RecoveryOptions,
        (load, fraction): (f64, Option<f64>),
        watch: &mut CapacityCallback<'_>,
    ) -> Result<RecoveryOutcome, CapacityError> {
        let rules = recovery.rules(self.warmup_s);
        let options = Options {
            stages: recovery.stages(load, &rules),
            connections: Some(connections(&self.search.options, recovery, load)),
            rate: None,
            duration: None,
            warmup: Some(Duration::from_secs(self.warmup_s)),
            timeout: Some(recovery.timeout),
            seed: Some(self.search.options.seed.unwrap_or(0).wrapping_add(self.steps)),
            ..with_retries(&self.search.options, recovery.retries)
        };
        let (plan, control) = self.plan_of(&options)?.controlled();
        let mut stage = TestStage {
            test: RecoveryTest::new(rules),
            recovery,
            load,
            control,
            command: None,
            cut_off: None,
            has_ended: false,
        };
        let mut interrupted = false;
        let driven = run(&mut self.coordinator, &options, &plan, self.command, &mut |progress| {
            let phase = stage.test.phase();
            if let Some(interval) = progress.interval {
                stage.add(RecoverySecond::of(interval, stage.offered()));
            }
            stage.poll_command();
            if stage.test.phase() != phase {
                interrupted |= !watch(&CapacityEvent::RecoveryPhase(stage.test.phase(), stage.offered()));
            }
            let level = stage.offered();
            interrupted |= !watch(&CapacityEvent::RecoveryProgress { load: level, progress });
            !interrupted && !stage.has_ended
        });
        stage.stop_command();
        let run = match driven {
            Err(CapacityError::AgentLost(_)) if interrupted => return Err(LoadError::Interrupted.into()),
            driven => driven?,
        };
        let interrupted = interrupted && !stage.has_ended;
        let cut_off = stage.cut_off.clone().unwrap_or_else(|| "interrupted".to_owned());
        let facts = RecoveryFacts {
            load_per_s: load,
            load_fraction: fraction,
            trigger: recovery.trigger_text(load),
            retries: recovery.retries,
            timeout_ms: recovery.timeout.as_secs_f64() * 1e3,
            cut_off,
            doubts: doubts(&run),
        };
        Ok(RecoveryOutcome { report: RecoveryReport::of(&stage.test, facts), interrupted })
    }
}

/// Test that goes on, with what it does to the load and the service.
struct TestStage<'r> {
    test: RecoveryTest,
    recovery: &'r RecoveryOptions,
    load: f64,
    control: LoadControl,
    /// Command of the trigger while it runs.
    command: Option<Child>,
    /// Reason why there is no verdict.
    cut_off: Option<String>,
    has_ended: bool,
}

impl TestStage<'_> {
    /// Calls per second in the second that goes on.
    fn offered(&self) -> f64 {
        match self.test.phase() {
            RecoveryPhase::Trigger => {
                let second = self.test.seconds_of(RecoveryPhase::Trigger).len();
                self.recovery.triggered_load(self.load, second)
            }
            RecoveryPhase::Rest => RecoveryOptions::rest_load(self.load),
            _ => self.load,
        }
    }

    fn add(&mut self, second: RecoverySecond) {
        match self.test.add(second) {
            RecoveryAction::Continue => {}
            RecoveryAction::Trigger => self.begin_command(),
            RecoveryAction::Rest => self.change(RecoveryOptions::rest_load(self.load)),
            RecoveryAction::Resume => self.change(self.load),
            RecoveryAction::End => self.has_ended = true,
        }
    }

    fn change(&mut self, rate: f64) {
        if let Err(why) = self.control.change(LoadChange::Rate(rate)) {
            self.abort(format!("the load could not be changed: {why}"));
        }
    }

    fn abort(&mut self, why: String) {
        self.cut_off.get_or_insert(why);
        self.has_ended = true;
    }

    fn begin_command(&mut self) {
        let RecoveryTrigger::Command(text) = &self.recovery.trigger else { return };
        // Stdout is the report's. A process group of its own, which ends as a whole.
        let mut shell = Command::new("sh");
        match shell.args(["-c", text]).stdin(Stdio::null()).stdout(Stdio::null()).process_group(0).spawn() {
            Ok(child) => self.command = Some(child),
            Err(error) => self.abort(format!("the command '{text}' cannot run: {error}")),
        }
    }

    /// Takes note of the end of the command.
    fn poll_command(&mut self) {
        let Some(child) = &mut self.command else { return };
        let ended = match child.try_wait() {
            Ok(None) => return,
            Ok(Some(status)) if status.success() => Ok(()),
            Ok(Some(status)) => Err(status.to_string()),
            Err(error) => Err(error.to_string()),
        };
        self.command = None;
        match ended {
            Ok(()) => self.test.end_trigger(),
            Err(why) => self.abort(format!("the command of the trigger failed: {why}")),
        }
    }

    fn stop_command(&mut self) {
        if let Some(mut child) = self.command.take() {
            machine::processes::kill_tree(child.id());
            let _ = child.wait();
        }
    }
}

/// Connections for all calls that may be under way at a time.
fn connections(options: &Options, recovery: &RecoveryOptions, load: f64) -> u64 {
    let (spare, more) = SPARE_CONNECTIONS;
    let needed = (recovery.peak_load(load) * recovery.longest_call_s() * spare).ceil() as u64 + more;
    let allowed = machine::max_connections().clamp(1, MAX_DEFAULT_CONNECTIONS);
    options.connections.unwrap_or(needed.min(allowed))
}

/// Options whose requests are retried as by clients.
fn with_retries(options: &Options, retries: u64) -> Options {
    let mut options = options.clone();
    let retries = Some(retries).filter(|retries| *retries > 0);
    options.scenarios.iter_mut().for_each(|source| source.client_retries = retries);
    if options.scenarios.is_empty() {
        options.request_scenario.client_retries = retries;
    }
    options
}

/// Reasons not to trust a run.
fn doubts(run: &Run) -> Vec<String> {
    let is_late = run.is_generator_fault();
    let why = format!(
        "weir itself was the limit: sent late by {:.1} ms at the 99th percentile, busiest thread {:.0}% of a core",
        run.lateness_ms.p99.unwrap_or(0.0),
        run.cpu_utilization * 100.0
    );
    is_late.then_some(why).into_iter().collect()
}
