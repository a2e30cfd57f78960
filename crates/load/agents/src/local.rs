//! Agents as local processes: the reference for every other backend.

use std::io::{self, Write};
use std::process::Command;
use std::sync::mpsc::{self, Receiver};

use super::child_channel::{ChildChannel, ChildLine};
use super::placement::{Placement, PlacementEvent};
use super::{AGENT_COMMAND, AgentSpec};
use weir_base::Nanos;
use weir_load::machine_manifest;
use weir_machine::clock::Clock;

/// Agents on this machine.
#[derive(Debug)]
pub(super) struct LocalPlacement {
    agents: Vec<ChildChannel>,
    nodes: Vec<String>,
    lines: Receiver<(usize, ChildLine)>,
}

/// Starts local agents; with `prints` what they write to stderr goes on to that of this process.
pub(super) fn place(spec: &AgentSpec, prints: bool) -> Result<LocalPlacement, String> {
    let (program, args) = spec.launcher.split_first().ok_or("no command to start an agent")?;
    let (sender, lines) = mpsc::channel();
    let start = |index: usize| {
        let mut command = Command::new(program);
        command.args(args).arg(AGENT_COMMAND);
        let sender = sender.clone();
        let on_line = move |line| {
            // The receiver may be dropped already.
            let _ = sender.send((index, line));
        };
        ChildChannel::start(command, on_line, move |text| {
            if prints {
                // An unwritable stderr is ignored.
                let _ = writeln!(io::stderr(), "agent {}: {text}", index + 1);
            }
        })
    };
    let count = usize::try_from(spec.agents.unwrap_or(1)).unwrap_or(usize::MAX);
    let agents = (0..count).map(start).collect::<io::Result<Vec<_>>>();
    let agents = agents.map_err(|error| format!("cannot start agents: {error}"))?;
    Ok(LocalPlacement { nodes: vec![machine_manifest().hostname; agents.len()], agents, lines })
}

impl Placement for LocalPlacement {
    fn nodes(&self) -> &[String] {
        &self.nodes
    }

    fn send(&mut self, agent: usize, line: &str) {
        if let Some(channel) = self.agents.get(agent) {
            channel.send(line.to_owned());
        }
    }

    fn next_event(&mut self, timeout: Nanos) -> Option<PlacementEvent> {
        let (agent, (at, line)) = self.lines.recv_timeout(timeout.as_duration()).ok()?;
        let failed = |channel: &mut ChildChannel| PlacementEvent::Failed(agent, channel.exit_description());
        match line {
            Some(line) => Some(PlacementEvent::Line(agent, at, line)),
            None => self.agents.get_mut(agent).map(failed),
        }
    }

    fn stop(&mut self, timeout: Nanos) {
        // One timeout for all of them together.
        self.agents.iter_mut().for_each(ChildChannel::close_stdin);
        let clock = Clock::started_ago(Nanos::ZERO);
        self.agents.iter_mut().for_each(|agent| agent.stop(timeout - clock.now()));
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
