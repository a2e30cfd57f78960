//! Agents that were placed, and the runs that are driven with them: all ready, clocks compared, begun together, added up.

use std::path::PathBuf;

use super::ledger::AgentAggregator;
use super::life::HEARTBEAT_TIMEOUT;
use super::placement::{Placement, PlacementEvent, agents_on_node};
use super::speech::{self, AgentCommand, LoadAssignment};
use super::{AgentSpec, Backend, local, ray};
use crate::decide::Nanos;
use crate::load::{self, AgentPosition, LoadError, LoadPlan, Options, ProgressCallback, RequestBodySource};
use crate::machine::clock::{self, Clock};
use crate::measure::Run;
use crate::measure::RunProgress;
use crate::measure::recorder::Interval;
use crate::measure::run::Manifest;
use crate::measure::trust::agent_label;

/// Agents that can drive loads, one after the other. Dropped, they end.
#[derive(Debug)]
pub struct Coordinator {
    placement: Box<dyn Placement>,
    backend: Backend,
    probes: u64,
    /// Why they can drive nothing any more.
    failure: Option<String>,
}

/// How often it is looked whether somebody has had enough.
const POLL_INTERVAL: Nanos = Nanos::from_millis(50);
/// How often agents are asked for a sign of life.
const HEARTBEAT_INTERVAL: Nanos = Nanos::SECOND;
/// Before the start each clock is asked so often, ...
const MIN_CLOCK_PROBES: u32 = 24;
/// ... unless that takes longer.
const CLOCK_PROBE_TIMEOUT: Nanos = Nanos::from_millis(600);
/// From the last order to begin until the beginning; longer where the way to agents is.
const START_LEAD_TIME: Nanos = Nanos::from_millis(50);
/// How long agents have to tell the rest once they were told to stop. With the farewell, and with the looks in between, it is
/// less than two seconds: whoever ends a run has not to wait for longer, also where agents hang.
const STOP_TIMEOUT: Nanos = Nanos::from_millis(1400);
/// How long agents have to end, once nothing is to be driven any more.
const EXIT_TIMEOUT: Nanos = Nanos::from_millis(400);

impl Coordinator {
    /// Places agents for loads with the files of these options; `go_on` can end it.
    ///
    /// # Errors
    /// They cannot be placed, all of them; or somebody has had enough.
    pub fn place(asked: &AgentSpec, options: &Options, go_on: &mut dyn FnMut() -> bool) -> Result<Self, LoadError> {
        let placement: Box<dyn Placement> = match &asked.backend {
            Backend::Local => Box::new(local::place(asked).map_err(LoadError::Agents)?),
            Backend::Ray(address) => {
                let (_, files) = files_to_ship(options);
                Box::new(ray::place(asked, address, &files, go_on)?)
            }
        };
        Ok(Self { placement, backend: asked.backend.clone(), probes: 0, failure: None })
    }

    /// How many agents there are.
    pub fn count(&self) -> usize {
        self.placement.nodes().len()
    }

    /// Drives a load to its end, or until `watch` says no. `plan` is the whole load of the options.
    ///
    /// # Errors
    /// It cannot start: an agent is gone, or refuses.
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
                // What some of them may have begun to get ready for would never come.
                self.failure = Some(why.to_string());
                return Err(why);
            }
        };
        let manifest = load::manifest(plan, command);
        let (stopped, interrupted) = self.monitor(&clock, &mut ledger, watch);
        let gathered = ledger.close(stopped, interrupted);
        let threads = gathered.agents.iter().map(|agent| agent.threads).sum();
        Ok(gathered.into_run(plan, Manifest { threads, ..manifest }))
    }

    /// Has all agents get ready, compares their clocks, and tells them when to begin: a clock that strikes zero then.
    fn prepare(
        &mut self,
        options: &Options,
        plan: &LoadPlan,
        ledger: &mut AgentAggregator,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<Clock, LoadError> {
        self.distribute(options, plan)?;
        let mut go_on = || watch(&RunProgress { elapsed: Nanos::ZERO, ended: 0, interval: None });
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
        // What follows from this machine, or from chance, is the same for all.
        options.seed = Some(plan.seed);
        options.connections = options.users.is_none().then_some(plan.connections);
        let (of, stretch, preconnect) = (self.count(), plan.interval, plan.preconnect);
        for agent in 0..of {
            let here = agents_on_node(self.placement.nodes(), agent);
            let place = AgentPosition { index: agent as u64, count: of as u64, on_host: here };
            let job = LoadAssignment { options: options.clone(), position: place, interval: stretch, preconnect };
            self.send(agent, &AgentCommand::Load(Box::new(job)))?;
        }
        Ok(())
    }

    /// Takes in what happens before the start; who answered a question about its clock.
    fn poll_before_start(
        &mut self,
        ledger: &mut AgentAggregator,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<usize>, LoadError> {
        let failed = |crew: &Self, agent: usize, why: &str| LoadError::Agents(crew.describe(agent, why));
        let mut answered = None;
        match self.placement.next_event(POLL_INTERVAL) {
            None => {}
            Some(PlacementEvent::Failed(agent, why)) => return Err(failed(self, agent, &why)),
            Some(PlacementEvent::Line(agent, at, line)) => {
                let news = speech::parse_event(&line).map_err(|why| failed(self, agent, &why))?;
                let before = ledger.clock_offset(agent).samples();
                ledger.on_event(agent, news, at).map_err(|why| failed(self, agent, &why))?;
                // The answer to an older question is none.
                answered = (ledger.clock_offset(agent).samples() > before).then_some(agent);
            }
        }
        if let Some(agent) = ledger.silent_since(clock::monotonic() - HEARTBEAT_TIMEOUT) {
            return Err(failed(self, agent, &heartbeat_failure()));
        }
        if go_on() { Ok(answered) } else { Err(LoadError::Interrupted) }
    }

    /// Takes in what agents tell until all are done; when they were told to stop, and whether somebody wanted that.
    fn monitor(
        &mut self,
        clock: &Clock,
        ledger: &mut AgentAggregator,
        watch: &mut ProgressCallback<'_>,
    ) -> (Option<Nanos>, bool) {
        let (mut stopped, mut interrupted) = (None, false);
        let mut next_pulse = Nanos::ZERO;
        while !ledger.is_done() {
            self.send_heartbeats(ledger, &mut next_pulse);
            let mut second = None;
            if let Some((agent, lost)) = self.poll(ledger, &mut second) {
                ledger.fail(agent, lost);
            }
            let now = clock::monotonic();
            if let Some(agent) = ledger.silent_since(now - HEARTBEAT_TIMEOUT) {
                ledger.fail(agent, heartbeat_failure());
            }
            let elapsed = clock.now();
            let go_on = watch(&RunProgress { elapsed, ended: ledger.ended(), interval: second.as_ref() });
            match stopped {
                None if !go_on || ledger.has_failed() => {
                    (stopped, interrupted) = (Some(elapsed), !go_on);
                    ledger.running().iter().for_each(|agent| drop(self.send(*agent, &AgentCommand::Stop)));
                }
                Some(at) if elapsed - at > STOP_TIMEOUT => {
                    let why = "it did not tell what it measured when it was told to stop";
                    ledger.running().into_iter().for_each(|agent| ledger.fail(agent, why.to_owned()));
                }
                _ => {}
            }
        }
        if ledger.has_failed() {
            self.failure = Some("an agent was lost in the load before".to_owned());
        }
        (stopped, interrupted)
    }

    /// Takes in the next thing that happens; an agent that is lost by it, and why.
    fn poll(&mut self, ledger: &mut AgentAggregator, second: &mut Option<Interval>) -> Option<(usize, String)> {
        match self.placement.next_event(POLL_INTERVAL)? {
            PlacementEvent::Failed(agent, why) => Some((agent, self.with_last_log(agent, &why))),
            PlacementEvent::Line(agent, at, line) => {
                match speech::parse_event(&line).and_then(|news| ledger.on_event(agent, news, at)) {
                    Ok(whole) => {
                        *second = whole;
                        None
                    }
                    Err(why) => Some((agent, why)),
                }
            }
        }
    }

    /// Asks all for a sign of life, from time to time.
    fn send_heartbeats(&mut self, ledger: &mut AgentAggregator, next: &mut Nanos) {
        let now = clock::monotonic();
        if now >= *next {
            *next = now + HEARTBEAT_INTERVAL;
            ledger.running().into_iter().for_each(|agent| self.send_probe(agent, ledger));
        }
    }

    fn send_probe(&mut self, agent: usize, ledger: &mut AgentAggregator) {
        self.probes += 1;
        ledger.probe(agent, self.probes, clock::monotonic());
        let _ = self.send(agent, &AgentCommand::Probe(self.probes));
    }

    fn send(&mut self, agent: usize, order: &AgentCommand) -> Result<(), LoadError> {
        let line = serde_json::to_string(order);
        let line = line.map_err(|e| LoadError::Agents(format!("the load cannot be told to agents: {e}")))?;
        self.placement.send(agent, &line);
        Ok(())
    }

    fn describe(&self, agent: usize, why: &str) -> String {
        let node = self.placement.nodes().get(agent).map_or("?", String::as_str);
        format!("{}: {}", agent_label(agent, node), self.with_last_log(agent, why))
    }

    /// Why something is wrong with an agent, and what it complained about last.
    fn with_last_log(&self, agent: usize, why: &str) -> String {
        match self.placement.logs(agent).last() {
            Some(line) => format!("{why}; it said: {line}"),
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
    format!("nothing was heard of it for {HEARTBEAT_TIMEOUT}")
}

/// The options with files as they are called where agents run, and what to ship: from where, and under which name.
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
    (options, files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_shipped_under_names_of_their_own_the_same_each_time() {
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
