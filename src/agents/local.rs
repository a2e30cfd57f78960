//! Agents as processes on this machine: the reference for every other place.

use std::io;
use std::process::Command;
use std::sync::mpsc::{self, Receiver};

use super::placement::{Placement, PlacementEvent};
use super::voice::{ChildChannel, ChildLine};
use super::{AGENT_COMMAND, AgentSpec};
use crate::decide::Nanos;
use crate::machine::{self, clock::Clock};

/// Agents on this machine.
#[derive(Debug)]
pub(super) struct LocalPlacement {
    agents: Vec<ChildChannel>,
    nodes: Vec<String>,
    lines: Receiver<(usize, ChildLine)>,
}

/// Places them.
pub(super) fn place(asked: &AgentSpec) -> Result<LocalPlacement, String> {
    let (own, args) = asked.launcher.split_first().ok_or("it is not known how to start an agent")?;
    let (says, heard) = mpsc::channel();
    let start = |index: usize| {
        let mut command = Command::new(own);
        command.args(args).arg(AGENT_COMMAND);
        let says = says.clone();
        ChildChannel::start(command, move |heard| {
            // Whoever listens may have had enough.
            let _ = says.send((index, heard));
        })
    };
    let count = usize::try_from(asked.agents.unwrap_or(1)).unwrap_or(usize::MAX);
    let agents = (0..count).map(start).collect::<io::Result<Vec<_>>>();
    let agents = agents.map_err(|error| format!("the system refuses to start agents: {error}"))?;
    Ok(LocalPlacement { nodes: vec![machine::describe().hostname; agents.len()], agents, lines: heard })
}

impl Placement for LocalPlacement {
    fn nodes(&self) -> &[String] {
        &self.nodes
    }

    fn send(&mut self, agent: usize, line: &str) {
        if let Some(voice) = self.agents.get(agent) {
            voice.send(line.to_owned());
        }
    }

    fn next_event(&mut self, patience: Nanos) -> Option<PlacementEvent> {
        let (agent, (at, line)) = self.lines.recv_timeout(patience.as_duration()).ok()?;
        let lost = |voice: &mut ChildChannel| PlacementEvent::Failed(agent, voice.exit_description());
        match line {
            Some(line) => Some(PlacementEvent::Line(agent, at, line)),
            None => self.agents.get_mut(agent).map(lost),
        }
    }

    fn stop(&mut self, patience: Nanos) {
        // All at once, and for all of them together: those that hang are not waited for one by one.
        self.agents.iter_mut().for_each(ChildChannel::close_stdin);
        let clock = Clock::started_ago(Nanos::ZERO);
        self.agents.iter_mut().for_each(|agent| agent.stop(patience - clock.now()));
    }

    fn logs(&self, agent: usize) -> Vec<String> {
        self.agents.get(agent).map(ChildChannel::last_stderr_lines).unwrap_or_default()
    }
}

impl Drop for LocalPlacement {
    fn drop(&mut self) {
        self.stop(Nanos::ZERO);
    }
}
