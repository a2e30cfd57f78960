//! Coordinator of placed agents: it distributes a load, compares clocks, starts all agents together, and adds up their
//! results.

use std::path::PathBuf;

use super::aggregation::AgentAggregator;
use super::placement::{Placement, PlacementEvent, agents_on_node};
use super::process::HEARTBEAT_TIMEOUT;
use super::protocol::{self, AgentCommand, LoadAssignment};
use super::{AgentSpec, Backend, local, ray};
use weir_base::Nanos;
use weir_load::program::ProgramOptions;
use weir_load::{self as load, AgentPosition, LoadError, LoadPlan, Options, ProgressCallback, RequestBodySource};
use weir_machine::clock::{self, Clock};
use weir_measure::recorder::Interval;
use weir_measure::run::Manifest;
use weir_measure::trust::agent_label;
use weir_measure::{Counts, Run, RunProgress};

/// Coordinator of placed agents, for one load after the other. Dropping it ends the agents.
#[derive(Debug)]
pub struct Coordinator {
    placement: Box<dyn Placement>,
    backend: Backend,
    probes: u64,
    /// Reason why the agents are no longer usable.
    failure: Option<String>,
    /// Final reports of the agents' scripts in the last load.
    script_reports: Vec<String>,
}

/// Interval of checks for an interruption.
const POLL_INTERVAL: Nanos = Nanos::from_millis(50);
/// Interval of heartbeats.
const HEARTBEAT_INTERVAL: Nanos = Nanos::SECOND;
/// Number of probes of each clock before the start, ...
const MIN_CLOCK_PROBES: u32 = 24;
/// ... within this time.
const CLOCK_PROBE_TIMEOUT: Nanos = Nanos::from_millis(600);
/// Time from the start command to the start; longer for a higher latency to the agents.
const START_LEAD_TIME: Nanos = Nanos::from_millis(50);
/// Time between a change of the load and the instant from which it holds, in addition to that on one machine: a poll of
/// events, and the way to the agents.
const CHANGE_LEAD_TIME: Nanos = Nanos::from_millis(200);
/// Timeout for the remaining results after a stop command. With [`EXIT_TIMEOUT`] and the polling intervals, a run ends
/// within two seconds of Ctrl-C, even if agents hang.
const STOP_TIMEOUT: Nanos = Nanos::from_millis(1400);
/// Timeout for the exit of agents.
const EXIT_TIMEOUT: Nanos = Nanos::from_millis(400);

impl Coordinator {
    /// Places agents, with the files of these options; ends early once `go_on` returns false.
    ///
    /// # Errors
    /// Not all agents can be placed, or it was interrupted.
    pub fn place(spec: &AgentSpec, options: &Options, go_on: &mut dyn FnMut() -> bool) -> Result<Self, LoadError> {
        let placement: Box<dyn Placement> = match &spec.backend {
            Backend::Local => Box::new(local::place(spec, options.program.is_some()).map_err(LoadError::Agents)?),
            Backend::Ray(address) => {
                if let Some(program) = options.program.as_ref().filter(|program| !program.is_shippable()) {
                    let name = program.shown_name();
                    let name = name.display();
                    let why = format!("{name}: its users run on this machine; write --on local, or give a scenario");
                    return Err(LoadError::Agents(why));
                }
                let (_, files) = files_to_ship(options);
                Box::new(ray::place(spec, address, &files, go_on)?)
            }
        };
        Ok(Self { placement, backend: spec.backend.clone(), probes: 0, failure: None, script_reports: Vec::new() })
    }

    /// Number of agents.
    pub fn count(&self) -> usize {
        self.placement.nodes().len()
    }

    /// Final reports of the agents' scripts in the last load; leaves none.
    pub fn take_script_reports(&mut self) -> Vec<String> {
        std::mem::take(&mut self.script_reports)
    }

    /// Runs a load to its end, or until `watch` returns false. `plan` is the whole load of the options.
    ///
    /// # Errors
    /// It cannot start: an agent is lost, or rejects the load.
    pub fn run(
        &mut self,
        options: &Options,
        plan: &LoadPlan,
        command: &[String],
        watch: &mut ProgressCallback<'_>,
    ) -> Result<Run, LoadError> {
        if let Some(why) = &self.failure {
            return Err(LoadError::Agents(why.clone()));
        }
        let mut ledger = AgentAggregator::new(self.placement.nodes(), plan.interval, clock::monotonic());
        let clock = match self.prepare(options, plan, &mut ledger, watch) {
            Ok(clock) => clock,
            Err(why) => {
                // Agents may wait for a start that never comes.
                self.failure = Some(why.to_string());
                return Err(why);
            }
        };
        let manifest = load::manifest(plan, command);
        if let Some(control) = &plan.control {
            control.start(clock, Some(CHANGE_LEAD_TIME));
        }
        let (stopped, interrupted) = self.monitor(&clock, plan, &mut ledger, watch);
        let ended_at = clock.now();
        self.script_reports = ledger.take_script_reports();
        let (ended_by, steps) = (ledger.ended_by(), ledger.take_steps());
        let ended = ledger.ended();
        for (number, partial) in ledger.take_partial() {
            let (partial, named_steps) = (Some((number, &partial)), steps.facts());
            watch(&RunProgress { elapsed: ended_at, ended, partial, named_steps, ..RunProgress::default() });
        }
        let (agents, series) = ledger.close();
        let counts: Counts = agents.iter().map(|agent| &agent.counts).sum();
        let stopped = stopped.or_else(|| ended_by.as_ref().map(|_| counts.last_done));
        let mut facts = plan.facts(counts.last_done, ended_at, stopped, interrupted);
        facts.ended_by = ended_by.or(facts.ended_by);
        if plan.program.is_some() {
            facts.steps = steps.facts().to_vec();
        }
        let threads = agents.iter().map(|agent| agent.threads).sum();
        let mut run = Run::of(facts, &counts, &agents, &series, Manifest { threads, ..manifest });
        if plan.program.is_some() {
            steps.sort(&mut run.steps);
        }
        Ok(run)
    }

    /// Prepares all agents, compares clocks, and sends the start time; returns a clock that is zero at the start.
    fn prepare(
        &mut self,
        options: &Options,
        plan: &LoadPlan,
        ledger: &mut AgentAggregator,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<Clock, LoadError> {
        self.distribute(options, plan)?;
        let mut go_on = || watch(&RunProgress::default());
        let mut next_pulse = Nanos::ZERO;
        while !ledger.is_ready() {
            self.send_heartbeats(ledger, &mut next_pulse);
            self.poll_before_start(ledger, &mut go_on)?;
        }
        ledger.reset_clocks();
        let asked_since = clock::monotonic();
        let all = ledger.running();
        all.iter().for_each(|agent| self.send_probe(*agent, ledger));
        let least = |ledger: &AgentAggregator| all.iter().map(|agent| ledger.clock_offset(*agent).samples()).min();
        while least(ledger).is_some_and(|n| n < MIN_CLOCK_PROBES) {
            let enough = clock::monotonic() - asked_since > CLOCK_PROBE_TIMEOUT && least(ledger) > Some(0);
            if enough {
                break;
            }
            if let Some(agent) = self.poll_before_start(ledger, &mut go_on)? {
                self.send_probe(agent, ledger);
            }
        }
        let error = all.iter().map(|agent| ledger.clock_offset(*agent).error()).max().unwrap_or_default();
        let start = clock::monotonic() + START_LEAD_TIME + Nanos(error.0.saturating_mul(8).min(Nanos::from_secs(5).0));
        for agent in all {
            self.send(agent, &AgentCommand::Start(ledger.clock_offset(agent).to_remote(start)))?;
        }
        ledger.record_clock_errors();
        Ok(Clock::starting_at(start))
    }

    fn distribute(&mut self, options: &Options, plan: &LoadPlan) -> Result<(), LoadError> {
        let mut options = match self.backend {
            Backend::Local => options.clone(),
            Backend::Ray(_) => files_to_ship(options).0,
        };
        // Defaults that depend on this machine or on random choices are the same for all agents.
        options.seed = Some(plan.seed);
        options.connections = options.has_connections().then_some(plan.connections);
        let (of, interval, preconnect) = (self.count(), plan.interval, plan.preconnect);
        for agent in 0..of {
            let here = agents_on_node(self.placement.nodes(), agent);
            let place = AgentPosition { index: agent as u64, count: of as u64, on_host: here };
            let may_change = plan.control.is_some();
            let options = options.clone();
            let job = LoadAssignment { options, position: place, interval, preconnect, may_change };
            self.send(agent, &AgentCommand::Load(Box::new(job)))?;
        }
        Ok(())
    }

    /// Handles the next event before the start; returns an agent that has responded to its latest clock probe.
    fn poll_before_start(
        &mut self,
        ledger: &mut AgentAggregator,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<usize>, LoadError> {
        let failed = |coordinator: &Self, agent: usize, why: &str| LoadError::Agents(coordinator.describe(agent, why));
        let mut probed = None;
        match self.placement.next_event(POLL_INTERVAL) {
            None => {}
            Some(PlacementEvent::Failed(agent, why)) => return Err(failed(self, agent, &why)),
            Some(PlacementEvent::Line(agent, at, line)) => {
                let news = protocol::parse_event(&line).map_err(|why| failed(self, agent, &why))?;
                let before = ledger.clock_offset(agent).samples();
                ledger.on_event(agent, news, at).map_err(|why| failed(self, agent, &why))?;
                // A response to an older probe does not count.
                probed = (ledger.clock_offset(agent).samples() > before).then_some(agent);
            }
        }
        if let Some(agent) = ledger.silent_since(clock::monotonic() - HEARTBEAT_TIMEOUT) {
            return Err(failed(self, agent, &heartbeat_failure()));
        }
        if go_on() { Ok(probed) } else { Err(LoadError::Interrupted) }
    }

    /// Handles events until all agents are done; returns the time of the stop command, if any, and whether it was an
    /// interruption.
    fn monitor(
        &mut self,
        clock: &Clock,
        plan: &LoadPlan,
        ledger: &mut AgentAggregator,
        watch: &mut ProgressCallback<'_>,
    ) -> (Option<Nanos>, bool) {
        let (mut stopped, mut interrupted) = (None, false);
        let mut version = 0;
        let mut next_pulse = Nanos::ZERO;
        while !ledger.is_done() {
            self.send_heartbeats(ledger, &mut next_pulse);
            self.send_changes(plan, ledger, &mut version);
            let mut second = None;
            if let Some((agent, lost)) = self.poll(ledger, &mut second) {
                ledger.fail(agent, lost);
            }
            let now = clock::monotonic();
            if let Some(agent) = ledger.silent_since(now - HEARTBEAT_TIMEOUT) {
                ledger.fail(agent, heartbeat_failure());
            }
            let elapsed = clock.now();
            let (number, interval) = second.as_ref().map_or((0, None), |(number, whole)| (*number, Some(whole)));
            let parts = ledger.parts();
            let (ended, named_steps) = (ledger.ended(), ledger.named_steps());
            let go_on = watch(&RunProgress { elapsed, ended, number, interval, parts, partial: None, named_steps });
            match stopped {
                None if !go_on || ledger.has_failed() || ledger.script_error().is_some() => {
                    (stopped, interrupted) = (Some(elapsed), !go_on);
                    ledger.running().iter().for_each(|agent| drop(self.send(*agent, &AgentCommand::Stop)));
                }
                Some(at) if elapsed - at > STOP_TIMEOUT => {
                    let why = format!("no report after the stop command within {STOP_TIMEOUT}");
                    ledger.running().into_iter().for_each(|agent| ledger.fail(agent, why.clone()));
                }
                _ => {}
            }
        }
        if ledger.has_failed() {
            self.failure = Some("an agent was lost in the previous load".to_owned());
        }
        (stopped, interrupted)
    }

    /// Handles the next event; returns an agent that has failed, and why.
    fn poll(&mut self, ledger: &mut AgentAggregator, second: &mut Option<(u64, Interval)>) -> Option<(usize, String)> {
        match self.placement.next_event(POLL_INTERVAL)? {
            PlacementEvent::Failed(agent, why) => Some((agent, self.with_last_log(agent, &why))),
            PlacementEvent::Line(agent, at, line) => {
                match protocol::parse_event(&line).and_then(|news| ledger.on_event(agent, news, at)) {
                    Ok(whole) => {
                        *second = whole;
                        None
                    }
                    Err(why) => Some((agent, why)),
                }
            }
        }
    }

    /// Sends a heartbeat to all agents if one is due.
    fn send_heartbeats(&mut self, ledger: &mut AgentAggregator, next: &mut Nanos) {
        let now = clock::monotonic();
        if now >= *next {
            *next = now + HEARTBEAT_INTERVAL;
            ledger.running().into_iter().for_each(|agent| self.send_probe(agent, ledger));
        }
    }

    /// Sends the latest change of the load, if there is one since `version`.
    fn send_changes(&mut self, plan: &LoadPlan, ledger: &AgentAggregator, version: &mut u64) {
        let Some(control) = plan.control.as_ref().filter(|control| control.version() != *version) else { return };
        let (latest, update) = control.latest();
        *version = latest;
        let change = AgentCommand::Change(update);
        ledger.running().into_iter().for_each(|agent| drop(self.send(agent, &change)));
    }

    fn send_probe(&mut self, agent: usize, ledger: &mut AgentAggregator) {
        self.probes += 1;
        ledger.probe(agent, self.probes, clock::monotonic());
        let _ = self.send(agent, &AgentCommand::Probe(self.probes));
    }

    fn send(&mut self, agent: usize, order: &AgentCommand) -> Result<(), LoadError> {
        let line = serde_json::to_string(order);
        let line = line.map_err(|e| LoadError::Agents(format!("the load cannot be sent to agents: {e}")))?;
        self.placement.send(agent, &line);
        Ok(())
    }

    fn describe(&self, agent: usize, why: &str) -> String {
        let node = self.placement.nodes().get(agent).map_or("?", String::as_str);
        format!("{}: {}", agent_label(agent, node), self.with_last_log(agent, why))
    }

    /// Reason of a failure, with the agent's last log line.
    fn with_last_log(&self, agent: usize, why: &str) -> String {
        match self.placement.logs(agent).last() {
            Some(line) => format!("{why}; last log line: {line}"),
            None => why.to_owned(),
        }
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        self.placement.stop(EXIT_TIMEOUT);
    }
}

fn heartbeat_failure() -> String {
    format!("no message for {HEARTBEAT_TIMEOUT}")
}

/// Options with the names of files on the nodes of agents, and the files to ship: local path and that name.
fn files_to_ship(options: &Options) -> (Options, Vec<(PathBuf, String)>) {
    let mut options = options.clone();
    let mut files = Vec::new();
    let bodies = options.bodies.iter_mut().filter_map(|body| match body {
        RequestBodySource::File(path) => Some(path),
        RequestBodySource::Bytes(_) => None,
    });
    let tls = &mut options.tls;
    for path in bodies.chain(&mut tls.cacert).chain(&mut tls.cert).chain(&mut tls.key) {
        let name = format!("file-{}", files.len());
        let ours = std::mem::replace(path, name.clone().into());
        files.push((std::path::absolute(&ours).unwrap_or(ours), name));
    }
    if let Some(ProgramOptions::JavaScript(script)) = &mut options.program {
        let (there, of_script) = script.shipped();
        *script = there;
        files.extend(of_script);
    }
    (options, files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_shipped_under_unique_and_stable_names() {
        let bodies = vec![
            RequestBodySource::File("a/x".into()),
            RequestBodySource::Bytes(b"y".to_vec()),
            RequestBodySource::File("b/x".into()),
        ];
        let mut options = Options { bodies, ..Options::default() };
        options.tls.cacert = Some("/ca.pem".into());
        let (there, files) = files_to_ship(&options);
        let names: Vec<&str> = files.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["file-0", "file-1", "file-2"]);
        assert!(files.iter().all(|(path, _)| path.is_absolute()) && files[1].0.ends_with("b/x"));
        assert_eq!(there.bodies[2], RequestBodySource::File("file-1".into()));
        assert_eq!((there.bodies[1].clone(), there.tls.cacert), (options.bodies[1].clone(), Some("file-2".into())));
        assert_eq!(files_to_ship(&options).1, files);
    }
}
