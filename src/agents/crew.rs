//! Agents that were placed, and the runs that are driven with them: all ready, clocks compared, begun together, added up.

use std::path::PathBuf;

use super::ledger::Ledger;
use super::life::SILENCE;
use super::placement::{Event, Placement, here};
use super::speech::{self, Job, Order};
use super::{Asked, On, local, ray};
use crate::decide::Nanos;
use crate::load::{self, Body, LoadError, Options, Place, Plan, Watch};
use crate::machine::clock::{self, Clock};
use crate::measure::Progress;
use crate::measure::Run;
use crate::measure::recorder::Interval;
use crate::measure::run::Manifest;
use crate::measure::trust::named;

/// Agents that can drive loads, one after the other. Dropped, they end.
#[derive(Debug)]
pub struct Crew {
    placement: Box<dyn Placement>,
    on: On,
    questions: u64,
    /// Why they can drive nothing any more.
    broken: Option<String>,
}

/// How often it is looked whether somebody has had enough.
const LOOK: Nanos = Nanos::from_millis(50);
/// How often agents are asked for a sign of life.
const PULSE: Nanos = Nanos::SECOND;
/// Before the start each clock is asked so often, ...
const QUESTIONS: u32 = 24;
/// ... unless that takes longer.
const ASKING: Nanos = Nanos::from_millis(600);
/// From the last order to begin until the beginning; longer where the way to agents is.
const LEAD: Nanos = Nanos::from_millis(50);
/// How long agents have to tell the rest once they were told to stop. With the farewell, and with the looks in between, it is
/// less than two seconds: whoever ends a run has not to wait for longer, also where agents hang.
const GRACE: Nanos = Nanos::from_millis(1400);
/// How long agents have to end, once nothing is to be driven any more.
const FAREWELL: Nanos = Nanos::from_millis(400);

impl Crew {
    /// Places agents for loads with the files of these options; `go_on` can end it.
    ///
    /// # Errors
    /// They cannot be placed, all of them; or somebody has had enough.
    pub fn place(asked: &Asked, options: &Options, go_on: &mut dyn FnMut() -> bool) -> Result<Self, LoadError> {
        let placement: Box<dyn Placement> = match &asked.on {
            On::Local => Box::new(local::place(asked).map_err(LoadError::Agents)?),
            On::Ray(address) => {
                let (_, files) = shipped(options);
                Box::new(ray::place(asked, address, &files, go_on)?)
            }
        };
        Ok(Self { placement, on: asked.on.clone(), questions: 0, broken: None })
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
        plan: &Plan,
        command: &[String],
        watch: &mut Watch<'_>,
    ) -> Result<Run, LoadError> {
        if let Some(why) = &self.broken {
            return Err(LoadError::Agents(why.clone()));
        }
        let mut ledger = Ledger::new(self.placement.nodes(), plan.stretch, clock::monotonic());
        let clock = match self.prepare(options, plan, &mut ledger, watch) {
            Ok(clock) => clock,
            Err(why) => {
                // What some of them may have begun to get ready for would never come.
                self.broken = Some(why.to_string());
                return Err(why);
            }
        };
        let manifest = load::manifest(plan, command);
        let (stopped, interrupted) = self.follow(&clock, &mut ledger, watch);
        let gathered = ledger.close(stopped, interrupted);
        let threads = gathered.agents.iter().map(|agent| agent.threads).sum();
        Ok(gathered.into_run(plan, Manifest { threads, ..manifest }))
    }

    /// Has all agents get ready, compares their clocks, and tells them when to begin: a clock that strikes zero then.
    fn prepare(
        &mut self,
        options: &Options,
        plan: &Plan,
        ledger: &mut Ledger,
        watch: &mut Watch<'_>,
    ) -> Result<Clock, LoadError> {
        self.hand_out(options, plan)?;
        let mut go_on = || watch(&Progress { elapsed: Nanos::ZERO, ended: 0, second: None });
        let mut next_pulse = Nanos::ZERO;
        while !ledger.is_ready() {
            self.pulse(ledger, &mut next_pulse);
            self.before_the_start(ledger, &mut go_on)?;
        }
        ledger.forget_clocks();
        let asked_since = clock::monotonic();
        let all = ledger.running();
        all.iter().for_each(|agent| self.ask(*agent, ledger));
        let least = |ledger: &Ledger| all.iter().map(|agent| ledger.offset(*agent).answers()).min();
        while least(ledger).is_some_and(|n| n < QUESTIONS) {
            let enough = clock::monotonic() - asked_since > ASKING && least(ledger) > Some(0);
            if enough {
                break;
            }
            if let Some(agent) = self.before_the_start(ledger, &mut go_on)? {
                self.ask(agent, ledger);
            }
        }
        let error = all.iter().map(|agent| ledger.offset(*agent).error()).max().unwrap_or_default();
        let start = clock::monotonic() + LEAD + Nanos(error.0.saturating_mul(8).min(Nanos::from_secs(5).0));
        for agent in all {
            self.tell(agent, &Order::Start(ledger.offset(agent).theirs(start)))?;
        }
        ledger.note_clock_errors();
        Ok(Clock::striking_at(start))
    }

    fn hand_out(&mut self, options: &Options, plan: &Plan) -> Result<(), LoadError> {
        let mut options = match self.on {
            On::Local => options.clone(),
            On::Ray(_) => shipped(options).0,
        };
        // What follows from this machine, or from chance, is the same for all.
        options.seed = Some(plan.seed);
        options.connections = options.users.is_none().then_some(plan.connections);
        let (of, stretch, preconnect) = (self.count(), plan.stretch, plan.preconnect);
        for agent in 0..of {
            let here = here(self.placement.nodes(), agent);
            let place = Place { index: agent as u64, of: of as u64, here };
            let job = Job { options: options.clone(), place, stretch, preconnect };
            self.tell(agent, &Order::Load(Box::new(job)))?;
        }
        Ok(())
    }

    /// Takes in what happens before the start; who answered a question about its clock.
    fn before_the_start(
        &mut self,
        ledger: &mut Ledger,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<usize>, LoadError> {
        let failed = |crew: &Self, agent: usize, why: &str| LoadError::Agents(crew.words(agent, why));
        let mut answered = None;
        match self.placement.watch(LOOK) {
            None => {}
            Some(Event::Lost(agent, why)) => return Err(failed(self, agent, &why)),
            Some(Event::Said(agent, at, line)) => {
                let news = speech::news(&line).map_err(|why| failed(self, agent, &why))?;
                let before = ledger.offset(agent).answers();
                ledger.take(agent, news, at).map_err(|why| failed(self, agent, &why))?;
                // The answer to an older question is none.
                answered = (ledger.offset(agent).answers() > before).then_some(agent);
            }
        }
        if let Some(agent) = ledger.silent_since(clock::monotonic() - SILENCE) {
            return Err(failed(self, agent, &silent()));
        }
        if go_on() { Ok(answered) } else { Err(LoadError::Interrupted) }
    }

    /// Takes in what agents tell until all are done; when they were told to stop, and whether somebody wanted that.
    fn follow(&mut self, clock: &Clock, ledger: &mut Ledger, watch: &mut Watch<'_>) -> (Option<Nanos>, bool) {
        let (mut stopped, mut interrupted) = (None, false);
        let mut next_pulse = Nanos::ZERO;
        while !ledger.is_done() {
            self.pulse(ledger, &mut next_pulse);
            let mut second = None;
            if let Some((agent, lost)) = self.take(ledger, &mut second) {
                ledger.lose(agent, lost);
            }
            let now = clock::monotonic();
            if let Some(agent) = ledger.silent_since(now - SILENCE) {
                ledger.lose(agent, silent());
            }
            let elapsed = clock.now();
            let go_on = watch(&Progress { elapsed, ended: ledger.ended(), second: second.as_ref() });
            match stopped {
                None if !go_on || ledger.has_lost() => {
                    (stopped, interrupted) = (Some(elapsed), !go_on);
                    ledger.running().iter().for_each(|agent| drop(self.tell(*agent, &Order::Stop)));
                }
                Some(at) if elapsed - at > GRACE => {
                    let why = "it did not tell what it measured when it was told to stop";
                    ledger.running().into_iter().for_each(|agent| ledger.lose(agent, why.to_owned()));
                }
                _ => {}
            }
        }
        if ledger.has_lost() {
            self.broken = Some("an agent was lost in the load before".to_owned());
        }
        (stopped, interrupted)
    }

    /// Takes in the next thing that happens; an agent that is lost by it, and why.
    fn take(&mut self, ledger: &mut Ledger, second: &mut Option<Interval>) -> Option<(usize, String)> {
        match self.placement.watch(LOOK)? {
            Event::Lost(agent, why) => Some((agent, self.why(agent, &why))),
            Event::Said(agent, at, line) => match speech::news(&line).and_then(|news| ledger.take(agent, news, at)) {
                Ok(whole) => {
                    *second = whole;
                    None
                }
                Err(why) => Some((agent, why)),
            },
        }
    }

    /// Asks all for a sign of life, from time to time.
    fn pulse(&mut self, ledger: &mut Ledger, next: &mut Nanos) {
        let now = clock::monotonic();
        if now >= *next {
            *next = now + PULSE;
            ledger.running().into_iter().for_each(|agent| self.ask(agent, ledger));
        }
    }

    fn ask(&mut self, agent: usize, ledger: &mut Ledger) {
        self.questions += 1;
        ledger.ask(agent, self.questions, clock::monotonic());
        let _ = self.tell(agent, &Order::Probe(self.questions));
    }

    fn tell(&mut self, agent: usize, order: &Order) -> Result<(), LoadError> {
        let line = serde_json::to_string(order);
        let line = line.map_err(|e| LoadError::Agents(format!("the load cannot be told to agents: {e}")))?;
        self.placement.tell(agent, &line);
        Ok(())
    }

    fn words(&self, agent: usize, why: &str) -> String {
        let node = self.placement.nodes().get(agent).map_or("?", String::as_str);
        format!("{}: {}", named(agent, node), self.why(agent, why))
    }

    /// Why something is wrong with an agent, and what it complained about last.
    fn why(&self, agent: usize, why: &str) -> String {
        match self.placement.logs(agent).last() {
            Some(line) => format!("{why}; it said: {line}"),
            None => why.to_owned(),
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.placement.stop(FAREWELL);
    }
}

fn silent() -> String {
    format!("nothing was heard of it for {SILENCE}")
}

/// The options with files as they are called where agents run, and what to ship: from where, and under which name.
fn shipped(options: &Options) -> (Options, Vec<(PathBuf, String)>) {
    let mut options = options.clone();
    let mut files = Vec::new();
    let bodies = options.bodies.iter_mut().filter_map(|body| match body {
        Body::File(path) => Some(path),
        Body::Bytes(_) => None,
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
        let bodies = vec![Body::File("a/x".into()), Body::Bytes(b"y".to_vec()), Body::File("b/x".into())];
        let mut options = Options { bodies, ..Options::default() };
        options.tls.cacert = Some("/ca.pem".into());
        let (there, files) = shipped(&options);
        let names: Vec<&str> = files.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["file-0", "file-1", "file-2"]);
        assert!(files.iter().all(|(path, _)| path.is_absolute()) && files[1].0.ends_with("b/x"));
        assert_eq!(there.bodies[2], Body::File("file-1".into()));
        assert_eq!((there.bodies[1].clone(), there.tls.cacert), (options.bodies[1].clone(), Some("file-2".into())));
        assert_eq!(shipped(&options).1, files);
    }
}
