//! Flags of agents, shared by `load`, `capacity` and `study`.

use std::ffi::OsString;

use clap::Args;

use weir_agents::{AgentSpec, Backend};
use weir_command::self_command;

const AGENTS: &str = "Agents";

/// Location and number of agents.
#[derive(Clone, Debug, Args)]
pub(super) struct AgentArgs {
    /// generate the load on agents: local processes, or a Ray cluster
    #[arg(long = "on", value_name = "local|auto|ray://HOST:PORT", value_parser = str::parse::<Backend>, help_heading = AGENTS)]
    backend: Option<Backend>,
    /// start N agents [default: one per node; local: 1]
    #[arg(long, value_name = "N", requires = "backend", help_heading = AGENTS)]
    agents: Option<u64>,
    /// start at most N agents per node
    #[arg(long, value_name = "N", requires = "backend", default_value_t = 1, help_heading = AGENTS)]
    per_node: u64,
}

impl AgentArgs {
    /// Whether agents generate the load.
    pub(super) fn has_agents(&self) -> bool {
        self.backend.is_some()
    }

    /// Whether the agents are on other machines.
    pub(super) fn are_remote(&self) -> bool {
        matches!(self.backend, Some(Backend::Ray(_)))
    }

    /// Takes a number of processes on this machine in place of agents.
    pub(super) fn set_processes(&mut self, processes: u64) {
        (self.backend, self.agents) = (Some(Backend::Local), Some(processes));
    }

    /// Specification of the agents, if there are any; `connections` is the total to divide among them, if known.
    ///
    /// # Errors
    /// One line with the invalid flag.
    pub(super) fn agent_spec(&self, args: &[OsString], connections: Option<u64>) -> Result<Option<AgentSpec>, String> {
        let Some(on) = self.backend.clone() else { return Ok(None) };
        let asked =
            AgentSpec { backend: on, agents: self.agents, per_node: self.per_node, launcher: self_command(args) };
        asked.check(connections)?;
        Ok(Some(asked))
    }
}
