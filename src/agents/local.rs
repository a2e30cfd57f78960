//! Agents as processes on this machine: the reference for every other place.

use std::io;
use std::process::Command;
use std::sync::mpsc::{self, Receiver};

use super::placement::{Event, Placement};
use super::voice::{Heard, Voice};
use super::{AGENT, Asked};
use crate::decide::Nanos;
use crate::machine::{self, clock::Clock};

/// Agents on this machine.
#[derive(Debug)]
pub(super) struct Local {
    agents: Vec<Voice>,
    nodes: Vec<String>,
    heard: Receiver<(usize, Heard)>,
}

/// Places them.
pub(super) fn place(asked: &Asked) -> Result<Local, String> {
    let (own, args) = asked.launcher.split_first().ok_or("it is not known how to start an agent")?;
    let (says, heard) = mpsc::channel();
    let start = |index: usize| {
        let mut command = Command::new(own);
        command.args(args).arg(AGENT);
        let says = says.clone();
        Voice::start(command, move |heard| {
            // Whoever listens may have had enough.
            let _ = says.send((index, heard));
        })
    };
    let count = usize::try_from(asked.agents.unwrap_or(1)).unwrap_or(usize::MAX);
    let agents = (0..count).map(start).collect::<io::Result<Vec<_>>>();
    let agents = agents.map_err(|error| format!("the system refuses to start agents: {error}"))?;
    Ok(Local { nodes: vec![machine::describe().hostname; agents.len()], agents, heard })
}

impl Placement for Local {
    fn nodes(&self) -> &[String] {
        &self.nodes
    }

    fn tell(&mut self, agent: usize, line: &str) {
        if let Some(voice) = self.agents.get(agent) {
            voice.tell(line.to_owned());
        }
    }

    fn watch(&mut self, patience: Nanos) -> Option<Event> {
        let (agent, (at, line)) = self.heard.recv_timeout(patience.as_duration()).ok()?;
        let lost = |voice: &mut Voice| Event::Lost(agent, voice.ending());
        match line {
            Some(line) => Some(Event::Said(agent, at, line)),
            None => self.agents.get_mut(agent).map(lost),
        }
    }

    fn stop(&mut self, patience: Nanos) {
        // All at once, and for all of them together: those that hang are not waited for one by one.
        self.agents.iter_mut().for_each(Voice::hang_up);
        let clock = Clock::started(Nanos::ZERO);
        self.agents.iter_mut().for_each(|agent| agent.end(patience - clock.now()));
    }

    fn logs(&self, agent: usize) -> Vec<String> {
        self.agents.get(agent).map(Voice::complaints).unwrap_or_default()
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.stop(Nanos::ZERO);
    }
}
